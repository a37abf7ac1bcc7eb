/* framework.h - a framework in one distributed mode. This is its only registry entry: prediction,
 * Slurm scripts, plots and documents all read it.
 *
 * A framework is data (data/frameworks/NAME.json): constants of one version, each with a source,
 * and the name of a behaviour. A behaviour is code (behaviours/fw_*.c, gradient_sync.h): how that
 * mode synchronizes gradients. Keys are flat in the file; here they are grouped by the part of the
 * model that reads them.
 */
#ifndef DL_MODEL_FRAMEWORK_FRAMEWORK_H
#define DL_MODEL_FRAMEWORK_FRAMEWORK_H

#include "model/core/json.h"
#include "model/framework/host_counts.h"
#include "model/framework/transformer_policy.h"
#include "model/plan/plan.h"

/* Constants of one release where they differ from those of the release that it inherits from.
 * release.h says which runs it covers. */
struct dl_framework_release {
    const char *name, *source;
    const char *from;      /* a release of the file, or DL_RELEASE_BASE: the file's own members */
    const char **versions; /* each a framework_version or the beginning of one */
    int version_count;
    struct dl_map_entry *where; /* column of a run -> value; all must hold */
    int where_count;
    struct dl_map_entry *set;
    int set_count; /* member -> value, as --set takes them; the rest is inherited */
    /* name -> how this release builds that network; the rest is inherited */
    struct dl_map_entry *workloads;
    int workload_count;
};

#define DL_RELEASE_BASE "base"

/* Which server holds which variable (servers.h). */
enum dl_server_assignment { DL_SERVERS_ROUND_ROBIN, DL_SERVERS_LEAST_LOADED, DL_SERVERS_HASHED };

/* How gradients are synchronized: constants that several behaviours or the engine read. A behaviour
 * names those of them that it reads or requires (dl_framework_behaviour.keys, .required). */
struct dl_sync_policy {
    int library, cpu_library;            /* enum dl_library; cpu_library -1: this mode needs GPUs */
    const char *copy_pattern;            /* of DL_LIB_COPY: "star", "ring", ...; NULL: star */
    double gradient_bytes;               /* width of a synchronized gradient element in fp32 */
    double mixed_gradient_bytes;         /* the same in mixed precision */
    double collective_launch_s;          /* host time of one collective */
    double check_peer_s;                 /* and of its checks, for each other rank of the group */
    double gradient_launches_per_tensor; /* host launches per synchronized gradient tensor */
    double replica_s; /* host time per parameter tensor and device, of replicas built each step */
    bool overlaps_backward; /* synchronization may start before backward ends */
    bool each_micro_batch;  /* synchronizes after each micro-batch */
    bool asynchronous;      /* workers do not wait for each other */
    /* all-reduce: inside nodes, between nodes by the shards of each device, inside nodes again */
    bool hierarchical;
    /* cores of a CPU device that communicate instead of computing, where a plan has several
     * devices (MLSL's endpoints); of a Xeon Phi */
    double communication_cores, knl_communication_cores;
    double bucket_bytes;     /* size at which a gradient bucket is closed; NAN: no buckets */
    double pack_bytes;       /* size of one concatenated tensor; 0: all gradients in one */
    double big_key_elements; /* larger arrays are split over all servers; NAN: none */
    struct {                 /* messages of servers and of central weights */
        double message_s;    /* host time of one message or RPC */
        /* Messages of one process: its receiving thread copies and parses them, its senders
         * serialize them, a server's thread adds a worker's gradient to the sum. NAN: no limit. */
        double message_copy_bytes_per_s, send_bytes_per_s, sum_bytes_per_s;
        double flow_bytes_per_s; /* between one process and another; NAN: no limit */
        int server_assignment;   /* enum dl_server_assignment */
        bool servers_colocated;  /* parameter servers share the workers' nodes */
    } messages;
};

/* Constants that one behaviour alone reads: a struct in its file (DL_OWN in gradient_sync.h). */
enum { DL_OWN_BYTES = 64 };
struct dl_own_policy {
    union {
        double numbers[DL_OWN_BYTES / sizeof(double)];
        char bytes[DL_OWN_BYTES];
    };
    char other_key[8]; /* keys that only other behaviours read are loaded here */
};

/* Kernels that the framework runs, as discrete facts of a version: values of the enumerations of
 * workload/facts.h, -1: absent, then those of `kernels_from` or else 0, one fused kernel.
 * F-KERNEL-FACTS */
