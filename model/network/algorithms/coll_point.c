/* coll_point.c - point to point, binomial gather and scatter, halo exchange
 * (F-COLL-P2P, F-COLL-GATHER, F-COLL-SCATTER, F-COLL-HALO). */
#include "model/network/coll_parts.h"

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

/* Messages to both neighbours in a line of ranks, one after the other on one port; two ranks have
 * one neighbour each. */
static double halo_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    double neighbours = ranks <= 1.0 ? 0.0 : ranks < 3.0 ? 1.0 : 2.0;
    return neighbours * (link->alpha_s + bytes * link->beta_s_per_byte);
}

const struct dl_collective_algorithm dl_coll_p2p = {
    .name = "p2p.direct",
    .summary = "one message",
    .formula = "F-COLL-P2P",
    .source = "unverified",
    .op = DL_COLL_P2P,
    .time_s = p2p_s,
};
const struct dl_collective_algorithm dl_coll_binomial_gather = {
    .name = "gather.binomial",
    .summary = "doubling blocks up a binomial tree",
    .formula = "F-COLL-GATHER",
    .source = "thakur-2005",
    .op = DL_COLL_GATHER,
    .time_s = gather_s,
};
const struct dl_collective_algorithm dl_coll_binomial_scatter = {
    .name = "scatter.binomial",
    .summary = "halving blocks down a binomial tree",
    .formula = "F-COLL-SCATTER",
    .source = "thakur-2005",
    .op = DL_COLL_SCATTER,
    .time_s = gather_s,
};
const struct dl_collective_algorithm dl_coll_halo = {
    .name = "halo.neighbours",
    .summary = "one message to each of two neighbours",
    .formula = "F-COLL-HALO",
    .source = "paradl-paper",
    .op = DL_COLL_HALO,
    .time_s = halo_s,
};
