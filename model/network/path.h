/* path.h - what one group of ranks gets of a system's links (F-PATH): latency, rate, adapters, the
 * NVLink domain, the switches. The libraries price their algorithms on it.
 *
 * path.c, path_inside.c and path_host.c alone turn links and the fabric into rates and latencies;
 * `make lint` checks that nothing else reads those members. What-ifs have changed them before
 * (what_if.h). A rule of an operation that depends on the switches acts through
 * fabric_latency_s, oversubscription and uplink_load. Pure.
 */
#ifndef DL_MODEL_NETWORK_PATH_H
#define DL_MODEL_NETWORK_PATH_H

#include "model/machine/system.h"

/* Ranks that communicate: those of nodes x ranks_per_node. */
struct dl_rank_group {
    int64_t nodes, ranks_per_node;
    int64_t domain_nodes;     /* F-COLL-DOMAIN: nodes of the system that a "node" stands for; 0, 1:
                                 one */
    int64_t stride;           /* distance of its ranks inside a node; 0, 1: neighbours */
    int64_t concurrent;       /* groups on each node that communicate at once, this one included; 0,
                                 1: alone */
    double flows_per_adapter; /* groups like this one on its adapters; 0, 1: alone */
    int64_t node_stride;      /* distance of its nodes; 0, 1: neighbours */
    int64_t span_nodes;       /* from its first node to its last; 0: nodes x node_stride */
};

struct dl_path {
    const struct dl_system *system;
    struct dl_rank_group group;
    double nodes, per_node, ranks;
    double adapter_count; /* of a node, or of all nodes of a domain */
    double rail_count;    /* adapters that the group uses */
    double groups;        /* of this kind at a node, which share its adapters */
    /* Switches between leaves that the group spans: latency of a message; slowdown of nodes that
     * all send to other leaves (all-to-all). */
    double fabric_latency_s, oversubscription;
    /* F-NETWORK-LEAF: line rate of the nodes that send to their next neighbours on another leaf
     * (rings, chains, pipelines) / rate of the leaf's uplinks; 0: all on one leaf. */
    double uplink_load;
};

/* Nodes of the system that links.intra joins, at least 1 (F-COLL-DOMAIN). */
int64_t dl_path_domain_nodes(const struct dl_system *system);

/* Needs no links: a group inside one node, or without them, has the adapters that there are. */
void dl_path_of(const struct dl_system *system, const struct dl_rank_group *group,
                struct dl_path *out);

/* ---- between nodes ---- */

/* One adapter of a node. Unknown numbers are NAN. */
struct dl_path_adapter {
    double count;             /* of a node */
    double bytes_per_s;       /* payload that the library attains */
    double latency_s;         /* one small message, one way */
    double message_cpu_s;     /* host time of a message at each end; 0: none */
    double flow_bytes_per_s;  /* of one TCP connection; HUGE_VAL: no limit but the adapter's */
    int64_t sockets_per_ring; /* that NCCL opens */
    bool rdma, gpudirect;
    bool near;   /* behind the same PCIe switch as the GPUs */
    bool stages; /* without GPUDirect data passes through host memory, unless the rate is what
                    the library itself attains */
};
/* own_rate: of a library that attains links.inter.nccl_bandwidth. False: the system has no links
 * between nodes. */
bool dl_path_adapter_of(const struct dl_system *system, bool own_rate, struct dl_path_adapter *out);

/* The same adapter beside those of all nodes that send through the uplinks of its leaf, at most
 * `bytes_per_s`. F-NETWORK-LEAF */
double dl_path_adapter_bytes_per_s(const struct dl_path *path, double bytes_per_s);

/* Seconds on the uplinks of the fullest leaf, in units of one node's line rate, when each of
 * `workers` nodes sends a byte, spread over `servers` nodes from node `first_server` on; 0: all on
 * one leaf. F-NETWORK-LEAF */
double dl_path_server_load(const struct dl_system *system, double workers, double first_server,
                           double servers);

