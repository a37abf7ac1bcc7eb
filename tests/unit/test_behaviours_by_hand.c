/* What behaviours send where small details decide, by hand: the thread of tensor fusion, servers
 * whose cores carry all messages, factors between buckets, and the words of what lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/key_owners.h"
#include "model/workload/layer.h"
#include "tests/gradient_bench.h"

static struct bench b;
static struct dl_err err;

/* Of `bytes`, as the behaviour sends them; without anything that it adds. */
static struct dl_message plain(enum dl_collective_op op, double bytes) {
    struct dl_message message = {0};
    assert_int_equal(dl_gradient_sync_collective(&b.request, op, bytes, &message, &err), DL_OK);
    return message;
}

/* Four trees of small MPI messages: a control round (F-NEGOTIATION) without requests. */
static double round_s(void) {
    const struct dl_collective_request tree = {.op = DL_COLL_BROADCAST,
                                               .library = DL_LIB_MPI,
                                               .bytes = 64,
                                               .nodes = b.fake.plan.nodes,
                                               .ranks_per_node = b.fake.plan.devices_per_node};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&b.fake.system, &tree, &t, &err), DL_OK);
    assert_true(t.time_s > 0 && t.time_s < 1e-3);
    return 4 * t.time_s;
}

/* A cycle of a second: sums of halves are exact, so that a limit is met as it is written. */
static void start(int count, const double *sizes, const double *ready) {
    make(&b, count, sizes, ready);
    b.fake.framework.sync.fusion.cycle_s = 1;
}

static void check_sent(int i, int first, int count, double ready_s) {
    const struct dl_message *m = &b.sync.messages[i];
    assert_int_equal(m->first, first);
    assert_int_equal(m->count, count);
    check_close(m->ready_s, ready_s, 1e-12);
}

/* NCCL: the first cycle ends at 1.5 s and sees what is ready by then; the next two at 2.5 and 3.5
 * s. What is ready the moment a cycle ends is in it; what comes just after waits. */
static void a_cycle_sees_its_end(void **state) {
    (void)state;
    const double sizes[] = {4e3, 4e3, 4e3, 4e3, 4e3},
                 ready[] = {1, 1.5, 1.5 + 1e-12, 3.5, 3.5 + 1e-6};
    start(5, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 4);
    check_sent(0, 0, 2, 1.5 + round_s());
    check_sent(1, 2, 1, 2.5 + round_s());
    check_sent(2, 3, 1, 3.5 + round_s());
    check_sent(3, 4, 1, 4.5 + round_s());
    dl_arena_free(&b.fake.arena);
    /* at phase 0 the cycle ends when the first is ready */
    start(5, sizes, ready);
    b.request.phase_frac = 0;
    run(&b, "tensor-fusion");
    check_sent(0, 0, 1, 1 + round_s());
    check_sent(1, 1, 2, 2 + round_s());
    dl_arena_free(&b.fake.arena);
}

/* Cycles of 1 s that end at 1.5, 2.5 and 3.5 s: the third sees what is ready at 3.2 s. Of 1 ms, the
 * first ends at 2.5 ms, and 8.5 ms is the end of a later one, though (8.5 - 3.5) / 1 is above 5
 * after rounding. Where rounds take 4 cycles none begins before there is a tensor: it is found at
 * the end of its cycle, the fourth. */
static void cycles_go_by(void **state) {
    (void)state;
    const double sizes[] = {4e3, 4e3}, late[] = {1, 3.2}, rounded[] = {0.002, 0.0085};
    start(2, sizes, late);
    run(&b, "tensor-fusion");
    check_sent(0, 0, 1, 1.5 + round_s());
    check_sent(1, 1, 1, 3.5 + round_s());
    const double cycle_s = round_s() / 4, first_s = 1 + cycle_s / 2, free_s = first_s + round_s();
    b.fake.framework.sync.fusion.cycle_s = cycle_s;
    b.gradients[1].ready_s = free_s + 3.5 * cycle_s;
    run(&b, "tensor-fusion");
    check_sent(0, 0, 1, first_s + round_s());
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[1].ready_s - free_s, 4 * cycle_s + round_s(), 1e-9);
    dl_arena_free(&b.fake.arena);
    start(2, sizes, rounded);
    b.fake.framework.sync.fusion.cycle_s = 1e-3;
    run(&b, "tensor-fusion");
    const double next_s = 0.002 + 1e-3 * 0.5 + 1e-3;
    assert_true((0.0085 - next_s) / 1e-3 > 5 && next_s + 1e-3 * 5 >= 0.0085);
    check_sent(0, 0, 1, 0.0025 + round_s());
    check_sent(1, 1, 1, 0.0085 + round_s());
    dl_arena_free(&b.fake.arena);
}

/* All tensors of a message at once: 12 kB are read and written on the way in, and on the way out.
 */
