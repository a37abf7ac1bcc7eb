/* servers.c - see servers.h. F-PS-QUEUE */
#include "model/framework/servers.h"
#include "model/network/path.h"

#include <math.h>

int64_t dl_server_count(const struct dl_plan *plan) {
    return plan->parameter_servers.count > 0 ? plan->parameter_servers.count : plan->nodes;
}

bool dl_servers_colocated(const struct dl_framework *framework, const struct dl_plan *plan) {
    return framework->sync.messages.servers_colocated && plan->parameter_servers.nodes == NULL;
}

static const struct dl_system *system_of_servers(const struct dl_gradient_sync_request *r) {
    return r->plan->parameter_servers.nodes != NULL ? r->plan->parameter_servers.nodes : r->system;
}

double dl_servers_sum_s(const struct dl_gradient_sync_request *r, double bytes, double terms) {
    struct dl_gradient_sync_request there = *r;
    there.system = system_of_servers(r);
    return dl_gradient_sync_host_sum_s(&there, bytes, terms);
}

/* Seconds per byte of a rate that may be absent: no limit. */
static double inverse(double bytes_per_s) {
    return dl_known(bytes_per_s) && bytes_per_s > 0 ? 1 / bytes_per_s : 0;
}

/* Seconds per byte of a node's adapters; 0 inside one node, NAN when the system has none. */
static double adapter_s_per_byte(const struct dl_system *system, bool leaves_node) {
    return leaves_node ? 1 / dl_path_node_bytes_per_s(system) : 0;
}

enum dl_code dl_servers_of(const struct dl_gradient_sync_request *r, struct dl_servers *out,
                           struct dl_err *err) {
    const struct dl_plan *plan = r->plan;
    const double nodes = (double)plan->nodes;
    const double count = (double)dl_server_count(plan), workers = nodes;
    const bool colocated = dl_servers_colocated(r->framework, plan);
    /* nodes that run servers, and how many the fullest of them runs */
    const double hosts = colocated ? fmin(nodes, count) : count, per_host = ceil(count / hosts);
    /* A worker without a server on its node sends everything away; with one on each, each keeps
     * its share. */
    const double leaving = colocated && count >= nodes ? (nodes - 1) / nodes : 1,
                 others = colocated ? workers - 1 : workers;
    const double receive_s = inverse(r->framework->sync.messages.message_copy_bytes_per_s),
                 send_s = inverse(r->framework->sync.messages.send_bytes_per_s),
                 sum_s = inverse(r->framework->sync.messages.sum_bytes_per_s);
    const struct dl_system *there = system_of_servers(r);
    const bool leaves = nodes > 1 || !colocated;
    const double adapter_s = adapter_s_per_byte(r->system, leaves),
                 server_adapter_s = adapter_s_per_byte(there, leaves),
                 memory_s = dl_servers_sum_s(r, 1, workers) * per_host;
    const double message_s = r->framework->sync.messages.message_s;
    if (!dl_known(adapter_s) || !dl_known(server_adapter_s) || !dl_known(memory_s)) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s lacks links.inter or host.memory_bandwidth_bytes_per_s, which "
                       "parameter servers need",
                       dl_known(adapter_s) ? there->name : r->system->name);
    }
    /* servers of a network of their own share no leaf with the workers */
    const double first = colocated ? 0 : nodes,
                 uplinks =
                     there == r->system ? dl_path_server_load(r->system, workers, first, hosts) : 0,
                 at_uplink = uplinks > 0 ? dl_path_server_load(r->system, workers, first, 1) : 0,
                 at_server_s = fmax(others * per_host, at_uplink) * server_adapter_s;
    *out = (struct dl_servers){
        .count = (int)count,
        .workers = workers,
        .worker_push_s_per_byte = fmax(fmax(leaving, uplinks) * adapter_s, send_s),
        .worker_pull_s_per_byte = fmax(fmax(leaving, uplinks) * adapter_s, receive_s),
        .server_push_s_per_byte =
            fmax(fmax(at_server_s, memory_s), workers * fmax(receive_s, sum_s)),
        .server_pull_s_per_byte = fmax(at_server_s, workers * send_s),
        .worker_message_s = message_s,
        .server_message_s = message_s * workers,
        .flow_s_per_byte = leaves ? inverse(r->framework->sync.messages.flow_bytes_per_s) : 0,
    };
    return DL_OK;
}

/* A heap of servers with the least loaded at its root; of equal loads the first. */
static bool is_before(const double *load, int a, int b) {
    return load[a] < load[b] || (!(load[b] < load[a]) && a < b);
}

