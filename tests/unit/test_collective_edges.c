/* Edges of the collectives: columns that a table may lack, samples that do not apply, copies
 * without a path, what NCCL chooses when its measured constants or its rings are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/algorithms/coll_copy.h"
#include "model/network/coll_match.h"
#include "model/network/coll_samples.h"
#include "model/network/libraries/nccl.h"
#include "tests/check.h"
#include "tests/fake.h"

static void columns_that_may_be_absent(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_csv csv;
    struct dl_err err = {0};
    struct dl_coll_row row;
    const char *text = "library,lib_version,collective,device,system,nodes,ranks,network,size_"
                       "bytes,time_us,busbw_GBs,dtype\n"
                       "NCCL,2.18.3,all_reduce,V100,s,2,8,ib,4096,25,,float32\n";
    assert_int_equal(dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err), DL_OK);
    if (dl_coll_row_read(&csv, 0, &row, &err) != DL_OK) fail_msg("%s: %s", err.key, err.message);
    check_close(row.time_s, 25e-6, 1e-15);
    check_close(row.size_bytes, 4096, 0);
    check_nan(row.bus_bytes_per_s);
    check_nan(row.devices_per_process);
    assert_null(row.buffers);
    assert_null(row.algorithm);
    text = "library,lib_version,collective,device,nodes,ranks,network,size_bytes,time_us,busbw_GBs,"
           "dtype\nNCCL,,all_reduce,V100,2,8,ib,4096,25,,float32\n";
    assert_int_equal(dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err), DL_OK);
    assert_int_equal(dl_coll_row_read(&csv, 0, &row, &err), DL_ERR_INPUT);
    assert_string_equal(err.key, "system");
    check_contains(err.message, "expected this column");
    assert_string_equal(err.file, "t.csv");
    assert_int_equal(err.line, 1);
    assert_int_equal(err.col, 1);
    dl_arena_free(&arena);
}

static double time_of(struct dl_system *s, struct dl_collective_request r) {
    struct dl_err err = {0};
    struct dl_collective_time t;
    if (dl_collective_time(s, &r, &t, &err) != DL_OK) fail_msg("%s", err.message);
    return t.time_s;
}

/* One sample of 1 s of the request's own rank set, which holds for the plain request alone: a
 * request with an algorithm, a protocol, a stride or company takes measured / model on its own
 * model. */
static void samples_of_the_plain_request(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_coll_sample sample = {1e6, 1, NAN, NAN};
    struct dl_coll_measured m = {.library = "nccl",
                                 .operation = "all_reduce",
                                 .nodes = 2,
                                 .ranks = 8,
                                 .samples = &sample,
                                 .sample_count = 1};
    const struct dl_collective_request plain = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_NCCL,
                                                .bytes = 1e6,
                                                .nodes = 2,
                                                .ranks_per_node = 4,
                                                .flows_per_adapter = 1};
    struct dl_collective_request r = plain;
    const double own_s = time_of(&f.system, plain);
    r.protocol = "LL";
    const double low_latency_s = time_of(&f.system, r);
    f.system.collectives = &m, f.system.collective_count = 1;
    check_close(time_of(&f.system, plain), 1, 1e-12);
    check_close(time_of(&f.system, r), low_latency_s / own_s, 1e-9);
    r = plain, r.flows_per_adapter = 2;
    assert_true(time_of(&f.system, r) > 1);
    f.system.intra.domain_nodes = 2,
    f.system.collective_count = 0; /* measured inside a domain: not over adapters */
    const double in_domain_s = time_of(&f.system, plain);
    f.system.collective_count = 1;
    check_close(time_of(&f.system, plain), in_domain_s, 1e-12);
    f.system.intra.domain_nodes = 1;
    check_close(time_of(&f.system, plain), 1, 1e-12);
    /* as measured, the adapter was half as fast: the ratio of measured to that model holds */
    struct dl_system before = f.system;
    before.inter.bandwidth_bytes_per_s /= 2, before.collective_count = 0;
    const double before_s = time_of(&before, plain);
    f.system.as_measured = &before;
    check_close(time_of(&f.system, plain), own_s / before_s, 1e-9);
    before = f.system, before.as_measured = NULL, before.collective_count = 0; /* nothing changed */
    check_close(time_of(&f.system, plain), 1, 1e-12);
    dl_arena_free(&f.arena);
}

