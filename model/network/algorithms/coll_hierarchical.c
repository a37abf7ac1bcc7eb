/* coll_hierarchical.c - all-reduce over levels (F-COLL-HIERARCHICAL, F-COLL-TORUS2D,
 * F-COLL-LEADER).
 *
 * Reduce-scatter inside the lowest level, all-reduce of the shards on the level above, all-gather
 * back. The rows below use one uniform link and the most even factors of p;
 * dl_coll_hierarchical_s() takes a link per level. */
#include "model/network/coll_parts.h"

double dl_coll_near_square(double ranks) {
    for (double rows = floor(sqrt(ranks)); rows > 1.0; rows -= 1.0)
        if (fmod(ranks, rows) == 0.0) return rows;
    return 1.0;
}

double dl_coll_hierarchical_s(const struct dl_hockney *levels, const double *ranks, int level_count,
                              double bytes) {
    double time_s = 0.0;
    for (int i = 0; i + 1 < level_count; i++) {
        time_s += dl_coll_ring_reduce_scatter.time_s(&levels[i], ranks[i], bytes, 0.0) +
                  dl_coll_ring_all_gather.time_s(&levels[i], ranks[i], bytes, 0.0);
        bytes /= ranks[i];
    }
    int top = level_count - 1;
    return time_s + dl_coll_ring.time_s(&levels[top], ranks[top], bytes, 0.0);
}

static double two_levels_s(const struct dl_hockney *link, double ranks, double bytes,
                           double segment_bytes) {
    (void)segment_bytes;
    struct dl_hockney levels[2] = {*link, *link};
    double rows = dl_coll_near_square(ranks), sizes[2] = {rows, ranks / rows};
    return dl_coll_hierarchical_s(levels, sizes, 2, bytes);
}

static double three_levels_s(const struct dl_hockney *link, double ranks, double bytes,
                             double segment_bytes) {
    (void)segment_bytes;
    struct dl_hockney levels[3] = {*link, *link, *link};
    double first = dl_coll_near_square(ranks), second = dl_coll_near_square(ranks / first);
    double sizes[3] = {first, second, ranks / first / second};
    return dl_coll_hierarchical_s(levels, sizes, 3, bytes);
}

/* Each group reduces to its leader, the leaders all-reduce, each leader broadcasts; whole vectors.
 */
static double leader_s(const struct dl_hockney *link, double ranks, double bytes,
                       double segment_bytes) {
    (void)segment_bytes;
    double rows = dl_coll_near_square(ranks);
    return dl_coll_reduce_broadcast.time_s(link, rows, bytes, 0.0) +
           dl_coll_ring.time_s(link, ranks / rows, bytes, 0.0);
}

const struct dl_collective_algorithm dl_coll_hierarchical2 = {
    .name = "all_reduce.hierarchical2",
    .summary = "reduce-scatter, all-reduce of shards, all-gather on two levels",
    .formula = "F-COLL-HIERARCHICAL",
    .source = "horovod-source",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = two_levels_s,
};
const struct dl_collective_algorithm dl_coll_hierarchical3 = {
    .name = "all_reduce.hierarchical3",
    .summary = "reduce-scatter, all-reduce of shards, all-gather on three levels",
    .formula = "F-COLL-HIERARCHICAL",
    .source = "horovod-source",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = three_levels_s,
};
const struct dl_collective_algorithm dl_coll_torus2d = {
    .name = "all_reduce.torus2d",
    .summary = "rings along the rows, then along the columns of a torus",
    .formula = "F-COLL-TORUS2D",
    .source = "horovod-source",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = two_levels_s,
};
const struct dl_collective_algorithm dl_coll_leader = {
    .name = "all_reduce.leader",
    .summary = "reduce to leaders, ring of leaders, broadcast (ChainerMN)",
    .formula = "F-COLL-LEADER",
    .source = "paradl-paper",
    .op = DL_COLL_ALL_REDUCE,
    .time_s = leader_s,
};
