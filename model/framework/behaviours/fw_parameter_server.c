/* fw_parameter_server.c - TensorFlow's between-graph parameter servers, synchronous.
 *
 * F-FW-PS. A variable sits whole on one server; where big_key_elements is given, a partitioner
 * splits larger ones evenly over all. A step pulls every variable (each layer's forward
 * pass waits for its own) and pushes every gradient once it is computed; the server adds the
 * workers' gradients and updates; the step ends when all are applied. No fusion: one message per
 * variable in each direction. Between nodes messages queue at workers and servers (servers.h,
 * F-PS-QUEUE), behind the copies of the node's devices to the host. On one node the server is the
 * host (variables on the CPU, copies over PCIe) or, with parameter device "gpu", the devices
 * themselves. Source: tf-source (device_setter.py), tf-benchmarks. Backup workers
 * (--backup-workers) pull and push as the others do; which workers a step waits for and which
 * samples count is in F-BACKUP. Not modelled: asynchronous updates.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/servers.h"
#include "model/framework/shared_host.h"
#include "model/network/path.h"

/* Bytes of the largest server / mean; variables are assigned round-robin in registration order. */
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
    double local_s_per_byte;  /* devices of a node <-> the node's copy of the variable */
    double server_s_per_byte; /* network */
    double sum_s_per_byte;    /* sum of the gradients of the node's devices */
    double apply_s_per_byte;  /* sum and update in the host's memory, on one node */
    const char *limit, *algorithm;
};

