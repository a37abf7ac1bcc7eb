/* fw_concatenated.c - tf.distribute Mirrored and MultiWorkerMirrored, ChainerMN: gradients are
 * concatenated into one tensor or a few.
 *
 * F-FW-CONCATENATED. pack_bytes = 0: one tensor, so that the all-reduce starts after the last
 * gradient and nothing overlaps. Otherwise a new tensor begins when the previous one exceeds
 * pack_bytes, or after pack_tensors variables, and each is reduced when its last gradient is ready.
 * Concatenating and splitting read and write all bytes of tensors that hold several gradients
 * twice, unless gradients are computed in place (scoped allocator); a division of its own does so
 * once. Source: tf-source
 * (cross_device_ops.py, cross_device_utils.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

/* Counts the concatenated tensors; fills `messages` unless it is NULL. */
static int concatenate(const struct dl_gradient_sync_request *r, struct dl_message *messages) {
    const double limit = r->framework->sync.concatenated.pack_bytes;
    const int tensors = (int)r->framework->sync.concatenated.pack_tensors;
    const bool overlaps = r->framework->sync.overlaps_backward;
    double bytes = 0;
    int count = 0, first = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        bytes += r->gradients[g].bytes;
        const bool last = g == r->gradient_count - 1;
        /* packs of variables begin with the first one, gradients with the last */
        const bool full =
            tensors > 0 ? (r->gradient_count - 1 - g) % tensors == 0 : limit > 0 && bytes > limit;
        if (!last && !full) continue;
        if (messages != NULL) {
            messages[count].first = first;
            messages[count].count = g + 1 - first;
            messages[count].bytes = bytes;
            messages[count].ready_s = overlaps ? r->gradients[g].ready_s : r->backward_end_s;
        }
        count++;
        first = g + 1;
        bytes = 0;
    }
    return count;
}

/* Slowdown of each of two collectives that share the adapters: none where the library alone does
 * not fill half of them. */
static double two_flows(const struct dl_gradient_sync_request *r) {
    const struct dl_link *inter = &r->system->inter;
    const bool limited = r->library == DL_LIB_NCCL && dl_known(inter->nccl_bandwidth_bytes_per_s);
    return limited ? fmax(1, 2 * inter->nccl_bandwidth_bytes_per_s / inter->bandwidth_bytes_per_s)
                   : 2;
}

/* Gradients of spatial replicas that are summed in each replica first (F-GROUP-SUMS): then over the
 * first devices of all replicas, and at the same time over all their other devices, which share the
 * adapters. Both all-reduces carry all bytes. */
static enum dl_code sum_twice(const struct dl_gradient_sync_request *r, struct dl_message *message,
                              struct dl_err *err) {
    const int64_t group = r->plan->replica_devices, in_node = r->plan->devices_per_node;
    struct dl_gradient_sync_request part = *r;
    struct dl_plan plan = *r->plan;
    struct dl_message across;
    part.plan = &plan;
    plan.nodes = 1, plan.devices_per_node = plan.dp = group;
    DL_TRY(dl_gradient_sync_collective(&part, DL_COLL_ALL_REDUCE, message->bytes, message, err));
    plan.nodes = r->plan->nodes;
    plan.devices_per_node = in_node / group * (group - 1);
    plan.dp = plan.nodes * plan.devices_per_node;
    part.flows_per_adapter = two_flows(r);
    DL_TRY(dl_gradient_sync_collective(&part, DL_COLL_ALL_REDUCE, message->bytes, &across, err));
    across.latency_s += message->latency_s;
    across.bandwidth_s += message->bandwidth_s;
    across.duration_s += message->duration_s;
    across.formula = "F-GROUP-SUMS";
    across.ready_s = message->ready_s;
    across.first = message->first, across.count = message->count;
    *message = across;
    return DL_OK;
}

/* Whether sum_twice() applies: replicas of several devices of a node that hold all weights. */
static bool sums_twice(const struct dl_gradient_sync_request *r) {
    const struct dl_plan *plan = r->plan;
    return r->framework->activations.group_sums_first && plan->replica_devices > 1 &&
           plan->tp <= 1 && plan->devices_per_node % plan->replica_devices == 0 &&
           plan->nodes * plan->devices_per_node > plan->replica_devices;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    DL_TRY(dl_gradient_sync_messages(r, concatenate(r, NULL), out, err));
    concatenate(r, out->messages);
    const bool twice = sums_twice(r);
    double copied_bytes = 0;
    for (int m = 0; m < out->message_count; m++) {
        struct dl_message *message = &out->messages[m];
        DL_TRY(twice ? sum_twice(r, message, err)
                     : dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, message->bytes, message,
                                                   err));
        if (message->count > 1) copied_bytes += (twice ? 2 : 1) * message->bytes;
    }
    /* read and written on the way in, and on the way out */
    const double copies = r->framework->sync.concatenated.in_place ? 0 : 4,
                 divisions = r->framework->sync.concatenated.divides ? 2 : 0;
    out->device_copy_s =
        dl_gradient_sync_device_stream_s(r, copies * copied_bytes + divisions * r->total_bytes);
    return DL_OK;
}

static const char *const required[] = {"pack_bytes", NULL};

const struct dl_framework_behaviour dl_fw_concatenated = {
    .name = "concatenated",
    .old_name = "packed",
    .summary = "gradients concatenated into one tensor or a few, each reduced when complete",
    .source = "tf-source",
    .required = required,
    .synchronize = synchronize,
};
