/* mpi_other.c - F-MPI-OTHER: cost of the algorithm that mpi_rules.c chose, over the links inside
 * and between nodes. */
#include "model/network/libraries/mpi_rules.h"

/* Host time of one more message in flight; the latencies of concurrent messages overlap
 * (unverified). */
static const double NEXT_MESSAGE_S = 0.5e-6;

struct rounds {
    double in, out;
}; /* inside nodes, between nodes */
/* The critical path of a tree: messages, whose bytes are sent one after the other, and hops, whose
 * latencies add up. A second message that a rank sends while the first is in flight costs overhead
 * alone. */
struct way {
    struct rounds messages, hops;
};

/* A k-nomial tree of radix 2 or 4. Each rank forwards what it has, to the farthest rank first: on
 * each level the path holds as many messages as the root has children there. */
static double knomial_rounds(double p, double radix) {
    if (p <= 1.0) return 0.0;
    const double doublings = dl_ceil_log2(p);
    if (radix < 4.0) return doublings;
    const int64_t full = ((int64_t)doublings + 1) / 2 - 1; /* all levels but the highest */
    const double below = (double)full;
    const int64_t stride = (int64_t)dl_exp2(2.0 * below), children = ((int64_t)p - 1) / stride;
    return 3.0 * below + fmin(3.0, (double)children);
}

/* A binary heap: rank i serves its children 2i + 1 and 2i + 2 in this order, so the second child
 * waits for two messages. On a full level the last rank waits longest; on the last, partial level
 * the rank with the most second children among its ancestors. */
static double heap_rounds(double p) {
    if (p <= 1.0) return 0.0;
    const double depth = dl_floor_log2(p),
                 last = p - dl_exp2(depth); /* on the last level, from 0 */
    /* most second children above one of the ranks 0 to last: ones in a binary number */
    const double most = last < 1.0 ? 0.0 : dl_floor_log2(last + 1.0);
    return fmax(depth + most, 2.0 * (depth - 1.0));
}

static struct way star(const struct dl_coll_links *links) {
    const bool out = links->nodes > 1.0;
    return (struct way){{links->per_node - 1.0, links->ranks - links->per_node},
                        {out || links->ranks < 2.0 ? 0.0 : 1.0, out ? 1.0 : 0.0}};
}

static struct way chain(const struct dl_coll_links *links) {
    const struct rounds hops = {links->ranks - links->nodes, links->nodes - 1.0};
    return (struct way){hops, hops};
}

/* A tree by levels: first between nodes, then inside them. */
static struct way levels(const struct dl_coll_links *links, double radix) {
    const double in = dl_ceil_log2(links->per_node), out = dl_ceil_log2(links->nodes);
    return (struct way){
        {knomial_rounds(links->per_node, radix), knomial_rounds(links->nodes, radix)},
        {radix > 2.0 ? ceil(in / 2.0) : in, radix > 2.0 ? ceil(out / 2.0) : out}};
}

/* A heap: its first levels lie in the first node. */
static struct way heap(const struct dl_coll_links *links) {
    const double rounds = heap_rounds(links->ranks),
                 near = fmin(rounds, heap_rounds(links->per_node));
    const double depth = dl_floor_log2(links->ranks),
                 close = fmin(depth, dl_floor_log2(links->per_node));
    return (struct way){{near, rounds - near}, {close, depth - close}};
}

static double latency_s(const struct dl_coll_links *links, const struct way *way) {
    const double next_s =
        fmin(NEXT_MESSAGE_S, links->nodes > 1.0 ? links->inter.alpha_s : links->intra.alpha_s);
    const double concurrent =
        fmax(0.0, way->messages.in + way->messages.out - way->hops.in - way->hops.out);
    return way->hops.in * links->intra.alpha_s + way->hops.out * links->inter.alpha_s +
           concurrent * next_s;
}

/* Whole messages along the path; sums: each is added to what the receiver holds. */
static struct dl_cost_parts whole(const struct dl_coll_links *links, struct way way, double bytes,
                                  bool sums) {
    const double count = way.messages.in + way.messages.out,
                 gamma = sums ? count * links->inter.gamma_s_per_byte : 0.0;
    return (struct dl_cost_parts){latency_s(links, &way),
                                  bytes * (way.messages.in * links->intra.beta_s_per_byte +
                                           way.messages.out * links->inter.beta_s_per_byte + gamma),
                                  count};
}

