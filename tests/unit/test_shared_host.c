/* CPU devices of one host, by hand: F-SHARED-HOST, F-SLOWDOWN. */
#include "model/framework/shared_host.h"
#include "tests/check.h"
#include "tests/fake.h"

/* A host of 4 cores: devices of one core, 10 GB/s alone, 16 GB/s all together; with all 4 at work a
 * product takes 1.6 times as long. */
static struct dl_device one_core(void) {
    return (struct dl_device){.name = "core",
                              .kind = DL_DEVICE_CPU,
                              .unit_count = 1,
                              .memory_bandwidth_bytes_per_s = 10e9,
                              .memory_efficiency = 1,
                              .l2_bytes = 8e6,
                              .all_sockets_slowdown_ratio = 1.6};
}

static struct dl_system of(const struct dl_device *device) {
    return (struct dl_system){.name = "host",
                              .device = device,
                              .nodes = 8,
                              .devices_per_node = 1,
                              .nodes_share_host = true,
                              .has_host = true,
                              .host = {.cores = 4, .memory_bandwidth_bytes_per_s = 16e9},
                              .has_inter = true,
                              .inter = {.kind = "loopback"}};
}

static void devices_take_from_each_other(void **state) {
    const struct dl_device device = one_core();
    const struct dl_system system = of(&device);
    const struct dl_plan one = {.nodes = 1, .devices_per_node = 1},
                         three = {.nodes = 3, .devices_per_node = 1};
    struct dl_shared_host s = dl_shared_host(&system, &one);
    assert_true(s.device_count == 1 && s.arithmetic_ratio == 1 && s.memory_ratio == 1 &&
                s.core_oversubscription_ratio == 1);
    s = dl_shared_host(&system, &three);
    check_close(s.arithmetic_ratio, 1 + 0.6 * 2 / 3, 1e-12); /* two of the three others */
    check_close(s.memory_ratio, 30e9 / 16e9, 1e-12);
    assert_true(s.core_oversubscription_ratio == 1);
    check_close(s.cache_bytes, 8e6 / 3, 1e-12);
}

static void more_devices_than_cores_take_turns(void **state) {
    const struct dl_device device = one_core();
    struct dl_system system = of(&device);
    const struct dl_plan six = {.nodes = 6, .devices_per_node = 1};
    struct dl_shared_host s = dl_shared_host(&system, &six);
    check_close(s.core_oversubscription_ratio, 1.5, 1e-12);
    check_close(s.arithmetic_ratio, 1.6, 1e-12); /* 4 work at a time */
    check_close(s.memory_ratio, 40e9 / 16e9, 1e-12);
    system.nodes_share_host = false; /* six machines: one device each */
    s = dl_shared_host(&system, &six);
    assert_true(s.device_count == 1 && s.core_oversubscription_ratio == 1 &&
                s.arithmetic_ratio == 1);
}

static void what_is_not_known_is_left_alone(void **state) {
    struct dl_device device = one_core();
    struct dl_system system = of(&device);
    const struct dl_plan two = {.nodes = 2, .devices_per_node = 1};
    device.all_sockets_slowdown_ratio = NAN;
    struct dl_shared_host s = dl_shared_host(&system, &two);
    assert_true(s.arithmetic_ratio == 1 && s.memory_ratio == 1 &&
                s.core_oversubscription_ratio == 1);
    device = one_core();
    device.kind = DL_DEVICE_GPU;
    s = dl_shared_host(&system, &two);
    assert_true(s.arithmetic_ratio == 1 && s.memory_ratio == 1 &&
                dl_shared_host_stop_frac(&system, &two) == 0);
}

