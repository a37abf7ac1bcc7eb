/* coll_ring.c - ring algorithms (F-COLL-RING, F-COLL-RING-SEGMENTED, F-COLL-RING-AG,
 * F-COLL-RING-RS). Every rank sends to one neighbour and receives from the other; a link that
 * carries one direction at full rate is assumed. */
#include "model/collective/coll_parts.h"

/* 2(p-1) steps of S/p; half of them add. */
static double ring_s(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes) {
    (void)segment_bytes;
    double block = bytes / ranks;
    return (ranks - 1.0) *
           (2.0 * (link->alpha_s + block * link->beta_s_per_byte) + block * link->gamma_s_per_byte);
}

/* np phases of segments in the reduce-scatter, whole blocks in the all-gather: (np + 1)(p - 1)
 * messages. The bytes are those of the ring; phases let the sum of one segment overlap the next
 * transfer, here the sum is charged in full. */
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

const struct dl_collective_algorithm dl_coll_ring = {"all_reduce.ring",
                                                     "reduce-scatter then all-gather around a ring",
                                                     "F-COLL-RING",
                                                     "thakur-2005",
                                                     DL_COLL_ALL_REDUCE,
                                                     ring_s,
                                                     NULL};
const struct dl_collective_algorithm dl_coll_segmented_ring = {
    "all_reduce.segmented_ring",
    "ring whose reduce-scatter runs in phases of one segment per rank",
    "F-COLL-RING-SEGMENTED",
    "openmpi-coll",
    DL_COLL_ALL_REDUCE,
    segmented_s,
    NULL};
const struct dl_collective_algorithm dl_coll_ring_all_gather = {"all_gather.ring",
                                                                "blocks passed around a ring",
                                                                "F-COLL-RING-AG",
                                                                "thakur-2005",
                                                                DL_COLL_ALL_GATHER,
                                                                all_gather_s,
                                                                NULL};
const struct dl_collective_algorithm dl_coll_ring_reduce_scatter = {
    "reduce_scatter.ring",
    "partial sums passed around a ring",
    "F-COLL-RING-RS",
    "thakur-2005",
    DL_COLL_REDUCE_SCATTER,
    reduce_scatter_s,
    NULL};
