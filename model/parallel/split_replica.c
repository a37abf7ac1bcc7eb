/* split_replica.c - messages inside a replica whose layers are split. See split_replica.h. */
#include "model/parallel/split_replica.h"

#include <math.h>
#include <string.h>

#include "model/parallel/split_parts.h"
#include "model/workload/layer.h"

static enum dl_library find_library(const struct dl_split_walk *w, int own) {
    const struct dl_predict_request *r = w->replica->request;
    const bool cpu = r->system->device->kind == DL_DEVICE_CPU;
    const int library = cpu || r->plan->library != NULL ? -1 : own;
    return library >= 0 ? (enum dl_library)library
                        : dl_replica_library(r->system, r->framework, r->plan);
}

static bool sums(enum dl_collective_op op) {
    return op == DL_COLL_ALL_REDUCE || op == DL_COLL_REDUCE_SCATTER;
}

static bool is_host_library(enum dl_library library) {
    return library != DL_LIB_NCCL && library != DL_LIB_COPY;
}

/* Bytes that pass between one of p devices and its host, out and in, in units of the message: its
 * own part out and the others' in for a gather, all parts but its own each way for an exchange. */
static double host_passes(enum dl_collective_op op, double p) {
    switch (op) {
    case DL_COLL_ALL_GATHER:
    case DL_COLL_REDUCE_SCATTER: return 1;
    case DL_COLL_ALL_TO_ALL: return 2 * (p - 1) / p;
    default: return 2;
    }
}

/* How a message of activations gets from the device's memory to its library. */
struct route {
    enum dl_library library;
    bool direct; /* a library of the host sends from and to the device's memory */
    bool host;   /* through buffers of the host */
    /* MPI copies pieces straight between the device and its own buffers: that and their transfer
     * pass side by side; else the whole is copied out first, and in last */
    bool pieces;
    bool pageable; /* the buffers of the host: MPI allocates those of its sums for each call */
};

static struct route find_route(const struct dl_split_walk *w, const struct dl_split_talk *talk) {
    const struct dl_predict_request *r = w->replica->request;
    const struct dl_activation_policy *a = &r->framework->activations;
    const enum dl_library library = find_library(w, talk->library);
    const bool gpu = r->system->device->kind == DL_DEVICE_GPU;
    const bool collective = gpu && talk->op != DL_COLL_HALO && talk->op != DL_COLL_P2P;
    const bool managed = a->managed_memory;
    const bool direct = collective && is_host_library(library) && a->activation_direct &&
                        !managed &&
                        !(library == DL_LIB_MPI && sums(talk->op)); /* MPI sums on the host */
    const bool host = gpu && !direct && is_host_library(library);
    return (struct route){.library = library,
                          .direct = direct,
                          .host = host,
                          .pieces = host && library == DL_LIB_MPI && !sums(talk->op),
                          .pageable = library == DL_LIB_MPI && sums(talk->op)};
}

/* Time of the copies between the device's memory and the host's. */
static enum dl_code time_copies(const struct dl_split_walk *w, const struct dl_split_talk *talk,
                                const struct route *route, double *copies_s, struct dl_err *err) {
    const struct dl_predict_request *r = w->replica->request;
    *copies_s = 0;
    if (route->host) {
        const struct dl_gradient_sync_request x = {.system = r->system, .plan = r->plan};
        *copies_s = host_passes(talk->op, (double)talk->group) *
                    dl_gradient_sync_host_copy_s(&x, talk->bytes, !route->pageable);
    }
    if (dl_known(*copies_s)) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT,
                   "system %s lacks host.copy_bandwidth_bytes_per_s, which %s needs",
                   r->system->name, dl_library_names[route->library]);
}

/* Passes over a gathered or summed activation on the device. */
static double join_s(const struct dl_split_walk *w, const struct dl_split_talk *talk) {
    const struct dl_predict_request *r = w->replica->request;
    const struct dl_gradient_sync_request x = {.system = r->system, .plan = r->plan};
    return dl_gradient_sync_device_stream_s(&x, 2 * talk->copies * talk->bytes);
}

