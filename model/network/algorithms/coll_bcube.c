/* coll_bcube.c - Gloo's bcube all-reduce with base 2 (F-COLL-BCUBE): 2 log2 p steps; step s carries
 * S / 2^s. */
#include "model/network/coll_parts.h"

static double bcube_s(const struct dl_hockney *link, double ranks, double bytes,
                      double segment_bytes) {
    (void)segment_bytes;
    double stages = dl_lg_ceil(ranks);
    double volume = bytes * 2.0 * (1.0 - dl_power(-stages)); /* sum of S / 2^s for s < stages */
    return 2.0 * stages * link->alpha_s + 2.0 * volume * link->beta_s_per_byte +
           volume * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_bcube = {
    .name = "all_reduce.bcube",
    .summary = "stages of groups of two over a hypercube",
    .formula = "F-COLL-BCUBE",
    .source = "gloo-docs",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = bcube_s,
};
