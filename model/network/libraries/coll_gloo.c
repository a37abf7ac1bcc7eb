/* coll_gloo.c - Gloo's all-reduces over TCP or verbs, from host memory (F-GLOO-RING,
 * F-GLOO-HALVING, F-GLOO-BCUBE; key "gloo-docs"). The ring is chunked: 4(p-1) messages for the
 * bytes of a ring. Other operations cost what dl_mpi_plain_time() says. */
#include "model/network/coll_internal.h"

enum { RING, HALVING_DOUBLING, BCUBE };
static const struct dl_collective_algorithm algorithms[] = {
    [RING] = {"ring", "reduce-scatter, then all-gather around a ring, in two chunks a rank",
              DL_ON(ALL_REDUCE), "F-GLOO-RING", "gloo-docs"},
    [HALVING_DOUBLING] = {"halving_doubling",
                          "recursive halving and doubling, in binary blocks when p is not a power "
                          "of two",
                          DL_ON(ALL_REDUCE), "F-GLOO-HALVING", "gloo-docs"},
    [BCUBE] = {"bcube", "stages of groups of two over a hypercube", DL_ON(ALL_REDUCE),
               "F-GLOO-BCUBE", "gloo-docs"},
    {.name = NULL}};

static struct dl_cost_parts ring_cost(const struct dl_coll_links *links, double bytes) {
    const struct dl_hockney slowest = dl_coll_slowest_link(links);
    return dl_coll_ring_cost(&slowest, links->ranks, bytes, 2.0, 4.0 * (links->ranks - 1.0), true);
}

/* F-COLL-HALVING-DOUBLING: powers of two as Rabenseifner's algorithm; other rank counts work in
 * binary blocks, S bytes in each direction. */
static double halving_doubling_s(const struct dl_hockney *link, double ranks, double bytes) {
    const double share = dl_is_power_of_two(ranks) ? (ranks - 1.0) / ranks : 1.0;
    return 2.0 * dl_ceil_log2(ranks) * link->alpha_s +
           share * bytes * (2.0 * link->beta_s_per_byte + link->gamma_s_per_byte);
}

/* F-COLL-BCUBE with base 2: 2 ceil(lg p) steps; step s carries S / 2^s. */
static double bcube_s(const struct dl_hockney *link, double ranks, double bytes) {
    const double stages = dl_ceil_log2(ranks), moved_bytes = bytes * 2.0 * (1.0 - dl_exp2(-stages));
    return 2.0 * stages * link->alpha_s +
           moved_bytes * (2.0 * link->beta_s_per_byte + link->gamma_s_per_byte);
}

/* Once inside and once between nodes, where the shards of a node's ranks share its adapters. */
static struct dl_cost_parts level_cost(double (*time_s)(const struct dl_hockney *, double, double),
                                       const struct dl_coll_links *links, double bytes) {
    struct dl_hockney inter = links->inter;
    inter.beta_s_per_byte *= links->bisection;
    const double latency_s =
        time_s(&links->intra, links->per_node, 0.0) + time_s(&inter, links->nodes, 0.0);
    const double all_s =
        time_s(&links->intra, links->per_node, bytes) + time_s(&inter, links->nodes, bytes);
    return (struct dl_cost_parts){latency_s, all_s - latency_s, 2.0 * dl_ceil_log2(links->ranks)};
}

static struct dl_cost_parts all_reduce_cost(const struct dl_coll_links *links, double bytes,
                                            const void *context) {
    const int algorithm = *(const int *)context;
    if (algorithm == RING) return ring_cost(links, bytes);
    return level_cost(algorithm == BCUBE ? bcube_s : halving_doubling_s, links, bytes);
}

static enum dl_code gloo_time(const struct dl_system *system,
                              const struct dl_collective_request *request,
                              struct dl_collective_time *out, struct dl_err *err) {
    struct dl_coll_links links;
    if (request->op != DL_COLL_ALL_REDUCE) return dl_mpi_plain_time(system, request, out, err);
    const int algorithm =
        request->algorithm != NULL
            ? dl_library_algorithm_find(DL_LIB_GLOO, request->op, request->algorithm)
            : RING;
    if (algorithm < 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "Gloo has no all-reduce '%s'; expected ring, halving_doubling or bcube",
                       request->algorithm);
    const double ranks = (double)request->nodes * (double)request->ranks_per_node;
    DL_TRY(dl_coll_links(system, request, request->bytes / ranks, &links, err));
    dl_coll_set(out, all_reduce_cost(&links, request->bytes, &algorithm));
    out->algorithm = algorithms[algorithm].name, out->formula = algorithms[algorithm].formula;
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    out->limit = dl_coll_links_limit(&links, all_reduce_cost, request->bytes, &algorithm);
    return DL_OK;
}

static const char *const spellings[] = {"Gloo", NULL};

const struct dl_collective_library dl_library_gloo = {
    .summary = "Gloo: PyTorch's and Horovod's collectives over TCP or verbs, in host memory",
    .formula = "F-GLOO-RING",
    .source = "gloo-docs",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .algorithms = algorithms,
    .time = gloo_time,
};
