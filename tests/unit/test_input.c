/* F-INPUT: storage, decoding, feeding and copying by hand; page cache; accumulation of
 * micro-batches (F-ACCUMULATE). */
#include "model/framework/input.h"
#include "tests/check.h"
#include "tests/fake.h"

/* 256 samples a device, 4 devices a node, 2 nodes; a sample of 100 kB, decoded in 10 ms on one of
 * 28 cores. */
static void real_input(struct dl_fake *f) {
    fake_make(f);
    f->plan.input.synthetic = false;
    f->plan.input.sample_bytes = 1e5;
    f->plan.input.dataset_samples = 1e9; /* 100 TB: never in the page cache of 256 GB */
    f->plan.input.decode_s_per_sample = 0.01;
    f->system.has_storage = true;
    f->system.storage.read_bytes_per_s = 1e9;
    f->system.storage.total_read_bytes_per_s = 1.6e9;
}

static void stages_by_hand(void **state) {
    struct dl_fake f;
    real_input(&f);
    const struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    /* a node reads 1024 x 100 kB = 102.4 MB: 0.1024 s from its own share, 2 x 102.4 MB / 1.6 GB/s =
     * 0.128 s from the shared one */
    check_close(t.storage_s, 0.128, 1e-12);
    check_close(t.decode_s, 1024 * 0.01 / 28, 1e-12);
    /* 256 x 4000 B, two devices on a host link of 12 GB/s */
    check_close(t.copy_s, 256 * 4000.0 * 2 / 12e9, 1e-12);
    assert_true(t.feed_s == 0 && !t.cached && t.unknown == NULL);
    assert_string_equal(t.slowest, "decoding");
    check_close(t.pipeline_s, 1024 * 0.01 / 28, 1e-12); /* the slowest stage: they overlap */
    f.framework.input.prefetch_batches = 0;
    const struct dl_input_time serial =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(serial.pipeline_s, t.storage_s + t.decode_s + t.copy_s, 1e-12);
    f.framework.input.decodes_on_device = true;
    const struct dl_input_time there =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_true(there.decode_s == 0);
    check_close(there.pipeline_s, t.storage_s + t.copy_s, 1e-12);
}

/* Three other nodes of 100 cores and 0.5 GB/s decode all 2 x 1024 samples and send 4000 B of each:
 * 2048 x 0.01 / 300 s of decoding; 2048 / 3 x 4000 B / 0.5 GB/s = 5.46 ms at a sender, 1024 x 4000
 * B / 12 GB/s at a receiver. Their storage gives each a third of 204.8 MB: 68.3 ms at 1 GB/s. */
static void decoded_elsewhere(void **state) {
    struct dl_fake f;
    real_input(&f);
    struct dl_system there = f.system;
    there.host.cores = 100;
    there.inter.bandwidth_bytes_per_s = 0.5e9;
    there.storage.total_read_bytes_per_s = NAN;
    f.plan.input.nodes = &there;
    f.plan.input.node_count = 3;
    f.workload.input_bytes_per_sample = 4000;
    const struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(t.decode_s, 2048 * 0.01 / 300, 1e-12);
    check_close(t.transfer_s, 2048 / 3.0 * 4000 / 0.5e9, 1e-12);
    check_close(t.storage_s, 2048 / 3.0 * 1e5 / 1e9, 1e-12);
    check_close(t.pipeline_s, fmax(t.storage_s, t.decode_s), 1e-12);
    assert_true(t.unknown == NULL);
    there.inter.bandwidth_bytes_per_s = 1e12; /* then the receiver's adapter */
    const struct dl_input_time fast =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(fast.transfer_s, 1024 * 4000 / 12e9, 1e-12);
    there.has_host = false;
    const struct dl_input_time coreless =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_non_null(coreless.unknown);
}

/* One array in the memory of one socket: of 4 devices, 3 to a socket, one reads 256 x 4000 B over
 * the bridge of 1 GB/s, for longer than two on a host link of 12 GB/s; at 100 GB/s the link is the
 * slower, and without a bridge it is alone. */
static void one_array_lies_on_one_socket(void **state) {
    struct dl_fake f;
    real_input(&f);
    f.framework.input.feeds_one_array = true;
    f.system.intra.peer_group = 3;
    const double bridge[] = {1e9, 100e9, NAN},
                 expected[] = {256 * 4000 / 1e9, 256 * 4000.0 * 2 / 12e9, 256 * 4000.0 * 2 / 12e9};
    for (int i = 0; i < 3; i++) {
        f.system.intra.cross_bandwidth_bytes_per_s = bridge[i];
        check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s,
                    expected[i], 1e-12);
    }
    f.system.intra.cross_bandwidth_bytes_per_s = 1e9;
    f.system.intra.peer_group = 4;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).copy_s, expected[1],
                1e-12);
}

static void workers_are_at_most_the_cores(void **state) {
    struct dl_fake f;
    real_input(&f);
    f.plan.input.decode_workers = 2; /* a device: 8 in the node */
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1024 * 0.01 / 8, 1e-12);
    f.plan.input.decode_workers = 100;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1024 * 0.01 / 28, 1e-12);
}

/* A framework that skips 0.475 of a cropped image decodes 1024 of 10 ms in 0.525 of the time. */
static void crops_are_decoded_alone(void **state) {
    struct dl_fake f;
    real_input(&f);
    f.framework.input.crop_skip_frac = 0.475;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1024 * 0.01 / 28, 1e-12);
    f.plan.input.cropped = true;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).decode_s,
                1024 * 0.00525 / 28, 1e-12);
}

