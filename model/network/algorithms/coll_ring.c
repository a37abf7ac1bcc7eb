/* coll_ring.c - ring algorithms (F-COLL-RING, F-COLL-RING-SEGMENTED, F-COLL-RING-AG,
 * F-COLL-RING-RS). Every rank sends to one neighbour and receives from the other, over a link that
 * carries each direction at full rate. */
#include "model/network/coll_parts.h"

/* 2(p-1) steps of S/p; half of them add. */
static double ring_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    double block = bytes / ranks;
    return (ranks - 1.0) *
           (2.0 * (link->alpha_s + block * link->beta_s_per_byte) + block * link->gamma_s_per_byte);
}

/* The reduce-scatter runs in n phases of segments, the all-gather in whole blocks: (n + 1)(p - 1)
 * messages with the bytes of the ring. The sum of a segment could overlap the next transfer; here
 * it counts in full. */
static double segmented_s(const struct dl_hockney *link, double ranks, double bytes,
                          double segment_bytes) {
    double phases = dl_segments(bytes / ranks, segment_bytes);
    return ring_s(link, ranks, bytes, 0.0) + (phases - 1.0) * (ranks - 1.0) * link->alpha_s;
}

static double all_gather_s(const struct dl_hockney *link, double ranks, double bytes,
                           double segment_bytes) {
    (void)segment_bytes;
    return (ranks - 1.0) * (link->alpha_s + bytes / ranks * link->beta_s_per_byte);
}

static double reduce_scatter_s(const struct dl_hockney *link, double ranks, double bytes,
                               double segment_bytes) {
    return all_gather_s(link, ranks, bytes, segment_bytes) +
           (ranks - 1.0) / ranks * bytes * link->gamma_s_per_byte;
}

const struct dl_collective_algorithm dl_coll_ring = {
    .name = "all_reduce.ring",
    .summary = "reduce-scatter then all-gather around a ring",
    .formula = "F-COLL-RING",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = ring_s,
};
const struct dl_collective_algorithm dl_coll_segmented_ring = {
    .name = "all_reduce.segmented_ring",
    .summary = "ring whose reduce-scatter runs in phases of one segment per rank",
    .formula = "F-COLL-RING-SEGMENTED",
    .source = "openmpi-coll",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = segmented_s,
};
const struct dl_collective_algorithm dl_coll_ring_all_gather = {
    .name = "all_gather.ring",
    .summary = "blocks passed around a ring",
    .formula = "F-COLL-RING-AG",
    .source = "thakur-2005",
    .op = DL_COLL_ALL_GATHER,
    .time_s = all_gather_s,
};
const struct dl_collective_algorithm dl_coll_ring_reduce_scatter = {
    .name = "reduce_scatter.ring",
    .summary = "partial sums passed around a ring",
    .formula = "F-COLL-RING-RS",
    .source = "thakur-2005",
    .op = DL_COLL_REDUCE_SCATTER,
    .time_s = reduce_scatter_s,
};
