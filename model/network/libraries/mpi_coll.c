/* mpi_coll.c - see mpi_coll.h. Decision rules: key "openmpi-coll" (coll_tuned_decision_fixed.c) and
 * "mpich-coll". */
#include "model/network/libraries/mpi_coll.h"
#include "model/network/libraries/mpi_rules.h"

#include <string.h>

enum { RULES = 7 };
static const double MEBIBYTE = 1048576.0;
static const double INTEL_RING_BYTES = 524288.0;

#define R DL_MPI_RING
#define RD DL_MPI_DOUBLING
#define SR DL_MPI_SEGMENTED
#define RB DL_MPI_RABENSEIFNER
#define NO DL_MPI_NONOVERLAPPING
/* Open MPI 4.1 and later: up to `ranks`, each rule serves sizes below `below` bytes (0: all
 * others). */
struct rule {
    double below;
    enum dl_mpi_algorithm algorithm;
};
static const struct span {
    double ranks;
    struct rule rules[RULES];
} spans[] = {{3, {{8, R}, {4096, RD}, {8192, R}, {16384, RD}, {65536, R}, {262144, SR}, {0, RB}}},
             {7, {{16, R}, {8192, RD}, {0, RB}}},
             {15, {{8192, RD}, {0, RB}}},
             {31, {{64, SR}, {4096, RD}, {0, RB}}},
             {63, {{128, SR}, {0, RB}}},
             {127, {{262144, RD}, {0, RB}}},
             {255, {{131072, NO}, {262144, RD}, {0, RB}}},
             {511, {{4096, NO}, {0, RB}}},
             {2047, {{2048, NO}, {16384, RD}, {0, RB}}},
             {4095, {{2048, NO}, {4096, SR}, {16384, RD}, {0, RB}}},
             {HUGE_VAL, {{2048, NO}, {16384, SR}, {32768, RD}, {0, RB}}}};
#undef R
#undef RD
#undef SR
#undef RB
#undef NO

/* The decision tables of Open MPI changed in 4.1. */
static enum dl_mpi_kind open_mpi_of(const char *mpi) {
    static const char prefix[] = "openmpi-";
    const size_t length = sizeof prefix - 1;
    if (strncmp(mpi, prefix, length) != 0) return DL_MPI_OPEN;
    const char *version = mpi + length;
    const int major = version[0] - '0';
    const int minor = version[0] != '\0' && version[1] == '.' ? version[2] - '0' : 0;
    return major < 4 || (major == 4 && minor < 1) ? DL_MPI_OPEN_OLD : DL_MPI_OPEN;
}

enum dl_mpi_kind dl_mpi_kind_of(const char *mpi) {
    static const struct {
        const char *prefix;
        enum dl_mpi_kind kind;
    } releases[] = {{"mpich", DL_MPI_MPICH}, {"mvapich", DL_MPI_MPICH}, {"cray", DL_MPI_MPICH},
                    {"intel", DL_MPI_INTEL}, {"hpcx-", DL_MPI_HPCX},    {"hpcx", DL_MPI_HPCX_OLD}};
    for (size_t i = 0; mpi != NULL && i < sizeof releases / sizeof releases[0]; i++)
        if (strncmp(mpi, releases[i].prefix, strlen(releases[i].prefix)) == 0)
            return releases[i].kind;
    return mpi != NULL ? open_mpi_of(mpi) : DL_MPI_OPEN;
}

