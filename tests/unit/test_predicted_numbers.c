/* Small rules of a prediction, each side of each condition: tokens and run lengths, the best
 * point of a sweep, layer times, input, MPI's releases and names (F-THROUGHPUT, F-LAYER-TIMES,
 * F-INPUT, F-MPI-CHOICE). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/libraries/mpi_coll.h"
#include "model/framework/input.h"
#include "model/framework/layer_times.h"
#include "model/engine/advice.h"
#include "model/engine/memory.h"
#include "model/engine/throughput.h"
#include "tests/check.h"
#include "tests/fake.h"

static void tokens_of_sequences(void **state) {
    (void)state;
    struct dl_workload w = {.family = "transformer", .input = {.dims = 1, .size = {1, 1, 512}}};
    check_close(dl_tokens_per_sample(&w), 512, 0);
    w.family = "rnn";
    check_close(dl_tokens_per_sample(&w), 512, 0);
    w.family = "cnn";
    check_nan(dl_tokens_per_sample(&w));
    w.family = NULL;
    check_nan(dl_tokens_per_sample(&w));
    w.family = "rnn", w.input.dims = 2;
    check_nan(dl_tokens_per_sample(&w));
}

/* 10 iterations of 0.5 s and 64 samples are 5 s and 20 s of 4 devices; a part of one counts as
 * one. */
static void lengths_of_runs(void **state) {
    (void)state;
    const struct dl_workload w = {
        .family = "rnn", .input = {.dims = 1, .size = {1, 1, 8}}, .epoch_samples = 320};
    struct dl_plan plan = {.nodes = 2, .devices_per_node = 2};
    const struct dl_prediction p = {.throughput_samples_per_s = 128, .iteration_s = 0.5};
    struct dl_run_length length = {.epoch_count = 2};
    struct dl_run_total total = dl_run_total_of(&w, &plan, &p, &length);
    check_close(total.samples, 640, 0);
    check_close(total.iteration_count, 10, 0);
    check_close(total.time_s, 5, 1e-12);
    check_close(total.device_time_s, 20, 1e-12);
    plan.dataset_samples = 330;
    check_close(dl_run_total_of(&w, &plan, &p, &length).iteration_count, 11, 0); /* 660 / 64 */
    length = (struct dl_run_length){.tokens = 8 * 65};
    check_close(dl_run_total_of(&w, &plan, &p, &length).iteration_count, 2, 0);
    length = (struct dl_run_length){.tokens = 0};
    check_nan(dl_run_total_of(&w, &plan, &p, &length).samples);
}

static void best_points_of_a_sweep(void **state) {
    (void)state;
    struct dl_advice_point p[4] = {{.fits = true,
                                    .samples_per_s = 10,
                                    .low_samples_per_s = 9,
                                    .high_samples_per_s = 11,
                                    .cost_per_sample = 3,
                                    .run_s = 9,
                                    .run_cost = 1,
                                    .efficiency = 1},
                                   {.fits = true,
                                    .samples_per_s = 18,
                                    .low_samples_per_s = 16,
                                    .high_samples_per_s = 21,
                                    .cost_per_sample = 2,
                                    .run_s = 5,
                                    .run_cost = 2,
                                    .efficiency = 0.9},
                                   {.fits = true,
                                    .samples_per_s = 22,
                                    .low_samples_per_s = 20,
                                    .high_samples_per_s = 24,
                                    .cost_per_sample = 2.2,
                                    .run_s = 4,
                                    .run_cost = 3,
                                    .efficiency = 0.7},
                                   {.fits = false,
                                    .samples_per_s = 99,
                                    .low_samples_per_s = 98,
                                    .high_samples_per_s = 100,
                                    .cost_per_sample = 1,
                                    .run_s = 1,
                                    .run_cost = 1,
                                    .efficiency = 0.6}};
    struct dl_advice a =
        dl_advice_of(p, 4, &(struct dl_advice_limits){.deadline_s = 4.5, .budget = 2.5});
    assert_int_equal(a.fastest, 2);
    assert_int_equal(a.cheapest, 1);
    assert_int_equal(a.knee, 2); /* 2.2 is within a tenth of 2 */
    assert_int_equal(a.tied_fastest, 1);
    assert_int_equal(a.inefficient, 2);
    assert_int_equal(a.in_time, 2);
    assert_int_equal(a.in_budget, 1);
    p[2].cost_per_sample = 2.21, p[1].high_samples_per_s = 19.9, p[3].efficiency = 0.8;
    a = dl_advice_of(p, 4, &(struct dl_advice_limits){.deadline_s = 3, .budget = 0.5});
    assert_int_equal(a.knee, 1);
    assert_int_equal(a.tied_fastest, -1);
    assert_int_equal(a.inefficient, -1);
    assert_int_equal(a.in_time, -1);
    assert_int_equal(a.in_budget, -1);
    p[0].high_samples_per_s = 30; /* the first that may be as fast */
    p[1].high_samples_per_s = 30;
    assert_int_equal(dl_advice_of(p, 4, &(struct dl_advice_limits){0}).tied_fastest, 0);
    p[0].fits = p[1].fits = p[2].fits = false;
    a = dl_advice_of(p, 4, &(struct dl_advice_limits){.deadline_s = 100, .budget = 100});
    assert_true(a.fastest == -1 && a.cheapest == -1 && a.knee == -1 && a.in_time == -1 &&
                a.in_budget == -1);
}