struct dl_framework_kernels {
    const char *kernels_from; /* framework that runs the same kernels; NULL: none */
    int layernorm, gelu, dropout, softmax, batchnorm, pooling, bias, loss, sums;
    int fusion, mixed_fusion; /* enum dl_fusion */
    int layout, mixed_layout; /* enum dl_layout */
    int mixed_policy;         /* enum dl_mixed_policy */
    /* how the optimizer updates parameters: a name, and its row; row NULL: the least traffic, in
     * update_launches_per_tensor kernels */
    const char *optimizer_kernels;
    const struct dl_optimizer_row *optimizer;
    int weight_copies;   /* enum dl_tristate */
    int aligned_gemm;    /* likewise: matrix units only where the sides are multiples of 8 */
    int weight_decay;    /* enum dl_weight_decay */
    int attention;       /* enum dl_attention_kernel: unless the plan says otherwise */
    int mixed_batchnorm; /* as batchnorm */
    int compiler;        /* enum dl_compiler that a plan may ask for; OPEN, NONE: no such */
    int compiled_fusion; /* enum dl_fusion under that compiler */
    double head_copies, score_kernels, norm_small_kernels; /* NAN: as above */
    /* fused softmax: score matrices of a rank in multiples of this, at most so many columns; 0: any
     */
    double softmax_matrices, softmax_keys;
    double update_launches_per_tensor; /* optimizer kernels per parameter tensor */
};

enum dl_tristate { DL_NO, DL_YES }; /* a flag that may be absent */

enum dl_weight_decay {
    DL_DECAY_OPTIMIZER, /* part of the update, or none */
    DL_DECAY_LOSS,      /* a term of the loss for each tensor: its norm and gradient are kernels */
};

/* Kernels per parameter tensor and bytes of memory traffic per parameter. */
struct dl_optimizer_cost {
    double kernels, bytes;
};
/* How a framework's optimizers update a parameter: a row of data/optimizers.json. */
struct dl_optimizer_row {
    const char *name, *summary, *source;
    struct dl_optimizer_cost update[DL_OPTIMIZERS];
    /* sum of gradients with those of earlier micro-batches; in mixed precision; NAN: a read of
     * both, a write of one */
    struct dl_optimizer_cost accumulation, mixed_accumulation;
};
struct dl_optimizer_table {
    struct dl_optimizer_row *rows;
    int row_count;
};
extern const struct dl_schema dl_optimizer_table_schema;

struct dl_framework_host {
    double dispatch_s;    /* to issue one kernel (Python, executor) */
    double iteration_s;   /* fixed cost of an iteration (session run, optimizer loop) */
    bool checks_overflow; /* mixed precision: waits for all gradients before it issues the update */
    const char *host_counts; /* release of host_counts.json; NULL: launches alone (F-HOST-COUNT) */
    const struct dl_host_release *counts; /* its row */
    const struct dl_host_table *table;
    bool single_process; /* one process issues the kernels of all devices of a node */
    bool single_node;    /* one process or one host only */
};

/* How a batch reaches the devices. F-INPUT. */
struct dl_framework_input {
    double prefetch_batches; /* 0: input does not overlap with the step */
    double feed_bytes_per_s; /* the framework's own copy of a batch before each step; NAN: none */
    bool feeds_pageable;     /* host-to-device copies from pageable memory */
    bool feeds_one_array;    /* the batches of a node's devices are slices of one array */
    bool feeds_whole_batch;  /* to the first device, which passes slices on */
    bool feeds_each_device;  /* the whole batch to every device, which keeps its slice */
    /* the step begins with the copy to the device; only reading and decoding are ahead */
    bool copies_in_step;
    bool decodes_on_device; /* samples are decoded on the devices: DALI */
    double crop_skip_frac;  /* of an image of which a part is used: what is not decoded */
};

/* Device memory of the framework itself. */
struct dl_framework_memory {
    double fragmentation_frac;   /* lost to the allocator; NAN: that of the allocator */
    double conv_workspace_bytes; /* a convolution's limit; NAN: none */
    double loss_logit_bytes; /* held at the peak of the loss for a 16-bit logit; 0: by kernels */
    int allocator;           /* row of dl_memory_managers; -1: that of kernels_from, or none */
};

/* How filter parallelism sums the gradients of activations. */
enum dl_filter_backward { DL_FILTER_ALL_REDUCE, DL_FILTER_REDUCE_SCATTER, DL_FILTER_ALL_TO_ALL };

/* Replicas that are split within layers (model/engine/split_replica.h): how activations move
 * between the devices of one replica. Libraries: enum dl_library, -1: absent. */
struct dl_activation_policy {
    int activation_library;   /* absent: the framework's own */
    int reduce_library;       /* of collectives that sum; absent: activation_library */
    int filter_backward;      /* enum dl_filter_backward */
    double activation_s;      /* host time of one blocking collective */
    double activation_peer_s; /* the same, per device of the group */
    double halo_message_s;    /* host time of one halo message */
    double spatial_dims;      /* maximum number of split dimensions; 0: all */
    bool activation_direct;   /* activation_library moves device memory itself */
    bool halo_overlaps;       /* inner positions are computed during the halo transfer */
    /* passes over a gathered activation on the device, to join its pieces and to sum them */
    double activation_copies;
};

