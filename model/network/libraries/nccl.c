/* nccl.c - F-NCCL: T(S) = latency + S / bandwidth for each algorithm and protocol, and the choice
 * of the cheapest. See nccl.h. */
#include "model/network/libraries/nccl.h"
#include "model/network/libraries/nccl_caps.h"

static int span_of_nodes(double nodes) { return nodes <= 1.0 ? 0 : nodes <= 2.0 ? 1 : 2; }

/* What all algorithms and protocols share for one operation on one graph. NCCL's caps assume its
 * own rates of the links. */
struct shared {
    const struct dl_nccl_latencies *table;
    /* inside a node, [tree, ring][protocol] */
    const double (*hop_us)[3];
    /* attained / NCCL's own rate of the links */
    double frac;
    /* GB/s */
    double per_node, ll_cap;
    /* of the adapter, added to a hop between nodes: once, twice (Simple) */
    double net_us[2];
    double ring_steps;
    double ll_hop_scale;
    int version, span;
    bool ll_capped;
};

static double ring_steps(enum dl_collective_op op, double ranks) {
    if (op == DL_COLL_ALL_REDUCE) return 2.0 * (ranks - 1.0);
    return op == DL_COLL_ALL_GATHER || op == DL_COLL_REDUCE_SCATTER ? ranks - 1.0 : ranks;
}

/* Cap of LL: by the GPU inside a node, by the vendor of the CPUs (an AMD host has the row of
 * Ampere, others that of Volta) between nodes. */
static double ll_cap(int version, const struct dl_nccl_graph *graph, int span) {
    const int row = span == 0         ? (int)graph->generation
                    : graph->amd_host ? DL_NCCL_AMPERE
                                      : DL_NCCL_VOLTA;
    return row == DL_NCCL_HOPPER && version >= 2100 ? ll_max_2_21[span] : ll_max[row][span];
}

static inline struct shared shared_of(const struct dl_nccl_operation *operation) {
    const int version = operation->version;
    const struct dl_nccl_version *row = operation->row;
    const struct dl_nccl_graph *graph = operation->graph;
    const int span = span_of_nodes(graph->nodes);
    const double extra_us = graph->net_latency_s * 1e6;
    return (struct shared){
        .table = row->latencies,
        .hop_us = graph->nvlink ? row->latencies->nvlink_us : row->latencies->pci_us,
        .frac = graph->attained_frac > 0.0 ? graph->attained_frac : 1.0,
        .per_node = graph->ranks / graph->nodes,
        .ll_cap = ll_cap(version, graph, span),
        .net_us = {extra_us, extra_us * 2.0},
        .ring_steps = ring_steps(operation->op, graph->ranks),
        .ll_hop_scale = version >= 700 && version < 1800 && graph->nodes > 1.0 ? 1.8 : 1.0,
        .version = version,
        .span = span,
        .ll_capped = version >= 800,
    };
}

/* Latencies of one message inside a node and between nodes. */
static double hop_inside_us(const struct shared *s, int algorithm, enum dl_nccl_protocol protocol) {
    const double us = s->hop_us[algorithm][protocol];
    return protocol == DL_NCCL_LL ? us * s->ll_hop_scale : us;
}

static double hop_between_us(const struct shared *s, int algorithm,
                             enum dl_nccl_protocol protocol) {
    return s->table->net_us[algorithm][protocol] + s->net_us[protocol == DL_NCCL_SIMPLE];
}

/* S / the tree's correction; with `monotone` at least the value at the end of the bin below. */
static double corrected_bytes(int version, enum dl_nccl_protocol protocol, double bytes,
                              bool monotone) {
    int bin = bytes < 64.0 ? -1 : (int)dl_floor_log2(bytes / 64.0);
    const double *table = (version < 800 ? tree_correction_2_7 : tree_correction)[protocol];
    double here = bytes / (bin >= 0 && bin < TREE_BINS ? table[bin] : 1.0);
    if (!monotone || bin < 1 || bin > TREE_BINS) return here;
    return fmax(here, 64.0 * dl_exp2(bin) / table[bin - 1]);
}

/* A cost as NCCL sees it: latency [us], bandwidth [GB/s], bytes / correction. F-NCCL-ATTAINED: what
 * measured constants add to its latency and bandwidth time. */
struct line {
    double latency_us, bandwidth, moved_bytes;
    double extra_us, extra_s;
};

