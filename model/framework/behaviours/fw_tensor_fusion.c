/* fw_tensor_fusion.c - Horovod: a background thread wakes every cycle, fuses what is ready and
 * reduces it.
 *
 * F-FW-TICKS. A gradient that is ready at r is seen at the next tick; ranks agree on the ready set
 * (negotiation); all that is ready is fused in order up to fusion_bytes, a larger tensor goes
 * alone. The phase of ticks against the iteration is unknown: the first tick is taken half a cycle
 * after the first gradient, its mean. With a host library the framework copies every tensor to the
 * host and back, at message_s each. Source: horovod-source (operations.cc).
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/framework/gradient_sync.h"

/* A job's processes that reach other nodes by NCCL's sockets agree through sockets too. */
static bool through_sockets(const struct dl_gradient_sync_request *r) {
    const struct dl_link *inter = &r->system->inter;
    return !inter->rdma ||
           (r->library == DL_LIB_NCCL && dl_known(inter->nccl_bandwidth_bytes_per_s));
}

/* Ranks agree through rank 0: between nodes a round per doubling of them; what ranks of one node
 * cost is not seen in runs. */
static double control_s(const struct dl_gradient_sync_request *r) {
    const struct dl_framework *framework = r->framework;
    const bool slow = framework->socket_negotiation_s > 0 && through_sockets(r);
    return (slow ? framework->socket_negotiation_s : framework->negotiation_s) *
           ceil(log2((double)r->plan->nodes));
}

/* Tick at which everything up to `ready_s` has been seen, at or after `from_s`. */
static double next_tick(double from_s, double ready_s, double cycle_s) {
    if (ready_s <= from_s) return from_s;
    return from_s + cycle_s * ceil((ready_s - from_s) / cycle_s - 1e-9);
}

static enum dl_code exchange(const struct dl_gradient_sync_request *r, struct dl_gradient_sync *out,
                             struct dl_err *err) {
    const double cycle_s = r->framework->cycle_s, limit = r->framework->fusion_bytes;
    const double agreed_s = control_s(r);
    const bool host_copies =
        r->library != DL_LIB_NCCL && strcmp(r->system->device->kind, "gpu") == 0;
    DL_TRY(dl_gradient_sync_messages(r, r->gradient_count, out, err));
    out->message_count = 0;
    double tick_s = r->gradient_count > 0 ? r->gradients[0].ready_s + cycle_s / 2 : 0;
    double copied_bytes = 0;
    for (int g = 0; g < r->gradient_count;) {
        tick_s = next_tick(tick_s, r->gradients[g].ready_s, cycle_s);
        /* All that is ready at this tick, in groups of at most `limit` bytes. */
        while (g < r->gradient_count && r->gradients[g].ready_s <= tick_s) {
            struct dl_message *group = &out->messages[out->message_count++];
            group->first = g;
            double bytes = 0;
            do {
                bytes += r->gradients[g++].bytes;
            } while (g < r->gradient_count && r->gradients[g].ready_s <= tick_s &&
                     bytes + r->gradients[g].bytes <= limit);
            group->count = g - group->first;
            group->ready_s = tick_s + agreed_s;
            DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, bytes, group, err));
            /* the framework brings each tensor to the host and back before and after */
            if (host_copies) {
                const double copies_s = 2 * group->count * r->framework->message_s;
                group->latency_s += copies_s;
                group->duration_s += copies_s;
            }
            if (group->count > 1) copied_bytes += bytes;
        }
        tick_s += fmax(cycle_s, agreed_s);
    }
    /* into the fusion buffer and back */
    out->device_copy_s = dl_gradient_sync_device_stream_s(r, 4 * copied_bytes);
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_fused_ticks = {
    .name = "fused-ticks",
    .polls = true,
    .timing_dependent = true,
    .summary = "every cycle all ready gradients are fused up to a threshold and reduced, "
               "overlapped with backward",
    .source = "horovod-source",
    .exchange = exchange,
};
