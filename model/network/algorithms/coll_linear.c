/* coll_linear.c - all ranks send to the root, which broadcasts the result down a binomial tree
 * (F-COLL-LINEAR). */
#include "model/network/coll_parts.h"

static double linear_s(const struct dl_hockney *link, double ranks, double bytes,
                       double segment_bytes) {
    (void)segment_bytes;
    double send_s = link->alpha_s + bytes * link->beta_s_per_byte;
    return (ranks - 1.0) * (send_s + bytes * link->gamma_s_per_byte) + dl_lg_ceil(ranks) * send_s;
}

const struct dl_collective_algorithm dl_coll_linear = {
    .name = "all_reduce.linear",
    .summary = "all ranks to the root one after another, then broadcast",
    .formula = "F-COLL-LINEAR",
    .source = "openmpi-coll",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = linear_s,
};
