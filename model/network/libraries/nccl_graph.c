/* nccl_graph.c - F-NCCL-GRAPH: channels and their bandwidth from the links of a system. Times use
 * the attained bandwidth of the links; the choice inside a node uses the one that NCCL assumes.
 * Physics overrides NCCL's table twice: a ring between two nodes is bound by the adapters' rate,
 * and a tree between two nodes moves each byte over the network once each way (bus bandwidth above
 * line rate was measured, and NCCL's maintainers confirm it). */
#include "model/network/libraries/nccl.h"
#include "model/machine/net_share.h"
#include "model/machine/topology.h"

#include <string.h>

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
static const double generation_rate[DL_NCCL_GENERATIONS] = {22.5e9, 19.3e9, 20.6e9, 40.1e9};
/* Rate that NCCL assumes of a link (SM70_NVLINK_BW etc. in topo.h; key "nccl-tuning"). */
static const double assumed_rate[DL_NCCL_GENERATIONS] = {20e9, 20e9, 20.6e9, 40.1e9};
static const double ASSUMED_PASCAL = 18e9, ASSUMED_VOLTA_BEFORE_2_18 = 21e9;
/* attained / assumed rate; beyond these bounds the link is not the one that NCCL knows */
static const double ASSUMED_FRAC[2] = {0.8, 1.25};
/* adapter and switch of the InfiniBand that NCCL's NET constants include (unverified) */
static const double VERBS_LATENCY_S = 1.5e-6;
/* NCCL's proxy hands chunks from the device's copy through host memory to the adapter in a few
 * slots, which overlap only in part. nccl-tests of at least 150 MB over two and four nodes by
 * machines without GPUDirect attain this part of the slower of the two (geometric mean of five:
 * 0.58 to 0.90; keys "deepbench" and "nccl-issues"). */
static const double STAGED_FRAC = 0.7;
/* search.cc doubles channels from this intra-node rate on */
static const double DUPLICATE_BYTES_PER_S = 25e9;

static bool starts(const char *text, const char *prefix) {
    if (text == NULL) return false;
    while (*prefix != '\0' && *prefix == *text) prefix++, text++;
    return *prefix == '\0';
}

/* By the first letter of "pascal", "volta", "ampere", ..., which is quick and enough here. */
static enum dl_nccl_generation generation_of(const struct dl_system *system, bool *before_volta) {
    const char *name = system->device != NULL ? system->device->architecture : NULL;
    *before_volta = false;
    switch (name != NULL ? name[0] : 'v') {
    case 'b': return DL_NCCL_BLACKWELL;
    case 'h': return DL_NCCL_HOPPER;
    case 'c': /* CDNA: RCCL has NCCL's cost model; its constants of Ampere serve (assumed) */
    case 'a': return DL_NCCL_AMPERE;
    case 'k':
    case 'm':
    case 'p': *before_volta = true; return DL_NCCL_VOLTA;
    default: return DL_NCCL_VOLTA;
    }
}

/* What dl_nccl_prepare() left in the system, where it still holds; else computed into *scratch. */
static const struct dl_nccl_known *known_of(const struct dl_system *system,
                                            struct dl_nccl_known *scratch) {
    const struct dl_nccl_known *filled = &system->nccl;
    const char *cpu = system->has_host ? system->host.cpu : NULL;
    if (filled->ready && filled->version == system->nccl_version &&
        filled->device == system->device && filled->cpu == cpu)
        return filled;
    /* Releases current when each generation was new. */
    static const char *const usual[DL_NCCL_GENERATIONS] = {"2.4.8", "2.8.3", "2.19.3", "2.27.7"};
    struct dl_nccl_known known = {
        .version = system->nccl_version, .cpu = cpu, .device = system->device, .ready = true};
    const enum dl_nccl_generation generation = generation_of(system, &known.before_volta);
    known.generation = (int)generation;
    if (system->nccl_version != NULL)
        known.row = dl_nccl_version_find(system->nccl_version, &known.number);
    known.assumed = known.row == NULL;
    if (known.assumed) known.row = dl_nccl_version_find(usual[generation], &known.number);
    known.amd_host = cpu != NULL && (strstr(cpu, "AMD") != NULL || strstr(cpu, "EPYC") != NULL);
    *scratch = known;
    return scratch;
}

void dl_nccl_prepare(struct dl_system *system) {
    struct dl_nccl_known scratch;
    system->nccl.ready = false;
    system->nccl = *known_of(system, &scratch);
}

