/* coll_reduce.c - reduce to one rank by a binomial tree (F-COLL-BINOMIAL-REDUCE). */
#include "model/network/coll_parts.h"

static double binomial_s(const struct dl_hockney *link, double ranks, double bytes,
                         double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) *
           (link->alpha_s + bytes * (link->beta_s_per_byte + link->gamma_s_per_byte));
}

const struct dl_collective_algorithm dl_coll_binomial_reduce = {
    .name = "reduce.binomial",
    .summary = "whole messages up a binomial tree",
    .formula = "F-COLL-BINOMIAL-REDUCE",
    .source = "thakur-2005",
    .op = DL_COLL_REDUCE,
    .time_s = binomial_s,
};
