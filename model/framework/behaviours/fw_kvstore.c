/* fw_kvstore.c - MXNet's KVStore: each array (key) is reduced and returned separately, as soon as
 * its gradient is ready; the next forward pass of a layer waits for its own keys only.
 *
 * F-FW-KVSTORE-DEVICE ("device"): each key is summed and updated on its owner, one GPU of the node,
 * and copied back (key_owners.h). F-FW-KVSTORE-SERVER ("dist_sync"): reduction in the node, on the
 * host (host_staged) or on the key's owner ("dist_device_sync"), copy to the host, push to servers
 * (servers.h), update there when all workers have pushed, pull, and the way back. A key below
 * big_key_elements is stored whole on one server; larger ones are split evenly over all. Stages of
 * different keys overlap; with serial_keys a key leaves the GPUs before the next is summed (v0.10,
 * which waits for each key in Push). Source: mxnet-source (comm.h, kvstore_dist.h). Not modelled:
 * priorities of the engine, bulking, asynchronous servers.
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"
#include "model/framework/key_owners.h"
#include "model/framework/servers.h"
#include "model/framework/shared_host.h"

/* What all messages have in common: gradient g occupies the lane for `busy_s`, and its weights are
 * usable at `usable_s`. *lane_s: when the lane is free again. */
static void describe(const struct dl_gradient_sync_request *r, struct dl_message *m, int g,
                     double busy_s, double usable_s, double *lane_s) {
    m->bytes = r->gradients[g].bytes;
    m->first = g;
    m->count = 1;
    m->ready_s = r->gradients[g].ready_s;
    m->latency_s = fmin(busy_s, r->framework->sync.messages.message_s);
    m->duration_s = busy_s;
    m->bandwidth_s = busy_s - m->latency_s;
    *lane_s = fmax(*lane_s, m->ready_s) + busy_s;
    m->tail_s = usable_s - *lane_s;
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
    enum { MANY = 1 << 28 }; /* bytes, so that a launch does not count */
    struct dl_key_owners owners;
    DL_TRY(dl_key_owners_of(r, &owners, err));
    dl_gradient_sync_messages(r, r->gradient_count, out);
    const double message_s = r->framework->sync.messages.message_s,
                 slots = ceil((double)owners.devices / owners.per_slot);
    const double update_s =
        dl_gradient_sync_device_stream_s(
            r, dl_update_bytes_per_parameter(r->plan->optimizer, DL_FP32) / 4 * MANY) /
        MANY;
    double lane_s = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        struct dl_message *m = &out->messages[g];
        const double bytes = r->gradients[g].bytes;
        const double usable_s = message_s + update_s * bytes +
                                dl_key_owner_pass(&owners, g, bytes, 2, r->gradients[g].ready_s);
        /* slots work side by side */
        const double busy_s = message_s + 2 * dl_key_owner_copy_s(&owners, g, bytes) / slots;
        describe(r, m, g, busy_s, usable_s, &lane_s);
        m->name = "reduce and broadcast";
        m->algorithm = owners.peers > 0 ? "owner GPU per key" : "owner GPU per key, through host";
        m->formula = "F-FW-KVSTORE-DEVICE";
        m->limit = owners.peers > 0 ? "intra" : "host-copy";
    }
    out->per_layer_wait = out->update_remote = true;
    return DL_OK;
}

static const char *const device_keys[] = {"message_s", NULL};

const struct dl_framework_behaviour dl_fw_kvstore_device = {
    .name = "kvstore-device",
    .old_name = "keyed-device",
    .summary = "each array summed and updated on one GPU and copied back, overlapped with backward "
               "and next forward",
    .source = "mxnet-source",
    .refuse = refuse_device,
    .keys = device_keys,
    .synchronize = synchronize_device,
};