enum dl_mpi_algorithm dl_mpi_all_reduce_choice(enum dl_mpi_kind kind, double ranks, double bytes,
                                               double *below_out) {
    *below_out = 0.0;
    /* MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE; with fewer elements than ranks also doubling */
    if (kind == DL_MPI_MPICH || kind == DL_MPI_INTEL) {
        double threshold = fmax(2048.0, 4.0 * dl_exp2(dl_floor_log2(ranks)));
        if (bytes <= threshold) return DL_MPI_DOUBLING;
        *below_out = threshold;
        /* Intel MPI has rings besides MPICH's algorithms and tables tuned to the machine, so that
         * large messages need not fold surplus ranks. Where it switches is assumed (unverified). */
        if (kind == DL_MPI_MPICH || dl_is_power_of_two(ranks) || bytes <= INTEL_RING_BYTES)
            return DL_MPI_RABENSEIFNER;
        *below_out = INTEL_RING_BYTES;
        return DL_MPI_RING;
    }
    if (kind == DL_MPI_HPCX || kind == DL_MPI_HPCX_OLD) {
        /* UCC's default: doubling below 4 KiB, reduce-scatter and all-gather above (unverified).
         * Measurements with images without UCC (performance-study, AKS) jump between 4 and 8 KiB at
         * every number of nodes. */
        double threshold = kind == DL_MPI_HPCX ? 4096.0 : 8192.0;
        if (bytes < threshold) return DL_MPI_DOUBLING;
        *below_out = threshold;
        return DL_MPI_RABENSEIFNER;
    }
    if (kind == DL_MPI_OPEN_OLD) { /* below 10000 bytes, or no more elements than ranks */
        double threshold = 10000.0;
        if (bytes < threshold) return DL_MPI_DOUBLING;
        *below_out = threshold;
        if (bytes <= 4.0 * ranks) return DL_MPI_NONOVERLAPPING;
        if (4.0 * ranks > threshold) *below_out = 4.0 * ranks;
        if (bytes <= ranks * MEBIBYTE) return DL_MPI_RING;
        *below_out = ranks * MEBIBYTE;
        return DL_MPI_SEGMENTED;
    }
    const struct span *span = spans;
    while (span->ranks < ranks) span++;
    const struct rule *rule = span->rules;
    while (rule->below > 0.0 && bytes >= rule->below) *below_out = rule++->below;
    return rule->algorithm;
}

/* Recursive doubling: the first lg(per_node) exchanges stay in the node, the others share its
 * adapters. */
static struct dl_cost_parts doubling_cost(const struct dl_coll_links *links, double bytes) {
    double in = dl_floor_log2(links->per_node), out = dl_floor_log2(links->ranks) - in,
           gamma = links->inter.gamma_s_per_byte;
    /* ranks beyond a power of two: to a neighbour before, back after */
    double fold = dl_is_power_of_two(links->ranks) ? 0.0 : 2.0;
    double out_s_per_byte = links->per_node * links->inter.beta_s_per_byte * links->bisection;
    const struct dl_hockney *folded = links->per_node > 1.0 ? &links->intra : &links->inter;
    return (struct dl_cost_parts){
        in * links->intra.alpha_s + out * links->inter.alpha_s + fold * folded->alpha_s,
        bytes * (in * links->intra.beta_s_per_byte + out * out_s_per_byte + (in + out) * gamma +
                 fold * folded->beta_s_per_byte + fold / 2.0 * gamma),
        in + out + fold};
}

/* As blocks halve, their distance doubles: the large ones stay in the node, (g-1)/g of S; then
 * (N-1)/N of S/g go between nodes, g concurrently. */
static struct dl_cost_parts rabenseifner_cost(const struct dl_coll_links *links, double bytes) {
    /* of nodes with one rank a power of two is left after the fold */
    const double nodes =
        links->per_node > 1.0 ? links->nodes : dl_exp2(dl_floor_log2(links->nodes));
    double in = dl_ceil_log2(links->per_node), out = dl_ceil_log2(nodes);
    double in_bytes = bytes * (links->per_node - 1.0) / links->per_node;
    double out_bytes = bytes / links->per_node * (nodes - 1.0) / nodes;
    double fold = dl_is_power_of_two(links->ranks) ? 0.0 : 2.0;
    double out_s_per_byte = links->per_node * links->inter.beta_s_per_byte * links->bisection;
    const struct dl_hockney *folded = links->per_node > 1.0 ? &links->intra : &links->inter;
    return (struct dl_cost_parts){
        2.0 * in * links->intra.alpha_s + 2.0 * out * links->inter.alpha_s + fold * folded->alpha_s,
        2.0 * in_bytes * links->intra.beta_s_per_byte + 2.0 * out_bytes * out_s_per_byte +
            fold * bytes * folded->beta_s_per_byte +
            (in_bytes + out_bytes + fold / 2.0 * bytes) * links->inter.gamma_s_per_byte,
        2.0 * (in + out) + fold};
}

/* One flow enters and one leaves a node. */
static struct dl_cost_parts ring_cost(const struct dl_coll_links *links, double bytes,
                                      double segment_bytes) {
    const struct dl_hockney slowest = dl_coll_slowest_link(links);
    const double phases = dl_segments(bytes / links->ranks, segment_bytes);
    return dl_coll_ring_cost(&slowest, links->ranks, bytes, 2.0,
                             (links->ranks - 1.0) * (1.0 + phases), true);
}

