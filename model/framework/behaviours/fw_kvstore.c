/* fw_kvstore.c - MXNet's KVStore: each array (key) is reduced and returned separately, as soon as
 * its gradient is ready; the next forward pass of a layer waits for its own keys only.
 *
 * F-FW-KVSTORE-DEVICE ("device"): each key has a merge GPU, chosen to balance the load; peers copy
 * to it and back, so that each link carries (g-1)/g of the bytes in each direction. Without peer
 * access the copies go through the host. F-FW-KVSTORE-SERVER ("dist_sync"): local reduction on the
 * host, push to servers, update there when all workers have pushed, pull, local broadcast. A key
 * below big_key_elements is stored whole on server (key * 9973) mod P; larger ones are split
 * evenly. Stages of different keys overlap: the slowest sets the pace. Source: mxnet-source
 * (comm.h, kvstore_dist.h). Not modelled: priorities of the engine, bulking, asynchronous servers.
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/shared_host.h"

static void describe(const struct dl_gradient_sync_request *r, struct dl_message *m, int g,
                     const double *stages_s, int stage_count) {
    double sum_s = 0, slowest_s = 0;
    for (int i = 0; i < stage_count; i++) {
        sum_s += stages_s[i];
        slowest_s = fmax(slowest_s, stages_s[i]);
    }
    m->bytes = r->gradients[g].bytes;
    m->first = g;
    m->count = 1;
    m->ready_s = r->gradients[g].ready_s;
    m->latency_s = r->framework->sync.messages.message_s;
    m->bandwidth_s = slowest_s;
    m->duration_s = m->latency_s + slowest_s;
    m->tail_s = sum_s - slowest_s;
    m->sigma_log = 0.25; /* engine and copy costs are not calibrated */
    m->origin = "model";
    m->returns = true;
}

static const char *refuse_device(const struct dl_system *system, const struct dl_plan *plan) {
    (void)system;
    return plan->nodes > 1
               ? "the 'device' store works inside one node: use --nodes 1 or mxnet-dist-sync"
               : NULL;
}

static enum dl_code synchronize_device(const struct dl_gradient_sync_request *r,
                                       struct dl_gradient_sync *out, struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    const struct dl_link *intra = &r->system->intra;
    const bool direct = r->system->has_intra && intra->peer_to_peer;
    const double rate =
        direct ? intra->bandwidth_bytes_per_s : 1 / dl_gradient_sync_host_copy_s(r, 1, true);
    if (!dl_known(rate)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s lacks links.intra or host.copy_bandwidth_bytes_per_s",
                       r->system->name);
    }
    DL_TRY(dl_gradient_sync_messages(r, r->gradient_count, out, err));
    for (int g = 0; g < r->gradient_count; g++) {
        struct dl_message *m = &out->messages[g];
        const double one_way_s = r->gradients[g].bytes * (devices - 1) / devices / rate;
        const double stages_s[] = {2 * one_way_s};
        describe(r, m, g, stages_s, 1);
        m->name = "reduce and broadcast";
        m->algorithm = direct ? "merge GPU per key" : "merge through host";
        m->formula = "F-FW-KVSTORE-DEVICE";
        m->limit = "intra";
    }
    out->wait_each = true;
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_kvstore_device = {
    .name = "kvstore-device",
    .old_name = "keyed-device",
    .summary = "each array reduced on a merge GPU and broadcast, overlapped with backward and next "
               "forward",
    .source = "mxnet-source",
    .refuse = refuse_device,
    .synchronize = synchronize_device,
};

/* Bytes of the fullest of P servers / mean. Key numbers follow registration order. */
static double key_imbalance(const struct dl_gradient_sync_request *r) {
    enum { COUNTED = 4096 }; /* with more servers, keys practically never share one */
    double load[COUNTED] = {0};
    const int64_t servers = r->plan->nodes;
    if (servers <= 1 || r->total_bytes <= 0) return 1;
    double split = 0, largest = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        const int64_t key = r->gradient_count - 1 - g, server = (key * 9973) % servers;
        if (r->gradients[g].elements >= r->framework->sync.kvstore.big_key_elements) {
            split += r->gradients[g].bytes / (double)servers;
        } else if (servers <= COUNTED) {
            load[server] += r->gradients[g].bytes;
            largest = fmax(largest, load[server]);
        } else {
            largest = fmax(largest, r->gradients[g].bytes);
        }
    }
    return (largest + split) * (double)servers / r->total_bytes;
}

static enum dl_code synchronize_server(const struct dl_gradient_sync_request *r,
                                       struct dl_gradient_sync *out, struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node, workers = (double)r->plan->nodes;
    const bool gpus = r->system->device->kind == DL_DEVICE_GPU;
    const double imbalance = key_imbalance(r);
    const double network = dl_gradient_sync_server_s_per_byte(r, imbalance);
    /* one core: stages overlap neither with each other nor with compute */
    const bool carried = dl_shared_host_carries(r->system);
    double copy = gpus ? dl_gradient_sync_host_copy_s(r, 1, true) : 0;
    double sum = devices > 1 ? dl_gradient_sync_host_sum_s(r, 1, devices) : 0;
    const double apply =
        carried
            ? 0
            : (dl_gradient_sync_host_sum_s(r, 1, workers) + dl_gradient_sync_host_sum_s(r, 1, 2)) *
                  imbalance / workers;
    /* dist_device_sync: reduce on GPUs, one copy per node */
    if (gpus && !r->framework->sync.kvstore.host_staged && r->system->has_intra) {
        copy = 1 / r->system->host.copy_bandwidth_bytes_per_s;
        sum = 2 * (devices - 1) / devices / r->system->intra.bandwidth_bytes_per_s;
    }
    if (!dl_known(network) || !dl_known(copy) || !dl_known(sum) || !dl_known(apply)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s lacks links.inter, host.copy_bandwidth_bytes_per_s or "
                       "host.memory_bandwidth_bytes_per_s, which servers need",
                       r->system->name);
    }
    DL_TRY(dl_gradient_sync_messages(r, r->gradient_count, out, err));
    for (int g = 0; g < r->gradient_count; g++) {
        struct dl_message *m = &out->messages[g];
        const double bytes = r->gradients[g].bytes;
        /* copy out, reduce, push, apply, pull, copy in; push and pull use the two directions of the
         * link */
        const double stages_s[] = {copy * bytes,  sum * bytes,     network * bytes,
                                   apply * bytes, network * bytes, copy * bytes};
        describe(r, m, g, stages_s, 6);
        if (carried) {
            m->ready_s = r->backward_end_s;
            m->duration_s += m->tail_s, m->bandwidth_s += m->tail_s, m->tail_s = 0;
        }
        m->name = "push and pull";
        m->algorithm = "keys on servers";
        m->formula = "F-FW-KVSTORE-SERVER";
        m->limit = network >= copy && network >= sum ? "inter" : "intra";
    }
    /* the server updates on the same core */
    out->wait_each = out->update_remote = !carried;
    out->bound = "parameter-server";
    return DL_OK;
}

static const char *const required[] = {"big_key_elements", NULL};

const struct dl_framework_behaviour dl_fw_kvstore_server = {
    .name = "kvstore-server",
    .old_name = "keyed-server",
    .summary = "each array pushed to servers and pulled, overlapped with backward and next forward",
    .source = "mxnet-source",
    .required = required,
    .synchronize = synchronize_server,
};
