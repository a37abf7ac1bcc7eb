/* net_share.h - what one group of ranks gets of the way between nodes (F-NETWORK): adapters and
 * rails, the way between device and adapter, the switches. The flows of all groups of a node share
 * it fairly (fair.h).
 */
#ifndef DL_MODEL_HARDWARE_NET_SHARE_H
#define DL_MODEL_HARDWARE_NET_SHARE_H

#include "model/hardware/system.h"

enum dl_network_link { DL_NET_ADAPTERS, DL_NET_COPY, DL_NET_MEMORY, DL_NET_CROSS, DL_NET_LINKS };
/* "adapter", "host-copy", "host-memory", "socket-link", NULL */
extern const char *const dl_network_link_names[];

struct dl_network_share {
    /* of one group at one node, each direction, all its rails together */
    double bytes_per_s;
    /* adapters that the group uses */
    double rail_count;
    /* that switches and hops between leaves add to a message */
    double latency_s;
    /* slowdown of traffic that crosses leaves all at once (exchanges at a distance, all-to-all); a
     * ring crosses each leaf's border once and keeps its rate */
    double bisection;
    enum dl_network_link limit;
};

/* `groups` groups with `per_node` ranks each on every one of `nodes` nodes; device: buffers in
 * device memory, which an adapter without GPUDirect reaches through the host. adapter_bytes_per_s:
 * what the library gets of one adapter. */
struct dl_network_share dl_network_share(const struct dl_system *system, double adapter_bytes_per_s,
                                         double nodes, double per_node, double groups, bool device);

/* Latency and slowdown of the switches alone. */
struct dl_network_share dl_network_fabric(const struct dl_system *system, double nodes);

#endif
