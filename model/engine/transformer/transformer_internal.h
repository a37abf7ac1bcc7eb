/* transformer_internal.h - one transformer plan with everything that its prediction was made of.
 * Private to the model.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_INTERNAL_H
#define DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_INTERNAL_H

#include "model/engine/transformer/transformer.h"

struct dl_transformer_parts {
    const struct dl_transformer *tf;
    const struct dl_plan *plan;
    struct dl_transformer_micro_batch micro_batch;
    struct dl_transformer_mapping mapping;
    struct dl_collective_time boundary;
    struct dl_transformer_choice choice;
    struct dl_transformer_result result;
    double micro_samples;
    struct dl_arena *arena;
};

/* What a complete plan says, in this model's words. */
struct dl_transformer_split dl_transformer_split_of(const struct dl_plan *plan);
int dl_transformer_shard_of(const struct dl_plan *plan);
void dl_transformer_choice_of(const struct dl_plan *plan, struct dl_transformer_choice *out,
                              double *micro_samples_out);

/* Every term of it. */
/* Fills the prediction's stage times and micro-batches when there is a pipeline. DL_ERR_SYSTEM. */
void dl_transformer_stage_times(const struct dl_transformer_parts *parts,
                                struct dl_prediction *prediction);

void dl_transformer_explain(const struct dl_transformer_parts *parts,
                            struct dl_prediction *prediction);

#endif
