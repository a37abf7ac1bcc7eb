/* coll_switch.c - in-network reduction (SHARP) and aggregated trees (F-COLL-COLLNET, F-COLL-NVLS,
 * F-COLL-PAT). nccl.c holds NCCL's versions, with its own latencies and efficiencies. */
#include "model/network/coll_parts.h"

/* SHARP, CollNet: every rank sends its vector up once and receives the sum while it still sends;
 * one switch level. */
static double collnet_s(const struct dl_hockney *link, double ranks, double bytes,
                        double segment_bytes) {
    (void)segment_bytes;
    return ranks <= 1.0 ? 0.0 : 2.0 * link->alpha_s + bytes * link->beta_s_per_byte;
}

/* NVLink SHARP: each rank reads the sum of its shard through the switch, for which the switch reads
 * S from every rank in all, and multicasts the shard: S + S / p leave a rank and as many bytes
 * arrive. */
static double nvls_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    return ranks <= 1.0 ? 0.0
                        : 2.0 * link->alpha_s + (1.0 + 1.0 / ranks) * bytes * link->beta_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_collnet = {
    .name = "all_reduce.collnet",
    .summary = "in-network reduction in the switches (SHARP)",
    .formula = "F-COLL-COLLNET",
    .source = "nccl-tuning",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = collnet_s,
};
const struct dl_collective_algorithm dl_coll_nvls = {
    .name = "all_reduce.nvls",
    .summary = "in-network reduction in the NVSwitch of a node, multicast to all",
    .formula = "F-COLL-NVLS",
    .source = "nccl-tuning",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = nvls_s,
};
/* PAT: shifted binomial trees, one per root; their messages to the same rank travel together, so
 * that it costs what recursive doubling does, for any number of ranks. */
const struct dl_collective_algorithm dl_coll_pat_all_gather = {
    .name = "all_gather.pat",
    .summary = "parallel aggregated trees, one device per node",
    .formula = "F-COLL-PAT",
    .source = "nccl-tuning",
    .op = DL_COLL_ALL_GATHER,
    .time_s = dl_coll_log_all_gather_s,
};
const struct dl_collective_algorithm dl_coll_pat_reduce_scatter = {
    .name = "reduce_scatter.pat",
    .summary = "parallel aggregated trees in reverse, with sums",
    .formula = "F-COLL-PAT",
    .source = "nccl-tuning",
    .op = DL_COLL_REDUCE_SCATTER,
    .time_s = dl_coll_log_reduce_scatter_s,
};
