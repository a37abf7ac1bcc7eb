/* mpi_rules.c - see mpi_rules.h. Open MPI 4.1 and later: the tables of coll_tuned_decision_fixed.c;
 * before: that file's functions of ranks and bytes (key "openmpi-coll"), gather and scatter
 * unverified. MPICH: keys "mpich-coll" and "thakur-2005". */
#include "model/network/libraries/mpi_rules.h"

enum { RULES = 10, SPANS = 12 };

/* Up to `ranks`, each rule serves sizes below `below` (0: all others). */
struct rule {
    double below;
    enum dl_mpi_other algorithm;
};
struct span {
    double ranks;
    struct rule rules[RULES];
};

#define LI DL_MPI_LINEAR
#define SY DL_MPI_SYNC
/* also "chain": the rules leave its fan-out at 0, which it takes for 1 */
#define PI DL_MPI_PIPELINE
#define SB DL_MPI_SPLIT_BINARY
#define BI DL_MPI_BINARY
#define BN DL_MPI_BINOMIAL
#define KN DL_MPI_KNOMIAL
#define SD DL_MPI_SCATTER_DOUBLING
#define RG DL_MPI_REDUCE_GATHER
#define BR DL_MPI_BRUCK_OTHER
#define RD DL_MPI_DOUBLING_OTHER
#define RI DL_MPI_RING_OTHER
#define NE DL_MPI_NEIGHBOR
#define PW DL_MPI_PAIRWISE
#define HA DL_MPI_HALVING /* and "butterfly" */
#define NO DL_MPI_REDUCE_SCATTER
/* clang-format off */
static const struct span broadcast[] = {
    {3, {{32, PI}, {256, BI}, {512, PI}, {1024, KN}, {32768, LI}, {131072, BI},
     {262144, PI}, {524288, LI}, {1048576, BN}, {0, BI}}},
    {7, {{64, BI}, {128, BN}, {2048, BI}, {8192, BN}, {1048576, LI}, {0, PI}}},
    {15, {{8, KN}, {64, BI}, {4096, KN}, {16384, BI}, {32768, BN}, {0, LI}}},
    {31, {{4096, KN}, {1048576, BN}, {0, SD}}},
    {63, {{2048, BN}, {0, KN}}},
    {127, {{0, KN}}},
    {255, {{2, BN}, {16384, BI}, {32768, LI}, {65536, BI}, {0, KN}}},
    {1023, {{16384, KN}, {32768, SB}, {0, KN}}},
    {2047, {{524288, KN}, {0, SD}}},
    {4095, {{262144, KN}, {0, SD}}},
    {HUGE_VAL, {{8192, KN}, {16384, BI}, {262144, KN}, {0, SD}}}};
static const struct span reduce[] = {
    {3, {{8, RG}, {16, BI}, {32, PI}, {262144, LI}, {0, PI}}},
    {7, {{4096, BI}, {65536, PI}, {262144, BN}, {524288, LI}, {1048576, BN}, {0, LI}}},
    {15, {{8192, BI}, {0, BN}}},
    {31, {{4096, BI}, {0, BN}}},
    {255, {{0, BN}}},
    {511, {{8192, BN}, {16384, BI}, {0, BN}}},
    {2047, {{0, BN}}},
    {4095, {{512, BN}, {1024, BI}, {8192, BN}, {16384, BI}, {0, BN}}},
    {HUGE_VAL, {{16, BN}, {32, BI}, {1024, BN}, {2048, BI}, {8192, BN}, {16384, BI}, {0, BN}}}};
/* by the size of one rank's block */
static const struct span all_gather[] = {
    {31, {{0, RD}}},
    {63, {{1024, RD}, {65536, NE}, {0, RI}}},
    {127, {{512, RD}, {65536, NE}, {0, RI}}},
    {255, {{512, RD}, {131072, NE}, {524288, RI}, {1048576, NE}, {0, RI}}},
    {511, {{32, RD}, {128, BR}, {1024, RD}, {131072, NE}, {524288, RI}, {1048576, NE}, {0, RI}}},
    {1023, {{64, RD}, {256, BR}, {2048, RD}, {0, NE}}},
    {2047, {{4, RD}, {8, BR}, {16, RD}, {32, BR}, {256, RD}, {512, BR}, {4096, RD}, {0, NE}}},
    {4095, {{32, BR}, {128, RD}, {512, BR}, {4096, RD}, {0, NE}}},
    {HUGE_VAL, {{2, RD}, {8, BR}, {16, RD}, {512, BR}, {4096, RD}, {0, NE}}}};