static void a_pass_is_scaled_by_what_bounds_it(void **state) {
    const struct dl_shared_host s = {.device_count = 2,
                                     .arithmetic_ratio = 1.25,
                                     .memory_ratio = 2,
                                     .core_oversubscription_ratio = 3,
                                     .cache_bytes = 1000};
    struct dl_pass_cost large = {.time_s = 1,
                                 .by_limit_s = {[DL_LIMIT_COMPUTE] = 0.6, [DL_LIMIT_MEMORY] = 0.4},
                                 .bytes = 2000,
                                 .error_s = 0.1,
                                 .error_square_s2 = 0.01};
    struct dl_pass_cost small = large;
    small.bytes = 500; /* stays in the cache: as arithmetic */
    dl_shared_host_scale(&s, &large);
    check_close(large.time_s, 3 * (0.6 * 1.25 + 0.4 * 2), 1e-12);
    check_close(large.by_limit_s[DL_LIMIT_MEMORY], 3 * 0.8, 1e-12);
    check_close(large.error_s, 0.1 * large.time_s, 1e-12);
    check_close(large.error_square_s2, 0.01 * large.time_s * large.time_s, 1e-12);
    dl_shared_host_scale(&s, &small);
    check_close(small.time_s, 3 * 1.25, 1e-12);
}

/* Copies of messages that never leave the host stop one core's computing; a device of 4 cores loses
 * a quarter. F-SLOWDOWN */
static void copies_stop_a_core(void **state) {
    struct dl_device device = one_core();
    struct dl_system system = of(&device);
    const struct dl_plan one = {.nodes = 1, .devices_per_node = 1},
                         two = {.nodes = 2, .devices_per_node = 1};
    assert_true(dl_shared_host_stop_frac(&system, &one) == 0);
    assert_true(dl_shared_host_stop_frac(&system, &two) == 1);
    device.unit_count = 4;
    assert_true(dl_shared_host_stop_frac(&system, &two) == 0.25);
    system.inter.kind = "ethernet";
    assert_true(dl_shared_host_stop_frac(&system, &two) == 0);
}

/* Horovod's thread, cycle of 1 ms: it polls for a turn of 4 ms and sleeps 1 ms, so that a computing
 * thread has 5 of 9 ms: 1.8 times as long. Of four cores it takes turns on one: 1 + 0.8 / 4. */
static void a_polling_thread_takes_turns(void **state) {
    struct dl_device device = one_core();
    struct dl_system system = of(&device);
    const struct dl_plan one = {.nodes = 1, .devices_per_node = 1},
                         two = {.nodes = 2, .devices_per_node = 1};
    check_close(dl_shared_host_poll_ratio(&system, &two, 1e-3), 1.8, 1e-12);
    assert_true(dl_shared_host_poll_ratio(&system, &one, 1e-3) == 1);
    device.unit_count = 4;
    check_close(dl_shared_host_poll_ratio(&system, &two, 1e-3), 1.2, 1e-12);
    assert_true(dl_host_cores_carry_messages(&system));
    system.inter.kind = "ethernet";
    assert_false(dl_host_cores_carry_messages(&system));
    device.kind = DL_DEVICE_GPU;
    assert_true(dl_shared_host_poll_ratio(&system, &two, 1e-3) == 1);
}

/* Two of 24 cores communicate: 24 / 22; four of a Xeon Phi's 68. A single device keeps all. */
static void endpoints_take_cores(void **state) {
    struct dl_fake f;
    fake_make(&f);
    f.device.kind = DL_DEVICE_CPU, f.device.architecture = "skylake", f.device.unit_count = 24;
    f.framework.sync.communication_cores = 2, f.framework.sync.knl_communication_cores = 4;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 24.0 / 22, 1e-12);
    f.device.architecture = "knl", f.device.unit_count = 68;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 68.0 / 64, 1e-12);
    f.plan.nodes = f.plan.devices_per_node = 1;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_take_cores),
        cmocka_unit_test(devices_take_from_each_other),
        cmocka_unit_test(more_devices_than_cores_take_turns),
        cmocka_unit_test(what_is_not_known_is_left_alone),
        cmocka_unit_test(a_pass_is_scaled_by_what_bounds_it),
        cmocka_unit_test(copies_stop_a_core),
        cmocka_unit_test(a_polling_thread_takes_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
