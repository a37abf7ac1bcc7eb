/* NCCL's caps and the releases in which a rule changes, by hand from its formulas (F-NCCL,
 * F-NCCL-GRAPH), each on both sides of the change: release 2.18.0 is number 1800. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/libraries/nccl.h"
#include "tests/check.h"
#include "tests/fake.h"

/* As NCCL's own cost; NAN where it has none. */
static struct dl_cost_parts cost_of(int number, const struct dl_nccl_graph *graph,
                                    enum dl_collective_op op, enum dl_nccl_algorithm algorithm,
                                    enum dl_nccl_protocol protocol, double bytes) {
    const struct dl_nccl_version *row = dl_nccl_versions;
    struct dl_cost_parts cost;
    while (row[1].text != NULL && row[1].first <= number) row++;
    if (!dl_nccl_cost(number, row, graph, op, algorithm, protocol, bytes, false, &cost))
        return (struct dl_cost_parts){NAN, NAN, NAN};
    return cost;
}

/* 16 channels of 25 GB/s: no link limits the trees below. */
static struct dl_nccl_graph wide(double nodes, enum dl_nccl_generation generation) {
    return (struct dl_nccl_graph){.ranks = 8 * nodes,
                                  .nodes = nodes,
                                  .channels = 16,
                                  .tree_channels = 16,
                                  .ring_bytes_per_s = 25e9,
                                  .tree_bytes_per_s = 25e9,
                                  .generation = generation,
                                  .nvlink = true,
                                  .ll128 = true};
}

/* GB/s of a tree for a message beyond its table of corrections. */
static double tree_rate(int number, double nodes, enum dl_nccl_generation generation,
                        enum dl_nccl_protocol protocol) {
    const struct dl_nccl_graph g = wide(nodes, generation);
    return 1 / cost_of(number, &g, DL_COLL_ALL_REDUCE, DL_NCCL_TREE, protocol, 1e9).bandwidth_s;
}

/* A tree moves each byte twice: half of the cap. 2.4 and 2.5: 90 GB/s in a node, 70 over nodes; 2.6
 * and 2.7: 110 over up to two nodes, 80 over more, and Ampere's LL128 in 2.7 130 and 105. LL takes
 * 3.8 from it; LL128 7/9 in a node and until 2.5, 0.915 over nodes until 2.7. */