static enum dl_code find_rates(const struct dl_gradient_sync_request *r, struct rates *rates,
                               struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    const bool on_gpu = r->plan->parameter_servers.variable_placement != NULL &&
                        strcmp(r->plan->parameter_servers.variable_placement, "gpu") == 0;
    const bool gpu_device = r->system->device->kind == DL_DEVICE_GPU;
    memset(rates, 0, sizeof *rates);
    rates->limit = "intra";
    rates->algorithm = "parameter server (host)";
    /* variables are spread over the node's devices: each sends its share to the others */
    if (on_gpu && r->system->has_intra) {
        rates->local_s_per_byte = (devices - 1) / devices / dl_path_device_bytes_per_s(r->system);
        rates->algorithm = "parameter server (gpu)";
    } else if (gpu_device) {
        rates->local_s_per_byte = dl_gradient_sync_host_copy_s(r, 1, true);
        rates->limit = "host-copy";
        rates->sum_s_per_byte = devices > 1 ? dl_gradient_sync_host_sum_s(r, 1, devices) : 0;
    }
    rates->server_s_per_byte = dl_gradient_sync_server_s_per_byte(r, round_robin_imbalance(r));
    if (rates->server_s_per_byte > rates->local_s_per_byte) rates->limit = "inter";
    /* Adding the worker's gradient and updating (read w and g, write w) run in the host's memory;
     * on the network the servers do it (servers.h). */
    if ((!on_gpu || r->plan->nodes > 1) && !dl_host_cores_carry_messages(r->system)) {
        rates->apply_s_per_byte =
            dl_gradient_sync_host_sum_s(r, 1, 1) + dl_gradient_sync_host_sum_s(r, 1, 2);
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
    m->latency_s = r->plan->nodes > 1
                       ? r->framework->sync.messages.message_s
                       : r->framework->sync.replica_s * (double)r->plan->devices_per_node;
    /* stages of different variables overlap: the slowest sets the pace */
    m->bandwidth_s = slowest_s;
    m->duration_s = m->latency_s + m->bandwidth_s;
    m->tail_s = sum_s - slowest_s;
    m->count = 1;
    /* assumed: costs of whole-message copies and RPCs are not calibrated */
    m->sigma_log = 0.25;
    m->algorithm = rates->algorithm;
    m->formula = "F-FW-PS";
    m->limit = rates->limit;
    m->origin = "model";
}

/* A message between worker and server that queues: from when its worker sends it until it is usable
 * `local_s` after it has arrived. Servers answer one worker after the other (F-PS-SKEW). */
static double queue_message(struct dl_server_queue *queue, int server, double bytes, double ready_s,
                            double local_s, struct dl_message *m) {
    double start_s, sent_s;
    const double arrived_s = dl_server_queue_pass(queue, server, bytes, ready_s, &start_s, &sent_s);
    *m = (struct dl_message){
        .bytes = bytes,
        .count = 1,
        .ready_s = start_s,
        .duration_s = sent_s - start_s,
        .latency_s = queue->servers->worker_message_s,
        .bandwidth_s = sent_s - start_s - queue->servers->worker_message_s,
        .tail_s = arrived_s - sent_s + local_s,
        .lead_s = queue->pull ? dl_server_pull_skew_s(queue, server, bytes, sent_s, arrived_s) : 0,
        .sigma_log = 0.25, /* as in fill() */
        .algorithm = "parameter server (queue)",
        .formula = "F-PS-QUEUE",
        .limit = "inter",
        .origin = "model"};
    return arrived_s;
}

/* Servers on the network. */
static enum dl_code synchronize_network(const struct dl_gradient_sync_request *r,
                                        const struct rates *rates, struct dl_gradient_sync *out,
                                        struct dl_err *err) {
    struct dl_servers servers;
    struct dl_server_queue push, pull;
    DL_TRY(dl_servers_of(r, &servers, err));
    dl_server_queue_init(&servers, false, r->arena, &push);
    dl_server_queue_init(&servers, true, r->arena, &pull);
    const double split = r->framework->sync.big_key_elements;
    const int *server_of = dl_servers_assign(r, &servers, split > 0 ? split : NAN);
    push.skew_s = r->lead_s;
    const int count = r->gradient_count;
    const double copy_s = fmax(rates->local_s_per_byte, rates->sum_s_per_byte);
    double copied_s = 0, applied_s = r->backward_end_s;
    for (int g = 0; g < count; g++) {
        const double bytes = r->gradients[g].bytes;
        struct dl_message *m = &out->messages[g];
        copied_s = fmax(copied_s, r->gradients[g].ready_s) + copy_s * bytes;
        const double arrived_s = queue_message(&push, server_of[g], bytes, copied_s, 0, m);
        /* read variable and gradient, write the variable */
        applied_s = fmax(applied_s, arrived_s + dl_servers_sum_s(r, bytes, 2));
        m->name = "push";
        m->first = g;
    }
    /* the barrier: a token from the servers' queue */
    const double barrier_s = applied_s + 2 * servers.worker_message_s;
    for (int g = 0; g < count; g++) {
        const int from = count - 1 - g; /* first layers first */
        const double bytes = r->gradients[from].elements * 4;
        struct dl_message *m = &out->messages[count + g];
        queue_message(&pull, server_of[from], bytes, barrier_s, rates->local_s_per_byte * bytes, m);
        m->name = "pull";
        m->first = from;
        m->returns = true;
    }
    out->per_layer_wait = out->update_remote = true;
    out->bound = "parameter-server";
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    struct rates rates;
    DL_TRY(find_rates(r, &rates, err));
    const int count = r->gradient_count;
    dl_gradient_sync_messages(r, 2 * count, out);
    /* one core: messages do not overlap with compute */
    const bool carried = dl_host_cores_carry_messages(r->system);
    if (!carried && (r->plan->nodes > 1 || !dl_servers_colocated(r->framework, r->plan)))
        return synchronize_network(r, &rates, out, err);
    double tail_s = 0, pushed_s = 0;
    for (int g = 0; g < count; g++) {
        struct dl_message *push = &out->messages[g];
        fill(r, &rates, push, r->gradients[g].bytes);
        push->name = "push";
        push->first = g;
        push->ready_s = carried ? r->backward_end_s : r->gradients[g].ready_s;
        tail_s = push->tail_s + rates.apply_s_per_byte * push->bytes;
        pushed_s += push->duration_s;
    }
    /* The next step's pulls start after the last gradient was applied; adding and updating overlap
     * with the pushes, which take as long as backward or the copies, as long as the servers' memory
     * keeps up. */
    const double backward_s = r->backward_end_s - (count > 0 ? r->gradients[0].ready_s : 0),
                 late_s = fmax(0, rates.apply_s_per_byte * r->total_bytes -
                                      fmax(backward_s, carried ? 0 : pushed_s));
    for (int g = 0; g < count; g++) {
        struct dl_message *pull = &out->messages[count + g];
        const int from = count - 1 - g; /* first layers first */
        struct rates down = rates;
        down.sum_s_per_byte = 0;
        fill(r, &down, pull, r->gradients[from].elements * 4);
        pull->name = "pull";
        pull->first = from;
        pull->returns = true;
        if (g == 0) { /* the barrier of the step is before the first pull */
            pull->ready_s = r->backward_end_s;
            pull->duration_s += tail_s + late_s;
            pull->latency_s += tail_s + late_s;
        }
    }
    /* the server updates on the same core */
    out->per_layer_wait = out->update_remote = !carried;
    out->bound = "parameter-server";
    return DL_OK;
}

/* keys of a framework file that this behaviour reads and not all do */
static const char *const keys[] = {"big_key_elements",  "message_s",         "replica_s",
                                   "servers_colocated", "server_assignment", "send_bytes_per_s",
                                   "flow_bytes_per_s",  "sum_bytes_per_s",   NULL};

const struct dl_framework_behaviour dl_fw_parameter_server = {
    .name = "parameter-server",
    .takes_backup_workers = true,
    .has_servers = true,
    .summary = "whole variables on servers; each step pulls and pushes all of them, "
               "synchronously",
    .source = "tf-source",
    .keys = keys,
    .synchronize = synchronize,
};
