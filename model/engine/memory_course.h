/* memory_course.h - memory of a device over one iteration, from the passes of its run. F-MEM-COURSE
 *
 * States, buffers, workspace and the context stay. A forward pass allocates at its end what its
 * layers keep, a backward pass frees it. The parts of struct dl_memory are those of the curve: its
 * largest value is total_bytes.
 */
#ifndef DL_MODEL_ENGINE_MEMORY_COURSE_H
#define DL_MODEL_ENGINE_MEMORY_COURSE_H

#include "model/engine/prediction_internal.h"
#include "model/engine/schedule.h"

/* What one pass of a stage allocates. */
struct dl_pass_memory {
    double kept_bytes; /* of each part of the stage */
    /* of the last part: freed when backward begins, for all but the share of its time that it takes
     */
    double head_bytes, head_frac;
    double repeated_bytes; /* during backward */
    bool splits;           /* the gradients of the weights free kept_bytes */
};

/* Of the devices of each stage; memory: what the prediction says of them. */
void dl_memory_course_of_stages(const struct dl_pipeline_passes *passes,
                                const struct dl_pass_memory *each, const struct dl_memory *memory,
                                struct dl_arena *arena, struct dl_course *out);

/* Of a device that holds all layers, through the micro-batch of `samples` that the timeline shows
 * (parts->with_comm). */
void dl_memory_course_of_layers(const struct dl_prediction_inputs *parts, double samples,
                                const struct dl_memory *memory, struct dl_course *out);

#endif
