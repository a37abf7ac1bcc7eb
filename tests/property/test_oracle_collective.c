/* Collectives against a simulation of their messages that knows nothing of model/: ranks with a
 * program of sends and receives, links with latency and rate, adapters that the ranks of a node
 * share. LogGOP (Hoefler et al. 2009) with L + 2 o = alpha, G = beta and O = gamma where bytes are
 * summed; a rank goes on when what it sends has arrived, as above the eager limit of MPI. */
#include "model/network/coll_internal.h"
#include "model/network/libraries/mpi_rules.h"
#include "model/network/libraries/nccl.h"
#include "tests/check.h"

enum { TOPOLOGIES = 50, MAX_RANKS = 64, MAX_STEPS = 512 };

/* One step of a rank: a send, a receive or both at once; -1: none. */
struct step {
    int to, from;
    double sent_bytes, received_bytes, summed_bytes;
};
struct rank {
    struct step steps[MAX_STEPS];
    int count;
};
struct machine {
    int ranks, per_node;
    struct dl_hockney intra, inter; /* inter.beta: of the node's one adapter */
    bool shared;                    /* the ranks of a node share it fairly */
};
static struct rank ranks[MAX_RANKS];
static struct machine machine;

static void clear(void) { memset(ranks, 0, sizeof ranks); }
static void both(int rank, int to, double out, int from, double in, double summed) {
    assert_true(ranks[rank].count < MAX_STEPS);
    ranks[rank].steps[ranks[rank].count++] = (struct step){to, from, out, in, summed};
}
static void message(int from, int to, double bytes, double summed) {
    both(from, to, bytes, -1, 0, 0);
    both(to, -1, 0, from, bytes, summed);
}

static bool crosses(int a, int b) { return a / machine.per_node != b / machine.per_node; }

/* Other ranks of the sender's node that send to other nodes in the same step of their programs. */
static int sharers(int from, int at) {
    int count = 0;
    const int first = from / machine.per_node * machine.per_node;
    for (int r = first; r < first + machine.per_node && r < machine.ranks; r++)
        if (at < ranks[r].count && ranks[r].steps[at].to >= 0 && crosses(r, ranks[r].steps[at].to))
            count++;
    return count;
}

static double transfer_s(int from, int to, int at, double bytes) {
    if (!crosses(from, to)) return machine.intra.alpha_s + bytes * machine.intra.beta_s_per_byte;
    const double flows = machine.shared ? sharers(from, at) : 1;
    return machine.inter.alpha_s + flows * bytes * machine.inter.beta_s_per_byte;
}

/* The end of the last rank. A transfer starts when both sides are there. */
static double run(void) {
    static double free_s[MAX_RANKS], sent_s[MAX_RANKS], got_s[MAX_RANKS];
    static int next[MAX_RANKS];
    const int p = machine.ranks;
    for (int r = 0; r < p; r++) free_s[r] = 0, next[r] = 0, sent_s[r] = got_s[r] = -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < p; r++) { /* transfers whose two sides are at it */
            if (next[r] >= ranks[r].count || ranks[r].steps[next[r]].to < 0 || sent_s[r] >= 0)
                continue;
            const struct step *s = &ranks[r].steps[next[r]];
            const int to = s->to;
            if (next[to] >= ranks[to].count || ranks[to].steps[next[to]].from != r) continue;
            const double start_s = fmax(free_s[r], free_s[to]);
            sent_s[r] = got_s[to] = start_s + transfer_s(r, to, next[r], s->sent_bytes);
            moved = true;
        }
        for (int r = 0; r < p; r++) { /* steps that are done */
            if (next[r] >= ranks[r].count) continue;
            const struct step *s = &ranks[r].steps[next[r]];
            if ((s->to >= 0 && sent_s[r] < 0) || (s->from >= 0 && got_s[r] < 0)) continue;
            double end_s = free_s[r];
            if (s->from >= 0)
                end_s = fmax(end_s, got_s[r] + s->summed_bytes * machine.intra.gamma_s_per_byte);
            if (s->to >= 0) end_s = fmax(end_s, sent_s[r]);
            free_s[r] = end_s, sent_s[r] = got_s[r] = -1, next[r]++;
            moved = true;
        }
    }
    double last_s = 0;
    for (int r = 0; r < p; r++) {
        assert_int_equal(next[r], ranks[r].count); /* no deadlock */
        last_s = fmax(last_s, free_s[r]);
    }
    return last_s;
}

/* Programs. */

