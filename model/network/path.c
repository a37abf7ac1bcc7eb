/* path.c - see path.h. The fabric and the adapters (F-NETWORK). */
#include "model/network/path.h"

#include <math.h>
#include <string.h>

#include "model/machine/fair.h"

/* A staged byte is written to host memory and read again, in each direction. */
static const double STAGED_PASSES = 4.0;
/* Without GPUDirect, an adapter that shares a PCIe switch with the devices (PIX, PXB): its uplink
 * carries a copy and the adapter's own access in each direction. */
static const double SWITCH_PASSES = 2.0;
/* A dragonfly routes traffic between two groups over a third one (Kim et al. 2008): twice the bytes
 * on its global links. */
static const double DETOUR = 2.0;

static bool is_dragonfly(const struct dl_fabric *fabric) {
    return fabric->topology != NULL && strcmp(fabric->topology, "dragonfly") == 0;
}

/* Nodes of a leaf; HUGE_VAL: one leaf has all. */
static double leaf_nodes(const struct dl_system *system) {
    return system->has_fabric && system->fabric.nodes_per_leaf > 0
               ? (double)system->fabric.nodes_per_leaf
               : HUGE_VAL;
}

/* Line rate of all nodes of a leaf / rate of its uplinks. */
static double oversubscription_of(const struct dl_fabric *fabric) {
    const double ratio = fabric->oversubscription > 1.0 ? fabric->oversubscription : 1.0;
    return is_dragonfly(fabric) ? ratio * DETOUR : ratio;
}

/* The switches between leaves that the nodes span. */
static void add_fabric(const struct dl_system *system, double joined, struct dl_path *path) {
    const struct dl_fabric *fabric = &system->fabric;
    const struct dl_rank_group *group = &path->group;
    const double leaf = leaf_nodes(system),
                 stride = fmax(joined, group->node_stride > 1 ? (double)group->node_stride : 1.0),
                 span = group->span_nodes > 0 ? (double)group->span_nodes : path->nodes * stride;
    path->fabric_latency_s = 0.0, path->oversubscription = 1.0, path->uplink_load = 0.0;
    if (path->nodes <= 1.0 || span <= leaf) return;
    /* up and down, or to the global link, across it and on to the leaf */
    if (!isnan(fabric->hop_latency_s))
        path->fabric_latency_s = (is_dragonfly(fabric) ? 3.0 : 2.0) * fabric->hop_latency_s;
    path->oversubscription = oversubscription_of(fabric);
    /* with like groups on the nodes between, so many nodes of a leaf have their next neighbour on
     * another one */
    path->uplink_load = path->oversubscription * fmin(stride, leaf) / leaf;
}

double dl_path_adapter_bytes_per_s(const struct dl_path *path, double bytes_per_s) {
    return path->uplink_load > 1.0
               ? fmin(bytes_per_s, path->system->inter.bandwidth_bytes_per_s / path->uplink_load)
               : bytes_per_s;
}

static double overlap(double from, double to, double other_from, double other_to) {
    return fmax(0.0, fmin(to, other_to) - fmax(from, other_from));
}

double dl_path_server_load(const struct dl_system *system, double workers, double first_server,
                           double servers) {
    const double leaf = leaf_nodes(system), end = first_server + servers,
                 at[] = {0.0,      leaf, workers - 1.0, workers, first_server, first_server + leaf,
                         end - 1.0};
    double most = 0.0;
    if (fmax(workers, end) <= leaf) return 0.0;
    /* Leaves between these have as many workers and servers as one of them. */
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        const double from = floor(at[i] / leaf) * leaf, to = from + leaf,
                     mine = overlap(from, to, 0.0, workers),
                     share = overlap(from, to, first_server, end) / servers;
        most = fmax(most, fmax(mine * (1.0 - share), (workers - mine) * share));
    }
    return most * oversubscription_of(&system->fabric) / leaf;
}

static double adapters_of(const struct dl_system *system) {
    return system->inter.adapters_per_node > 1 ? (double)system->inter.adapters_per_node : 1.0;
}

int64_t dl_path_domain_nodes(const struct dl_system *system) {
    return system->has_intra && system->intra.domain_nodes > 1 ? system->intra.domain_nodes : 1;
}

