/* coll_rabenseifner.c - all-reduce as recursive-halving reduce-scatter and recursive-doubling
 * all-gather (F-COLL-RABENSEIFNER). Ranks beyond a power of two hand in their vector
 * first and receive the result last. */
#include "model/network/coll_parts.h"

static double rabenseifner_s(const struct dl_hockney *link, double ranks, double bytes,
                             double segment_bytes) {
    (void)segment_bytes;
    const double others = dl_power(dl_lg_floor(ranks)); /* those that halve and double */
    const double share = (others - 1.0) / others,
                 fold = ranks <= 1.0 || dl_power_of_two(ranks) ? 0.0 : 1.0;
    return (2.0 * dl_lg_floor(ranks) + 2.0 * fold) * link->alpha_s +
           (2.0 * share + 2.0 * fold) * bytes * link->beta_s_per_byte +
           (share + fold) * bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_rabenseifner = {
    .name = "all_reduce.rabenseifner",
    .summary = "halving reduce-scatter, doubling all-gather",
    .formula = "F-COLL-RABENSEIFNER",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = rabenseifner_s,
};