static void trees_before_2_8(void **state) {
    (void)state;
    static const struct {
        int number;
        double nodes;
        enum dl_nccl_generation generation;
        enum dl_nccl_protocol protocol;
        double rate;                                           /* before the half */
    } cases[] = {{400, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, NAN}, /* over nodes alone */
                 {499, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, NAN},
                 {399, 2, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, NAN},
                 {400, 2, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 70},
                 {500, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 90},
                 {599, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 90},
                 {599, 2, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 70},
                 {599, 3, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 70},
                 {599, 1, DL_NCCL_VOLTA, DL_NCCL_LL, 90 / 3.8},
                 {599, 1, DL_NCCL_VOLTA, DL_NCCL_LL128, 90 * 7 / 9.0},
                 {599, 2, DL_NCCL_VOLTA, DL_NCCL_LL128, 70 * 7 / 9.0},
                 {499, 2, DL_NCCL_VOLTA, DL_NCCL_LL128, NAN},
                 {600, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 110},
                 {600, 2, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 110},
                 {600, 3, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 80},
                 {799, 3, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 80},
                 {600, 1, DL_NCCL_VOLTA, DL_NCCL_LL128, 110 * 7 / 9.0},
                 {600, 2, DL_NCCL_VOLTA, DL_NCCL_LL128, 110 * 0.915},
                 {799, 3, DL_NCCL_VOLTA, DL_NCCL_LL128, 80 * 0.915},
                 {699, 2, DL_NCCL_AMPERE, DL_NCCL_LL128, 110 * 0.915},
                 {700, 2, DL_NCCL_AMPERE, DL_NCCL_LL128, 130 * 0.915},
                 {700, 3, DL_NCCL_AMPERE, DL_NCCL_LL128, 105 * 0.915},
                 {700, 2, DL_NCCL_VOLTA, DL_NCCL_LL128, 110 * 0.915},
                 {700, 2, DL_NCCL_AMPERE, DL_NCCL_SIMPLE, 110},
                 {700, 3, DL_NCCL_AMPERE, DL_NCCL_SIMPLE, 80},
                 {700, 2, DL_NCCL_AMPERE, DL_NCCL_LL, 110 / 3.8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close(
            tree_rate(cases[i].number, cases[i].nodes, cases[i].generation, cases[i].protocol),
            cases[i].rate / 2, 1e-12);
}

/* From 2.8 on the caps are those of a channel (graphs/tuning.cc), 16 of which are here, and 0.92 of
 * the links: 368 GB/s. LL is capped for the whole. */
static void trees_since_2_8(void **state) {
    (void)state;
    static const struct {
        int number;
        double nodes;
        enum dl_nccl_generation generation;
        enum dl_nccl_protocol protocol;
        double rate;
    } cases[] = {{800, 1, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 368},
                 {800, 2, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 16 * 18.5},
                 {800, 3, DL_NCCL_VOLTA, DL_NCCL_SIMPLE, 16 * 10},
                 {2800, 3, DL_NCCL_AMPERE, DL_NCCL_SIMPLE, 16 * 17.8},
                 {1799, 2, DL_NCCL_AMPERE, DL_NCCL_SIMPLE, 0.92 * 235},
                 {1800, 2, DL_NCCL_AMPERE, DL_NCCL_SIMPLE, 368},
                 {2800, 3, DL_NCCL_HOPPER, DL_NCCL_SIMPLE, 368},
                 {2799, 3, DL_NCCL_BLACKWELL, DL_NCCL_SIMPLE, 368},
                 {2800, 3, DL_NCCL_BLACKWELL, DL_NCCL_SIMPLE, 368},
                 {800, 2, DL_NCCL_VOLTA, DL_NCCL_LL, 39},
                 {800, 3, DL_NCCL_VOLTA, DL_NCCL_LL, 160 / 3.8 < 20.4 ? 160 / 3.8 : 20.4},
                 {800, 1, DL_NCCL_VOLTA, DL_NCCL_LL128, 368 * 7 / 9.0},
                 {800, 2, DL_NCCL_VOLTA, DL_NCCL_LL128, 16 * 18.5 * 120 / 128.0},
                 {800, 3, DL_NCCL_VOLTA, DL_NCCL_LL128, 16 * 10 * 120 / 128.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close(
            tree_rate(cases[i].number, cases[i].nodes, cases[i].generation, cases[i].protocol),
            cases[i].rate / 2, 1e-12);
    struct dl_nccl_graph g = wide(3, DL_NCCL_BLACKWELL); /* links that limit nothing */
    g.tree_bytes_per_s = 1e12;
    static const struct {
        int number;
        double nodes, simple, ll128;
    } caps[] = {{2799, 1, 77.4, 77.4 * 7 / 9}, {2799, 2, 82.8, 73.4},  {2799, 3, 72, 58},
                {2800, 1, 70, 70 * 7 / 9.0},   {2800, 2, 42.8, 31.67}, {2800, 3, 24, 20}};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        g.nodes = caps[i].nodes, g.ranks = 8 * g.nodes;
        check_close(
            cost_of(caps[i].number, &g, DL_COLL_ALL_REDUCE, DL_NCCL_TREE, DL_NCCL_SIMPLE, 1e9)
                .bandwidth_s,
            2 / (16 * caps[i].simple), 1e-12);
        check_close(
            cost_of(caps[i].number, &g, DL_COLL_ALL_REDUCE, DL_NCCL_TREE, DL_NCCL_LL128, 1e9)
                .bandwidth_s,
            2 / (16 * caps[i].ll128), 1e-12);
    }
    g.attained_frac = 0.5; /* slower links than NCCL thinks: its caps shrink with them */
    check_close(cost_of(2800, &g, DL_COLL_ALL_REDUCE, DL_NCCL_TREE, DL_NCCL_LL128, 1e9).bandwidth_s,
                2 / (8 * 20.0), 1e-12);
    check_nan(cost_of(2800, &g, DL_COLL_BROADCAST, DL_NCCL_TREE, DL_NCCL_SIMPLE, 1e9).steps);
    g.tree_bytes_per_s = 0;
    check_nan(cost_of(2800, &g, DL_COLL_ALL_REDUCE, DL_NCCL_TREE, DL_NCCL_SIMPLE, 1e9).steps);
}

/* A ring passes the whole buffer through each rank in a broadcast and a reduce, and twice (p - 1)/p
 * or once (p - 1)/p of it otherwise: 400 GB/s over 8 ranks. */
static void rings_by_operation(void **state) {
    (void)state;
    const struct dl_nccl_graph g = wide(1, DL_NCCL_VOLTA);
    static const struct {
        enum dl_collective_op op;
        double of_8, steps;
    } cases[] = {{DL_COLL_ALL_REDUCE, 14, 14},
                 {DL_COLL_ALL_GATHER, 7, 7},
                 {DL_COLL_REDUCE_SCATTER, 7, 7},
                 {DL_COLL_BROADCAST, 8, 8},
                 {DL_COLL_REDUCE, 8, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_cost_parts cost =
            cost_of(1800, &g, cases[i].op, DL_NCCL_RING, DL_NCCL_SIMPLE, 4e9);
        check_close(cost.bandwidth_s, 0.01 * cases[i].of_8 / 8, 1e-12);
        check_close(cost.steps, cases[i].steps, 0);
    }
}

static bool has(int number, const struct dl_nccl_graph *graph, enum dl_collective_op op,
                enum dl_nccl_algorithm algorithm, enum dl_nccl_protocol protocol) {
    return cost_of(number, graph, op, algorithm, protocol, 1e6).latency_s > 0;
}

/* Which releases have an algorithm, where, and for what. */
static void first_releases(void **state) {
    (void)state;
    struct dl_nccl_graph g = wide(1, DL_NCCL_HOPPER), two = wide(2, DL_NCCL_HOPPER),
                         thin = wide(2, DL_NCCL_HOPPER);
    g.nvls = two.nvls = thin.nvls = true, two.collnet = g.collnet = true;
    thin.ranks = 2;
    assert_false(has(1699, &g, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    assert_true(has(1700, &g, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    assert_false(has(1700, &g, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_LL));
    assert_false(has(1700, &g, DL_COLL_BROADCAST, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    assert_false(has(1700, &two, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    assert_false(has(1799, &two, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    assert_true(has(1800, &two, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    assert_false(has(1800, &g, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    assert_false(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    thin.ranks = 4; /* two of each node */
    assert_true(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    thin.nodes = 1, thin.ranks = 1;
    assert_false(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    thin.ranks = 2;
    assert_true(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    thin.nvls = false;
    assert_false(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS, DL_NCCL_SIMPLE));
    thin.nodes = 2, thin.ranks = 4;
    assert_false(has(1800, &thin, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE));
    for (int a = DL_NCCL_COLLNET_DIRECT; a <= DL_NCCL_COLLNET_CHAIN; a++) {
        const enum dl_nccl_algorithm collnet = (enum dl_nccl_algorithm)a;
        assert_true(has(1800, &two, DL_COLL_ALL_REDUCE, collnet, DL_NCCL_SIMPLE));
        assert_false(has(1800, &two, DL_COLL_ALL_REDUCE, collnet, DL_NCCL_LL128));
        assert_false(has(1800, &g, DL_COLL_ALL_REDUCE, collnet, DL_NCCL_SIMPLE));
        assert_false(has(1800, &thin, DL_COLL_ALL_REDUCE, collnet, DL_NCCL_SIMPLE));
    }
    thin.ranks = 2;
    assert_false(has(2299, &thin, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE));
    assert_true(has(2300, &thin, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE));
    assert_true(has(2300, &thin, DL_COLL_REDUCE_SCATTER, DL_NCCL_PAT, DL_NCCL_SIMPLE));
    assert_false(has(2300, &thin, DL_COLL_BROADCAST, DL_NCCL_PAT, DL_NCCL_SIMPLE));
    assert_false(has(499, &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128));
    assert_true(has(500, &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128));
    g.ring_bytes_per_s = 0;
    assert_false(has(500, &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_SIMPLE));
}

/* Over four nodes of two, lg 4 = 2 levels up and down at 14 us each, from 2.28 on 20.9; start
     * 23 us, from 2.21 on 25. */
static void starts_by_release(void **state) {
    (void)state;
    struct dl_nccl_graph four = wide(4, DL_NCCL_HOPPER);
    four.nvls = true;
    static const struct {
        int number;
        double us;
    } starts[] = {{2099, 23 + 56}, {2100, 25 + 56}, {2799, 25 + 56}, {2800, 25 + 83.6}};
    for (int i = 0; i < 4; i++)
        check_close(cost_of(starts[i].number, &four, DL_COLL_ALL_REDUCE, DL_NCCL_NVLS_TREE,
                            DL_NCCL_SIMPLE, 1e6)
                            .latency_s *
                        1e6,
                    starts[i].us, 1e-12);
    four.ranks = 4; /* PAT: 0.85 of the rings' 400 GB/s, from 2.24 on 0.75 */
    check_close(
        cost_of(2399, &four, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
        1 / 340.0, 1e-12);
    check_close(
        cost_of(2400, &four, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
        1 / 300.0, 1e-12);
}

static struct dl_nccl_graph build(const struct dl_fake *f, struct dl_collective_request r) {
    struct dl_nccl_graph g = {.collnet = true,
                              .inside_limits = true,
                              .nvls = true,
                              .amd_host = true,
                              .net_latency_s = 7,
                              .attained_frac = 7,
                              .attained = &dl_rccl_attained};
    struct dl_err err = {0};
    if (dl_nccl_graph_build(&f->system, &r, &g, &err) != DL_OK) fail_msg("%s", err.message);
    return g;
}

/* A graph holds nothing of what its memory held before. */
static void nothing_stays(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE, .nodes = 1, .ranks_per_node = 4};
    for (r.nodes = 1; r.nodes <= 2; r.nodes++) {
        const struct dl_nccl_graph g = build(&f, r);
        assert_false(g.collnet || g.inside_limits || g.nvls || g.amd_host);
        assert_null(g.attained); /* none is known of Volta */
        check_close(g.net_latency_s, 0, 1e-18);
        check_close(g.ranks, 4 * (double)r.nodes, 0);
        check_close(g.nodes, (double)r.nodes, 0);
        check_close(g.attained_frac, 1, 0); /* 20 GB/s a link, as NCCL assumes from 2.18 on */
    }
    f.system.intra.bandwidth_bytes_per_s = 6e9, r.nodes = 2; /* slower than the adapter */
    assert_true(build(&f, r).inside_limits);
    r.ranks_per_node = 1; /* no links inside are used */
    assert_false(build(&f, r).inside_limits);
    dl_arena_free(&f.arena);
}

/* Links of Volta, of which NCCL assumes 20 GB/s from 2.18 on and 21 before: what they attain of it,
 * between 0.8 and 1.25, in a prediction at least 1. Pascal's 18. */
static void attained_parts(void **state) {
    (void)state;
    static const struct {
        const char *version, *architecture;
        double link_bytes_per_s, as_run, predicted;
    } cases[] = {{"2.18.3", "volta", 10e9, 0.8, 1},         {"2.18.3", "volta", 16e9, 0.8, 1},
                 {"2.18.3", "volta", 18e9, 0.9, 1},         {"2.18.3", "volta", 22e9, 1.1, 1.1},
                 {"2.18.3", "volta", 25e9, 1.25, 1.25},     {"2.18.3", "volta", 40e9, 1.25, 1.25},
                 {"2.17.1", "volta", 18.9e9, 0.9, 1},       {"2.17.1", "ampere", 18e9, 0.9, 1},
                 {"2.18.3", "ampere", 18e9, 0.9, 1},        {"2.18.3", "pascal", 19.8e9, 1.1, 1.1},
                 {"2.18.3", "hopper", 20.6e9, 1, 1},        {"2.18.3", "hopper", 18.54e9, 0.9, 1},
                 {"2.28.3", "blackwell", 44.11e9, 1.1, 1.1}};
    struct dl_fake f;
    fake_make(&f);
    f.system.intra.channels = 6, f.system.intra.kind = "nvswitch";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_collective_request r = {
            .op = DL_COLL_ALL_REDUCE, .nodes = 1, .ranks_per_node = 4, .as_run = true};
        f.system.nccl_version = cases[i].version, f.device.architecture = cases[i].architecture;
        f.system.intra.bandwidth_bytes_per_s = 6 * cases[i].link_bytes_per_s;
        check_close(build(&f, r).attained_frac, cases[i].as_run, 1e-12);
        r.as_run = false;
        check_close(build(&f, r).attained_frac, cases[i].predicted, 1e-12);
    }
    dl_arena_free(&f.arena);
}

/* TCP connections of 1 GB/s, two of a ring from 2.4.8 on, and four rings asked for. Until 2.4 one
 * ring of each adapter counts and no more than are asked for; from 2.5 on those of the search,
 * which doubles them where the links inside have 25 GB/s. */
static void tcp_connections(void **state) {
    (void)state;
    static const struct {
        const char *version;
        int64_t asked;
        double inside_bytes_per_s, channels, total_gb_per_s;
    } cases[] = {{"2.4.7", 0, 120e9, 2, 1}, {"2.4.8", 0, 120e9, 2, 2}, {"2.5.6", 0, 120e9, 2, 4},
                 {"2.5.6", 0, 24e9, 1, 2},  {"2.5.6", 0, 25e9, 2, 4},  {"2.4.8", 4, 120e9, 4, 8},
                 {"2.5.6", 4, 120e9, 4, 8}, {"2.4.7", 4, 120e9, 4, 4}};
    struct dl_fake f;
    fake_make(&f);
    f.system.inter.rdma = false, f.system.inter.flow_bandwidth_bytes_per_s = 1e9;
    f.system.inter.sockets_per_ring = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_collective_request r = {
            .op = DL_COLL_ALL_REDUCE, .nodes = 4, .ranks_per_node = 4, .flows_per_adapter = 1};
        f.system.nccl_version = cases[i].version, f.system.nccl_rings = cases[i].asked;
        f.system.intra.bandwidth_bytes_per_s = cases[i].inside_bytes_per_s;
        const struct dl_nccl_graph g = build(&f, r);
        check_close(g.channels, cases[i].channels, 0);
        check_close(g.channels * g.ring_bytes_per_s, cases[i].total_gb_per_s * 1e9, 1e-12);
        check_close(g.tree_channels * g.tree_bytes_per_s, cases[i].total_gb_per_s * 1e9, 1e-12);
    }
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_before_2_8),   cmocka_unit_test(trees_since_2_8),
        cmocka_unit_test(rings_by_operation), cmocka_unit_test(first_releases),
        cmocka_unit_test(starts_by_release),  cmocka_unit_test(nothing_stays),
        cmocka_unit_test(attained_parts),     cmocka_unit_test(tcp_connections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
