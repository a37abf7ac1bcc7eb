/* Rows of a table of collectives: which become requests, with what, and why the others do not;
 * requests that the model refuses; which of a system's measured collectives serve a request
 * (F-COLL-MEASURED, F-COLL-SCALED). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/coll_match.h"
#include "model/network/coll_samples.h"
#include "tests/check.h"
#include "tests/fake.h"

static struct dl_coll_row plain_row(void) {
    return (struct dl_coll_row){.library = "NCCL",
                                .lib_version = "2.18.3",
                                .collective = "all_reduce",
                                .system = "s",
                                .nodes = 2,
                                .ranks = 8,
                                .size_bytes = 4096,
                                .time_s = 1e-3,
                                .bus_bytes_per_s = NAN,
                                .devices_per_process = NAN};
}

static void a_whole_row(void **state) {
    (void)state;
    struct dl_coll_row row = plain_row();
    struct dl_coll_match match = dl_coll_match(&row);
    assert_null(match.why);
    assert_string_equal(match.system, "s");
    assert_string_equal(match.nccl_version, "2.18.3");
    assert_null(match.mpi);
    assert_int_equal(match.request.nodes, 2);
    assert_int_equal(match.request.ranks_per_node, 4);
    assert_int_equal(match.launches, 0);
    assert_false(match.version_ignored || match.request.device_buffers);
    assert_null(match.request.algorithm);
    check_close(match.request.bytes, 4096, 0);
    check_close(match.measured_s, 1e-3, 0);
    row.algorithm = "", row.buffers = "host", row.devices_per_process = 1;
    match = dl_coll_match(&row);
    assert_null(match.request.algorithm);
    assert_false(match.request.device_buffers);
    assert_int_equal(match.launches, 0);
    row.algorithm = "ring", row.buffers = "device", row.devices_per_process = 4;
    match = dl_coll_match(&row);
    assert_string_equal(match.request.algorithm, "ring");
    assert_true(match.request.device_buffers);
    assert_int_equal(match.launches, 4);
}

/* A bus bandwidth stands for 8 ranks' all-reduce of a large message, t = S x 2 x 7/8 / B, where
 * neither size nor time is given; it must be positive. */
static void bandwidths(void **state) {
    (void)state;
    static const double rates[] = {1e-3, 0.05, 1, 1e9}, none[] = {0, -1, NAN};
    struct dl_coll_row row = plain_row();
    double large_bytes = 0;
    row.size_bytes = row.time_s = NAN;
    for (int i = 0; i < 4; i++) {
        row.bus_bytes_per_s = rates[i];
        const struct dl_coll_match match = dl_coll_match(&row);
        assert_null(match.why);
        assert_true(match.request.bytes >= 1 << 20);
        if (i > 0) check_close(match.request.bytes, large_bytes, 0);
        large_bytes = match.request.bytes;
        check_close(match.measured_s, large_bytes * 1.75 / rates[i], 1e-12);
    }
    for (int i = 0; i < 3; i++) {
        row.bus_bytes_per_s = none[i];
        assert_string_equal(dl_coll_match(&row).why, "no size or time");
    }
    row.bus_bytes_per_s = 1e9;
    row.size_bytes = 4096; /* with a size the rate is not used */
    assert_string_equal(dl_coll_match(&row).why, "no size or time");
    row.size_bytes = NAN, row.time_s = 1;
    assert_string_equal(dl_coll_match(&row).why, "no size or time");
    row.size_bytes = 0;
    assert_null(dl_coll_match(&row).why);
    row.size_bytes = -1;
    assert_string_equal(dl_coll_match(&row).why, "no size or time");
    row.size_bytes = 1, row.time_s = 0;
    assert_string_equal(dl_coll_match(&row).why, "no size or time");
    row.time_s = 1e-9;
    assert_null(dl_coll_match(&row).why);
}

