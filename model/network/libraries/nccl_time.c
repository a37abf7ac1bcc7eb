/* nccl_time.c - one collective as NCCL runs it: NCCL's cost model (nccl.c) for the five ring and
 * tree operations (F-NCCL); sends over the links for point to point, all-to-all, gather, scatter
 * and halo, for which NCCL has no model (F-NCCL-SENDS). */
#include "model/network/libraries/nccl.h"

#include <string.h>

/* Index of the name; -1: none, or no name given. */
static int find_algorithm(const char *name) {
    for (int i = 0; name != NULL && i < DL_NCCL_ALGORITHMS; i++)
        if (strcmp(dl_nccl_algorithms[i].name, name) == 0) return i;
    return -1;
}

static int find_protocol(const char *name) {
    for (int i = 0; name != NULL && i < DL_NCCL_PROTOCOLS; i++)
        if (strcmp(dl_nccl_protocol_names[i], name) == 0) return i;
    return -1;
}

/* Messages of one device to `peers` others. */
struct transfer {
    double adapters_bytes_per_s;
    double peers, inside_bytes, outside_bytes;
    double own_bytes; /* block that stays on the device, which it copies; 0: none */
};

/* F-NCCL-ATTAINED of sends inside a node. One message starts as short sends do and moves at the
 * rate of the links. All-to-all moves short messages slowly, own block included; long ones start
 * as Simple does and copy that block as well. */
static void attained_sends(const struct dl_nccl_attained *own, const struct transfer *t,
                           double inside_s, struct dl_cost_parts *cost, const char **protocol) {
    cost->latency_s = own->sends_us * 1e-6, cost->bandwidth_s = inside_s;
    *protocol = "Simple";
    if (!(t->own_bytes > 0.0)) return;
    const double long_latency_s =
        (own->simple_base_us + ceil(t->peers / 8.0) * own->simple_hop_us) * 1e-6;
    const double long_s = inside_s / own->sends_frac + t->own_bytes * own->copy_s_per_byte,
                 short_s = (t->inside_bytes + t->own_bytes) / own->sends_bytes_per_s;
    const bool is_short = cost->latency_s + short_s <= long_latency_s + long_s;
    if (!is_short) cost->latency_s = long_latency_s;
    cost->bandwidth_s = is_short ? short_s : long_s;
    if (is_short) *protocol = "LL";
}

/* F-NCCL-SENDS: messages in groups of 8 (unverified), concurrently over the device's links inside
 * the node and the adapters outside. */
static void sends(const struct dl_nccl_version *row, const struct dl_nccl_graph *graph,
                  const struct transfer *t, struct dl_collective_time *out) {
    const struct dl_nccl_latencies *table = row->latencies;
    const double(*hop)[3] = graph->nvlink ? table->nvlink_us : table->pci_us;
    const double hop_us =
        t->outside_bytes > 0.0 || graph->ranks <= graph->nodes
            ? table->net_us[DL_NCCL_RING][DL_NCCL_SIMPLE] + graph->net_latency_s * 2e6
            : hop[DL_NCCL_RING][DL_NCCL_SIMPLE];
    const double inside_s =
        t->inside_bytes > 0.0 ? t->inside_bytes / (graph->channels * graph->ring_bytes_per_s) : 0.0;
    const double outside_s =
        t->outside_bytes > 0.0 ? t->outside_bytes / t->adapters_bytes_per_s : 0.0;
    struct dl_cost_parts cost = {
        (table->base_us[DL_NCCL_RING][DL_NCCL_SIMPLE] + ceil(t->peers / 8.0) * hop_us) * 1e-6,
        fmax(inside_s, outside_s), t->peers};
    out->algorithm = dl_nccl_algorithms[DL_NCCL_SENDS].name,
    out->formula = dl_nccl_algorithms[DL_NCCL_SENDS].formula, out->protocol = "Simple";
    if (graph->attained != NULL && graph->attained->sends_us > 0.0 && graph->nodes <= 1.0)
        attained_sends(graph->attained, t, inside_s, &cost, &out->protocol);
    dl_coll_set(out, cost);
    out->limit = outside_s > inside_s ? graph->outside_limit : graph->inside_limit;
}

