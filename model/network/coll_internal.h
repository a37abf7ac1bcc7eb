/* coll_internal.h - shared by the libraries: logarithms of rank counts, both parts of a cost, the
 * links of a rank set, the ring. Private to model/network. */
#ifndef DL_MODEL_NETWORK_COLL_INTERNAL_H
#define DL_MODEL_NETWORK_COLL_INTERNAL_H

#include "model/network/collective.h"
#include "model/network/path.h"

#include <math.h>
#include <string.h>

/* Uncertainty of models that no measurement in data/collectives checks: a factor of 1.6 either way
 * (judgement). */
#define DL_COLL_UNCHECKED_SIGMA_LOG 0.5

struct dl_cost_parts {
    double latency_s, bandwidth_s, steps;
};

/* floor and ceil of log2(count), exact for whole numbers of at least 1. */
static inline double dl_floor_log2(double count) { return count < 1.0 ? 0.0 : ilogb(count); }
static inline double dl_exp2(double exponent) { return ldexp(1.0, (int)exponent); }
static inline double dl_ceil_log2(double count) {
    const double low = dl_floor_log2(count);
    return dl_exp2(low) < count ? low + 1.0 : low;
}
static inline bool dl_is_power_of_two(double count) {
    return dl_exp2(dl_floor_log2(count)) == count;
}

/* Number of segments of a pipelined message, and the size of a full one. segment_bytes <= 0: one.
 */
static inline double dl_segments(double bytes, double segment_bytes) {
    return segment_bytes > 0.0 && bytes > segment_bytes ? ceil(bytes / segment_bytes) : 1.0;
}
static inline double dl_segment(double bytes, double segment_bytes) {
    return segment_bytes > 0.0 && bytes > segment_bytes ? segment_bytes : bytes;
}

/* A uniform link: start-up time, seconds per byte sent, seconds per byte summed. */
struct dl_hockney {
    double alpha_s, beta_s_per_byte, gamma_s_per_byte;
};

/* F-COLL-LINKS: the links of a system as alpha, beta and gamma, for libraries that run on the host
 * (MPI, Gloo, gRPC, ps-lite). */
struct dl_coll_links {
    struct dl_hockney intra, inter; /* inter.beta: of one node's adapters together */
    double nodes, per_node, ranks;
    double flows;             /* groups like this one on the same adapter */
    double bisection;         /* further slowdown where all nodes send to other leaves at once */
    const char *inside_limit; /* "intra" or "host": what sets intra.beta */
};
/* message_bytes selects among point-to-point pieces. DL_ERR_INPUT when several nodes lack
 * links.inter. */
enum dl_code dl_coll_links(const struct dl_system *system,
                           const struct dl_collective_request *request, double message_bytes,
                           struct dl_coll_links *out, struct dl_err *err);

/* Without which a collective would take least: links, or sums on the host; as dl_collective_time
 * names it. */
typedef struct dl_cost_parts dl_links_cost_fn(const struct dl_coll_links *links, double bytes,
                                              const void *context);
const char *dl_coll_links_limit(const struct dl_coll_links *links, dl_links_cost_fn *cost,
                                double bytes, const void *context);

/* Every step of a ring waits for its slowest link. */
static inline struct dl_hockney dl_coll_slowest_link(const struct dl_coll_links *links) {
    return (struct dl_hockney){fmax(links->intra.alpha_s, links->inter.alpha_s),
                               fmax(links->intra.beta_s_per_byte, links->inter.beta_s_per_byte),
                               links->inter.gamma_s_per_byte};
}

/* F-COLL-RING: (p - 1)/p of the buffer around a ring, `passes` times (2: reduce-scatter and
 * all-gather), in `messages` sequential messages; sums: one of the passes adds. */
static inline struct dl_cost_parts dl_coll_ring_cost(const struct dl_hockney *link, double ranks,
                                                     double bytes, double passes, double messages,
                                                     bool sums) {
    const double moved_bytes = (ranks - 1.0) / ranks * bytes;
    return (struct dl_cost_parts){
        messages * link->alpha_s,
        moved_bytes * (passes * link->beta_s_per_byte + (sums ? link->gamma_s_per_byte : 0.0)),
        messages};
}

static inline void dl_coll_path(const struct dl_system *system,
                                const struct dl_collective_request *request, struct dl_path *out) {
    const struct dl_rank_group group = {.nodes = request->nodes,
                                        .ranks_per_node = request->ranks_per_node,
                                        .domain_nodes = request->domain_nodes,
                                        .stride = request->group_stride,
                                        .concurrent = request->concurrent,
                                        .flows_per_adapter = request->flows_per_adapter,
                                        .node_stride = request->node_stride,
                                        .span_nodes = request->span_nodes};
    dl_path_of(system, &group, out);
}

/* Operations other than all-reduce for libraries without decision rules, one algorithm at every
 * size: binomial trees, rings, pairwise exchange. */
dl_library_time_fn dl_mpi_plain_time;

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

#endif