static void copies_in_one_kernel(void **state) {
    (void)state;
    const double sizes[] = {4e3, 8e3}, ready[] = {1, 1.5};
    start(2, sizes, ready);
    b.fake.framework.sync.fusion.batched_copies = true;
    run(&b, "tensor-fusion");
    const struct dl_message both = plain(DL_COLL_ALL_REDUCE, 12e3), *m = &b.sync.messages[0];
    const double buffer_s = 2 * dl_gradient_sync_device_stream_s(&b.request, 24e3);
    assert_int_equal(b.sync.message_count, 1);
    check_close(m->duration_s, both.duration_s + buffer_s, 1e-12);
    check_close(m->bandwidth_s, both.bandwidth_s + buffer_s, 1e-12);
    check_close(m->latency_s, both.latency_s, 1e-12);
    dl_arena_free(&b.fake.arena);
}

/* 32 and 32 MB fill a buffer of 64 MB; one byte more does not fit; 80 MB goes alone. */
static void a_buffer_holds_its_limit(void **state) {
    (void)state;
    const double sizes[] = {32e6, 32e6, 4, 80e6, 32e6, 32e6 + 1}, ready[] = {1, 1, 1, 1, 1, 1};
    start(6, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 5);
    const int first[] = {0, 2, 3, 4, 5}, count[] = {2, 1, 1, 1, 1};
    for (int i = 0; i < 5; i++) check_sent(i, first[i], count[i], 1.5 + round_s());
    dl_arena_free(&b.fake.arena);
}

/* F-FUSION-THREAD on GPUs with MPI and copies of a quarter of a second: ready at 1, 1, 1.25 and
 * 3.75 s, tensors lie on the host at 1.25, 1.5 (the end of the first cycle), 1.75 and 4 s. Each
 * message passes back all its tensors, a quarter of a second each, which is latency. */
static void copies_one_after_the_other(void **state) {
    (void)state;
    const double sizes[] = {4e3, 8e3, 4e3, 4e3}, ready[] = {1, 1, 1.25, 3.75};
    start(4, sizes, ready);
    b.request.library = DL_LIB_MPI;
    b.fake.framework.sync.messages.message_s = 0.25;
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 3);
    const struct dl_message both = plain(DL_COLL_ALL_REDUCE, 12e3);
    const double buffer_s = 2 * dl_gradient_sync_device_stream_s(&b.request, 8e3) +
                            2 * dl_gradient_sync_device_stream_s(&b.request, 16e3);
    check_sent(0, 0, 2, 1.5 + round_s());
    check_close(b.sync.messages[0].latency_s, both.latency_s + 0.5, 1e-12);
    check_close(b.sync.messages[0].bandwidth_s, both.bandwidth_s + buffer_s, 1e-12);
    check_close(b.sync.messages[0].duration_s, both.duration_s + buffer_s + 0.5, 1e-12);
    check_sent(1, 2, 1, 2.5 + round_s());
    const struct dl_message one = plain(DL_COLL_ALL_REDUCE, 4e3);
    check_close(b.sync.messages[1].latency_s, one.latency_s + 0.25, 1e-12);
    check_close(b.sync.messages[1].bandwidth_s, one.bandwidth_s, 1e-12);
    check_close(b.sync.messages[1].duration_s, one.duration_s + 0.25, 1e-12);
    check_sent(2, 3, 1, 4.5 + round_s());
    check_close(b.sync.device_copy_s, 0, 0);
    dl_arena_free(&b.fake.arena);
}

/* On CPUs nothing is copied to a host; two tensors that share a message pass the buffer in the
 * memory of the computation, in and out, read and written: 4 x 12 kB. */
static void buffers_of_cpus(void **state) {
    (void)state;
    const double sizes[] = {4e3, 8e3, 40e3}, ready[] = {1, 1.5, 3};
    start(3, sizes, ready);
    b.fake.device.kind = DL_DEVICE_CPU;
    b.request.library = DL_LIB_MPI;
    b.fake.framework.sync.messages.message_s = 0.25;
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 2);
    check_sent(0, 0, 2, 1.5 + round_s());
    check_sent(1, 2, 1, 3.5 + round_s());
    const struct dl_message both = plain(DL_COLL_ALL_REDUCE, 12e3);
    check_close(b.sync.messages[0].duration_s, both.duration_s, 1e-12);
    check_close(b.sync.messages[0].latency_s, both.latency_s, 1e-12);
    const double copies_s = dl_gradient_sync_device_stream_s(&b.request, 4 * 12e3);
    assert_true(copies_s > 0);
    check_close(b.sync.device_copy_s, copies_s, 1e-12);
    dl_arena_free(&b.fake.arena);
}

