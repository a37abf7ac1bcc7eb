/* oneccl.c - Intel's oneCCL (F-ONECCL; key "oneccl-docs").
 *
 * Host memory: the selection tables of its OFI transport, by elements of 4 bytes; with its MPI
 * transport ("direct") it calls MPI. Memory of GPUs: scale-up inside each node, where every GPU
 * gathers and sums its shard from the others and returns it by copy engines, and scale-out between
 * nodes by a ring of each shard through host memory. Not modelled: worker threads, fusion of small
 * messages, compute kernels in place of copy engines. */
#include "model/network/libraries/coll_copy.h"
#include "model/network/libraries/mpi_rules.h"

static const double ELEMENT_BYTES = 4.0;
/* Largest messages of a rule, in elements. */
static const double ALL_REDUCE_SHORT = 8192.0, ALL_REDUCE_MEDIUM = 1048576.0,
                    ALL_GATHER_SHORT = 32768.0, BROADCAST_SHORT = 8192.0;

enum { DOUBLING, NREDUCE, RING, DOUBLE_TREE, NAIVE, TOPO, DIRECT };
#define SHARDED (DL_ON(ALL_REDUCE) | DL_ON(REDUCE_SCATTER) | DL_ON(ALL_GATHER))
static const struct dl_collective_algorithm algorithms[] = {
    [DOUBLING] = {"recursive_doubling", "lg p exchanges of the whole vector", DL_ON(ALL_REDUCE),
                  "F-ONECCL", "oneccl-docs"},
    [NREDUCE] = {"nreduce", "each rank sums its block of all others and sends it back",
                 DL_ON(ALL_REDUCE), "F-ONECCL", "oneccl-docs"},
    [RING] = {"ring", "blocks passed around a ring", SHARDED, "F-ONECCL", "oneccl-docs"},
    [DOUBLE_TREE] = {"double_tree", "two complementary binary trees", DL_ON(BROADCAST), "F-ONECCL",
                     "oneccl-docs"},
    [NAIVE] = {"naive", "messages to all other ranks", DL_ON(BROADCAST) | DL_ON(ALL_GATHER),
               "F-ONECCL", "oneccl-docs"},
    [TOPO] = {"topo", "shards inside a node by copy engines, rings of shards between nodes",
              SHARDED | DL_ON(BROADCAST), "F-ONECCL", "oneccl-docs"},
    [DIRECT] = {"direct", "MPI's own",
                DL_ON(ALL_REDUCE) | DL_ON(REDUCE_SCATTER) | DL_ON(ALL_GATHER) | DL_ON(BROADCAST),
                "F-ONECCL", "oneccl-docs"},
    {.name = NULL}};

/* The rule for host memory; *below_bytes: largest smaller size of another rule; 0: none. */
static int choose(enum dl_collective_op op, double ranks, double bytes, double *below_bytes) {
    const double elements = bytes / ELEMENT_BYTES;
    *below_bytes = 0.0;
    switch (op) {
    case DL_COLL_ALL_REDUCE:
        if (elements <= ALL_REDUCE_SHORT) return DOUBLING;
        *below_bytes =
            ELEMENT_BYTES * (elements <= ALL_REDUCE_MEDIUM ? ALL_REDUCE_SHORT : ALL_REDUCE_MEDIUM);
        return elements <= ALL_REDUCE_MEDIUM ? NREDUCE : RING;
    case DL_COLL_BROADCAST:
        if (elements <= BROADCAST_SHORT) return DOUBLE_TREE;
        *below_bytes = ELEMENT_BYTES * BROADCAST_SHORT;
        return NAIVE;
    case DL_COLL_ALL_GATHER: /* by the block of one rank */
        if (elements <= ALL_GATHER_SHORT * ranks) return NAIVE;
        *below_bytes = ELEMENT_BYTES * ALL_GATHER_SHORT * ranks;
        return RING;
    default: return RING;
    }
}

