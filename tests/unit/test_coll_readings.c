/* Measured samples, their neighbours and their names (F-COLL-MEASURED, F-COLL-FITTED,
 * F-COLL-SCALED, F-WHAT-IF), parameter servers without bytes and requests of one group, by hand:
 * 1 s is what the model tells, so that a ratio is a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/coll_samples.h"
#include "tests/check.h"
#include "tests/fake.h"

static const struct dl_collective_request plain = {.op = DL_COLL_ALL_REDUCE,
                                                   .library = DL_LIB_GLOO,
                                                   .bytes = 1e6,
                                                   .nodes = 2,
                                                   .ranks_per_node = 4,
                                                   .flows_per_adapter = 1,
                                                   .group_stride = 1};

/* Models: 1 s by a ring (twice as long where the links inside are marked so), no time although all
 * is well, a time although it fails, and none. */
static enum dl_code one_second(const struct dl_system *system,
                               const struct dl_collective_request *request,
                               struct dl_collective_time *out, struct dl_err *err) {
    (void)request, (void)err;
    out->latency_s = 0.25, out->bandwidth_s = system->nccl_rings == 2 ? 1.75 : 0.75;
    out->time_s = out->latency_s + out->bandwidth_s;
    out->algorithm = "ring", out->formula = "F-TEST", out->sigma_log = 0.5, out->limit = "test";
    return DL_OK;
}
static enum dl_code nothing(const struct dl_system *system,
                            const struct dl_collective_request *request,
                            struct dl_collective_time *out, struct dl_err *err) {
    (void)system, (void)request, (void)err;
    out->time_s = 0, out->algorithm = "ring", out->protocol = "p";
    return DL_OK;
}
static enum dl_code failure(const struct dl_system *system,
                            const struct dl_collective_request *request,
                            struct dl_collective_time *out, struct dl_err *err) {
    (void)system, (void)request;
    out->time_s = 3, out->algorithm = "ring", out->protocol = "p";
    return dl_fail(err, DL_ERR_INPUT, "unknown");
}
/* By the ring up to 1000 bytes, by the tree beyond; LL up to 10 bytes. */
static enum dl_code two_ways(const struct dl_system *system,
                             const struct dl_collective_request *request,
                             struct dl_collective_time *out, struct dl_err *err) {
    (void)system, (void)err;
    out->time_s = out->bandwidth_s = 1;
    out->algorithm = request->bytes <= 1000 ? "ring" : "tree";
    out->protocol = request->bytes <= 10 ? "LL" : "Simple";
    return DL_OK;
}

/* What the model is asked for: the samples' own ranks, alone, freely, as the library runs it. */
static struct dl_collective_request seen;
static enum dl_code watch(const struct dl_system *system,
                          const struct dl_collective_request *request,
                          struct dl_collective_time *out, struct dl_err *err) {
    seen = *request;
    return one_second(system, request, out, err);
}

static void base_of_a_sample(void **state) {
    (void)state;
    const struct dl_system system = {0};
    const struct dl_coll_measured m = {.nodes = 3, .ranks = 12};
    struct dl_collective_request r = plain;
    r.flows_per_adapter = 4, r.algorithm = "tree", r.protocol = "LL", r.group_stride = 2,
    r.concurrent = 5;
    struct dl_coll_base base = dl_coll_samples_base(&system, &m, watch, &r, 77);
    check_close(base.time_s, 1, 0);
    assert_string_equal(base.algorithm, "ring");
    assert_null(base.protocol);
    assert_int_equal(seen.nodes, 3);
    assert_int_equal(seen.ranks_per_node, 4);
    check_close(seen.bytes, 77, 0);
    check_close(seen.flows_per_adapter, 1, 0);
    assert_null(seen.algorithm);
    assert_null(seen.protocol);
    assert_int_equal(seen.group_stride, 1);
    assert_int_equal(seen.concurrent, 1);
    assert_true(seen.as_run);
    assert_int_equal(seen.op, DL_COLL_ALL_REDUCE);
    static dl_library_time_fn *const silent[] = {nothing, failure};
    for (int i = 0; i < 2; i++) {
        base = dl_coll_samples_base(&system, &m, silent[i], &r, 77);
        check_close(base.time_s, 1, 0);
        assert_null(base.algorithm);
        assert_null(base.protocol);
    }
}

