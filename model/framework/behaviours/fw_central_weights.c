/* fw_central_weights.c - Keras multi_gpu_model: one set of weights, read by every GPU each step.
 *
 * F-FW-CENTRAL. The weights live on the host, or on the first GPU when the model was built
 * outside a device scope (weights_on_device). In each step every device copies all weights from
 * their home before the layers that use them, and sends each gradient back once it is computed;
 * the home of the weights adds the g gradients and updates. The step is one graph run, so that
 * pulls start after the update. Copies of all devices share the host's links; those from the
 * first GPU use its links, and the host where it has no link to a device (F-COPY-STAR). One
 * process issues all copies, one after the other, at message_s each (staged_message_s through
 * the host), while its towers wait. Source: keras-source (multi_gpu_utils.py). */
#include <math.h>
#include <stddef.h>

#include "model/network/libraries/coll_copy.h"
#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"

struct policy {
    /* host time of one message where device memory goes through the host; 0: as message_s */
    double staged_message_s;
    bool weights_on_device; /* central weights live on the first GPU, not the host */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, staged_message_s, NUMBER, DL_RANGE(0, 1, DL_UNIT_S),
             .has_fallback = true,
             .help = "host time of one message between devices that only the host connects; 0: "
                     "message_s"),
    DL_FIELD(struct policy, weights_on_device, BOOL,
             .help = "central weights live on the first device instead of the host"),
    {.key = NULL},
};

static const char *refuse(const struct dl_system *system, const struct dl_plan *plan) {
    if (plan->nodes > 1) return "one process drives the GPUs of one node: use --nodes 1";
    if (system->device->kind == DL_DEVICE_CPU) return "needs GPUs";
    return NULL;
}

/* Where the weights live: cost of a byte on its way and on arrival, and host time to issue the
 * copies of one tensor. */
struct home {
    double way_s_per_byte, apply_s_per_byte, others, issue_s;
    const char *algorithm, *formula, *limit, *push, *pull;
};

static enum dl_code on_host(const struct dl_gradient_sync_request *r, struct home *home,
                            struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    *home = (struct home){.way_s_per_byte = dl_gradient_sync_host_copy_s(r, 1, true),
                          .others = devices,
                          .issue_s = devices * r->framework->sync.messages.message_s,
                          .algorithm = "host copy",
                          .apply_s_per_byte = dl_gradient_sync_host_sum_s(r, 1, devices) +
                                              dl_gradient_sync_host_sum_s(r, 1, 2),
                          .formula = "F-COPY-HOST",
                          .limit = "host-copy",
                          .push = "gradient to host",
                          .pull = "weights from host"};
    if (dl_known(home->way_s_per_byte) && dl_known(home->apply_s_per_byte)) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT,
                   "system %s lacks host.copy_bandwidth_bytes_per_s or "
                   "host.memory_bandwidth_bytes_per_s, which "
                   "copies through the host need",
                   r->system->name);
}

static enum dl_code on_device(const struct dl_gradient_sync_request *r, struct home *home,
                              struct dl_err *err) {
    enum { MIB = 1 << 20 };
    const double devices = (double)r->plan->devices_per_node;
    const double staged = (double)dl_copy_staged_devices(r->system, r->plan->devices_per_node);
    const double message_s = r->framework->sync.messages.message_s,
                 staged_s = fmax(message_s, DL_OWN(struct policy, r->framework)->staged_message_s);
    struct dl_cost_parts star;
    /* reads of g gradients, a write of their sum, the update: over the bytes of the weights */
    const double passes =
        devices + 1 + dl_update_bytes_per_parameter(r->plan->optimizer, DL_FP32) / 4;
    if (!dl_copy_star_cost(r->system, r->plan->devices_per_node, 1, &star)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s has no bandwidth between the devices of a node: set links.intra "
                       "or host.copy_bandwidth_bytes_per_s",
                       r->system->name);
    }
    *home =
        (struct home){.way_s_per_byte = star.bandwidth_s,
                      .others = devices - 1,
                      .algorithm = "copies of one device",
                      .issue_s = (devices - 1 - staged) * message_s + staged * staged_s,
                      .apply_s_per_byte = dl_gradient_sync_device_stream_s(r, passes * MIB) / MIB,
                      .formula = "F-COPY-STAR",
                      .limit = dl_copy_limit(r->system, r->plan->devices_per_node),
                      .push = "gradient to first device",
                      .pull = "weights from first device"};
    return DL_OK;
}

static void describe(const struct home *home, struct dl_message *m, double bytes) {
    m->bytes = bytes * home->others;
    m->count = 1;
    m->bandwidth_s = m->duration_s = home->way_s_per_byte * bytes;
    /* assumed: spread of pageable and pinned host copies on shared PCIe links */
    m->sigma_log = 0.2;
    m->algorithm = home->algorithm;
    m->formula = home->formula;
    m->limit = home->limit;
    m->origin = "model";
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    struct home home = {0};
    if (DL_OWN(struct policy, r->framework)->weights_on_device)
        DL_TRY(on_device(r, &home, err));
    else
        DL_TRY(on_host(r, &home, err));
    const int count = r->gradient_count;
    dl_gradient_sync_messages(r, 2 * count, out);
    double update_s = 0;
    for (int g = 0; g < count; g++) { /* gradients to their home, as they come */
        struct dl_message *push = &out->messages[g];
        describe(&home, push, r->gradients[g].bytes);
        push->name = home.push;
        push->first = g;
        push->ready_s = r->gradients[g].ready_s;
        update_s += home.apply_s_per_byte * r->gradients[g].bytes;
    }
    for (int g = 0; g < count; g++) { /* weights to the devices, first layers first */
        const int from = count - 1 - g;
        struct dl_message *pull = &out->messages[count + g];
        describe(&home, pull, r->gradients[from].elements * 4);
        pull->name = home.pull;
        pull->first = from;
        pull->returns = true;
        pull->ready_s = g == 0 ? r->backward_end_s + update_s : 0; /* in order after the first */
    }
    out->per_layer_wait = true;
    out->update_remote = true;
    out->host_s = 2 * count * home.issue_s;
    return DL_OK;
}

static const char *const keys[] = {"message_s", NULL};

const struct dl_framework_behaviour dl_fw_central_weights = {
    .name = "central-weights",
    .summary = "weights live on the host or the first GPU; every GPU reads them and sends "
               "gradients back each step",
    .source = "keras-source",
    .keys = keys,
    .fields = fields,
    .refuse = refuse,
    .synchronize = synchronize,
};
