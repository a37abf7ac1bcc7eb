/* pipeline_course.h - the run of a pipeline as tasks: passes of each stage, what stages send and
 * receive, which of them are critical (F-CRITICAL-PATH).
 */
#ifndef DL_MODEL_ENGINE_PIPELINE_COURSE_H
#define DL_MODEL_ENGINE_PIPELINE_COURSE_H

#include "model/engine/predict.h"
#include "model/engine/schedule.h"

/* One pass of one part of a stage. */
struct dl_pass_work {
    double flop[DL_PASS_KINDS], moved_bytes[DL_PASS_KINDS];
};

struct dl_pipeline_texts {
    const char *formula, *message_formula, *inputs, *origin;
    double message_bytes;
};

/* Adds passes and messages of all stages to the course; room for `more` tasks remains. work: by
 * stage. */
void dl_pipeline_tasks(const struct dl_pipeline_passes *passes, const struct dl_pass_work *work,
                       const struct dl_pipeline_texts *texts, int more, struct dl_arena *arena,
                       struct dl_task_list *out);

struct dl_term dl_pipeline_update(const struct dl_device *device, int stage, double start_s,
                                  double seconds, bool critical);

#endif
