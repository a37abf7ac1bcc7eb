/* coll_linear.c - everyone sends to the root, which tells the result by a binomial broadcast
 * (F-COLL-LINEAR). */
#include "model/collective/coll_parts.h"

static double linear_s(const struct dl_hockney *link, double ranks, double bytes,
                       double segment_bytes) {
    (void)segment_bytes;
    double send_s = link->alpha_s + bytes * link->beta_s_per_byte;
    return (ranks - 1.0) * (send_s + bytes * link->gamma_s_per_byte) + dl_lg_ceil(ranks) * send_s;
}

const struct dl_collective_algorithm dl_coll_linear = {"all_reduce.linear",
                                                       "all to the root in turn, then broadcast",
                                                       "F-COLL-LINEAR",
                                                       "openmpi-coll",
                                                       DL_COLL_ALL_REDUCE,
                                                       linear_s,
                                                       NULL};
