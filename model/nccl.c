/* nccl.c - F-NCCL: T(S) = latency + S / bandwidth for each algorithm and protocol, and the cheapest of them. See
 * nccl.h. */
#include "model/nccl.h"

enum { TREE_BINS = 23 };
/* Tree correction by floor(lg(S / 64)): 64 B to 256 MB; 1 beyond. */
static const double tree_correction[DL_NCCL_PROTOCOLS][TREE_BINS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

/* Bandwidth caps in GB/s, [generation][one node, two nodes, more]. */
static const double ll_max[DL_NCCL_GENERATIONS][3] = {
    {39, 39, 20.4}, {87.7, 22.5, 19}, {87.7, 22.5, 19}, {282, 90, 70}};
static const double ll_max_2_21[3] = {141, 45, 35}; /* Hopper from 2.21 */
static const double tree_cap[DL_NCCL_GENERATIONS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {77.4, 82.8, 72}};
static const double ring_ll128_cap[DL_NCCL_GENERATIONS] = {20, 20, 36.7, 73.4};
static const double tree_ll128_cap[DL_NCCL_GENERATIONS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {73.4, 73.4, 58}};
/* 2.5 to 2.7: LL128 caps of the whole operation (2.5, 2.6) and per channel (2.7): all-reduce, broadcast, reduce,
 * all-gather, reduce-scatter. */
struct ll128_old {
    double total, per_channel;
};
static const struct ll128_old ll128_old_caps[DL_COLL_OPS] = {[DL_COLL_ALL_REDUCE] = {100, 16.7},
                                                             [DL_COLL_BROADCAST] = {113, 18.8},
                                                             [DL_COLL_REDUCE] = {72, 12},
                                                             [DL_COLL_ALL_GATHER] = {110, 18.3},
                                                             [DL_COLL_REDUCE_SCATTER] = {91, 15.2}};

/* Attained rate of the links over the one that NCCL takes them to have. NCCL's caps are in its own rates. */
static double attained(const struct dl_nccl_graph *graph) { return graph->attained_frac > 0.0 ? graph->attained_frac : 1.0; }

static int span_of_nodes(double nodes) { return nodes <= 1.0 ? 0 : nodes <= 2.0 ? 1 : 2; }

/* S / correction. With `monotone`, at least the value at the end of the bin below. */
static double corrected_bytes(enum dl_nccl_protocol protocol, double bytes, bool monotone)
{
    int bin = bytes < 64.0 ? -1 : (int)dl_lg_floor(bytes / 64.0);
    const double *table = tree_correction[protocol];
    double here = bytes / (bin >= 0 && bin < TREE_BINS ? table[bin] : 1.0);
    if (!monotone || bin < 1 || bin > TREE_BINS) return here;
    return dl_most(here, 64.0 * dl_power(bin) / table[bin - 1]);
}

/* GB/s on the bus for rings. */
static double ring_bus(int version, const struct dl_nccl_graph *graph, enum dl_collective_op op,
                       enum dl_nccl_protocol protocol)
{
    double bus = graph->channels * graph->ring_bytes_per_s / 1e9, per_node = graph->ranks / graph->nodes;
    double frac = attained(graph);
    int span = span_of_nodes(graph->nodes), generation = (int)graph->generation;
    if (generation == DL_NCCL_AMPERE && version >= 700 && version < 1800) bus = dl_least(bus, frac * 235.0);
    if (protocol == DL_NCCL_LL) {
        double cap = generation == DL_NCCL_HOPPER && version >= 2100 ? ll_max_2_21[span] : ll_max[generation][span];
        bus /= version >= 2100 ? 2.0 : 4.0;
        return version >= 800 ? dl_least(bus, frac * cap) : bus;
    }
    if (protocol == DL_NCCL_LL128) {
        double cap = version < 700   ? ll128_old_caps[op].total
                     : version < 800 ? graph->channels * ll128_old_caps[op].per_channel
                                     : graph->channels * ring_ll128_cap[generation];
        return dl_least(bus * (per_node < 2.0 && version < 2300 ? 0.7 : 0.92), frac * cap);
    }
    return bus;
}

static double tree_bus(int version, const struct dl_nccl_graph *graph, enum dl_nccl_protocol protocol)
{
    int span = span_of_nodes(graph->nodes), generation = (int)graph->generation;
    double cap = version < 600   ? (span == 0 ? 90.0 : 70.0)
                 : version < 800 ? (span <= 1 ? 110.0 : 80.0)
                                 : graph->tree_channels * tree_cap[generation][span];
    double frac = attained(graph), bus = dl_least(0.92 * graph->tree_channels * graph->tree_bytes_per_s / 1e9, frac * cap);
    if (protocol == DL_NCCL_LL) {
        double ll_cap = generation == DL_NCCL_HOPPER && version >= 2100 ? ll_max_2_21[span] : ll_max[generation][span];
        return version >= 800 ? dl_least(bus / 3.8, frac * ll_cap) : bus / 3.8;
    }
    if (protocol == DL_NCCL_LL128) {
        double share = graph->nodes <= 1.0 ? 7.0 / 9.0 : 120.0 / 128.0;
        return dl_least(bus * share, frac * graph->tree_channels * tree_ll128_cap[generation][span]);
    }
    return bus;
}

struct hop {
    double intra_us, inter_us;
};

static struct hop hops(int version, const struct dl_nccl_version *row, const struct dl_nccl_graph *graph, int algorithm,
                       enum dl_nccl_protocol protocol)
{
    const struct dl_nccl_latencies *table = row->latencies;
    /* With one device per node the ring pays the tree's network latency from 2.23 on. */
    int net = algorithm == DL_NCCL_RING && version >= 2300 && graph->ranks <= graph->nodes ? DL_NCCL_TREE : algorithm;
    struct hop hop = {(graph->nvlink ? table->nvlink_us : table->pci_us)[algorithm][protocol],
                      table->net_us[net][protocol] +
                          graph->net_latency_s * 1e6 * (protocol == DL_NCCL_SIMPLE ? 2.0 : 1.0)};
    if (protocol == DL_NCCL_LL && version >= 700 && version < 1800 && graph->nodes > 1.0) hop.intra_us *= 1.8;
    return hop;
}

static double ring_steps(enum dl_collective_op op, double ranks)
{
    if (op == DL_COLL_ALL_REDUCE) return 2.0 * (ranks - 1.0);
    return op == DL_COLL_ALL_GATHER || op == DL_COLL_REDUCE_SCATTER ? ranks - 1.0 : ranks;
}

static double ring_latency_us(int version, const struct dl_nccl_version *row, const struct dl_nccl_graph *graph,
                              enum dl_collective_op op, enum dl_nccl_protocol protocol, double bytes)
{
    struct hop hop = hops(version, row, graph, DL_NCCL_RING, protocol);
    double steps = ring_steps(op, graph->ranks), inter_steps = 0.0;
    if (graph->nodes > 1.0) {
        bool plus_one = version >= 1200 && version < 2300; /* the 2N form */
        double rounds = op == DL_COLL_ALL_REDUCE ? 2.0 : 1.0;
        inter_steps = op == DL_COLL_BROADCAST || op == DL_COLL_REDUCE
                          ? graph->nodes - 1.0
                          : rounds * (plus_one ? graph->nodes : graph->nodes - 1.0);
        if (version >= 1400) {
            double overhead_us = (graph->amd_host ? 2.0 : 1.0) * (protocol == DL_NCCL_SIMPLE ? 3.0 : 1.0);
            hop.intra_us = dl_most(hop.intra_us, overhead_us);
        }
    }
    double intra_steps = dl_most(0.0, steps - inter_steps);
    double latency_us =
        row->latencies->base_us[DL_NCCL_RING][protocol] + intra_steps * hop.intra_us + inter_steps * hop.inter_us;
    if (protocol != DL_NCCL_SIMPLE || graph->nodes <= 1.0 || version < 700) return latency_us;
    bool plateau =
        version >= 1800 ? bytes / (graph->channels * graph->ranks) >= 64.0 : bytes >= graph->ranks / 16.0 * 65536.0;
    double factor = version < 1800 ? (version >= 1700 && graph->generation >= DL_NCCL_HOPPER ? 1.5 : 1.9)
                                   : (graph->generation >= DL_NCCL_AMPERE ? 1.4 : 1.9);
    return plateau ? latency_us * factor : latency_us;
}

/* Switch and in-network reduction; all-reduce, Simple. Latencies: 2.19 to 2.27 (key "nccl-tuning"). */
static bool offload_cost(int version, const struct dl_nccl_graph *graph, enum dl_nccl_algorithm algorithm,
                         double *latency_us, double *bus)
{
    double per_node = graph->ranks / graph->nodes, extra_us = graph->net_latency_s * 2e6;
    double total = graph->channels * graph->ring_bytes_per_s / 1e9;
    double efficiency = graph->generation >= DL_NCCL_BLACKWELL ? 0.74 : 0.85;
    double nvls_us = version >= 2100 ? 25.0 : 23.0;
    switch (algorithm) {
    case DL_NCCL_NVLS:
        if (!graph->nvls || version < 1700 || per_node < 2.0 || graph->nodes > 1.0) return false;
        *latency_us = nvls_us, *bus = total * efficiency * 5.0 / 6.0;
        return true;
    case DL_NCCL_NVLS_TREE:
        if (!graph->nvls || version < 1800 || graph->nodes <= 1.0 || per_node < 2.0) return false;
        *latency_us = nvls_us + 2.0 * dl_lg_floor(graph->nodes) * ((version >= 2800 ? 20.9 : 14.0) + extra_us);
        *bus = graph->tree_channels * graph->tree_bytes_per_s / 1e9 * efficiency * 5.0 / 6.0;
        return true;
    case DL_NCCL_COLLNET_CHAIN:
        if (!graph->collnet || graph->nodes <= 1.0) return false;
        *latency_us = 2.0 * (per_node - 1.0) * 2.8 + 30.0 + extra_us, *bus = total / 2.0;
        return true;
    case DL_NCCL_COLLNET_DIRECT:
        if (!graph->collnet || graph->nodes <= 1.0) return false;
        *latency_us = 2.0 * (dl_least(1.0, per_node - 1.0) * 3.7 + 0.4 * (per_node - 1.0)) + 31.0 + extra_us;
        *bus = total / 2.0;
        return true;
    default: return false;
    }
}

static bool pat_cost(int version, const struct dl_nccl_graph *graph, enum dl_collective_op op, double *latency_us,
                     double *bandwidth)
{
    if (version < 2300 || graph->ranks > graph->nodes || graph->nodes <= 1.0) return false;
    if (op != DL_COLL_ALL_GATHER && op != DL_COLL_REDUCE_SCATTER) return false;
    *latency_us = 8.0 + dl_lg_floor(graph->nodes) * (14.0 + graph->net_latency_s * 2e6) / 3.5 + 2.8 * graph->ranks;
    *bandwidth = graph->channels * graph->ring_bytes_per_s / 1e9 * (version >= 2400 ? 0.75 : 0.85) * graph->ranks /
                 (graph->ranks - 1.0);
    return true;
}

bool dl_nccl_cost(int version, const struct dl_nccl_version *row, const struct dl_nccl_graph *graph,
                  enum dl_collective_op op, enum dl_nccl_algorithm algorithm, enum dl_nccl_protocol protocol,
                  double bytes, bool monotone, struct dl_cost_parts *out)
{
    double latency_us = 0.0, bandwidth = 0.0, moved_bytes = bytes, steps = ring_steps(op, graph->ranks);
    if (protocol == DL_NCCL_LL128 && (!graph->ll128 || version < 500)) return false;
    if (algorithm == DL_NCCL_RING) {
        if (graph->ring_bytes_per_s <= 0.0) return false;
        double ratio = op == DL_COLL_BROADCAST || op == DL_COLL_REDUCE ? 1.0 : graph->ranks / steps;
        bandwidth = ring_bus(version, graph, op, protocol) * ratio;
        latency_us = ring_latency_us(version, row, graph, op, protocol, bytes);
    } else if (algorithm == DL_NCCL_TREE) {
        /* 2.4 built trees between nodes only */
        if (op != DL_COLL_ALL_REDUCE || version < 400 || graph->tree_bytes_per_s <= 0.0) return false;
        if (version < 500 && graph->nodes <= 1.0) return false;
        struct hop hop = hops(version, row, graph, DL_NCCL_TREE, protocol);
        double per_node = graph->ranks / graph->nodes, depth = dl_lg_floor(graph->nodes);
        latency_us = row->latencies->base_us[DL_NCCL_TREE][protocol] +
                     2.0 * ((per_node - 1.0) * hop.intra_us + depth * hop.inter_us);
        bandwidth = tree_bus(version, graph, protocol) * 0.5;
        moved_bytes = corrected_bytes(protocol, bytes, monotone);
        steps = 2.0 * (per_node - 1.0 + depth);
    } else if (protocol != DL_NCCL_SIMPLE) {
        return false;
    } else if (algorithm == DL_NCCL_PAT) {
        if (!pat_cost(version, graph, op, &latency_us, &bandwidth)) return false;
        steps = dl_lg_ceil(graph->ranks);
    } else {
        if (op != DL_COLL_ALL_REDUCE || !offload_cost(version, graph, algorithm, &latency_us, &bandwidth)) return false;
        steps = 2.0 * dl_lg_ceil(graph->nodes) + 2.0;
    }
    *out = (struct dl_cost_parts){latency_us * 1e-6, moved_bytes / (bandwidth * 1e9), steps};
    return true;
}

bool dl_nccl_choose(int version, const struct dl_nccl_version *row, const struct dl_nccl_graph *graph,
                    enum dl_collective_op op, double bytes, int force_algorithm, int force_protocol, bool monotone,
                    enum dl_nccl_algorithm *algorithm, enum dl_nccl_protocol *protocol, struct dl_cost_parts *out)
{
    bool found = false;
    double best_s = 0.0, frac = attained(graph);
    /* Beyond tree and ring only what this graph could have; the loop runs for every prediction. */
    bool extra = graph->nvls || graph->collnet || (version >= 2300 && graph->ranks <= graph->nodes);
    int first = op == DL_COLL_ALL_REDUCE ? DL_NCCL_TREE : DL_NCCL_RING,
        end = extra ? DL_NCCL_ALGORITHMS : DL_NCCL_RING + 1;
    if (force_algorithm >= 0) first = force_algorithm, end = force_algorithm + 1;
    for (int a = first; a < end; a++) {
        for (int p = 0; p < DL_NCCL_PROTOCOLS; p++) {
            struct dl_cost_parts cost;
            if (force_protocol >= 0 && p != force_protocol) continue;
            if (!dl_nccl_cost(version, row, graph, op, (enum dl_nccl_algorithm)a, (enum dl_nccl_protocol)p, bytes,
                              monotone, &cost))
                continue;
            double time_s = cost.latency_s + frac * cost.bandwidth_s; /* as NCCL sees it */
            if (found && time_s >= best_s) continue;
            found = true, best_s = time_s, *out = cost;
            *algorithm = (enum dl_nccl_algorithm)a, *protocol = (enum dl_nccl_protocol)p;
        }
    }
    return found;
}

double dl_nccl24_tree_threshold_bytes(double ranks, double nodes, double channels, bool nvlink)
{
    if (nodes < 2.0) return 0.0;
    double ring = nvlink ? 5000.0 * channels : 5000.0; /* MB/s, which is bytes per us */
    double tree = nvlink ? ring * 0.75 * (nodes == 2.0 ? 2.0 : 1.0) : ring * 2.0 / 3.0;
    if (tree > ring) return HUGE_VAL;
    double ring_us = 6.0 * (ranks - 1.0), tree_us = 15.0 * dl_lg_floor(nodes) + 4.0 * (ranks / nodes - 1.0);
    return dl_most(0.0, ring * tree / (ring - tree) * (ring_us - tree_us));
}