static struct dl_layer_times times_of(struct dl_layer_batch *batches, int count) {
    return (struct dl_layer_times){.workload = "w",
                                   .framework = "pytorch",
                                   .device = "d",
                                   .precision = DL_FP32,
                                   .batches = batches,
                                   .batch_count = count};
}

static void layer_times_that_fit(void **state) {
    (void)state;
    struct dl_layer_times t = times_of(NULL, 0);
    const struct dl_workload w = {.name = "w"}, other = {.name = "v"};
    const struct dl_framework ddp = {.name = "pytorch-ddp"}, tf = {.name = "tensorflow-ps"};
    const struct dl_device d = {.name = "d"}, e = {.name = "e"};
    assert_true(dl_layer_times_fit(&t, &w, &ddp, &d, DL_FP32));
    assert_false(dl_layer_times_fit(&t, &other, &ddp, &d, DL_FP32));
    assert_false(dl_layer_times_fit(&t, &w, &tf, &d, DL_FP32));
    assert_false(dl_layer_times_fit(&t, &w, &ddp, &d, DL_MIXED));
    assert_false(dl_layer_times_fit(&t, &w, &ddp, &e, DL_FP32));
    t.device = NULL;
    assert_true(dl_layer_times_fit(&t, &w, &ddp, &e, DL_FP32));
}

static void nearest_batch_that_has_it(void **state) {
    (void)state;
    struct dl_layer_batch batches[] = {{.batch_samples = 4, .jitter_frac = 0.1, .core_s = NAN},
                                       {.batch_samples = 16, .jitter_frac = NAN, .core_s = 2},
                                       {.batch_samples = 64, .jitter_frac = 0.3, .core_s = 3}};
    const struct dl_layer_times t = times_of(batches, 3);
    check_close(dl_layer_times_jitter_frac(&t, 4), 0.1, 0);
    check_close(dl_layer_times_jitter_frac(&t, 15), 0.1, 0); /* by ratio: 3.75 and 4.27 */
    check_close(dl_layer_times_jitter_frac(&t, 17), 0.3, 0);
    check_close(dl_layer_times_jitter_frac(&t, 16), 0.1, 0); /* as near: the first */
    check_close(dl_layer_times_core_s(&t, 1), 2, 0);
    check_close(dl_layer_times_core_s(&t, 60), 3, 0);
    batches[1].core_s = batches[2].core_s = NAN;
    check_nan(dl_layer_times_core_s(&t, 60));
}

/* 256 samples of 4000 B on each of 4 devices: 1.024 MB; two share a link of 12 GB/s. */
static void input_of_a_node(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(t.copy_s, 1.024e6 * 2 / 12e9, 1e-12);
    check_close(t.feed_s, 0, 0);
    f.framework.input.feeds_pageable = true;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                1.024e6 * 2 / 6e9, 1e-12);
    f.system.host.pageable_bandwidth_bytes_per_s = NAN;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                1.024e6 * 2 / 12e9, 1e-12);
    f.framework.input.feeds_whole_batch = true; /* all of the node over one link */
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                1.024e6 * 4 / 12e9, 1e-12);
    f.framework.input.feed_bytes_per_s = 1e9;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).feed_s, 4.096e-3,
                1e-12);
    f.framework.input.feeds_whole_batch = false, f.framework.input.feeds_each_device = true;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).feed_s, 4.096e-3,
                1e-12);
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                4 * 1.024e6 * 2 / 12e9, 1e-12);
    f.framework.input.feeds_each_device = false;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).feed_s, 1.024e-3,
                1e-12);
    f.framework.host.single_process = true;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).feed_s, 4.096e-3,
                1e-12);
    f.framework.input.feed_bytes_per_s = -1;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).feed_s, 0, 0);
    f.system.host.devices_per_copy_link = DL_ABSENT;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                1.024e6 / 12e9, 1e-12);
    f.device.kind = DL_DEVICE_CPU;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s, 0, 0);
    f.device.kind = DL_DEVICE_GPU, f.system.has_host = false;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s, 0, 0);
    dl_arena_free(&f.arena);
}