const struct dl_nccl_version *dl_nccl_version_of(const struct dl_system *system, int *number_out,
                                                 bool *assumed) {
    struct dl_nccl_known scratch;
    const struct dl_nccl_known *known = known_of(system, &scratch);
    *number_out = known->number, *assumed = known->assumed;
    return known->row;
}

/* Attained / assumed rate of one NVLink. Predictions (not as_run) keep it at 1 or more, where the
 * time never falls as NCCL switches. */
static double attained_frac(const struct dl_nccl_known *known, double rate, bool as_run) {
    double assumed = known->before_volta ? ASSUMED_PASCAL
                     : known->generation == DL_NCCL_VOLTA && known->number < 1800
                         ? ASSUMED_VOLTA_BEFORE_2_18
                         : assumed_rate[known->generation];
    double frac = rate / assumed;
    return fmin(ASSUMED_FRAC[1], fmax(as_run ? ASSUMED_FRAC[0] : 1.0, frac));
}

static double link_rate(const struct dl_link *link, enum dl_nccl_generation generation) {
    if (!isnan(link->channel_bandwidth_bytes_per_s)) return link->channel_bandwidth_bytes_per_s;
    for (size_t i = 0; i < sizeof link_rates / sizeof link_rates[0]; i++)
        if (link->kind != NULL && strcmp(link->kind, link_rates[i].kind) == 0)
            return link_rates[i].bytes_per_s;
    return generation_rate[generation];
}

/* Ring and tree over devices of one node: channels and total rate. */
struct inside {
    double channels, tree_channels, ring_bytes_per_s, tree_bytes_per_s;
    double link_bytes_per_s; /* of one NVLink; 0: there is none */
    bool nvlink;
};

/* Rate between devices that reach each other only through the host. */
static double host_path(const struct dl_system *system, const struct dl_link *link) {
    double rate = link->cross_bandwidth_bytes_per_s;
    double copy = system->has_host ? system->host.copy_bandwidth_bytes_per_s : NAN;
    if (isnan(rate) || copy < rate) rate = copy;
    return isnan(rate) ? 0.0 : rate;
}

/* Rings that the direct links of a node close over the request's devices, and whether the links
 * connect these at all. */
