/* split_replica.c - messages inside a replica whose layers are split. See split_replica.h. */
#include "model/engine/split_replica.h"

#include <math.h>
#include <string.h>

#include "model/engine/split_internal.h"
#include "model/workload/layer.h"

static enum dl_library find_library(const struct dl_split_context *w, int own) {
    const struct dl_predict_request *r = w->replica->request;
    if (w->library > 0) return (enum dl_library)(w->library - 1);
    const bool cpu = r->system->device->kind == DL_DEVICE_CPU;
    const int library = cpu || r->plan->library != NULL ? -1 : own;
    return library >= 0 ? (enum dl_library)library
                        : dl_replica_library(r->system, r->framework, r->plan);
}

static bool sums(enum dl_collective_op op) {
    return op == DL_COLL_ALL_REDUCE || op == DL_COLL_REDUCE_SCATTER;
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

static struct route find_route(const struct dl_split_context *w,
                               const struct dl_group_message *talk) {
    const struct dl_predict_request *r = w->replica->request;
    const struct dl_activation_policy *a = &r->framework->activations;
    const enum dl_library library = find_library(w, talk->library);
    const struct dl_collective_library *row = dl_libraries[library];
    const bool gpu = r->system->device->kind == DL_DEVICE_GPU;
    const bool collective = gpu && talk->op != DL_COLL_HALO && talk->op != DL_COLL_P2P;
    const struct dl_split_behaviour *own = r->framework->behaviour->split;
    const bool managed = own != NULL && own->is_managed != NULL && own->is_managed(r->framework);
    const bool direct = collective && !row->takes_gpu_memory && a->activation_direct && !managed &&
                        !(row->stages_gpu_memory && sums(talk->op));
    const bool host = gpu && !direct && !row->takes_gpu_memory;
    return (struct route){.library = library,
                          .direct = direct,
                          .host = host,
                          .pieces = host && row->stages_gpu_memory && !sums(talk->op),
                          .pageable = row->stages_gpu_memory && sums(talk->op)};
}

/* Time of the copies between the device's memory and the host's. */
static enum dl_code time_copies(const struct dl_split_context *w,
                                const struct dl_group_message *talk, const struct route *route,
                                double *copies_s, struct dl_err *err) {
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
static double join_s(const struct dl_split_context *w, const struct dl_group_message *talk) {
    const struct dl_predict_request *r = w->replica->request;
    const struct dl_gradient_sync_request x = {.system = r->system, .plan = r->plan};
    return dl_gradient_sync_device_stream_s(&x, 2 * talk->copies * talk->bytes);
}

static enum dl_code time_message(const struct dl_split_context *w,
                                 const struct dl_group_message *talk, struct dl_message *out,
                                 struct dl_err *err) {
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
    const bool copies_limit = copies_s > t.bandwidth_s;
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
        .limit = copies_limit ? "host-copy" : t.limit,
        .origin = t.origin,
        .extrapolated = t.extrapolated,
    };
    return DL_OK;
}

/* F-FW-IDEAL: the bound takes the library that is fastest for the message. */
static void try_libraries(const struct dl_split_context *w, const struct dl_group_message *talk,
                          struct dl_message *out) {
    for (int i = 0; dl_library_names[i] != NULL; i++) {
        struct dl_split_context other = *w;
        struct dl_message m;
        other.library = 1 + i;
        if (time_message(&other, talk, &m, NULL) == DL_OK && m.duration_s < out->duration_s)
            *out = m;
    }
}

enum dl_code dl_split_time_message(const struct dl_split_context *w,
                                   const struct dl_group_message *talk, struct dl_message *out,
                                   struct dl_err *err) {
    const struct dl_predict_request *r = w->replica->request;
    DL_TRY(time_message(w, talk, out, err));
    if (dl_framework_is_bound(r->framework) && r->plan->library == NULL)
        try_libraries(w, talk, out);
    return DL_OK;
}

static void more_messages(struct dl_split_context *w) {
    struct dl_replica *replica = w->replica;
    struct dl_arena *arena = replica->request->arena;
    w->capacity = w->capacity > 0 ? 2 * w->capacity : 16;
    struct dl_layer_message *more = dl_arena_alloc(arena, (size_t)w->capacity, sizeof *more);
    if (replica->message_count > 0)
        memcpy(more, replica->messages, (size_t)replica->message_count * sizeof *more);
    replica->messages = more;
}

enum dl_code dl_split_add_message(struct dl_split_context *w, const struct dl_group_message *talk,
                                  int layer, bool backward, double hidden_frac,
                                  struct dl_err *err) {
    struct dl_replica *replica = w->replica;
    if (!(talk->bytes > 0)) return DL_OK;
    if (replica->message_count == w->capacity) more_messages(w);
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
    replica->message_count++;
    if (!(hidden_frac > 0)) replica->least_wait_s += own->message.duration_s;
    const struct dl_predict_options *options = replica->request->options;
    if (options != NULL && options->brief) return DL_OK;
    own->message.name = dl_arena_printf(replica->request->arena, "%s of %s%s", own->message.name,
                                        w->whole->layers[layer].name, backward ? " backward" : "");
    return DL_OK;
}

enum dl_code dl_split_add_collective(struct dl_split_context *w, enum dl_collective_op op,
                                     double elements, int layer, bool backward,
                                     struct dl_err *err) {
    const struct dl_framework *framework = w->replica->request->framework;
    const struct dl_group_message talk = {
        .op = op,
        .library = sums(op) && framework->activations.reduce_library >= 0
                       ? framework->activations.reduce_library
                       : framework->activations.activation_library,
        .bytes = w->replica->samples * elements * w->width_bytes,
        .group = (int64_t)w->split->parts,
        .host_s = framework->activations.activation_s +
                  framework->activations.activation_peer_s * w->split->parts,
        .copies = framework->activations.activation_copies,
    };
    /* Gathered copies stay in memory, next to the layers' own, until backward. */
    if (talk.bytes > w->replica->buffer_bytes) w->replica->buffer_bytes = talk.bytes;
    return dl_split_add_message(w, &talk, layer, backward, 0, err);
}

static enum dl_collective_op filter_backward(const struct dl_framework *framework) {
    static const enum dl_collective_op ops[] = {
        [DL_FILTER_ALL_REDUCE] = DL_COLL_ALL_REDUCE,
        [DL_FILTER_REDUCE_SCATTER] = DL_COLL_REDUCE_SCATTER,
        [DL_FILTER_ALL_TO_ALL] = DL_COLL_ALL_TO_ALL,
    };
    /* the bound sends no more than each device needs */
    return dl_framework_is_bound(framework) ? DL_COLL_REDUCE_SCATTER
                                            : ops[framework->activations.filter_backward];
}

static const struct dl_split_behaviour *behaviour_of(const struct dl_split_context *w) {
    static const struct dl_split_behaviour general = {.halos = NULL};
    const struct dl_split_behaviour *own = w->replica->request->framework->behaviour->split;
    return own != NULL ? own : &general;
}

static bool is_detached(const struct dl_split_context *w, int index) {
    const struct dl_split_behaviour *own = behaviour_of(w);
    return w->whole->layers[index].detached ||
           (own->last_untrained != NULL && index <= own->last_untrained(w));
}

static enum dl_code walk_layer(struct dl_split_context *w, int index, bool backward,
                               struct dl_err *err) {
    const struct dl_split_behaviour *own = behaviour_of(w);
    const struct dl_layer *layer = &w->whole->layers[index];
    const double outputs = dl_shape_elements(&layer->out), inputs = dl_shape_elements(&layer->in);
    if (!w->is_split[index]) return DL_OK;
    switch (w->split->kind) {
    case DL_SPLIT_FILTER:
        if (!backward)
            return dl_split_add_collective(w, DL_COLL_ALL_GATHER, outputs, index, false, err);
        if (index == w->last) return DL_OK;
        return dl_split_add_collective(w, filter_backward(w->replica->request->framework), outputs,
                                       index, true, err);
    case DL_SPLIT_CHANNEL:
        if (!backward)
            return dl_split_add_collective(w, DL_COLL_ALL_REDUCE, outputs, index, false, err);
        if (layer->first || is_detached(w, index)) return DL_OK;
        return dl_split_add_collective(w, DL_COLL_ALL_GATHER, inputs, index, true, err);
    default:
        DL_TRY(own->halos != NULL ? own->halos(w, index, backward, err)
                                  : dl_split_add_halos(w, index, backward, err));
        if (!w->is_gathered[index]) return DL_OK;
        if (!backward)
            return dl_split_add_collective(w, DL_COLL_ALL_GATHER, outputs, index, false, err);
        return own->gathered_backward != NULL ? own->gathered_backward(w, index, err) : DL_OK;
    }
}

/* Which layers are split, and what follows from it. */
static void find_layers(struct dl_split_context *w) {
    const struct dl_workload *whole = w->whole;
    struct dl_arena *arena = w->replica->request->arena;
    const size_t layers = (size_t)whole->layer_count;
    w->is_split = dl_arena_alloc(arena, layers, sizeof *w->is_split);
    w->is_gathered = dl_arena_alloc(arena, layers, sizeof *w->is_gathered);
    dl_split_layers(whole, w->split, w->is_split);
    w->last = -1;
    for (int i = 0; i < whole->layer_count; i++) {
        const struct dl_layer *layer = &whole->layers[i];
        if (w->is_split[i]) w->last = i;
        for (int k = 0; !w->is_split[i] && k < layer->input_count; k++)
            if (layer->inputs[k] >= 0) w->is_gathered[layer->inputs[k]] = true;
    }
}

static void detach(const struct dl_split_context *w, struct dl_workload *local) {
    const size_t count = (size_t)local->layer_count;
    if (behaviour_of(w)->last_untrained == NULL) return;
    struct dl_layer *layers = dl_arena_alloc(w->replica->request->arena, count, sizeof *layers);
    memcpy(layers, local->layers, count * sizeof *layers);
    for (int i = 0; i < local->layer_count; i++) layers[i].detached = is_detached(w, i);
    local->layers = layers;
}

/* The network of one device. */
static struct dl_workload *make_local(const struct dl_split_context *w) {
    const struct dl_predict_request *r = w->replica->request;
    struct dl_workload *local = dl_arena_alloc(r->arena, 1, sizeof *local);
    dl_split_workload(r->workload, w->split, w->is_split, r->arena, local);
    w->replica->workload = local;
    detach(w, local);
    return local;
}

enum dl_code dl_split_replica_split(struct dl_replica *replica, const struct dl_split *split,
                                    struct dl_err *err) {
    const struct dl_predict_request *r = replica->request;
    struct dl_split_context w = {.replica = replica,
                                 .split = split,
                                 .whole = r->workload,
                                 .width_bytes = dl_precision_bytes(r->plan->precision)};
    const int layers = w.whole->layer_count;
    find_layers(&w);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < layers; k++) {
            const bool backward = pass == 1;
            DL_TRY(walk_layer(&w, backward ? layers - 1 - k : k, backward, err));
            if (dl_replica_is_beyond(r, replica->least_wait_s)) return DL_OK;
        }
    }
    struct dl_workload *local = make_local(&w);
    const struct dl_split_behaviour *own = behaviour_of(&w);
    return own->input != NULL ? own->input(&w, local, err) : DL_OK;
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
