/* path_inside.c - see path.h. Links between the devices of a node: rings over a group of them
 * (F-NCCL-GRAPH), pairs of them. */
#include "model/network/path.h"

#include <math.h>
#include <string.h>

#include "model/machine/topology.h"

/* Attained rate of one NVLink, one direction. NVLink 2: 22.5 of 25 GB/s (bus bandwidth of 2 to 8
 * V100, key "vtrain"); 3: 231.6 / 12 of 25 (8 x A100); 4: NCCL's 20.6 (ring 370 / 18); 1 and 5:
 * NCCL's own 18 and 40.1 (key "nccl-tuning"). */
struct link_rate {
    const char *kind;
    double bytes_per_s;
};
static const struct link_rate link_rates[] = {{"nvlink1", 18e9},
                                              {"nvlink2", 22.5e9},
                                              {"nvlink3", 19.3e9},
                                              {"nvlink4", 20.6e9},
                                              {"nvlink5", 40.1e9}};

enum dl_path_kind dl_path_inside_kind(const struct dl_system *system) {
    const char *kind = system->intra.kind;
    if (kind == NULL || strncmp(kind, "nv", 2) != 0)
        return kind != NULL && strcmp(kind, "infinity") == 0 ? DL_PATH_INFINITY : DL_PATH_HOST;
    return strcmp(kind, "nvswitch") == 0 ? DL_PATH_NVSWITCH : DL_PATH_NVLINK;
}

static double link_rate(const struct dl_link *link, double default_bytes_per_s) {
    if (!isnan(link->channel_bandwidth_bytes_per_s)) return link->channel_bandwidth_bytes_per_s;
    for (size_t i = 0; i < sizeof link_rates / sizeof link_rates[0]; i++)
        if (link->kind != NULL && strcmp(link->kind, link_rates[i].kind) == 0)
            return link_rates[i].bytes_per_s;
    return default_bytes_per_s;
}

/* Between devices that reach each other only through the host. *copies: these limit. */
static double host_path(const struct dl_system *system, bool *copies) {
    const double bridge = system->intra.cross_bandwidth_bytes_per_s,
                 copy = system->has_host ? system->host.copy_bandwidth_bytes_per_s : NAN,
                 rate = fmin(bridge, copy); /* NAN where both are */
    *copies = !(bridge < copy);
    return isnan(rate) ? 0.0 : rate;
}

/* Rings that the direct links of a node close over the group's devices, and whether the links
 * connect these at all. */
static int rings_over(const struct dl_link *link, const struct dl_rank_group *group,
                      bool *connected) {
    const int64_t devices = group->ranks_per_node, stride = group->stride > 1 ? group->stride : 1;
    *connected = false;
    if (devices > DL_LINK_DEVICES) return 0;
    if (stride <= DL_LINK_DEVICES && (stride > 1 || group->concurrent > 1)) {
        const int rings = link->group_channels[stride][devices]; /* of the worst placed group */
        if (rings != DL_GROUP_UNKNOWN) {
            *connected = rings != DL_GROUP_APART;
            return rings < 0 ? 0 : rings;
        }
    }
    *connected = link->connected[devices];
    if (*connected) return link->ring_channels[devices];
    /* The caller may have built the link without dl_topology_fill(). */
    *connected = dl_topology_connected(link->edges, link->edge_count, devices);
    return *connected ? dl_topology_rings(link->edges, link->edge_count, devices)
                      : link->ring_channels[devices];
}

/* The attained bandwidth of a node with a link graph is that of all its rings. */
static double edge_rate(const struct dl_system *system, double default_bytes_per_s) {
    const struct dl_link *link = &system->intra;
    const int64_t all =
        system->devices_per_node < DL_LINK_DEVICES ? system->devices_per_node : DL_LINK_DEVICES;
    const bool attained =
        all >= 2 && link->ring_channels[all] > 0 && !isnan(link->bandwidth_bytes_per_s);
    return attained ? link->bandwidth_bytes_per_s / link->ring_channels[all]
                    : link_rate(link, default_bytes_per_s);
}

static struct dl_path_rings inside_edges(const struct dl_path *path, double default_bytes_per_s,
                                         bool all_reduce) {
    const struct dl_system *system = path->system;
    const struct dl_link *link = &system->intra;
    bool connected;
    int rings = rings_over(link, &path->group, &connected);
    const double rate = edge_rate(system, default_bytes_per_s), count = path->per_node;
    /* The system file may grant fewer channels than the links allow. */
    if (link->channels > 0 && rings > link->channels) rings = (int)link->channels;
    if (rings > 0)
        return (struct dl_path_rings){rings, rings, rings * rate, rings * rate, rate, true, false};
    /* F-TOPO-CHAIN: no ring closes, so one chain runs up and down the links. An all-reduce moves
     * each byte once each way over every link, which is 2(n-1)/n of a ring's bus rate; the other
     * operations move it as in a ring. */
    if (connected) {
        const double bus = all_reduce ? rate * 2.0 * (count - 1.0) / count : rate;
        return (struct dl_path_rings){1.0, 1.0, bus, 0.0, 0.0, true, false};
    }
    bool copies;
    const double host = host_path(system, &copies);
    return (struct dl_path_rings){1.0, 1.0, host, host, 0.0, false, copies};
}