/* Two messages of one cycle of 1 ms that ends at 10.5 ms: MPI's thread reduces both, one after the
 * other, before its next round, which begins at once and sees the third; NCCL's goes on at 11.5
 * ms. */
static void a_thread_is_busy(void **state) {
    (void)state;
    const double sizes[] = {64e6, 48e6, 4e3}, ready[] = {.010, .010, .011};
    start(3, sizes, ready);
    b.fake.framework.sync.fusion.cycle_s = 1e-3;
    run(&b, "tensor-fusion");
    check_sent(1, 1, 1, .0105 + round_s());
    check_sent(2, 2, 1, .0115 + round_s());
    b.request.library = DL_LIB_MPI;
    run(&b, "tensor-fusion");
    const double reduce_s =
        plain(DL_COLL_ALL_REDUCE, 64e6).duration_s + plain(DL_COLL_ALL_REDUCE, 48e6).duration_s;
    assert_true(reduce_s > 1e-3);
    check_sent(0, 0, 1, .0105 + round_s());
    check_sent(1, 1, 1, .0105 + round_s());
    check_sent(2, 2, 1, .0105 + round_s() + reduce_s + round_s());
    dl_arena_free(&b.fake.arena);
}

/* One core a node that carries all messages itself (F-PS-LINK). */
static void carry(int64_t nodes, int64_t devices) {
    static const double sizes[] = {40, 8, 4, 20}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.plan.nodes = nodes, b.fake.plan.devices_per_node = devices;
    b.fake.device.kind = DL_DEVICE_CPU, b.fake.system.inter.kind = "loopback";
    b.request.library = DL_LIB_MPI;
    b.fake.framework.sync.messages.message_s = 1e-4;
    b.fake.framework.sync.replica_s = 1e-5;
    b.request.backward_end_s = 5;
}

/* Half an all-reduce of all 72 B is a push; the server receives `uneven` times the mean. */
static double core_s_per_byte(double uneven) {
    const int64_t nodes = b.fake.plan.nodes;
    const struct dl_collective_request all = {.op = DL_COLL_ALL_REDUCE,
                                              .library = DL_LIB_MPI,
                                              .bytes = 72,
                                              .nodes = nodes > 1 ? nodes : 2,
                                              .ranks_per_node = 1};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&b.fake.system, &all, &t, &err), DL_OK);
    return 0.5 * t.time_s / 72 * (1 + uneven) / 2;
}

/* Variables of 20, 4, 8 and 40 B in turn over the servers: of two, 28 and 44 B; of three, 60, 4 and
 * 8; of five, one stays empty. */
static void variables_on_cores(void **state) {
    (void)state;
    static const struct {
        int64_t nodes;
        double uneven;
    } cases[] = {
        {1, 1}, {2, 44 * 2 / 72.0}, {3, 60 * 3 / 72.0}, {4, 40 * 4 / 72.0}, {5, 40 * 5 / 72.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        carry(cases[i].nodes, 1);
        run(&b, "parameter-server");
        const double s_per_byte = core_s_per_byte(cases[i].uneven),
                     latency_s = cases[i].nodes > 1 ? 1e-4 : 1e-5;
        assert_int_equal(b.sync.message_count, 8);
        for (int m = 0; m < 8; m++) {
            const struct dl_message *got = &b.sync.messages[m];
            const int of = m < 4 ? m : 7 - m;
            const double bytes = b.gradients[of].bytes;
            assert_string_equal(got->name, m < 4 ? "push" : "pull");
            assert_string_equal(got->algorithm, "parameter server (host)");
            assert_string_equal(got->formula, "F-FW-PS");
            assert_string_equal(got->limit, "inter");
            assert_int_equal(got->first, of);
            assert_int_equal(got->returns, m >= 4);
            check_close(got->bytes, bytes, 0);
            check_close(got->latency_s, latency_s, 1e-12);
            check_close(got->duration_s, latency_s + s_per_byte * bytes, 1e-12);
            check_close(got->ready_s, m <= 4 ? 5 : 0, 0);
            check_close(got->tail_s, 0, 0);
        }
        assert_false(b.sync.wait_each || b.sync.update_remote);
        assert_string_equal(b.sync.bound, "parameter-server");
        dl_arena_free(&b.fake.arena);
    }
}

/* The gradients of two devices of a node are summed in its memory: three passes at 200 GB/s for
 * each byte; one device's are not. */
static void keys_of_several_devices(void **state) {
    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        carry(1, devices);
        b.fake.framework.sync.kvstore.big_key_elements = 1e9;
        run(&b, "kvstore-server");
        const double sum = devices > 1 ? 3 / 200e9 : 0, way = core_s_per_byte(1);
        for (int g = 0; g < 4; g++)
            check_close(b.sync.messages[g].duration_s - 1e-4,
                        (2 * way + sum) * b.gradients[g].bytes, 1e-9);
        dl_arena_free(&b.fake.arena);
    }
}