/* The first segment passes the path, the others follow at the rate of its slowest hop, `width` at a
 * time. */
static struct dl_cost_parts segmented(const struct dl_coll_links *links, struct way fill,
                                      double width, double bytes, double segment_bytes, bool sums) {
    const double segment = dl_segment(bytes, segment_bytes),
                 more = width * (dl_segments(bytes, segment_bytes) - 1.0);
    const struct dl_hockney *slow = fill.hops.out > 0.0 ? &links->inter : &links->intra;
    struct dl_cost_parts cost = whole(links, fill, segment, sums);
    cost.latency_s += more * slow->alpha_s;
    cost.bandwidth_s +=
        more * segment * (slow->beta_s_per_byte + (sums ? slow->gamma_s_per_byte : 0.0));
    cost.steps += more;
    return cost;
}

/* Exchanges at doubling distances; all ranks of a node leave it concurrently, with most of the data
 * where the farthest exchanges carry most. */
static struct dl_cost_parts exchanges(const struct dl_coll_links *links, double rounds,
                                      double bytes, bool sums) {
    const double in = fmin(rounds, dl_ceil_log2(links->per_node)), out = rounds - in;
    const double in_bytes = bytes / links->nodes * (links->per_node - 1.0) / links->per_node;
    const double out_bytes = bytes * (links->nodes - 1.0) / links->nodes;
    return (struct dl_cost_parts){
        in * links->intra.alpha_s + out * links->inter.alpha_s,
        in_bytes * links->intra.beta_s_per_byte +
            out_bytes * links->per_node * links->inter.beta_s_per_byte * links->bisection +
            (sums ? (in_bytes + out_bytes) * links->inter.gamma_s_per_byte : 0.0),
        in + out};
}

/* Blocks around a ring. `pairs`: neighbour exchange, two blocks at a time with alternating
 * neighbours. */
static struct dl_cost_parts around(const struct dl_coll_links *links, double bytes, bool pairs,
                                   bool sums) {
    const struct dl_hockney slowest = dl_coll_slowest_link(links);
    const double steps = pairs ? links->ranks / 2.0 : links->ranks - 1.0;
    return dl_coll_ring_cost(&slowest, links->ranks, bytes, 1.0, steps, sums);
}

/* Blocks between the root and all others, over the root's link. */
static struct dl_cost_parts root_blocks(const struct dl_coll_links *links, struct way way,
                                        double bytes) {
    const double block = bytes / links->ranks;
    return (struct dl_cost_parts){
        latency_s(links, &way),
        block * ((links->per_node - 1.0) * links->intra.beta_s_per_byte +
                 (links->ranks - links->per_node) * links->inter.beta_s_per_byte),
        way.messages.in + way.messages.out};
}

/* Every rank to every other; all ranks of a node leave it concurrently. */
static struct dl_cost_parts all_pairs(const struct dl_coll_links *links, double bytes) {
    const struct rounds each = star(links).messages;
    const double block = bytes / links->ranks;
    return (struct dl_cost_parts){
        each.in * links->intra.alpha_s + each.out * links->inter.alpha_s,
        block * (each.in * links->intra.beta_s_per_byte +
                 each.out * links->per_node * links->inter.beta_s_per_byte * links->bisection),
        links->ranks - 1.0};
}

/* Half of the buffer in each of lg p rounds. */
static struct dl_cost_parts bruck_all_to_all(const struct dl_coll_links *links, double bytes) {
    const double in = dl_ceil_log2(links->per_node), out = dl_ceil_log2(links->ranks) - in;
    return (struct dl_cost_parts){
        in * links->intra.alpha_s + out * links->inter.alpha_s,
        bytes / 2.0 *
            (in * links->intra.beta_s_per_byte +
             out * links->per_node * links->inter.beta_s_per_byte * links->bisection),
        in + out};
}

static struct dl_cost_parts plus(struct dl_cost_parts a, struct dl_cost_parts b) {
    return (struct dl_cost_parts){a.latency_s + b.latency_s, a.bandwidth_s + b.bandwidth_s,
                                  a.steps + b.steps};
}

