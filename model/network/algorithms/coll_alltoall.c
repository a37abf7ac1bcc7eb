/* coll_alltoall.c - all-to-all by pairwise exchange and Bruck's algorithm (F-COLL-PAIRWISE,
 * F-COLL-BRUCK). bytes: one rank's whole buffer, of which it keeps 1/p. */
#include "model/network/coll_parts.h"

static double pairwise_s(const struct dl_hockney *link, double ranks, double bytes,
                         double segment_bytes) {
    (void)segment_bytes;
    return (ranks - 1.0) * (link->alpha_s + bytes / ranks * link->beta_s_per_byte);
}

static double bruck_s(const struct dl_hockney *link, double ranks, double bytes,
                      double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) * (link->alpha_s + bytes / 2.0 * link->beta_s_per_byte);
}

const struct dl_collective_algorithm dl_coll_pairwise = {
    .name = "all_to_all.pairwise",
    .summary = "p - 1 exchanges of one block",
    .formula = "F-COLL-PAIRWISE",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_TO_ALL,
    .time_s = pairwise_s,
};
const struct dl_collective_algorithm dl_coll_bruck = {
    .name = "all_to_all.bruck",
    .summary = "ceil(lg p) exchanges of half the buffer",
    .formula = "F-COLL-BRUCK",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_TO_ALL,
    .time_s = bruck_s,
};