/* The model at the samples, filled once or asked each time: the same answer. Sets that nothing
 * asks for stay empty. */
static void samples_filled_ahead(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    fake_make(&f);
    struct dl_coll_sample samples[] = {{1e3, 1e-3, NAN, NAN}, {1e6, 1, NAN, NAN}};
    struct dl_coll_measured m[] = {{.library = "mpi",
                                    .operation = "broadcast",
                                    .nodes = 2,
                                    .ranks = 8,
                                    .samples = samples,
                                    .sample_count = 2},
                                   {.library = NULL,
                                    .operation = "broadcast",
                                    .nodes = 2,
                                    .ranks = 8,
                                    .samples = samples,
                                    .sample_count = 2},
                                   {.library = "mpi",
                                    .operation = NULL,
                                    .nodes = 2,
                                    .ranks = 8,
                                    .samples = samples,
                                    .sample_count = 2},
                                   {.library = "mpi",
                                    .operation = "broadcast",
                                    .nodes = 2,
                                    .ranks = 8,
                                    .samples = samples,
                                    .sample_count = 0},
                                   {.library = "mpi",
                                    .operation = "broadcast",
                                    .nodes = 0,
                                    .ranks = 8,
                                    .samples = samples,
                                    .sample_count = 2},
                                   {.library = "mpi",
                                    .operation = "broadcast",
                                    .nodes = 1,
                                    .ranks = 1,
                                    .samples = samples,
                                    .sample_count = 2}};
    struct dl_collective_request r = {.op = DL_COLL_BROADCAST,
                                      .library = DL_LIB_MPI,
                                      .bytes = 3e4,
                                      .nodes = 2,
                                      .ranks_per_node = 4,
                                      .flows_per_adapter = 1};
    f.system.collectives = m, f.system.collective_count = 6;
    const double asked_s = time_of(&f.system, r);
    assert_int_equal(dl_coll_measured_fill(&f.system, &f.arena, &err), DL_OK);
    assert_non_null(m[0].bases);
    for (int i = 1; i < 6; i++) assert_null(m[i].bases);
    check_close(time_of(&f.system, r), asked_s, 1e-12);
    dl_arena_free(&f.arena);
}

static void kinds_at_once(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    double frac[DL_COLL_TOGETHER + 1];
    struct dl_collective_request r[DL_COLL_TOGETHER + 1];
    fake_make(&f);
    for (int i = 0; i <= DL_COLL_TOGETHER; i++)
        r[i] = (struct dl_collective_request){.op = DL_COLL_ALL_REDUCE,
                                              .library = DL_LIB_NCCL,
                                              .bytes = 1e6,
                                              .nodes = 2,
                                              .ranks_per_node = 4,
                                              .flows_per_adapter = 1};
    assert_int_equal(dl_collective_together(&f.system, r, 0, frac, &err), DL_ERR_USAGE);
    assert_int_equal(dl_collective_together(&f.system, r, DL_COLL_TOGETHER + 1, frac, &err),
                     DL_ERR_USAGE);
    assert_int_equal(dl_collective_together(&f.system, r, 1, frac, &err), DL_OK);
    check_close(frac[0], 1, 1e-12); /* alone */
    dl_arena_free(&f.arena);
}

