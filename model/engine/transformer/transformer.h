/* transformer.h - transformers split by tensor, sequence (context), pipeline, expert and data
 * parallelism, with sharded states.
 *
 * A network is a stack of equal layers (the body) between an embedding (before) and a head (after);
 * all three are found in the workload's own layers, and the kernels of each layer are those of its
 * kind at the split shape. The work is done once for each split and micro-batch (the micro-batch
 * cost) and once for each arrangement of ranks (the rank mapping); a plan then costs additions.
 *
 *   dl_transformer_prepare      which layers are what (transformer_split.c)
 *   dl_transformer_micro_batch  kernels, collectives and kept bytes of one micro-batch
 *                               (transformer_micro_batch.c)
 *   dl_transformer_mapping      groups of ranks, messages of data parallelism, update, states
 *                               (transformer_mapping.c)
 *   dl_transformer_evaluate     pipeline, overlap, memory: the prediction of one plan
 *                               (transformer_stages.c, transformer_program.c, transformer_time.c)
 *
 * Pure; a struct dl_transformer is constant once it is prepared and may be shared by threads.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_H
#define DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_H

#include "model/network/collective.h"
#include "model/engine/compose.h"
#include "model/plan/pipeline_schedule.h"

enum dl_transformer_part {
    DL_TRANSFORMER_BEFORE,
    DL_TRANSFORMER_BODY,
    DL_TRANSFORMER_AFTER,
    DL_TRANSFORMER_PARTS
};
enum { DL_TRANSFORMER_RECOMPUTES = 3 }; /* enum dl_recompute */

struct dl_transformer_mapping;

/* How a tensor of the network is split over the ranks of tensor parallelism. */
enum dl_transformer_state {
    /* every rank has all channels; with sequence parallelism its share of the tokens */
    DL_TRANSFORMER_WHOLE,
    DL_TRANSFORMER_SPLIT, /* every rank has its share of the channels */
};

/* What tensor parallelism makes of a layer. */
enum dl_transformer_role {
    DL_TRANSFORMER_SAME,
    DL_TRANSFORMER_COLUMN,
    DL_TRANSFORMER_ROW,
    DL_TRANSFORMER_VOCABULARY,
    DL_TRANSFORMER_HEADS,
    DL_TRANSFORMER_LOSS,
    DL_TRANSFORMER_EXPERTS
};

struct dl_transformer_layer {
    int index; /* in the workload */
    enum dl_transformer_part part;
    enum dl_transformer_role role;
    enum dl_transformer_state in, out;
    /* column: the first reader of its input, which runs the collective for all readers */
    bool gathers;
    bool in_layer;    /* of the body, or of a layer that predicts further tokens (F-MTP) */
    bool gathered;    /* a column layer reads its output */
    unsigned modules; /* bits of enum dl_module that it is in; 0: none */
    bool ends_module; /* its output leaves the MLP or the experts */
    double share;     /* of all body layers, those that it stands for; else 1. F-MIXED-STACK */
};

struct dl_transformer {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_library library;
    double compute_scale; /* 0: 1 */
    /* what input depends on: the global batch, the dataset, decoding; the split is not read */
    struct dl_plan input;
    /* before, one of the body, the last of the body, after */
    struct dl_transformer_layer *layers;
    int layer_count;
    int body_count;               /* workload layers in one body layer */
    double stack, tokens, hidden; /* body layers; tokens of a sample; channels between layers */
    double dense_prefix_layers;   /* transformer layers of another kind before the body */
    /* of each pipeline stage, leading layers of another kind included, where the plan lists them */
    const double *listed_layers;
    int64_t listed_stages;
    /* rows of experts for each token when all ranks have as many: k x capacity factor; 0 without
     * experts */
    double rows_per_token;
    bool dropless;      /* experts compute every token: ranks may have more of them than others */
    double top_k;       /* k */
    double kv_channels; /* of the keys of a token; values have about as many */
    double heads, kv_heads, experts; /* what can be split; experts: 0 when there are none */
    /* F-STATE-SPLIT: heads of layers with a state, and groups with one pair of keys and queries:
     * common divisors; 0: none. Channels that context parallelism exchanges before and after. */
    double state_heads, state_groups, state_in_channels, state_out_channels;
    /* parameters; body: of one layer */
    double split_elements[DL_TRANSFORMER_PARTS], whole_elements[DL_TRANSFORMER_PARTS],
        expert_elements[DL_TRANSFORMER_PARTS];
    double tensor_count[DL_TRANSFORMER_PARTS]; /* parameter tensors */
    /* F-FROZEN: elements that are not trained; the three arrays above count those that are */
    struct dl_transformer_elements {
        double split_elements, whole_elements, expert_elements;
    } frozen[DL_TRANSFORMER_PARTS];
    /* of the embedding that the head uses too: a copy on the last stage of a pipeline */
    double tied_elements;
    bool by_tokens;            /* the input is a sequence: it can be split along it */
    struct dl_cost_memo *memo; /* for one thread alone; NULL: none */
    /* no stack: `stack` equal units of an arbitrary network, for sharded data parallelism alone */
    bool is_generic_stack;
};

