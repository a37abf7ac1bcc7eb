/* gradient_sync.c - costs that several behaviours share. */
#include "model/framework/gradient_sync.h"

#include <math.h>
#include <string.h>

#include "model/framework/shared_host.h"
#include "model/framework/gradient_width.h"
#include "model/network/path.h"

void dl_gradient_sync_messages(const struct dl_gradient_sync_request *request, int count,
                               struct dl_gradient_sync *out) {
    if (out->reusable_messages != NULL && count <= out->reusable_count) {
        out->messages =
            memset(out->reusable_messages, 0, (size_t)count * sizeof *out->reusable_messages);
    } else {
        out->messages =
            dl_arena_alloc(request->arena, (size_t)(count > 0 ? count : 1), sizeof *out->messages);
    }
    out->message_count = count;
}

/* Whether the library reads device memory itself: always, or as measured (calibrate, with an MPI
 * that takes it). */
static bool takes_device_memory(const struct dl_system *system, enum dl_library library) {
    if (dl_libraries[library]->takes_gpu_memory) return true;
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *m = &system->collectives[i];
        if (m->buffers != NULL && strcmp(m->buffers, "device") == 0 &&
            strcmp(m->library, dl_library_names[library]) == 0)
            return true;
    }
    return false;
}

static enum dl_code collective(const struct dl_gradient_sync_request *request,
                               enum dl_collective_op op, double bytes, struct dl_message *message,
                               struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    /* Megatron's rank order: tensor, sequence and expert ranks are neighbours, then replicas, then
     * pipeline stages. The replicas of every shard synchronize concurrently. */
    const int64_t stride = (plan->tp > 1 ? plan->tp : 1) * (plan->sp > 1 ? plan->sp : 1);
    const int64_t groups = plan->dp > 0 ? plan->nodes * plan->devices_per_node / plan->dp : 1;
    const struct dl_collective_request wanted = {
        .op = op,
        .library = request->library,
        .algorithm = dl_libraries[request->library]->single_node
                         ? request->framework->sync.copy_pattern
                         : NULL,
        .bytes = bytes,
        .nodes = plan->nodes,
        .ranks_per_node = plan->devices_per_node,
        .flows_per_adapter = request->flows_per_adapter,
        .group_size = groups > 1 ? plan->dp : 0,
        .group_stride = stride,
        .concurrent = groups,
        .memo = request->memo,
    };
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(request->system, &wanted, &t, err));
    /* Most host libraries see device memory only after a copy out; the result is copied back. */
    double staging_s = 0;
    if (request->system->device->kind == DL_DEVICE_GPU &&
        !takes_device_memory(request->system, request->library)) {
        staging_s = 2 * dl_gradient_sync_host_copy_s(request, bytes, true);
        if (!dl_known(staging_s)) {
            return dl_fail(err, DL_ERR_INPUT,
                           "system %s lacks host.copy_bandwidth_bytes_per_s, which %s needs",
                           request->system->name, dl_library_names[request->library]);
        }
    }
    /* the cores that copy and sum are time-sliced */
    const double slices = dl_shared_host(request->system, plan).core_oversubscription_ratio;
    t.time_s *= slices, t.latency_s *= slices, t.bandwidth_s *= slices;
    message->name = dl_collective_op_names[op];
    message->bytes = bytes;
    message->duration_s = t.time_s + staging_s + request->framework->sync.collective_launch_s;
    message->latency_s = t.latency_s + request->framework->sync.collective_launch_s;
    message->bandwidth_s = t.bandwidth_s + staging_s;
    message->sigma_log = t.sigma_log;
    message->steps = t.steps;
    message->channels = t.channels;
    message->algorithm = t.algorithm;
    message->protocol = t.protocol;
    message->formula = t.formula;
    message->limit = staging_s > t.bandwidth_s ? "host-copy" : t.limit;
    message->origin = t.origin;
    message->extrapolated = t.extrapolated;
    message->returns = true;
    return DL_OK;
}

/* F-HIERARCHICAL-SYNC: reduce-scatter inside each node, all-reduce of every device's shard with
 * those of the other nodes (MPI on host memory, all shards of a node at once), all-gather inside
 * the node. */
static enum dl_code hierarchical(const struct dl_gradient_sync_request *request, double bytes,
                                 struct dl_message *message, struct dl_err *err) {
    struct dl_gradient_sync_request inside = *request, across = *request;
    struct dl_plan node = *request->plan, shards = *request->plan;
    struct dl_message scatter = {0}, gather = {0};
    const int64_t each = request->plan->devices_per_node;
    node.nodes = 1;
    node.dp = each;
    shards.dp = request->plan->nodes;
    shards.tp = each; /* ranks of a group are a node apart */
    inside.plan = &node;
    across.plan = &shards;
    across.library = DL_LIB_MPI;
    inside.memo = across.memo = NULL;
    DL_TRY(collective(&inside, DL_COLL_REDUCE_SCATTER, bytes, &scatter, err));
    DL_TRY(collective(&across, DL_COLL_ALL_REDUCE, bytes / (double)each, message, err));
    DL_TRY(collective(&inside, DL_COLL_ALL_GATHER, bytes, &gather, err));
    message->bytes = bytes;
    message->duration_s += scatter.duration_s + gather.duration_s;
    message->latency_s += scatter.latency_s + gather.latency_s;
    message->bandwidth_s += scatter.bandwidth_s + gather.bandwidth_s;
    message->steps += scatter.steps + gather.steps;
    message->algorithm = "hierarchical";
    message->formula = "F-HIERARCHICAL-SYNC";
    return DL_OK;
}

