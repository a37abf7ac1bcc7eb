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
#include "model/network/path.h"

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
    struct dl_path_adapter own, any;
    dl_path_adapter_of(r->system, dl_libraries[r->library]->has_own_rate, &own);
    dl_path_adapter_of(r->system, false, &any);
    return fmax(1, 2 * own.bytes_per_s / any.bytes_per_s);
}

/* How the devices of replicas sum (F-GROUP-SUMS), where the framework groups the first devices of
 * all replicas, and all their other devices: two all-reduces of all bytes across nodes at the same
 * time, which share the adapters. Where a replica's devices hold the same weights (spatial), they
 * sum among themselves before. */
enum groups { GROUPS_NONE, GROUPS_ACROSS, GROUPS_INSIDE_AND_ACROSS };

static enum groups groups_of(const struct dl_gradient_sync_request *r) {
    const struct dl_plan *plan = r->plan;
    const int64_t group = plan->replica_devices;
    if (!r->framework->activations.group_sums_first || group <= 1) return GROUPS_NONE;
    if (plan->devices_per_node % group != 0) return GROUPS_NONE;
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
    dl_gradient_sync_messages(r, concatenate(r, NULL), out);
    concatenate(r, out->messages);
    const enum groups groups = groups_of(r);
    const double sums = groups == GROUPS_INSIDE_AND_ACROSS ? 2 : 1;
    double copied_bytes = 0;
    for (int m = 0; m < out->message_count; m++) {
        struct dl_message *message = &out->messages[m];
        DL_TRY(groups != GROUPS_NONE ? sum_in_groups(r, groups, message, err)
                                     : dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE,
                                                                   message->bytes, message, err));
        if (message->count > 1) copied_bytes += sums * message->bytes;
    }
    /* read and written on the way in, and on the way out */
    const double copies = r->framework->sync.concatenated.in_place ? 0 : 4,
                 divisions = r->framework->sync.concatenated.divides ? 2 : 0;
    out->device_copy_s =
        dl_gradient_sync_device_stream_s(r, copies * copied_bytes + divisions * r->total_bytes);
    return DL_OK;
}

/* keys of a framework file that this behaviour reads and not all do */
static const char *const keys[] = {"pack_bytes", "pack_tensors",     "in_place",
                                   "divides",    "group_sums_first", NULL};

static const char *const required[] = {"pack_bytes", NULL};

const struct dl_framework_behaviour dl_fw_concatenated = {
    .name = "concatenated",
    .old_name = "packed",
    .summary = "gradients concatenated into one tensor or a few, each reduced when complete",
    .source = "tf-source",
    .keys = keys,
    .required = required,
    .synchronize = synchronize,
};