static void page_cache_after_the_first_epoch(void **state) {
    struct dl_fake f;
    real_input(&f);
    f.plan.input.dataset_samples = 1e6; /* 100 GB of 256 GB */
    struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_true(t.cached && t.storage_s == 0);
    f.plan.input.first_epoch = true;
    t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    assert_false(t.cached);
    check_close(t.storage_s, 0.128, 1e-12);
}

static void feeding_one_process(void **state) {
    struct dl_fake f;
    fake_make(&f);
    f.plan.nodes = 1;
    f.framework.input.feed_bytes_per_s = 1e9;
    f.framework.host.single_process = f.framework.input.feeds_whole_batch =
        f.framework.input.feeds_pageable = true;
    const struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(t.feed_s, 1024 * 4000.0 / 1e9, 1e-12);
    check_close(t.copy_s, 1024 * 4000.0 / 6e9, 1e-12); /* all of it over one link, pageable */
    f.framework.host.single_process = f.framework.input.feeds_whole_batch = false;
    f.framework.input.feeds_each_device = true;
    const struct dl_input_time each =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(each.feed_s, 1024 * 4000.0 / 1e9, 1e-12);
    /* all of it to each of four, two on a link */
    check_close(each.copy_s, 1024 * 4000.0 * 2 / 6e9, 1e-12);
}

static void unknown_is_said(void **state) {
    struct dl_fake f;
    real_input(&f);
    f.plan.input.sample_bytes = 0; /* the workload's: NAN */
    assert_string_equal(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).unknown,
                        "the stored size of a sample");
}

static void micro_batches_accumulate(void **state) {
    struct dl_fake f;
    struct dl_prediction whole, parts;
    fake_make(&f);
    f.plan.nodes = 1;
    f.plan.devices_per_node = 1;
    f.plan.micro_batch_samples = 256;
    assert_int_equal(fake_predict(&f, &whole), DL_OK);
    f.plan.dp = 0;
    f.plan.micro_batch_samples = 64;
    assert_int_equal(fake_predict(&f, &parts), DL_OK);
    struct dl_fake one;
    struct dl_prediction quarter;
    fake_make(&one);
    one.plan.nodes = one.plan.devices_per_node = 1;
    one.plan.batch_per_device_samples = 64;
    assert_int_equal(fake_predict(&one, &quarter), DL_OK);
    /* three times both sums are read and one is written, in fp32; where launches are free */
    struct dl_kernel sum =
        dl_kernel_stream(DL_UPDATE, 2 * one.workload.parameters, 1.5 * one.workload.parameters,
                         1.5 * one.workload.parameters);
    struct dl_kernel_time sum_time;
    dl_kernel_time(one.system.device, DL_FP32, &sum, &sum_time);
    const double sums_s = parts.update_s - quarter.update_s;
    assert_true(sums_s >= 3 * sum_time.time_s * (1 - 1e-12));
    check_close(parts.compute_s,
                4 * (quarter.compute_s - quarter.update_s) + quarter.update_s + sums_s, 1e-9);
    check_close(parts.iteration_s,
                4 * (quarter.iteration_s - quarter.update_s) + quarter.update_s + sums_s, 1e-6);
    check_close(parts.memory.activations_bytes, quarter.memory.activations_bytes, 1e-12);
    /* smaller products are less efficient, launches more */
    assert_true(parts.iteration_s > whole.iteration_s);
    f.plan.dp = 0;
    f.plan.micro_batch_samples = 100;
    assert_int_equal(fake_predict(&f, &parts), DL_ERR_USAGE);
}

/* Four micro-batches that each synchronize expose four times what one does alone. */
static void micro_batches_synchronize(void **state) {
    struct dl_fake f, one;
    struct dl_prediction once, each, quarter;
    fake_make(&f);
    fake_make(&one);
    f.framework.sync.overlaps_backward = one.framework.sync.overlaps_backward = false;
    f.plan.batch_per_device_samples = 256;
    f.plan.micro_batch_samples = one.plan.batch_per_device_samples = 64;
    assert_int_equal(fake_predict(&f, &once), DL_OK);
    f.plan.dp = 0;
    f.framework.sync.each_micro_batch = true;
    assert_int_equal(fake_predict(&f, &each), DL_OK);
    assert_int_equal(fake_predict(&one, &quarter), DL_OK);
    assert_true(quarter.exposed_comm_s > 0);
    check_close(once.exposed_comm_s, quarter.exposed_comm_s, 1e-6);
    check_close(each.exposed_comm_s, 4 * quarter.exposed_comm_s, 1e-6);
    check_close(each.comm_s, 4 * quarter.comm_s, 1e-6);
    check_close(each.iteration_s - once.iteration_s,
                each.exposed_comm_s - once.exposed_comm_s + each.overhead_s - once.overhead_s,
                1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_by_hand),
        cmocka_unit_test(decoded_elsewhere),
        cmocka_unit_test(one_array_lies_on_one_socket),
        cmocka_unit_test(workers_are_at_most_the_cores),
        cmocka_unit_test(crops_are_decoded_alone),
        cmocka_unit_test(page_cache_after_the_first_epoch),
        cmocka_unit_test(feeding_one_process),
        cmocka_unit_test(unknown_is_said),
        cmocka_unit_test(micro_batches_accumulate),
        cmocka_unit_test(micro_batches_synchronize),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
