/* net_share.h - the network bandwidth of one group of ranks (F-NETWORK): adapters and rails, the
 * path between device and adapter, the switches. The flows of all groups of a node share these
 * fairly (fair.h).
 */
#ifndef DL_MODEL_MACHINE_NET_SHARE_H
#define DL_MODEL_MACHINE_NET_SHARE_H

#include "model/machine/system.h"

enum dl_network_link { DL_NET_ADAPTERS, DL_NET_COPY, DL_NET_MEMORY, DL_NET_CROSS, DL_NET_LINKS };
/* "adapter", "host-copy", "host-memory", "socket-link", NULL */
extern const char *const dl_network_link_names[];

struct dl_network_share {
    double bytes_per_s; /* of one group at one node, each direction, over all its rails */
    double rail_count;  /* adapters that the group uses */
    double latency_s;   /* that switches and hops between leaves add to a message */
    double bisection;   /* slowdown when all traffic crosses leaves at once (all-to-all); a ring
                           crosses each leaf's uplink once and keeps its rate */
    enum dl_network_link limit;
};

/* Share of one of `groups` groups, each with `per_node` ranks on every one of `nodes` nodes.
 * device: buffers in device memory, which an adapter without GPUDirect reaches through the host.
 * adapter_bytes_per_s: what the library attains on one adapter. */
struct dl_network_share dl_network_share(const struct dl_system *system, double adapter_bytes_per_s,
                                         double nodes, double per_node, double groups, bool device);

/* The same where a "node" is `joined` nodes of the system that one NVLink domain joins, with the
 * adapters and host memory of all (F-COLL-DOMAIN); 0, 1: one. */
struct dl_network_share dl_network_share_joined(const struct dl_system *system,
                                                double adapter_bytes_per_s, double nodes,
                                                double per_node, double groups, bool device,
                                                double joined);

/* Latency and slowdown of the switches alone. */
struct dl_network_share dl_network_fabric(const struct dl_system *system, double nodes);

#endif