/* Two gradients, a dense weight that others' factors replace, and one more: a bucket ends before
 * the weight, and each message says which gradients it carries. A bucket of just its limit is
 * sent. */
static void factors_between_buckets(void **state) {
    (void)state;
    const double sizes[] = {1e6, 2e6, 4e8, 3e6, 22e6, 4e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    struct dl_layer layers[6];
    for (int i = 0; i < 6; i++) {
        layers[i] = b.fake.workload.layers[0];
        b.gradients[i].layer = 5 - i;
    }
    layers[3].kind = &dl_layer_dense; /* gradients are in backward order */
    layers[3].in.channels = layers[3].out.channels = 1e4;
    b.fake.workload.layers = layers;
    b.fake.plan.batch_per_device_samples = 4;
    run(&b, "sufficient-factors");
    static const struct {
        int first, count;
        double ready_s, bytes;
    } sent[] = {{0, 2, 2, 3e6}, {2, 1, 3, 2.56e6}, {3, 2, 5, 25e6}, {5, 1, 6, 4e6}};
    assert_int_equal(b.sync.message_count, 4);
    for (int i = 0; i < 4; i++) {
        check_sent(i, sent[i].first, sent[i].count, sent[i].ready_s);
        check_close(b.sync.messages[i].bytes, sent[i].bytes, 1e-12);
    }
    dl_arena_free(&b.fake.arena);
}

/* Weights on the first device or on the host, without a way between them. */
static void what_central_weights_need(void **state) {
    (void)state;
    static const double sizes[] = {4e6}, ready[] = {1};
    for (int what = 0; what < 3; what++) {
        make(&b, 1, sizes, ready);
        b.fake.plan.nodes = 1;
        b.fake.framework.sync.messages.weights_on_device = what == 0;
        if (what == 0) b.fake.system.has_intra = false;
        if (what <= 1)
            b.fake.system.host.copy_bandwidth_bytes_per_s =
                b.fake.system.host.pageable_bandwidth_bytes_per_s = NAN;
        else
            b.fake.system.host.memory_bandwidth_bytes_per_s = NAN;
        memset(&err, 0, sizeof err);
        assert_int_equal(
            dl_framework_behaviour_find("central-weights")->synchronize(&b.request, &b.sync, &err),
            DL_ERR_INPUT);
        assert_string_equal(err.message,
                            what == 0 ? "system fake has no bandwidth between the devices of a "
                                        "node: set links.intra or host.copy_bandwidth_bytes_per_s"
                                      : "system fake lacks host.copy_bandwidth_bytes_per_s or "
                                        "host.memory_bandwidth_bytes_per_s, which copies through "
                                        "the host need");
        dl_arena_free(&b.fake.arena);
    }
    const struct dl_framework_behaviour *central = dl_framework_behaviour_find("central-weights");
    make(&b, 1, sizes, ready);
    b.fake.plan.nodes = 1;
    assert_null(central->refuse(&b.fake.system, &b.fake.plan));
    b.fake.plan.nodes = 2;
    assert_string_equal(central->refuse(&b.fake.system, &b.fake.plan),
                        "one process drives the GPUs of one node: use --nodes 1");
    b.fake.plan.nodes = 1, b.fake.device.kind = DL_DEVICE_CPU;
    assert_string_equal(central->refuse(&b.fake.system, &b.fake.plan), "needs GPUs");
    dl_arena_free(&b.fake.arena);
}

/* F-KEY-OWNER over the links of a star: each byte takes their time, whoever owns the key; without
 * them 3 copies of a byte at 0.1 s. */
static void copies_to_an_owner(void **state) {
    (void)state;
    int owner_of[] = {2};
    struct dl_key_owners owners = {.devices = 4,
                                   .per_slot = 1,
                                   .peers = 8,
                                   .owner_of = owner_of,
                                   .star_s_per_byte = 0.25,
                                   .peer_s_per_byte = 0.1};
    check_close(dl_key_owner_copy_s(&owners, 0, 8), 2, 1e-12);
    owners.star_s_per_byte = NAN;
    check_close(dl_key_owner_copy_s(&owners, 0, 8), 2.4, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_sees_its_end),       cmocka_unit_test(cycles_go_by),
        cmocka_unit_test(copies_in_one_kernel),       cmocka_unit_test(a_buffer_holds_its_limit),
        cmocka_unit_test(copies_one_after_the_other), cmocka_unit_test(buffers_of_cpus),
        cmocka_unit_test(a_thread_is_busy),           cmocka_unit_test(variables_on_cores),
        cmocka_unit_test(keys_of_several_devices),    cmocka_unit_test(factors_between_buckets),
        cmocka_unit_test(what_central_weights_need),  cmocka_unit_test(copies_to_an_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