/* What the protocols of a ring share. */
struct ring {
    double inter_steps, overhead_us;
    double intra_steps;  /* -2 where NCCL counts 2N steps between N nodes of one device each */
    double simple_scale; /* factor of the latency of Simple at this size */
    int net;             /* row of the network latency that applies */
};

static inline struct ring ring_of(const struct shared *s, const struct dl_nccl_graph *graph,
                                  enum dl_collective_op op, double bytes) {
    const int version = s->version;
    struct ring ring = {
        .intra_steps = fmax(0.0, s->ring_steps),
        .simple_scale = 1.0,
        /* From 2.23 on, a ring with one device per node takes the tree's network latency. */
        .net = version >= 2300 && graph->ranks <= graph->nodes ? DL_NCCL_TREE : DL_NCCL_RING};
    if (graph->nodes <= 1.0) return ring;
    const bool plus_one = version >= 1200 && version < 2300; /* the 2N form */
    ring.inter_steps = op != DL_COLL_ALL_REDUCE ? graph->nodes - 1.0
                       : plus_one               ? 2.0 * graph->nodes
                                                : 2.0 * (graph->nodes - 1.0);
    ring.intra_steps = s->ring_steps - ring.inter_steps;
    if (version >= 1400) ring.overhead_us = graph->amd_host ? 2.0 : 1.0;
    if (version >= 700 && op == DL_COLL_ALL_REDUCE) {
        /* at least 64 bytes per rank and channel, without a division */
        const bool plateau = version >= 1800 ? bytes >= 64.0 * (graph->channels * graph->ranks)
                                             : bytes >= graph->ranks / 16.0 * 65536.0;
        const double scale =
            version < 1800 ? (version >= 1700 && graph->generation >= DL_NCCL_HOPPER ? 1.5 : 1.9)
                           : (graph->generation >= DL_NCCL_AMPERE ? 1.4 : 1.9);
        if (plateau) ring.simple_scale = scale;
    }
    return ring;
}

static inline double ring_latency_us(const struct shared *s, const struct ring *ring,
                                     enum dl_nccl_protocol protocol) {
    double intra_us = hop_inside_us(s, DL_NCCL_RING, protocol);
    if (ring->overhead_us > 0.0)
        intra_us = fmax(intra_us,
                        protocol == DL_NCCL_SIMPLE ? ring->overhead_us * 3.0 : ring->overhead_us);
    const double latency_us = s->table->base_us[DL_NCCL_RING][protocol] +
                              ring->intra_steps * intra_us +
                              ring->inter_steps * hop_between_us(s, ring->net, protocol);
    return protocol == DL_NCCL_SIMPLE ? latency_us * ring->simple_scale : latency_us;
}

/* F-NCCL-ATTAINED: measured start and steps of a protocol - NCCL's own. Between nodes only the
 * steps of LL inside them are known. */
static inline void ring_extra(const struct shared *s, const struct dl_nccl_graph *graph,
                              const struct ring *ring, enum dl_nccl_protocol protocol, double bytes,
                              struct line *line) {
    const struct dl_nccl_attained *own = graph->attained;
    const double *base_us = s->table->base_us[DL_NCCL_RING];
    if (own == NULL) return;
    if (protocol != DL_NCCL_LL) line->extra_s = bytes / graph->ranks * own->copy_s_per_byte;
    if (protocol == DL_NCCL_LL128) {
        const double links = graph->channels * graph->ring_bytes_per_s * graph->ranks /
                             s->ring_steps * own->ll128_frac;
        if (own->ll128_us > 0.0 && graph->nodes <= 1.0)
            line->extra_us = own->ll128_us - line->latency_us;
        if (graph->nodes <= 1.0)
            line->extra_s += fmax(0.0, bytes / links - bytes / (line->bandwidth * 1e9));
        return;
    }
    if (protocol == DL_NCCL_LL) {
        const double seen_us = fmax(hop_inside_us(s, DL_NCCL_RING, protocol), ring->overhead_us);
        line->extra_us =
            own->ll_base_us - base_us[protocol] +
            fmax(0.0, ring->intra_steps) * (fmax(own->ll_hop_us, ring->overhead_us) - seen_us);
        return;
    }
    line->extra_us = own->simple_base_us - base_us[protocol];
    if (graph->nodes <= 1.0)
        line->extra_us +=
            ring->intra_steps * (own->simple_hop_us - hop_inside_us(s, DL_NCCL_RING, protocol));
}