/* 1000 samples of 100 MB are more than 0.7 of 140 GB, 970 less; the first epoch is never in the
 * cache. */
static void samples_of_a_node(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_input_time t;
    fake_make(&f);
    f.plan.synthetic_input = false, f.plan.decode_s_per_sample = 1e-3, f.plan.sample_bytes = 100e6;
    f.system.host.memory_bytes = 140e9, f.system.has_storage = true;
    f.system.storage.read_bytes_per_s = 1e9, f.system.storage.total_read_bytes_per_s = NAN;
    t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_false(t.cached);
    check_close(t.storage_s, 1024 * 100e6 / 1e9, 1e-12); /* of 4 devices */
    check_close(t.decode_s, 1.024 / 28, 1e-12);          /* on all 28 cores */
    f.system.storage.total_read_bytes_per_s = 1.5e9;     /* of both nodes */
    t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(t.storage_s, 2 * 1024 * 100e6 / 1.5e9, 1e-12);
    f.plan.dataset_samples = 970;
    t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_true(t.cached);
    check_close(t.storage_s, 0, 0);
    assert_null(t.unknown);
    f.plan.first_epoch = true;
    assert_false(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).cached);
    f.plan.first_epoch = false, f.system.host.memory_bytes = NAN;
    assert_false(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).cached);
    f.system.has_storage = false;
    assert_string_equal(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).unknown,
                        "the storage of the system");
    f.plan.decode_workers = 2; /* of each of 4 devices */
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s, 1.024 / 8,
                1e-12);
    f.plan.decode_workers = 20;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1.024 / 28, 1e-12);
    f.system.host.cores = DL_ABSENT;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1.024 / 80, 1e-12);
    f.plan.decode_workers = 0;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s, 0, 0);
    f.framework.activations.leader_input = true, f.plan.replica_devices = 2,
    f.plan.decode_workers = 2;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s, 0.512 / 4,
                1e-12);
    f.plan.decode_s_per_sample = 0, f.system.has_storage = true;
    assert_string_equal(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).unknown,
                        "the time to decode a sample");
    f.plan.sample_bytes = 0; /* and the workload knows none */
    assert_string_equal(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).unknown,
                        "the stored size of a sample");
    dl_arena_free(&f.arena);
}

