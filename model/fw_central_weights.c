/* fw_central_weights.c - Keras multi_gpu_model: one set of weights on the host, read by every GPU each step.
 *
 * F-FW-CENTRAL. Each step every device copies all weights from the host before the layers that use them, and sends every gradient
 * back as it is computed; the host adds the g gradients and updates. The step is one graph run, so that pulls start when the
 * update is done. Copies of all devices share the host's links. Source: keras-source (multi_gpu_utils.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/exchange.h"

static const char *refuse(const struct dl_system *system, const struct dl_plan *plan) {
    if (plan->nodes > 1) return "one process drives the GPUs of one node: use --nodes 1";
    if (system->device->kind != NULL && system->device->kind[0] == 'c') return "needs GPUs";
    return NULL;
}

static void describe(const struct dl_exchange_request *r, struct dl_message *m, const char *name, double bytes,
                     double seconds) {
    m->name = name;
    m->bytes = bytes;
    m->latency_s = r->framework->message_s;
    m->bandwidth_s = seconds;
    m->duration_s = m->latency_s + m->bandwidth_s;
    m->sigma_log = 0.2; /* spread of pageable and pinned host copies on shared PCIe links (hardware.md section 6) */
    m->algorithm = "host copy";
    m->formula = "F-COPY-HOST";
    m->limit = "intra";
    m->origin = "model";
}

static enum dl_code exchange(const struct dl_exchange_request *r, struct dl_exchange *out, struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    if (!dl_known(dl_exchange_host_copy_s(r, 1, true)) || !dl_known(dl_exchange_host_sum_s(r, 1, 1))) {
        return dl_fail(err, DL_ERR_INPUT, "system %s lacks host.copy_bandwidth_bytes_per_s or "
                       "host.memory_bandwidth_bytes_per_s, which copies through the host need", r->system->name);
    }
    const int count = r->gradient_count;
    DL_TRY(dl_exchange_messages(r, 2 * count, out, err));
    double update_s = 0;
    for (int g = 0; g < count; g++) { /* gradients to the host, as they come */
        const double bytes = r->gradients[g].bytes;
        struct dl_message *push = &out->messages[g];
        describe(r, push, "gradient to host", bytes * devices, dl_exchange_host_copy_s(r, bytes, true));
        push->first = g;
        push->count = 1;
        push->ready_s = r->gradients[g].ready_s;
        update_s += dl_exchange_host_sum_s(r, bytes, devices) + dl_exchange_host_sum_s(r, bytes, 2);
    }
    for (int g = 0; g < count; g++) { /* weights to the devices, first layers first */
        const int from = count - 1 - g;
        const double bytes = r->gradients[from].elements * 4;
        struct dl_message *pull = &out->messages[count + g];
        describe(r, pull, "weights from host", bytes * devices, dl_exchange_host_copy_s(r, bytes, true));
        pull->first = from;
        pull->count = 1;
        pull->returns = true;
        pull->ready_s = r->backward_end_s + (g == 0 ? update_s : 0);
        if (g > 0) pull->ready_s = 0; /* in order after the first */
    }
    out->wait_each = true;
    out->update_remote = true;
    out->host_s = r->framework->replicate_s * (devices - 1);
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_central_weights = {
    .name = "central-weights",
    .summary = "weights live on the host; every GPU reads them and sends gradients back each step",
    .source = "keras-source",
    .refuse = refuse,
    .exchange = exchange,
};
