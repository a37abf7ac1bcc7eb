/* What Open MPI and MPICH take for all but all-reduce, and its cost by hand (F-MPI-CHOICE,
 * F-MPI-OTHER). One rank a node, alpha 1 s, beta 1 s a byte, sums 0.1 s a byte: a message of S
 * bytes takes 1 + S. A message beside another: 0.5 us. */
#include "model/network/libraries/mpi_rules.h"
#include "tests/check.h"

static bool serves(enum dl_mpi_other algorithm, enum dl_collective_op op) {
    return (dl_mpi_algorithms[DL_MPI_FIRST_OTHER + algorithm].operations >> op & 1u) != 0;
}

static const double MIB = 1048576.0;

static struct dl_coll_links links_of(double nodes, double per_node) {
    return (struct dl_coll_links){{.01, .001, .1},  {1, 1, .1}, nodes, per_node,
                                  nodes * per_node, 1,          1,     NULL};
}

static double cost_s(enum dl_collective_op op, enum dl_mpi_other algorithm, double segment_bytes,
                     double nodes, double per_node, double bytes) {
    const struct dl_coll_links links = links_of(nodes, per_node);
    const struct dl_mpi_choice choice = {algorithm, segment_bytes, 0};
    const struct dl_cost_parts cost = dl_mpi_other_cost(op, &choice, &links, bytes);
    assert_true(serves(algorithm, op));
    return cost.latency_s + cost.bandwidth_s;
}

static void choose(enum dl_mpi_kind kind, enum dl_collective_op op, double ranks, double bytes,
                   enum dl_mpi_other wanted) {
    const struct dl_mpi_choice choice = dl_mpi_other_choice(kind, op, ranks, bytes);
    if (choice.algorithm != wanted)
        fail_msg("%s of %g bytes, %g ranks: %s, expected %s", dl_collective_op_names[op], bytes,
                 ranks, dl_mpi_algorithms[DL_MPI_FIRST_OTHER + choice.algorithm].name,
                 dl_mpi_algorithms[DL_MPI_FIRST_OTHER + wanted].name);
    assert_true(serves(choice.algorithm, op));
}

/* Ranks < 1.6134e-6 S + 2.1102: 4 ranks from 1.171e6 bytes on. A reduce of 1 MiB: 8 > .0033 / 1024
 * S + 1.6761 = 5.05. */