enum dl_code dl_gradient_sync_collective(const struct dl_gradient_sync_request *request,
                                         enum dl_collective_op op, double bytes,
                                         struct dl_message *message, struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    const bool levels = request->framework->sync.hierarchical && op == DL_COLL_ALL_REDUCE &&
                        plan->nodes > 1 && plan->devices_per_node > 1 &&
                        plan->tp * plan->pp * plan->sp * plan->ep <= 1;
    return levels ? hierarchical(request, bytes, message, err)
                  : collective(request, op, bytes, message, err);
}

double dl_gradient_sync_cast_s(const struct dl_gradient_sync_request *request) {
    const struct dl_gradient_width width =
        dl_framework_gradient_width(request->framework, request->plan->precision);
    if (!(width.sent_bytes < width.kept_bytes)) return 0;
    return dl_gradient_sync_device_stream_s(request, 2 * (width.kept_bytes + width.sent_bytes) / 4 *
                                                         request->parameter_bytes);
}

double dl_gradient_sync_device_stream_s(const struct dl_gradient_sync_request *request,
                                        double bytes) {
    if (bytes <= 0) return 0;
    /* half read, half written, fp32 */
    const struct dl_kernel copy = dl_kernel_stream(DL_UPDATE, 0, bytes / 8, bytes / 8);
    struct dl_kernel_time t;
    dl_kernel_time(request->system->device, DL_FP32, &copy, &t);
    const struct dl_shared_host shared = dl_shared_host(request->system, request->plan);
    return dl_known(t.time_s) ? t.time_s * shared.memory_ratio * shared.core_oversubscription_ratio
                              : 0;
}

double dl_gradient_sync_host_copy_s(const struct dl_gradient_sync_request *request, double bytes,
                                    bool pinned) {
    const struct dl_host *host = &request->system->host;
    const struct dl_plan *plan = request->plan;
    double bandwidth =
        pinned ? host->copy_bandwidth_bytes_per_s : host->pageable_bandwidth_bytes_per_s;
    if (!dl_known(bandwidth)) bandwidth = host->copy_bandwidth_bytes_per_s;
    if (!request->system->has_host || !dl_known(bandwidth)) return NAN;
    const double on_link =
        host->devices_per_copy_link == DL_ABSENT ? 1 : (double)host->devices_per_copy_link;
    const double sharing = fmin(on_link, (double)plan->devices_per_node);
    double seconds = bytes * sharing / bandwidth;
    /* all copies of the node also share its memory bandwidth */
    if (dl_known(host->memory_bandwidth_bytes_per_s)) {
        seconds = fmax(seconds,
                       bytes * (double)plan->devices_per_node / host->memory_bandwidth_bytes_per_s);
    }
    return seconds;
}

double dl_gradient_sync_host_sum_s(const struct dl_gradient_sync_request *request, double bytes,
                                   double terms) {
    const struct dl_host *host = &request->system->host;
    if (!request->system->has_host || !dl_known(host->memory_bandwidth_bytes_per_s)) return NAN;
    return (terms + 1) * bytes / host->memory_bandwidth_bytes_per_s;
}

/* A core that carries all traffic itself: its worker sends and receives everything, its server
 * what all workers send it, also the one on its own node. Takes the library's push and pull, as
 * measured between two nodes or modelled. */
static enum dl_code core_s_per_byte(const struct dl_gradient_sync_request *request,
                                    double imbalance, double *out) {
    const struct dl_plan *plan = request->plan;
    const struct dl_collective_request wanted = {.op = DL_COLL_ALL_REDUCE,
                                                 .library = request->library,
                                                 .bytes = fmax(1, request->total_bytes),
                                                 .nodes = plan->nodes > 1 ? plan->nodes : 2,
                                                 .ranks_per_node = 1,
                                                 .memo = request->memo};
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(request->system, &wanted, &t, NULL));
    const double slices = dl_shared_host(request->system, plan).core_oversubscription_ratio;
    *out = slices * 0.5 * t.time_s / wanted.bytes * 0.5 * (1 + fmax(1, imbalance));
    return DL_OK;
}

double dl_gradient_sync_server_s_per_byte(const struct dl_gradient_sync_request *request,
                                          double imbalance) {
    const double workers = (double)request->plan->nodes;
    double core_s;
    if (dl_host_cores_carry_messages(request->system))
        return core_s_per_byte(request, imbalance, &core_s) == DL_OK ? core_s : NAN;
    if (workers <= 1) return 0;
    const double bandwidth = dl_path_node_bytes_per_s(request->system);
    if (!dl_known(bandwidth)) return NAN;
    /* the share of the server on the worker's own node stays there */
    const double remote =
        fmax((workers - 1) / workers, dl_path_server_load(request->system, workers, 0, workers));
    return remote * fmax(1, imbalance) / bandwidth;
}

/* Buckets are copies of the gradients. */
static struct dl_sync_buffer buckets(const struct dl_framework *framework, double gradient_bytes) {
    const double bytes = framework->sync.bucket_bytes;
    return (struct dl_sync_buffer){dl_known(bytes) ? gradient_bytes : 0,
                                   "all gradients, in buckets", bytes};
}

struct dl_sync_buffer dl_gradient_sync_packs(const struct dl_framework *framework,
                                             double gradient_bytes) {
    const double bytes = framework->sync.pack_bytes;
    if (dl_known(framework->sync.bucket_bytes)) return buckets(framework, gradient_bytes);
    return (struct dl_sync_buffer){bytes > 0 ? fmin(bytes, gradient_bytes) : gradient_bytes,
                                   "concatenated gradients", NAN};
}

struct dl_sync_buffer dl_gradient_sync_buffer(const struct dl_framework *framework,
                                              double gradient_bytes) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    return behaviour->buffer != NULL ? behaviour->buffer(framework, gradient_bytes)
                                     : buckets(framework, gradient_bytes);
}