/* After the load of the root has grown. */
static void sink_root(const double *load, int *heap, int count) {
    const int server = heap[0];
    int at = 0;
    for (int next = 1; next < count; next = 2 * at + 1) {
        if (next + 1 < count && is_before(load, heap[next + 1], heap[next])) next++;
        if (!is_before(load, heap[next], server)) break;
        heap[at] = heap[next];
        at = next;
    }
    heap[at] = server;
}

int *dl_servers_assign(const struct dl_gradient_sync_request *r, const struct dl_servers *servers,
                       double split_elements) {
    const int count = servers->count;
    int *server_of = dl_arena_alloc(r->arena, (size_t)r->gradient_count + 1, sizeof *server_of);
    double *load = dl_arena_alloc(r->arena, (size_t)count, sizeof *load);
    int *heap = dl_arena_alloc(r->arena, (size_t)count, sizeof *heap);
    const bool least_loaded =
        r->framework->sync.messages.server_assignment == DL_SERVERS_LEAST_LOADED;
    for (int s = 0; s < count; s++) load[s] = 0, heap[s] = s;
    for (int k = 0; k < r->gradient_count; k++) {
        const int g = r->gradient_count - 1 - k; /* gradients are in reverse registration order */
        const struct dl_gradient *gradient = &r->gradients[g];
        if (dl_known(split_elements) && gradient->elements >= split_elements) {
            server_of[g] = DL_SERVER_ALL;
            continue;
        }
        switch (r->framework->sync.messages.server_assignment) {
        case DL_SERVERS_LEAST_LOADED: server_of[g] = heap[0]; break;
        case DL_SERVERS_HASHED: server_of[g] = (int)((int64_t)k * 9973 % count); break;
        default: server_of[g] = k % count; break;
        }
        load[server_of[g]] += gradient->bytes;
        if (least_loaded) sink_root(load, heap, count);
    }
    return server_of;
}

void dl_server_queue_init(const struct dl_servers *servers, bool pull, struct dl_arena *arena,
                          struct dl_server_queue *out) {
    *out = (struct dl_server_queue){.servers = servers, .pull = pull};
    out->server_free_s = dl_arena_alloc(arena, (size_t)servers->count, sizeof(double));
    for (int s = 0; s < servers->count; s++) out->server_free_s[s] = 0;
}

/* Of the messages of all workers with one part of a variable. */
static double at_server_s(const struct dl_server_queue *queue, double part_bytes) {
    const struct dl_servers *servers = queue->servers;
    return servers->server_message_s + part_bytes * (queue->pull ? servers->server_pull_s_per_byte
                                                                 : servers->server_push_s_per_byte);
}

double dl_server_pull_skew_s(const struct dl_server_queue *queue, int server, double bytes,
                             double sent_s, double arrived_s) {
    const struct dl_servers *servers = queue->servers;
    const double parts = server == DL_SERVER_ALL ? servers->count : 1,
                 others_s = (1 - 1 / servers->workers) * at_server_s(queue, bytes / parts);
    return fmax(0, fmin(others_s, arrived_s - sent_s));
}

double dl_server_queue_pass(struct dl_server_queue *queue, int server, double bytes, double ready_s,
                            double *start_s, double *sent_s) {
    const struct dl_servers *servers = queue->servers;
    const bool all = server == DL_SERVER_ALL;
    const int first = all ? 0 : server, last = all ? servers->count - 1 : server;
    const double parts = last - first + 1;
    const double at_worker_s = parts * servers->worker_message_s +
                               bytes * (queue->pull ? servers->worker_pull_s_per_byte
                                                    : servers->worker_push_s_per_byte),
                 each_s = at_server_s(queue, bytes / parts);
    double at_server_from_s = ready_s;
    /* All pulls are requested at once; a server answers them one after the other. Pushes leave in
     * the order of the worker. */
    if (queue->pull && !all) at_server_from_s = fmax(ready_s, queue->server_free_s[server]);
    *start_s = fmax(at_server_from_s, queue->worker_free_s);
    if (!queue->pull) at_server_from_s = fmax(0, *start_s - queue->skew_s);
    *sent_s = queue->worker_free_s = *start_s + at_worker_s;
    double arrived_s = fmax(*sent_s, *start_s + bytes / parts * servers->flow_s_per_byte);
    /* a push of the last worker is not taken before it is sent */
    if (!queue->pull && servers->workers > 0)
        arrived_s = fmax(arrived_s, *start_s + each_s / servers->workers);
    for (int s = first; s <= last; s++) {
        queue->server_free_s[s] = fmax(at_server_from_s, queue->server_free_s[s]) + each_s;
        arrived_s = fmax(arrived_s, queue->server_free_s[s]);
    }
    return arrived_s;
}