static void releases(void **state) {
    (void)state;
    static const struct {
        const char *library, *version, *nccl, *mpi;
        bool ignored;
    } cases[] = {{"NCCL", "2.4", "2.4", NULL, false},
                 {"NCCL", "21.04", NULL, NULL, true},
                 {"NCCL", "1.3", NULL, NULL, true},
                 {"NCCL", "", NULL, NULL, false},
                 {"NCCL", NULL, NULL, NULL, false},
                 {"OSU Open MPI", "openmpi-5.0", NULL, "openmpi-5.0", false},
                 {"OSU Open MPI", "5.0", NULL, NULL, true},
                 {"MPI", "hpcx-2.18", NULL, "hpcx-2.18", false},
                 {"MPI", "mpich-3", NULL, "mpich-3", false},
                 {"MPI", "mvapich2", NULL, "mvapich2", false},
                 {"MPI", "2.18.3", NULL, NULL, true},
                 {"Gloo", "2.1", NULL, NULL, false},
                 {"Intel MLSL", "2018", NULL, NULL, false},
                 {"Baidu ring-allreduce", "intel", NULL, "intel", false},
                 {"RCCL (rccl-tests)", "2.22", "2.22", NULL, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_coll_row row = plain_row();
        row.library = cases[i].library, row.lib_version = cases[i].version;
        const struct dl_coll_match match = dl_coll_match(&row);
        assert_null(match.why);
        assert_int_equal(match.version_ignored, cases[i].ignored);
        assert_int_equal(match.nccl_version != NULL, cases[i].nccl != NULL);
        assert_int_equal(match.mpi != NULL, cases[i].mpi != NULL);
        if (cases[i].nccl != NULL) assert_string_equal(match.nccl_version, cases[i].nccl);
        if (cases[i].mpi != NULL) assert_string_equal(match.mpi, cases[i].mpi);
    }
}

static const char *refusal(struct dl_coll_row row) {
    const struct dl_coll_match match = dl_coll_match(&row);
    assert_null(match.system);
    return match.why;
}

/* The reason names the word of the row, and every operation that there is. */
static void reasons_name_the_word(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_coll_row row = plain_row();
    struct dl_coll_match match = dl_coll_match(&row);
    assert_null(dl_coll_match_why(&match, &arena));
    row.library = "Spark", match = dl_coll_match(&row);
    check_contains(dl_coll_match_why(&match, &arena), "Gloo, got \"Spark\"");
    row = plain_row(), row.collective = "barrier", match = dl_coll_match(&row);
    check_contains(dl_coll_match_why(&match, &arena), "halo, got \"barrier\"");
    for (int i = 0; dl_collective_op_names[i] != NULL; i++)
        check_contains(match.why, dl_collective_op_names[i]);
    row = plain_row(), row.nodes = NAN, match = dl_coll_match(&row);
    assert_string_equal(dl_coll_match_why(&match, &arena), match.why);
    row = plain_row(), row.collective = "send_recv", match = dl_coll_match(&row);
    assert_null(match.why);
    assert_int_equal(match.request.op, DL_COLL_P2P);
    dl_arena_free(&arena);
}

static void rows_that_are_refused(void **state) {
    (void)state;
    struct dl_coll_row row = plain_row();
    row.library = NULL;
    check_contains(refusal(row), "library: expected NCCL");
    row = plain_row(), row.library = "Spark";
    check_contains(refusal(row), "library: expected NCCL");
    row = plain_row(), row.collective = NULL;
    check_contains(refusal(row), "collective: expected p2p or send_recv");
    row = plain_row(), row.collective = "barrier";
    check_contains(refusal(row), "collective: expected p2p or send_recv");
    static const double sizes[][2] = {{NAN, 8}, {0, 8}, {0.5, 8}, {2, NAN}, {2, 0}, {8, 2}, {3, 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        row = plain_row(), row.nodes = sizes[i][0], row.ranks = sizes[i][1];
        check_contains(refusal(row), "nodes and ranks are not given");
    }
    row = plain_row(), row.system = "";
    check_contains(refusal(row), "no system is given");
    row = plain_row(), row.system = NULL;
    check_contains(refusal(row), "no system is given");
    row = plain_row(), row.time_s = NAN;
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.size_bytes = 0; /* the latency of an empty message */
    assert_null(dl_coll_match(&row).why);
    row = plain_row(), row.size_bytes = -1;
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.time_s = 0;
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.size_bytes = NAN;
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.size_bytes = row.time_s = NAN;
    check_contains(refusal(row), "no size or time");
    row.bus_bytes_per_s = 0;
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.size_bytes = NAN,
    row.bus_bytes_per_s = 1e9; /* a time without its size */
    check_contains(refusal(row), "no size or time");
    row = plain_row(), row.time_s = NAN, row.bus_bytes_per_s = 1e9;
    check_contains(refusal(row), "no size or time");
}

/* 1 GiB x 2 x 7/8 at 1.75 GB/s: 2^30 ns. */
static void bus_bandwidth_alone(void **state) {
    (void)state;
    struct dl_coll_row row = plain_row();
    row.size_bytes = row.time_s = NAN, row.bus_bytes_per_s = 1.75e9;
    const struct dl_coll_match match = dl_coll_match(&row);
    assert_null(match.why);
    check_close(match.request.bytes, 1073741824, 0);
    check_close(match.measured_s, 1.073741824, 1e-12);
    check_close(dl_collective_bus_factor(DL_COLL_ALL_REDUCE, 4), 1.5, 0);
    check_close(dl_collective_bus_factor(DL_COLL_ALL_GATHER, 4), 0.75, 0);
    check_close(dl_collective_bus_factor(DL_COLL_REDUCE_SCATTER, 4), 0.75, 0);
    check_close(dl_collective_bus_factor(DL_COLL_ALL_TO_ALL, 4), 0.75, 0);
    check_close(dl_collective_bus_factor(DL_COLL_BROADCAST, 4), 1, 0);
}

static enum dl_code ask(const struct dl_fake *f, struct dl_collective_request r,
                        struct dl_collective_time *out, struct dl_err *err) {
    memset(err, 0, sizeof *err);
    return dl_collective_time(&f->system, &r, out, err);
}

static void requests_that_are_refused(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err;
    struct dl_collective_time time;
    fake_make(&f);
    const struct dl_collective_request good = {.op = DL_COLL_ALL_REDUCE,
                                               .library = DL_LIB_MPI,
                                               .bytes = 1e6,
                                               .nodes = 2,
                                               .ranks_per_node = 4,
                                               .flows_per_adapter = 1};
    struct dl_collective_request r = good;
    assert_int_equal(ask(&f, r, &time, &err), DL_OK);
    r.op = DL_COLL_OPS;
    assert_int_equal(ask(&f, r, &time, &err), DL_ERR_USAGE);
    r = good, r.library = DL_LIBRARIES;
    assert_int_equal(ask(&f, r, &time, &err), DL_ERR_USAGE);
    static const double bytes[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        r = good, r.bytes = bytes[i];
        assert_int_equal(ask(&f, r, &time, &err), DL_ERR_USAGE);
    }
    r = good, r.nodes = 0;
    assert_int_equal(ask(&f, r, &time, &err), DL_ERR_USAGE);
    r = good, r.ranks_per_node = 0;
    assert_int_equal(ask(&f, r, &time, &err), DL_ERR_USAGE);
    r = good, r.bytes = 0;
    assert_int_equal(ask(&f, r, &time, &err), DL_OK);
    dl_arena_free(&f.arena);
}

/* A library without samples of its own rank set: measured / model of the nearest. One sample, so
 * that the ratio is flat. */
static double scaled_by(struct dl_coll_measured *list, int count, struct dl_collective_request r) {
    struct dl_fake f;
    struct dl_err err;
    struct dl_collective_time model, time;
    fake_make(&f);
    if (ask(&f, r, &model, &err) != DL_OK) fail_msg("%s", err.message);
    f.system.collectives = list, f.system.collective_count = count;
    if (ask(&f, r, &time, &err) != DL_OK) fail_msg("%s", err.message);
    dl_arena_free(&f.arena);
    return time.time_s / model.time_s;
}

static void measured_sets_that_serve(void **state) {
    (void)state;
    struct dl_coll_sample sample = {1e6, 0.5, NAN, NAN};
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                            .library = DL_LIB_GLOO,
                                            .bytes = 1e6,
                                            .nodes = 2,
                                            .ranks_per_node = 4,
                                            .flows_per_adapter = 1};
    const struct dl_coll_measured own = {.library = "gloo",
                                         .operation = "all_reduce",
                                         .nodes = 2,
                                         .ranks = 8,
                                         .samples = &sample,
                                         .sample_count = 1};
    struct dl_coll_measured m = own;
    const double ratio = scaled_by(&m, 1, r);
    assert_true(ratio > 2 || ratio < 0.5); /* half a second is no time of the model */
    static const char *const other[] = {NULL, "mpi"};
    for (int i = 0; i < 2; i++) {
        m = own, m.library = other[i];
        check_close(scaled_by(&m, 1, r), 1, 0);
    }
    m = own, m.operation = NULL;
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.operation = "broadcast";
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.sample_count = 0; /* neither samples nor pieces */
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.nodes = 0;
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.nodes = 1, m.ranks = 1;
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.nodes = 1; /* inside a node: other links */
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.nodes = 3; /* 8 ranks on 3 nodes */
    check_close(scaled_by(&m, 1, r), 1, 0);
    m = own, m.nodes = 4;
    assert_true(fabs(scaled_by(&m, 1, r) - 1) > 0.1); /* scaled */
}

/* Switches that join 4 nodes: what was measured over 2 of them serves no adapters, what was
 * measured in one node serves one node. */
static void measured_sets_of_a_domain(void **state) {
    (void)state;
    struct dl_coll_sample sample = {1e6, 0.5, NAN, NAN};
    struct dl_fake f;
    struct dl_err err;
    struct dl_collective_time model, time;
    fake_make(&f);
    f.system.intra.domain_nodes = 4;
    for (int nodes = 1; nodes <= 2; nodes++) {
        const struct dl_collective_request asked = {.op = DL_COLL_ALL_REDUCE,
                                                    .library = DL_LIB_GLOO,
                                                    .bytes = 1e6,
                                                    .nodes = nodes,
                                                    .ranks_per_node = 4,
                                                    .flows_per_adapter = 1};
        struct dl_coll_measured m = {.library = "gloo",
                                     .operation = "all_reduce",
                                     .nodes = nodes,
                                     .ranks = 4 * nodes,
                                     .samples = &sample,
                                     .sample_count = 1};
        f.system.collective_count = 0;
        assert_int_equal(ask(&f, asked, &model, &err), DL_OK);
        f.system.collectives = &m, f.system.collective_count = 1;
        assert_int_equal(ask(&f, asked, &time, &err), DL_OK);
        if (nodes == 1)
            check_close(time.time_s, 0.5, 1e-9);
        else
            check_close(time.time_s, model.time_s, 0);
    }
    dl_arena_free(&f.arena);
}

/* Every answer of a model that knows one time: 1 s. */
static enum dl_code one_second(const struct dl_system *system,
                               const struct dl_collective_request *request,
                               struct dl_collective_time *out, struct dl_err *err) {
    (void)system, (void)request, (void)err;
    out->time_s = out->bandwidth_s = 1, out->algorithm = "ring";
    return DL_OK;
}
static enum dl_code no_time(const struct dl_system *system,
                            const struct dl_collective_request *request,
                            struct dl_collective_time *out, struct dl_err *err) {
    (void)system, (void)request, (void)out;
    return dl_fail(err, DL_ERR_INPUT, "unknown");
}

static struct dl_coll_reading read_at(const struct dl_coll_measured *m, dl_library_time_fn *model,
                                      const char *algorithm, double bytes) {
    struct dl_coll_reading out;
    struct dl_err err = {0};
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE, .bytes = bytes};
    const struct dl_coll_base base = {1, algorithm, NULL};
    struct dl_fake f;
    fake_make(&f);
    if (dl_coll_samples_read(&f.system, m, model, &r, &base, &out, &err) != DL_OK)
        fail_msg("%s", err.message);
    dl_arena_free(&f.arena);
    return out;
}