/* What a release has (capabilities.h). An empty list restricts nothing. */
struct dl_framework_capabilities {
    double *zero_stages; /* of ZeRO, 0 to 3 */
    int zero_stage_count;
    const char **schedules; /* of pipelines, as --schedule */
    int schedule_count;
    const char **precisions; /* as --precision */
    int precision_count;
    const char **settings; /* of a plan: OPTION, or OPTION=VALUE (settings.h) */
    int setting_count;
    const char *lacking;     /* of the plan: "has no --OPTION VALUE"; NULL: nothing (settings.h) */
    int context_parallel;    /* enum dl_tristate */
    bool context_shards;     /* context ranks share states: only with sharded states */
    bool tensor_sequence;    /* tensor parallelism is sequence parallel, too */
    bool pipeline_outermost; /* pipeline ranks are the outermost */
    bool pipeline_zero1;     /* pipelines run with ZeRO stages 0 and 1 alone */
};

/* How a Slurm job starts the framework's benchmark program. */
enum dl_launch_tasks {
    DL_TASKS_DEVICE, /* one task per device */
    DL_TASKS_NODE,   /* one task per node, which drives all its devices */
    DL_TASKS_ONE,    /* one task on one node */
};
enum dl_launch_helpers {
    DL_HELPERS_NONE,
    DL_HELPERS_PS,      /* TensorFlow: one parameter server per node, next to the workers */
    DL_HELPERS_KVSTORE, /* MXNet: one scheduler, one server per node */
};
struct dl_framework_launch {
    const char *program;               /* file of slurm/frameworks */
    const char *mode;                  /* its --mode */
    int tasks;                         /* enum dl_launch_tasks */
    int helpers;                       /* enum dl_launch_helpers */
    bool mpi;                          /* starts with srun --mpi */
    const char *strategy;              /* of the collected runs; NULL: the framework's own */
    const char *backend, *cpu_backend; /* of the collected runs; NULL: the library */
    const char **environment;          /* "NAME=VALUE" */
    int environment_count;
};

/* Commands that use the framework when the user names none. */
enum dl_framework_default {
    DL_DEFAULT_DATA_PARALLEL,      /* explain, plot timeline */
    DL_DEFAULT_TRANSFORMER,        /* search of plans for a stack of transformer layers */
    DL_DEFAULT_TRANSFORMER_8_BITS, /* the same on devices with 8-bit matrix units */
};

/* What keeps a framework out of recommendations. */
enum dl_framework_status {
    DL_MAINTAINED,
    DL_RETIRED,      /* no further releases */
    DL_IN_HOUSE,     /* described in a paper; nobody else has it */
    DL_LOSSY,        /* gradients are quantized: other results than plain training */
    DL_ASYNCHRONOUS, /* workers do not wait for each other: a sample is worth less */
};
extern const char *const dl_framework_status_names[]; /* NULL at the end */

/* Networks that a framework is made for. */
enum dl_framework_trains { DL_TRAINS_ANY, DL_TRAINS_TRANSFORMERS };

struct dl_framework_behaviour; /* gradient_sync.h */
struct dl_interval_model;      /* interval.h */
struct dl_posterior;

/* What is known of the errors of predictions. */
struct dl_framework_errors {
    /* spread of log(predicted / measured) beyond kernels and collectives */
    double residual_sigma_log;
    const struct dl_interval_model *intervals; /* errors of published runs; NULL: unknown */
    const struct dl_posterior *measured;       /* what the user's runs say; NULL: none */
    const char *measured_remark;               /* warning about these runs; NULL: none */
};

/* GPU architecture -> release */
struct dl_release_map {
    struct dl_map_entry *entries;
    int count;
};

struct dl_framework_loaded {
    const char *as;       /* name or path that it was loaded by */
    bool release_assumed; /* of a measured run that does not say which release it used */
};