/* DL_ERR_USAGE when the workload is no single stack of equal transformer layers and the plan splits
 * over more than data. The plan gives precision, optimizer, library and compute_scale. */
enum dl_code dl_transformer_prepare(const struct dl_system *system,
                                    const struct dl_workload *workload,
                                    const struct dl_framework *framework,
                                    const struct dl_plan *plan, struct dl_arena *arena,
                                    struct dl_transformer *out, struct dl_err *err);

/* Whether so many layers can be cut into pp stages of v virtual ones (1: none). The one rule on
 * stages: checks refuse and the search leaves out what it denies. */
bool dl_transformer_takes_parts(double layers, int64_t pp, int64_t v);
/* F-FROZEN: how many first layers of a pipeline may be frozen: fewer than its first stage has, as
 * the others are taken to be equal; HUGE_VAL where the network freezes none. */
double dl_transformer_frozen_room(const struct dl_transformer *tf, int64_t pp);
/* The same of the stack. */
bool dl_transformer_takes_stages(const struct dl_transformer *tf, int64_t pp, int64_t v);

/* Sets the modules of all body layers. F-RECOMPUTE-MODULES */
void dl_transformer_mark_modules(const struct dl_transformer *tf);
/* F-STATE-SPLIT: takes the limits of a layer with a state. */
void dl_transformer_add_state(struct dl_transformer *tf, const struct dl_layer *layer);
/* The most parts of which tensor parallelism may make a divisor: heads, and groups of layers with a
 * state. */
int64_t dl_transformer_tensor_parts(const struct dl_transformer *tf);

/* Whether the workload is a single stack of equal layers with attention or a state, or a mixed one.
 */
bool dl_transformer_is_stack(const struct dl_workload *workload);

/* F-LORA: bytes that a layer's adapter keeps for a sample. */
double dl_transformer_lora_bytes(const struct dl_transformer *tf,
                                 const struct dl_transformer_layer *l,
                                 const struct dl_layer *layer);

/* Sizes of the groups; tp x sp x ep x pp x dp devices, numbered with tp fastest, then sp, and then
 * as `mapping` says. */
struct dl_transformer_split {
    int64_t tp, sp, ep, pp, dp, nodes, devices_per_node;
    int64_t ep_within_tp_cp; /* as in a plan */
    enum dl_mapping mapping;
    enum dl_placing placing; /* of the parts of a pipeline */
    bool sequence_parallel;
    int64_t shard_group; /* data ranks that share states out; 0: all */
};

/* F-TRANSFORMER-IMBALANCE: tokens of the fullest rank of experts / mean of all ranks, >= 1: as the
 * plan says, at most the ranks among which tokens choose; else as the framework's file says, for a
 * trained and balanced router. 1 where a capacity bounds what an expert takes. */
double dl_transformer_imbalance(const struct dl_transformer *tf,
                                const struct dl_transformer_split *split);
/* Rows that the fullest rank's experts compute for each token of a rank: k c times the imbalance.
 */
double dl_transformer_rows_per_token(const struct dl_transformer *tf,
                                     const struct dl_transformer_split *split);

/* The layer with its shapes and tensors at the split. */
struct dl_layer dl_transformer_layer_at(const struct dl_transformer *tf,
                                        const struct dl_transformer_layer *layer,
                                        const struct dl_transformer_split *split);