static const struct span reduce_scatter[] = {
    {3, {{65536, RI}, {131072, HA}, {0, RI}}},
    {7, {{8, NO}, {262144, HA}, {0, RI}}},
    {31, {{262144, HA}, {0, RI}}},
    {63, {{64, NO}, {524288, HA}, {0, RI}}},
    {511, {{256, NO}, {0, HA}}},
    {4095, {{512, NO}, {0, HA}}},
    {HUGE_VAL, {{1024, NO}, {0, HA}}}};
/* by the size of the block for one rank */
static const struct span all_to_all[] = {
    {2, {{32768, PW}, {262144, SY}, {0, PW}}},
    {7, {{8192, SY}, {16384, LI}, {65536, SY}, {524288, LI}, {1048576, PW}, {0, LI}}},
    {15, {{262144, SY}, {0, LI}}},
    {31, {{4, SY}, {512, BR}, {8192, SY}, {32768, LI}, {262144, SY}, {524288, LI}, {0, SY}}},
    {63, {{512, BR}, {524288, LI}, {0, SY}}},
    {127, {{1024, BR}, {2048, LI}, {4096, SY}, {262144, LI}, {0, PW}}},
    {255, {{1024, BR}, {2048, SY}, {262144, LI}, {0, PW}}},
    {511, {{1024, BR}, {8192, SY}, {32768, LI}, {0, PW}}},
    {1023, {{512, BR}, {8192, SY}, {16384, LI}, {131072, SY}, {262144, LI}, {0, PW}}},
    {2047, {{512, BR}, {1024, SY}, {2048, LI}, {16384, SY}, {262144, LI}, {0, SY}}},
    {4095, {{1024, BR}, {4096, SY}, {8192, LI}, {131072, SY}, {0, LI}}},
    {HUGE_VAL, {{2048, BR}, {8192, SY}, {16384, LI}, {32768, SY}, {65536, LI}, {0, SY}}}};
static const struct span gather[] = {
    {3, {{2, SY}, {4, LI}, {32768, BN}, {65536, LI}, {131072, BN}, {0, SY}}},
    {7, {{1024, BN}, {8192, LI}, {32768, BN}, {262144, LI}, {0, SY}}},
    {255, {{0, BN}}},
    {511, {{2048, BN}, {8192, LI}, {0, BN}}},
    {HUGE_VAL, {{0, BN}}}};
static const struct span scatter[] = {
    {3, {{0, LI}}},
    {7, {{2048, BN}, {4096, LI}, {8192, BN}, {0, LI}}},
    {31, {{16384, BN}, {0, LI}}},
    {63, {{512, BN}, {8192, LI}, {16384, BN}, {0, LI}}},
    {HUGE_VAL, {{512, BN}, {0, LI}}}};
/* clang-format on */

/* The search for the rule at a size; choice.below_bytes collects the sizes at which smaller rules
 * end. */
struct finding {
    struct dl_mpi_choice choice;
    double bytes;
    bool found;
};

/* Adds a rule that serves sizes below `below`. Returns whether the search has ended, now or before.
 */
static bool until(struct finding *f, double below, enum dl_mpi_other algorithm,
                  double segment_bytes) {
    if (f->found || below <= 0.0) return f->found;
    if (f->bytes < below)
        f->found = true, f->choice.algorithm = algorithm, f->choice.segment_bytes = segment_bytes;
    else if (below > f->choice.below_bytes)
        f->choice.below_bytes = below;
    return f->found;
}

/* Open MPI before 4.1. A rule "ranks < a S + b" holds from S = (ranks - b) / a on. */
static void old_broadcast(struct finding *f, double p) {
    if (until(f, 2048, BN, 0) || until(f, 370728, SB, 1024)) return;
    const double pipeline_128k = (p - 2.1102) / 1.6134e-6, pipeline_64k = (p - 1.1787) / 2.3679e-6,
                 pipeline_16k = (p - 8.7936) / 3.2118e-6;
    if (p < 13.0) {
        until(f, pipeline_128k, SB, 8192);
    } else { /* each rule holds from its own size on */
        until(f, fmin(pipeline_16k, fmin(pipeline_64k, pipeline_128k)), PI, 8192);
        until(f, fmin(pipeline_64k, pipeline_128k), PI, 16384);
        until(f, pipeline_128k, PI, 65536);
    }
    until(f, HUGE_VAL, PI, 131072);
}

static void old_reduce(struct finding *f, double p) {
    if (p < 8.0) until(f, 512, LI, 0), until(f, 20480, BN, 0);
    if (until(f, 2048, BI, 0) || until(f, (p - 1.3496) * 1024.0 / 0.6016, BI, 1024)) return;
    until(f, (p - 9.7128) * 1024.0 / 0.0410, PI, 1024);
    until(f, (p - 1.1614) * 1024.0 / 0.0422, PI, 32768);
    until(f, (p - 1.6761) * 1024.0 / 0.0033, PI, 32768);
    until(f, HUGE_VAL, PI, 65536);
}

