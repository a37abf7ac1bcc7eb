/* fw_chainermn.c - ChainerMN and its fork ChainerMNX (ParaDL), as their code does it: keys, sums of
 * gradients, and what split replicas do in another way than split_replica.h.
 *
 * All gradients go into one tensor, which is summed after backward (F-FW-CONCATENATED).
 *
 * F-GROUP-SUMS. The framework groups the first devices of all replicas, and all their other
 * devices: two all-reduces of all bytes across nodes at the same time, which share the adapters.
 * Devices of a spatial replica hold the same weights and sum among themselves before.
 *
 * F-HALO-CHAIN. Synchronous sends that precede the receive: p devices in a line take 2 (p - 1)
 * messages one after the other. Every window is exchanged by half its size: forward by convolutions
 * and pools outside of residual blocks, backward by convolutions.
 *
 * F-INPUT-LEADER. The first device of a replica has read its samples and broadcasts the whole batch
 * through the hosts; every device copies it, and cuts its part out there.
 *
 * The gradient of a gathered activation returns by an all-to-all. In ChainerMNX of sc20 sums of
 * channel parallelism are detached from the graph: backward stops after the last split convolution.
 *
 * F-MANAGED. ChainerMNX allocates managed memory: MPI moves it through the host, and what does not
 * fit leaves the device and comes back once in a step, over the host link that devices share:
 * activations are read in the reverse of the order in which they were written, so the rest stays.
 * Source: chainermn-paradl. */
#include <math.h>
#include <string.h>

#include "model/engine/split_internal.h"
#include "model/framework/gradient_sync.h"
#include "model/network/path.h"
#include "model/workload/layer.h"

struct policy {
    bool managed_memory;
    bool channel_detached;
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, managed_memory, BOOL,
             .help = "managed memory is allocated: MPI moves it through the host, and what does "
                     "not fit pages"),
    DL_FIELD(struct policy, channel_detached, BOOL,
             .help = "sums of channel parallelism are detached from the graph: backward stops at "
                     "the last of them"),
    {.key = NULL},
};

static const struct policy *own(const struct dl_framework *framework) {
    return DL_OWN(struct policy, framework);
}

/* Slowdown of each of two collectives that share the adapters: none where the library alone does
 * not fill half of them. */
static double two_flows(const struct dl_gradient_sync_request *r) {
    struct dl_path_adapter own, any;
    dl_path_adapter_of(r->system, dl_libraries[r->library]->has_own_rate, &own);
    dl_path_adapter_of(r->system, false, &any);
    return fmax(1, 2 * own.bytes_per_s / any.bytes_per_s);
}

/* F-GROUP-SUMS: how the devices of replicas sum. */
enum groups { GROUPS_NONE, GROUPS_ACROSS, GROUPS_INSIDE_AND_ACROSS };

static enum groups groups_of(const struct dl_gradient_sync_request *r) {
    const struct dl_plan *plan = r->plan;
    const int64_t group = plan->replica_devices;
    if (group <= 1 || plan->devices_per_node % group != 0) return GROUPS_NONE;
    if (plan->nodes * plan->devices_per_node == group) return GROUPS_NONE;
    return plan->tp > 1 ? GROUPS_ACROSS : GROUPS_INSIDE_AND_ACROSS;
}