/* Whether nodes share one host and have no adapter: cores copy messages between them. */
bool dl_path_is_loopback(const struct dl_system *system);
/* Of all adapters of a node [byte/s]; NAN: unknown, or no links between nodes. */
double dl_path_node_bytes_per_s(const struct dl_system *system);

enum dl_network_link { DL_NET_ADAPTERS, DL_NET_COPY, DL_NET_MEMORY, DL_NET_CROSS, DL_NET_LINKS };

/* F-NETWORK: the fair share of one group at one node. */
struct dl_path_share {
    double bytes_per_s; /* each direction, over all its rails */
    enum dl_network_link limit;
};
/* gpu_memory: buffers in GPU memory, which an adapter without GPUDirect reaches through the host.
 * adapter_bytes_per_s: what the library attains on one adapter. */
struct dl_path_share dl_path_between(const struct dl_path *path, double adapter_bytes_per_s,
                                     bool gpu_memory);

/* How nodes reach each other, where a plan decides it; OPEN: as the system's file says. */
enum dl_switch { DL_SWITCH_OPEN, DL_SWITCH_OFF, DL_SWITCH_ON };
enum dl_transport { DL_TRANSPORT_OPEN, DL_TRANSPORT_RDMA, DL_TRANSPORT_TCP };
struct dl_path_choice {
    int transport; /* enum dl_transport */
    int gpudirect; /* enum dl_switch: adapters reach GPU memory */
};
/* F-PLAN-SETTINGS: *out is the system, or a copy with other links between nodes. DL_ERR_USAGE: RDMA
 * where the system has none. */
enum dl_code dl_path_over(const struct dl_system *system, const struct dl_path_choice *choice,
                          struct dl_arena *arena, const struct dl_system **out, struct dl_err *err);

/* ---- inside a node ---- */

enum dl_path_kind {
    DL_PATH_HOST,     /* PCIe and the host */
    DL_PATH_NVLINK,   /* links between pairs of devices */
    DL_PATH_NVSWITCH, /* a switch that joins all */
    DL_PATH_INFINITY  /* AMD's links between all pairs */
};
enum dl_path_kind dl_path_inside_kind(const struct dl_system *system);

/* Rings over the devices of a group inside one node. */
struct dl_path_rings {
    double channels, tree_channels;
    double ring_bytes_per_s, tree_bytes_per_s; /* of all channels */
    double link_bytes_per_s;                   /* of one device link; 0: there is none */
    bool device_links;                         /* else through the host */
    bool copies;                               /* copies through the host limit */
};
/* F-NCCL-GRAPH, F-TOPO-CHAIN. default_link_bytes_per_s: of a device link for which neither the file
 * nor its kind states a rate. all_reduce: where links close no ring, a chain moves each byte of an
 * all-reduce once each way, of other operations as a ring does. */
struct dl_path_rings dl_path_inside(const struct dl_path *path, double default_link_bytes_per_s,
                                    bool all_reduce);

/* Whether devices of a node copy to each other without staging through the host. */
bool dl_path_has_peers(const struct dl_system *system);
/* A device in a ring over its node [byte/s]; NAN: unknown. */
double dl_path_device_bytes_per_s(const struct dl_system *system);
double
dl_path_device_latency_s(const struct dl_system *system); /* of one small copy; NAN: unknown */
/* Devices that sit on other sockets than device 0. */
int64_t dl_path_beyond_socket(const struct dl_system *system, int64_t devices);
/* Between sockets, shared by all flows [byte/s]; NAN: unknown, or one socket. */
double dl_path_bridge_bytes_per_s(const struct dl_system *system);
/* Whether devices a and b sit on different sockets. */
bool dl_path_other_socket(const struct dl_system *system, int64_t a, int64_t b);
/* Whether the file lists links of single devices, and the links that join a and b in it. */
bool dl_path_has_edges(const struct dl_system *system);
int64_t dl_path_links_between(const struct dl_system *system, int64_t a, int64_t b);
/* From device a to b through the host [byte/s]; NAN: unknown. */
double dl_path_staged_bytes_per_s(const struct dl_system *system, int64_t a, int64_t b);

#endif