/* A graph that joins devices 0 and 1 alone: without a host there is no way to 2 and 3. */
static void copies_without_a_path(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_cost_parts cost;
    struct dl_edge edge = {0, 1, 2, "nvlink2"};
    fake_make(&f);
    f.system.intra.edges = &edge, f.system.intra.edge_count = 1,
    f.system.intra.bandwidth_bytes_per_s = NAN;
    f.system.has_host = false;
    assert_false(dl_copy_star_cost(&f.system, 4, 1e8, &cost));
    assert_true(dl_copy_star_cost(&f.system, 2, 1e8, &cost));
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 2);
    f.system.intra.edge_count = 0;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 0);
    f.system.intra.peer_group = 3;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 1);
    f.system.intra.peer_to_peer = false;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 3);
    f.system.intra.peer_to_peer = true, f.system.has_intra = false;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 3);
    dl_arena_free(&f.arena);
}

/* NVLink of 120 GB/s over 4: a pair of a full mesh has a third of it, of a bus or a switch all.
 * The ring passes the bridge. */
static void copies_over_links(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_cost_parts cost;
    fake_make(&f);
    assert_true(dl_copy_tree_cost(&f.system, 4, 1.2e8, &cost)); /* two rounds */
    check_close(cost.bandwidth_s, 2 * 3e-3, 1e-9);
    f.system.intra.kind = "nvswitch";
    assert_true(dl_copy_tree_cost(&f.system, 4, 1.2e8, &cost));
    check_close(cost.bandwidth_s, 2 * 1e-3, 1e-9);
    f.system.intra.kind = NULL;
    assert_true(dl_copy_tree_cost(&f.system, 4, 1.2e8, &cost));
    check_close(cost.bandwidth_s, 2 * 1e-3, 1e-9);
    f.system.intra.kind = "pcie4", f.system.intra.peer_group = 2;
    assert_true(
        dl_copy_ring_cost(&f.system, 4, 1.2e8, &cost)); /* 6 steps of a quarter; 2 us each */
    check_close(cost.bandwidth_s, 1.5e-3, 1e-9);
    check_close(cost.latency_s, 12e-6, 1e-12);
    f.system.intra.cross_bandwidth_bytes_per_s = 10e9;
    assert_true(dl_copy_ring_cost(&f.system, 4, 1.2e8, &cost));
    check_close(cost.bandwidth_s, 18e-3, 1e-9);
    assert_true(
        dl_copy_ring_cost(&f.system, 2, 1.2e8, &cost)); /* on one socket: 2 steps of a half */
    check_close(cost.bandwidth_s, 1e-3, 1e-9);
    f.system.intra.latency_s = NAN;
    assert_true(dl_copy_ring_cost(&f.system, 2, 1.2e8, &cost));
    check_close(cost.latency_s, 20e-6, 1e-12);
    dl_arena_free(&f.arena);
}

static struct dl_cost_parts chosen(const struct dl_nccl_graph *g, int algorithm,
                                   const char *version, double bytes) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find(version, &number);
    enum dl_nccl_algorithm a;
    enum dl_nccl_protocol p;
    struct dl_cost_parts cost;
    if (!dl_nccl_choose(number, row, g, DL_COLL_ALL_REDUCE, bytes, algorithm, -1, false, &a, &p,
                        &cost))
        cost = (struct dl_cost_parts){NAN, NAN, NAN};
    return cost;
}

/* In the switch, measured: 67 us and NCCL's rate, or 29 us and 0.69 of it, whichever is shorter;
 * other sizes of a node share (9/8) / (1 + 1/p). Without measured constants 23 us and NCCL's
 * rate. */
