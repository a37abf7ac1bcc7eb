/* coll_point.c - point to point, binomial gather and scatter, halo exchange
 * (F-COLL-P2P, F-COLL-GATHER, F-COLL-SCATTER, F-COLL-HALO). */
#include "model/collective/coll_parts.h"

static double p2p_s(const struct dl_hockney *link, double ranks, double bytes,
                    double segment_bytes) {
    (void)segment_bytes;
    return ranks <= 1.0 ? 0.0 : link->alpha_s + bytes * link->beta_s_per_byte;
}

static double gather_s(const struct dl_hockney *link, double ranks, double bytes,
                       double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) * link->alpha_s +
           (ranks - 1.0) / ranks * bytes * link->beta_s_per_byte;
}

/* Both neighbours of a line of ranks, one after the other on one port (one neighbour when there are
 * two ranks). */
static double halo_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    double neighbours = ranks <= 1.0 ? 0.0 : ranks < 3.0 ? 1.0 : 2.0;
    return neighbours * (link->alpha_s + bytes * link->beta_s_per_byte);
}

const struct dl_collective_algorithm dl_coll_p2p = {
    "p2p.direct", "one message", "F-COLL-P2P", "unverified", DL_COLL_P2P, p2p_s, NULL};
const struct dl_collective_algorithm dl_coll_binomial_gather = {
    "gather.binomial",
    "doubling blocks up a binomial tree",
    "F-COLL-GATHER",
    "thakur-2005",
    DL_COLL_GATHER,
    gather_s,
    NULL};
const struct dl_collective_algorithm dl_coll_binomial_scatter = {
    "scatter.binomial",
    "halving blocks down a binomial tree",
    "F-COLL-SCATTER",
    "thakur-2005",
    DL_COLL_SCATTER,
    gather_s,
    NULL};
const struct dl_collective_algorithm dl_coll_halo = {"halo.neighbours",
                                                     "both neighbours in turn",
                                                     "F-COLL-HALO",
                                                     "paradl-paper",
                                                     DL_COLL_HALO,
                                                     halo_s,
                                                     NULL};
