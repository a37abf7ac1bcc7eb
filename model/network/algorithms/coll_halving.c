/* coll_halving.c - Gloo's halving-doubling all-reduce (F-COLL-HALVING-DOUBLING): Rabenseifner for
 * powers of two; other rank counts work in binary blocks, 2S bytes each way (documentation of
 * Gloo's algorithms). */
#include "model/network/coll_parts.h"

static double halving_doubling_s(const struct dl_hockney *link, double ranks, double bytes,
                                 double segment_bytes) {
    (void)segment_bytes;
    double share = dl_power_of_two(ranks) ? (ranks - 1.0) / ranks : 1.0;
    return 2.0 * dl_lg_ceil(ranks) * link->alpha_s +
           share * bytes * (2.0 * link->beta_s_per_byte + link->gamma_s_per_byte);
}

const struct dl_collective_algorithm dl_coll_halving_doubling = {
    .name = "all_reduce.halving_doubling",
    .summary = "recursive halving and doubling, binary blocks when p is not a power of two",
    .formula = "F-COLL-HALVING-DOUBLING",
    .source = "gloo-docs",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = halving_doubling_s,
};
