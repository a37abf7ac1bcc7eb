/* tf_parts.h - one transformer plan with everything that its prediction was made of. Private to the model.
 */
#ifndef DL_MODEL_TF_PARTS_H
#define DL_MODEL_TF_PARTS_H

#include "model/tf.h"

struct dl_tf_parts {
    const struct dl_tf *tf;
    const struct dl_plan *plan;
    struct dl_tf_cell cell;
    struct dl_tf_layout layout;
    struct dl_collective_time border;
    struct dl_tf_choice choice;
    struct dl_tf_result result;
    double micro_samples;
    struct dl_arena *arena;
};

/* What a complete plan says, in this model's words. */
struct dl_tf_split dl_tf_split_of(const struct dl_plan *plan);
int dl_tf_shard_of(const struct dl_plan *plan);
void dl_tf_choice_of(const struct dl_plan *plan, struct dl_tf_choice *out, double *micro_samples_out);

/* The prediction from its parts: efficiency, bottleneck, interval, warnings, terms. */
enum dl_code dl_tf_finish(const struct dl_tf_parts *parts, const struct dl_predict_options *options, struct dl_prediction *out,
                          struct dl_err *err);
/* Every term of it. */
enum dl_code dl_tf_explain(const struct dl_tf_parts *parts, struct dl_prediction *prediction, struct dl_err *err);

#endif