static struct dl_coll_reading read_at(const struct dl_coll_measured *m, dl_library_time_fn *model,
                                      struct dl_coll_base base, double bytes) {
    const struct dl_system system = {0};
    struct dl_coll_reading out;
    struct dl_err err = {0};
    struct dl_collective_request r = plain;
    r.bytes = bytes;
    if (dl_coll_samples_read(&system, m, model, &r, &base, &out, &err) != DL_OK)
        fail_msg("%s", err.message);
    return out;
}

/* Sizes of 0 and 1 byte are one place on the logarithmic axis: the larger counts. Between 1 and 16
 * bytes, times of 2, 4 and 8 s at 1, 4 and 16: slopes are equal, so that the curve is a power,
 * 2 x S^(1/2). */
static void between_samples(void **state) {
    (void)state;
    const struct dl_coll_base ring = {1, "ring", NULL};
    struct dl_coll_sample samples[] = {{0, 5, NAN, NAN}, {1, 2, NAN, NAN}};
    struct dl_coll_measured m = {.nodes = 2, .ranks = 8, .samples = samples, .sample_count = 2};
    check_close(read_at(&m, one_second, ring, 0.5).ratio_log, log(2), 1e-12);
    check_close(read_at(&m, one_second, ring, 0).ratio_log, log(5), 1e-12);
    struct dl_coll_sample power[] = {{1, 2, NAN, NAN}, {4, 4, NAN, NAN}, {16, 8, NAN, NAN}};
    m.samples = power, m.sample_count = 3;
    static const double sizes[] = {1, 2, 4, 8, 9, 16};
    for (int i = 0; i < 6; i++)
        check_close(read_at(&m, one_second, ring, sizes[i]).ratio_log, log(2 * sqrt(sizes[i])),
                    1e-12);
    /* a peak in the middle is flat there: half way the cubic is 1/2 + slope/8 of the rise up */
    power[2].time_s = 2;
    check_close(read_at(&m, one_second, ring, 2).ratio_log, log(2) + log(2) * (0.5 + 0.125), 1e-12);
    check_close(read_at(&m, one_second, ring, 8).ratio_log, log(2) + log(2) * (0.5 + 0.125), 1e-12);
    /* slopes of ln 2 and 2 ln 2 a factor of 4: their harmonic mean, 4/3, in the middle; half way
     * of the first: 1/2 + (1 - 4/3) / 8 */
    power[2].time_s = 16;
    check_close(read_at(&m, one_second, ring, 2).ratio_log, log(2) + log(2) * (0.5 - 1 / 24.0),
                1e-12);
    /* ... of the second, whose end is 2: 1 + (4/3 - 2) / 8 */
    check_close(read_at(&m, one_second, ring, 8).ratio_log, log(4) + log(2) * (1 - 1 / 12.0),
                1e-12);
}

/* Samples of another algorithm do not count where its own are near; times of 2 s (ring), 4 s (ring)
 * and 32 s (tree). A trend goes on by 0.4 of itself a doubling, damped by 0.4 for each more. */