/* Whether the layer is attention whose results selective recomputation by operations keeps.
 * F-TRANSFORMER-RECOMPUTE */
bool dl_transformer_keeps_attention(const struct dl_transformer *tf, const struct dl_layer *layer);

/* Bytes kept for backward by that layer, `layer` at the split, for one sample; `recompute` none or
 * selective.
 * F-TRANSFORMER-ACTIVATIONS */
double dl_transformer_kept_bytes(const struct dl_transformer *tf,
                                 const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                 const struct dl_transformer_split *split,
                                 enum dl_recompute recompute);

/* Extra cost of softmax where a fused kernel does not take the scores of `samples`; the
 * number of kernels, 0 or all. F-TRANSFORMER-SOFTMAX */
enum { DL_TRANSFORMER_SOFTMAX_KERNELS = 4 };
int dl_transformer_softmax_kernels(const struct dl_framework *framework,
                                   enum dl_precision precision, const struct dl_layer *layer,
                                   enum dl_pass pass, double samples,
                                   struct dl_kernel out[DL_TRANSFORMER_SOFTMAX_KERNELS]);

/* Body layers of a stage (0: the first). F-TRANSFORMER-STAGES */
double dl_transformer_stage_layers(const struct dl_transformer *tf,
                                   const struct dl_transformer_mapping *mapping, int64_t stage);
/* Stages that a plan's numbers distinguish. */
enum dl_transformer_stage_kind {
    DL_TRANSFORMER_FIRST,
    DL_TRANSFORMER_LAST,
    DL_TRANSFORMER_BETWEEN,
    DL_TRANSFORMER_STAGE_KINDS
};
enum dl_transformer_stage_kind dl_transformer_kind_of(const struct dl_transformer_mapping *mapping,
                                                      int64_t stage);
/* How often such a stage runs each part of the network for a micro-batch, the fullest of those
 * between; of several chains the mean. F-TRANSFORMER-STAGES */
void dl_transformer_kind_times(const struct dl_transformer_mapping *mapping,
                               enum dl_transformer_stage_kind kind,
                               double times[DL_TRANSFORMER_PARTS]);
/* The same of one stage. */
void dl_transformer_stage_times(const struct dl_transformer *tf,
                                const struct dl_transformer_mapping *mapping, int64_t stage,
                                double times[DL_TRANSFORMER_PARTS]);
/* Whether the layers, or the listed ones, can be cut for the schedule of that many stages. */
bool dl_transformer_takes_schedule(const struct dl_transformer *tf, int64_t pp,
                                   enum dl_schedule schedule, int64_t virtual_stages);
/* Sets the layers of the stages in the mapping. */
void dl_transformer_place_layers(const struct dl_transformer *tf, double pp,
                                 struct dl_transformer_mapping *out);

/* The devices of a group of ranks: every `stride`-th device from one on. */
struct dl_transformer_group {
    int64_t ranks, stride;
};
/* F-TRANSFORMER-STAGES: body layers of the first (0) and of the last (1) of `stages`, when `layers`
 * do not divide: the fullest has one more than others, and those at the ends, which have embedding
 * and head, are short before those between them. */
double dl_transformer_end_layers(double layers, double stages, int last);

/* Copies of the network's parameters in a pipeline. */
int dl_transformer_chains(const struct dl_transformer_split *split);

/* Ranks that share out the experts, each whole where they are folded; and those that hold the same.
 * F-TRANSFORMER-FOLD */
int64_t dl_transformer_expert_ranks(const struct dl_transformer_split *split);
int64_t dl_transformer_expert_replicas(const struct dl_transformer_split *split);

/* Of an axis (DL_AXIS_* of strategy.h); data: dp x ep x sp ranks that hold the same parameters
 * (experts: dp x sp). */
struct dl_transformer_group dl_transformer_group_of(const struct dl_transformer_split *split,
                                                    unsigned axis);

/* Host time of the checks before one collective of `ranks`. F-HOST-CHECKS */
double dl_transformer_check_s(const struct dl_transformer *tf,
                              const struct dl_transformer_split *split, double ranks);

/* A collective of one group while all like groups do the same. */
enum dl_code dl_transformer_collective(const struct dl_transformer *tf,
                                       const struct dl_transformer_split *split,
                                       struct dl_transformer_group group, enum dl_collective_op op,
                                       double bytes, struct dl_collective_time *out,
                                       struct dl_err *err);

