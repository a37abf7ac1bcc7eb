/* coll_broadcast.c - broadcast by binomial tree, pipelined chain, and scatter with all-gather
 * (F-COLL-BINOMIAL, F-COLL-CHAIN, F-COLL-SCATTER-AG). */
#include "model/network/coll_parts.h"

static double binomial_s(const struct dl_hockney *link, double ranks, double bytes,
                         double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) * (link->alpha_s + bytes * link->beta_s_per_byte);
}

static double chain_s(const struct dl_hockney *link, double ranks, double bytes,
                      double segment_bytes) {
    if (ranks <= 1.0) return 0.0;
    double segment = dl_segment(bytes, segment_bytes), segments = dl_segments(bytes, segment_bytes);
    return (ranks - 2.0 + segments) * link->alpha_s +
           ((ranks - 2.0) * segment + bytes) * link->beta_s_per_byte;
}

/* Van de Geijn: binomial scatter, then ring all-gather. */
static double scatter_s(const struct dl_hockney *link, double ranks, double bytes,
                        double segment_bytes) {
    (void)segment_bytes;
    return (dl_lg_ceil(ranks) + ranks - 1.0) * link->alpha_s +
           2.0 * (ranks - 1.0) / ranks * bytes * link->beta_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_binomial_broadcast = {
    .name = "broadcast.binomial",
    .summary = "whole messages down a binomial tree",
    .formula = "F-COLL-BINOMIAL",
    .source = "thakur-2005",
    .op = DL_COLL_BROADCAST,
    .time_s = binomial_s,
};
const struct dl_collective_algorithm dl_coll_chain_broadcast = {
    .name = "broadcast.chain",
    .summary = "segments along a chain",
    .formula = "F-COLL-CHAIN",
    .source = "unverified",
    .op = DL_COLL_BROADCAST,
    .time_s = chain_s,
};
const struct dl_collective_algorithm dl_coll_scatter_broadcast = {
    .name = "broadcast.scatter_all_gather",
    .summary = "binomial scatter, ring all-gather",
    .formula = "F-COLL-SCATTER-AG",
    .source = "thakur-2005",
    .op = DL_COLL_BROADCAST,
    .time_s = scatter_s,
};