static void samples_of_one_algorithm(void **state) {
    (void)state;
    struct dl_coll_sample samples[] = {
        {400, 2, NAN, NAN}, {800, 4, NAN, NAN}, {3200, 32, NAN, NAN}, {6400, 64, NAN, NAN}};
    struct dl_coll_measured m = {.nodes = 2, .ranks = 8, .samples = samples, .sample_count = 4};
    const struct dl_coll_base ring = {1, "ring", "Simple"}, tree = {1, "tree", "Simple"},
                              other = {1, "star", "Simple"}, low = {1, "ring", "LL"},
                              none = {1, "ring", NULL};
    check_close(read_at(&m, two_ways, ring, 1600).ratio_log, log(4) + 0.4 * log(2), 1e-12);
    check_close(read_at(&m, two_ways, ring, 2400).ratio_log,
                log(4) + log(2) * 0.4 * (1 - pow(0.4, log2(3))) / 0.6, 1e-12);
    check_close(read_at(&m, two_ways, tree, 1600).ratio_log, log(32) - 0.4 * log(2), 1e-12);
    check_close(read_at(&m, two_ways, tree, 800).ratio_log, log(32) - log(2) * (0.4 + 0.16),
                1e-12); /* two doublings below, near enough */
    /* nobody's: the line between the neighbours in log size, half way of a factor of 4 */
    check_close(read_at(&m, two_ways, other, 1600).ratio_log, (log(4) + log(32)) / 2, 1e-12);
    check_close(read_at(&m, two_ways, low, 1600).ratio_log, (log(4) + log(32)) / 2, 1e-12);
    check_close(read_at(&m, two_ways, none, 1600).ratio_log, (log(4) + log(32)) / 2, 1e-12);
    check_close(read_at(&m, two_ways, other, 100).ratio_log, log(2), 1e-12);
    check_close(read_at(&m, two_ways, other, 12800).ratio_log, log(64), 1e-12);
    assert_true(read_at(&m, two_ways, other, 12800).extrapolated);
    /* at a sample of another algorithm: as between; a base without a name takes all */
    check_close(read_at(&m, two_ways, (struct dl_coll_base){1, NULL, NULL}, 3200).ratio_log,
                log(32), 1e-12);
    /* further than e^2.1 = 8.17 times is too far for a trend: the neighbour counts instead */
    check_close(read_at(&m, two_ways, ring, 800 * 8.1).ratio_log,
                log(4) + log(2) * fmin(1, 0.4 * (1 - pow(0.4, log2(8.1))) / 0.6), 1e-12);
    check_close(read_at(&m, two_ways, ring, 800 * 8.3).ratio_log, log(64), 1e-12);
    m.sample_count = 3, samples[0].bytes = 800 - 1e-9; /* steep: no further than they are apart */
    check_close(read_at(&m, two_ways, ring, 1600).ratio_log, log(8), 1e-9);
}

