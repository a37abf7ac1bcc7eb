/* nccl_graph.c - F-NCCL-GRAPH: channels and their bandwidth from the links of a system. Times use
 * the attained bandwidth of the links; the choice inside a node uses the one that NCCL assumes.
 * Physics overrides NCCL's table twice: a ring between two nodes is bound by the adapters' rate,
 * and a tree between two nodes moves each byte over the network once each way (bus bandwidth above
 * line rate was measured, and NCCL's maintainers confirm it). */
#include "model/network/libraries/nccl.h"

#include <string.h>

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

/* An architecture that is not listed counts as Volta. */
static const struct architecture {
    const char *prefix;
    enum dl_nccl_generation generation;
    bool before_volta;
} architectures[] = {
    {"kepler", DL_NCCL_VOLTA, true},
    {"maxwell", DL_NCCL_VOLTA, true},
    {"pascal", DL_NCCL_VOLTA, true},
    {"ampere", DL_NCCL_AMPERE, false},
    {"ada", DL_NCCL_AMPERE, false},
    {"hopper", DL_NCCL_HOPPER, false},
    {"blackwell", DL_NCCL_BLACKWELL, false},
    {"cdna", DL_NCCL_AMPERE, false}, /* RCCL has NCCL's cost model; its constants serve (assumed) */
};

static enum dl_nccl_generation generation_of(const struct dl_system *system, bool *before_volta) {
    const char *name = system->device != NULL ? system->device->architecture : NULL;
    *before_volta = false;
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        if (!starts(name, architectures[i].prefix)) continue;
        *before_volta = architectures[i].before_volta;
        return architectures[i].generation;
    }
    return DL_NCCL_VOLTA;
}

/* What dl_nccl_prepare() left in the system, where it still holds; else computed into *scratch. */
static const struct dl_nccl_known *known_of(const struct dl_system *system,
                                            struct dl_nccl_known *scratch) {
    const struct dl_nccl_known *filled = &system->nccl;
    const char *cpu = system->has_host ? system->host.cpu : NULL;
    if (filled->ready && filled->version == system->software.nccl_version &&
        filled->device == system->device && filled->cpu == cpu)
        return filled;
    /* Releases current when each generation was new. */
    static const char *const usual[DL_NCCL_GENERATIONS] = {"2.4.8", "2.8.3", "2.19.3", "2.27.7"};
    struct dl_nccl_known known = {.version = system->software.nccl_version,
                                  .cpu = cpu,
                                  .device = system->device,
                                  .ready = true};
    const enum dl_nccl_generation generation = generation_of(system, &known.before_volta);
    known.generation = (int)generation;
    if (system->software.nccl_version != NULL)
        known.row = dl_nccl_version_find(system->software.nccl_version, &known.number);
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

/* Attained / assumed rate of one NVLink. Predictions keep it at 1 or more, so that the time never
 * falls where NCCL switches. */
static double attained_frac(const struct dl_nccl_known *known, double rate, bool allow_decreasing) {
    double assumed = known->before_volta ? ASSUMED_PASCAL
                     : known->generation == DL_NCCL_VOLTA && known->number < 1800
                         ? ASSUMED_VOLTA_BEFORE_2_18
                         : assumed_rate[known->generation];
    double frac = rate / assumed;
    return fmin(ASSUMED_FRAC[1], fmax(allow_decreasing ? ASSUMED_FRAC[0] : 1.0, frac));
}

/* net_socket.cc opens several connections for a ring since this release (key "nccl-docs"). */
static const int MANY_SOCKETS = 408;
/* Until then one ring for each adapter; search.cc also looks inside the node. */
static const int SEARCHES = 500;

/* F-NCCL-FLOWS: what all TCP connections of a communicator attain between two nodes. */
static double of_flows(const struct dl_path_adapter *adapter, int number, double rings) {
    const double sockets = number >= MANY_SOCKETS ? (double)adapter->sockets_per_ring : 1.0;
    return rings * sockets * adapter->flow_bytes_per_s;
}

static enum dl_code no_inter(const struct dl_path *path, struct dl_err *err) {
    return dl_fail(err, DL_ERR_INPUT,
                   "system %s has no network between nodes, needed for %lld nodes: give --set "
                   "links.inter.kind=KIND --set links.inter.bandwidth=RATE",
                   path->system->name != NULL ? path->system->name : "?",
                   (long long)path->group.nodes);
}

static enum dl_code between(const struct dl_path *path, int number,
                            const struct dl_path_rings *inside, struct dl_nccl_graph *graph,
                            struct dl_err *err) {
    static const char *const limits[DL_NET_LINKS] = {[DL_NET_ADAPTERS] = "inter",
                                                     [DL_NET_COPY] = "host-copy",
                                                     [DL_NET_MEMORY] = "host",
                                                     [DL_NET_CROSS] = "intra"};
    struct dl_path_adapter adapter;
    if (!dl_path_adapter_of(path->system, true, &adapter) || isnan(adapter.bytes_per_s))
        return no_inter(path, err);
    const struct dl_path_share share = dl_path_between(path, adapter.bytes_per_s, true);
    double total = share.bytes_per_s * (adapter.stages ? STAGED_FRAC : 1.0),
           channels = path->rail_count;
    const bool several = path->per_node > 1.0;
    if (several && inside->ring_bytes_per_s >= DUPLICATE_BYTES_PER_S * channels) channels *= 2.0;
    const double asked =
        path->system->software.nccl_rings > 0 ? (double)path->system->software.nccl_rings : 1.0;
    channels = fmax(channels, asked);
    const double flows =
        of_flows(&adapter, number, number < SEARCHES ? fmax(path->rail_count, asked) : channels);
    graph->outside_limit = graph->limit = graph->tree_limit =
        flows < total ? "inter" : limits[share.limit];
    total = fmin(total, flows);
    if (several && inside->ring_bytes_per_s < total) graph->limit = graph->inside_limit;
    const double crossing = path->nodes <= 2.0 ? 2.0 * total : total;
    if (several && inside->tree_bytes_per_s < crossing) graph->tree_limit = graph->inside_limit;
    graph->channels = graph->tree_channels = channels;
    graph->ring_bytes_per_s = (several ? fmin(inside->ring_bytes_per_s, total) : total) / channels;
    graph->tree_bytes_per_s =
        (several ? fmin(inside->tree_bytes_per_s, crossing) : crossing) / channels;
    double extra_s =
        isnan(adapter.latency_s) ? 0.0 : fmax(0.0, adapter.latency_s - VERBS_LATENCY_S);
    if (!adapter.rdma) extra_s += 2.0 * adapter.message_cpu_s;
    graph->net_latency_s = extra_s + path->fabric_latency_s;
    graph->ll128 = graph->ll128 && adapter.near && adapter.gpudirect;
    return DL_OK;
}

/* Devices of one node. */
static enum dl_code find_inside(const struct dl_path *path, enum dl_nccl_generation generation,
                                enum dl_collective_op op, struct dl_path_rings *out,
                                struct dl_err *err) {
    const char *name = path->system->name != NULL ? path->system->name : "?";
    if (!path->system->has_intra)
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s has no links.intra, needed for %lld devices of a node", name,
                       (long long)path->group.ranks_per_node);
    *out = dl_path_inside(path, generation_rate[generation], op == DL_COLL_ALL_REDUCE);
    if (!(out->ring_bytes_per_s > 0.0) && !(out->tree_bytes_per_s > 0.0))
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s has no bandwidth between %lld devices of a node: set "
                       "links.intra.bandwidth_bytes_per_s or host.copy_bandwidth_bytes_per_s",
                       name, (long long)path->group.ranks_per_node);
    return DL_OK;
}

