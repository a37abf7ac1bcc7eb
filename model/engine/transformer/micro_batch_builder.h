/* micro_batch_builder.h - a micro-batch under construction: shared by transformer_micro_batch.c,
 * which adds up layers, transformer_kernels.c, which times a layer's kernels, and
 * transformer_exchange.c, which adds the collectives inside layers. Private to the model.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_MICRO_BATCH_BUILDER_H
#define DL_MODEL_ENGINE_TRANSFORMER_MICRO_BATCH_BUILDER_H

#include "model/engine/run.h"
#include "model/engine/transformer/transformer.h"
#include "model/workload/kernel_facts.h"

struct dl_micro_batch_builder {
    const struct dl_transformer *tf;
    const struct dl_transformer_split *split;
    struct dl_transformer_micro_batch *micro_batch;
    double micro_samples;
    struct dl_kernel_facts facts;
    struct dl_collective_time ring; /* of context parallelism: keys and values of one share */
    /* all of them: all-gather; their gradients: reduce-scatter; or all-to-all of keys, of values */
    struct dl_collective_time keys;
    struct dl_collective_time key_gradients;
    struct dl_collective_time queries; /* all-to-all of queries, of results */
    /* F-STATE-SPLIT: all-to-all of what a layer with a state reads, of its results */
    struct dl_collective_time state_in, state_out;
};

/* Adds the kernels of `layer` (at the split) in these passes, `sign` times. */
void dl_transformer_add_kernels(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                enum dl_pass pass, double sign, struct dl_transformer_pass *out);

/* A kernel that reads and writes so many elements, and extra bytes, `sign` times; none where it
 * reads and writes nothing. */
void dl_transformer_add_stream(const struct dl_micro_batch_builder *m, enum dl_pass pass,
                               double reads, double writes, double extra_bytes, double sign,
                               struct dl_transformer_pass *out);

/* The same of a kernel that takes `scale` times as long as its bytes would. */
void dl_transformer_add_slow_stream(const struct dl_micro_batch_builder *m, enum dl_pass pass,
                                    double scale, double reads, double writes, double extra_bytes,
                                    double sign, struct dl_transformer_pass *out);

/* What a layer inside the kernels of another adds to them. */
void dl_transformer_add_rest(const struct dl_micro_batch_builder *m, const struct dl_kernel *rest,
                             struct dl_transformer_pass *out);

/* One layer's passes over a micro-batch; the collectives go into forward and data. */
struct dl_transformer_layer_passes {
    struct dl_transformer_pass forward, data, weights;
};

/* F-LORA: adds the passes of a layer's adapter; the layer's weights have no gradients. */
void dl_transformer_add_adapter(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                struct dl_transformer_layer_passes *passes);

/* What experts add to their products and exchange. F-TRANSFORMER-EXPERT-ROWS,
 * F-TRANSFORMER-EXPERT-CALLS */
void dl_transformer_add_experts(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                enum dl_pass pass, double sign, struct dl_transformer_pass *out);

/* The collectives inside layers. */
enum dl_code dl_transformer_make_collectives(struct dl_micro_batch_builder *m, struct dl_err *err);

void dl_transformer_add_exchanges(const struct dl_micro_batch_builder *m,
                                  const struct dl_transformer_layer *l,
                                  struct dl_transformer_layer_passes *passes);

/* Sets the times of a pass from its kernels, messages and host_s. Returns the ratio of its time to
 * that of its kernels and messages. */
double dl_transformer_set_pace(const struct dl_transformer *tf, struct dl_transformer_pass *pass);

/* Share of a device that a running collective takes from kernels next to it: its channels occupy
 * one multiprocessor each. 0 where that is unknown. F-TRANSFORMER-CONTENTION */
double dl_transformer_contention(const struct dl_transformer *tf,
                                 const struct dl_collective_time *collective);
/* The same of an exchange of experts: DeepEP and HybridEP choose their multiprocessors. */
double dl_transformer_exchange_contention(const struct dl_transformer *tf,
                                          const struct dl_collective_time *exchange);

/* A collective and kernels that begin together. */
struct dl_transformer_overlap {
    double exposed_s; /* the collective ends later than the kernels */
    double lost_s;    /* the kernels take longer: F-SLOWDOWN */
    double path_s;    /* F-CRITICAL-PATH: what depends on the collective */
};
struct dl_transformer_overlap dl_transformer_overlap_of(double message_s, double kernels_s,
                                                        double contention);
/* Hides `times` collectives of the pass, which are a part of the all_s that overlap so. */
void dl_transformer_hide(const struct dl_collective_time *t, double times, double all_s,
                         const struct dl_transformer_overlap *overlap,
                         struct dl_transformer_pass *pass);

/* F-TRANSFORMER-MEMORY: fills `memory` and `fits` from the fullest stage. */
void dl_transformer_hold(const struct dl_transformer *tf,
                         const struct dl_transformer_mapping *mapping,
                         const struct dl_transformer_micro_batch *micro_batch,
                         const struct dl_transformer_choice *choice,
                         struct dl_transformer_result *out);

/* Whether the GEMMs of the layer run in the plan's 8-bit or 4-bit precision: linear layers of the
 * body and experts; not attention, the router, the logits. F-TRANSFORMER-CASTS */
bool dl_transformer_narrow(const struct dl_transformer *tf, const struct dl_transformer_layer *l);

/* Whether a cast needs the largest value of its tensor first. F-TRANSFORMER-CASTS */
bool dl_transformer_current_scaling(const struct dl_transformer *tf);

/* F-FW-IDEAL: an all-reduce in pieces of the size that moves bytes cheapest, or by way of servers
 * that move each byte once each way. */
enum dl_code dl_transformer_bound_reduce(const struct dl_transformer *tf,
                                         const struct dl_transformer_split *split,
                                         struct dl_transformer_group group, double bytes,
                                         struct dl_collective_time *out, struct dl_err *err);
/* F-FW-IDEAL: a reduce-scatter or an all-gather, in pieces of the size that moves bytes cheapest,
 * as a part of the `all_bytes` that move; at most half of the cheapest all-reduce. */
enum dl_code dl_transformer_bound_half(const struct dl_transformer *tf,
                                       const struct dl_transformer_split *split,
                                       struct dl_transformer_group group, enum dl_collective_op op,
                                       double bytes, double all_bytes,
                                       struct dl_collective_time *out, struct dl_err *err);

#endif