/* The last piece has no end, and none is read behind it. */
static void pieces(void **state) {
    (void)state;
    const struct dl_coll_base none = {1, NULL, NULL};
    struct dl_piece list[] = {{100, 1, 0}, {200, 0, 0.02}, {1e9, 1e6, 1e6}};
    const struct dl_coll_measured m = {.nodes = 2, .ranks = 8, .pieces = list, .piece_count = 2};
    static const struct {
        double bytes, time_s;
        bool extrapolated;
    } cases[] = {{50, 1, false},  {100, 1, false},   {100.5, 2.01, false},
                 {200, 4, false}, {201, 4.02, true}, {1000, 20, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_coll_reading out = read_at(&m, failure, none, cases[i].bytes);
        check_close(out.ratio_log, log(cases[i].time_s), 1e-12);
        assert_true(out.fitted);
        assert_int_equal(out.extrapolated, cases[i].extrapolated);
    }
}

static struct dl_collective_time measured(const struct dl_system *system, dl_library_time_fn *model,
                                          struct dl_collective_request r, bool expected) {
    struct dl_collective_time out = {.time_s = NAN, .limit = "?"};
    struct dl_err err = {0};
    bool found = !expected;
    if (dl_coll_measured_time(system, &r, model, &out, &found, &err) != DL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(found, expected);
    return out;
}

/* 3 s measured where the model tells 1 s, of which a quarter is latency. */
static void names_of_what_was_read(void **state) {
    (void)state;
    struct dl_coll_sample sample = {1e6, 3, NAN, NAN};
    struct dl_coll_measured m = {.library = "gloo",
                                 .operation = "all_reduce",
                                 .nodes = 2,
                                 .ranks = 8,
                                 .samples = &sample,
                                 .sample_count = 1};
    struct dl_system then = {.collectives = &m, .collective_count = 1}, now;
    struct dl_collective_request r = plain;
    struct dl_collective_time t = measured(&then, one_second, r, true);
    assert_string_equal(t.formula, "F-COLL-MEASURED");
    assert_string_equal(t.origin, "measured");
    assert_string_equal(t.algorithm, "ring");
    assert_string_equal(t.limit, "test");
    check_close(t.latency_s, 0.75, 1e-12);
    check_close(t.bandwidth_s, 2.25, 1e-12);
    check_close(t.time_s, 3, 1e-12);
    check_close(t.sigma_log, 0.02, 1e-12);
    assert_false(t.extrapolated);
    for (int nodes = 1; nodes <= 2; nodes++) { /* samples alone */
        m.nodes = r.nodes = nodes, m.ranks = 4 * nodes;
        t = measured(&then, failure, r, true);
        assert_string_equal(t.formula, "F-COLL-MEASURED");
        assert_string_equal(t.limit, nodes > 1 ? "inter" : "intra");
        assert_string_equal(t.algorithm, "as measured");
        check_close(t.time_s, 3, 1e-12);
        check_close(t.bandwidth_s, 3, 1e-12);
        check_close(t.latency_s, 0, 0);
        check_nan(t.steps);
    }
    now = then, now.as_measured = &then; /* nothing has changed */
    assert_string_equal(measured(&now, one_second, r, true).formula, "F-COLL-MEASURED");
    now.nccl_rings = 2; /* the model tells 2 s of it: 6 s */
    t = measured(&now, one_second, r, true);
    assert_string_equal(t.formula, "F-WHAT-IF");
    assert_string_equal(t.origin, "fitted");
    check_close(t.time_s, 6, 1e-12);
    measured(&then, nothing, r, false);
}

/* Beyond the samples by their fit; scaled where the request imposes a way or is not alone. */
static void names_of_what_was_scaled(void **state) {
    (void)state;
    struct dl_coll_sample sample = {1e6, 3, NAN, NAN};
    struct dl_piece piece = {1e9, 0, 4e-6};
    struct dl_coll_measured m = {.library = "gloo",
                                 .operation = "all_reduce",
                                 .nodes = 2,
                                 .ranks = 8,
                                 .samples = &sample,
                                 .sample_count = 1};
    const struct dl_system then = {.collectives = &m, .collective_count = 1};
    struct dl_collective_request r = plain;
    struct dl_collective_time t;
    m.pieces = &piece, m.piece_count = 1, r.bytes = 2e6; /* 8 s by the fit */
    t = measured(&then, one_second, r, true);
    assert_string_equal(t.formula, "F-COLL-FITTED");
    assert_string_equal(t.origin, "fitted");
    check_close(t.time_s, 8, 1e-12);
    assert_true(t.extrapolated);
    r.bytes = 1e6, r.flows_per_adapter = 2; /* not alone */
    t = measured(&then, one_second, r, true);
    assert_string_equal(t.formula, "F-COLL-SCALED");
    assert_string_equal(t.origin, "fitted");
    r = plain, r.nodes = m.nodes, r.concurrent = 2;
    assert_string_equal(measured(&then, one_second, r, true).formula, "F-COLL-SCALED");
    r.concurrent = 1, r.group_stride = 2;
    assert_string_equal(measured(&then, one_second, r, true).formula, "F-COLL-SCALED");
    r.group_stride = 1, r.algorithm = "ring";
    assert_string_equal(measured(&then, one_second, r, true).formula, "F-COLL-SCALED");
    r.algorithm = NULL, r.protocol = "LL";
    assert_string_equal(measured(&then, one_second, r, true).formula, "F-COLL-SCALED");
    r.protocol = NULL;
    assert_string_equal(measured(&then, one_second, r, true).formula, "F-COLL-MEASURED");
}

/* 2 s measured over 8 ranks and 8 s over 32, 4 a node: 16 ranks on 4 nodes lie half way in
 * logarithms, 1.5 doublings (one of ranks, half of nodes) from each; the spread grows by 0.08 a
 * doubling, half as fast between two. */
static void ranks_between(void **state) {
    (void)state;
    struct dl_coll_sample two = {1e6, 2, NAN, NAN}, eight = {1e6, 8, 4, 16};
    struct dl_coll_measured list[] = {{.library = "gloo",
                                       .operation = "all_reduce",
                                       .nodes = 2,
                                       .ranks = 8,
                                       .samples = &two,
                                       .sample_count = 1},
                                      {.library = "gloo",
                                       .operation = "all_reduce",
                                       .nodes = 8,
                                       .ranks = 32,
                                       .samples = &eight,
                                       .sample_count = 1}};
    const double wide = log(4) / 3.92;
    struct dl_system system = {.collectives = list, .collective_count = 2};
    struct dl_collective_request r = plain;
    r.nodes = 4;
    struct dl_collective_time t = measured(&system, one_second, r, true);
    check_close(t.time_s, 4, 1e-12);
    check_close(t.sigma_log, hypot(wide, 0.08 * 0.75), 1e-12);
    assert_string_equal(t.formula, "F-COLL-SCALED");
    assert_false(t.extrapolated);
    r.nodes = 16; /* the nearest alone */
    t = measured(&system, one_second, r, true);
    check_close(t.time_s, 8, 1e-12);
    check_close(t.sigma_log, hypot(wide, 0.08 * 1.5), 1e-12);
    assert_true(t.extrapolated);
    system.collective_count = 1, r.nodes = 4;
    t = measured(&system, one_second, r, true);
    check_close(t.time_s, 2, 1e-12);
    check_close(t.sigma_log, hypot(0.02, 0.08 * 1.5), 1e-12);
    r = plain, r.ranks_per_node = 2; /* fewer ranks than were measured: one doubling */
    t = measured(&system, one_second, r, true);
    check_close(t.time_s, 2, 1e-12);
    check_close(t.sigma_log, hypot(0.02, 0.08), 1e-12);
    assert_false(t.extrapolated);
    r.nodes = 1, r.ranks_per_node = 8; /* no adapters */
    measured(&system, one_second, r, false);
}

/* No bytes: each of 3 messages of 4 workers to 2 servers, 1 ms each, there and back: a worker has
 * 6, a server 2 x 3 x 4 / 2 = 12. */
static void messages_without_bytes(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.system.inter.latency_s = 0;
    struct dl_parameter_server_request r = {.workers = 4,
                                            .servers = 2,
                                            .message_count = 3,
                                            .message_s = 1e-3,
                                            .copy_bytes_per_s = NAN,
                                            .update_bytes_per_s = NAN};
    struct dl_parameter_server_time t;
    assert_int_equal(dl_parameter_server_time(&f.system, &r, &t, NULL), DL_OK);
    const double start_s = t.latency_s - 12e-3;
    r.servers = 1;
    assert_int_equal(dl_parameter_server_time(&f.system, &r, &t, NULL), DL_OK);
    check_close(t.latency_s - start_s, 24e-3, 1e-12);
    r.servers = 8; /* a server has less than a worker */
    assert_int_equal(dl_parameter_server_time(&f.system, &r, &t, NULL), DL_OK);
    check_close(t.latency_s - start_s, 6e-3, 1e-12);
    assert_string_equal(t.formula, "F-PS-PUSH-PULL");
    assert_string_equal(t.limit, "message");
    check_close(t.bandwidth_s, 0, 0);
    r.message_s = 0;
    assert_int_equal(dl_parameter_server_time(&f.system, &r, &t, NULL), DL_OK);
    check_close(t.latency_s, start_s, 1e-9);
    assert_string_equal(t.limit, "worker");
    dl_arena_free(&f.arena);
}

/* Two devices four apart on two sockets, alone in the node: their ring crosses at 6 GB/s, that of
 * neighbours does not. To be one of one group is to be alone. */
static void a_group_alone(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.system.devices_per_node = 8, f.system.nccl_version = "2.8.3";
    f.system.intra.kind = "pcie3", f.system.intra.channels = DL_ABSENT,
    f.system.intra.bandwidth_bytes_per_s = 10e9, f.system.intra.channel_bandwidth_bytes_per_s = NAN;
    f.system.intra.peer_group = 4, f.system.intra.cross_bandwidth_bytes_per_s = 6e9;
    for (int stride = 1; stride <= 4; stride += 3)
        for (int concurrent = 0; concurrent <= 2; concurrent++) {
            struct dl_collective_request r = plain;
            struct dl_collective_time t;
            r.library = DL_LIB_NCCL, r.nodes = 1, r.ranks_per_node = 2, r.bytes = 6e8;
            r.op = DL_COLL_BROADCAST, r.protocol = "Simple";
            r.group_stride = stride, r.concurrent = concurrent;
            assert_int_equal(dl_collective_time(&f.system, &r, &t, NULL), DL_OK);
            if (concurrent < 2) check_close(t.bandwidth_s, stride > 1 ? 0.1 : 0.06, 1e-12);
        }
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(base_of_a_sample),
                                       cmocka_unit_test(between_samples),
                                       cmocka_unit_test(samples_of_one_algorithm),
                                       cmocka_unit_test(pieces),
                                       cmocka_unit_test(names_of_what_was_read),
                                       cmocka_unit_test(names_of_what_was_scaled),
                                       cmocka_unit_test(ranks_between),
                                       cmocka_unit_test(messages_without_bytes),
                                       cmocka_unit_test(a_group_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