/* One pass of one part for one micro-batch. */
struct dl_transformer_pass {
    double device_s, by_limit_s[3]; /* kernels, split by enum dl_limit */
    /* error_s: sum time x sigma; outside_s: beyond the samples */
    double launches, error_s, outside_s, flop, moved_bytes;
    double comm_s; /* exposed collectives */
    /* F-CRITICAL-PATH: what depends on collectives, with those next to kernels that end sooner */
    struct dl_resource_use comm;
    double comm_error_s, comm_bytes, collective_count; /* bytes: sent by a rank */
    double check_s;                                    /* of the host, before the collectives */
    struct dl_host_count host;   /* what the host runs beside the launches (F-HOST-COUNT) */
    double host_operation_count; /* that the host issues like kernels, beside them */
    double experts_s;            /* of device_s: experts of the body */
    double captured_launch_count, captured_collective_count; /* of those: in CUDA graphs */
    double weights_s; /* of a backward pass the kernels of weights' gradients, then their part of
                         step_s */
    /* all of it: device, gaps and communication, or the host when that takes longer */
    double step_s;
    double host_s;       /* of the host alone */
    double host_bound_s; /* F-PACED: by how much step_s grows for each e-fold of the host's time */
};

void dl_transformer_add_pass(struct dl_transformer_pass *to, const struct dl_transformer_pass *from,
                             double times);

struct dl_transformer_micro_batch {
    struct dl_transformer_split split; /* tp, sp, ep and sequence_parallel count */
    double micro_samples;
    /* body: of one layer */
    struct dl_transformer_pass forward[DL_TRANSFORMER_PARTS],
        backward[DL_TRANSFORMER_PARTS][DL_TRANSFORMER_RECOMPUTES];
    double kept_bytes[DL_TRANSFORMER_PARTS][DL_TRANSFORMER_RECOMPUTES];
    /* F-OFFLOAD: of a body layer on the host */
    double offloaded_bytes[DL_TRANSFORMER_RECOMPUTES];
    double boundary_bytes; /* between stages, of one rank */
    /* of tensor parallelism: all-reduce, or all-gather and reduce-scatter */
    struct dl_collective_time reduce, gather, scatter;
    double collective_bytes; /* their size */
    /* of expert parallelism: tokens to their experts, and back (time 0: as there) */
    struct dl_collective_time route, route_back;
    double route_bytes;
    /* of tensor parallelism of experts: rows routed to the rank's experts */
    struct dl_collective_time expert_gather, expert_scatter;
    double expert_bytes;
    bool extrapolated; /* a collective outside what was measured */
};
enum dl_code dl_transformer_micro_batch_make(const struct dl_transformer *tf,
                                             const struct dl_transformer_split *split,
                                             double micro_samples,
                                             struct dl_transformer_micro_batch *out,
                                             struct dl_err *err);

/* F-MOE-OVERLAP: of all but one of `micro_batches` the experts' exchanges run behind the kernels of
 * another micro-batch, forward ones behind backward ones and the reverse. */
void dl_transformer_overlap_experts(const struct dl_transformer *tf, double micro_batches,
                                    struct dl_transformer_micro_batch *micro_batch);

/* F-OFFLOAD: what a plan moves to the host; the share of it. */
double dl_transformer_offload_frac(const struct dl_transformer *tf, enum dl_offload what);
void dl_transformer_offload_activations(const struct dl_transformer *tf,
                                        const struct dl_transformer_split *split,
                                        struct dl_transformer_micro_batch *micro_batch);
void dl_transformer_offload_states(const struct dl_transformer *tf,
                                   struct dl_transformer_mapping *out);
enum dl_code dl_transformer_check_offload(const struct dl_system *system,
                                          const struct dl_plan *plan, int shard,
                                          struct dl_err *err);

/* F-RECOMPUTE-SOME: full recomputation repeats this share of the body's layers. */
void dl_transformer_recompute_some(double share, struct dl_transformer_micro_batch *micro_batch);

/* Experts of a rank, and their part of what a mapping moves. */
struct dl_expert_mapping {
    /* of a rank of the fullest stage (shard 3: of its body), held by so many; 0: no expert ranks
     * (then they count as all others) */
    double parameters, replicas;
    /* the experts' part of reduce and gather */
    struct dl_collective_time reduce, gather;
    double gradient_bytes, gather_bytes; /* of gradient_bytes, gather_bytes */
};

