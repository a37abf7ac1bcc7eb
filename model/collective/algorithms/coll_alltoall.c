/* coll_alltoall.c - all-to-all by pairwise exchange and Bruck's algorithm (F-COLL-PAIRWISE,
 * F-COLL-BRUCK). bytes: one rank's whole buffer, of which it keeps 1/p. */
#include "model/collective/coll_parts.h"

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

const struct dl_collective_algorithm dl_coll_pairwise = {"all_to_all.pairwise",
                                                         "p - 1 exchanges of one block",
                                                         "F-COLL-PAIRWISE",
                                                         "thakur-2005",
                                                         DL_COLL_ALL_TO_ALL,
                                                         pairwise_s,
                                                         NULL};
const struct dl_collective_algorithm dl_coll_bruck = {"all_to_all.bruck",
                                                      "ceil(lg p) exchanges of half the buffer",
                                                      "F-COLL-BRUCK",
                                                      "thakur-2005",
                                                      DL_COLL_ALL_TO_ALL,
                                                      bruck_s,
                                                      NULL};
