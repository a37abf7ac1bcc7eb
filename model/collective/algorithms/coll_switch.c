/* coll_switch.c - in-network reduction (SHARP) and aggregated trees (F-COLL-COLLNET, F-COLL-NVLS,
 * F-COLL-PAT). nccl.c holds NCCL's versions, with its own latencies and efficiencies. */
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

const struct dl_collective_algorithm dl_coll_collnet = {
    "all_reduce.collnet",
    "in-network reduction in the switches (SHARP)",
    "F-COLL-COLLNET",
    "nccl-tuning",
    DL_COLL_ALL_REDUCE,
    collnet_s,
    NULL};
const struct dl_collective_algorithm dl_coll_nvls = {
    "all_reduce.nvls",
    "in-network reduction in the NVSwitch of a node, multicast to all",
    "F-COLL-NVLS",
    "nccl-tuning",
    DL_COLL_ALL_REDUCE,
    nvls_s,
    NULL};
/* PAT: shifted binomial trees, one per root; their messages to the same rank travel together, so
 * that it costs what recursive doubling does, for any number of ranks. */
const struct dl_collective_algorithm dl_coll_pat_all_gather = {
    "all_gather.pat",
    "parallel aggregated trees, one device a node",
    "F-COLL-PAT",
    "nccl-tuning",
    DL_COLL_ALL_GATHER,
    dl_coll_log_all_gather_s,
    NULL};
const struct dl_collective_algorithm dl_coll_pat_reduce_scatter = {
    "reduce_scatter.pat",   "the same in reverse, with sums", "F-COLL-PAT", "nccl-tuning",
    DL_COLL_REDUCE_SCATTER, dl_coll_log_reduce_scatter_s,     NULL};