/* F-OFFLOAD: update by the host's cores, copies before and after it, memory of a rank. */
struct dl_host_update {
    double update_s, copy_s, bytes;
};

/* What does not depend on the micro-batch. `shard`: 0, or the ZeRO stage. */
struct dl_transformer_mapping {
    struct dl_transformer_split split;
    int shard;       /* ZeRO stage whose states it holds */
    int asked_shard; /* stage of the plan: in a pipeline FSDP holds the states of stage 1 */
    double replicas; /* data ranks: dp x ep x sp */
    double parameters[DL_TRANSFORMER_STAGE_KINDS];        /* of a rank */
    double expert_parameters[DL_TRANSFORMER_STAGE_KINDS]; /* of those; as experts.parameters */
    double stage_layers;    /* body layers of the fullest stage, for a micro-batch */
    double most_parameters; /* of a rank of the fullest stage */
    double end_layers[2];   /* of the first and of the last stage, for a micro-batch */
    double all_layers;      /* of all stages together */
    double unit_elements[DL_TRANSFORMER_PARTS]; /* parameters of a rank; body: of one layer */
    /* gradients of the fullest stage: all-reduce or reduce-scatter */
    struct dl_collective_time reduce;
    struct dl_collective_time gather; /* its parameters: all-gather (shard 1 to 3) */
    struct dl_collective_time unit_gather, unit_reduce; /* of one body layer (shard 3) */
    struct dl_collective_time unit_across; /* of unit_reduce: between groups that share states */
    struct dl_collective_time tied; /* gradient of the embedding between first and last stage */
    double gradient_bytes, gather_bytes, unit_gradient_bytes, unit_gather_bytes;
    /* over which states are sharded: all replicas, or a group of them (hybrid sharding) */
    double shard_ranks;
    struct dl_expert_mapping experts;
    double updated_elements; /* parameters that a rank updates */
    double buckets;          /* pieces in which gradients go out */
    double update_s, update_by_limit_s[3], update_error_s;
    struct dl_host_update host;
    bool bound;            /* F-FW-IDEAL: cheapest way to reduce, hidden behind the next forward */
    double last_frac;      /* of the gradients: what the bound sends last at least */
    double straggler_frac; /* F-STRAGGLER */
    /* of compute while a collective runs; F-SLOWDOWN, F-TRANSFORMER-CONTENTION */
    double slowdown_frac;
    /* copies of one body layer's gathered parameters and of its gradients (shard 3) */
    double copy_out_s, copy_in_s;
    double accumulate_s; /* adding one body layer's gradients to those of earlier micro-batches */
    struct dl_input_time input;
    /* weights, gradients, optimizer, workspace, buffers, context; no activations */
    struct dl_memory states[DL_TRANSFORMER_STAGE_KINDS];
    bool extrapolated;
};
enum dl_code dl_transformer_mapping_make(const struct dl_transformer *tf,
                                         const struct dl_transformer_split *split, int shard,
                                         struct dl_transformer_mapping *out, struct dl_err *err);

/* One message between neighbouring stages of a micro-batch; zero for one stage.
 * F-TRANSFORMER-BOUNDARY */
enum dl_code dl_transformer_boundary(const struct dl_transformer *tf,
                                     const struct dl_transformer_mapping *mapping,
                                     const struct dl_transformer_micro_batch *micro_batch,
                                     struct dl_collective_time *out, struct dl_err *err);

struct dl_transformer_choice {
    double micro_batches; /* of a data rank */
    enum dl_schedule schedule;
    int64_t virtual_stages;
    enum dl_recompute recompute;
};

/* F-OFFLOAD: whether the node's host memory holds what the plan moves there; unknown: it does. */
bool dl_transformer_fits_host(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *mapping,
                              const struct dl_transformer_micro_batch *micro_batch,
                              const struct dl_transformer_choice *choice);

/* A rank's share of these elements. */
double dl_transformer_rank_elements(const struct dl_transformer_elements *all,
                                    const struct dl_transformer_split *split);