static inline double ring_bandwidth(const struct shared *s, const struct dl_nccl_graph *graph,
                                    enum dl_collective_op op, enum dl_nccl_protocol protocol) {
    const int version = s->version;
    double bus = graph->channels * graph->ring_bytes_per_s / 1e9;
    if (graph->generation == DL_NCCL_AMPERE && version >= 700 && version < 1800)
        bus = fmin(bus, s->frac * 235.0);
    if (protocol == DL_NCCL_LL) {
        const bool one_way =
            version >= 700 && s->span == 0 && op != DL_COLL_ALL_REDUCE && op != DL_COLL_REDUCE;
        bus /= version >= 2100 ? 2.0 : one_way ? 3.0 : 4.0;
        if (s->ll_capped) bus = fmin(bus, s->frac * s->ll_cap);
    } else if (protocol == DL_NCCL_LL128) {
        double cap = version < 700   ? ll128_old_caps[op].bandwidth
                     : version < 800 ? graph->channels * ll128_old_caps[op].rate
                                     : graph->channels * ring_ll128_cap[graph->generation];
        bus = fmin(bus * (s->per_node < 2.0 && version < 2300 ? 0.7 : 0.92), s->frac * cap);
    }
    return bus * (graph->ranks / s->ring_steps);
}

static inline double tree_latency_us(const struct shared *s, enum dl_nccl_protocol protocol,
                                     double depth) {
    return s->table->base_us[DL_NCCL_TREE][protocol] +
           2.0 * ((s->per_node - 1.0) * hop_inside_us(s, DL_NCCL_TREE, protocol) +
                  depth * hop_between_us(s, DL_NCCL_TREE, protocol));
}

/* Cap in GB/s of a tree before its protocol takes its share. */
static inline double tree_cap_of(const struct shared *s, const struct dl_nccl_graph *graph,
                                 enum dl_nccl_protocol protocol) {
    const int version = s->version, span = s->span;
    if (version < 600) return span == 0 ? 90.0 : 70.0;
    if (version < 800) {
        const bool tuned =
            version >= 700 && graph->generation == DL_NCCL_AMPERE && protocol == DL_NCCL_LL128;
        return span <= 1 ? (tuned ? 130.0 : 110.0) : tuned ? 105.0 : 80.0;
    }
    const bool newer = version >= 2800 && graph->generation == DL_NCCL_BLACKWELL;
    return graph->tree_channels * (newer ? tree_cap_2_28 : tree_cap[graph->generation])[span];
}

/* GB/s. 2.6, which was not read, takes what 2.7 has. */
static inline double tree_ll128_bus(const struct shared *s, const struct dl_nccl_graph *graph,
                                    double bus) {
    const int version = s->version, span = s->span;
    const bool one_node = graph->nodes <= 1.0, old = version < 800,
               newer = version >= 2800 && graph->generation == DL_NCCL_BLACKWELL;
    if (version < 600) return bus * 7.0 / 9.0;
    const double cap = old     ? ll128_old_caps[DL_COLL_ALL_REDUCE].rate * 7.0 / 9.0
                       : newer ? tree_ll128_cap_2_28[span]
                               : tree_ll128_cap[graph->generation][span];
    return fmin(bus * (one_node ? 7.0 / 9.0
                       : old    ? 0.915
                                : 120.0 / 128.0),
                s->frac * graph->tree_channels * cap);
}

static inline double tree_bandwidth(const struct shared *s, const struct dl_nccl_graph *graph,
                                    enum dl_nccl_protocol protocol) {
    const int version = s->version;
    double bus = graph->tree_channels * graph->tree_bytes_per_s / 1e9;
    if (graph->generation == DL_NCCL_AMPERE && version >= 700 && version < 1800)
        bus = fmin(bus, s->frac * 235.0);
    bus = fmin((version < 800 ? 0.9 : 0.92) * bus, s->frac * tree_cap_of(s, graph, protocol));
    if (protocol == DL_NCCL_LL) {
        bus = bus / 3.8;
        if (s->ll_capped) bus = fmin(bus, s->frac * s->ll_cap);
    } else if (protocol == DL_NCCL_LL128) {
        bus = tree_ll128_bus(s, graph, bus);
    }
    return bus * 0.5;
}