static struct way one_hop(bool between) {
    const struct rounds one = between ? (struct rounds){0.0, 1.0} : (struct rounds){1.0, 0.0};
    return (struct way){one, one};
}

/* Broadcast from one root, or reduce to it (sums). */
static struct dl_cost_parts rooted(const struct dl_mpi_choice *choice,
                                   const struct dl_coll_links *links, double bytes, bool sums) {
    const double segment = choice->segment_bytes;
    switch (choice->algorithm) {
    case DL_MPI_LINEAR: return whole(links, star(links), bytes, sums);
    case DL_MPI_PIPELINE: return segmented(links, chain(links), 1.0, bytes, segment, sums);
    case DL_MPI_BINARY:
        return segmented(links, heap(links), fmin(2.0, links->ranks - 1.0), bytes, segment, sums);
    case DL_MPI_SPLIT_BINARY: /* half the message down each side, then the sides exchange halves */
        return plus(segmented(links, heap(links), 2.0, bytes / 2.0, segment, sums),
                    whole(links, one_hop(links->nodes > 1.0), bytes / 2.0, false));
    case DL_MPI_KNOMIAL: return whole(links, levels(links, 4.0), bytes, sums);
    case DL_MPI_SCATTER_DOUBLING:
        return plus(root_blocks(links, levels(links, 2.0), bytes),
                    exchanges(links, dl_ceil_log2(links->ranks), bytes, false));
    case DL_MPI_SCATTER_RING:
        return plus(root_blocks(links, levels(links, 2.0), bytes),
                    around(links, bytes, false, false));
    case DL_MPI_REDUCE_GATHER:
        return plus(exchanges(links, dl_ceil_log2(links->ranks), bytes, true),
                    root_blocks(links, levels(links, 2.0), bytes));
    default: return whole(links, levels(links, 2.0), bytes, sums);
    }
}

struct dl_cost_parts dl_mpi_other_cost(enum dl_collective_op op, const struct dl_mpi_choice *choice,
                                       const struct dl_coll_links *links, double bytes) {
    const bool sums = op == DL_COLL_REDUCE_SCATTER;
    switch (op) {
    case DL_COLL_BROADCAST: return rooted(choice, links, bytes, false);
    case DL_COLL_REDUCE: return rooted(choice, links, bytes, true);
    case DL_COLL_GATHER:
    case DL_COLL_SCATTER: {
        if (choice->algorithm == DL_MPI_BINOMIAL)
            return root_blocks(links, levels(links, 2.0), bytes);
        struct way way = star(links);
        if (choice->algorithm == DL_MPI_SYNC) /* a small message to each before its block */
            way.messages.in *= 2.0, way.messages.out *= 2.0, way.hops = way.messages;
        return root_blocks(links, way, bytes);
    }
    case DL_COLL_ALL_TO_ALL: {
        if (choice->algorithm == DL_MPI_BRUCK_OTHER) return bruck_all_to_all(links, bytes);
        struct dl_cost_parts cost = all_pairs(links, bytes);
        const struct way way = star(links);
        if (choice->algorithm == DL_MPI_LINEAR) cost.latency_s = latency_s(links, &way);
        return cost;
    }
    default: break;
    }
    switch (choice->algorithm) { /* all-gather, reduce-scatter */
    case DL_MPI_RING_OTHER: return around(links, bytes, false, sums);
    case DL_MPI_NEIGHBOR: return around(links, bytes, true, sums);
    case DL_MPI_PAIRWISE: return all_pairs(links, bytes);
    case DL_MPI_REDUCE_SCATTER:
        return plus(whole(links, levels(links, 2.0), bytes, true),
                    root_blocks(links, levels(links, 2.0), bytes));
    default: break;
    }
    if (!sums || dl_is_power_of_two(links->ranks))
        return exchanges(links, dl_ceil_log2(links->ranks), bytes, sums);
    /* Ranks beyond a power of two hand their vector to a neighbour and receive a block after the
     * rounds of the others. */
    const struct way one = one_hop(!(links->per_node > 1.0));
    return plus(
        exchanges(links, dl_floor_log2(links->ranks), bytes, true),
        plus(whole(links, one, bytes, true), whole(links, one, bytes / links->ranks, false)));
}