static int rings_over(const struct dl_link *link, const struct dl_collective_request *request,
                      bool *connected) {
    const int64_t devices = request->ranks_per_node,
                  stride = request->group_stride > 1 ? request->group_stride : 1;
    *connected = false;
    if (devices > DL_LINK_DEVICES) return 0;
    if (stride <= DL_LINK_DEVICES && (stride > 1 || request->concurrent > 1)) {
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

static struct inside inside_edges(const struct dl_system *system,
                                  const struct dl_collective_request *request,
                                  enum dl_nccl_generation generation) {
    const struct dl_link *link = &system->intra;
    const int64_t devices = request->ranks_per_node,
                  all = system->devices_per_node < DL_LINK_DEVICES ? system->devices_per_node
                                                                   : DL_LINK_DEVICES;
    bool connected;
    int rings = rings_over(link, request, &connected);
    bool attained = all >= 2 && link->ring_channels[all] > 0 && !isnan(link->bandwidth_bytes_per_s);
    double rate = attained ? link->bandwidth_bytes_per_s / link->ring_channels[all]
                           : link_rate(link, generation);
    /* The system file may grant fewer channels than the links allow. */
    if (link->channels > 0 && rings > link->channels) rings = (int)link->channels;
    if (rings > 0) return (struct inside){rings, rings, rings * rate, rings * rate, rate, true};
    double host = host_path(system, link);
    /* F-TOPO-CHAIN: no ring closes, so one chain runs up and down the links. An all-reduce moves
     * each byte once each way over every link, which is 2(n-1)/n of a ring's bus rate; the other
     * operations move it as in a ring. */
    if (connected) {
        double count = (double)devices,
               bus = request->op == DL_COLL_ALL_REDUCE ? rate * 2.0 * (count - 1.0) / count : rate;
        return (struct inside){1.0, 1.0, bus, 0.0, 0.0, true};
    }
    return (struct inside){1.0, 1.0, host, host, 0.0, false};
}

/* Rate of a ring over devices joined by NVLink or Infinity Fabric. */
static double device_links(const struct dl_system *system,
                           const struct dl_collective_request *request, double total) {
    const struct dl_link *link = &system->intra;
    const bool infinity = starts(link->kind, "infinity");
    const double devices = (double)request->ranks_per_node, all = (double)system->devices_per_node;
    /* Links join each pair of devices: a subset has only its own. */
    if ((starts(link->kind, "nvlink") || infinity) && devices < all)
        total *= (devices - 1.0) / (all - 1.0);
    /* n devices that are all joined have n - 1 rings, but over several nodes n paths, one for each
     * device that the network enters. */
    if (infinity && request->nodes > 1) total *= devices / (devices - 1.0);
    return total;
}

/* Rate of a ring over devices joined by the host's links. `groups`: of this kind in the node. */
static double host_links(const struct dl_system *system,
                         const struct dl_collective_request *request, double total, double groups) {
    const struct dl_link *link = &system->intra;
    const int64_t devices = request->ranks_per_node,
                  stride = request->group_stride > 1 ? request->group_stride : 1;
    if (link->peer_group > 0 && (devices - 1) * stride >= link->peer_group &&
        link->cross_bandwidth_bytes_per_s / groups < total)
        total = link->cross_bandwidth_bytes_per_s / groups;
    if (!link->peer_to_peer && system->has_host) {
        double sharing = system->host.devices_per_copy_link > 1
                             ? (double)system->host.devices_per_copy_link
                             : 1.0;
        double copy =
            system->host.copy_bandwidth_bytes_per_s / fmin(sharing, (double)devices * groups);
        if (copy < total) total = copy;
    }
    return total;
}

static struct inside inside_uniform(const struct dl_system *system,
                                    const struct dl_collective_request *request,
                                    enum dl_nccl_generation generation) {
    const struct dl_link *link = &system->intra;
    const double groups = request->concurrent > 1 ? (double)request->concurrent : 1.0;
    const bool nvlink = starts(link->kind, "nv") || starts(link->kind, "infinity");
    double total = link->bandwidth_bytes_per_s;
    if (isnan(total))
        total = link_rate(link, generation) * (double)(link->channels > 0 ? link->channels : 1);
    total =
        nvlink ? device_links(system, request, total) : host_links(system, request, total, groups);
    double channels = link->channels > 0 ? (double)link->channels
                      : nvlink           ? floor(total / link_rate(link, generation) + 0.5)
                                         : 1.0;
    if (channels < 1.0) channels = 1.0;
    return (struct inside){channels, channels, total, total, nvlink ? total / channels : 0.0,
                           nvlink};
}

double dl_nccl_adapter_bytes_per_s(const struct dl_link *inter) {
    double own = inter->nccl_bandwidth_bytes_per_s;
    return own > 0.0 ? fmin(own, inter->bandwidth_bytes_per_s) : inter->bandwidth_bytes_per_s;
}

/* A file's own rate of NCCL is what NCCL attains; TCP sockets copy more than this anyway. */
static double staged_frac(const struct dl_link *inter) {
    const bool own = inter->nccl_bandwidth_bytes_per_s > 0.0;
    return inter->rdma && !inter->gpudirect && !own ? STAGED_FRAC : 1.0;
}

/* net_socket.cc opens several connections for a ring since this release (key "nccl-docs"). */
static const int MANY_SOCKETS = 408;
/* Until then one ring for each adapter; search.cc also looks inside the node. */
static const int SEARCHES = 500;

/* F-NCCL-FLOWS: what all TCP connections of a communicator attain between two nodes. */
static double of_flows(const struct dl_link *link, int number, double rings) {
    const double flow = link->flow_bandwidth_bytes_per_s;
    if (link->rdma || !(flow > 0.0)) return HUGE_VAL;
    const double sockets =
        number >= MANY_SOCKETS && link->sockets_per_ring > 0 ? (double)link->sockets_per_ring : 1.0;
    return rings * sockets * flow;
}

static enum dl_code between(const struct dl_system *system, int number,
                            const struct dl_collective_request *request,
                            const struct inside *inside, struct dl_nccl_graph *graph,
                            struct dl_err *err) {
    if (!system->has_inter || isnan(system->inter.bandwidth_bytes_per_s))
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s has no links.inter.bandwidth_bytes_per_s, needed for %lld nodes",
                       system->name != NULL ? system->name : "?", (long long)request->nodes);
    const struct dl_link *link = &system->inter;
    const double adapters = dl_coll_adapters(system, request);
    double rails = fmin(adapters, (double)request->ranks_per_node);
    double groups = fmax(1.0, request->flows_per_adapter) * adapters / rails;
    struct dl_network_share share = dl_network_share_joined(
        system, dl_nccl_adapter_bytes_per_s(link), (double)request->nodes,
        (double)request->ranks_per_node, groups, true, (double)request->domain_nodes);
    double total = share.bytes_per_s * staged_frac(link), channels = share.rail_count;
    bool several = request->ranks_per_node > 1;
    if (several && inside->ring_bytes_per_s >= DUPLICATE_BYTES_PER_S * channels) channels *= 2.0;
    const double asked = system->nccl_rings > 0 ? (double)system->nccl_rings : 1.0;
    channels = fmax(channels, asked);
    total = fmin(total, of_flows(link, number,
                                 number < SEARCHES ? fmax(share.rail_count, asked) : channels));
    graph->inside_limits = several && inside->ring_bytes_per_s < total;
    double crossing = request->nodes == 2 ? 2.0 * total : total;
    graph->channels = graph->tree_channels = channels;
    graph->ring_bytes_per_s = (several ? fmin(inside->ring_bytes_per_s, total) : total) / channels;
    graph->tree_bytes_per_s =
        (several ? fmin(inside->tree_bytes_per_s, crossing) : crossing) / channels;
    double extra_s = isnan(link->latency_s) ? 0.0 : fmax(0.0, link->latency_s - VERBS_LATENCY_S);
    if (!link->rdma && !isnan(link->per_message_cpu_s)) extra_s += 2.0 * link->per_message_cpu_s;
    graph->net_latency_s = extra_s + share.latency_s;
    const char *distance = link->distance; /* PIX and PXB are near; PHB, NODE and SYS are not */
    bool near =
        distance != NULL && distance[0] == 'P' && (distance[1] == 'I' || distance[1] == 'X');
    graph->ll128 = graph->ll128 && near && link->gpudirect;
    return DL_OK;
}

enum dl_code dl_nccl_graph_build(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_nccl_graph *out, struct dl_err *err) {
    struct inside inside = {1.0, 1.0, HUGE_VAL, HUGE_VAL, 0.0, false};
    struct dl_nccl_known scratch;
    const struct dl_nccl_known *known = known_of(system, &scratch);
    const enum dl_nccl_generation generation = (enum dl_nccl_generation)known->generation;
    if (request->ranks_per_node > 1) {
        if (!system->has_intra)
            return dl_fail(err, DL_ERR_INPUT,
                           "system %s has no links.intra, needed for %lld devices of a node",
                           system->name != NULL ? system->name : "?",
                           (long long)request->ranks_per_node);
        inside = system->intra.edge_count > 0 ? inside_edges(system, request, generation)
                                              : inside_uniform(system, request, generation);
        if (!(inside.ring_bytes_per_s > 0.0) && !(inside.tree_bytes_per_s > 0.0))
            return dl_fail(err, DL_ERR_INPUT,
                           "system %s has no bandwidth between %lld devices of a node: set "
                           "links.intra.bandwidth_bytes_per_s or host.copy_bandwidth_bytes_per_s",
                           system->name != NULL ? system->name : "?",
                           (long long)request->ranks_per_node);
    }
    out->ranks = (double)request->nodes * (double)request->ranks_per_node,
    out->nodes = (double)request->nodes;
    out->channels = inside.channels, out->tree_channels = inside.tree_channels;
    out->net_latency_s = 0.0, out->attained_frac = 1.0;
    out->generation = generation, out->nvlink = inside.nvlink, out->amd_host = known->amd_host;
    out->ll128 = !known->before_volta && (inside.nvlink || request->ranks_per_node == 1);
    out->nvls = generation >= DL_NCCL_HOPPER && starts(system->intra.kind, "nvswitch");
    out->collnet = out->inside_limits = false;
    out->attained = NULL;
    if (inside.nvlink && !known->before_volta)
        out->attained = starts(system->intra.kind, "infinity") ? &dl_rccl_attained
                                                               : dl_nccl_attained_of(generation);
    if (request->nodes > 1) return between(system, known->number, request, &inside, out, err);
    out->ring_bytes_per_s = inside.ring_bytes_per_s / inside.channels;
    out->tree_bytes_per_s = inside.tree_bytes_per_s / inside.tree_channels;
    if (inside.link_bytes_per_s > 0.0)
        out->attained_frac = attained_frac(known, inside.link_bytes_per_s, request->as_run);
    return DL_OK;
}