enum dl_code dl_split_time_message(const struct dl_split_walk *w, const struct dl_split_talk *talk,
                                   struct dl_message *out, struct dl_err *err) {
    const struct dl_predict_request *r = w->replica->request;
    const struct dl_plan *plan = r->plan;
    const struct route route = find_route(w, talk);
    const int64_t devices = plan->nodes * plan->devices_per_node;
    const struct dl_collective_request wanted = {
        .op = talk->op,
        .library = route.library,
        .bytes = talk->bytes,
        .nodes = plan->nodes,
        .ranks_per_node = plan->devices_per_node,
        .flows_per_adapter = 1,
        .device_buffers = route.host,
        .device_direct = route.direct,
        .group_size = talk->group < devices ? talk->group : 0,
        .group_stride = talk->stride,
        .concurrent = devices / talk->group,
    };
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(r->system, &wanted, &t, err));
    /* In a chain no other rank is busy: one copies out while the next copies in. */
    const bool chain = talk->hops > 1 && route.pieces;
    if (chain) {
        t.bandwidth_s /= 2;
        t.time_s = t.latency_s + t.bandwidth_s;
    }
    double copies_s;
    if (chain)
        copies_s = 0;
    else
        DL_TRY(time_copies(w, talk, &route, &copies_s, err));
    if (route.pieces) copies_s = fmax(0, copies_s - t.bandwidth_s);
    copies_s += join_s(w, talk);
    const double host_s = talk->host_s + r->framework->sync.collective_launch_s;
    *out = (struct dl_message){
        .name = dl_collective_op_names[talk->op],
        .bytes = talk->bytes,
        .duration_s = t.time_s + copies_s + host_s,
        .latency_s = t.latency_s + host_s,
        .bandwidth_s = t.bandwidth_s + copies_s,
        .sigma_log = t.sigma_log,
        .algorithm = t.algorithm,
        .protocol = t.protocol,
        .formula = t.formula,
        .limit = t.limit,
        .origin = t.origin,
        .extrapolated = t.extrapolated,
    };
    return DL_OK;
}

enum dl_code dl_split_add_message(struct dl_split_walk *w, const struct dl_split_talk *talk,
                                  int layer, bool backward, double hidden_frac,
                                  struct dl_err *err) {
    struct dl_replica *replica = w->replica;
    if (!(talk->bytes > 0) || replica->message_count == w->capacity) return DL_OK;
    struct dl_layer_message *own = &replica->messages[replica->message_count];
    own->layer = layer;
    own->backward = backward;
    own->hidden_frac = hidden_frac;
    DL_TRY(dl_split_time_message(w, talk, &own->message, err));
    if (talk->hops > 1) {
        own->message.duration_s *= talk->hops;
        own->message.latency_s *= talk->hops;
        own->message.bandwidth_s *= talk->hops;
        own->message.algorithm = "chain of synchronous sends";
        own->message.formula = "F-HALO-CHAIN";
    }
    const char *name = dl_arena_printf(replica->request->arena, "%s of %s%s", own->message.name,
                                       w->whole->layers[layer].name, backward ? " backward" : "");
    if (name == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    own->message.name = name;
    replica->message_count++;
    return DL_OK;
}

static enum dl_code add_collective(struct dl_split_walk *w, enum dl_collective_op op,
                                   double elements, int layer, bool backward, struct dl_err *err) {
    const struct dl_framework *framework = w->replica->request->framework;
    const struct dl_split_talk talk = {
        .op = op,
        .library = sums(op) && framework->activations.reduce_library >= 0
                       ? framework->activations.reduce_library
                       : framework->activations.activation_library,
        .bytes = w->replica->samples * elements * w->width_bytes,
        .group = (int64_t)w->split->parts,
        .stride = 1,
        .host_s = framework->activations.activation_s +
                  framework->activations.activation_peer_s * w->split->parts,
        .copies = framework->activations.activation_copies,
    };
    if (op == DL_COLL_ALL_GATHER && framework->activations.gathers_by_root) {
        struct dl_split_talk part = talk;
        part.op = DL_COLL_GATHER;
        DL_TRY(dl_split_add_message(w, &part, layer, backward, 0, err));
        part.op = DL_COLL_BROADCAST;
        return dl_split_add_message(w, &part, layer, backward, 0, err);
    }
    /* Gathered copies stay in memory, next to the layers' own, until backward. */
    if (talk.bytes > w->replica->buffer_bytes) w->replica->buffer_bytes = talk.bytes;
    return dl_split_add_message(w, &talk, layer, backward, 0, err);
}

static bool is_gathered(const struct dl_split_walk *w, int index) {
    for (int j = index + 1; j < w->whole->layer_count; j++) {
        if (w->is_split[j]) continue;
        for (int i = 0; i < w->whole->layers[j].input_count; i++) {
            if (w->whole->layers[j].inputs[i] == index) return true;
        }
    }
    return false;
}

static enum dl_collective_op filter_backward(const struct dl_framework *framework) {
    static const enum dl_collective_op ops[] = {
        [DL_FILTER_ALL_REDUCE] = DL_COLL_ALL_REDUCE,
        [DL_FILTER_REDUCE_SCATTER] = DL_COLL_REDUCE_SCATTER,
        [DL_FILTER_ALL_TO_ALL] = DL_COLL_ALL_TO_ALL,
    };
    return ops[framework->activations.filter_backward];
}

static enum dl_code walk_layer(struct dl_split_walk *w, int index, bool backward,
                               struct dl_err *err) {
    const struct dl_layer *layer = &w->whole->layers[index];
    const double outputs = dl_shape_elements(&layer->out), inputs = dl_shape_elements(&layer->in);
    if (!w->is_split[index]) return DL_OK;
    switch (w->split->kind) {
    case DL_SPLIT_FILTER:
        if (!backward) return add_collective(w, DL_COLL_ALL_GATHER, outputs, index, false, err);
        if (index == w->last) return DL_OK;
        return add_collective(w, filter_backward(w->replica->request->framework), outputs, index,
                              true, err);
    case DL_SPLIT_CHANNEL:
        if (!backward) return add_collective(w, DL_COLL_ALL_REDUCE, outputs, index, false, err);
        if (layer->first || w->replica->workload->layers[index].detached) return DL_OK;
        return add_collective(w, DL_COLL_ALL_GATHER, inputs, index, true, err);
    default:
        DL_TRY(dl_split_add_halos(w, index, backward, err));
        if (!is_gathered(w, index)) return DL_OK;
        if (!backward) return add_collective(w, DL_COLL_ALL_GATHER, outputs, index, false, err);
        if (!w->replica->request->framework->activations.gather_returns) return DL_OK;
        return add_collective(w, DL_COLL_ALL_TO_ALL, outputs, index, true, err);
    }
}

/* F-INPUT-LEADER: the first device of a replica has read its samples and sends them to the others
 * through their hosts. */
static enum dl_code leader_input(const struct dl_split_walk *w, struct dl_err *err) {
    struct dl_replica *replica = w->replica;
    const struct dl_predict_request *r = replica->request;
    const struct dl_activation_policy *policy = &r->framework->activations;
    const double bytes = replica->samples * r->workload->input_bytes_per_sample;
    if (!policy->leader_input || !dl_known(bytes)) return DL_OK;
    const bool scatters = w->split->kind == DL_SPLIT_SPATIAL && !policy->leader_broadcasts;
    const int64_t devices = r->plan->nodes * r->plan->devices_per_node,
                  group = (int64_t)w->split->parts;
    const struct dl_collective_request wanted = {
        .op = scatters ? DL_COLL_SCATTER : DL_COLL_BROADCAST,
        .library = DL_LIB_MPI,
        .bytes = bytes,
        .nodes = r->plan->nodes,
        .ranks_per_node = r->plan->devices_per_node,
        .flows_per_adapter = 1,
        .group_size = group < devices ? group : 0,
        .group_stride = 1,
        .concurrent = devices / group,
    };
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(r->system, &wanted, &t, err));
    replica->input_extra_s = t.time_s;
    if (r->framework->sync.messages.message_copy_bytes_per_s > 0) {
        /* copied into the message and out of it */
        replica->input_extra_s += 2 * bytes / r->framework->sync.messages.message_copy_bytes_per_s;
    }
    /* the leader joins the samples of its batch before it sends them */
    if (r->framework->input.feed_bytes_per_s > 0)
        replica->input_extra_s += bytes / r->framework->input.feed_bytes_per_s;
    return DL_OK;
}