static void old_rules(struct finding *f, enum dl_collective_op op, double p) {
    const bool two = dl_is_power_of_two(p);
    switch (op) {
    case DL_COLL_BROADCAST: old_broadcast(f, p); break;
    case DL_COLL_REDUCE: old_reduce(f, p); break;
    case DL_COLL_ALL_GATHER:
        until(f, 50000.0 / p, two ? RD : BR, 0);
        until(f, HUGE_VAL, floor(p / 2.0) * 2.0 < p ? RI : NE, 0);
        break;
    case DL_COLL_REDUCE_SCATTER:
        until(f, fmax(two ? 262144 : 12288, (p - 8.0) / 0.0012), HA, 0);
        until(f, HUGE_VAL, RI, 0);
        break;
    case DL_COLL_ALL_TO_ALL:
        if (p > 12.0) until(f, 200, BR, 0);
        until(f, p <= 2.0 ? 0 : 3000, LI, 0);
        until(f, HUGE_VAL, PW, 0);
        break;
    case DL_COLL_GATHER: /* unverified */
        if (p > 10.0) until(f, p > 60.0 ? 6000 : 1024, BN, 0);
        until(f, 6000, LI, 0);
        until(f, HUGE_VAL, SY, 0);
        break;
    default: /* scatter; unverified */
        if (p > 10.0) until(f, 300, BN, 0);
        until(f, HUGE_VAL, LI, 0);
    }
}

static void mpich_rules(struct finding *f, enum dl_collective_op op, double p) {
    const bool two = dl_is_power_of_two(p);
    switch (op) {
    case DL_COLL_BROADCAST:
        until(f, p < 8.0 ? HUGE_VAL : 12288, BN, 0);
        if (two) until(f, 524288, SD, 0);
        until(f, HUGE_VAL, DL_MPI_SCATTER_RING, 0);
        break;
    case DL_COLL_REDUCE:
        until(f, fmax(2049, 4.0 * dl_exp2(dl_floor_log2(p))), BN, 0);
        until(f, HUGE_VAL, RG, 0);
        break;
    case DL_COLL_ALL_GATHER:
        until(f, (two ? 524288 : 81920) / p, two ? RD : BR, 0);
        until(f, HUGE_VAL, RI, 0);
        break;
    case DL_COLL_REDUCE_SCATTER:
        until(f, 524288, HA, 0);
        until(f, HUGE_VAL, PW, 0);
        break;
    case DL_COLL_ALL_TO_ALL:
        if (p >= 8.0) until(f, 257, BR, 0);
        until(f, 32769, LI, 0);
        until(f, HUGE_VAL, PW, 0);
        break;
    default: until(f, HUGE_VAL, BN, 0);
    }
}

static void new_rules(struct finding *f, enum dl_collective_op op, double p) {
    const struct span *span = op == DL_COLL_BROADCAST        ? broadcast
                              : op == DL_COLL_REDUCE         ? reduce
                              : op == DL_COLL_ALL_GATHER     ? all_gather
                              : op == DL_COLL_REDUCE_SCATTER ? reduce_scatter
                              : op == DL_COLL_ALL_TO_ALL     ? all_to_all
                              : op == DL_COLL_GATHER         ? gather
                                                             : scatter;
    while (span->ranks < p) span++;
    for (const struct rule *rule = span->rules;; rule++) {
        until(f, rule->below > 0.0 ? rule->below : HUGE_VAL, rule->algorithm, 0);
        if (!(rule->below > 0.0)) return;
    }
}

struct dl_mpi_choice dl_mpi_other_choice(enum dl_mpi_kind kind, enum dl_collective_op op,
                                         double ranks, double bytes) {
    const bool by_block = op == DL_COLL_ALL_GATHER || op == DL_COLL_ALL_TO_ALL ||
                          op == DL_COLL_GATHER || op == DL_COLL_SCATTER;
    struct finding f = {.bytes = by_block ? bytes / ranks : bytes};
    if (kind == DL_MPI_MPICH || kind == DL_MPI_INTEL)
        mpich_rules(&f, op, ranks);
    else if (kind == DL_MPI_OPEN_OLD)
        old_rules(&f, op, ranks);
    else
        new_rules(&f, op, ranks);
    if (by_block) f.choice.below_bytes *= ranks;
    /* The algorithms themselves fall back for these counts of ranks. */
    if (f.choice.algorithm == RD && !dl_is_power_of_two(ranks)) f.choice.algorithm = BR;
    if (f.choice.algorithm == NE && floor(ranks / 2.0) * 2.0 < ranks) f.choice.algorithm = RI;
    if (f.choice.algorithm == SB && ranks <= 3.0) f.choice.algorithm = PI;
    return f.choice;
}