static enum dl_code sum_in_groups(const struct dl_gradient_sync_request *r, enum groups groups,
                                  struct dl_message *message, struct dl_err *err) {
    const int64_t group = r->plan->replica_devices, in_node = r->plan->devices_per_node;
    struct dl_gradient_sync_request part = *r;
    struct dl_plan plan = *r->plan;
    struct dl_message inside = {0}, across = *message;
    part.plan = &plan;
    plan.tp = plan.sp = 1;
    plan.nodes = 1, plan.devices_per_node = plan.dp = group;
    if (groups == GROUPS_INSIDE_AND_ACROSS)
        DL_TRY(
            dl_gradient_sync_collective(&part, DL_COLL_ALL_REDUCE, message->bytes, &inside, err));
    plan.nodes = r->plan->nodes;
    plan.devices_per_node = in_node / group * (group - 1);
    plan.dp = plan.nodes * plan.devices_per_node;
    part.flows_per_adapter = two_flows(r);
    DL_TRY(dl_gradient_sync_collective(&part, DL_COLL_ALL_REDUCE, message->bytes, &across, err));
    across.latency_s += inside.latency_s;
    across.bandwidth_s += inside.bandwidth_s;
    across.duration_s += inside.duration_s;
    across.formula = "F-GROUP-SUMS";
    *message = across;
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const enum groups groups = groups_of(r);
    dl_gradient_sync_messages(r, r->gradient_count > 0 ? 1 : 0, out);
    if (r->gradient_count == 0) return DL_OK;
    struct dl_message *all = &out->messages[0];
    all->count = r->gradient_count;
    all->bytes = r->total_bytes;
    all->ready_s = r->backward_end_s;
    DL_TRY(groups != GROUPS_NONE
               ? sum_in_groups(r, groups, all, err)
               : dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, all->bytes, all, err));
    const double sums = groups == GROUPS_INSIDE_AND_ACROSS ? 2 : 1;
    if (all->count > 1)
        out->device_copy_s = dl_gradient_sync_device_stream_s(r, 4 * sums * all->bytes);
    return DL_OK;
}

/* Whether a layer lies in a residual block: between the first output that two layers read and the
 * last addition. */
static bool in_block(const struct dl_workload *whole, int index) {
    int fork = whole->layer_count, last_add = -1; /* no fork, no addition */
    for (int j = 0; j < whole->layer_count; j++) {
        const struct dl_layer *layer = &whole->layers[j];
        if (layer->kind == &dl_layer_add) last_add = j;
        /* an input that is not the layer before has a second reader, or leaves a branch open */
        for (int i = 0; i < layer->input_count; i++) {
            const int from = layer->inputs[i];
            if (from >= 0 && from < j - 1 && from < fork) fork = from;
        }
    }
    return index > fork && index < last_add;
}

static bool has_halo(const struct dl_split_context *w, int index, bool backward) {
    const struct dl_layer *layer = &w->whole->layers[index];
    if (layer->kind == &dl_layer_conv) return backward || !in_block(w->whole, index);
    return !backward && strstr(layer->kind->name, "pool") != NULL && !in_block(w->whole, index);
}

/* Elements that one device sends to one neighbour along `dim`: of the input (forward) or of the
 * gradient of the output. */
static double half_window(const struct dl_split_context *w, const struct dl_layer *layer, int dim,
                          bool backward) {
    const struct dl_shape *shape = backward ? &layer->out : &layer->in;
    double elements = shape->channels * floor(layer->window.kernel[dim] / 2);
    for (int d = 0; d < DL_DIMS; d++) {
        if (d != dim) elements *= ceil(shape->size[d] / w->split->grid[d]);
    }
    return elements;
}

static enum dl_code halos(struct dl_split_context *w, int index, bool backward,
                          struct dl_err *err) {
    const struct dl_activation_policy *policy = &w->replica->request->framework->activations;
    int64_t stride = 1;
    if (!has_halo(w, index, backward)) return DL_OK;
    for (int d = DL_DIMS - 1; d >= 0; d--) {
        const int64_t parts = (int64_t)w->split->grid[d];
        if (parts <= 1) continue;
        const struct dl_group_message halo = {
            .op = DL_COLL_P2P,
            .library = policy->activation_library,
            .bytes = w->replica->samples * half_window(w, &w->whole->layers[index], d, backward) *
                     w->width_bytes,
            .group = parts,
            .stride = stride,
            .host_s = policy->halo_message_s,
            .hops = 2 * (double)(parts - 1),
        };
        DL_TRY(dl_split_add_message(w, &halo, index, backward, 0, err));
        w->replica->buffer_bytes += 2 * halo.bytes;
        stride *= parts;
    }
    return DL_OK;
}