static struct dl_cost_parts sum_of(struct dl_cost_parts a, struct dl_cost_parts b) {
    return (struct dl_cost_parts){a.latency_s + b.latency_s, a.bandwidth_s + b.bandwidth_s,
                                  a.steps + b.steps};
}

static struct dl_cost_parts host_cost(int algorithm, enum dl_collective_op op,
                                      const struct dl_coll_links *links, double bytes) {
    const struct dl_mpi_choice pairwise = {.algorithm = DL_MPI_PAIRWISE},
                               linear = {.algorithm = DL_MPI_LINEAR},
                               tree = {.algorithm = DL_MPI_BINOMIAL};
    const struct dl_hockney slowest = dl_coll_slowest_link(links);
    const bool all_reduce = op == DL_COLL_ALL_REDUCE;
    switch (algorithm) {
    case DOUBLING: return dl_mpi_all_reduce_cost(DL_MPI_INTEL, DL_MPI_DOUBLING, links, bytes);
    case NREDUCE: {
        struct dl_cost_parts cost = dl_mpi_other_cost(DL_COLL_ALL_TO_ALL, &pairwise, links, bytes);
        cost = sum_of(cost, cost);
        cost.bandwidth_s +=
            (links->ranks - 1.0) / links->ranks * bytes * links->inter.gamma_s_per_byte;
        return cost;
    }
    case DOUBLE_TREE: return dl_mpi_other_cost(op, &tree, links, bytes);
    case NAIVE:
        return op == DL_COLL_BROADCAST
                   ? dl_mpi_other_cost(op, &linear, links, bytes)
                   : dl_mpi_other_cost(DL_COLL_ALL_TO_ALL, &pairwise, links, bytes);
    default:
        return dl_coll_ring_cost(&slowest, links->ranks, bytes, all_reduce ? 2.0 : 1.0,
                                 (all_reduce ? 2.0 : 1.0) * (links->ranks - 1.0),
                                 op != DL_COLL_ALL_GATHER);
    }
}

struct chosen {
    int algorithm;
    enum dl_collective_op op;
};
static struct dl_cost_parts chosen_cost(const struct dl_coll_links *links, double bytes,
                                        const void *context) {
    const struct chosen *c = context;
    return host_cost(c->algorithm, c->op, links, bytes);
}

static enum dl_code on_host(const struct dl_system *system,
                            const struct dl_collective_request *request, int *algorithm,
                            struct dl_cost_parts *out, const char **limit, struct dl_err *err) {
    const double ranks = (double)request->nodes * (double)request->ranks_per_node;
    struct dl_coll_links links;
    double below_bytes = 0.0;
    if (request->algorithm == NULL)
        *algorithm = choose(request->op, ranks, request->bytes, &below_bytes);
    const bool blocks = *algorithm == RING || *algorithm == NREDUCE;
    DL_TRY(dl_coll_links(system, request, blocks ? request->bytes / ranks : request->bytes, &links,
                         err));
    const struct chosen chosen = {*algorithm, request->op};
    *out = chosen_cost(&links, request->bytes, &chosen);
    *limit = dl_coll_links_limit(&links, chosen_cost, request->bytes, &chosen);
    /* A prediction does not fall where the rules switch. */
    while (below_bytes > 0.0 && !request->allow_decreasing) {
        const double at_bytes = below_bytes;
        const int other = choose(request->op, ranks, at_bytes, &below_bytes);
        const struct dl_cost_parts before = host_cost(other, request->op, &links, at_bytes);
        if (before.latency_s + before.bandwidth_s > out->latency_s + out->bandwidth_s)
            *out = before;
    }
    return DL_OK;
}

/* topo. A broadcast moves whole messages; each other operation but all-reduce is one of its halves.
 */