static void releases_of_mpi(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum dl_mpi_kind kind;
    } cases[] = {{NULL, DL_MPI_OPEN},
                 {"openmpi-3.1", DL_MPI_OPEN_OLD},
                 {"openmpi-4.0", DL_MPI_OPEN_OLD},
                 {"openmpi-4.1", DL_MPI_OPEN},
                 {"openmpi-4", DL_MPI_OPEN_OLD},
                 {"openmpi-5.0", DL_MPI_OPEN},
                 {"openmpi-5", DL_MPI_OPEN},
                 {"openmpi", DL_MPI_OPEN},
                 {"openmpi-", DL_MPI_OPEN_OLD},
                 {"mpich-3", DL_MPI_MPICH},
                 {"mvapich2", DL_MPI_MPICH},
                 {"cray", DL_MPI_MPICH},
                 {"intel", DL_MPI_INTEL},
                 {"hpcx", DL_MPI_HPCX_OLD},
                 {"hpcx-2.18", DL_MPI_HPCX},
                 {"h", DL_MPI_HPCX},
                 {"zmpi", DL_MPI_OPEN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (dl_mpi_kind_of(cases[i].text) != cases[i].kind)
            fail_msg("%s", cases[i].text == NULL ? "NULL" : cases[i].text);
}

static enum dl_code mpi(const struct dl_fake *f, enum dl_collective_op op, const char *algorithm,
                        struct dl_collective_time *t, struct dl_err *err) {
    const struct dl_collective_request r = {.op = op,
                                            .library = DL_LIB_MPI,
                                            .bytes = 1e6,
                                            .nodes = 3,
                                            .ranks_per_node = 1,
                                            .flows_per_adapter = 1,
                                            .algorithm = algorithm};
    return dl_collective_time(&f->system, &r, t, err);
}

/* Between nodes 1.5 us and 12 GB/s. */
static void imposed_and_near_messages(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    struct dl_collective_time t;
    fake_make(&f);
    assert_int_equal(mpi(&f, DL_COLL_P2P, NULL, &t, &err), DL_OK);
    check_close(t.time_s, 1.5e-6 + 1e6 / 12e9, 1e-12);
    assert_string_equal(t.algorithm, "direct");
    assert_int_equal(mpi(&f, DL_COLL_HALO, NULL, &t, &err), DL_OK);
    check_close(t.time_s, 2 * (1.5e-6 + 1e6 / 12e9), 1e-12);
    assert_string_equal(t.algorithm, "neighbours");
    assert_int_equal(mpi(&f, DL_COLL_ALL_REDUCE, "ring", &t, &err), DL_OK);
    assert_string_equal(t.algorithm, "ring");
    assert_int_equal(mpi(&f, DL_COLL_ALL_REDUCE, "nvls", &t, &err), DL_ERR_USAGE);
    check_contains(err.message, "MPI has no all-reduce 'nvls'");
    assert_int_equal(mpi(&f, DL_COLL_BROADCAST, "binomial", &t, &err), DL_OK);
    check_close(t.time_s, 2 * (1.5e-6 + 1e6 / 12e9), 1e-9);
    assert_int_equal(mpi(&f, DL_COLL_BROADCAST, "ring", &t, &err), DL_ERR_USAGE);
    check_contains(err.message, "MPI has no broadcast 'ring'");
    assert_int_equal(mpi(&f, DL_COLL_BROADCAST, "tango", &t, &err), DL_ERR_USAGE);
    assert_int_equal(mpi(&f, DL_COLL_ALL_GATHER, "ring", &t, &err), DL_OK);
    check_close(t.time_s, 2 * (1.5e-6 + 1e6 / 3 / 12e9), 1e-9);
    dl_arena_free(&f.arena);
}

/* Between two nodes up to 600 kB cost 1 ns a byte, longer ones 2: doubling sends all of 1 MB at
 * once, Rabenseifner's algorithm halves and a ring halves of them. Sums: 0.25 ns a byte of one
 * core. */
static void messages_of_an_algorithm(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    struct dl_collective_time t;
    struct dl_piece pieces[] = {{6e5, 1e-6, 1e-9}, {1e9, 1e-6, 2e-9}};
    static const struct {
        const char *algorithm;
        double bandwidth_us;
    } cases[] = {
        {"recursive_doubling", 2000 + 250}, {"rabenseifner", 1000 + 125}, {"ring", 1000 + 125}};
    fake_make(&f);
    f.system.host.memory_bandwidth_bytes_per_s = NAN;
    f.system.inter.pieces = pieces, f.system.inter.piece_count = 2;
    for (int i = 0; i < 3; i++) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_MPI,
                                                .bytes = 1e6,
                                                .nodes = 2,
                                                .ranks_per_node = 1,
                                                .flows_per_adapter = 1,
                                                .algorithm = cases[i].algorithm};
        assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_OK);
        check_close(t.bandwidth_s * 1e6, cases[i].bandwidth_us, 1e-9);
    }
    dl_arena_free(&f.arena);
}

/* What fills the memory to the byte fits. */
static void the_largest_batch(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_memory m = {0};
    fake_make(&f);
    for (int batch = 1; batch <= 4; batch++) {
        f.plan.batch_per_device_samples = batch;
        dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, batch, &m, NULL);
        f.device.memory_bytes = m.total_bytes;
        check_close(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan), batch, 0);
        f.device.memory_bytes = m.total_bytes - 1;
        check_close(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan), batch - 1,
                    0);
    }
    f.device.memory_bytes = NAN;
    check_nan(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan));
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_sequences),       cmocka_unit_test(lengths_of_runs),
        cmocka_unit_test(best_points_of_a_sweep),    cmocka_unit_test(layer_times_that_fit),
        cmocka_unit_test(nearest_batch_that_has_it), cmocka_unit_test(input_of_a_node),
        cmocka_unit_test(samples_of_a_node),         cmocka_unit_test(releases_of_mpi),
        cmocka_unit_test(imposed_and_near_messages), cmocka_unit_test(messages_of_an_algorithm),
        cmocka_unit_test(the_largest_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
