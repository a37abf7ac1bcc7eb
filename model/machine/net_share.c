/* net_share.c - see net_share.h. */
#include "model/machine/net_share.h"

#include <math.h>
#include "model/machine/fair.h"

const char *const dl_network_link_names[] = {"adapter", "host-copy", "host-memory", "socket-link",
                                             NULL};

/* A staged byte is written to host memory and read again, in each direction. */
static const double STAGED_PASSES = 4.0;
/* Without GPUDirect, an adapter that shares a PCIe switch with the devices (PIX, PXB): its uplink
 * carries a copy and the adapter's own access in each direction. */
static const double SWITCH_PASSES = 2.0;
/* A dragonfly routes traffic between two groups over a third one (Kim et al. 2008): twice the bytes
 * on its global links. */
static const double DETOUR = 2.0;

static bool is_near(const struct dl_link *link) {
    const char *distance = link->distance;
    return distance != NULL && distance[0] == 'P' && (distance[1] == 'I' || distance[1] == 'X');
}

static double least(double a, double b) { return a < b ? a : b; }

struct dl_network_share dl_network_fabric(const struct dl_system *system, double nodes) {
    struct dl_network_share out = {.bytes_per_s = HUGE_VAL, .bisection = 1.0};
    const struct dl_fabric *fabric = &system->fabric;
    if (!system->has_fabric || fabric->nodes_per_leaf <= 0 ||
        nodes <= (double)fabric->nodes_per_leaf)
        return out;
    /* no other topology begins with a d */
    const bool dragonfly = fabric->topology != NULL && fabric->topology[0] == 'd';
    /* up and down, or to the global link, across it and on to the leaf */
    if (!isnan(fabric->hop_latency_s))
        out.latency_s = (dragonfly ? 3.0 : 2.0) * fabric->hop_latency_s;
    if (fabric->oversubscription > 1.0) out.bisection = fabric->oversubscription;
    if (dragonfly) out.bisection *= DETOUR;
    return out;
}

struct dl_network_share dl_network_share(const struct dl_system *system, double adapter_bytes_per_s,
                                         double nodes, double per_node, double groups,
                                         bool device) {
    return dl_network_share_joined(system, adapter_bytes_per_s, nodes, per_node, groups, device, 1);
}

struct dl_network_share dl_network_share_joined(const struct dl_system *system,
                                                double adapter_bytes_per_s, double nodes,
                                                double per_node, double groups, bool device,
                                                double joined) {
    const struct dl_link *link = &system->inter;
    const double together = joined > 1.0 ? joined : 1.0;
    const double adapters =
        (link->adapters_per_node > 1 ? (double)link->adapters_per_node : 1.0) * together;
    struct dl_network_share out = dl_network_fabric(system, nodes * together);
    out.rail_count = least(adapters, per_node);
    double capacity[DL_NET_LINKS] = {adapters * adapter_bytes_per_s, HUGE_VAL, HUGE_VAL, HUGE_VAL};
    /* One flow per rail and group; a flow alone on an adapter gets all of it. */
    struct dl_fair_class flows = {.flows = out.rail_count * groups,
                                  .demand_bytes_per_s = adapter_bytes_per_s,
                                  .use_frac = {1.0, 0.0, 0.0, 0.0}};
    if (device && !link->gpudirect && system->has_host) {
        const double copy = system->host.copy_bandwidth_bytes_per_s /
                            (is_near(link) ? SWITCH_PASSES : 1.0),
                     memory = system->host.memory_bandwidth_bytes_per_s;
        if (copy < flows.demand_bytes_per_s)
            flows.demand_bytes_per_s = copy, out.limit = DL_NET_COPY;
        if (memory > 0.0)
            capacity[DL_NET_MEMORY] = memory * together,
            flows.use_frac[DL_NET_MEMORY] = STAGED_PASSES;
    }
    if (device && link->gpudirect && link->distance != NULL && link->distance[0] == 'S' &&
        system->has_intra &&
        system->intra.cross_bandwidth_bytes_per_s > 0.0) /* SYS: on the other socket */
        capacity[DL_NET_CROSS] = system->intra.cross_bandwidth_bytes_per_s,
        flows.use_frac[DL_NET_CROSS] = 1.0;
    if (!(flows.use_frac[DL_NET_MEMORY] > 0.0) &&
        !(flows.use_frac[DL_NET_CROSS] > 0.0)) { /* only the adapters limit: nothing to fill */
        const double rate =
            least(flows.demand_bytes_per_s, capacity[DL_NET_ADAPTERS] / flows.flows);
        if (rate < flows.demand_bytes_per_s) out.limit = DL_NET_ADAPTERS;
        out.bytes_per_s = rate * out.rail_count;
        return out;
    }
    dl_fair_shares(capacity, DL_NET_LINKS, &flows, 1);
    if (flows.limit >= 0) out.limit = (enum dl_network_link)flows.limit;
    out.bytes_per_s = flows.rate_bytes_per_s * out.rail_count;
    return out;
}