/* A reduce and a broadcast, each by its own rules. Message counts from 1 MiB on between 2, 3, 4 and
 * 8 hosts, measured with Open MPI 4.1.4 (tests/net): reduce 1, 2, 3, 3, broadcast 1, 2, 3, 7;
 * together 5 between 4 hosts at 512 KiB. */
static struct dl_cost_parts nonoverlapping_cost(enum dl_mpi_kind kind,
                                                const struct dl_coll_links *links, double bytes,
                                                enum dl_mpi_other *broadcast_out) {
    const struct dl_mpi_choice up = dl_mpi_other_choice(kind, DL_COLL_REDUCE, links->ranks, bytes);
    const struct dl_mpi_choice down =
        dl_mpi_other_choice(kind, DL_COLL_BROADCAST, links->ranks, bytes);
    *broadcast_out = down.algorithm;
    const struct dl_cost_parts reduce = dl_mpi_other_cost(DL_COLL_REDUCE, &up, links, bytes);
    struct dl_cost_parts broadcast = dl_mpi_other_cost(DL_COLL_BROADCAST, &down, links, bytes);
    /* The broadcast reaches the last rank of the chain first, and that rank begins the next call at
     * once: a call of 4 KiB between 4 hosts takes 4 hops of 0.5 ms, not 5 (measured as above). */
    if (up.algorithm == DL_MPI_PIPELINE)
        broadcast.latency_s = fmin(broadcast.latency_s, links->nodes > 1.0 ? links->inter.alpha_s
                                                                           : links->intra.alpha_s);
    return (struct dl_cost_parts){reduce.latency_s + broadcast.latency_s,
                                  reduce.bandwidth_s + broadcast.bandwidth_s,
                                  reduce.steps + broadcast.steps};
}

struct dl_cost_parts dl_mpi_all_reduce_cost(enum dl_mpi_kind kind, enum dl_mpi_algorithm algorithm,
                                            const struct dl_coll_links *links, double bytes) {
    bool few = bytes < 4.0 * links->ranks;
    enum dl_mpi_other broadcast;
    switch (algorithm) {
    case DL_MPI_RING: return few ? doubling_cost(links, bytes) : ring_cost(links, bytes, 0.0);
    case DL_MPI_SEGMENTED:
        return few ? doubling_cost(links, bytes) : ring_cost(links, bytes, MEBIBYTE);
    case DL_MPI_RABENSEIFNER: return rabenseifner_cost(links, bytes);
    case DL_MPI_NONOVERLAPPING: return nonoverlapping_cost(kind, links, bytes, &broadcast);
    default: return doubling_cost(links, bytes);
    }
}

/* Size of one message of the algorithm, which selects the piece of the link. */
static double message_bytes(enum dl_mpi_algorithm algorithm, double ranks, double bytes) {
    if (algorithm == DL_MPI_RING || algorithm == DL_MPI_SEGMENTED) return bytes / ranks;
    return algorithm == DL_MPI_RABENSEIFNER ? bytes / 2.0 : bytes;
}

/* The cost of an algorithm, for a reduce and a broadcast at least that of a shorter message for
 * which their own rules take another tree. */
static struct dl_cost_parts cost_without_falls(enum dl_mpi_kind kind,
                                               enum dl_mpi_algorithm algorithm,
                                               const struct dl_coll_links *links, double bytes) {
    enum { SWITCHES = 12 };
    static const enum dl_collective_op ops[] = {DL_COLL_REDUCE, DL_COLL_BROADCAST};
    struct dl_cost_parts cost = dl_mpi_all_reduce_cost(kind, algorithm, links, bytes);
    for (int i = 0; i < 2 && algorithm == DL_MPI_NONOVERLAPPING; i++) {
        double at = bytes, unused;
        for (int guard = 0; guard < SWITCHES; guard++) {
            const double below = dl_mpi_other_choice(kind, ops[i], links->ranks, at).below_bytes;
            at = below * (1.0 - 1e-12);
            if (!(below > 0.0) ||
                dl_mpi_all_reduce_choice(kind, links->ranks, at, &unused) != algorithm)
                break;
            const struct dl_cost_parts before = dl_mpi_all_reduce_cost(kind, algorithm, links, at);
            if (before.latency_s + before.bandwidth_s > cost.latency_s + cost.bandwidth_s)
                cost = before;
        }
    }
    return cost;
}

struct reduction {
    enum dl_mpi_kind kind;
    enum dl_mpi_algorithm algorithm;
};
static struct dl_cost_parts reduction_cost(const struct dl_coll_links *links, double bytes,
                                           const void *context) {
    const struct reduction *r = context;
    return dl_mpi_all_reduce_cost(r->kind, r->algorithm, links, bytes);
}