static void measured_switches(void **state) {
    (void)state;
    struct dl_nccl_graph g = {.ranks = 8,
                              .nodes = 1,
                              .channels = 8,
                              .tree_channels = 8,
                              .ring_bytes_per_s = 40e9,
                              .tree_bytes_per_s = 40e9,
                              .generation = DL_NCCL_HOPPER,
                              .nvlink = true,
                              .nvls = true};
    const struct dl_nccl_attained own = {.nvls_us = 67,
                                         .nvls_short_us = 29,
                                         .nvls_short_frac = 0.5},
                                  none = {.ll_base_us = 5};
    const double rate = 320e9 * 0.85 * 5 / 6;
    check_close(chosen(&g, DL_NCCL_NVLS, "2.19.3", 1e9).latency_s, 23e-6, 1e-9);
    g.attained = &none;
    check_close(chosen(&g, DL_NCCL_NVLS, "2.19.3", 1e9).latency_s, 23e-6, 1e-9);
    g.attained = &own;
    struct dl_cost_parts cost = chosen(&g, DL_NCCL_NVLS, "2.19.3", 1e9);
    check_close(cost.latency_s, 67e-6, 1e-9);
    check_close(cost.bandwidth_s, 1e9 / rate, 1e-9);
    cost = chosen(&g, DL_NCCL_NVLS, "2.19.3", 1e4);
    check_close(cost.latency_s, 29e-6, 1e-9);
    check_close(cost.bandwidth_s, 1e4 / rate / 0.5, 1e-9);
    g.ranks = 4;
    check_close(chosen(&g, DL_NCCL_NVLS, "2.19.3", 1e9).bandwidth_s, 1e9 / rate / (1.125 / 1.25),
                1e-9);
    g.ring_bytes_per_s = 0; /* no ring closes, and no tree is asked for */
    check_nan(chosen(&g, DL_NCCL_RING, "2.19.3", 1e4).latency_s);
    g.tree_bytes_per_s = 0;
    check_nan(chosen(&g, DL_NCCL_TREE, "2.19.3", 1e4).latency_s);
}

/* Two nodes of 4, Simple above the plateau: 1.9 times the latency, from 2.17 on 1.5 with Hopper,
 * from 2.18 on 1.4 with Ampere. */
static void latency_of_simple_between_nodes(void **state) {
    (void)state;
    static const struct {
        const char *version;
        enum dl_nccl_generation generation;
        double factor;
    } cases[] = {{"2.6.4", DL_NCCL_VOLTA, 1},     {"2.8.3", DL_NCCL_VOLTA, 1.9},
                 {"2.14.3", DL_NCCL_HOPPER, 1.9}, {"2.17.1", DL_NCCL_HOPPER, 1.5},
                 {"2.17.1", DL_NCCL_AMPERE, 1.9}, {"2.18.3", DL_NCCL_AMPERE, 1.4},
                 {"2.18.3", DL_NCCL_VOLTA, 1.9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int number = 0;
        struct dl_cost_parts low, high;
        const struct dl_nccl_version *row = dl_nccl_version_find(cases[i].version, &number);
        const struct dl_nccl_graph g = {.ranks = 8,
                                        .nodes = 2,
                                        .channels = 2,
                                        .tree_channels = 2,
                                        .ring_bytes_per_s = 10e9,
                                        .tree_bytes_per_s = 10e9,
                                        .generation = cases[i].generation,
                                        .nvlink = true};
        assert_true(dl_nccl_cost(number, row, &g, DL_COLL_ALL_REDUCE, DL_NCCL_RING, DL_NCCL_SIMPLE,
                                 1000, false, &low));
        assert_true(dl_nccl_cost(number, row, &g, DL_COLL_ALL_REDUCE, DL_NCCL_RING, DL_NCCL_SIMPLE,
                                 1e8, false, &high));
        check_close(high.latency_s / low.latency_s, cases[i].factor, 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_that_may_be_absent),
                                       cmocka_unit_test(samples_of_the_plain_request),
                                       cmocka_unit_test(samples_filled_ahead),
                                       cmocka_unit_test(kinds_at_once),
                                       cmocka_unit_test(copies_without_a_path),
                                       cmocka_unit_test(copies_over_links),
                                       cmocka_unit_test(measured_switches),
                                       cmocka_unit_test(latency_of_simple_between_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