/* F-FROZEN: frozen parameters of a rank. */
double dl_transformer_frozen_elements(const struct dl_transformer *tf,
                                      const struct dl_transformer_mapping *mapping,
                                      enum dl_transformer_stage_kind kind);

struct dl_transformer_result {
    struct dl_evidence evidence;
    struct dl_iteration iteration;
    double tensor_s, data_s;           /* of comm_s: inside layers; gradients and parameters */
    double boundary_s, data_exposed_s; /* exposed: between stages; gradients and parameters */
    double sent_bytes;
    double slowdown_s; /* of kernels while a collective runs */
    struct dl_memory memory;
    bool fits;
    double part_count[DL_TRANSFORMER_PARTS]; /* of the slowest stage, for a micro-batch */
};
/* F-TRANSFORMER-ITERATION, F-TRANSFORMER-BUBBLE, F-TRANSFORMER-SHARD, F-TRANSFORMER-MEMORY. */
void dl_transformer_evaluate(const struct dl_transformer *tf,
                             const struct dl_transformer_mapping *mapping,
                             const struct dl_transformer_micro_batch *micro_batch,
                             const struct dl_collective_time *boundary,
                             const struct dl_transformer_choice *choice,
                             struct dl_transformer_result *out);

/* F-SEARCH-BOUND: the same with bounds of the pipeline's schedule and of what hides messages in
 * place of their runs: no longer iteration, the same memory, no path. */
void dl_transformer_least(const struct dl_transformer *tf,
                          const struct dl_transformer_mapping *mapping,
                          const struct dl_transformer_micro_batch *micro_batch,
                          const struct dl_collective_time *boundary,
                          const struct dl_transformer_choice *choice,
                          struct dl_transformer_result *out);

/* Memory of one stage of the pipeline (0: the first), the same that `memory` of the result has for
 * the fullest one. F-TRANSFORMER-MEMORY */
void dl_transformer_stage_memory(const struct dl_transformer *tf,
                                 const struct dl_transformer_mapping *mapping,
                                 const struct dl_transformer_micro_batch *micro_batch,
                                 const struct dl_transformer_choice *choice, int64_t stage,
                                 struct dl_memory *out);
/* What a layer keeps from its recomputation until its backward pass ends. */
double dl_transformer_recomputed_bytes(const struct dl_transformer_micro_batch *micro_batch,
                                       enum dl_recompute recompute);
/* Of the head's `head` bytes and of a layer that is recomputed, what a stage holds at most at once.
 * GPipe goes back only when all micro-batches are through, the others at once where the loss is;
 * pairs of passes recompute for one micro-batch while the head keeps another. */
double dl_transformer_ends_bytes(const struct dl_transformer_mapping *mapping,
                                 const struct dl_transformer_micro_batch *micro_batch,
                                 const struct dl_transformer_choice *choice, double head,
                                 double flight);
/* The largest micro-batch (samples) with which every stage fits, when all else stays; 0: none. NAN
 * where the capacity is unknown. */
double dl_transformer_largest_micro_batch(const struct dl_transformer *tf,
                                          const struct dl_transformer_mapping *mapping,
                                          const struct dl_transformer_micro_batch *micro_batch,
                                          const struct dl_transformer_choice *choice);

/* Of the stage (0: first) how many micro-batches' activations it holds at most.
 * F-TRANSFORMER-IN-FLIGHT */
double dl_transformer_stage_in_flight(const struct dl_transformer_mapping *mapping,
                                      const struct dl_transformer_choice *choice, int64_t stage);
/* Of the stage (0: first, 1: last) how many micro-batches' activations it holds at most.
 * F-TRANSFORMER-IN-FLIGHT */
double dl_transformer_in_flight(const struct dl_transformer_mapping *mapping,
                                const struct dl_transformer_choice *choice, int last);

/* Whether context ranks that exchange heads (DL_CONTEXT_ALL_TO_ALL) share them evenly. */
bool dl_transformer_takes_context(const struct dl_transformer *tf, int64_t tp, int64_t sp);
/* Everything that makes a plan impossible, with the nearest that is possible. */
enum dl_code dl_transformer_check(const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *plan,
                                  struct dl_err *err);

enum dl_code dl_transformer_predict(const struct dl_predict_request *request,
                                    struct dl_prediction *out, struct dl_err *err);

#endif