struct policy {
    bool host_staged; /* devices of a node are summed on the host, not on a GPU */
    bool serial_keys; /* a key is summed and copied out before the next one begins */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, host_staged, BOOL,
             .help = "gradients of a node's GPUs are summed in host memory"),
    DL_FIELD(struct policy, serial_keys, BOOL,
             .help = "a key is summed and copied to the host before the next one begins"),
    {.key = NULL},
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
        if (r->gradients[g].elements >= r->framework->sync.big_key_elements) {
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

/* One core carries all messages: stages overlap neither with each other nor with compute, and the
 * server updates on the same core. */
static enum dl_code synchronize_carried(const struct dl_gradient_sync_request *r,
                                        struct dl_gradient_sync *out, struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    const double network = dl_gradient_sync_server_s_per_byte(r, key_imbalance(r)),
                 sum = devices > 1 ? dl_gradient_sync_host_sum_s(r, 1, devices) : 0;
    if (!dl_known(network) || !dl_known(sum)) {
        return dl_fail(err, DL_ERR_INPUT, "system %s lacks host.memory_bandwidth_bytes_per_s",
                       r->system->name);
    }
    double lane_s = r->backward_end_s;
    for (int g = 0; g < r->gradient_count; g++) {
        struct dl_message *m = &out->messages[g];
        const double busy_s =
            r->framework->sync.messages.message_s + (2 * network + sum) * r->gradients[g].bytes;
        describe(r, m, g, busy_s, lane_s + busy_s, &lane_s);
        m->ready_s = r->backward_end_s;
        m->tail_s = 0;
        m->name = "push and pull";
        m->algorithm = "keys on servers";
        m->formula = "F-FW-KVSTORE-SERVER";
        m->limit = r->plan->nodes > 1 ? "inter" : "host";
    }
    out->bound = "parameter-server";
    return DL_OK;
}

/* The way of keys inside a node: seconds per byte, and when each stage is free. */
struct node_way {
    bool owned, serial; /* summed on owners; one key after the other */
    double sum_s, copy_s;
    double sum_free_s, out_free_s, in_free_s;
    struct dl_key_owners owners, back;
};

static enum dl_code node_way_of(const struct dl_gradient_sync_request *r, struct node_way *way,
                                struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    const bool gpus = r->system->device->kind == DL_DEVICE_GPU;
    const struct policy *own = DL_OWN(struct policy, r->framework);
    *way = (struct node_way){.serial = own->serial_keys};
    way->owned = gpus && !own->host_staged && r->system->has_intra;
    /* one copy of the sum leaves the owner; else one of each device */
    way->copy_s = way->owned ? 1 / r->system->host.copy_bandwidth_bytes_per_s
                  : gpus     ? dl_gradient_sync_host_copy_s(r, 1, true)
                             : 0;
    if (!way->owned && devices > 1) way->sum_s = dl_gradient_sync_host_sum_s(r, 1, devices);
    if (way->owned) {
        DL_TRY(dl_key_owners_of(r, &way->owners, err));
        DL_TRY(dl_key_owners_of(r, &way->back, err));
    }
    if (dl_known(way->copy_s) && dl_known(way->sum_s)) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT,
                   "system %s lacks host.copy_bandwidth_bytes_per_s or "
                   "host.memory_bandwidth_bytes_per_s, which servers need",
                   r->system->name);
}

/* When the node's sum of gradient g is in the host's memory. */
static double to_host(struct node_way *way, int g, double bytes, double ready_s) {
    if (way->serial) ready_s = fmax(ready_s, way->out_free_s);
    if (way->owned) ready_s = dl_key_owner_pass(&way->owners, g, bytes, 1, ready_s);
    way->out_free_s = fmax(ready_s, way->out_free_s) + way->copy_s * bytes;
    if (way->owned) return way->out_free_s;
    way->sum_free_s = fmax(way->out_free_s, way->sum_free_s) + way->sum_s * bytes;
    return way->sum_free_s;
}

/* When all devices have the weights that the host has at `ready_s`. */
static double from_host(struct node_way *way, int g, double bytes, double ready_s) {
    way->in_free_s = fmax(ready_s, way->in_free_s) + way->copy_s * bytes;
    return way->owned ? dl_key_owner_pass(&way->back, g, bytes, 1, way->in_free_s) : way->in_free_s;
}

static enum dl_code synchronize_server(const struct dl_gradient_sync_request *r,
                                       struct dl_gradient_sync *out, struct dl_err *err) {
    struct node_way way;
    struct dl_servers servers;
    struct dl_server_queue push, pull;
    dl_gradient_sync_messages(r, r->gradient_count, out);
    if (dl_host_cores_carry_messages(r->system)) return synchronize_carried(r, out, err);
    DL_TRY(node_way_of(r, &way, err));
    DL_TRY(dl_servers_of(r, &servers, err));
    dl_server_queue_init(&servers, false, r->arena, &push);
    dl_server_queue_init(&servers, true, r->arena, &pull);
    const int *server_of = dl_servers_assign(r, &servers, r->framework->sync.big_key_elements);
    double lane_s = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        struct dl_message *m = &out->messages[g];
        const double bytes = r->gradients[g].bytes;
        double start_s, sent_s, asked_s, end_s;
        const double summed_s = to_host(&way, g, bytes, r->gradients[g].ready_s);
        /* the server updates when the last worker's has come: variable and sum in, variable out */
        const double updated_s =
            dl_server_queue_pass(&push, server_of[g], bytes, summed_s, &start_s, &sent_s) +
            dl_servers_sum_s(r, bytes, 2);
        const double back_s =
            dl_server_queue_pass(&pull, server_of[g], bytes, updated_s, &asked_s, &end_s);
        describe(r, m, g, sent_s - start_s, from_host(&way, g, bytes, back_s), &lane_s);
        m->name = "push and pull";
        m->algorithm = "keys on servers";
        m->formula = "F-FW-KVSTORE-SERVER";
        const bool copies = 2 * way.copy_s * bytes > sent_s - start_s + end_s - asked_s;
        m->limit = copies ? "host-copy" : r->plan->nodes > 1 ? "inter" : "host";
    }
    out->per_layer_wait = out->update_remote = true;
    out->bound = "parameter-server";
    return DL_OK;
}

static const char *const server_keys[] = {
    "big_key_elements", "message_s",        "servers_colocated", "server_assignment",
    "send_bytes_per_s", "flow_bytes_per_s", "sum_bytes_per_s",   NULL};
static const char *const required[] = {"big_key_elements", NULL};

const struct dl_framework_behaviour dl_fw_kvstore_server = {
    .name = "kvstore-server",
    .old_name = "keyed-server",
    .summary = "each array pushed to servers and pulled, overlapped with backward and next forward",
    .source = "mxnet-source",
    .has_servers = true,
    .keys = server_keys,
    .fields = fields,
    .required = required,
    .synchronize = synchronize_server,
};