/* Over devices joined by NVLink or Infinity Fabric. */
static double device_links(const struct dl_path *path, double total) {
    const enum dl_path_kind kind = dl_path_inside_kind(path->system);
    const double devices = path->per_node, all = (double)path->system->devices_per_node;
    /* Links join each pair of devices: a subset has only its own. */
    if (kind != DL_PATH_NVSWITCH && devices < all) total *= (devices - 1.0) / (all - 1.0);
    /* n devices that are all joined have n - 1 rings, but over several nodes n paths, one for each
     * device that the network enters. */
    if (kind == DL_PATH_INFINITY && path->nodes > 1.0) total *= devices / (devices - 1.0);
    return total;
}

/* Over devices joined by the host's links. `groups`: of this kind in the node. */
static double host_links(const struct dl_path *path, double total, double groups, bool *copies) {
    const struct dl_system *system = path->system;
    const struct dl_link *link = &system->intra;
    const int64_t devices = path->group.ranks_per_node,
                  stride = path->group.stride > 1 ? path->group.stride : 1;
    if (link->peer_group > 0 && (devices - 1) * stride >= link->peer_group &&
        link->cross_bandwidth_bytes_per_s / groups < total)
        total = link->cross_bandwidth_bytes_per_s / groups;
    if (!link->peer_to_peer && system->has_host) {
        const double sharing = system->host.devices_per_copy_link > 1
                                   ? (double)system->host.devices_per_copy_link
                                   : 1.0;
        const double copy =
            system->host.copy_bandwidth_bytes_per_s / fmin(sharing, (double)devices * groups);
        if (copy < total) total = copy, *copies = true;
    }
    return total;
}

static struct dl_path_rings inside_uniform(const struct dl_path *path, double default_bytes_per_s) {
    const struct dl_link *link = &path->system->intra;
    const double groups = path->group.concurrent > 1 ? (double)path->group.concurrent : 1.0,
                 one = link_rate(link, default_bytes_per_s);
    const bool direct = dl_path_inside_kind(path->system) != DL_PATH_HOST;
    bool copies = false;
    double total = link->bandwidth_bytes_per_s;
    if (isnan(total)) total = one * (double)(link->channels > 0 ? link->channels : 1);
    total = direct ? device_links(path, total) : host_links(path, total, groups, &copies);
    double channels = link->channels > 0 ? (double)link->channels
                      : direct           ? floor(total / one + 0.5)
                                         : 1.0;
    if (channels < 1.0) channels = 1.0;
    return (struct dl_path_rings){channels, channels, total, total, direct ? total / channels : 0.0,
                                  direct,   copies};
}

struct dl_path_rings dl_path_inside(const struct dl_path *path, double default_link_bytes_per_s,
                                    bool all_reduce) {
    return dl_path_has_edges(path->system)
               ? inside_edges(path, default_link_bytes_per_s, all_reduce)
               : inside_uniform(path, default_link_bytes_per_s);
}

bool dl_path_has_peers(const struct dl_system *system) {
    return system->has_intra && system->intra.peer_to_peer;
}

double dl_path_device_bytes_per_s(const struct dl_system *system) {
    return system->has_intra ? system->intra.bandwidth_bytes_per_s : NAN;
}

double dl_path_device_latency_s(const struct dl_system *system) {
    return system->has_intra ? system->intra.latency_s : NAN;
}

int64_t dl_path_beyond_socket(const struct dl_system *system, int64_t devices) {
    const int64_t group = system->has_intra ? system->intra.peer_group : 0;
    return group > 0 && devices > group ? devices - group : 0;
}

double dl_path_bridge_bytes_per_s(const struct dl_system *system) {
    return system->has_intra ? system->intra.cross_bandwidth_bytes_per_s : NAN;
}

bool dl_path_other_socket(const struct dl_system *system, int64_t a, int64_t b) {
    const int64_t group = system->intra.peer_group;
    return group > 0 && a / group != b / group;
}

bool dl_path_has_edges(const struct dl_system *system) { return system->intra.edge_count > 0; }

int64_t dl_path_links_between(const struct dl_system *system, int64_t a, int64_t b) {
    int64_t links = 0;
    for (int e = 0; e < system->intra.edge_count; e++) {
        const struct dl_edge *edge = &system->intra.edges[e];
        if ((edge->from == a && edge->to == b) || (edge->to == a && edge->from == b))
            links += edge->links;
    }
    return links;
}

double dl_path_staged_bytes_per_s(const struct dl_system *system, int64_t a, int64_t b) {
    const double copy = system->has_host ? system->host.copy_bandwidth_bytes_per_s : NAN;
    return dl_path_other_socket(system, a, b)
               ? fmin(copy, system->intra.cross_bandwidth_bytes_per_s)
               : copy;
}
