/* tf.h - transformers split by tensor, sequence (context), pipeline, expert and data parallelism, with sharded states.
 *
 * A network is a stack of equal layers (the body) between an embedding (before) and a head (after); all three are found in
 * the workload's own layers, and the kernels of each layer are those of its kind at the split shape. The work is done once
 * for each split and micro-batch (a cell) and once for each arrangement of ranks (a layout); a plan then costs additions.
 *
 *   dl_tf_prepare   which layers are what                                          tf_split.c
 *   dl_tf_cell      kernels, collectives and kept bytes of one micro-batch          tf_cell.c
 *   dl_tf_layout    groups of ranks, what data parallelism sends, update, states     tf_layout.c
 *   dl_tf_evaluate  pipeline, overlap, memory: the prediction of one plan            tf_time.c
 *
 * Pure; a struct dl_tf is constant once it is prepared and may be shared by threads.
 */
#ifndef DL_MODEL_TF_H
#define DL_MODEL_TF_H

#include "model/collective.h"
#include "model/predict.h"

enum dl_tf_part { DL_TF_BEFORE, DL_TF_BODY, DL_TF_AFTER, DL_TF_PARTS };
enum { DL_TF_RECOMPUTES = 3 }; /* enum dl_recompute */

/* How a tensor of the network is split over the ranks of tensor parallelism. */
enum dl_tf_state {
    DL_TF_WHOLE,  /* every rank has all channels; with sequence parallelism its share of the tokens */
    DL_TF_SPLIT,  /* every rank has its share of the channels */
};

/* What tensor parallelism makes of a layer. */
enum dl_tf_role { DL_TF_SAME, DL_TF_COLUMN, DL_TF_ROW, DL_TF_VOCABULARY, DL_TF_HEADS, DL_TF_LOSS, DL_TF_EXPERTS };

struct dl_tf_layer {
    int index;                  /* in the workload */
    enum dl_tf_part part;
    enum dl_tf_role role;
    enum dl_tf_state in, out;
    bool gathers;               /* column: the first reader of its input, which exchanges for all readers */
};

struct dl_tf {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_library library;
    double compute_scale;       /* 0: 1 */
    struct dl_tf_layer *layers; int layer_count; /* before, one of the body, the last of the body, after */
    int body_count;             /* workload layers in one body layer */
    double stack, tokens, hidden; /* body layers; tokens of a sample; channels between layers */
    double routed;              /* rows of experts for each token: k x capacity factor; 0 without experts */
    double heads, kv_heads, experts; /* what can be split; experts: 0 when there are none */
    double split_elements[DL_TF_PARTS], whole_elements[DL_TF_PARTS], expert_elements[DL_TF_PARTS]; /* parameters; body: of one layer */
    double tensor_count[DL_TF_PARTS]; /* parameter tensors */
    double tied_elements;       /* of the embedding that the head uses too: a copy on the last stage of a pipeline */
    bool by_tokens;             /* the input is a sequence: it can be split along it */
    bool plain;                 /* no stack: `stack` equal units of an arbitrary network, for sharded data parallelism alone */
    bool reads_storage;
};

/* DL_ERR_USAGE when the workload is no single stack of equal transformer layers and the plan splits over more than data. The plan gives precision, optimizer,
 * library and compute_scale. */
enum dl_code dl_tf_prepare(const struct dl_system *system, const struct dl_workload *workload,
                           const struct dl_framework *framework, const struct dl_plan *plan, struct dl_arena *arena,
                           struct dl_tf *out, struct dl_err *err);

/* Sizes of the groups; tp x sp x ep x pp x dp devices, numbered with tp fastest, then sp, and then as `mapping` says. */
struct dl_tf_split {
    int64_t tp, sp, ep, pp, dp, nodes, devices_per_node;
    enum dl_mapping mapping;
    bool sequence_parallel;
};

/* The layer with its shapes and tensors at the split. */
struct dl_layer dl_tf_layer_at(const struct dl_tf *tf, const struct dl_tf_layer *layer, const struct dl_tf_split *split);
/* Bytes kept for backward by that layer for one sample; `recompute` none or selective. F-TF-ACTIVATIONS */
double dl_tf_kept_bytes(const struct dl_tf *tf, const struct dl_tf_layer *layer, const struct dl_tf_split *split,
                        enum dl_recompute recompute);

/* What softmax costs besides, where a fused kernel does not take the scores of `samples`; the number of kernels, 0 or all.
 * F-TF-SOFTMAX */
enum { DL_TF_SOFTMAX_KERNELS = 4 };
int dl_tf_softmax_kernels(const struct dl_framework *framework, enum dl_precision precision, const struct dl_layer *layer,
                          enum dl_pass pass, double samples, struct dl_kernel out[DL_TF_SOFTMAX_KERNELS]);

/* Where a group of ranks lies: every `stride`-th device from one on. */
struct dl_tf_group { int64_t ranks, stride; };
/* Of an axis (DL_AXIS_* of strategy.h); data: dp x ep x sp ranks that hold the same parameters (experts: dp x sp). */
struct dl_tf_group dl_tf_group_of(const struct dl_tf_split *split, unsigned axis);

/* A collective of one group while all like groups do the same. */
enum dl_code dl_tf_collective(const struct dl_tf *tf, const struct dl_tf_split *split, struct dl_tf_group group,
                              enum dl_collective_op op, double bytes, struct dl_collective_time *out, struct dl_err *err);

