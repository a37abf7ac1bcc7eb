/* coll_parts.h - shared by the collective files and private to them: whole logarithms, the two
 * parts of a cost, the algorithms and library functions that collective.c lists. */
#ifndef DL_MODEL_NETWORK_COLL_PARTS_H
#define DL_MODEL_NETWORK_COLL_PARTS_H

#include "model/network/collective.h"

#include <math.h>
#include <string.h>

/* Uncertainty of models that no measurement in data/collectives checks: a factor of 1.6 either way
 * (judgement). */
#define DL_COLL_UNCHECKED_SIGMA_LOG 0.5

struct dl_cost_parts {
    double latency_s, bandwidth_s, steps;
};

/* fmin and fmax without their treatment of NAN, which costs a call each. */
static inline double dl_least(double a, double b) { return a < b ? a : b; }
static inline double dl_most(double a, double b) { return a > b ? a : b; }

/* 2^exponent for -1022 <= exponent <= 1023, from the bits of a double: these run inside every
 * collective. */
static inline double dl_power(double exponent) {
    uint64_t bits = (uint64_t)((int64_t)exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* floor and ceil of log2(ranks) for ranks >= 1; exact for whole numbers. */
static inline double dl_lg_floor(double ranks) {
    uint64_t bits;
    memcpy(&bits, &ranks, sizeof bits);
    return ranks < 1.0 ? 0.0 : (double)((int64_t)(bits >> 52 & 0x7ff) - 1023);
}

static inline double dl_lg_ceil(double ranks) {
    double low = dl_lg_floor(ranks);
    return dl_power(low) < ranks ? low + 1.0 : low;
}

static inline bool dl_power_of_two(double ranks) { return dl_power(dl_lg_floor(ranks)) == ranks; }

/* Largest divisor of ranks up to its square root (1 for a prime): the rows of the most even torus.
 */
double dl_coll_near_square(double ranks);

/* Smallest whole number that is not below x >= 0: the C library's is a call. */
static inline double dl_whole_above(double x) {
    /* 2^52: adding it leaves the nearest whole number */
    const double round = 4503599627370496.0, whole = (x + round) - round;
    return x >= round ? x : whole < x ? whole + 1.0 : whole;
}

/* Number of segments of a pipelined message, and the size of a full one. segment_bytes <= 0: one.
 */
static inline double dl_segments(double bytes, double segment_bytes) {
    return segment_bytes > 0.0 && bytes > segment_bytes ? dl_whole_above(bytes / segment_bytes)
                                                        : 1.0;
}
static inline double dl_segment(double bytes, double segment_bytes) {
    return segment_bytes > 0.0 && bytes > segment_bytes ? segment_bytes : bytes;
}

/* F-COLL-DOUBLING-AG and F-COLL-HALVING: ceil(lg p) rounds that move (p - 1)/p of the buffer. Also
 * what Bruck's algorithm and PAT cost. Seconds; segment_bytes is ignored. */
double dl_coll_log_all_gather_s(const struct dl_hockney *link, double ranks, double bytes,
                                double segment_bytes);
double dl_coll_log_reduce_scatter_s(const struct dl_hockney *link, double ranks, double bytes,
                                    double segment_bytes);

/* F-COLL-HIERARCHICAL with a link per level, level 0 innermost: reduce-scatter outwards, all-reduce
 * on the last level, all-gather back. Seconds. */
double dl_coll_hierarchical_s(const struct dl_hockney *levels, const double *ranks, int level_count,
                              double bytes);

/* F-COLL-LINKS: the links of a system as alpha, beta and gamma, for libraries that run on the host
 * (MPI, Gloo, gRPC, ps-lite). */
struct dl_coll_links {
    struct dl_hockney intra, inter; /* inter.beta: of one node's adapters together */
    double nodes, per_node, ranks;
    double flows;     /* groups like this one on the same adapter */
    double bisection; /* slowdown of traffic that crosses leaves: oversubscription, or 1 */
};
/* message_bytes selects among point-to-point pieces. DL_ERR_INPUT when several nodes lack
 * links.inter. */
enum dl_code dl_coll_links(const struct dl_system *system,
                           const struct dl_collective_request *request, double message_bytes,
                           struct dl_coll_links *out, struct dl_err *err);

/* Adapters of a node, or of all nodes of a domain (F-COLL-DOMAIN). */
static inline double dl_coll_adapters(const struct dl_system *system,
                                      const struct dl_collective_request *request) {
    const double each =
        system->inter.adapters_per_node > 1 ? (double)system->inter.adapters_per_node : 1.0;
    return request->domain_nodes > 1 ? each * (double)request->domain_nodes : each;
}

/* The model of a library, one file each. `out` is zero before the call. */
typedef enum dl_code dl_library_time_fn(const struct dl_system *system,
                                        const struct dl_collective_request *request,
                                        struct dl_collective_time *out, struct dl_err *err);
dl_library_time_fn dl_nccl_time, dl_mpi_time, dl_gloo_time, dl_grpc_time, dl_pslite_time,
    dl_copy_time, dl_mlsl_time;

/* Operations other than all-reduce for libraries without decision rules, one algorithm at every
 * size: binomial trees, rings, pairwise exchange. */
dl_library_time_fn dl_mpi_plain_time;

/* The model of a library. */
dl_library_time_fn *dl_coll_library(enum dl_library library);

/* The time from measured samples; *found false when the system has none that apply. */
enum dl_code dl_coll_measured_time(const struct dl_system *system,
                                   const struct dl_collective_request *request,
                                   dl_library_time_fn *model, struct dl_collective_time *out,
                                   bool *found, struct dl_err *err);

static inline void dl_coll_set(struct dl_collective_time *out, struct dl_cost_parts cost) {
    out->latency_s = cost.latency_s;
    out->bandwidth_s = cost.bandwidth_s;
    out->time_s = cost.latency_s + cost.bandwidth_s;
    out->steps = cost.steps;
}

extern const struct dl_collective_algorithm dl_coll_collnet, dl_coll_nvls, dl_coll_pat_all_gather,
    dl_coll_pat_reduce_scatter;
extern const struct dl_collective_algorithm dl_coll_ring, dl_coll_segmented_ring,
    dl_coll_ring_all_gather, dl_coll_ring_reduce_scatter, dl_coll_recursive_doubling,
    dl_coll_doubling_all_gather, dl_coll_halving_reduce_scatter, dl_coll_bruck_all_gather,
    dl_coll_rabenseifner, dl_coll_reduce_broadcast, dl_coll_nonoverlapping, dl_coll_binary_tree,
    dl_coll_double_tree, dl_coll_halving_doubling, dl_coll_bcube, dl_coll_linear,
    dl_coll_hierarchical2, dl_coll_hierarchical3, dl_coll_torus2d, dl_coll_leader,
    dl_coll_binomial_broadcast, dl_coll_chain_broadcast, dl_coll_scatter_broadcast,
    dl_coll_binomial_reduce, dl_coll_pairwise, dl_coll_bruck, dl_coll_p2p, dl_coll_binomial_gather,
    dl_coll_binomial_scatter, dl_coll_halo;

#endif
