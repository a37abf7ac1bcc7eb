/* framework.h - a framework in one distributed mode: its behaviour (code, model/fw_*.c) and its
 * constants (data, data/frameworks/NAME.json, by version, each with a source).
 */
#ifndef DL_MODEL_FRAMEWORK_FRAMEWORK_H
#define DL_MODEL_FRAMEWORK_FRAMEWORK_H

#include "model/base/json.h"

/* Constants of one release where they differ from the file's. release.h says which runs it covers.
 */
struct dl_framework_release {
    const char *name, *source;
    const char **versions; /* each a framework_version or the beginning of one */
    int version_count;
    struct dl_map_entry *where; /* column of a run -> value; all must hold */
    int where_count;
    struct dl_map_entry *set;
    int set_count; /* member -> value, as --set takes them */
    /* name -> how this release builds that network */
    struct dl_map_entry *workloads;
    int workload_count;
};

struct dl_framework {
    const char *name, *summary, *source, *release;
    const char **versions; /* further ones that the file's own constants cover */
    int version_count;
    const char *behaviour; /* row of dl_framework_behaviours */
    /* collective library: "nccl", "mpi", "gloo", "grpc", "ps-lite", "copy", "mlsl" */
    const char *library;
    const char *copy_pattern; /* of library "copy": "star", "ring", ...; NULL: star */
    /* gradient exchange */
    double bucket_bytes, first_bucket_bytes; /* DDP, FSDP */
    double fusion_bytes, cycle_s;            /* Horovod */
    double pack_bytes;                       /* TF; 0: one pack */
    /* MXNet: keys of at least this many elements are split over servers */
    double big_key_elements;
    double message_s; /* host cost of one message or RPC */
    /* the same where device memory goes through the host; 0: as message_s */
    double staged_message_s;
    double message_copy_bytes_per_s; /* serialisation and host copies per message stream */
    double collective_launch_s;      /* host cost of one collective */
    double negotiation_s;            /* control round of a cycle, per doubling of nodes */
    /* the same where messages between nodes go through sockets; 0: as negotiation_s */
    double socket_negotiation_s;
    /* host */
    /* host time to issue one layer's operation (Python, executor) */
    double dispatch_s;
    /* fixed host cost of an iteration (session run, optimizer loop) */
    double iteration_s;
    /* per parameter tensor and device: DataParallel replication */
    double replica_s;
    /* kernels */
    /* batch norm + ReLU + add in one pass (cuDNN fused, XLA, MXNet) */
    bool fuses_elementwise;
    double gradient_bytes;        /* width of an exchanged gradient element in fp32; 4 */
    double mixed_gradient_bytes;  /* ... in mixed precision */
    double overlap_slowdown_frac; /* compute slower by this while a collective runs */
    /* DDP broadcasts batch-norm buffers before each forward */
    bool buffers_broadcast;
    bool host_staged;          /* gradients go through host memory */
    bool servers_colocated;    /* parameter servers share the workers' nodes */
    double context_bytes;      /* framework's own memory beside the device context */
    double fragmentation_frac; /* allocator */
    double prefetch_batches;   /* of the input pipeline */
    const char *cpu_library;   /* library on devices of kind "cpu" */
    bool single_node;          /* one process or one host only */
    /* one host process drives all devices of a node: its dispatch is shared */
    bool single_process;
    /* exchange may start before the last gradient is there */
    bool overlaps_backward;
    double update_launches_per_tensor; /* optimizer kernels per parameter tensor */
    /* host time per iteration and device beyond the first (single process) */
    double replicate_s;
    /* spread of log(predicted/measured) beyond kernels and collectives */
    double residual_sigma_log;
    /* Time of kernels as the release calls its libraries / time by the device's samples, by kind of
     * work; fitted to runs on one device (data/frameworks/fit.sh). F-FRAMEWORK-KERNELS */
    /* workers do not wait for each other: no step is of one set of weights */
    bool asynchronous;
    /* input from pageable memory; to the first device, which passes parts on */
    bool feeds_pageable, feeds_whole_batch;
    /* the whole batch goes to every device, which keeps its part */
    bool feeds_each_device;
    /* central weights live on the first device; else on the host */
    bool weights_on_device;
    /* the framework's own copy of a batch before each step; NAN: none */
    double feed_bytes_per_s;
    /* framework whose factors below count where this one has none; NULL: none */
    const char *kernels_from;
    double conv_scale, grouped_scale, stream_scale, composed_scale; /* NAN: 1 */
    /* NAN: 1; the last: composed_scale */
    double mixed_conv_scale, mixed_grouped_scale, mixed_stream_scale, mixed_composed_scale;
    bool mixed_fuses_elementwise; /* in mixed precision; fuses_elementwise otherwise */
    /* splits within layers (model/parallel/split_replica.h): how activations go between the devices
     * of one replica */
    /* library of these collectives; NULL: the framework's own */
    const char *activation_library;
    const char *reduce_library; /* of those that sum; NULL: activation_library */
    const char *halo_library;   /* of halos; NULL: activation_library */
    /* how filter parallelism sums gradients: a row of dl_collective_op_names */
    const char *filter_backward;
    /* channel parallelism's sums end the graph: nothing before the last one is trained */
    bool channel_detached;
    /* host time of one blocking collective: fixed, and per device of the group */
    double activation_s, activation_peer_s;
    double halo_message_s; /* host time of one halo message */
    /* larger activations go through host memory; NAN: none */
    double staged_above_bytes;
    double staged_bytes_per_s; /* rate of that, both ways together, per device */
    /* the same where they are summed; NAN: staged_bytes_per_s */
    double staged_sum_bytes_per_s;
    double spatial_dims;    /* dimensions that are split at most; 0: all */
    bool activation_direct; /* activation_library moves device memory itself */
    bool halo_overlaps;     /* inner positions are computed while halos travel */
    /* the first device of a replica reads its input and hands it out */
    bool leader_input;
    /* device memory that a convolution may work in; NAN: as much as it wants */
    double conv_workspace_bytes;
    /* as a release's, for all that do not have their own */
    struct dl_map_entry *workloads;
    int workload_count;
    struct dl_framework_release *releases;
    int release_count;
    struct dl_map_entry *sources;
    int source_count;
    /* row of dl_strategies that this mode runs when none is asked for; NULL: data */
    const char *strategy;
    /* of dl_recompute_names, when none is asked for; NULL: none */
    const char *recompute;
    bool splits_layers; /* tensor, pipeline, sequence and expert parallelism */
    bool shards;        /* ZeRO stages */
    /* of convolutions with unequal sides (1x7) besides conv_scale; NAN: 1 */
    double unequal_scale;
    /* of batch normalisations besides stream_scale; NAN: the device's */
    double norm_scale;
    /* of the loss besides composed_scale: cross-entropy over a vocabulary in many passes; NAN: 1 */
    double loss_scale;
    /* fused softmax: score matrices of a rank in multiples of this, at most so many columns; 0: any
     */
    double softmax_matrices, softmax_keys;
};

extern const struct dl_schema dl_framework_schema;

/* The release by that name; NULL: none. */
const struct dl_framework_release *dl_framework_release_find(const struct dl_framework *framework,
                                                             const char *name);
/* Sets the release's constants in the framework's document, which is then to be loaded again. */
enum dl_code dl_framework_release_set(const struct dl_framework_release *release,
                                      struct dl_json *doc, struct dl_arena *arena,
                                      struct dl_err *err);
/* How a framework (in a release; NULL: its own) builds a network: the name, or what its file has
 * for it. */
const char *dl_framework_workload(const struct dl_framework *framework,
                                  const struct dl_framework_release *release, const char *name);

/* The factors on kernel times that `framework` does not have itself, from one that runs the same
 * kernels. F-FRAMEWORK-KERNELS */
void dl_framework_share_kernels(struct dl_framework *framework, const struct dl_framework *from);

/* Checks across members (behaviour and libraries exist); doc for positions. */
enum dl_code dl_framework_check(const struct dl_framework *framework, const struct dl_json *doc,
                                struct dl_err *err);

#endif