/* F-NCCL-ATTAINED: trees start as rings do; their steps are known for LL alone, inside a node. */
static inline void tree_extra(const struct shared *s, const struct dl_nccl_graph *graph,
                              enum dl_nccl_protocol protocol, struct line *line) {
    const struct dl_nccl_attained *own = graph->attained;
    const double *base_us = s->table->base_us[DL_NCCL_RING];
    if (own == NULL || protocol == DL_NCCL_LL128) return;
    if (protocol == DL_NCCL_SIMPLE) {
        line->extra_us = own->simple_base_us - base_us[protocol];
        return;
    }
    line->extra_us =
        own->ll_base_us - base_us[protocol] +
        2.0 * (s->per_node - 1.0) * (own->ll_hop_us - hop_inside_us(s, DL_NCCL_TREE, protocol));
}

static bool has_ring(const struct dl_nccl_graph *graph) { return graph->ring_bytes_per_s > 0.0; }

/* 2.4 built trees between nodes only. */
static bool has_tree(int version, const struct dl_nccl_graph *graph, enum dl_collective_op op) {
    return op == DL_COLL_ALL_REDUCE && version >= 400 && graph->tree_bytes_per_s > 0.0 &&
           (version >= 500 || graph->nodes > 1.0);
}

static bool has_protocol(int version, const struct dl_nccl_graph *graph,
                         enum dl_nccl_protocol protocol) {
    return protocol != DL_NCCL_LL128 || (graph->ll128 && version >= 500);
}

static double steps_of(const struct shared *s, const struct dl_nccl_graph *graph,
                       enum dl_nccl_algorithm algorithm) {
    switch (algorithm) {
    case DL_NCCL_RING: return s->ring_steps;
    case DL_NCCL_TREE: return 2.0 * (s->per_node - 1.0 + dl_floor_log2(graph->nodes));
    case DL_NCCL_PAT: return dl_ceil_log2(graph->ranks);
    default: return 2.0 * dl_ceil_log2(graph->nodes) + 2.0;
    }
}

static struct dl_cost_parts parts(const struct line *line, double steps) {
    return (struct dl_cost_parts){(line->latency_us + line->extra_us) * 1e-6,
                                  line->moved_bytes / (line->bandwidth * 1e9) + line->extra_s,
                                  steps};
}

/* The cheapest so far, by NCCL's own rates of the links or (attained) by the measured ones. */
struct best {
    struct line line;
    double seen_s;
    int algorithm, protocol;
    bool attained;
};

static inline void consider(struct best *best, double frac, struct line line, int algorithm,
                            int protocol) {
    double seen_s = line.latency_us * 1e-6 + frac * (line.moved_bytes / (line.bandwidth * 1e9));
    if (best->attained)
        seen_s = (line.latency_us + line.extra_us) * 1e-6 +
                 line.moved_bytes / (line.bandwidth * 1e9) + line.extra_s;
    if (seen_s < best->seen_s)
        best->line = line, best->seen_s = seen_s, best->algorithm = algorithm,
        best->protocol = protocol;
}

/* Whether the latency alone already costs as much as the best. */
static inline bool hopeless(const struct best *best, double latency_us) {
    return !best->attained && latency_us * 1e-6 >= best->seen_s;
}

/* Between more than two nodes an adapter takes the sums of two others and then the result. */
static double nvls_tree_rate(const struct dl_nccl_graph *graph) {
    const double rate = graph->tree_channels * graph->tree_bytes_per_s / 1e9;
    return graph->nodes > 2.0 ? rate / 2.0 : rate;
}

/* In-network reduction (NVLS, CollNet): all-reduce, Simple. Latencies of 2.19 to 2.27 (key
 * "nccl-tuning"). False: this graph or version has none. */
static bool offload_cost(int version, const struct dl_nccl_graph *graph,
                         enum dl_nccl_algorithm algorithm, double *latency_us, double *bus) {
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
        *latency_us = nvls_us + 2.0 * dl_floor_log2(graph->nodes) *
                                    ((version >= 2800 ? 20.9 : 14.0) + extra_us);
        *bus = nvls_tree_rate(graph) * efficiency * 5.0 / 6.0;
        return true;
    case DL_NCCL_COLLNET_CHAIN:
        if (!graph->collnet || graph->nodes <= 1.0) return false;
        *latency_us = 2.0 * (per_node - 1.0) * 2.8 + 30.0 + extra_us, *bus = total / 2.0;
        return true;
    case DL_NCCL_COLLNET_DIRECT:
        if (!graph->collnet || graph->nodes <= 1.0) return false;
        *latency_us =
            2.0 * (fmin(1.0, per_node - 1.0) * 3.7 + 0.4 * (per_node - 1.0)) + 31.0 + extra_us;
        *bus = total / 2.0;
        return true;
    default: return false;
    }
}

