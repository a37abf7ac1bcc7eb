/* What a behaviour of a framework needs of the system, taken away one by one: it says what
 * lacks, and never a number. And how each message names its formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gradient_bench.h"

static struct bench b;
static struct dl_err err;

static enum dl_code synchronize(const char *behaviour) {
    memset(&err, 0, sizeof err);
    memset(&b.sync, 0, sizeof b.sync);
    const struct dl_framework_behaviour *found = dl_framework_behaviour_find(behaviour);
    if (found == NULL) fail_msg("no behaviour %s", behaviour);
    return found->synchronize(&b.request, &b.sync, &err);
}

static void start(void) {
    static const double sizes[] = {40e6, 8e6, 4e6, 4e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.request.parameter_bytes = 56e6;
}

enum what { NO_COPY, NO_MEMORY, NO_HOST, NO_ADAPTER, NO_INTER };

static void take_away(enum what what) {
    struct dl_system *s = &b.fake.system;
    if (what == NO_COPY)
        s->host.copy_bandwidth_bytes_per_s = s->host.pageable_bandwidth_bytes_per_s = NAN;
    if (what == NO_MEMORY) s->host.memory_bandwidth_bytes_per_s = NAN;
    if (what == NO_HOST) s->has_host = false;
    if (what == NO_ADAPTER) s->inter.bandwidth_bytes_per_s = NAN;
    if (what == NO_INTER) s->has_inter = false;
}

static void what_servers_need(void **state) {
    (void)state;
    static const char *const behaviours[] = {"parameter-server", "kvstore-server"};
    for (int i = 0; i < 2; i++) {
        start();
        assert_int_equal(synchronize(behaviours[i]), DL_OK);
        dl_arena_free(&b.fake.arena);
        for (enum what w = NO_MEMORY; w <= NO_INTER; w++) {
            start();
            take_away(w);
            assert_int_equal(synchronize(behaviours[i]), DL_ERR_INPUT);
            check_contains(err.message, w >= NO_ADAPTER ? "links.inter" : "host.");
            if (i == 0)
                assert_string_equal(err.message,
                                    "system fake lacks host.copy_bandwidth_bytes_per_s, "
                                    "host.memory_bandwidth_bytes_per_s or links.inter, which "
                                    "parameter servers need");
            dl_arena_free(&b.fake.arena);
        }
    }
}

static void names_of_messages(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *formula, *name;
    } cases[] = {{"kvstore-server", "F-FW-KVSTORE-SERVER", "push and pull"},
                 {"parameter-server", "F-PS-QUEUE", "push"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start();
        assert_int_equal(synchronize(cases[i].behaviour), DL_OK);
        assert_string_equal(b.sync.messages[0].formula, cases[i].formula);
        assert_string_equal(b.sync.messages[0].name, cases[i].name);
        assert_string_equal(b.sync.messages[0].limit, "inter");
        assert_true(b.sync.wait_each && b.sync.update_remote);
        dl_arena_free(&b.fake.arena);
    }
}

/* 56 MB of MPI's all-reduce between host memories: copied out and back over links of 12 GB/s
 * that two GPUs share. MPI that was measured on device memory copies nothing; nor does a CPU. */
