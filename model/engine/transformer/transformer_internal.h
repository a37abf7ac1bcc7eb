/* transformer_internal.h - one transformer plan with everything that its prediction was made of.
 * Private to the model.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_INTERNAL_H
#define DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_INTERNAL_H

#include "model/engine/transformer/transformer.h"
#include "model/engine/transformer/transformer_program.h"
#include "model/plan/pipeline_schedule.h"

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

/* The slowest stage, and what the pipeline adds to its micro-batches. */
struct dl_transformer_pace {
    int slowest; /* 0: the first stage, 2: the last, 1: between */
    struct dl_transformer_stage stage;
    double bubble_s;   /* F-TRANSFORMER-BUBBLE */
    double boundary_s; /* F-TRANSFORMER-BOUNDARY, exposed */
};
/* Runs the schedule; least: its bound instead (F-SEARCH-BOUND). */
struct dl_transformer_pace
dl_transformer_pace_of(const struct dl_transformer *tf,
                       const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_micro_batch *micro_batch,
                       const struct dl_transformer_choice *choice, double message_s, bool least);

/* What the seconds of that stage depend on. */
void dl_transformer_uses_of(const struct dl_transformer_mapping *mapping,
                            const struct dl_transformer_micro_batch *micro_batch,
                            const struct dl_transformer_choice *choice,
                            struct dl_transformer_uses *out);

/* How often an iteration sums gradients. F-TRANSFORMER-DATA */
double dl_transformer_sums(const struct dl_transformer *tf,
                           const struct dl_transformer_mapping *mapping,
                           const struct dl_transformer_choice *choice);

/* Whether it does so for each micro-batch, rather than once a round of them. */
bool dl_transformer_sums_each(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *mapping,
                              const struct dl_transformer_choice *choice);

/* Whether collectives of data parallelism run behind kernels: not where the host waits for each
 * (F-HOST-BLOCKING). */
bool dl_transformer_reduces_behind(const struct dl_transformer *tf, int shard);

/* F-TRANSFORMER-DATA: pieces of at most a layer or so in which gradients leave backward; and calls
 * that carry them. */
double dl_transformer_bucket_count(const struct dl_transformer *tf,
                                   const struct dl_transformer_mapping *mapping);
double dl_transformer_gradient_calls(const struct dl_transformer *tf,
                                     const struct dl_transformer_mapping *mapping);

/* F-HOST-CHECKS, F-HOST-PIECES: host time beside the collectives of an iteration outside layers;
 * checks of gradients hide behind the last backward pass. */
double dl_transformer_iteration_calls_s(const struct dl_transformer *tf,
                                        const struct dl_transformer_mapping *mapping,
                                        double backward_s);
/* F-FW-IDEAL: stages of the bound are cut evenly, wherever that is. */
bool dl_transformer_cuts_evenly(const struct dl_transformer_mapping *mapping);

/* What a complete plan says, in this model's words. */
struct dl_transformer_split dl_transformer_split_of(const struct dl_plan *plan);
int dl_transformer_shard_of(const struct dl_plan *plan);
void dl_transformer_choice_of(const struct dl_plan *plan, struct dl_transformer_choice *out,
                              double *micro_samples_out);

/* The schedule of its stages, in the arena; how many micro-batches is left open. */
struct dl_pipeline_order dl_transformer_order_of(const struct dl_transformer_parts *parts);

/* Tasks of the iteration and the course of memory. */
void dl_transformer_course(const struct dl_transformer_parts *parts,
                           struct dl_prediction *prediction);

/* DL_ERR_USAGE: what the plan moves to the host does not fit there. F-OFFLOAD */
enum dl_code dl_transformer_check_host(const struct dl_transformer_parts *parts,
                                       struct dl_err *err);

/* Every term of it. */
void dl_transformer_explain(const struct dl_transformer_parts *parts,
                            struct dl_prediction *prediction);

/* What explain and course call a part, and its formula: a vision tower names all that comes before
 * the layers (F-TOWER). */
const char *dl_transformer_part_name(const struct dl_transformer *tf, int part);
const char *dl_transformer_part_formula(const struct dl_transformer *tf, int part);

#endif
