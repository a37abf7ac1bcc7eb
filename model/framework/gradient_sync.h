/* gradient_sync.h - how a framework synchronizes gradients: the messages that it sends, when
 * each may start, and what it waits for. One behaviour is one file (behaviours/fw_*.c) and one
 * row of dl_framework_behaviours.
 *
 * A behaviour sees when each gradient is ready on the compute timeline and answers with
 * messages, in the order in which they use the network. The engine (model/engine/timeline.h) runs
 * them through one communication lane. */
#ifndef DL_MODEL_FRAMEWORK_GRADIENT_SYNC_H
#define DL_MODEL_FRAMEWORK_GRADIENT_SYNC_H

#include "model/network/collective.h"
#include "model/framework/framework.h"
#include "model/plan/plan.h"
#include "model/workload/workload.h"

/* One parameter tensor's gradient, in backward order (reverse registration). */
struct dl_gradient {
    int layer; /* index in the workload */
    double elements;
    double bytes; /* as synchronized */
    /* since the iteration began: end of its layer's backward pass on the host that issues it, and
     * on the device */
    double issued_s, ready_s;
};

/* One message or collective. */
struct dl_message {
    const char *name; /* "all-reduce", "push", "pull" */
    int first, count; /* gradients [first, first + count) in backward order */
    double bytes;
    double ready_s;                /* earliest start */
    double duration_s;             /* on the communication lane */
    double latency_s, bandwidth_s; /* parts of duration_s */
    /* after the lane is free again until the result is usable (later pipeline stages) */
    double tail_s;
    double lead_s; /* the first of the workers has its result so much earlier (F-PS-SKEW) */
    double sigma_log;
    double steps, channels;
    const char *algorithm, *protocol, *formula, *limit, *origin; /* as dl_collective_time */
    bool extrapolated;
    /* its end makes the parameters of its gradients usable (a pull, an all-reduce) */
    bool returns;
    double start_s, end_s; /* filled by the timeline */
};

struct dl_gradient_sync_request {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_gradient *gradients;
    int gradient_count;
    double total_bytes;     /* of all gradients as synchronized */
    double parameter_bytes; /* of all parameters as pulled or broadcast */
    double backward_end_s;
    /* F-PS-SKEW: the first of the workers begins backward so much earlier; by the timeline, from
     * the lead of messages that return */
    double lead_s;
    double phase_frac; /* of a cycle that the first gradient waits; filled by the timeline */
    enum dl_library library;
    double flows_per_adapter;  /* collectives that share an adapter; 0: 1 */
    struct dl_nccl_memo *memo; /* of collectives; NULL: none */
    struct dl_arena *arena;
};

struct dl_gradient_sync {
    struct dl_message *messages;
    int message_count;
    /* message array of the previous iteration, reused; NULL: allocated in the arena */
    struct dl_message *reusable_messages;
    int reusable_count;
    /* the next forward pass of a layer waits for that layer's message alone; else the update waits
     * for all messages */
    bool per_layer_wait;
    bool update_remote; /* parameters are updated on servers or the host: no update on the device */
    double device_copy_s; /* copies into and out of buffers on the compute lane, after backward */
    /* host work after communication that nothing overlaps (single-process loops) */
    double host_s;
    /* communication before forward may begin (broadcast of buffers or parameters) */
    double prologue_s;
    /* "parameter-server" when the servers' links set the pace; NULL: as the messages' limit */
    const char *bound;
};

struct dl_split_behaviour;

/* What a behaviour keeps in device memory next to the gradients. */
struct dl_sync_buffer {
    double bytes;
    const char *what;  /* "fusion buffer" */
    double unit_bytes; /* of one buffer; NAN: one buffer of all bytes */
};

/* The constants of a behaviour's own struct. */
#define DL_OWN(type, framework) ((const type *)(const void *)&(framework)->own)