static bool pat_cost(int version, const struct dl_nccl_graph *graph, enum dl_collective_op op,
                     double *latency_us, double *bandwidth) {
    if (version < 2300 || graph->ranks > graph->nodes || graph->nodes <= 1.0) return false;
    if (op != DL_COLL_ALL_GATHER && op != DL_COLL_REDUCE_SCATTER) return false;
    *latency_us = 8.0 + dl_floor_log2(graph->nodes) * (14.0 + graph->net_latency_s * 2e6) / 3.5 +
                  2.8 * graph->ranks;
    *bandwidth = graph->channels * graph->ring_bytes_per_s / 1e9 * (version >= 2400 ? 0.75 : 0.85);
    return true;
}

/* Algorithms other than ring and tree, which have the protocol Simple alone. */
static bool other_line(int version, const struct dl_nccl_graph *graph, enum dl_collective_op op,
                       enum dl_nccl_algorithm algorithm, double bytes, struct line *out) {
    *out = (struct line){0.0, 0.0, bytes, 0.0, 0.0};
    if (algorithm == DL_NCCL_PAT)
        return pat_cost(version, graph, op, &out->latency_us, &out->bandwidth);
    return op == DL_COLL_ALL_REDUCE &&
           offload_cost(version, graph, algorithm, &out->latency_us, &out->bandwidth);
}

bool dl_nccl_cost(const struct dl_nccl_operation *operation, enum dl_nccl_algorithm algorithm,
                  enum dl_nccl_protocol protocol, struct dl_cost_parts *out) {
    const int version = operation->version;
    const struct dl_nccl_graph *graph = operation->graph;
    const enum dl_collective_op op = operation->op;
    const double bytes = operation->bytes;
    const struct shared s = shared_of(operation);
    struct line line;
    if (!has_protocol(version, graph, protocol)) return false;
    if (algorithm == DL_NCCL_RING) {
        if (!has_ring(graph)) return false;
        const struct ring ring = ring_of(&s, graph, op, bytes);
        line = (struct line){ring_latency_us(&s, &ring, protocol),
                             ring_bandwidth(&s, graph, op, protocol), bytes, 0.0, 0.0};
    } else if (algorithm == DL_NCCL_TREE) {
        if (!has_tree(version, graph, op)) return false;
        line =
            (struct line){tree_latency_us(&s, protocol, dl_floor_log2(graph->nodes)),
                          tree_bandwidth(&s, graph, protocol),
                          corrected_bytes(version, protocol, bytes, operation->monotone), 0.0, 0.0};
    } else if (protocol != DL_NCCL_SIMPLE ||
               !other_line(version, graph, op, algorithm, bytes, &line)) {
        return false;
    }
    *out = parts(&line, steps_of(&s, graph, algorithm));
    return true;
}

/* A choice under way: what is run, the protocols that may serve it, and the best so far. */
struct choice {
    const struct shared *s;
    const struct dl_nccl_graph *graph;
    enum dl_collective_op op;
    double bytes;
    bool monotone;
    bool allowed[DL_NCCL_PROTOCOLS];
    struct best best;
};

static inline void consider_trees(struct choice *c) {
    const double depth = dl_floor_log2(c->graph->nodes);
    for (int p = 0; p < DL_NCCL_PROTOCOLS; p++) {
        const enum dl_nccl_protocol protocol = (enum dl_nccl_protocol)p;
        const double latency_us = tree_latency_us(c->s, protocol, depth);
        if (!c->allowed[p] || hopeless(&c->best, latency_us)) continue;
        struct line line = {latency_us, tree_bandwidth(c->s, c->graph, protocol),
                            corrected_bytes(c->s->version, protocol, c->bytes, c->monotone), 0.0,
                            0.0};
        tree_extra(c->s, c->graph, protocol, &line);
        consider(&c->best, c->s->frac, line, DL_NCCL_TREE, p);
    }
}