static void ring_pass(int steps, double block, bool summed) {
    const int p = machine.ranks;
    for (int k = 0; k < steps; k++)
        for (int r = 0; r < p; r++)
            both(r, (r + 1) % p, block, (r + p - 1) % p, block, summed ? block : 0);
}
static void ring(double bytes) {
    const int p = machine.ranks;
    clear();
    ring_pass(p - 1, bytes / p, true);
    ring_pass(p - 1, bytes / p, false);
}
static void ring_all_gather(double bytes) {
    clear();
    ring_pass(machine.ranks - 1, bytes / machine.ranks, false);
}
static void ring_reduce_scatter(double bytes) {
    clear();
    ring_pass(machine.ranks - 1, bytes / machine.ranks, true);
}

static int below_power(int p) {
    int power = 1;
    while (power * 2 <= p) power *= 2;
    return power;
}
/* Of the first 2 x surplus ranks the odd ones hand in; those that stay are numbered anew. */
static int stays(int number, int surplus) {
    return number < surplus ? 2 * number : number + surplus;
}
static void fold(double bytes, bool in) {
    const int surplus = machine.ranks - below_power(machine.ranks);
    for (int i = 0; i < surplus; i++)
        message(in ? 2 * i + 1 : 2 * i, in ? 2 * i : 2 * i + 1, bytes, in ? bytes : 0);
    for (int r = 2 * surplus; surplus > 0 && r < machine.ranks; r++) both(r, -1, 0, -1, 0, 0);
}
/* Exchanges at `distance` among the ranks that stay. */
static void exchange(int distance, double bytes, bool summed) {
    const int power = below_power(machine.ranks), surplus = machine.ranks - power;
    for (int i = 0; i < power; i++) {
        const int r = stays(i, surplus), other = stays(i ^ distance, surplus);
        both(r, other, bytes, other, bytes, summed ? bytes : 0);
    }
}
static void doubling(double bytes) {
    clear();
    fold(bytes, true);
    for (int d = 1; d < below_power(machine.ranks); d *= 2) exchange(d, bytes, true);
    fold(bytes, false);
}
static void rabenseifner(double bytes) {
    const int power = below_power(machine.ranks);
    clear();
    fold(bytes, true);
    for (int d = 1; d < power; d *= 2) exchange(d, bytes / 2 / d, true);
    for (int d = power / 2; d >= 1; d /= 2) exchange(d, bytes / 2 / d, false);
    fold(bytes, false);
}
static void doubling_all_gather(double bytes) {
    const int p = machine.ranks;
    clear();
    for (int d = 1; d < p; d *= 2) exchange(d, bytes * d / p, false);
}
static void halving_reduce_scatter(double bytes) {
    const int p = machine.ranks;
    clear();
    for (int d = p / 2; d >= 1; d /= 2) exchange(d, bytes * d / p, true);
}
static void binomial_down(double bytes) {
    const int p = machine.ranks;
    int top = 1;
    while (top < p) top *= 2;
    for (int d = top / 2; d >= 1; d /= 2)
        for (int r = 0; r < p; r += 2 * d)
            if (r + d < p) message(r, r + d, bytes, 0);
}
static void binomial_up(double bytes) {
    const int p = machine.ranks;
    for (int d = 1; d < p; d *= 2)
        for (int r = 0; r < p; r += 2 * d)
            if (r + d < p) message(r + d, r, bytes, bytes);
}
static void broadcast(double bytes) {
    clear();
    binomial_down(bytes);
}
static void reduce(double bytes) {
    clear();
    binomial_up(bytes);
}
static void pairwise(double bytes) {
    const int p = machine.ranks;
    clear();
    for (int k = 1; k < p; k++)
        for (int r = 0; r < p; r++) both(r, (r + k) % p, bytes / p, (r + p - k) % p, bytes / p, 0);
}
/* Bruck: in round d a rank passes on all blocks whose number has that bit; half of them for powers
 * of two. */
static void bruck(double bytes) {
    const int p = machine.ranks;
    clear();
    for (int d = 1; d < p; d *= 2)
        for (int r = 0; r < p; r++) both(r, (r + d) % p, bytes / 2, (r + p - d) % p, bytes / 2, 0);
}
static uint64_t seed = 2009;
static double between(double low, double high) {
    return low * pow(high / low, check_uniform(&seed));
}
static int upto(int most) { return 1 + (int)(check_random(&seed) % (uint64_t)most); }