static enum dl_code all_reduce(const struct dl_system *system,
                               const struct dl_collective_request *request,
                               struct dl_collective_time *out, struct dl_err *err) {
    enum dl_mpi_kind kind = dl_mpi_kind_of(system->software.mpi);
    double ranks = (double)request->nodes * (double)request->ranks_per_node, below = 0.0;
    enum dl_mpi_algorithm algorithm = dl_mpi_all_reduce_choice(kind, ranks, request->bytes, &below);
    if (request->algorithm != NULL) {
        const int imposed = dl_library_algorithm_find(DL_LIB_MPI, request->op, request->algorithm);
        if (imposed < 0)
            return dl_fail(err, DL_ERR_USAGE,
                           "MPI has no all-reduce '%s'; expected ring, recursive_doubling, "
                           "segmented_ring, rabenseifner or nonoverlapping",
                           request->algorithm);
        algorithm = (enum dl_mpi_algorithm)imposed, below = 0.0;
    }
    struct dl_coll_links links;
    DL_TRY(dl_coll_links(system, request, message_bytes(algorithm, ranks, request->bytes), &links,
                         err));
    enum dl_mpi_other broadcast = DL_MPI_BINOMIAL;
    struct dl_cost_parts cost =
        algorithm == DL_MPI_NONOVERLAPPING
            ? nonoverlapping_cost(kind, &links, request->bytes, &broadcast)
            : dl_mpi_all_reduce_cost(kind, algorithm, &links, request->bytes);
    if (algorithm == DL_MPI_NONOVERLAPPING && request->algorithm == NULL &&
        !request->allow_decreasing)
        cost = cost_without_falls(kind, algorithm, &links, request->bytes);
    double time_s = cost.latency_s + cost.bandwidth_s;
    /* As messages grow, the rules may switch to a cheaper algorithm. A prediction must not fall
     * with size: it keeps the cost of the message just below the switch. */
    for (int guard = 0; below > 0.0 && guard < RULES && !request->allow_decreasing; guard++) {
        double at = below * (1.0 - 1e-12);
        enum dl_mpi_algorithm other = dl_mpi_all_reduce_choice(
            kind, ranks, kind == DL_MPI_MPICH || kind == DL_MPI_INTEL ? below : at, &below);
        struct dl_cost_parts before = cost_without_falls(kind, other, &links, at);
        if (before.latency_s + before.bandwidth_s <= time_s) continue;
        time_s = before.latency_s + before.bandwidth_s, cost = before;
    }
    dl_coll_set(out, cost);
    out->algorithm = dl_mpi_algorithms[algorithm].name,
    out->formula = dl_mpi_algorithms[algorithm].formula;
    const struct reduction chosen = {kind, algorithm};
    out->limit = dl_coll_links_limit(&links, reduction_cost, request->bytes, &chosen);
    /* the rules take trees at smaller and larger sizes */
    if (broadcast == DL_MPI_LINEAR) out->protocol = "linear broadcast";
    return DL_OK;
}

/* Point to point and halos, over the slowest link present. */
static struct dl_cost_parts near_cost(enum dl_collective_op op, const struct dl_coll_links *links,
                                      double bytes) {
    const struct dl_hockney *link = links->nodes > 1.0 ? &links->inter : &links->intra;
    double count = op == DL_COLL_P2P ? 1.0 : fmin(2.0, links->ranks - 1.0);
    return (struct dl_cost_parts){count * link->alpha_s, count * bytes * link->beta_s_per_byte,
                                  count};
}

struct operation {
    enum dl_collective_op op;
    struct dl_mpi_choice choice;
};
static struct dl_cost_parts operation_cost(const struct dl_coll_links *links, double bytes,
                                           const void *context) {
    const struct operation *o = context;
    return dl_mpi_other_cost(o->op, &o->choice, links, bytes);
}

/* Operations other than all-reduce. As in all_reduce(), the time does not fall where the rules
 * switch to a cheaper algorithm. */