static enum dl_code on_gpus(const struct dl_system *system,
                            const struct dl_collective_request *request, struct dl_cost_parts *out,
                            const char **limit, struct dl_err *err) {
    const bool whole = request->op == DL_COLL_BROADCAST;
    const double half = request->op == DL_COLL_ALL_REDUCE || whole ? 1.0 : 0.5,
                 shard_bytes = request->bytes / (whole ? 1.0 : (double)request->ranks_per_node);
    struct dl_cost_parts inside, copies = {0.0, 0.0, 0.0}, ring = {0.0, 0.0, 0.0};
    if (!(whole ? dl_copy_tree_cost : dl_copy_sharded_cost)(system, request->ranks_per_node,
                                                            request->bytes, &inside))
        return dl_fail(err, DL_ERR_INPUT, "system %s has no bandwidth between the GPUs of a node",
                       system->name != NULL ? system->name : "?");
    if (request->nodes > 1) {
        struct dl_coll_links links;
        const double nodes = (double)request->nodes;
        DL_TRY(dl_coll_links(system, request, shard_bytes / nodes, &links, err));
        if (!dl_copy_host_cost(system, request->ranks_per_node, shard_bytes, &copies))
            return dl_fail(err, DL_ERR_INPUT,
                           "system %s lacks host.copy_bandwidth_bytes_per_s, which oneccl needs",
                           system->name != NULL ? system->name : "?");
        ring = whole ? (struct dl_cost_parts){dl_ceil_log2(nodes) * links.inter.alpha_s,
                                              dl_ceil_log2(nodes) * request->bytes *
                                                  links.inter.beta_s_per_byte,
                                              dl_ceil_log2(nodes)}
                     : dl_coll_ring_cost(&links.inter, nodes, request->bytes, 2.0,
                                         2.0 * (nodes - 1.0), true);
        copies = sum_of(copies, copies);
    }
    *out = sum_of(inside, sum_of(copies, ring));
    *limit = ring.bandwidth_s > fmax(inside.bandwidth_s, copies.bandwidth_s) ? "inter"
             : copies.bandwidth_s > inside.bandwidth_s
                 ? "host-copy"
                 : dl_copy_limit(system, request->ranks_per_node);
    out->latency_s *= half, out->bandwidth_s *= half, out->steps *= half;
    return DL_OK;
}

static enum dl_code oneccl_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err) {
    const bool gpus = system->device != NULL && system->device->kind == DL_DEVICE_GPU;
    const unsigned own = SHARDED | DL_ON(BROADCAST);
    int algorithm = gpus ? TOPO : RING;
    if ((own >> request->op & 1u) == 0) return dl_mpi_plain_time(system, request, out, err);
    if (request->algorithm != NULL)
        algorithm = dl_library_algorithm_find(DL_LIB_ONECCL, request->op, request->algorithm);
    if (algorithm < 0 || (algorithm == TOPO && !gpus))
        return dl_fail(err, DL_ERR_USAGE, "oneCCL has no %s '%s'%s",
                       dl_collective_op_names[request->op], request->algorithm,
                       algorithm < 0 ? "" : " for host memory");
    if (algorithm == DIRECT) {
        struct dl_collective_request mpi = *request;
        mpi.algorithm = NULL;
        return dl_mpi_time(system, &mpi, out, err);
    }
    struct dl_cost_parts cost = {0.0, 0.0, 0.0};
    if (algorithm == TOPO)
        DL_TRY(on_gpus(system, request, &cost, &out->limit, err));
    else
        DL_TRY(on_host(system, request, &algorithm, &cost, &out->limit, err));
    dl_coll_set(out, cost);
    out->algorithm = algorithms[algorithm].name, out->formula = algorithms[algorithm].formula;
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    return DL_OK;
}

static const char *const spellings[] = {"oneCCL", "oneccl", NULL};

const struct dl_collective_library dl_library_oneccl = {
    .summary = "Intel oneCCL: collectives of CPUs and GPUs",
    .formula = "F-ONECCL",
    .source = "oneccl-docs",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .takes_gpu_memory = true,
    .queues_on_gpu = true,
    .algorithms = algorithms,
    .time = oneccl_time,
};