static void staging_of_host_libraries(void **state) {
    (void)state;
    struct dl_message message;
    struct dl_coll_sample sample = {56e6, 1, NAN, NAN};
    struct dl_coll_measured measured[] = {{.library = "gloo",
                                           .operation = "broadcast",
                                           .buffers = "device",
                                           .nodes = 1,
                                           .ranks = 2,
                                           .samples = &sample,
                                           .sample_count = 1},
                                          {.library = "mpi",
                                           .operation = "broadcast",
                                           .nodes = 1,
                                           .ranks = 2,
                                           .samples = &sample,
                                           .sample_count = 1},
                                          {.library = "mpi",
                                           .operation = "broadcast",
                                           .buffers = "host",
                                           .nodes = 1,
                                           .ranks = 2,
                                           .samples = &sample,
                                           .sample_count = 1}};
    start();
    b.request.library = DL_LIB_MPI;
    memset(&message, 0, sizeof message);
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    const double staged_s = message.bandwidth_s, copies_s = 2 * 56e6 * 2 / 12e9;
    b.fake.device.kind = DL_DEVICE_CPU;
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    check_close(staged_s - message.bandwidth_s, copies_s, 1e-9);
    b.fake.device.kind = DL_DEVICE_GPU;
    b.fake.system.collectives = measured, b.fake.system.collective_count = 3;
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    check_close(message.bandwidth_s, staged_s,
                1e-12); /* none of the three is MPI on device memory */
    measured[2].buffers = "device";
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    check_close(staged_s - message.bandwidth_s, copies_s, 1e-9);
    b.fake.system.collective_count = 0;
    take_away(NO_COPY);
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err),
        DL_ERR_INPUT);
    check_contains(err.message, "lacks host.copy_bandwidth_bytes_per_s, which mpi needs");
    dl_arena_free(&b.fake.arena);
}

/* Two levels only where there are two, an all-reduce, and ranks that hold the whole network. */
static void levels_of_an_all_reduce(void **state) {
    (void)state;
    struct dl_message message;
    start();
    b.fake.framework.sync.hierarchical = true;
#define algorithm_of(op)                                                                           \
    (dl_gradient_sync_collective(&b.request, op, 56e6, &message, &err) == DL_OK                    \
         ? message.algorithm                                                                       \
         : err.message)
    assert_string_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    assert_string_not_equal(algorithm_of(DL_COLL_BROADCAST), "hierarchical");
    b.fake.plan.tp = 4, b.fake.plan.dp = 2, b.fake.plan.pp = b.fake.plan.sp = b.fake.plan.ep = 1;
    assert_string_not_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    b.fake.plan.tp = 1, b.fake.plan.dp = 8;
    assert_string_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    b.fake.plan.nodes = 1;
    assert_string_not_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    b.fake.plan.nodes = 8, b.fake.plan.devices_per_node = 1;
    assert_string_not_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    b.fake.plan.nodes = 2, b.fake.plan.devices_per_node = 4,
    b.fake.framework.sync.hierarchical = false;
    assert_string_not_equal(algorithm_of(DL_COLL_ALL_REDUCE), "hierarchical");
    dl_arena_free(&b.fake.arena);
}

/* Tensor groups of 4 fill a node: each device sums with its like on the other node, all four pairs
 * at once. With one group of all, nothing is apart. */
static void ranks_of_a_group(void **state) {
    (void)state;
    struct dl_message message;
    struct dl_collective_time wanted;
    struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                      .library = DL_LIB_NCCL,
                                      .bytes = 56e6,
                                      .nodes = 2,
                                      .ranks_per_node = 4,
                                      .flows_per_adapter = 1,
                                      .group_size = 2,
                                      .group_stride = 4,
                                      .concurrent = 4};
    start();
    b.fake.plan.tp = 4, b.fake.plan.dp = 2, b.fake.plan.pp = b.fake.plan.sp = b.fake.plan.ep = 1;
    assert_int_equal(dl_collective_time(&b.fake.system, &r, &wanted, &err), DL_OK);
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    check_close(message.duration_s, wanted.time_s, 1e-12);
    b.fake.plan.tp = 1, b.fake.plan.dp = 8;
    r.group_size = r.group_stride = r.concurrent = 0;
    const double pairs_s = wanted.time_s;
    assert_int_equal(dl_collective_time(&b.fake.system, &r, &wanted, &err), DL_OK);
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 56e6, &message, &err), DL_OK);
    check_close(message.duration_s, wanted.time_s, 1e-12);
    assert_true(fabs(pairs_s / wanted.time_s - 1) > 0.01);
    dl_arena_free(&b.fake.arena);
}

