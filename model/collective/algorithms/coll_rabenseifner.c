/* coll_rabenseifner.c - all-reduce as recursive-halving reduce-scatter and recursive-doubling
 * all-gather (F-COLL-RABENSEIFNER). With p not a power of two the surplus ranks hand in their
 * vector first and get the result last. */
#include "model/collective/coll_parts.h"

static double rabenseifner_s(const struct dl_hockney *link, double ranks, double bytes,
                             double segment_bytes) {
    (void)segment_bytes;
    double share = (ranks - 1.0) / ranks, fold = ranks <= 1.0 || dl_power_of_two(ranks) ? 0.0 : 1.0;
    return (2.0 * dl_lg_floor(ranks) + 2.0 * fold) * link->alpha_s +
           (2.0 * share + 2.0 * fold) * bytes * link->beta_s_per_byte +
           (share + fold) * bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_rabenseifner = {
    "all_reduce.rabenseifner",
    "halving reduce-scatter, doubling all-gather",
    "F-COLL-RABENSEIFNER",
    "thakur-2005",
    DL_COLL_ALL_REDUCE,
    rabenseifner_s,
    NULL};