void dl_path_of(const struct dl_system *system, const struct dl_rank_group *group,
                struct dl_path *out) {
    const double joined = group->domain_nodes > 1 ? (double)group->domain_nodes : 1.0;
    out->system = system, out->group = *group;
    out->nodes = (double)group->nodes, out->per_node = (double)group->ranks_per_node;
    out->ranks = out->nodes * out->per_node;
    out->adapter_count = adapters_of(system) * joined;
    out->rail_count = fmin(out->adapter_count, out->per_node);
    out->groups = fmax(1.0, group->flows_per_adapter) * out->adapter_count / out->rail_count;
    add_fabric(system, joined, out);
}

bool dl_path_adapter_of(const struct dl_system *system, bool own_rate,
                        struct dl_path_adapter *out) {
    const struct dl_link *link = &system->inter;
    const double own = own_rate ? link->nccl_bandwidth_bytes_per_s : NAN,
                 all = link->bandwidth_bytes_per_s;
    const char *distance = link->distance;
    *out = (struct dl_path_adapter){
        .count = adapters_of(system),
        .bytes_per_s = own > 0.0 ? fmin(own, all) : all,
        .latency_s = link->latency_s,
        .message_cpu_s = isnan(link->per_message_cpu_s) ? 0.0 : link->per_message_cpu_s,
        .flow_bytes_per_s = !link->rdma && link->flow_bandwidth_bytes_per_s > 0.0
                                ? link->flow_bandwidth_bytes_per_s
                                : HUGE_VAL,
        .sockets_per_ring = link->sockets_per_ring > 0 ? link->sockets_per_ring : 1,
        .rdma = link->rdma,
        .gpudirect = link->gpudirect,
        .near = distance != NULL && (strcmp(distance, "PIX") == 0 || strcmp(distance, "PXB") == 0),
        .stages = (link->rdma || link->sockets_instead) && !link->gpudirect && !(own > 0.0)};
    return system->has_inter;
}

bool dl_path_is_loopback(const struct dl_system *system) {
    return system->has_inter && system->inter.kind != NULL &&
           strcmp(system->inter.kind, "loopback") == 0;
}

double dl_path_node_bytes_per_s(const struct dl_system *system) {
    return system->has_inter ? system->inter.bandwidth_bytes_per_s * adapters_of(system) : NAN;
}

struct dl_path_share dl_path_between(const struct dl_path *path, double adapter_bytes_per_s,
                                     bool gpu_memory) {
    const struct dl_system *system = path->system;
    const struct dl_link *link = &system->inter;
    const double joined = path->group.domain_nodes > 1 ? (double)path->group.domain_nodes : 1.0,
                 bridge = dl_path_bridge_bytes_per_s(system);
    struct dl_path_share out = {0.0, DL_NET_ADAPTERS};
    struct dl_path_adapter adapter;
    adapter_bytes_per_s = dl_path_adapter_bytes_per_s(path, adapter_bytes_per_s);
    double capacity[DL_NET_LINKS] = {path->adapter_count * adapter_bytes_per_s, HUGE_VAL, HUGE_VAL,
                                     HUGE_VAL};
    /* One flow per rail and group; a flow alone on an adapter gets all of it. */
    struct dl_fair_class flows = {.flows = path->rail_count * path->groups,
                                  .demand_bytes_per_s = adapter_bytes_per_s,
                                  .use_frac = {1.0, 0.0, 0.0, 0.0}};
    dl_path_adapter_of(system, false, &adapter);
    if (gpu_memory && !adapter.gpudirect && system->has_host) {
        const double copy = system->host.copy_bandwidth_bytes_per_s /
                            (adapter.near ? SWITCH_PASSES : 1.0),
                     memory = system->host.memory_bandwidth_bytes_per_s;
        if (copy < flows.demand_bytes_per_s)
            flows.demand_bytes_per_s = copy, out.limit = DL_NET_COPY;
        if (memory > 0.0)
            capacity[DL_NET_MEMORY] = memory * joined,
            flows.use_frac[DL_NET_MEMORY] = STAGED_PASSES;
    }
    const bool other_socket = link->distance != NULL && strcmp(link->distance, "SYS") == 0;
    if (gpu_memory && adapter.gpudirect && other_socket && bridge > 0.0)
        capacity[DL_NET_CROSS] = bridge, flows.use_frac[DL_NET_CROSS] = 1.0;
    dl_fair_shares(capacity, DL_NET_LINKS, &flows, 1);
    if (flows.limit >= 0) out.limit = (enum dl_network_link)flows.limit;
    out.bytes_per_s = flows.rate_bytes_per_s * path->rail_count;
    return out;
}