/* Spread: 0.02 at least; log(4) / 3.92 where the interval is a factor of 4 wide. Beyond the
 * largest sample 0.05 a doubling. */
static void spread_of_samples(void **state) {
    (void)state;
    struct dl_coll_sample samples[] = {{1000, 2, 1, 4}, {2000, 4, NAN, NAN}, {4000, 8, 9, 8}};
    const struct dl_coll_measured m = {.library = "gloo",
                                       .operation = "all_reduce",
                                       .nodes = 2,
                                       .ranks = 8,
                                       .samples = samples,
                                       .sample_count = 3};
    check_close(read_at(&m, one_second, "ring", 1000).sigma_log, log(4) / 3.92, 1e-12);
    check_close(read_at(&m, one_second, "ring", 1500).sigma_log, log(4) / 3.92, 1e-12);
    check_close(read_at(&m, one_second, "ring", 2000).sigma_log, 0.02, 1e-12);
    check_close(read_at(&m, one_second, "ring", 4000).sigma_log, 0.02,
                1e-12); /* an interval upside down */
    check_close(read_at(&m, one_second, "ring", 16000).sigma_log, 0.02 + 0.05 * 2, 1e-12);
    assert_true(read_at(&m, one_second, "ring", 16000).extrapolated);
    assert_false(read_at(&m, one_second, "ring", 3000).extrapolated);
    assert_false(
        read_at(&m, one_second, "ring", 500).extrapolated); /* short messages cost the same */
    check_close(read_at(&m, one_second, "ring", 1000).ratio_log, log(2), 1e-12);
    samples[0].bytes = 65536, samples[1].bytes = 80000, samples[2].bytes = 90000;
    assert_false(read_at(&m, one_second, "ring", 500).extrapolated);
    samples[0].bytes = 70000;
    assert_true(read_at(&m, one_second, "ring", 500).extrapolated);
    assert_false(read_at(&m, one_second, "ring", 0).extrapolated);
}