static enum dl_code gathered_backward(struct dl_split_context *w, int index, struct dl_err *err) {
    const double outputs = dl_shape_elements(&w->whole->layers[index].out);
    return dl_split_add_collective(w, DL_COLL_ALL_TO_ALL, outputs, index, true, err);
}

static int last_untrained(const struct dl_split_context *w) {
    int last = -1;
    if (w->split->kind != DL_SPLIT_CHANNEL ||
        !own(w->replica->request->framework)->channel_detached)
        return -1;
    for (int i = 0; i < w->whole->layer_count; i++)
        if (w->is_split[i] && w->whole->layers[i].kind == &dl_layer_conv) last = i;
    return last;
}

static enum dl_code input(const struct dl_split_context *w, struct dl_workload *local,
                          struct dl_err *err) {
    struct dl_replica *replica = w->replica;
    const struct dl_predict_request *r = replica->request;
    const struct dl_framework *framework = r->framework;
    const double bytes = replica->samples * r->workload->input_bytes_per_sample,
                 copy_bytes_per_s = framework->sync.messages.message_copy_bytes_per_s,
                 feed_bytes_per_s = framework->input.feed_bytes_per_s;
    const int64_t devices = r->plan->nodes * r->plan->devices_per_node,
                  group = (int64_t)w->split->parts;
    local->input_bytes_per_sample = r->workload->input_bytes_per_sample;
    if (!dl_known(bytes)) return DL_OK;
    const struct dl_collective_request wanted = {
        .op = DL_COLL_BROADCAST,
        .library = DL_LIB_MPI,
        .bytes = bytes,
        .nodes = r->plan->nodes,
        .ranks_per_node = r->plan->devices_per_node,
        .group_size = group < devices ? group : 0,
        .concurrent = devices / group,
    };
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(r->system, &wanted, &t, err));
    replica->input_extra_s = t.time_s;
    /* copied into the message and out of it */
    if (copy_bytes_per_s > 0) replica->input_extra_s += 2 * bytes / copy_bytes_per_s;
    /* the leader joins the samples of its batch before it sends them */
    if (feed_bytes_per_s > 0) replica->input_extra_s += bytes / feed_bytes_per_s;
    return DL_OK;
}

static bool is_managed(const struct dl_framework *framework) {
    return own(framework)->managed_memory;
}

static double paging_s(const struct dl_replica *replica, const struct dl_memory *memory) {
    const struct dl_gradient_sync_request x = {.system = replica->request->system,
                                               .plan = &replica->plan};
    const double excess_bytes = memory->total_bytes - memory->capacity_bytes;
    if (!(excess_bytes > 0)) return 0;
    const double one_way_s = dl_gradient_sync_host_copy_s(&x, excess_bytes, false);
    return dl_known(one_way_s) ? 2 * one_way_s : 0;
}

static struct dl_sync_buffer buffer(const struct dl_framework *framework, double gradient_bytes) {
    (void)framework;
    return (struct dl_sync_buffer){gradient_bytes, "concatenated gradients", NAN};
}

static const struct dl_split_behaviour split = {
    .halos = halos,
    .gathered_backward = gathered_backward,
    .last_untrained = last_untrained,
    .input = input,
    .is_managed = is_managed,
    .paging_s = paging_s,
};

const struct dl_framework_behaviour dl_fw_chainermn = {
    .name = "chainermn",
    .summary = "all gradients in one tensor after backward; replicas that are split within layers "
               "as in ChainerMNX",
    .source = "chainermn-paradl",
    .fields = fields,
    .split = &split,
    .leader_reads = true,
    .buffer = buffer,
    .synchronize = synchronize,
};