/* The algorithms of MPI for operations other than all-reduce, on one link. */
static const struct row {
    enum dl_collective_op op;
    enum dl_mpi_other algorithm;
    void (*program)(double bytes);
    bool powers_alone;
} rows[] = {{DL_COLL_ALL_GATHER, DL_MPI_RING_OTHER, ring_all_gather, false},
            {DL_COLL_REDUCE_SCATTER, DL_MPI_RING_OTHER, ring_reduce_scatter, false},
            {DL_COLL_ALL_GATHER, DL_MPI_DOUBLING_OTHER, doubling_all_gather, true},
            {DL_COLL_REDUCE_SCATTER, DL_MPI_HALVING, halving_reduce_scatter, true},
            {DL_COLL_BROADCAST, DL_MPI_BINOMIAL, broadcast, false},
            {DL_COLL_REDUCE, DL_MPI_BINOMIAL, reduce, false},
            {DL_COLL_ALL_TO_ALL, DL_MPI_PAIRWISE, pairwise, false},
            {DL_COLL_ALL_TO_ALL, DL_MPI_BRUCK_OTHER, bruck, true}};

static void rules_on_one_link(void **state) {
    for (int i = 0; i < TOPOLOGIES; i++) {
        const struct dl_hockney link = {between(1e-7, 1e-4), between(1e-12, 1e-8),
                                        between(1e-12, 1e-9)};
        const double bytes = between(1, 1e9);
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            const int p = rows[k].powers_alone ? 2 << upto(5) : 2 + upto(MAX_RANKS - 2);
            const struct dl_mpi_choice choice = {.algorithm = rows[k].algorithm};
            const struct dl_coll_links links = {
                .intra = link,
                .inter = {.gamma_s_per_byte = link.gamma_s_per_byte},
                .nodes = 1,
                .per_node = p,
                .ranks = p,
                .flows = 1,
                .bisection = 1};
            machine = (struct machine){.ranks = p, .per_node = p, .intra = link};
            rows[k].program(bytes);
            const struct dl_cost_parts cost = dl_mpi_other_cost(rows[k].op, &choice, &links, bytes);
            const double model_s = cost.latency_s + cost.bandwidth_s, simulated_s = run();
            if (fabs(model_s - simulated_s) > 1e-9 * simulated_s)
                fail_msg("%s.%s, %d ranks, %g bytes: %.9g s, simulated %.9g s",
                         dl_collective_op_names[rows[k].op],
                         dl_mpi_algorithms[DL_MPI_FIRST_OTHER + rows[k].algorithm].name, p, bytes,
                         model_s, simulated_s);
        }
    }
}

/* Open MPI's algorithms on nodes of several ranks that share an adapter. Where the ranks of a node
 * or the nodes are no power of two, exchanges that the formulas keep inside a node cross its border
 * for some ranks: the formulas give 0.25 to 1.35 of the simulated time in 1000 topologies. */
static double two_level_ratio(enum dl_mpi_algorithm algorithm, void (*program)(double), int nodes,
                              int per_node, double *bytes_out) {
    const double gamma = between(1e-12, 1e-9), bytes = 4.0 * 64 * between(1, 1e6);
    const struct dl_hockney intra = {between(1e-7, 1e-5), between(1e-11, 1e-9), gamma},
                            inter = {intra.alpha_s * between(1, 30),
                                     intra.beta_s_per_byte * between(1, 30), gamma};
    machine = (struct machine){nodes * per_node, per_node, intra, inter, true};
    const struct dl_coll_links links = {.intra = per_node > 1 ? intra : (struct dl_hockney){0},
                                        .inter = inter,
                                        .nodes = nodes,
                                        .per_node = per_node,
                                        .ranks = nodes * per_node,
                                        .flows = 1,
                                        .bisection = 1};
    const struct dl_cost_parts cost = dl_mpi_all_reduce_cost(DL_MPI_OPEN, algorithm, &links, bytes);
    program(bytes);
    *bytes_out = bytes;
    return (cost.latency_s + cost.bandwidth_s) / run();
}

static void random_topologies(void **state) {
    static const struct {
        enum dl_mpi_algorithm algorithm;
        void (*program)(double);
    } of[] = {
        {DL_MPI_RING, ring}, {DL_MPI_DOUBLING, doubling}, {DL_MPI_RABENSEIFNER, rabenseifner}};
    for (int i = 0; i < TOPOLOGIES; i++) {
        for (int k = 0; k < 3; k++) {
            const int nodes = 1 + upto(7), per_node = upto(8);
            const bool exact = k == 0 || per_node == 1 ||
                               (dl_is_power_of_two(nodes) && dl_is_power_of_two(per_node));
            double bytes;
            const double ratio =
                two_level_ratio(of[k].algorithm, of[k].program, nodes, per_node, &bytes);
            if (exact ? fabs(ratio - 1) > 1e-9 : ratio < 0.2 || ratio > 1.5)
                fail_msg("%s, %d nodes of %d ranks, %g bytes: %.6f of the simulated time",
                         dl_mpi_algorithms[of[k].algorithm].name, nodes, per_node, bytes, ratio);
        }
    }
}