static void open_mpi_before_4_1(void **state) {
    const enum dl_mpi_kind k = DL_MPI_OPEN_OLD;
    choose(k, DL_COLL_BROADCAST, 4, 2047, DL_MPI_BINOMIAL);
    choose(k, DL_COLL_BROADCAST, 4, 2048, DL_MPI_SPLIT_BINARY);
    choose(k, DL_COLL_BROADCAST, 3, 2048, DL_MPI_PIPELINE); /* what it does with 3 ranks */
    choose(k, DL_COLL_BROADCAST, 4, 1.171e6, DL_MPI_SPLIT_BINARY);
    choose(k, DL_COLL_BROADCAST, 4, 1.172e6, DL_MPI_PIPELINE);
    check_close(dl_mpi_other_choice(k, DL_COLL_BROADCAST, 4, 1.172e6).segment_bytes, 131072, 0);
    check_close(dl_mpi_other_choice(k, DL_COLL_BROADCAST, 4, 1.171e6).segment_bytes, 8192, 0);
    check_close(dl_mpi_other_choice(k, DL_COLL_BROADCAST, 64, 370728).segment_bytes, 8192, 0);
    check_close(dl_mpi_other_choice(k, DL_COLL_REDUCE, 8, MIB).segment_bytes, 32768, 0);
    check_close(dl_mpi_other_choice(k, DL_COLL_REDUCE, 4, MIB).segment_bytes, 65536, 0);
    choose(k, DL_COLL_REDUCE, 4, 511, DL_MPI_LINEAR);
    choose(k, DL_COLL_ALL_GATHER, 8, 49999, DL_MPI_DOUBLING_OTHER);
    choose(k, DL_COLL_ALL_GATHER, 6, 49999, DL_MPI_BRUCK_OTHER);
    choose(k, DL_COLL_ALL_GATHER, 6, 50001, DL_MPI_NEIGHBOR);
    choose(k, DL_COLL_ALL_GATHER, 7, 50001, DL_MPI_RING_OTHER);
    choose(k, DL_COLL_REDUCE_SCATTER, 8, 262143, DL_MPI_HALVING);
    choose(k, DL_COLL_REDUCE_SCATTER, 6, 262143, DL_MPI_RING_OTHER);
    choose(k, DL_COLL_ALL_TO_ALL, 16, 16 * 199, DL_MPI_BRUCK_OTHER);
    choose(k, DL_COLL_ALL_TO_ALL, 16, 16 * 2999, DL_MPI_LINEAR);
    choose(k, DL_COLL_ALL_TO_ALL, 16, 16 * 3000, DL_MPI_PAIRWISE);
    choose(DL_MPI_MPICH, DL_COLL_BROADCAST, 7, MIB, DL_MPI_BINOMIAL);
    choose(DL_MPI_MPICH, DL_COLL_BROADCAST, 8, 524287, DL_MPI_SCATTER_DOUBLING);
    choose(DL_MPI_MPICH, DL_COLL_BROADCAST, 8, 524288, DL_MPI_SCATTER_RING);
    choose(DL_MPI_MPICH, DL_COLL_REDUCE, 8, 2048, DL_MPI_BINOMIAL);
    choose(DL_MPI_MPICH, DL_COLL_REDUCE, 8, 2049, DL_MPI_REDUCE_GATHER);
}