static enum dl_code others(const struct dl_system *system,
                           const struct dl_collective_request *request,
                           struct dl_collective_time *out, struct dl_err *err) {
    enum { SWITCHES = 12 };
    const enum dl_mpi_kind kind = dl_mpi_kind_of(system->software.mpi);
    struct dl_coll_links links;
    DL_TRY(dl_coll_links(system, request, request->bytes, &links, err));
    if (request->op == DL_COLL_P2P || request->op == DL_COLL_HALO) {
        const struct dl_collective_algorithm *row =
            &dl_mpi_algorithms[request->op == DL_COLL_P2P ? DL_MPI_DIRECT : DL_MPI_NEIGHBOURS];
        dl_coll_set(out, near_cost(request->op, &links, request->bytes));
        out->algorithm = row->name, out->formula = row->formula;
        out->limit = links.nodes > 1.0 ? "inter" : links.inside_limit;
        return DL_OK;
    }
    struct dl_mpi_choice choice =
        dl_mpi_other_choice(kind, request->op, links.ranks, request->bytes);
    if (request->algorithm != NULL) {
        const int imposed = dl_library_algorithm_find(DL_LIB_MPI, request->op, request->algorithm);
        if (imposed < 0)
            return dl_fail(err, DL_ERR_USAGE, "MPI has no %s '%s'",
                           dl_collective_op_names[request->op], request->algorithm);
        choice =
            (struct dl_mpi_choice){(enum dl_mpi_other)(imposed - DL_MPI_FIRST_OTHER), 0.0, 0.0};
    }
    const struct dl_collective_algorithm *row =
        &dl_mpi_algorithms[DL_MPI_FIRST_OTHER + choice.algorithm];
    out->algorithm = row->name, out->formula = row->formula;
    const struct operation chosen = {request->op, choice};
    struct dl_cost_parts cost = operation_cost(&links, request->bytes, &chosen);
    out->limit = dl_coll_links_limit(&links, operation_cost, request->bytes, &chosen);
    for (int guard = 0; choice.below_bytes > 0.0 && guard < SWITCHES && !request->allow_decreasing;
         guard++) {
        const double at = choice.below_bytes * (1.0 - 1e-12);
        choice = dl_mpi_other_choice(kind, request->op, links.ranks, at);
        const struct dl_cost_parts before = dl_mpi_other_cost(request->op, &choice, &links, at);
        if (before.latency_s + before.bandwidth_s > cost.latency_s + cost.bandwidth_s)
            cost = before;
    }
    dl_coll_set(out, cost);
    return DL_OK;
}

enum dl_code dl_mpi_time(const struct dl_system *system,
                         const struct dl_collective_request *request,
                         struct dl_collective_time *out, struct dl_err *err) {
    /* 247 published rows, as in nccl_time.c: median / 0.6745 = 0.34 to 0.43, 90 % / 1.645 = 0.25 */
    out->sigma_log = 0.35;
    return request->op == DL_COLL_ALL_REDUCE ? all_reduce(system, request, out, err)
                                             : others(system, request, out, err);
}

enum dl_code dl_mpi_plain_time(const struct dl_system *system,
                               const struct dl_collective_request *request,
                               struct dl_collective_time *out, struct dl_err *err) {
    static const char *const plain[DL_COLL_OPS] = {
        [DL_COLL_BROADCAST] = "binomial", [DL_COLL_REDUCE] = "binomial",
        [DL_COLL_GATHER] = "binomial",    [DL_COLL_SCATTER] = "binomial",
        [DL_COLL_ALL_GATHER] = "ring",    [DL_COLL_REDUCE_SCATTER] = "ring",
        [DL_COLL_ALL_TO_ALL] = "pairwise"};
    struct dl_collective_request imposed = *request;
    imposed.algorithm = plain[request->op];
    return dl_mpi_time(system, &imposed, out, err);
}

#define TREE(name_, text, operations_)                                                             \
    {                                                                                              \
        .name = name_, .summary = text, .operations = operations_, .formula = "F-MPI-OTHER",       \
        .source = "openmpi-coll"                                                                   \
    }
