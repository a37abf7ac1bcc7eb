/* plan.h - how the work is split and run: strategy, devices, batch, precision, optimizer, input.
 */
#ifndef DL_MODEL_PLAN_PLAN_H
#define DL_MODEL_PLAN_PLAN_H

#include "model/machine/kernel.h"
#include "model/network/path.h"
#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/plan/pipeline_schedule.h"

enum dl_optimizer { DL_SGD, DL_MOMENTUM, DL_ADAM, DL_LAMB, DL_OPTIMIZERS };
extern const char *const dl_optimizer_names[]; /* "sgd","momentum","adam","lamb", NULL */
enum dl_recompute { DL_RECOMPUTE_NONE, DL_RECOMPUTE_SELECTIVE, DL_RECOMPUTE_FULL };
extern const char *const dl_recompute_names[]; /* "none","selective","full", NULL */

/* Modules of a layer that selective recomputation may repeat: bits 1 << index. */
enum dl_module {
    DL_MODULE_ATTENTION,
    DL_MODULE_MLP,
    DL_MODULE_NORM,
    DL_MODULE_MOE,
    DL_MODULE_LATENT, /* from the latents of attention to its queries, keys and values */
    DL_MODULES
};
extern const char *const dl_module_names[]; /* "attention","mlp","norm","moe", NULL */

enum dl_assume { DL_ASSUME_NOTHING, DL_ASSUME_PARADL };
extern const char *const dl_assume_names[]; /* "nothing","paradl", NULL */

struct dl_plan;
/* Ranks that share out the experts: ep, and those among the tensor and sequence ranks. */
int64_t dl_plan_expert_ranks(const struct dl_plan *plan);

/* Rank mapping: the ranks next to those of tensor and sequence parallelism are the data-parallel
 * ones (then the pipeline's), or the pipeline's. */
enum dl_mapping { DL_MAP_DATA_INSIDE, DL_MAP_PIPELINE_INSIDE };
extern const char *const dl_mapping_names[]; /* "data-inside","pipeline-inside", NULL */

/* Compiler of the framework's graph. OPEN: not given, which is the framework's own way. */
enum dl_compiler { DL_COMPILER_OPEN, DL_COMPILER_NONE, DL_COMPILER_XLA, DL_COMPILER_INDUCTOR };
extern const char *const dl_compiler_names[]; /* "open","none","xla","inductor", NULL */

/* What 16-bit and narrower arithmetic keeps beside the weights that it computes with: an fp32 copy
 * that the optimizer updates, or nothing. */
enum dl_master_weights { DL_MASTERS_FP32, DL_MASTERS_NONE };
extern const char *const dl_master_weights_names[]; /* "fp32","none", NULL */

struct dl_strategy; /* strategy.h */

struct dl_layer_times;
struct dl_system;

struct dl_plan_experts {
    int64_t tp; /* tensor ranks that split each expert: 1 or, as 0, those of the layers */
    int64_t ep_within_tp_cp; /* derived: expert ranks among the tensor and sequence ranks, which ep
                                does not count; 0: experts are split like other layers */
    double imbalance_ratio;  /* tokens of the fullest rank of experts / mean, from 1 to the ranks of
                               experts; 0: the framework's, of a trained router */
};

/* What a plan may decide instead of the framework's release or the system (framework/settings.h):
 * indices of the names below; 0: it does not. */
struct dl_plan_settings {
    int overlap_grad_reduce, overlap_param_gather, tp_comm_overlap; /* enum dl_switch */
    int gradient_compression, allreduce, moe_dispatch, cp_comm;
    int cuda_graphs;    /* enum dl_cuda_graphs */
    unsigned fp8_store; /* bits of enum dl_fp8_store */
    bool moe_overlap;   /* experts' exchanges behind kernels of another micro-batch */
    struct dl_path_choice between_nodes;
};
extern const char *const dl_switch_names[];               /* "open","0","1", NULL */
extern const char *const dl_gradient_compression_names[]; /* "open","none","fp16","bf16", NULL */
extern const char *const dl_allreduce_names[];            /* "auto","flat","hierarchical", NULL */
/* "open","alltoall","allgather","deepep","hybridep", NULL */
extern const char *const dl_moe_dispatch_names[];
extern const char *const dl_cp_comm_names[]; /* "open","ring","allgather","alltoall", NULL */
/* Activations that FP8 training stores in FP8 for backward in addition to GEMM operands: queries,
 * keys, values and output of attention; the input of the MLP's activation. */
enum dl_fp8_store { DL_FP8_STORE_ATTENTION, DL_FP8_STORE_MLP };
extern const char *const dl_fp8_store_names[]; /* "attention","mlp", NULL */
/* What one launch of the host replays. */
enum dl_cuda_graphs { DL_GRAPHS_OPEN, DL_GRAPHS_NONE, DL_GRAPHS_LAYER, DL_GRAPHS_ITERATION };
extern const char *const dl_cuda_graphs_names[]; /* "open","none","layer","iteration", NULL */
extern const char *const dl_transport_names[];   /* "open","rdma","tcp", NULL */

/* Layers that full recomputation repeats, modules that selective recomputation does. */
struct dl_plan_recomputed {
    int64_t layers;   /* of each stage; 0: all */
    int64_t every;    /* one of so many layers; 0: all */
    unsigned modules; /* bits of enum dl_module; 0: as the framework's release has it */
};

/* What a sequence holds, and what is learned of it. */
struct dl_plan_tokens {
    int64_t mtp_layers; /* F-MTP: layers that predict further tokens; 0: those of the workload */
    double packed_length_tokens; /* F-PACKED: mean length of a document; 0: one fills a sequence */
};

