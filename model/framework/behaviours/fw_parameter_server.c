/* fw_parameter_server.c - TensorFlow's between-graph parameter servers, synchronous, one server on
 * each worker's node.
 *
 * F-FW-PS. Variables are placed on servers round-robin, whole. A step pulls every variable (forward
 * waits for each before its layer) and pushes every gradient as it is computed; the server adds the
 * workers' gradients and updates; the step ends when all are applied. No fusion: one message a
 * variable each way. On one node the server is the host (variables on the CPU, copies over PCIe)
 * or, with placement "gpu", the devices themselves. Source: tf-source (device_setter.py),
 * tf-benchmarks. Spare workers (--backup-workers) pull and push as the others do; what is theirs
 * alone, who is waited for and which samples count, is in replica.c (F-BACKUP). Not modelled here:
 * asynchronous updates.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/shared_host.h"

/* Largest server's bytes / mean, variables dealt round-robin in registration order. */
static double round_robin_imbalance(const struct dl_gradient_sync_request *r) {
    if (r->plan->nodes <= 1 || r->total_bytes <= 0) return 1;
    const int used = r->plan->nodes < r->gradient_count ? (int)r->plan->nodes : r->gradient_count;
    double largest = 0;
    for (int s = 0; s < used; s++) {
        double sum = 0;
        /* gradients are in reverse registration order */
        for (int g = s; g < r->gradient_count; g += used) {
            sum += r->gradients[r->gradient_count - 1 - g].bytes;
        }
        largest = fmax(largest, sum);
    }
    return largest * (double)r->plan->nodes / r->total_bytes;
}

struct rates {
    double local_s_per_byte;  /* devices of a node <-> where the node keeps the variable */
    double server_s_per_byte; /* network */
    double sum_s_per_byte;    /* adding the gradients of the node's devices */
    double apply_s_per_byte;  /* adding the workers' and updating, on the server, its share */
    const char *limit, *algorithm;
};

static enum dl_code find_rates(const struct dl_gradient_sync_request *r, struct rates *rates,
                               struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node, workers = (double)r->plan->nodes;
    const bool on_gpu =
        r->plan->variable_placement != NULL && strcmp(r->plan->variable_placement, "gpu") == 0;
    const bool gpu_device = strcmp(r->system->device->kind, "gpu") == 0;
    memset(rates, 0, sizeof *rates);
    rates->limit = "intra";
    rates->algorithm = "parameter server (host)";
    /* variables spread over the node's devices: each sends its share to the others */
    if (on_gpu && r->system->has_intra) {
        rates->local_s_per_byte = (devices - 1) / devices / r->system->intra.bandwidth_bytes_per_s;
        rates->algorithm = "parameter server (gpu)";
    } else if (gpu_device) {
        rates->local_s_per_byte = dl_gradient_sync_host_copy_s(r, 1, true);
        rates->sum_s_per_byte = devices > 1 ? dl_gradient_sync_host_sum_s(r, 1, devices) : 0;
    }
    rates->server_s_per_byte = dl_gradient_sync_server_s_per_byte(r, round_robin_imbalance(r));
    if (rates->server_s_per_byte > rates->local_s_per_byte) rates->limit = "inter";
    if ((!on_gpu || workers > 1) && !dl_shared_host_carries(r->system)) {
        /* W gradients added and one update (read w and g, write w) over the servers' memories. */
        rates->apply_s_per_byte =
            (dl_gradient_sync_host_sum_s(r, 1, workers) + dl_gradient_sync_host_sum_s(r, 1, 2)) *
            round_robin_imbalance(r) / workers;
    }
    if (!dl_known(rates->local_s_per_byte) || !dl_known(rates->server_s_per_byte) ||
        !dl_known(rates->apply_s_per_byte) || !dl_known(rates->sum_s_per_byte)) {
        return dl_fail(
            err, DL_ERR_INPUT,
            "system %s lacks host.copy_bandwidth_bytes_per_s, "
            "host.memory_bandwidth_bytes_per_s or links.inter, which parameter servers need",
            r->system->name);
    }
    return DL_OK;
}

static void fill(const struct dl_gradient_sync_request *r, const struct rates *rates,
                 struct dl_message *m, double bytes) {
    const double stages[] = {rates->local_s_per_byte * bytes, rates->server_s_per_byte * bytes,
                             rates->sum_s_per_byte * bytes};
    const double sum_s = stages[0] + stages[1] + stages[2];
    const double slowest_s = fmax(fmax(stages[0], stages[1]), stages[2]);
    m->bytes = bytes;
    /* Between nodes a remote call; inside one, the host queues one copy for each device. */
    m->latency_s = r->plan->nodes > 1 ? r->framework->message_s
                                      : r->framework->replica_s * (double)r->plan->devices_per_node;
    /* variables flow through the stages one after the other: the slowest sets the pace */
    m->bandwidth_s = slowest_s;
    m->duration_s = m->latency_s + m->bandwidth_s;
    m->tail_s = sum_s - slowest_s;
    m->count = 1;
    /* whole-message copies and RPC costs are not calibrated (frameworks.md 11.1) */
    m->sigma_log = 0.25;
    m->algorithm = rates->algorithm;
    m->formula = "F-FW-PS";
    m->limit = rates->limit;
    m->origin = "model";
}

static enum dl_code exchange(const struct dl_gradient_sync_request *r, struct dl_gradient_sync *out,
                             struct dl_err *err) {
    struct rates rates;
    DL_TRY(find_rates(r, &rates, err));
    const int count = r->gradient_count;
    DL_TRY(dl_gradient_sync_messages(r, 2 * count, out, err));
    /* one core: messages do not overlap with compute */
    const bool carried = dl_shared_host_carries(r->system);
    double tail_s = 0;
    for (int g = 0; g < count; g++) {
        struct dl_message *push = &out->messages[g];
        fill(r, &rates, push, r->gradients[g].bytes);
        push->name = "push";
        push->first = g;
        push->ready_s = carried ? r->backward_end_s : r->gradients[g].ready_s;
        tail_s = push->tail_s + rates.apply_s_per_byte * push->bytes;
    }
    /* The next step's pulls start when the last gradient was applied; adding and updating run
     * beside the pushes as long as the servers' memory keeps up. */
    const double late_s =
        fmax(0, rates.apply_s_per_byte * r->total_bytes -
                    (r->backward_end_s - (count > 0 ? r->gradients[0].ready_s : 0)));
    for (int g = 0; g < count; g++) {
        struct dl_message *pull = &out->messages[count + g];
        const int from = count - 1 - g; /* first layers first */
        struct rates down = rates;
        down.sum_s_per_byte = 0;
        fill(r, &down, pull, r->gradients[from].elements * 4);
        pull->name = "pull";
        pull->first = from;
        pull->returns = true;
        if (g == 0) { /* the barrier of the step sits before the first pull */
            pull->ready_s = r->backward_end_s;
            pull->duration_s += tail_s + late_s;
            pull->latency_s += tail_s + late_s;
        }
    }
    /* the server's update is one on the same core */
    out->wait_each = out->update_remote = !carried;
    out->bound = "parameter-server";
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_parameter_server = {
    .name = "parameter-server",
    .takes_backup_workers = true,
    .summary = "whole variables on servers round-robin; every step pulls all and pushes all, "
               "synchronously",
    .source = "tf-source",
    .exchange = exchange,
};