static enum dl_code sends_time(const struct dl_system *system,
                               const struct dl_collective_request *request,
                               const struct dl_nccl_version *row, const struct dl_nccl_graph *whole,
                               struct dl_collective_time *out, struct dl_err *err) {
    const double per_node = (double)request->ranks_per_node, ranks = whole->ranks,
                 bytes = request->bytes;
    struct dl_nccl_graph graph = *whole;
    struct dl_path path;
    struct dl_path_adapter adapter;
    double adapter_bytes_per_s = 0.0, adapters_bytes_per_s = 0.0;
    const double flows = fmax(1.0, request->flows_per_adapter);
    dl_coll_path(system, request, &path);
    dl_path_adapter_of(system, true, &adapter);
    if (request->nodes > 1) {
        adapter_bytes_per_s = dl_path_adapter_bytes_per_s(&path, adapter.bytes_per_s) / flows;
        adapters_bytes_per_s = path.rail_count * adapter_bytes_per_s;
        if (request->ranks_per_node > 1) { /* links inside the node at their own rate */
            struct dl_collective_request inside = *request;
            struct dl_nccl_graph node;
            inside.nodes = 1;
            DL_TRY(dl_nccl_graph_build(system, &inside, &node, err));
            graph.channels = node.channels, graph.ring_bytes_per_s = node.ring_bytes_per_s;
        }
    }
    const double out_share = (ranks - per_node) / ranks, in_share = (per_node - 1.0) / ranks;
    const bool several = request->ranks_per_node > 1, leaves = request->nodes > 1;
    struct transfer t = {.adapters_bytes_per_s = adapters_bytes_per_s, .peers = ranks - 1.0};
    switch (request->op) {
    case DL_COLL_ALL_TO_ALL:
        t.adapters_bytes_per_s =
            path.rail_count * adapter.bytes_per_s / flows / path.oversubscription;
        t.inside_bytes = bytes * in_share, t.outside_bytes = per_node * bytes * out_share,
        t.own_bytes = bytes / ranks;
        break;
    case DL_COLL_GATHER:
    case DL_COLL_SCATTER: /* the adapters of the root take all traffic of other nodes */
        t.inside_bytes = bytes * in_share, t.outside_bytes = bytes * out_share;
        break;
    case DL_COLL_HALO:
        t.peers = fmin(2.0, ranks - 1.0);
        t.inside_bytes = several ? bytes * fmin(2.0, per_node - 1.0) : 0.0;
        t.outside_bytes = leaves ? 2.0 * bytes : 0.0;
        break;
    default: /* one message, over one adapter or the links of the node */
        t.peers = 1.0, t.adapters_bytes_per_s = adapter_bytes_per_s;
        t.inside_bytes = leaves ? 0.0 : bytes, t.outside_bytes = leaves ? bytes : 0.0;
    }
    sends(row, &graph, &t, out);
    /* a block of the kernel for each channel, on a multiprocessor of its own */
    if (request->op == DL_COLL_ALL_TO_ALL) out->channels = graph.channels;
    return DL_OK;
}

static bool remembered(const struct dl_nccl_memo *memo, const struct dl_system *system,
                       const struct dl_collective_request *request) {
    return memo->system == system && memo->nodes == request->nodes &&
           memo->ranks_per_node == request->ranks_per_node && memo->op == request->op &&
           memo->domain_nodes == request->domain_nodes &&
           memo->allow_decreasing == request->allow_decreasing &&
           memo->group_stride == request->group_stride && memo->concurrent == request->concurrent &&
           memo->node_stride == request->node_stride && memo->span_nodes == request->span_nodes &&
           !(memo->flows_per_adapter < request->flows_per_adapter ||
             memo->flows_per_adapter > request->flows_per_adapter);
}

static enum dl_code remember(const struct dl_system *system,
                             const struct dl_collective_request *request, struct dl_nccl_memo *memo,
                             struct dl_err *err) {
    memo->system = NULL; /* in case of a failure below */
    DL_TRY(dl_nccl_graph_build(system, request, &memo->graph, err));
    memo->row = dl_nccl_version_of(system, &memo->number, &memo->assumed);
    memo->nodes = request->nodes, memo->ranks_per_node = request->ranks_per_node,
    memo->domain_nodes = request->domain_nodes, memo->op = request->op;
    memo->group_stride = request->group_stride, memo->concurrent = request->concurrent;
    memo->node_stride = request->node_stride, memo->span_nodes = request->span_nodes;
    memo->flows_per_adapter = request->flows_per_adapter,
    memo->allow_decreasing = request->allow_decreasing;
    memo->system = system;
    return DL_OK;
}

/* What the request imposes, or else the system file (-1: NCCL is free to choose). */
struct imposed {
    const char *algorithm_name, *protocol_name; /* NULL: free */
    int algorithm, protocol;
};