enum dl_code dl_nccl_graph_build(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_nccl_graph *out, struct dl_err *err) {
    struct dl_path_rings inside = {1.0, 1.0, HUGE_VAL, HUGE_VAL, 0.0, false, false};
    struct dl_nccl_known scratch;
    struct dl_path path;
    const struct dl_nccl_known *known = known_of(system, &scratch);
    const enum dl_nccl_generation generation = (enum dl_nccl_generation)known->generation;
    const enum dl_path_kind kind = dl_path_inside_kind(system);
    dl_coll_path(system, request, &path);
    if (request->ranks_per_node > 1)
        DL_TRY(find_inside(&path, generation, request->op, &inside, err));
    out->ranks = path.ranks, out->nodes = path.nodes;
    out->channels = inside.channels, out->tree_channels = inside.tree_channels;
    out->net_latency_s = 0.0, out->attained_frac = 1.0;
    out->generation = generation, out->nvlink = inside.device_links,
    out->amd_host = known->amd_host;
    out->ll128 = !known->before_volta && (inside.device_links || request->ranks_per_node == 1);
    out->nvls = generation >= DL_NCCL_HOPPER && kind == DL_PATH_NVSWITCH;
    out->collnet = false;
    out->limit = out->tree_limit = out->inside_limit = out->outside_limit =
        inside.copies ? "host-copy" : "intra";
    out->attained = NULL;
    if (inside.device_links && !known->before_volta)
        out->attained =
            kind == DL_PATH_INFINITY ? &dl_rccl_attained : dl_nccl_attained_of(generation);
    if (request->nodes > 1) return between(&path, known->number, &inside, out, err);
    out->ring_bytes_per_s = inside.ring_bytes_per_s / inside.channels;
    out->tree_bytes_per_s = inside.tree_bytes_per_s / inside.tree_channels;
    if (inside.link_bytes_per_s > 0.0)
        out->attained_frac =
            attained_frac(known, inside.link_bytes_per_s, request->allow_decreasing);
    return DL_OK;
}