/* One pass of one part for one micro-batch. */
struct dl_tf_pass {
    double device_s, by_limit_s[3];   /* kernels, split by enum dl_limit */
    double launches, error_s, outside_s, flop, moved_bytes; /* error_s: sum time x sigma; outside_s: beyond the samples */
    double comm_s, comm_latency_s, comm_inter_s; /* collectives that nothing hides; parts of comm_s */
    double comm_error_s, comm_bytes, collective_count; /* bytes: sent by a rank */
    double step_s;                    /* all of it: device, gaps and communication, or the host when that takes longer */
};

struct dl_tf_cell {
    struct dl_tf_split split;         /* tp, sp, ep and sequence_parallel count */
    double micro_samples;
    struct dl_tf_pass forward[DL_TF_PARTS], backward[DL_TF_PARTS][DL_TF_RECOMPUTES]; /* body: of one layer */
    double kept_bytes[DL_TF_PARTS][DL_TF_RECOMPUTES];
    double border_bytes;              /* between stages, of one rank */
    struct dl_collective_time reduce, gather, scatter; /* of tensor parallelism: all-reduce, or all-gather and reduce-scatter */
    double exchange_bytes;            /* their size */
    struct dl_collective_time route;  /* of expert parallelism: tokens to their experts, and back */
    double route_bytes;
    bool extrapolated;                /* a collective outside what was measured */
};
enum dl_code dl_tf_cell_make(const struct dl_tf *tf, const struct dl_tf_split *split, double micro_samples,
                             struct dl_tf_cell *out, struct dl_err *err);

/* What does not depend on the micro-batch. `shard`: 0, or the ZeRO stage. */
struct dl_tf_layout {
    struct dl_tf_split split;
    int shard;
    double replicas;                  /* data ranks: dp x ep x sp */
    double parameters[2];             /* of a rank of the first and of the last stage */
    double stage_layers;              /* body layers of a stage */
    struct dl_collective_time reduce; /* gradients of the fullest stage: all-reduce or reduce-scatter */
    struct dl_collective_time gather; /* its parameters: all-gather (shard 1 to 3) */
    struct dl_collective_time unit_gather, unit_reduce; /* of one body layer (shard 3) */
    struct dl_collective_time tied;   /* gradient of the embedding between first and last stage */
    double gradient_bytes, gather_bytes;
    double expert_parameters, expert_replicas; /* of a rank, held by so many; 0: no expert ranks (then they count as all others) */
    struct dl_collective_time expert_reduce, expert_gather; /* the experts' part of reduce and gather */
    double expert_gradient_bytes, expert_gather_bytes; /* of gradient_bytes, gather_bytes */
    double updated_elements;          /* parameters that a rank updates */
    double buckets;                   /* pieces in which gradients go out */
    double update_s, update_by_limit_s[3], update_error_s;
    double straggle_frac;             /* waiting for the slowest of all devices / compute */
    struct dl_memory states[2];       /* weights, gradients, optimizer, workspace, buffers, context; no activations */
    bool extrapolated;
};
enum dl_code dl_tf_layout_make(const struct dl_tf *tf, const struct dl_tf_split *split, int shard, struct dl_tf_layout *out,
                               struct dl_err *err);

/* One message between neighbouring stages of a micro-batch; zero for one stage. F-TF-BORDER */
enum dl_code dl_tf_border(const struct dl_tf *tf, const struct dl_tf_layout *layout, const struct dl_tf_cell *cell,
                          struct dl_collective_time *out, struct dl_err *err);

struct dl_tf_choice {
    double micro_batches;             /* of a data rank */
    enum dl_schedule schedule;
    int64_t virtual_stages;
    enum dl_recompute recompute;
};

struct dl_tf_result {
    double iteration_s, forward_s, backward_s, update_s, compute_s, comm_s, exposed_comm_s, input_s, exposed_input_s, bubble_s,
        overhead_s;
    double tensor_s, border_s, data_s;    /* parts of comm_s: inside layers, between stages, gradients and parameters */
    double data_exposed_s;
    double comm_latency_s, comm_inter_s, comm_error_s; /* of the exposed communication */
    double by_limit_s[3], error_s, outside_s, sent_bytes;
    struct dl_memory memory;
    bool fits;
    bool before, after;                   /* whether the slowest stage has the embedding, the head */
};
/* F-TF-ITERATION, F-TF-BUBBLE, F-TF-SHARD, F-TF-MEMORY. No allocation, no search: sums alone. */
void dl_tf_evaluate(const struct dl_tf *tf, const struct dl_tf_layout *layout, const struct dl_tf_cell *cell,
                    const struct dl_collective_time *border, const struct dl_tf_choice *choice, struct dl_tf_result *out);

/* Of the stage (0: first, 1: last) how many micro-batches' activations it holds at most. F-TF-IN-FLIGHT */
double dl_tf_in_flight(const struct dl_tf_layout *layout, const struct dl_tf_choice *choice, int last);

/* Everything that makes a plan impossible, with the nearest that is possible. */
enum dl_code dl_tf_check(const struct dl_system *system, const struct dl_workload *workload, const struct dl_framework *framework,
                         const struct dl_plan *plan, struct dl_err *err);

struct dl_strategy_request;
enum dl_code dl_tf_predict(const struct dl_strategy_request *request, struct dl_prediction *out, struct dl_err *err);

#endif
