/* Parts of NCCL's model that few machines reach, by hand from its formulas (F-NCCL,
 * F-NCCL-SENDS, F-NCCL-GRAPH): caps of LL128 before 2.8, reduction in switches, PAT, sends,
 * names that a job imposes, and how links become rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/libraries/nccl.h"
#include "tests/check.h"
#include "tests/fake.h"

static struct dl_cost_parts cost_of(const char *version, const struct dl_nccl_graph *graph,
                                    enum dl_collective_op op, enum dl_nccl_algorithm algorithm,
                                    enum dl_nccl_protocol protocol, double bytes) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find(version, &number);
    struct dl_cost_parts cost = {NAN, NAN, NAN};
    if (!dl_nccl_cost(number, row, graph, op, algorithm, protocol, bytes, false, &cost))
        return (struct dl_cost_parts){NAN, NAN, NAN};
    return cost;
}

/* 10 channels of 25 GB/s, of which LL128 uses 0.92: 230 GB/s. 2.5 caps the whole, 2.7 each
 * channel. Times the ratio of ranks to steps: 8/14 of all-reduce, 8/7 of all-gather and
 * reduce-scatter, 1 where the whole buffer passes every rank. */
static void ll128_before_2_8(void **state) {
    (void)state;
    const struct dl_nccl_graph g = {.ranks = 8,
                                    .nodes = 1,
                                    .channels = 10,
                                    .tree_channels = 10,
                                    .ring_bytes_per_s = 25e9,
                                    .tree_bytes_per_s = 25e9,
                                    .nvlink = true,
                                    .ll128 = true};
    static const struct {
        enum dl_collective_op op;
        double whole, per_channel, ratio;
    } cases[] = {{DL_COLL_ALL_REDUCE, 100, 16.7, 8.0 / 14},
                 {DL_COLL_BROADCAST, 113, 18.8, 1},
                 {DL_COLL_REDUCE, 72, 12, 1},
                 {DL_COLL_ALL_GATHER, 110, 18.3, 8.0 / 7},
                 {DL_COLL_REDUCE_SCATTER, 91, 15.2, 8.0 / 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_close(cost_of("2.5.6", &g, cases[i].op, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
                    1 / (cases[i].whole * cases[i].ratio), 1e-12);
        check_close(cost_of("2.6.4", &g, cases[i].op, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
                    1 / (cases[i].whole * cases[i].ratio), 1e-12);
        check_close(cost_of("2.7.8", &g, cases[i].op, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
                    1 / (10 * cases[i].per_channel * cases[i].ratio), 1e-12);
    }
    /* from 2.8 on 20 GB/s a channel; alone on its node a rank attains 0.7 until 2.22 */
    check_close(
        cost_of("2.8.3", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
        1 / 200.0, 1e-12);
    struct dl_nccl_graph thin = g;
    thin.nodes = 8, thin.ring_bytes_per_s = 10e9;
    check_close(
        cost_of("2.22.3", &thin, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
        1 / 70.0, 1e-12);
    check_close(
        cost_of("2.23.4", &thin, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128, 1e9).bandwidth_s,
        1 / 92.0, 1e-12);
    thin.ll128 = false;
    check_nan(
        cost_of("2.8.3", &thin, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128, 1e9).latency_s);
    check_nan(cost_of("2.4.8", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL128, 1e9).latency_s);
}

/* LL moves 4 bytes of data a word of 8 and in 2.8 at most 39 GB/s of Volta's ring; Ampere 87.7;
 * Hopper 141 from 2.21 on, where the share is a half. 2.7 to 2.17 add 0.8 of a hop inside where
 * there are several nodes. */
static void ll_caps(void **state) {
    (void)state;
    struct dl_nccl_graph g = {.ranks = 8,
                              .nodes = 1,
                              .channels = 16,
                              .tree_channels = 16,
                              .ring_bytes_per_s = 25e9,
                              .tree_bytes_per_s = 25e9,
                              .nvlink = true,
                              .ll128 = true};
    check_close(cost_of("2.7.8", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                3 / 400.0, 1e-12); /* one way: a third of 16 x 25 GB/s inside a node */
    check_close(cost_of("2.8.3", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 39.0, 1e-12);
    g.generation = DL_NCCL_AMPERE; /* 235 GB/s at most from 2.7 to 2.17 */
    check_close(cost_of("2.8.3", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                3 / 235.0, 1e-12);
    check_close(cost_of("2.18.3", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 87.7, 1e-12);
    g.generation = DL_NCCL_HOPPER;
    check_close(cost_of("2.18.3", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 87.7, 1e-12);
    check_close(cost_of("2.21.5", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 141.0, 1e-12);
    g.nodes = 2;
    check_close(cost_of("2.21.5", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 39.0, 1e-12); /* the row of Volta: hosts that are not AMD */
    g.ranks = 24, g.nodes = 3;
    check_close(cost_of("2.21.5", &g, DL_COLL_BROADCAST, DL_NCCL_RING, DL_NCCL_LL, 1e9).bandwidth_s,
                1 / 20.4, 1e-12);
    /* all-gather over 2 x 4 by 2.8: 3.6 + 2 x 2.7 between (nodes + 0: 2 - 1 = 1 step of 7) */
    g = (struct dl_nccl_graph){.ranks = 8,
                               .nodes = 2,
                               .channels = 2,
                               .tree_channels = 2,
                               .ring_bytes_per_s = 10e9,
                               .tree_bytes_per_s = 10e9,
                               .nvlink = true};
    check_close(cost_of("2.8.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_RING, DL_NCCL_LL, 1e6).latency_s,
                (3.6 + 6 * 1.8 * 0.47 + 2.7) * 1e-6, 1e-12);
    check_close(cost_of("2.6.4", &g, DL_COLL_ALL_GATHER, DL_NCCL_RING, DL_NCCL_LL, 1e6).latency_s,
                (3.6 + 6 * 0.4 + 0.9) * 1e-6, 1e-12);
    check_close(cost_of("2.18.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_RING, DL_NCCL_LL, 1e6).latency_s,
                (6.6 + 6 * 1.0 + 2.7) * 1e-6, 1e-12); /* 1 step between; at least 1 us inside */
    g.amd_host = true;
    check_close(cost_of("2.18.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_RING, DL_NCCL_LL, 1e6).latency_s,
                (6.6 + 6 * 2.0 + 2.7) * 1e-6, 1e-12);
    check_close(cost_of("2.23.4", &g, DL_COLL_ALL_GATHER, DL_NCCL_RING, DL_NCCL_LL, 1e6).latency_s,
                (6.6 + 6 * 2.0 + 2.7) * 1e-6, 1e-12);
}

/* 8 channels of 40 GB/s: 320. NVLS: 23 us, 25 from 2.21, 0.85 x 5/6 of the rate (Blackwell
 * 0.74). Over 4 nodes 2 x 2 levels of 14 us, 20.9 from 2.28. */
static void reduction_in_switches(void **state) {
    (void)state;
    struct dl_nccl_graph g = {.ranks = 8,
                              .nodes = 1,
                              .channels = 8,
                              .tree_channels = 4,
                              .ring_bytes_per_s = 40e9,
                              .tree_bytes_per_s = 30e9,
                              .generation = DL_NCCL_HOPPER,
                              .nvlink = true,
                              .nvls = true};
    const enum dl_collective_op op = DL_COLL_ALL_REDUCE;
    struct dl_cost_parts cost = cost_of("2.17.1", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9);
    check_close(cost.latency_s, 23e-6, 1e-12);
    check_close(cost.bandwidth_s, 1 / (320 * 0.85 * 5 / 6), 1e-12);
    check_close(cost.steps, 2, 0);
    check_close(cost_of("2.21.5", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).latency_s, 25e-6,
                1e-12);
    check_nan(cost_of("2.16.5", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(cost_of("2.17.1", &g, op, DL_NCCL_NVLS, DL_NCCL_LL, 1e9).latency_s);
    check_nan(
        cost_of("2.17.1", &g, DL_COLL_BROADCAST, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(cost_of("2.21.5", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.generation = DL_NCCL_BLACKWELL;
    check_close(cost_of("2.27.7", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
                1 / (320 * 0.74 * 5 / 6), 1e-12);
    g.ranks = 1;
    check_nan(cost_of("2.27.7", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.ranks = 32, g.nodes = 4, g.generation = DL_NCCL_HOPPER;
    check_nan(cost_of("2.27.7", &g, op, DL_NCCL_NVLS, DL_NCCL_SIMPLE, 1e9).latency_s);
    cost = cost_of("2.18.3", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9);
    check_close(cost.latency_s, (23 + 4 * 14) * 1e-6, 1e-12);
    check_close(cost.bandwidth_s, 1 / (120 * 0.85 * 5 / 6), 1e-12);
    check_close(cost.steps, 6, 0);
    g.net_latency_s = 1e-6; /* there and back: 2 us a level */
    check_close(cost_of("2.28.3", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9).latency_s,
                (25 + 4 * 22.9) * 1e-6, 1e-12);
    check_nan(cost_of("2.17.1", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.nvls = false;
    check_nan(cost_of("2.28.3", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.nvls = true, g.ranks = 4; /* one device a node */
    check_nan(cost_of("2.28.3", &g, op, DL_NCCL_NVLS_TREE, DL_NCCL_SIMPLE, 1e9).latency_s);
}

/* SHARP over 4 x 8: a chain of 7 hops of 2.8 us up and down and 30; direct 3.7 + 7 x 0.4 twice and
 * 31. */
static void reduction_in_the_network(void **state) {
    (void)state;
    struct dl_nccl_graph g = {.ranks = 32,
                              .nodes = 4,
                              .channels = 8,
                              .tree_channels = 4,
                              .ring_bytes_per_s = 40e9,
                              .tree_bytes_per_s = 30e9,
                              .generation = DL_NCCL_HOPPER,
                              .nvlink = true,
                              .nvls = true};
    const enum dl_collective_op op = DL_COLL_ALL_REDUCE;
    check_nan(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.collnet = true;
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).latency_s,
                69.2e-6, 1e-12);
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).latency_s,
                44e-6, 1e-12);
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
                1 / 160.0, 1e-12);
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
                1 / 160.0, 1e-12);
    /* 4 x 2: one hop, and 3.7 + 0.4; one device a node: none */
    g.ranks = 8;
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).latency_s,
                35.6e-6, 1e-12);
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).latency_s,
                39.2e-6, 1e-12);
    g.ranks = 4, g.net_latency_s = 1e-6; /* there and back */
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).latency_s,
                32e-6, 1e-12);
    check_close(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).latency_s,
                33e-6, 1e-12);
    g.ranks = 8, g.nodes = 1;
    check_nan(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_CHAIN, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(cost_of("2.18.3", &g, op, DL_NCCL_COLLNET_DIRECT, DL_NCCL_SIMPLE, 1e9).latency_s);
}

/* PAT over 4 nodes of one device: 8 + 2 x 14 / 3.5 + 2.8 x 4 = 27.2 us; 0.85 (2.24: 0.75) of 20
 * GB/s. */
static void parallel_aggregated_trees(void **state) {
    (void)state;
    struct dl_nccl_graph g = {.ranks = 4,
                              .nodes = 4,
                              .channels = 2,
                              .tree_channels = 2,
                              .ring_bytes_per_s = 10e9,
                              .tree_bytes_per_s = 10e9};
    struct dl_cost_parts cost =
        cost_of("2.23.4", &g, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9);
    check_close(cost.latency_s, 27.2e-6, 1e-12);
    check_close(cost.bandwidth_s, 1 / (20 * 0.85), 1e-12);
    check_close(cost.steps, 2, 0);
    check_close(
        cost_of("2.24.3", &g, DL_COLL_REDUCE_SCATTER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).bandwidth_s,
        1 / 15.0, 1e-12);
    g.net_latency_s = 1.75e-6; /* 3.5 us there and back */
    check_close(
        cost_of("2.24.3", &g, DL_COLL_REDUCE_SCATTER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).latency_s,
        29.2e-6, 1e-12);
    check_nan(
        cost_of("2.22.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(
        cost_of("2.24.3", &g, DL_COLL_ALL_REDUCE, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).latency_s);
    check_nan(cost_of("2.24.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_LL, 1e9).latency_s);
    g.ranks = 8;
    check_nan(
        cost_of("2.24.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).latency_s);
    g.ranks = g.nodes = 1;
    check_nan(
        cost_of("2.24.3", &g, DL_COLL_ALL_GATHER, DL_NCCL_PAT, DL_NCCL_SIMPLE, 1e9).latency_s);
}

/* PCIe of 10 GB/s inside, 12 GB/s between, 2.8.3: start 8.4 us, 5.7 a hop inside, 9.6 between,
 * one hop for 8 peers. */
static struct dl_fake *pcie_nodes(void) {
    static struct dl_fake f;
    fake_make(&f);
    f.system.intra.kind = "pcie3", f.system.intra.bandwidth_bytes_per_s = 10e9,
    f.system.intra.channels = DL_ABSENT;
    f.system.intra.channel_bandwidth_bytes_per_s = NAN;
    f.system.inter.latency_s = NAN;
    f.system.nccl_version = "2.8.3";
    f.system.devices_per_node = 16;
    return &f;
}

static struct dl_collective_time nccl_time(const struct dl_fake *f, enum dl_collective_op op,
                                           int64_t nodes, int64_t per_node, double bytes) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    const struct dl_collective_request r = {.op = op,
                                            .library = DL_LIB_NCCL,
                                            .bytes = bytes,
                                            .nodes = nodes,
                                            .ranks_per_node = per_node,
                                            .flows_per_adapter = 1};
    if (dl_collective_time(&f->system, &r, &t, &err) != DL_OK) fail_msg("%s", err.message);
    return t;
}

static void sends_by_hand(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    static const struct {
        enum dl_collective_op op;
        int64_t nodes, per_node;
        double latency_us, bandwidth_us; /* of 1.2 MB */
        const char *limit;
    } cases[] = {
        {DL_COLL_P2P, 1, 2, 14.1, 120, "intra"},
        {DL_COLL_P2P, 2, 1, 18.0, 100, "inter"},
        {DL_COLL_GATHER, 1, 4, 14.1, 90, "intra"},      /* 3/4 of it */
        {DL_COLL_SCATTER, 1, 16, 19.8, 112.5, "intra"}, /* 15 peers: two groups */
        {DL_COLL_GATHER, 2, 4, 18.0, 50, "inter"}, /* 3/8 inside: 45 us; 1/2 from the other node */
        {DL_COLL_SCATTER, 2, 4, 18.0, 50, "inter"},
        {DL_COLL_GATHER, 3, 4, 27.6, 66.66666666666667, "inter"},
        {DL_COLL_ALL_TO_ALL, 2, 4, 18.0, 200, "inter"}, /* each of four ranks sends half */
        {DL_COLL_ALL_TO_ALL, 1, 4, 14.1, 90, "intra"},
        {DL_COLL_HALO, 1, 4, 14.1, 240, "intra"}, /* to both neighbours */
        {DL_COLL_HALO, 1, 2, 14.1, 120, "intra"}, /* there is one */
        {DL_COLL_HALO, 2, 1, 18.0, 200, "inter"},
        {DL_COLL_HALO, 2, 4, 18.0, 240, "intra"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_collective_time t =
            nccl_time(f, cases[i].op, cases[i].nodes, cases[i].per_node, 1.2e6);
        check_close(t.latency_s * 1e6, cases[i].latency_us, 1e-9);
        check_close(t.bandwidth_s * 1e6, cases[i].bandwidth_us, 1e-9);
        assert_string_equal(t.limit, cases[i].limit);
        assert_string_equal(t.formula, "F-NCCL-SENDS");
        assert_string_equal(t.protocol, "Simple");
    }
    f->system.has_fabric = true,
    f->system.fabric =
        (struct dl_fabric){.nodes_per_leaf = 1, .oversubscription = 3, .hop_latency_s = NAN};
    check_close(nccl_time(f, DL_COLL_ALL_TO_ALL, 2, 4, 1.2e6).bandwidth_s, 600e-6,
                1e-9); /* all cross the leaves at once */
    check_close(nccl_time(f, DL_COLL_GATHER, 2, 4, 1.2e6).bandwidth_s, 50e-6, 1e-9);
    dl_arena_free(&f->arena);
}

static enum dl_code imposed(struct dl_fake *f, enum dl_collective_op op, const char *algorithm,
                            const char *protocol, struct dl_collective_time *t,
                            struct dl_err *err) {
    const struct dl_collective_request r = {.op = op,
                                            .library = DL_LIB_NCCL,
                                            .bytes = 1e6,
                                            .nodes = 2,
                                            .ranks_per_node = 4,
                                            .flows_per_adapter = 1,
                                            .algorithm = algorithm,
                                            .protocol = protocol};
    memset(err, 0, sizeof *err);
    return dl_collective_time(&f->system, &r, t, err);
}

/* A request's own word is the user's error, the system's word that of the file; the file's
 * algorithm binds operations that have it, the others choose. */
static void imposed_names(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    struct dl_collective_time t;
    struct dl_err err;
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, "tree", "LL", &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "tree");
    assert_string_equal(t.protocol, "LL");
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, "star", NULL, &t, &err), DL_ERR_USAGE);
    check_contains(err.message, "no algorithm 'star'");
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, NULL, "LL64", &t, &err), DL_ERR_USAGE);
    check_contains(err.message, "no protocol 'LL64'");
    assert_int_equal(imposed(f, DL_COLL_BROADCAST, "tree", NULL, &t, &err), DL_ERR_INPUT);
    check_contains(err.message, "algorithm tree and protocol (any)");
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, "collnet_chain", NULL, &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "collnet_chain");
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, "collnet_direct", NULL, &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "collnet_direct");
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, "nvls", NULL, &t, &err), DL_ERR_INPUT);
    f->system.nccl_algorithm = "tree";
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, NULL, NULL, &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "tree");
    assert_int_equal(imposed(f, DL_COLL_BROADCAST, NULL, NULL, &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "ring");
    f->system.nccl_algorithm = "ring";
    assert_int_equal(imposed(f, DL_COLL_BROADCAST, NULL, NULL, &t, &err), DL_OK);
    f->system.nccl_algorithm = "pat"; /* 2.8 has none, so nothing can run */
    assert_int_equal(imposed(f, DL_COLL_ALL_GATHER, NULL, NULL, &t, &err), DL_ERR_INPUT);
    f->system.nccl_algorithm = "star";
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, NULL, NULL, &t, &err), DL_ERR_INPUT);
    f->system.nccl_algorithm = NULL, f->system.nccl_protocol = "LL64";
    assert_int_equal(imposed(f, DL_COLL_ALL_REDUCE, NULL, NULL, &t, &err), DL_ERR_INPUT);
    dl_arena_free(&f->arena);
}

static struct dl_nccl_graph graph_of(const struct dl_fake *f, int64_t nodes, int64_t per_node,
                                     int64_t stride, int64_t concurrent) {
    struct dl_nccl_graph g = {0};
    struct dl_err err = {0};
    const struct dl_collective_request r = {.op = DL_COLL_BROADCAST,
                                            .library = DL_LIB_NCCL,
                                            .nodes = nodes,
                                            .ranks_per_node = per_node,
                                            .flows_per_adapter = 1,
                                            .group_stride = stride,
                                            .concurrent = concurrent};
    if (dl_nccl_graph_build(&f->system, &r, &g, &err) != DL_OK) fail_msg("%s", err.message);
    return g;
}

static void hosts_and_generations(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    static const struct {
        const char *cpu;
        bool amd;
    } cpus[] = {{NULL, false}, {"Intel Xeon", false}, {"AMD Rome", true}, {"2 x EPYC 7742", true}};
    for (int i = 0; i < 4; i++) {
        f->system.host.cpu = cpus[i].cpu;
        assert_int_equal(graph_of(f, 1, 4, 0, 0).amd_host, cpus[i].amd);
    }
    f->system.has_host = false;
    assert_false(graph_of(f, 1, 4, 0, 0).amd_host);
    static const struct {
        const char *architecture;
        enum dl_nccl_generation generation;
    } ages[] = {{"pascal", DL_NCCL_VOLTA},
                {"volta", DL_NCCL_VOLTA},
                {"ampere", DL_NCCL_AMPERE},
                {"hopper", DL_NCCL_HOPPER},
                {"blackwell", DL_NCCL_BLACKWELL}};
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        f->device.architecture = ages[i].architecture;
        assert_int_equal(graph_of(f, 1, 4, 0, 0).generation, ages[i].generation);
    }
    dl_arena_free(&f->arena);
}

/* Devices on two sockets of 4, joined at 6 GB/s: the ring that crosses has that, shared by the
 * groups that cross. Without peer access, copies of 12 GB/s, two devices a link. */
static void rings_over_the_host(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    struct dl_link *intra = &f->system.intra;
    intra->peer_group = 4, intra->cross_bandwidth_bytes_per_s = 6e9;
    check_close(graph_of(f, 1, 4, 0, 0).ring_bytes_per_s, 10e9, 1e-12);
    check_close(graph_of(f, 1, 5, 0, 0).ring_bytes_per_s, 6e9, 1e-12);
    check_close(graph_of(f, 1, 2, 4, 0).ring_bytes_per_s, 6e9, 1e-12);
    check_close(graph_of(f, 1, 2, 4, 3).ring_bytes_per_s, 2e9, 1e-12);
    check_close(graph_of(f, 1, 2, 3, 1).ring_bytes_per_s, 10e9, 1e-12);
    intra->cross_bandwidth_bytes_per_s = 60e9; /* no bottleneck */
    check_close(graph_of(f, 1, 5, 0, 0).ring_bytes_per_s, 10e9, 1e-12);
    intra->peer_to_peer = false;
    check_close(graph_of(f, 1, 4, 0, 0).ring_bytes_per_s, 6e9, 1e-12); /* two on 12 GB/s */
    check_close(graph_of(f, 1, 4, 0, 1).ring_bytes_per_s, 6e9, 1e-12);
    f->system.host.devices_per_copy_link = 8;
    check_close(graph_of(f, 1, 2, 0, 2).ring_bytes_per_s, 3e9, 1e-12); /* four at work */
    check_close(graph_of(f, 1, 2, 0, 8).ring_bytes_per_s, 1.5e9, 1e-12);
    f->system.host.devices_per_copy_link = DL_ABSENT;
    check_close(graph_of(f, 1, 4, 0, 0).ring_bytes_per_s, 10e9, 1e-12);
    f->system.has_host = false;
    check_close(graph_of(f, 1, 4, 0, 0).ring_bytes_per_s, 10e9, 1e-12);
    dl_arena_free(&f->arena);
}

/* A mesh of NVLinks of 20 GB/s: 6 rings over 4, a subset of 3 devices has two thirds of them. A
 * switch gives all. */
static void rings_over_nvlink(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    struct dl_link *intra = &f->system.intra;
    f->system.devices_per_node = 4;
    intra->kind = "nvlink2", intra->bandwidth_bytes_per_s = 120e9, intra->channels = 6;
    check_close(graph_of(f, 1, 4, 0, 0).ring_bytes_per_s, 20e9, 1e-12);
    check_close(graph_of(f, 1, 4, 0, 0).channels, 6, 0);
    check_close(graph_of(f, 1, 3, 0, 0).ring_bytes_per_s, 80e9 / 6, 1e-12);
    assert_true(graph_of(f, 1, 4, 0, 0).nvlink && graph_of(f, 1, 4, 0, 0).ll128);
    intra->kind = "nvswitch";
    check_close(graph_of(f, 1, 3, 0, 0).ring_bytes_per_s, 20e9, 1e-12);
    intra->kind = "infinity"; /* over 2 nodes 4 paths instead of 3 rings */
    f->system.inter.bandwidth_bytes_per_s = 1e12, f->system.inter.gpudirect = true;
    struct dl_nccl_graph g = graph_of(f, 2, 4, 0, 0);
    check_close(g.ring_bytes_per_s * g.channels, 160e9, 1e-12);
    g = graph_of(f, 2, 3, 0, 0);
    check_close(g.ring_bytes_per_s * g.channels, 120e9, 1e-12);
    intra->kind = NULL; /* nothing known of it: as the host's */
    assert_false(graph_of(f, 1, 4, 0, 0).nvlink);
    f->device.architecture = "pascal", intra->kind = "nvlink1";
    assert_false(graph_of(f, 1, 4, 0, 0).ll128);
    assert_null(graph_of(f, 1, 4, 0, 0).attained);
    dl_arena_free(&f->arena);
}

/* LL128 between nodes needs an adapter that is near and reads device memory. */
static void ll128_between_nodes(void **state) {
    (void)state;
    struct dl_fake *f = pcie_nodes();
    static const struct {
        const char *distance;
        bool gpudirect, safe;
    } cases[] = {{"PIX", true, true},  {"PXB", true, true},   {"PIX", false, false},
                 {"PHB", true, false}, {"NODE", true, false}, {"SYS", true, false},
                 {NULL, true, false},  {"", true, false}};
    f->system.intra.kind = "nvlink2";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->system.inter.distance = cases[i].distance,
        f->system.inter.gpudirect = cases[i].gpudirect;
        assert_int_equal(graph_of(f, 2, 4, 0, 0).ll128, cases[i].safe);
    }
    f->system.inter.distance = "PIX", f->system.intra.kind = "pcie3";
    assert_false(graph_of(f, 2, 4, 0, 0).ll128);
    assert_true(graph_of(f, 2, 1, 0, 0).ll128); /* no link inside is used */
    struct dl_err err = {0};
    struct dl_nccl_graph g;
    const struct dl_collective_request r = {
        .op = DL_COLL_BROADCAST, .nodes = 2, .ranks_per_node = 1, .flows_per_adapter = 1};
    f->system.inter.bandwidth_bytes_per_s = NAN;
    assert_int_equal(dl_nccl_graph_build(&f->system, &r, &g, &err), DL_ERR_INPUT);
    f->system.inter.bandwidth_bytes_per_s = 12e9, f->system.has_inter = false;
    assert_int_equal(dl_nccl_graph_build(&f->system, &r, &g, &err), DL_ERR_INPUT);
    check_contains(err.message, "needed for 2 nodes");
    dl_arena_free(&f->arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ll128_before_2_8),
                                       cmocka_unit_test(ll_caps),
                                       cmocka_unit_test(reduction_in_switches),
                                       cmocka_unit_test(reduction_in_the_network),
                                       cmocka_unit_test(parallel_aggregated_trees),
                                       cmocka_unit_test(sends_by_hand),
                                       cmocka_unit_test(imposed_names),
                                       cmocka_unit_test(hosts_and_generations),
                                       cmocka_unit_test(rings_over_the_host),
                                       cmocka_unit_test(rings_over_nvlink),
                                       cmocka_unit_test(ll128_between_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