static enum dl_code find_imposed(const struct dl_system *system,
                                 const struct dl_collective_request *request, struct imposed *out,
                                 struct dl_err *err) {
    const bool own_algorithm = request->algorithm != NULL, own_protocol = request->protocol != NULL;
    out->algorithm_name = own_algorithm ? request->algorithm : system->software.nccl_algorithm;
    out->protocol_name = own_protocol ? request->protocol : system->software.nccl_protocol;
    out->algorithm = find_algorithm(out->algorithm_name);
    out->protocol = find_protocol(out->protocol_name);
    if (out->algorithm_name != NULL && out->algorithm < 0)
        return dl_fail(err, own_algorithm ? DL_ERR_USAGE : DL_ERR_INPUT,
                       "NCCL has no algorithm '%s'; expected tree, ring, nvls, nvls_tree, "
                       "collnet_direct, collnet_chain or pat",
                       out->algorithm_name);
    if (out->protocol_name != NULL && out->protocol < 0)
        return dl_fail(err, own_protocol ? DL_ERR_USAGE : DL_ERR_INPUT,
                       "NCCL has no protocol '%s'; expected LL, LL128 or Simple",
                       out->protocol_name);
    /* An algorithm from a job's environment binds the operations that have it; the others choose
     * freely. */
    if (!own_algorithm && request->op != DL_COLL_ALL_REDUCE && out->algorithm != DL_NCCL_RING &&
        out->algorithm != DL_NCCL_PAT)
        out->algorithm = -1;
    return DL_OK;
}

static const char *or_any(const char *name) { return name != NULL ? name : "(any)"; }

/* A ring or tree operation: the cost of what NCCL chooses. */
static enum dl_code chosen_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_nccl_memo *memo, struct dl_collective_time *out,
                                struct dl_err *err) {
    struct dl_nccl_graph *graph = &memo->graph;
    struct imposed imposed;
    struct dl_cost_parts cost;
    enum dl_nccl_algorithm algorithm;
    enum dl_nccl_protocol protocol;
    DL_TRY(find_imposed(system, request, &imposed, err));
    graph->collnet =
        imposed.algorithm == DL_NCCL_COLLNET_DIRECT || imposed.algorithm == DL_NCCL_COLLNET_CHAIN;
    if (!dl_nccl_choose(&(struct dl_nccl_operation){memo->number, memo->row, graph, request->op,
                                                    request->bytes, !request->allow_decreasing},
                        imposed.algorithm, imposed.protocol, &algorithm, &protocol, &cost))
        return dl_fail(
            err, DL_ERR_INPUT, "NCCL %s cannot run this with algorithm %s and protocol %s here",
            memo->row->text, or_any(imposed.algorithm_name), or_any(imposed.protocol_name));
    dl_coll_set(out, cost);
    out->algorithm = dl_nccl_algorithms[algorithm].name;
    out->protocol = dl_nccl_protocol_names[protocol];
    out->formula = dl_nccl_algorithms[algorithm].formula;
    out->channels = graph->channels; /* of trees as well: dl_nccl_graph_build() has as many */
    out->limit = algorithm == DL_NCCL_TREE ? graph->tree_limit : graph->limit;
    return DL_OK;
}

static enum dl_code nccl_time(const struct dl_system *system,
                              const struct dl_collective_request *request,
                              struct dl_collective_time *out, struct dl_err *err) {
    /* cppcheck-suppress uninitvar ; remember() fills it before it is read */
    struct dl_nccl_memo own, *memo = request->memo != NULL ? request->memo : &own;
    if (memo == &own || !remembered(memo, system, request))
        DL_TRY(remember(system, request, memo, err));
    out->origin = memo->assumed ? "model (NCCL version assumed)" : "model";
    /* Spread of log(predicted / measured) over the rows of data/collectives/published.csv
     * (tests/unit/test_collective_published.c with DLMODEL_VERBOSE=1): one node 0.05 (median /
     * 0.6745) to 0.13 (90 % / 1.645); several nodes, 7 rows, 0.13 to 0.5. */
    out->sigma_log = request->nodes > 1 ? 0.3 : 0.1;
    /* RCCL: only all-reduces over 8 devices of a node are measured */
    if (system->has_intra && dl_path_inside_kind(system) == DL_PATH_INFINITY)
        out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    if (request->op > DL_COLL_ALL_GATHER || request->op == DL_COLL_P2P)
        return sends_time(system, request, memo->row, &memo->graph, out, err);
    return chosen_time(system, request, memo, out, err);
}

static const char *const spellings[] = {"NCCL", "nccl", "RCCL", NULL};

const struct dl_collective_library dl_library_nccl = {
    .summary = "NCCL, and RCCL: collectives of GPUs by kernels on them",
    .formula = "F-NCCL",
    .source = "nccl-tuning",
    .spellings = spellings,
    .on_gpus = true,
    .takes_gpu_memory = true,
    .queues_on_gpu = true,
    .spans_domains = true,
    .has_own_rate = true,
    .algorithm_key = "nccl_algorithm",
    .algorithms = dl_nccl_algorithms,
    .time = nccl_time,
};
