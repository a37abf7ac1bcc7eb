/* coll_switch.c - sums inside the switches, and aggregated trees (F-COLL-COLLNET, F-COLL-NVLS,
 * F-COLL-PAT). What NCCL makes of them, with its own latencies and efficiencies, is in nccl.c. */
#include "model/collective/coll_parts.h"

/* SHARP, CollNet: every rank sends its vector up once and gets the sum back while it still sends;
 * one switch level. */
static double collnet_s(const struct dl_hockney *link, double ranks, double bytes,
                        double segment_bytes) {
    (void)segment_bytes;
    return ranks <= 1.0 ? 0.0 : 2.0 * link->alpha_s + bytes * link->beta_s_per_byte;
}

/* NVLink SHARP: a rank reads the sum of its share through the switch, which takes S from every rank
 * in all, and writes it to all of them at once: S + S / p leave a rank, and as many bytes come. */
static double nvls_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    return ranks <= 1.0 ? 0.0
                        : 2.0 * link->alpha_s + (1.0 + 1.0 / ranks) * bytes * link->beta_s_per_byte;
}

/* PAT: shifted binomial trees, one for each root, whose messages to the same rank travel together.
 */
static double pat_gather_s(const struct dl_hockney *link, double ranks, double bytes,
                           double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) * link->alpha_s +
           (ranks - 1.0) / ranks * bytes * link->beta_s_per_byte;
}

static double pat_scatter_s(const struct dl_hockney *link, double ranks, double bytes,
                            double segment_bytes) {
    return pat_gather_s(link, ranks, bytes, segment_bytes) +
           (ranks - 1.0) / ranks * bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_collnet = {
    "all_reduce.collnet",
    "sums in the switches of the network (SHARP)",
    "F-COLL-COLLNET",
    "nccl-tuning",
    DL_COLL_ALL_REDUCE,
    collnet_s,
    NULL};
const struct dl_collective_algorithm dl_coll_nvls = {
    "all_reduce.nvls",
    "sums in the NVSwitch of a node, written to all at once",
    "F-COLL-NVLS",
    "nccl-tuning",
    DL_COLL_ALL_REDUCE,
    nvls_s,
    NULL};
const struct dl_collective_algorithm dl_coll_pat_all_gather = {
    "all_gather.pat",
    "parallel aggregated trees, one device a node",
    "F-COLL-PAT",
    "nccl-tuning",
    DL_COLL_ALL_GATHER,
    pat_gather_s,
    NULL};
const struct dl_collective_algorithm dl_coll_pat_reduce_scatter = {"reduce_scatter.pat",
                                                                   "the same in reverse, with sums",
                                                                   "F-COLL-PAT",
                                                                   "nccl-tuning",
                                                                   DL_COLL_REDUCE_SCATTER,
                                                                   pat_scatter_s,
                                                                   NULL};