#define ROOTED (DL_ON(GATHER) | DL_ON(SCATTER))
const struct dl_collective_algorithm dl_mpi_algorithms[] = {
    [DL_MPI_RING] = {"ring", "reduce-scatter, then all-gather around a ring", DL_ON(ALL_REDUCE),
                     "F-COLL-RING", "thakur-2005"},
    [DL_MPI_DOUBLING] = {"recursive_doubling", "lg p exchanges of the whole vector",
                         DL_ON(ALL_REDUCE), "F-COLL-DOUBLING", "thakur-2005"},
    [DL_MPI_SEGMENTED] = {"segmented_ring",
                          "ring whose reduce-scatter runs in phases of one segment for each rank",
                          DL_ON(ALL_REDUCE), "F-COLL-RING-SEGMENTED", "openmpi-coll"},
    [DL_MPI_RABENSEIFNER] = {"rabenseifner", "halving reduce-scatter, doubling all-gather",
                             DL_ON(ALL_REDUCE), "F-COLL-RABENSEIFNER", "thakur-2005"},
    [DL_MPI_NONOVERLAPPING] = {"nonoverlapping", "reduce, then broadcast", DL_ON(ALL_REDUCE),
                               "F-COLL-REDUCE-BROADCAST", "openmpi-coll"},
#define OTHER(index) [DL_MPI_FIRST_OTHER + DL_MPI_##index]
    OTHER(LINEAR) = TREE("linear", "the root sends to, or receives from, all others in turn",
                         DL_ON(BROADCAST) | DL_ON(REDUCE) | DL_ON(ALL_TO_ALL) | ROOTED),
    OTHER(SYNC) = TREE("linear_sync", "linear, with a small message before each block",
                       DL_ON(ALL_TO_ALL) | ROOTED),
    OTHER(PIPELINE) = TREE("pipeline", "segments along a chain", DL_ON(BROADCAST) | DL_ON(REDUCE)),
    OTHER(SPLIT_BINARY) =
        TREE("split_binary", "half the message down each side of a binary tree", DL_ON(BROADCAST)),
    OTHER(BINARY) =
        TREE("binary", "segments down or up a binary tree", DL_ON(BROADCAST) | DL_ON(REDUCE)),
    OTHER(BINOMIAL) = TREE("binomial", "whole messages down or up a binomial tree",
                           DL_ON(BROADCAST) | DL_ON(REDUCE) | ROOTED),
    OTHER(KNOMIAL) = TREE("knomial", "whole messages down a tree of radix 4", DL_ON(BROADCAST)),
    OTHER(SCATTER_DOUBLING) = TREE(
        "scatter_all_gather", "binomial scatter, recursive-doubling all-gather", DL_ON(BROADCAST)),
    OTHER(SCATTER_RING) =
        TREE("scatter_ring", "binomial scatter, ring all-gather", DL_ON(BROADCAST)),
    OTHER(REDUCE_GATHER) =
        TREE("reduce_scatter_gather", "halving reduce-scatter, binomial gather", DL_ON(REDUCE)),
    OTHER(BRUCK_OTHER) = TREE("bruck", "ceil(lg p) exchanges for any number of ranks",
                              DL_ON(ALL_GATHER) | DL_ON(ALL_TO_ALL)),
    OTHER(DOUBLING_OTHER) =
        TREE("recursive_doubling", "lg p exchanges of doubling size", DL_ON(ALL_GATHER)),
    OTHER(RING_OTHER) =
        TREE("ring", "blocks passed around a ring", DL_ON(ALL_GATHER) | DL_ON(REDUCE_SCATTER)),
    OTHER(NEIGHBOR) = TREE("neighbor_exchange", "two blocks at a time with alternating neighbours",
                           DL_ON(ALL_GATHER)),
    OTHER(PAIRWISE) =
        TREE("pairwise", "p - 1 exchanges of one block", DL_ON(ALL_TO_ALL) | DL_ON(REDUCE_SCATTER)),
    OTHER(HALVING) =
        TREE("recursive_halving", "lg p exchanges of halving size", DL_ON(REDUCE_SCATTER)),
    OTHER(REDUCE_SCATTER) =
        TREE("reduce_scatter", "binomial reduce, binomial scatter", DL_ON(REDUCE_SCATTER)),
#undef OTHER
    [DL_MPI_DIRECT] = {"direct", "one message", DL_ON(P2P), "F-COLL-P2P", "unverified"},
    [DL_MPI_NEIGHBOURS] = {"neighbours", "one message to each of two neighbours", DL_ON(HALO),
                           "F-COLL-HALO", "paradl-paper"},
    {.name = NULL}};

/* OSU's benchmarks time an MPI; Baidu's ring all-reduce runs on one. */
static const char *const spellings[] = {"OSU", "MPI", "Baidu", NULL};

const struct dl_collective_library dl_library_mpi = {
    .summary = "MPI on the host: Open MPI, MPICH, MVAPICH, Intel MPI, HPC-X",
    .formula = "F-MPI-CHOICE",
    .source = "openmpi-coll",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .stages_gpu_memory = true,
    .polls = true,
    .algorithms = dl_mpi_algorithms,
    .time = dl_mpi_time,
};
