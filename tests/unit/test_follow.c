/* What was measured follows the datasheet numbers that a what-if changes (F-WHAT-IF), by hand. */
#include "model/network/collective.h"
#include "model/machine/what_if.h"
#include "tests/check.h"

static struct dl_err err;

static struct dl_link a_link(struct dl_piece *pieces, int count) {
    return (struct dl_link){.kind = "ethernet",
                            .bandwidth_bytes_per_s = 10e9,
                            .latency_s = 2e-6,
                            .channel_bandwidth_bytes_per_s = NAN,
                            .cross_bandwidth_bytes_per_s = NAN,
                            .nccl_bandwidth_bytes_per_s = 4e9,
                            .assumed = true,
                            .pieces = pieces,
                            .piece_count = count};
}

/* Twice the bandwidth and half the latency: NCCL's 4 GB/s become 8, the piece's 1e-10 s a byte
 * 5e-11, its 6 us 3. A rate that is set too stays as set. */
static void link_by_hand(void **state) {
    struct dl_piece piece = {1e9, 6e-6, 1e-10};
    struct dl_system measured = {.has_inter = true, .inter = a_link(&piece, 1)};
    struct dl_system system = measured;
    system.inter.bandwidth_bytes_per_s = 20e9, system.inter.latency_s = 1e-6;
    dl_system_what_if(&measured, &system, &test_arena);
    check_close(system.inter.nccl_bandwidth_bytes_per_s, 8e9, 1e-12);
    check_close(system.inter.pieces[0].beta_s_per_byte, 5e-11, 1e-12);
    check_close(system.inter.pieces[0].alpha_s, 3e-6, 1e-12);
    check_close(piece.alpha_s, 6e-6, 0); /* the measured one is left alone */
    assert_false(system.inter.assumed);
    system = measured;
    system.inter.bandwidth_bytes_per_s = 20e9, system.inter.nccl_bandwidth_bytes_per_s = 5e9;
    dl_system_what_if(&measured, &system, &test_arena);
    check_close(system.inter.nccl_bandwidth_bytes_per_s, 5e9, 0);
    /* of a link with pieces alone, 1 / beta of the largest messages is the bandwidth */
    measured.inter.bandwidth_bytes_per_s = NAN;
    system = measured;
    system.inter.bandwidth_bytes_per_s = 5e9;
    dl_system_what_if(&measured, &system, &test_arena);
    check_close(system.inter.pieces[0].beta_s_per_byte, 2e-10, 1e-12);
}

/* 4 GB/s pageable over a pinned 10: the staging takes 1/4 - 1/10 ns a byte; with a pinned 20 the
 * copy runs at 1 / (1/20 + 0.15) = 5 GB/s. */
static void host_by_hand(void **state) {
    struct dl_system measured = {
        .has_host = true,
        .host = {.copy_bandwidth_bytes_per_s = 10e9, .pageable_bandwidth_bytes_per_s = 4e9}};
    struct dl_system system = measured;
    system.host.copy_bandwidth_bytes_per_s = 20e9;
    dl_system_what_if(&measured, &system, &test_arena);
    check_close(system.host.pageable_bandwidth_bytes_per_s, 5e9, 1e-12);
}

/* 1.5 times the clock on as many units: 15 Tflop/s where the peak was 10, and the sustained 8
 * become 12; the fitted rate follows the sustained one, its bandwidth 2 TB/s over 1. */
static void device_by_hand(void **state) {
    struct dl_rate rates[] = {
        {.precision = DL_FP32, .peak_flop_per_s = 10e12, .sustained_flop_per_s = 8e12}};
    struct dl_kernel_model model = {.op = DL_OP_GEMM,
                                    .precision = DL_FP32,
                                    .latency_s = 4e-6,
                                    .rate_flop_per_s = 7e12,
                                    .bandwidth_bytes_per_s = 8e11};
    const struct dl_device measured = {.memory_bandwidth_bytes_per_s = 1e12,
                                       .memory_efficiency = 0.8,
                                       .kernel_latency_s = NAN,
                                       .clock_hz = 1e9,
                                       .unit_count = 80,
                                       .rates = rates,
                                       .rate_count = 1,
                                       .kernel_models = &model,
                                       .kernel_model_count = 1};
    struct dl_device device = measured;
    device.clock_hz = 1.5e9, device.memory_bandwidth_bytes_per_s = 2e12;
    dl_device_what_if(&measured, &device, &test_arena);
    check_close(dl_device_peak(&device, DL_FP32), 15e12, 1e-12);
    check_close(dl_device_sustained(&device, DL_FP32), 12e12, 1e-12);
    check_close(device.kernel_models[0].rate_flop_per_s, 10.5e12, 1e-12);
    check_close(device.kernel_models[0].bandwidth_bytes_per_s, 1.6e12, 1e-12);
    check_close(device.kernel_models[0].latency_s, 4e-6, 0);
    check_close(model.rate_flop_per_s, 7e12, 0);
    check_close(rates[0].peak_flop_per_s, 10e12, 0);
}