/* NCCL's ring passes blocks on without waiting: the time of the latencies is that of the slowest
 * path of 2 (p - 1) hops. Its latency for N nodes of k devices (releases 2.12 to 2.22) is exact
 * from k = 3 on. */
static void latency_of_nccls_ring(void **state) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.18.3", &number);
    for (int i = 0; i < TOPOLOGIES; i++) {
        const int nodes = 1 + upto(15), per_node = 2 + upto(6), p = nodes * per_node;
        const struct dl_nccl_graph graph = {.ranks = p,
                                            .nodes = nodes,
                                            .channels = 1,
                                            .tree_channels = 1,
                                            .ring_bytes_per_s = 10e9,
                                            .tree_bytes_per_s = 10e9,
                                            .net_latency_s = between(1e-7, 1e-5),
                                            .nvlink = true};
        const double inside_s = 1e-6, /* what a host posts, above NVLink's 0.6 us */
            between_s =
                row->latencies->net_us[DL_NCCL_RING][DL_NCCL_LL] * 1e-6 + graph.net_latency_s;
        double now_s[256] = {0}, next_s[256], last_s = 0;
        for (int step = 0; step < 2 * (p - 1); step++) {
            for (int r = 0; r < p; r++) {
                const bool out = r / per_node != (r + 1) % p / per_node;
                next_s[(r + 1) % p] = now_s[r] + (out ? between_s : inside_s);
            }
            memcpy(now_s, next_s, sizeof now_s);
        }
        for (int r = 0; r < p; r++) last_s = fmax(last_s, now_s[r]);
        struct dl_cost_parts cost;
        assert_true(dl_nccl_cost(
            &(struct dl_nccl_operation){number, row, &graph, DL_COLL_ALL_REDUCE, 4, false},
            DL_NCCL_RING, DL_NCCL_LL, &cost));
        check_close(cost.latency_s - row->latencies->base_us[DL_NCCL_RING][DL_NCCL_LL] * 1e-6,
                    last_s, 1e-9);
    }
}

/* Hops from the root of a binary tree over nodes [0, n) to its deepest one: 0 has one child, the
 * largest power of two below n; node i with lowest bit b has i - b/2 and the nearest node below
 * n of i + b/2, i + b/4, ... */
static int depth_below(int node, int n) {
    int bit = 1, deepest = 0;
    if (node == 0) {
        while (bit * 2 < n) bit *= 2;
        return n > 1 ? 1 + depth_below(bit, n) : 0;
    }
    while ((node & bit) == 0) bit *= 2;
    if (bit == 1) return 0;
    deepest = 1 + depth_below(node - bit / 2, n);
    for (int b = bit / 2; b >= 1; b /= 2)
        if (node + b < n) {
            const int depth = 1 + depth_below(node + b, n);
            return depth > deepest ? depth : deepest;
        }
    return deepest;
}

/* The first byte up a chain of devices and a tree of nodes and down again. NCCL counts floor(lg N)
 * levels, so the model does; the tree that it builds has one more unless N is a power of two. */
static void latency_of_nccls_tree(void **state) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.18.3", &number);
    for (int nodes = 1; nodes <= TOPOLOGIES; nodes++) {
        const double per_node = upto(8);
        const struct dl_nccl_graph graph = {.ranks = nodes * per_node,
                                            .nodes = nodes,
                                            .channels = 1,
                                            .tree_channels = 1,
                                            .ring_bytes_per_s = 10e9,
                                            .tree_bytes_per_s = 10e9,
                                            .nvlink = true};
        const double inside_us = row->latencies->nvlink_us[DL_NCCL_TREE][DL_NCCL_LL],
                     between_us = row->latencies->net_us[DL_NCCL_TREE][DL_NCCL_LL];
        const int levels = depth_below(0, nodes) - (dl_is_power_of_two(nodes) ? 0 : 1);
        struct dl_cost_parts cost;
        assert_true(dl_nccl_cost(
            &(struct dl_nccl_operation){number, row, &graph, DL_COLL_ALL_REDUCE, 4, false},
            DL_NCCL_TREE, DL_NCCL_LL, &cost));
        check_close(cost.latency_s * 1e6 - row->latencies->base_us[DL_NCCL_TREE][DL_NCCL_LL],
                    2 * ((per_node - 1) * inside_us + levels * between_us), 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_on_one_link), cmocka_unit_test(random_topologies),
        cmocka_unit_test(latency_of_nccls_ring), cmocka_unit_test(latency_of_nccls_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