/* No model: the last two samples go on, 4 s / 2000 B; samples that do not rise, at the rate of
 * the last: 8 s / 4000 B. */
static void beyond_samples_without_a_model(void **state) {
    (void)state;
    struct dl_coll_sample samples[] = {
        {1000, 2, NAN, NAN}, {2000, 4, NAN, NAN}, {4000, 8, NAN, NAN}};
    struct dl_coll_measured m = {.library = "gloo",
                                 .operation = "all_reduce",
                                 .nodes = 2,
                                 .ranks = 8,
                                 .samples = samples,
                                 .sample_count = 3};
    check_close(read_at(&m, no_time, NULL, 6000).ratio_log, log(12), 1e-12);
    samples[1].time_s = 8;
    check_close(read_at(&m, no_time, NULL, 6000).ratio_log, log(12), 1e-12);
    samples[1].time_s = 7; /* 1 s / 2000 B */
    check_close(read_at(&m, no_time, NULL, 6000).ratio_log, log(9), 1e-12);
    m.sample_count = 1;
    check_close(read_at(&m, no_time, NULL, 2000).ratio_log, log(4), 1e-12);
    struct dl_piece pieces[] = {{5000, 1, 1e-3},
                                {50000, 0, 2e-3}}; /* never below the sample, nor 6 s at 5000 */
    m.sample_count = 3, m.pieces = pieces, m.piece_count = 2, samples[2].time_s = 8;
    struct dl_coll_reading out = read_at(&m, no_time, NULL, 4500);
    check_close(out.ratio_log, log(8), 1e-12);
    assert_true(out.fitted && out.extrapolated);
    check_close(read_at(&m, one_second, "ring", 20000).ratio_log, log(40), 1e-12);
    m.sample_count = 0; /* the fit alone */
    out = read_at(&m, one_second, "ring", 2000);
    check_close(out.ratio_log, log(3), 1e-12);
    check_close(out.sigma_log, 0.1, 1e-12);
    assert_true(out.fitted && !out.extrapolated);
    check_close(read_at(&m, one_second, "ring", 5001).ratio_log, log(10.002), 1e-12);
    pieces[1].beta_s_per_byte = 1e-3;
    check_close(read_at(&m, one_second, "ring", 5500).ratio_log, log(6), 1e-12);
    assert_true(read_at(&m, one_second, "ring", 50001).extrapolated);
    m.piece_count = 0;
    struct dl_err err = {0};
    const struct dl_collective_request r = {.bytes = 1};
    const struct dl_coll_base base = {1, NULL, NULL};
    assert_int_equal(dl_coll_samples_read(NULL, &m, no_time, &r, &base, &out, &err), DL_ERR_INPUT);
    check_contains(err.message, "without samples");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_whole_row),
                                       cmocka_unit_test(bandwidths),
                                       cmocka_unit_test(releases),
                                       cmocka_unit_test(rows_that_are_refused),
                                       cmocka_unit_test(reasons_name_the_word),
                                       cmocka_unit_test(bus_bandwidth_alone),
                                       cmocka_unit_test(requests_that_are_refused),
                                       cmocka_unit_test(measured_sets_that_serve),
                                       cmocka_unit_test(measured_sets_of_a_domain),
                                       cmocka_unit_test(spread_of_samples),
                                       cmocka_unit_test(beyond_samples_without_a_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