/* Servers whose cores carry all traffic themselves: the same words. */
static void names_where_cores_carry(void **state) {
    (void)state;
    start();
    b.fake.device.kind = DL_DEVICE_CPU, b.fake.system.inter.kind = "loopback",
    b.request.library = DL_LIB_PSLITE;
    b.fake.system.devices_per_node = b.fake.plan.devices_per_node = 1, b.fake.plan.dp = 2;
    if (synchronize("kvstore-server") != DL_OK) fail_msg("%s", err.message);
    for (int m = 0; m < b.sync.message_count; m++)
        assert_string_equal(b.sync.messages[m].formula, "F-FW-KVSTORE-SERVER");
    dl_arena_free(&b.fake.arena);
}

/* Copies of a node: two devices a link, and 4 of them on a memory of 8 GB/s; a host without a
 * pageable rate copies as pinned. */
static void copies_and_sums_of_a_host(void **state) {
    (void)state;
    start();
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, true), 2e-3, 1e-12);
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, false), 4e-3, 1e-12);
    b.fake.system.host.pageable_bandwidth_bytes_per_s = NAN;
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, false), 2e-3, 1e-12);
    b.fake.system.host.devices_per_copy_link = DL_ABSENT;
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, true), 1e-3, 1e-12);
    b.fake.system.host.memory_bandwidth_bytes_per_s = 8e9;
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, true), 6e-3, 1e-12);
    check_close(dl_gradient_sync_host_sum_s(&b.request, 12e6, 3), 6e-3, 1e-12);
    b.fake.system.host.memory_bandwidth_bytes_per_s = NAN;
    check_close(dl_gradient_sync_host_copy_s(&b.request, 12e6, true), 1e-3, 1e-12);
    check_nan(dl_gradient_sync_host_sum_s(&b.request, 12e6, 3));
    take_away(NO_COPY);
    check_nan(dl_gradient_sync_host_copy_s(&b.request, 12e6, true));
    dl_arena_free(&b.fake.arena);
    start();
    take_away(NO_HOST);
    check_nan(dl_gradient_sync_host_copy_s(&b.request, 12e6, true));
    check_nan(dl_gradient_sync_host_sum_s(&b.request, 12e6, 3));
    dl_arena_free(&b.fake.arena);
}

/* Half of a worker's bytes leave each of two nodes at 12 GB/s; two adapters, a copy of 6 GB/s, a
 * fuller server. */
static void bytes_of_a_server(void **state) {
    (void)state;
    start();
    b.fake.framework.sync.messages.message_copy_bytes_per_s = NAN;
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 1), 0.5 / 12e9, 1e-12);
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 0.5), 0.5 / 12e9, 1e-12);
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 3), 1.5 / 12e9, 1e-12);
    b.fake.system.inter.adapters_per_node = 2;
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 1), 0.5 / 24e9, 1e-12);
    b.fake.system.inter.adapters_per_node = DL_ABSENT;
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 1), 0.5 / 12e9, 1e-12);
    b.fake.framework.sync.messages.message_copy_bytes_per_s = 6e9;
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 1), 0.5 / 6e9, 1e-12);
    b.fake.plan.nodes = 1;
    check_close(dl_gradient_sync_server_s_per_byte(&b.request, 1), 0, 0);
    b.fake.plan.nodes = 2;
    take_away(NO_ADAPTER);
    check_nan(dl_gradient_sync_server_s_per_byte(&b.request, 1));
    dl_arena_free(&b.fake.arena);
    start();
    take_away(NO_INTER);
    check_nan(dl_gradient_sync_server_s_per_byte(&b.request, 1));
    dl_arena_free(&b.fake.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_servers_need),         cmocka_unit_test(names_of_messages),
        cmocka_unit_test(ranks_of_a_group),          cmocka_unit_test(names_where_cores_carry),
        cmocka_unit_test(staging_of_host_libraries), cmocka_unit_test(levels_of_an_all_reduce),
        cmocka_unit_test(copies_and_sums_of_a_host), cmocka_unit_test(bytes_of_a_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
