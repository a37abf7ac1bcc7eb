/* coll_doubling.c - recursive doubling and halving, and Bruck's all-gather (F-COLL-DOUBLING*,
 * F-COLL-HALVING, F-COLL-BRUCK-AG). */
#include "model/network/coll_parts.h"

/* lg p exchanges of the whole vector. Ranks beyond a power of two hand in their vector first and
 * receive the result last. */
static double doubling_s(const struct dl_hockney *link, double ranks, double bytes,
                         double segment_bytes) {
    (void)segment_bytes;
    double send_s = link->alpha_s + bytes * link->beta_s_per_byte,
           sum_s = bytes * link->gamma_s_per_byte;
    double fold_s = dl_power_of_two(ranks) ? 0.0 : 2.0 * send_s + sum_s;
    return dl_lg_floor(ranks) * (send_s + sum_s) + fold_s;
}

double dl_coll_log_all_gather_s(const struct dl_hockney *link, double ranks, double bytes,
                                double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) * link->alpha_s +
           (ranks - 1.0) / ranks * bytes * link->beta_s_per_byte;
}

double dl_coll_log_reduce_scatter_s(const struct dl_hockney *link, double ranks, double bytes,
                                    double segment_bytes) {
    return dl_coll_log_all_gather_s(link, ranks, bytes, segment_bytes) +
           (ranks - 1.0) / ranks * bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_recursive_doubling = {
    .name = "all_reduce.recursive_doubling",
    .summary = "lg p exchanges of the whole vector",
    .formula = "F-COLL-DOUBLING",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = doubling_s,
};
const struct dl_collective_algorithm dl_coll_doubling_all_gather = {
    .name = "all_gather.recursive_doubling",
    .summary = "lg p exchanges of doubling size; powers of two",
    .formula = "F-COLL-DOUBLING-AG",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_GATHER,
    .time_s = dl_coll_log_all_gather_s,
    .valid = dl_power_of_two,
};
const struct dl_collective_algorithm dl_coll_halving_reduce_scatter = {
    .name = "reduce_scatter.recursive_halving",
    .summary = "lg p exchanges of halving size; powers of two",
    .formula = "F-COLL-HALVING",
    .source = "thakur-2005",
    .op = DL_COLL_REDUCE_SCATTER,
    .time_s = dl_coll_log_reduce_scatter_s,
    .valid = dl_power_of_two,
};
const struct dl_collective_algorithm dl_coll_bruck_all_gather = {
    .name = "all_gather.bruck",
    .summary = "ceil(lg p) steps for any number of ranks",
    .formula = "F-COLL-BRUCK-AG",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_GATHER,
    .time_s = dl_coll_log_all_gather_s,
};