/* Low-rank adapters of frozen linear layers. F-LORA */
struct dl_plan_lora {
    int64_t rank;     /* 0: all weights are trained */
    unsigned targets; /* bits of enum dl_lora_target; 0: qkv and proj */
};

/* What is kept in host memory. F-OFFLOAD */
enum dl_offload { DL_OFFLOAD_OPTIMIZER, DL_OFFLOAD_ACTIVATIONS, DL_OFFLOAD_WEIGHTS };
extern const char *const dl_offload_names[]; /* "optimizer","activations","weights", NULL */
struct dl_plan_offload {
    unsigned what; /* bits of enum dl_offload; 0: nothing */
    double frac;   /* of it; 0: all */
};

struct dl_plan_servers {
    int64_t count; /* 0: one per node, next to its workers */
    /* They run on nodes of this system, apart from the workers; NULL: as the framework says. */
    const struct dl_system *nodes;
    const char *variable_placement; /* tensorflow-ps: "cpu", "gpu"; NULL: the default */
};

struct dl_plan_input {
    bool synthetic;
    double sample_bytes, dataset_samples; /* of --dataset; 0: the workload's */
    double decode_s_per_sample;           /* on one core; 0: not counted */
    bool cropped;                         /* a random part of each image is used */
    double decode_workers;                /* per device; 0: all cores of the node */
    bool first_epoch;                     /* the page cache is empty */
    /* Nodes of another system read and decode all samples and send them; NULL: those that train. */
    const struct dl_system *nodes;
    int64_t node_count;
};

/* What measured runs say of kernels. */
struct dl_plan_measured {
    /* by a framework's profiler, in place of the kernel-time models; NULL: none */
    const struct dl_layer_times *layer_times;
    /* factor on kernels and their issue by the host, with which `compare --anchor` corrects by a
     * measured run; 0: 1 */
    double compute_scale;
};

struct dl_plan {
    const struct dl_strategy *strategy;
    int64_t nodes, devices_per_node; /* in use */
    int64_t dp, tp, pp, sp, ep;      /* their product is nodes * devices_per_node */
    struct dl_plan_experts experts;
    double batch_per_device_samples, global_batch_samples;
    double micro_batch_samples; /* 0: no micro-batches */
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_master_weights master_weights;
    enum dl_recompute recompute;
    bool recompute_open; /* not given: the framework's default */
    struct dl_plan_recomputed recomputed;
    struct dl_plan_lora lora;
    const char *frozen_layers; /* F-FROZEN: as dl_workload_frozen() reads it; NULL: none */
    struct dl_plan_offload offload;
    struct dl_plan_tokens tokens;
    bool blocking_launches; /* the host waits for each kernel: CUDA_LAUNCH_BLOCKING=1 */
    bool sequence_parallel; /* tensor parallelism splits layers outside attention and MLP along the
                               sequence */
    enum dl_schedule schedule; /* of a pipeline's micro-batches */
    int64_t virtual_stages;    /* virtual pipeline stages per device; 0: dl_schedule_parts() */
    const char *stage_layers;  /* as dl_plan_stage_layers() reads it; NULL: F-TRANSFORMER-STAGES */
    enum dl_assume assume;     /* simplifications of another model, for comparison with it */
    const char *library;       /* collective library; NULL: the framework's */
    enum dl_attention_kernel attention; /* OPEN: the framework's, else the layer's */
    enum dl_compiler compiler;
    struct dl_plan_settings settings;
    struct dl_plan_servers parameter_servers;
    struct dl_plan_input input;
    int64_t replica_devices; /* derived: devices that share the samples of one replica; 0: 1 */

    int64_t backup_workers; /* nodes that a synchronous step does not wait for, the slowest */
    struct dl_plan_measured measured;
    int64_t shard;       /* ZeRO stage next to tensor and pipeline parallelism, 0: none; the
                             strategies zero1..3 imply it */
    int64_t shard_group; /* HSDP: neighbouring data ranks that shard the states; 0: all */
    enum dl_mapping mapping;
};

/* Reads "15,6x16,15": the layers of 8 stages, into layers[room] where it is not NULL. Returns the
 * number of stages; 0: no such list. */
int dl_plan_stage_layers(const char *text, double *layers, int room);

/* Greatest common divisor of a and b, at least 0; of 0 and a: a. */
int64_t dl_common_divisor(int64_t a, int64_t b);

/* The network as the plan trains it: its documents (F-PACKED), what is frozen (F-FROZEN, F-LORA).
 * DL_ERR_USAGE: the network has no such parts. */
struct dl_workload;
enum dl_code dl_plan_network(const struct dl_plan *plan, struct dl_arena *arena,
                             const struct dl_workload **workload, struct dl_err *err);

/* Share of a stage's `stage_layers` layers that full recomputation repeats. F-RECOMPUTE-SOME */
double dl_plan_recomputed_frac(const struct dl_plan *plan, double stage_layers);
/* "none", "selective", "full", or the modules: "attention,mlp". */
const char *dl_plan_recompute_text(const struct dl_plan *plan, struct dl_arena *arena);

/* Graphs of layers and overlapped experts do not go with full recomputation. */
static inline bool dl_plan_excludes_full(const struct dl_plan *plan) {
    return plan->settings.moe_overlap || plan->settings.cuda_graphs == DL_GRAPHS_LAYER;
}

/* Which members of a plan were given, where 0 is a value of its own. */
struct dl_plan_given {
    bool precision, optimizer, recompute, sequence_parallel, zero, mapping, schedule;
};

/* Factor on local work that the plan asks for; 1 when it asks for none. */
static inline double dl_plan_compute_scale(const struct dl_plan *plan) {
    return plan->measured.compute_scale > 0 ? plan->measured.compute_scale : 1;
}

#endif