struct dl_framework {
    const char *name, *summary, *source, *release;
    struct dl_framework_loaded loaded;
    const char **versions; /* further versions that the file's own constants cover */
    int version_count;
    const char *behaviour_name; /* as the file has it, perhaps an older name */
    /* its row of dl_framework_behaviours; set by dl_framework_load */
    const struct dl_framework_behaviour *behaviour;
    struct dl_sync_policy sync;
    struct dl_own_policy own;
    struct dl_framework_kernels kernels;
    struct dl_framework_host host;
    struct dl_framework_input input;
    struct dl_framework_memory memory;
    struct dl_activation_policy activations;
    struct dl_transformer_policy transformer;
    struct dl_framework_capabilities capabilities;
    /* default row of dl_strategies for this mode; NULL: data */
    const char *strategy;
    int status;             /* enum dl_framework_status */
    const char *checkpoint; /* row of dl_checkpoint_formats that its programs write; NULL: none */
    int trains;             /* enum dl_framework_trains */
    /* newest GPUs that its last release runs on; NULL: it is still built for new ones */
    const char *last_architecture;
    const char *first_architecture; /* oldest GPUs of NVIDIA that it runs on; NULL: not stated */
    int recompute;                  /* default enum dl_recompute */
    bool splits_layers;             /* tensor, pipeline, sequence and expert parallelism */
    bool shards;                    /* ZeRO stages */
    int default_for;                /* enum dl_framework_default; -1: nothing */
    struct dl_framework_errors errors;
    bool has_launch; /* false: Slurm cannot run it */
    struct dl_framework_launch launch;
    /* as in a release, for networks without an entry there */
    struct dl_map_entry *workloads;
    int workload_count;
    const struct dl_framework *shared; /* whose kernels it runs, in their release; NULL: none */
    struct dl_framework_release *releases;
    int release_count;
    /* GPU architecture -> release that a plan without --release takes */
    struct dl_release_map device_releases;
    /* GPU architecture -> release of measured runs that name none, or none that is described */
    struct dl_release_map run_releases;
    struct dl_map_entry *sources;
    int source_count;
};

/* Keys that several behaviours or the engine read. */
extern const struct dl_schema dl_framework_schema;
/* These, the behaviour's own ones, and those that other behaviours own, which are loaded into
 * `own.other_key`: a document keeps them when --set changes its behaviour. NULL: all keys of all
 * behaviours. */
const struct dl_schema *dl_framework_schema_of(const struct dl_framework_behaviour *behaviour,
                                               struct dl_arena *arena);
/* Loads a framework with the keys of its behaviour, and sets `behaviour`. */
enum dl_code dl_framework_load(const struct dl_json *doc, struct dl_arena *arena,
                               struct dl_framework *out, struct dl_err *err);
/* A number or flag by its key; NAN: unknown, or no key of this framework's behaviour. */
double dl_framework_number(const struct dl_framework *framework, const char *key);
extern const struct dl_schema dl_framework_launch_schema;  /* of its member launch */
extern const struct dl_schema dl_framework_release_schema; /* of its member releases */

/* Checks the members of a framework that was loaded from `doc` against each other and against what
 * its behaviour requires. DL_ERR_INPUT names file, position and key. */
enum dl_code dl_framework_resolve(struct dl_framework *framework, const struct dl_json *doc,
                                  struct dl_err *err);

/* Whether it trains in 8 bits and less: its file says how it casts; `ideal` does. */
bool dl_framework_takes_8_bits(const struct dl_framework *framework);
/* Whether it is a bound (`ideal`) instead of a program. */
bool dl_framework_is_bound(const struct dl_framework *framework);
/* The first of `count` frameworks that is the default for `what`; NULL: none. */
const struct dl_framework *dl_framework_default(const struct dl_framework *const *list, int count,
                                                enum dl_framework_default what);
/* The first of `count` frameworks that is a bound; NULL: none. */
const struct dl_framework *dl_framework_bound(const struct dl_framework *const *list, int count);

/* The release by that name; NULL: none. */
const struct dl_framework_release *dl_framework_release_find(const struct dl_framework *framework,
                                                             const char *name);
/* The release called so; without a name (NULL), that of the GPU architecture (NULL: none). NULL:
 * the file's own. */
const struct dl_framework_release *dl_framework_release_for(const struct dl_framework *framework,
                                                            const char *name,
                                                            const char *architecture);
/* The version that a measured run on that GPU architecture (NULL: not known) is taken to have when
 * it names none, or none that is described; NULL: none, so the file's own constants hold. */
const char *dl_framework_usual_version(const struct dl_framework *framework,
                                       const char *architecture);
/* Sets the release's constants, inherited ones first, in the framework's document, which must then
 * be loaded again. */
enum dl_code dl_framework_release_set(const struct dl_framework *framework,
                                      const struct dl_framework_release *release,
                                      struct dl_json *doc, struct dl_arena *arena,
                                      struct dl_err *err);
/* How a framework in its release builds a network: the name, or the variant that its file, else
 * that of the framework whose kernels it runs, lists for it. */
const char *dl_framework_workload(const struct dl_framework *framework, const char *name);

/* Fills the absent kernel facts and allocator of `framework` from one that runs the same kernels,
 * which must outlive it. F-KERNEL-FACTS */
void dl_framework_share_kernels(struct dl_framework *framework, const struct dl_framework *from);

#endif
