/* coll_tree.c - tree all-reduces: binomial reduce and broadcast, pipelined binary tree, double
 * binary tree (F-COLL-REDUCE-BROADCAST, F-COLL-BINARY-TREE, F-COLL-DOUBLE-TREE). */
#include "model/network/coll_parts.h"

static double reduce_broadcast_s(const struct dl_hockney *link, double ranks, double bytes,
                                 double segment_bytes) {
    (void)segment_bytes;
    return dl_lg_ceil(ranks) *
           (2.0 * (link->alpha_s + bytes * link->beta_s_per_byte) + bytes * link->gamma_s_per_byte);
}

/* Up and down a binary tree of depth ceil(lg p); a node receives the segments of two children one
 * after the other. */
static double binary_tree_s(const struct dl_hockney *link, double ranks, double bytes,
                            double segment_bytes) {
    if (ranks <= 1.0) return 0.0;
    double depth = dl_lg_ceil(ranks), children = ranks > 2.0 ? 2.0 : 1.0;
    double segment = dl_segment(bytes, segment_bytes), segments = dl_segments(bytes, segment_bytes);
    double messages = 2.0 * children * (depth + segments - 1.0),
           volume = children * ((depth - 1.0) * segment + bytes);
    return messages * link->alpha_s + 2.0 * volume * link->beta_s_per_byte +
           volume * link->gamma_s_per_byte;
}

/* Reduce then broadcast, each with the cheaper of the binomial and the pipelined binary tree. */
static double nonoverlapping_s(const struct dl_hockney *link, double ranks, double bytes,
                               double segment_bytes) {
    double binomial_s = reduce_broadcast_s(link, ranks, bytes, 0.0);
    return segment_bytes > 0.0 ? fmin(binomial_s, binary_tree_s(link, ranks, bytes, segment_bytes))
                               : binomial_s;
}

/* Two complementary trees, each with half the vector and fully pipelined: each rank sends and
 * receives 2S in all. */
static double double_tree_s(const struct dl_hockney *link, double ranks, double bytes,
                            double segment_bytes) {
    (void)segment_bytes;
    if (ranks <= 1.0) return 0.0;
    return 2.0 * dl_lg_ceil(ranks) * link->alpha_s + 2.0 * bytes * link->beta_s_per_byte +
           bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_reduce_broadcast = {
    .name = "all_reduce.reduce_broadcast",
    .summary = "binomial reduce, then binomial broadcast",
    .formula = "F-COLL-REDUCE-BROADCAST",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = reduce_broadcast_s,
};
const struct dl_collective_algorithm dl_coll_nonoverlapping = {
    .name = "all_reduce.nonoverlapping",
    .summary = "reduce, then broadcast, as Open MPI names it",
    .formula = "F-COLL-REDUCE-BROADCAST",
    .source = "openmpi-coll",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = nonoverlapping_s,
};
const struct dl_collective_algorithm dl_coll_binary_tree = {
    .name = "all_reduce.binary_tree",
    .summary = "segments up and down one binary tree",
    .formula = "F-COLL-BINARY-TREE",
    .source = "unverified",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = binary_tree_s,
};
const struct dl_collective_algorithm dl_coll_double_tree = {
    .name = "all_reduce.double_tree",
    .summary = "two complementary binary trees, each with half the vector",
    .formula = "F-COLL-DOUBLE-TREE",
    .source = "unverified",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = double_tree_s,
};