/* Measured 3 times the model: over a link of twice the rate the time is 3 times the model of that
 * link. */
static void samples_by_hand(void **state) {
    struct dl_coll_sample sample = {.bytes = 1e8, .time_s = 1, .low_s = NAN, .high_s = NAN};
    struct dl_coll_measured list = {.library = "nccl",
                                    .operation = "all_reduce",
                                    .nodes = 2,
                                    .ranks = 2,
                                    .samples = &sample,
                                    .sample_count = 1};
    struct dl_device device = {.name = "d", .kind = DL_DEVICE_GPU, .architecture = "volta"};
    struct dl_system plain = {.name = "s",
                              .device = &device,
                              .nodes = 2,
                              .devices_per_node = 1,
                              .has_inter = true,
                              .inter = a_link(NULL, 0),
                              .software.nccl_version = "2.18.3"};
    plain.inter.per_message_cpu_s = NAN, plain.inter.nccl_bandwidth_bytes_per_s = NAN;
    const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = DL_LIB_NCCL,
                                                  .nodes = 2,
                                                  .ranks_per_node = 1,
                                                  .flows_per_adapter = 1,
                                                  .device_buffers = true,
                                                  .bytes = 1e8};
    struct dl_collective_time model, faster_model, now;
    struct dl_system faster = plain;
    faster.inter.bandwidth_bytes_per_s = 20e9;
    assert_int_equal(dl_collective_time(&plain, &request, &model, &err), DL_OK);
    assert_int_equal(dl_collective_time(&faster, &request, &faster_model, &err), DL_OK);
    assert_true(faster_model.time_s < 0.6 * model.time_s);
    sample.time_s = 3 * model.time_s;
    plain.collectives = faster.collectives = &list;
    plain.collective_count = faster.collective_count = 1;
    faster.as_measured = &plain;
    assert_int_equal(dl_collective_time(&plain, &request, &now, &err), DL_OK);
    check_close(now.time_s, sample.time_s, 1e-9);
    assert_string_equal(now.formula, "F-COLL-MEASURED");
    assert_int_equal(dl_collective_time(&faster, &request, &now, &err), DL_OK);
    check_close(now.time_s, 3 * faster_model.time_s, 1e-9);
    assert_string_equal(now.formula, "F-WHAT-IF");
}

/* F-POWER-CLOCK: 300 W, 100 W of them idle, at 1 GHz: at 0.9 GHz 100 + 200 x 0.9^3. A load that is
 * set too stays. */
static void power_by_hand(void **state) {
    struct dl_rate rate = {.precision = DL_FP32, .peak_flop_per_s = 1e13};
    const struct dl_device measured = {.clock_hz = 1e9,
                                       .power.idle_w = 100,
                                       .power.load_w = 300,
                                       .memory_bandwidth_bytes_per_s = 1e12,
                                       .rates = &rate,
                                       .rate_count = 1};
    struct dl_device device = measured;
    device.clock_hz = 0.9e9;
    dl_device_what_if(&measured, &device, &test_arena);
    check_close(device.power.load_w, 245.8, 1e-12);
    check_close(device.rates[0].peak_flop_per_s, 9e12, 1e-12);
    device = measured;
    device.clock_hz = 0.9e9, device.power.load_w = 250;
    dl_device_what_if(&measured, &device, &test_arena);
    check_close(device.power.load_w, 250, 0);
    device = measured; /* a higher clock is another chip's */
    device.clock_hz = 2e9;
    dl_device_what_if(&measured, &device, &test_arena);
    check_close(device.power.load_w, 300, 0);
    device = measured; /* another memory, the same clock */
    device.memory_bandwidth_bytes_per_s = 2e12;
    dl_device_what_if(&measured, &device, &test_arena);
    check_close(device.power.load_w, 300, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_by_hand),   cmocka_unit_test(host_by_hand),
        cmocka_unit_test(device_by_hand), cmocka_unit_test(samples_by_hand),
        cmocka_unit_test(power_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