/* Backward stops after the last split convolution. */
static enum dl_code detach(struct dl_workload *local, const bool *is_split, struct dl_arena *arena,
                           struct dl_err *err) {
    struct dl_layer *layers = dl_arena_alloc(arena, (size_t)local->layer_count, sizeof *layers);
    if (layers == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    bool before = false;
    for (int i = local->layer_count - 1; i >= 0; i--) {
        layers[i] = local->layers[i];
        before = before || (is_split[i] && layers[i].kind == &dl_layer_conv);
        layers[i].detached = before;
    }
    local->layers = layers;
    return DL_OK;
}

enum dl_code dl_split_replica_split(struct dl_replica *replica, const struct dl_split *split,
                                    struct dl_err *err) {
    const struct dl_predict_request *r = replica->request;
    struct dl_split_walk w = {.replica = replica,
                              .split = split,
                              .whole = r->workload,
                              .last = -1,
                              .blocks = dl_split_blocks_of(r->workload),
                              .width_bytes = dl_precision_bytes(r->plan->precision),
                              .capacity = (2 * DL_DIMS + 1) * r->workload->layer_count};
    struct dl_workload *local = dl_arena_alloc(r->arena, 1, sizeof *local);
    replica->messages = dl_arena_alloc(r->arena, (size_t)w.capacity, sizeof *replica->messages);
    if (local == NULL || replica->messages == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(dl_split_workload(r->workload, split, r->arena, local, &w.is_split, err));
    replica->workload = local;
    if (r->framework->activations.leader_broadcasts)
        local->input_bytes_per_sample = r->workload->input_bytes_per_sample;
    for (int i = 0; i < local->layer_count; i++) {
        if (w.is_split[i]) w.last = i;
    }
    if (split->kind == DL_SPLIT_CHANNEL && r->framework->activations.channel_detached)
        DL_TRY(detach(local, w.is_split, r->arena, err));
    for (int i = 0; i < local->layer_count; i++) DL_TRY(walk_layer(&w, i, false, err));
    for (int i = local->layer_count - 1; i >= 0; i--) DL_TRY(walk_layer(&w, i, true, err));
    return leader_input(&w, err);
}

static enum dl_code make_split(const struct dl_workload *workload,
                               const struct dl_framework *framework, enum dl_split_kind kind,
                               int64_t parts, struct dl_split *out, struct dl_err *err) {
    *out = (struct dl_split){.kind = kind, .parts = (double)parts, .grid = {1, 1, 1}};
    if (kind != DL_SPLIT_SPATIAL) return DL_OK;
    const int dims = framework->activations.spatial_dims >= 1
                         ? (int)framework->activations.spatial_dims
                         : DL_DIMS;
    if (dl_split_grid(workload, (double)parts, dims, out->grid)) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--spatial %lld: no grid of as many parts fits the layers of %s",
                   (long long)parts, workload->name);
}

enum dl_code dl_split_replica_replica(const struct dl_predict_request *request,
                                      enum dl_split_kind kind, int64_t parts,
                                      struct dl_replica *out, struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    *out = (struct dl_replica){
        .request = request,
        .workload = request->workload,
        .plan = *plan,
        .samples = plan->batch_per_device_samples * (double)parts,
        .parts = (double)parts,
        .synchronizes = plan->dp > 1,
    };
    out->plan.replica_devices = parts;
    struct dl_split split;
    DL_TRY(make_split(request->workload, request->framework, kind, parts, &split, err));
    if (kind == DL_SPLIT_SPATIAL) { /* all devices hold all weights */
        out->plan.dp *= parts;
        out->plan.sp = 1;
        out->synchronizes = true;
    }
    return dl_split_replica_split(out, &split, err);
}

enum dl_code dl_split_replica_predict(const struct dl_predict_request *request,
                                      enum dl_split_kind kind, int64_t parts,
                                      struct dl_prediction *out, struct dl_err *err) {
    if (request->plan->assume == DL_ASSUME_PARADL)
        return dl_paradl_predict(request, kind, parts, out, err);
    struct dl_replica replica;
    DL_TRY(dl_split_replica_replica(request, kind, parts, &replica, err));
    return dl_replica_predict(&replica, out, err);
}

enum dl_code dl_split_replica_check(const struct dl_workload *workload,
                                    const struct dl_framework *framework, enum dl_split_kind kind,
                                    int64_t parts, const struct dl_plan *plan, struct dl_err *err) {
    static const char *const options[] = {"tp", "tp", "spatial"}, *const things[] = {
                                                                      "filters", "input channels",
                                                                      "positions"};
    if (plan->sequence_parallel)
        return dl_fail(err, DL_ERR_USAGE, "--sequence-parallel: goes with tensor parallelism");
    if (plan->micro_batch_samples > 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--micro-batch: strategy %s takes its whole batch at once",
                       plan->strategy->name);
    }
    if (parts <= 1) return DL_OK;
    const int dims = framework->activations.spatial_dims >= 1
                         ? (int)framework->activations.spatial_dims
                         : DL_DIMS;
    const char *layer;
    const double most = dl_split_limit(workload, kind, dims, &layer);
    if (layer == NULL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--%s: strategy %s splits convolutions, and %s has none that can be split; "
                       "take 'tensor' or "
                       "'pipeline'",
                       options[kind], plan->strategy->name, workload->name);
    }
    if ((double)parts > most) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--%s %lld: layer %s of %s has %.0f %s to share; nearest is --%s %.0f (scaling limit)",
            options[kind], (long long)parts, layer, workload->name, most, things[kind],
            options[kind], most);
    }
    double grid[DL_DIMS];
    if (kind != DL_SPLIT_SPATIAL || dl_split_grid(workload, (double)parts, dims, grid))
        return DL_OK;
    int64_t nearest = parts - 1;
    while (nearest > 1 && !dl_split_grid(workload, (double)nearest, dims, grid)) nearest--;
    return dl_fail(err, DL_ERR_USAGE,
                   "--%s %lld: no grid of so many parts fits all layers of %s; nearest is --%s "
                   "%lld (scaling limit)",
                   options[kind], (long long)parts, workload->name, options[kind],
                   (long long)nearest);
}