static inline void consider_rings(struct choice *c) {
    const struct ring ring = ring_of(c->s, c->graph, c->op, c->bytes);
    for (int p = 0; p < DL_NCCL_PROTOCOLS; p++) {
        const enum dl_nccl_protocol protocol = (enum dl_nccl_protocol)p;
        const double latency_us = ring_latency_us(c->s, &ring, protocol);
        if (!c->allowed[p] || hopeless(&c->best, latency_us)) continue;
        struct line line = {latency_us, ring_bandwidth(c->s, c->graph, c->op, protocol), c->bytes,
                            0.0, 0.0};
        ring_extra(c->s, c->graph, &ring, protocol, c->bytes, &line);
        consider(&c->best, c->s->frac, line, DL_NCCL_RING, p);
    }
}

/* F-NCCL-ATTAINED of in-switch reduction: each device sends all of the message and a p-th again as
 * multicast, so that the rate falls by (1 + 1/p) from that of NCCL's formula, which holds for 8. */
static inline void consider_offload(struct choice *c, struct line line, int algorithm) {
    const struct dl_nccl_attained *own = c->graph->attained;
    if (algorithm != DL_NCCL_NVLS || own == NULL || !(own->nvls_us > 0.0)) {
        consider(&c->best, c->s->frac, line, algorithm, DL_NCCL_SIMPLE);
        return;
    }
    const double seen_s = line.moved_bytes / (line.bandwidth * 1e9),
                 rate = (9.0 / 8.0) / (1.0 + 1.0 / c->s->per_node);
    const double all_s = own->nvls_us * 1e-6 + seen_s / rate,
                 short_s = own->nvls_short_us * 1e-6 + seen_s / rate / own->nvls_short_frac;
    const bool is_short = short_s < all_s;
    line.extra_us = (is_short ? own->nvls_short_us : own->nvls_us) - line.latency_us;
    line.extra_s = seen_s / (is_short ? rate * own->nvls_short_frac : rate) - seen_s;
    consider(&c->best, c->s->frac, line, algorithm, DL_NCCL_SIMPLE);
}

/* Algorithms other than tree and ring: the one forced, or all where this graph can have any. */
static inline void consider_others(struct choice *c, int force_algorithm) {
    const struct dl_nccl_graph *graph = c->graph;
    const bool any = force_algorithm < 0;
    if (!c->allowed[DL_NCCL_SIMPLE]) return;
    if (any && !graph->nvls && !graph->collnet &&
        !(c->s->version >= 2300 && graph->ranks <= graph->nodes))
        return;
    const int first = any ? DL_NCCL_RING + 1 : force_algorithm,
              end = any ? DL_NCCL_ALGORITHMS : first + 1;
    for (int a = first; a < end; a++) {
        struct line line;
        if (a > DL_NCCL_RING &&
            other_line(c->s->version, graph, c->op, (enum dl_nccl_algorithm)a, c->bytes, &line))
            consider_offload(c, line, a);
    }
}

bool dl_nccl_choose(const struct dl_nccl_operation *operation, int force_algorithm,
                    int force_protocol, enum dl_nccl_algorithm *algorithm,
                    enum dl_nccl_protocol *protocol, struct dl_cost_parts *out) {
    const int version = operation->version;
    const struct dl_nccl_graph *graph = operation->graph;
    const struct shared s = shared_of(operation);
    struct choice c = {.s = &s,
                       .graph = graph,
                       .op = operation->op,
                       .bytes = operation->bytes,
                       .monotone = operation->monotone,
                       .best = {.seen_s = HUGE_VAL,
                                .algorithm = -1,
                                .attained = operation->monotone && graph->attained != NULL}};
    for (int p = 0; p < DL_NCCL_PROTOCOLS; p++)
        c.allowed[p] = (force_protocol < 0 || p == force_protocol) &&
                       has_protocol(version, graph, (enum dl_nccl_protocol)p);
    const bool any = force_algorithm < 0;
    if ((any || force_algorithm == DL_NCCL_TREE) && has_tree(version, graph, operation->op))
        consider_trees(&c);
    if ((any || force_algorithm == DL_NCCL_RING) && has_ring(graph)) consider_rings(&c);
    consider_others(&c, force_algorithm);
    if (c.best.algorithm < 0) return false;
    *algorithm = (enum dl_nccl_algorithm)c.best.algorithm;
    *protocol = (enum dl_nccl_protocol)c.best.protocol;
    *out = parts(&c.best.line, steps_of(&s, graph, *algorithm));
    return true;
}