struct dl_framework_behaviour {
    const char *name, *summary, *source;
    const char *old_name; /* that framework files may still use; NULL: none */
    /* a bound that no framework beats: no host costs, no straggler wait */
    const bool is_bound;
    /* number and sizes of messages depend on when gradients are ready */
    const bool timing_dependent;
    /* works in cycles whose phase relative to the iteration is unknown (phase_frac) */
    const bool has_phase;
    const bool lossy;                /* gradients lose precision on the way */
    const bool takes_backup_workers; /* a step can go on without its slowest workers */
    const bool has_servers;          /* parameter servers, of which a plan may say how many */
    /* Keys of dl_framework_schema that it reads and not every behaviour does, and those that it
     * requires; NULL-terminated. NULL: none. */
    const char *const *keys, *const *required;
    /* Keys that no other behaviour reads: numbers, flags and choices of its struct (DL_OWN). NULL:
     * it has none. */
    const struct dl_field *fields;
    /* Checks constants against each other; NULL: nothing to check. */
    enum dl_code (*check)(const struct dl_framework *framework, const struct dl_json *doc,
                          struct dl_err *err);
    /* Time between two polls in MPI by its background thread, while the cores compute; NULL: it has
     * no such thread. */
    double (*poll_cycle_s)(const struct dl_framework *framework);
    /* How its own code exchanges activations of a split replica (model/engine/split_internal.h);
     * NULL: the general way. */
    const struct dl_split_behaviour *split;
    /* The first device of a split replica reads the input of all its devices. */
    const bool leader_reads;
    /* F-MEM-BUFFERS where they are not buckets of bucket_bytes; NULL: they are. */
    struct dl_sync_buffer (*buffer)(const struct dl_framework *framework, double gradient_bytes);
    /* NULL when the plan is possible, else the reason, as a message for the user. */
    const char *(*refuse)(const struct dl_system *system, const struct dl_plan *plan);
    enum dl_code (*synchronize)(const struct dl_gradient_sync_request *request,
                                struct dl_gradient_sync *out, struct dl_err *err);
};

extern const struct dl_framework_behaviour *const dl_framework_behaviours[]; /* NULL-terminated */
/* By its name or former name; NULL: not found. */
const struct dl_framework_behaviour *dl_framework_behaviour_find(const char *name);

/* Shared by behaviours. */

/* Room for `count` messages in the request's arena; DL_ERR_SYSTEM when memory is exhausted. */
void dl_gradient_sync_messages(const struct dl_gradient_sync_request *request, int count,
                               struct dl_gradient_sync *out);
/* Fills the message's duration and description with the cost of one collective over all
 * data-parallel ranks; host libraries on GPUs include the copies out and in. */
enum dl_code dl_gradient_sync_collective(const struct dl_gradient_sync_request *request,
                                         enum dl_collective_op op, double bytes,
                                         struct dl_message *message, struct dl_err *err);
/* F-MEM-BUFFERS: what the behaviour keeps, else buckets of bucket_bytes, which are copies of the
 * gradients; 0: nothing. */
struct dl_sync_buffer dl_gradient_sync_buffer(const struct dl_framework *framework,
                                              double gradient_bytes);
/* Concatenated gradients of pack_bytes, unless there are buckets. */
struct dl_sync_buffer dl_gradient_sync_packs(const struct dl_framework *framework,
                                             double gradient_bytes);
/* F-CAST: seconds to narrow all gradients to the width that is sent and to widen the sums again,
 * where that is less than the width that is kept: 2 (kept + sent) bytes an element; else 0. */
double dl_gradient_sync_cast_s(const struct dl_gradient_sync_request *request);
/* F-FW-IDEAL: the piece (its bytes at most the request's total) that moves gradients at the least
 * time per byte, by the libraries that the devices have or by way of servers. */
enum dl_code dl_gradient_sync_cheapest(const struct dl_gradient_sync_request *request,
                                       struct dl_message *out, struct dl_err *err);
/* Time [s] to stream `bytes` read plus written on the device: local copies and casts.
 * F-KERNEL-STREAM. */
double dl_gradient_sync_device_stream_s(const struct dl_gradient_sync_request *request,
                                        double bytes);
/* Time [s] for all devices of a node to copy `bytes` to or from the host concurrently, from or
 * to `pinned` memory: bytes * devices per shared host link / bandwidth. NAN when the system
 * lacks the bandwidth. F-COPY-HOST. */
double dl_gradient_sync_host_copy_s(const struct dl_gradient_sync_request *request, double bytes,
                                    bool pinned);
/* Time [s] to add `terms` buffers of `bytes` on the host: (terms + 1) bytes / memory bandwidth.
 * F-HOST-SUM. */
double dl_gradient_sync_host_sum_s(const struct dl_gradient_sync_request *request, double bytes,
                                   double terms);

/* Seconds per byte of gradient for all workers (nodes) to push to (or pull from) servers on the
 * same nodes: imbalance (W-1)/W / B with W nodes and W servers, at the busier of the worker's and
 * the server's link. B: adapters x bandwidth. imbalance: the largest server's share / the mean
 * share, >= 1. F-PS-LINK. 0 for one node; NAN when the system has no inter-node link. Where the
 * cores carry all messages (shared_host.h): half of the library's push and pull per byte, also for
 * one node. */
double dl_gradient_sync_server_s_per_byte(const struct dl_gradient_sync_request *request,
                                          double imbalance);

#endif