/* S = 24 between 1, 2, 3, 4 and 8 nodes; T = 25, o = 0.5 us. */
static void costs_by_hand(void **state) {
    static const double p[] = {1, 2, 3, 4, 8};
    const double o = 0.5e-6;
    const struct {
        enum dl_collective_op op;
        enum dl_mpi_other algorithm;
        double segment_bytes, s[5];
    } cases[] = {
        /* p - 1 messages, one latency; p - 1 hops; lg p rounds up */
        {DL_COLL_BROADCAST, DL_MPI_LINEAR, 0, {0, 25, 1 + 48 + o, 1 + 72 + 2 * o, 1 + 168 + 6 * o}},
        {DL_COLL_BROADCAST, DL_MPI_PIPELINE, 0, {0, 25, 50, 75, 175}},
        {DL_COLL_BROADCAST, DL_MPI_BINOMIAL, 0, {0, 25, 50, 50, 75}},
        /* ranks 1 and 2 of 3 in turn; of 8: 0-1-3-7, or 0-2-6 with 4 messages */
        {DL_COLL_BROADCAST, DL_MPI_BINARY, 0, {0, 25, 1 + 48 + o, 50, 3 + 96 + o}},
        /* 4-nomial: the root's 1, 2, 3 messages; of 8 ranks one more level */
        {DL_COLL_BROADCAST, DL_MPI_KNOMIAL, 0, {0, 25, 1 + 48 + o, 1 + 72 + 2 * o, 2 + 96 + 2 * o}},
        /* segments of 8: p - 1 hops of 9, 2 more behind */
        {DL_COLL_BROADCAST, DL_MPI_PIPELINE, 8, {18, 27, 36, 45, 81}},
        /* lg p words and all blocks but the root's, then as much to all */
        {DL_COLL_BROADCAST, DL_MPI_SCATTER_DOUBLING, 0, {0, 2 + 24, 4 + 32, 4 + 36, 6 + 42}},
        {DL_COLL_BROADCAST, DL_MPI_SCATTER_RING, 0, {0, 2 + 24, 4 + 32, 5 + 36, 10 + 42}},
        /* each message is added: 2.4 */
        {DL_COLL_REDUCE,
         DL_MPI_LINEAR,
         0,
         {0, 27.4, 1 + 2 * 26.4 + o, 1 + 3 * 26.4 + 2 * o, 1 + 7 * 26.4 + 6 * o}},
        {DL_COLL_REDUCE, DL_MPI_BINOMIAL, 0, {0, 27.4, 54.8, 54.8, 82.2}},
        {DL_COLL_REDUCE, DL_MPI_REDUCE_GATHER, 0, {0, 2 + 25.2, 4 + 33.6, 4 + 37.8, 6 + 44.1}},
        {DL_COLL_ALL_GATHER, DL_MPI_DOUBLING_OTHER, 0, {0, 13, NAN, 20, 24}},
        {DL_COLL_ALL_GATHER, DL_MPI_BRUCK_OTHER, 0, {0, 13, 18, 20, 24}},
        {DL_COLL_ALL_GATHER, DL_MPI_RING_OTHER, 0, {0, 13, 18, 21, 28}},
        {DL_COLL_ALL_GATHER, DL_MPI_NEIGHBOR, 0, {NAN, 13, NAN, 20, 25}},
        {DL_COLL_REDUCE_SCATTER, DL_MPI_RING_OTHER, 0, {0, 1 + 13.2, 2 + 17.6, 3 + 19.8, 7 + 23.1}},
        /* 3 ranks: a fold of 27.4, 1 round of 1 + 16 * 1.1, a block of 9 back */
        {DL_COLL_REDUCE_SCATTER, DL_MPI_HALVING, 0, {0, 14.2, 27.4 + 18.6 + 9, 2 + 19.8, 3 + 23.1}},
        {DL_COLL_ALL_TO_ALL, DL_MPI_PAIRWISE, 0, {0, 13, 18, 21, 28}},
        {DL_COLL_ALL_TO_ALL, DL_MPI_LINEAR, 0, {0, 13, 17 + o, 19 + 2 * o, 22 + 6 * o}},
        {DL_COLL_ALL_TO_ALL, DL_MPI_BRUCK_OTHER, 0, {0, 13, 26, 26, 39}},
        {DL_COLL_GATHER, DL_MPI_BINOMIAL, 0, {0, 13, 18, 20, 24}},
        {DL_COLL_GATHER, DL_MPI_LINEAR, 0, {0, 13, 17 + o, 19 + 2 * o, 22 + 6 * o}},
        {DL_COLL_GATHER, DL_MPI_SYNC, 0, {0, 14, 20, 24, 35}},
        {DL_COLL_SCATTER, DL_MPI_BINOMIAL, 0, {0, 13, 18, 20, 24}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < 5; i++) {
            if (isnan(cases[c].s[i]) || (p[i] < 2 && cases[c].segment_bytes > 0)) continue;
            const double s =
                cost_s(cases[c].op, cases[c].algorithm, cases[c].segment_bytes, p[i], 1, 24);
            if (fabs(s - cases[c].s[i]) > 1e-9)
                fail_msg("%s %s of %g ranks: %.9g s, by hand %.9g",
                         dl_collective_op_names[cases[c].op],
                         dl_mpi_algorithms[DL_MPI_FIRST_OTHER + cases[c].algorithm].name, p[i], s,
                         cases[c].s[i]);
        }
    }
}

/* Ranks of a node share its adapter; inside a node the links of the node count. */
static void two_nodes_of_two(void **state) {
    /* inside alpha .01, beta .001: a chain of 2 hops inside, 1 between; pairwise: 1
     * block inside, 2 of both ranks out */
    check_close(cost_s(DL_COLL_BROADCAST, DL_MPI_PIPELINE, 0, 2, 2, 24), 25 + 2 * .034, 1e-9);
    check_close(cost_s(DL_COLL_ALL_TO_ALL, DL_MPI_PAIRWISE, 0, 2, 2, 24),
                .01 + .006 + 2 + 2 * 2 * 6, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(open_mpi_before_4_1),
                                       cmocka_unit_test(costs_by_hand),
                                       cmocka_unit_test(two_nodes_of_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
