/* What each behaviour sends (F-FW-*), against cases worked by hand from the sources that
 * data/frameworks/ cites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/check.h"
#include "model/collective/algorithms/coll_copy.h"
#include "model/framework/key_owners.h"
#include "model/framework/servers.h"
#include "model/hardware/topology.h"
#include "tests/fake.h"

struct bench {
    struct dl_fake fake;
    struct dl_gradient gradients[16];
    struct dl_gradient_sync_request request;
    struct dl_gradient_sync sync;
};

/* Gradients of `sizes` bytes, ready at `ready` seconds. */
static void make(struct bench *b, int count, const double *sizes, const double *ready) {
    memset(b, 0, sizeof *b);
    fake_make(&b->fake);
    for (int g = 0; g < count; g++) {
        b->gradients[g] = (struct dl_gradient){.layer = count - 1 - g,
                                               .elements = sizes[g] / 4,
                                               .bytes = sizes[g],
                                               .ready_s = ready[g]};
        b->request.total_bytes += sizes[g];
    }
    b->request.system = &b->fake.system;
    b->request.workload = &b->fake.workload;
    b->request.framework = &b->fake.framework;
    b->request.plan = &b->fake.plan;
    b->request.gradients = b->gradients;
    b->request.gradient_count = count;
    b->request.backward_end_s = ready[count - 1];
    b->request.library = DL_LIB_NCCL;
    b->request.arena = &b->fake.arena;
}

static void run(struct bench *b, const char *behaviour) {
    struct dl_err err = {0};
    const enum dl_code code =
        dl_framework_behaviour_find(behaviour)->synchronize(&b->request, &b->sync, &err);
    if (code != DL_OK) fail_msg("%s: %s", behaviour, err.message);
}

/* Limits 1 MB then 25 MB: 0.6 + 0.6 closes the first; 20 + 10 the second (30 >= 25); 400 is one
 * bucket; 3 is the rest. */
static void ddp_buckets(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {0.6e6, 0.6e6, 20e6, 10e6, 400e6, 3e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    run(&b, "bucketed");
    assert_int_equal(b.sync.message_count, 4);
    const double bytes[] = {1.2e6, 30e6, 400e6, 3e6}, starts[] = {2, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        check_close(b.sync.messages[i].bytes, bytes[i], 1e-12);
        check_close(b.sync.messages[i].ready_s, starts[i], 1e-12);
    }
    assert_false(b.sync.wait_each);
    dl_arena_free(&b.fake.arena);
}

/* 434.2 MB in two equal buckets of 217.1 MB: 1.2 + 30 + 400 fill the first, 3 MB are left. Views
 * are not copied. */
static void equal_buckets(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {0.6e6, 0.6e6, 20e6, 10e6, 400e6, 3e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    b.fake.framework.sync.bucketed.bucket_count = 2;
    run(&b, "bucketed");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 431.2e6, 1e-12);
    check_close(b.sync.device_copy_s, 4 * 434.2e6 / 400e9, 0.01);
    b.fake.framework.sync.bucketed.bucket_views = true;
    memset(&b.sync, 0, sizeof b.sync);
    run(&b, "bucketed");
    check_close(b.sync.device_copy_s, 0, 0);
    dl_arena_free(&b.fake.arena);
}

/* Four trees of small MPI messages. */
static double control_round_s(const struct bench *b) {
    const struct dl_collective_request tree = {.op = DL_COLL_BROADCAST,
                                               .library = DL_LIB_MPI,
                                               .bytes = 64,
                                               .nodes = b->fake.plan.nodes,
                                               .ranks_per_node = b->fake.plan.devices_per_node,
                                               .flows_per_adapter = 1};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&b->fake.system, &tree, &t, NULL), DL_OK);
    return 4 * t.time_s;
}

/* Cycle 5 ms, threshold 64 MB; a control round takes as long as four small trees. The first cycle
 * ends half a cycle after the first gradient: 12.5 ms. It sees gradients ready at 10, 11 and 12 ms
 * (10 + 20 + 30 MB = 60 MB: one group). The next, at 17.5 ms, sees those of 15 and 16 ms: 50 + 20
 * MB exceed 64 MB: two groups. The one of 30 ms is seen at 32.5 ms; 100 MB goes alone. */
static void horovod_cycles(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {10e6, 20e6, 30e6, 50e6, 20e6, 100e6},
                 ready[] = {.010, .011, .012, .015, .016, .030};
    make(&b, 6, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 4);
    const double bytes[] = {60e6, 50e6, 20e6, 100e6}, ends[] = {.0125, .0175, .0175, .0325};
    assert_true(control_round_s(&b) > 0);
    for (int i = 0; i < 4; i++) {
        check_close(b.sync.messages[i].bytes, bytes[i], 1e-12);
        check_close(b.sync.messages[i].ready_s, ends[i] + control_round_s(&b), 1e-9);
    }
    dl_arena_free(&b.fake.arena);
}

/* Without a response cache the coordinator takes 20 us for each tensor of each of 32 ranks. Cycles
 * of 0.5 ms: the first ends at 10.25 ms and finds one tensor, 0.64 ms and a control round, more
 * than the cycle, before its collective. The next, then, sees nothing; the one that ends 0.5 ms
 * later finds the two of 11 and 11.1 ms: 1.28 ms. */
static void horovod_negotiates(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {10e6, 20e6, 30e6}, ready[] = {.010, .011, .0111};
    make(&b, 3, sizes, ready);
    b.fake.framework.sync.fusion.cycle_s = 0.5e-3, b.fake.framework.sync.fusion.request_s = 20e-6;
    b.fake.plan.nodes = 8;
    run(&b, "tensor-fusion");
    const double round_s = control_round_s(&b), first_s = .01025 + .00064 + round_s;
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].ready_s, first_s, 1e-12);
    check_close(b.sync.messages[1].ready_s, first_s + .0005 + .00128 + round_s, 1e-12);
    dl_arena_free(&b.fake.arena);
}

/* 30 and 30 MB in one message: copied into the fusion buffer and back, each tensor by itself (four
 * launches) or all at once (two), 240 MB at 400 GB/s; a message of one tensor is not copied. With
 * MPI each tensor passes to the host and back, at 0.5 ms. */
static void horovod_copies(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {30e6, 30e6, 100e6}, ready[] = {.010, .0101, .020};
    make(&b, 3, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 2);
    const double each_s = b.sync.messages[0].duration_s, alone_s = b.sync.messages[1].duration_s;
    b.fake.framework.sync.fusion.batched_copies = true;
    run(&b, "tensor-fusion");
    const double batched_s = b.sync.messages[0].duration_s;
    check_close(b.sync.messages[1].duration_s, alone_s, 1e-12);
    struct dl_message plain = {0};
    struct dl_err err = {0};
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 60e6, &plain, &err), DL_OK);
    check_close(batched_s - plain.duration_s, 240e6 / 400e9, 0.05);
    assert_true(each_s > batched_s);
    check_close(b.sync.device_copy_s, 0, 0);
    b.fake.framework.sync.messages.message_s = 0.5e-3;
    run(&b, "tensor-fusion"); /* NCCL: no copies to the host */
    check_close(b.sync.messages[0].duration_s, batched_s, 1e-12);
    b.request.library = DL_LIB_MPI;
    run(&b, "tensor-fusion");
    const double host_s = b.sync.messages[0].duration_s;
    b.fake.framework.sync.messages.message_s = 0;
    run(&b, "tensor-fusion");
    check_close(host_s - b.sync.messages[0].duration_s, 4 * 0.5e-3, 1e-9);
    dl_arena_free(&b.fake.arena);
}

/* Compressed gradients, 160 MB in fp32: in half the width (Horovod's Compression.fp16, DDP's hook)
 * 80 MB, of 1 bit 5 MB, and the part of the time that bytes take falls with them. */
static void compressed_gradients(void **state) {
    (void)state;
    struct bench b;
    const double widths[] = {4, 2, 0.125};
    double bandwidth_s[3];
    for (int i = 0; i < 3; i++) {
        const double size = 40e6 * widths[i], ready = 1;
        make(&b, 1, &size, &ready);
        b.request.library = DL_LIB_MPI;
        b.request.parameter_bytes = 160e6;
        run(&b, i < 2 ? "per-layer" : "quantized");
        check_close(b.sync.messages[0].bytes, size, 1e-12);
        bandwidth_s[i] = b.sync.messages[0].bandwidth_s;
        dl_arena_free(&b.fake.arena);
    }
    check_close(bandwidth_s[1] / bandwidth_s[0], 1.0 / 2, 0.01);
    check_close(bandwidth_s[2] / bandwidth_s[0], 1.0 / 32, 0.05);
}

/* The width is the plan's: of each parameter fp32 sends 4 bytes, a 1-bit code an eighth, fp16 two.
 */
static void widths_of_a_plan(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_prediction p;
    fake_make(&f);
    const double parameters = f.workload.parameters;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.comm_bytes, 4 * parameters, 1e-12);
    f.framework.sync.gradient_bytes = 0.125;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.comm_bytes, parameters / 8, 1e-12);
    f.framework.sync.gradient_bytes = 4, f.framework.sync.mixed_gradient_bytes = 2;
    f.rate.precision = DL_FP16, f.plan.precision = DL_FP16;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.comm_bytes, 2 * parameters, 1e-12);
    dl_arena_free(&f.arena);
}

/* pack_bytes = 0: one message after the last gradient. 50 MB: a new pack begins when the previous
 * exceeds it: 30 + 30 | 10. */
static void packs(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {30e6, 30e6, 10e6}, ready[] = {1, 2, 3};
    make(&b, 3, sizes, ready);
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 1);
    check_close(b.sync.messages[0].bytes, 70e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 3, 1e-12);
    b.fake.framework.sync.concatenated.pack_bytes = 50e6;
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 60e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 2, 1e-12);
    dl_arena_free(&b.fake.arena);
}

/* Six variables in packs of four, counted from the first one: the pack of the last two goes first,
 * when the second of them is ready; the others follow when all are. Two packs of 30 and 40 MB are
 * copied in and out (4 x 70 MB at 400 GB/s and a launch); in place nothing is, and a division of
 * its own reads and writes all once. */
static void packs_of_variables(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {10e6, 20e6, 10e6, 10e6, 10e6, 10e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    b.fake.framework.sync.concatenated.pack_tensors = 4;
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 30e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 2, 1e-12);
    assert_int_equal(b.sync.messages[1].first, 2);
    check_close(b.sync.messages[1].bytes, 40e6, 1e-12);
    check_close(b.sync.messages[1].ready_s, 6, 1e-12);
    check_close(b.sync.device_copy_s, 4 * 70e6 / 400e9, 0.01);
    b.fake.framework.sync.concatenated.in_place = true;
    run(&b, "concatenated");
    check_close(b.sync.device_copy_s, 0, 0);
    b.fake.framework.sync.concatenated.divides = true;
    run(&b, "concatenated");
    check_close(b.sync.device_copy_s, 2 * 70e6 / 400e9, 0.02);
    dl_arena_free(&b.fake.arena);
}

/* Four variables on two servers, round-robin in registration order (the reverse of backward order):
 * 10, 10, 10, 70 MB: server 0 has the first and the third, server 1 the others. Two workers of one
 * node each, of which half of a worker's bytes and one of two workers' stay on the node; the
 * adapter has 1 GB/s: 0.5 ns a byte at the worker, 1 ns at the server (sums in host memory of 200
 * GB/s take 3 bytes, 0.015 ns). Copies to the host, over a link that two GPUs share, take 1/6 ns.
 * Push of 70 MB, ready at 1 s: at the worker from 1 + 70/6 ms for 35 ms, at the server for 70 ms.
 */
static void parameter_servers(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {70e6, 10e6, 10e6, 10e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.system.inter.bandwidth_bytes_per_s = 1e9;
    run(&b, "parameter-server");
    assert_int_equal(b.sync.message_count, 8);
    const struct dl_message *push = &b.sync.messages[0];
    check_close(push->ready_s, 1 + 70e6 / 6e9, 1e-12);
    check_close(push->duration_s, 0.035, 1e-9);
    check_close(push->tail_s, 0.035, 1e-9);
    assert_string_equal(push->limit, "inter");
    assert_string_equal(push->formula, "F-PS-QUEUE");
    assert_true(b.sync.wait_each && b.sync.update_remote);
    /* Pulls come in forward order, after the last push: ready at 4 s, copied for 10/6 ms, pushed
     * for 10 ms, updated with 30 MB of traffic in 0.15 ms. The 10 MB of server 0 go first; the 70
     * MB on server 1 follow the 10 MB there, and then pass to the devices. */
    const double barrier_s = 4 + 10e6 / 6e9 + 10e6 * 1e-9 + 30e6 / 200e9;
    const struct dl_message *pull = &b.sync.messages[4];
    assert_int_equal(pull[0].first, 3);
    check_close(pull[0].ready_s, barrier_s, 1e-9);
    check_close(pull[3].ready_s + pull[3].duration_s + pull[3].tail_s,
                barrier_s + 0.010 + 0.070 + 70e6 / 6e9, 1e-9);
    /* One server: the worker on node 1 has none of its own, so that all its bytes leave. */
    b.fake.plan.servers = 1;
    run(&b, "parameter-server");
    check_close(b.sync.messages[0].duration_s, 0.070, 1e-9);
    dl_arena_free(&b.fake.arena);
}

/* Rates of servers by hand: 4 nodes of 4 devices, 8 servers, two on each node. Memory of 1 TB/s
 * never sets the pace. One worker a node: 3/4 of its bytes leave over 2 GB/s, 0.375 ns; its
 * receiving thread takes 1 ns. A server gets 3 workers' bytes over an adapter that two share: 3 ns,
 * its thread 4 ns (receives at 1 GB/s) and sends for 4 workers at 8 GB/s: 0.5 ns, the adapter 3. */
static void server_rates(void **state) {
    (void)state;
    struct bench b;
    struct dl_err err = {0};
    struct dl_servers servers;
    const double size = 4e6, ready = 1;
    make(&b, 1, &size, &ready);
    b.fake.plan.nodes = 4, b.fake.plan.devices_per_node = 4, b.fake.plan.servers = 8;
    b.fake.system.inter.bandwidth_bytes_per_s = 2e9;
    b.fake.system.host.memory_bandwidth_bytes_per_s = 1e12;
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.framework.sync.messages.message_s = 1e-4;
    b.fake.framework.sync.messages.message_copy_bytes_per_s = 1e9;
    b.fake.framework.sync.messages.send_bytes_per_s = 8e9;
    assert_int_equal(dl_servers_of(&b.request, &servers, &err), DL_OK);
    assert_int_equal(servers.count, 8);
    check_close(servers.worker_push_s, 0.375e-9, 1e-9);
    check_close(servers.worker_pull_s, 1e-9, 1e-9);
    check_close(servers.server_push_s, 4e-9, 1e-9);
    check_close(servers.server_pull_s, 3e-9, 1e-9);
    check_close(servers.server_message_s, 4e-4, 1e-9);
    /* A worker for each device: its four share the adapter (1.5 ns); servers get 12 of 16 from
     * other nodes: 12 ns, and the thread takes 16. Adding at 0.5 GB/s takes it 32. */
    b.fake.framework.sync.messages.worker_per_device = true;
    assert_int_equal(dl_servers_of(&b.request, &servers, &err), DL_OK);
    check_close(servers.worker_push_s, 1.5e-9, 1e-9);
    check_close(servers.server_push_s, 16e-9, 1e-9);
    b.fake.framework.sync.messages.sum_bytes_per_s = 0.5e9;
    assert_int_equal(dl_servers_of(&b.request, &servers, &err), DL_OK);
    check_close(servers.server_push_s, 32e-9, 1e-9);
    /* Servers on nodes of their own: everything leaves, one of them has an adapter. */
    b.fake.framework.sync.messages.servers_colocated = false;
    assert_int_equal(dl_servers_of(&b.request, &servers, &err), DL_OK);
    check_close(servers.worker_push_s, 2e-9, 1e-9);
    check_close(servers.server_pull_s, 8e-9, 1e-9);
    dl_arena_free(&b.fake.arena);
}

/* Registration order 8, 4, 4, 4, 20 MB on 2 servers. In turn: 0 1 0 1 0. Fewest bytes: 8 to server
 * 0, 4 and 4 to server 1, then 4 to server 0 (8 = 8) and 20 to server 1 (12 > 8). Hashed on 4
 * servers: 9973 mod 4 = 1: 0 1 2 3 0, those of 5e6 elements on all. */
static void assignment_of_variables(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {20e6, 4e6, 4e6, 4e6, 8e6}, ready[] = {1, 2, 3, 4, 5};
    static const int expected[][5] = {{0, 1, 0, 1, 0}, {0, 1, 1, 0, 1}, {0, 1, 2, 3, -1}};
    make(&b, 5, sizes, ready);
    for (int how = DL_SERVERS_ROUND_ROBIN; how <= DL_SERVERS_HASHED; how++) {
        const struct dl_servers servers = {.count = how == DL_SERVERS_HASHED ? 4 : 2};
        b.fake.framework.sync.messages.server_assignment = how;
        const int *server_of =
            dl_servers_assign(&b.request, &servers, how == DL_SERVERS_HASHED ? 5e6 : NAN);
        for (int k = 0; k < 5; k++) assert_int_equal(server_of[4 - k], expected[how][k]);
    }
    dl_arena_free(&b.fake.arena);
}

/* One node of four: 40 MB has one owner, three copies of it at 120 GB/s take 1 ms, and 1 ms back;
 * it adds 5 x 40 MB and updates with 5 x 40 MB (momentum: gradient, weight and momentum in, two
 * out), at 400 GB/s and a kernel's latency. */
static void mxnet_device(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {40e6}, ready[] = {1};
    make(&b, 1, sizes, ready);
    b.fake.plan.nodes = 1;
    run(&b, "kvstore-device");
    const struct dl_message *m = &b.sync.messages[0];
    check_close(m->ready_s + m->duration_s + m->tail_s - 1, 2e-3 + 2 * 200e6 / 400e9, 0.02);
    /* four owners work side by side */
    check_close(m->duration_s, 2e-3 / 4, 1e-12);
    assert_true(b.sync.wait_each && b.sync.update_remote);
    dl_arena_free(&b.fake.arena);
}

/* Sixteen GPUs on PCIe: each has at most eight peers, opened in order, so that those from 8 on
 * reach each other, 7 of 15, through the host. A copy takes 1 ns a byte between peers, 2 / 12
 * through the host's links. Arrays of 40, 30, 20, 10 MB on two owners: 40 to GPU 0, 30 to 1, 20 to
 * 1, 10 to 0 (50 = 50, the first). */
static void owners_of_keys(void **state) {
    (void)state;
    struct bench b;
    struct dl_err err = {0};
    struct dl_key_owners owners;
    const double sizes[] = {10e6, 20e6, 30e6, 40e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.plan.nodes = 1, b.fake.plan.devices_per_node = 2;
    b.fake.system.intra.kind = "pcie3", b.fake.system.intra.bandwidth_bytes_per_s = 1e9;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, &err), DL_OK);
    static const int expected[] = {0, 1, 1, 0};
    for (int g = 0; g < 4; g++) assert_int_equal(owners.owner_of[g], expected[g]);
    /* both on one slot: one after the other, and the sum (3 passes) */
    const double first_s = dl_key_owner_pass(&owners, 0, 10e6, 1, 1),
                 second_s = dl_key_owner_pass(&owners, 1, 20e6, 1, 1);
    check_close(first_s - 1, 10e-3 + 10e6 * owners.sum_s, 1e-9);
    check_close(second_s - 1, 30e-3 + 20e6 * owners.sum_s, 1e-9);
    b.fake.plan.devices_per_node = 16;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, &err), DL_OK);
    assert_int_equal(dl_key_owner_staged(&owners, 7), 0);
    assert_int_equal(dl_key_owner_staged(&owners, 8), 7);
    owners.owner_of[0] = 15;
    check_close(dl_key_owner_copy_s(&owners, 0, 10e6), 10e6 * (8e-9 + 7 * 2 / 12e9), 1e-9);
    /* behind NVSwitch there is no such limit */
    b.fake.system.intra.kind = "nvswitch";
    assert_int_equal(dl_key_owners_of(&b.request, &owners, &err), DL_OK);
    assert_int_equal(dl_key_owner_staged(&owners, 15), 0);
    /* two sockets: 8 copies of each array cross the bridge of 2 GB/s: 40 MB in 160 ms there, and
     * as long back, but the two directions serve two arrays at a time */
    b.fake.system.intra.kind = "pcie3", b.fake.system.intra.peer_group = 8;
    b.fake.system.intra.bandwidth_bytes_per_s = 1e12;
    b.fake.system.intra.cross_bandwidth_bytes_per_s = 2e9;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, &err), DL_OK);
    check_close(dl_key_owner_pass(&owners, 3, 40e6, 2, 0), 0.160 + 40e6 * owners.sum_s, 1e-9);
    dl_arena_free(&b.fake.arena);
}

/* Keys of 4e6 bytes and more (1e6 elements) are split over both servers, the others sit on server
 * key * 9973 mod 2 = key mod 2. Two nodes of one GPU: the 40 MB, ready at 1 s, are copied to the
 * host in 10/3 ms; half of them leave at 1 GB/s, 20 ms, and each server takes 20 MB of one worker
 * from the other node. Updated (120 MB at 200 GB/s), they come back in 20 ms and go up. */
static void mxnet_servers(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {40e6, 2e6, 2e6, 2e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.plan.devices_per_node = 1;
    b.fake.system.inter.bandwidth_bytes_per_s = 1e9;
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.framework.sync.messages.server_assignment = DL_SERVERS_HASHED;
    b.fake.framework.sync.kvstore.host_staged = true;
    run(&b, "kvstore-server");
    assert_int_equal(b.sync.message_count, 4);
    const struct dl_message *m = &b.sync.messages[0];
    check_close(m->duration_s, 0.020, 1e-9);
    check_close(m->ready_s + m->duration_s + m->tail_s,
                1 + 2 * 40e6 / 12e9 + 0.020 + 120e6 / 200e9 + 0.020, 1e-9);
    assert_string_equal(m->limit, "inter");
    assert_true(b.sync.wait_each && b.sync.update_remote);
    dl_arena_free(&b.fake.arena);
}

/* Two keys of 60 MB, ready at once, on the two GPUs of a node: each owner receives one copy at 120
 * GB/s (0.5 ms) and its sum leaves at 12 GB/s in 5 ms. Serially the second is summed when the first
 * has left, and leaves one sum later than otherwise. */
static void mxnet_serial_keys(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {60e6, 60e6}, ready[] = {1, 1};
    double usable_s[2];
    for (int serial = 0; serial < 2; serial++) {
        make(&b, 2, sizes, ready);
        b.fake.plan.devices_per_node = 2;
        b.fake.system.inter.bandwidth_bytes_per_s = 1e12;
        b.fake.system.host.memory_bandwidth_bytes_per_s = 1e13;
        b.fake.framework.sync.kvstore.serial_keys = serial;
        run(&b, "kvstore-server");
        const struct dl_message *m = &b.sync.messages[1];
        usable_s[serial] = fmax(b.sync.messages[0].ready_s + b.sync.messages[0].duration_s, 1) +
                           m->duration_s + m->tail_s;
    }
    struct dl_key_owners owners;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    check_close(usable_s[1] - usable_s[0], 0.5e-3 + 60e6 * owners.sum_s, 1e-6);
    dl_arena_free(&b.fake.arena);
}

/* Cores that carry all messages: the library's push and pull of all 46 MB was measured between two
 * nodes, 0.46 s. Its worker sends and receives all, the fuller server 48/46 of its share: (1 +
 * 48/46) / 2 x 10 ns a byte, push and pull one after the other, all of it after backward; so too
 * with one worker (imbalance 1). */
static void mxnet_servers_on_the_workers_core(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {40e6, 2e6, 2e6, 2e6}, ready[] = {1, 2, 3, 4};
    struct dl_coll_sample samples[] = {{.bytes = 46e6, .time_s = 0.46}};
    struct dl_coll_measured measured = {.library = "ps-lite",
                                        .operation = "all_reduce",
                                        .nodes = 2,
                                        .ranks = 2,
                                        .samples = samples,
                                        .sample_count = 1};
    make(&b, 4, sizes, ready);
    b.fake.device.kind = DL_DEVICE_CPU, b.fake.device.unit_count = 1;
    b.fake.system.inter.kind = "loopback";
    b.fake.system.collectives = &measured, b.fake.system.collective_count = 1;
    b.request.library = DL_LIB_PSLITE;
    b.fake.plan.nodes = 2, b.fake.plan.devices_per_node = 1;
    b.fake.framework.sync.messages.message_s = 1e-4;
    run(&b, "kvstore-server");
    check_close(b.sync.messages[0].duration_s, 1e-4 + 0.4 * (1 + 48.0 / 46) / 2, 1e-6);
    check_close(b.sync.messages[0].ready_s, 4, 1e-12);
    assert_true(b.sync.messages[0].tail_s == 0 && !b.sync.wait_each && !b.sync.update_remote);
    b.fake.plan.nodes = 1;
    run(&b, "kvstore-server");
    check_close(b.sync.messages[0].duration_s, 1e-4 + 0.4, 1e-6);
    /* TensorFlow's servers: one of two holds the 40 MB and a 2 MB variable, 42 / 23 of the mean;
     * pushes and pulls each half of it. */
    b.fake.plan.nodes = 2;
    run(&b, "parameter-server");
    check_close(b.sync.messages[0].bandwidth_s, 0.2 * (1 + 42.0 / 23) / 2, 1e-6);
    check_close(b.sync.messages[0].ready_s, 4, 1e-12);
    dl_arena_free(&b.fake.arena);
}

/* Weights on the host: every GPU of four reads and returns all bytes over links that two share: 2
 * bytes / 12e9 a byte. */
static void keras_central_weights(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    run(&b, "central-weights");
    assert_int_equal(b.sync.message_count, 4);
    check_close(b.sync.messages[0].bandwidth_s, 60e6 * 2 / 12e9, 1e-12);
    check_close(b.sync.messages[2].bandwidth_s, 12e6 * 2 / 12e9, 1e-12); /* first layer first */
    assert_non_null(dl_framework_behaviour_find("central-weights")
                        ->refuse(&b.fake.system, &(struct dl_plan){.nodes = 2}));
    dl_arena_free(&b.fake.arena);
}

/* Weights on device 0 of a square of NVLinks 0-1, 0-2, 1-3, 2-3: device 3, beyond the peer group of
 * 3, is reached through the host and the bridge of 6 GB/s, which sets the pace: 60 MB take 10 ms.
 * The process issues 2 x 2 tensors to two neighbours at 0.1 ms and to device 3 at 0.3 ms: 4 x 0.5
 * ms. Without links all devices but one of the group are apart. */
static void keras_weights_on_a_device(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    struct dl_edge edges[] = {{0, 1, 1, NULL}, {0, 2, 1, NULL}, {1, 3, 1, NULL}, {2, 3, 1, NULL}};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    struct dl_link *intra = &b.fake.system.intra;
    intra->edges = edges, intra->edge_count = 4, intra->peer_group = 3,
    intra->cross_bandwidth_bytes_per_s = 6e9;
    intra->peer_to_peer = true;
    dl_topology_fill(intra, 4);
    b.fake.framework.sync.messages.weights_on_device = true;
    b.fake.framework.sync.messages.message_s = 1e-4,
    b.fake.framework.sync.messages.staged_message_s = 3e-4;
    run(&b, "central-weights");
    assert_int_equal(b.sync.message_count, 4);
    check_close(b.sync.messages[0].bandwidth_s, 10e-3, 1e-12);
    check_close(b.sync.messages[2].bandwidth_s, 2e-3, 1e-12); /* first layer first */
    assert_string_equal(b.sync.messages[0].formula, "F-COPY-STAR");
    check_close(b.sync.host_s, 4 * 0.5e-3, 1e-12);
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 1);
    intra->edge_count = 0, intra->peer_group = 2;
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 2);
    intra->peer_to_peer = false;
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 3);
    dl_arena_free(&b.fake.arena);
}

/* NCCL 1 on a chain of NVLinks 0-1-2-3, peer groups of two: the ring closes from 3 to 0 through the
 * host and the bridge of 6 GB/s, which sets the pace: 60 MB x 6/4 / 6 GB/s = 15 ms and 6 hops of 2
 * us. Tensors go one by one as they come, nothing is packed. */
static void a_ring_in_order(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    struct dl_edge edges[] = {
        {0, 1, 1, NULL}, {1, 2, 1, NULL}, {2, 3, 1, NULL}, {0, 2, 1, NULL}, {1, 3, 1, NULL}};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    struct dl_link *intra = &b.fake.system.intra;
    intra->edges = edges, intra->edge_count = 5, intra->peer_group = 2,
    intra->cross_bandwidth_bytes_per_s = 6e9;
    dl_topology_fill(intra, 4);
    b.request.library = DL_LIB_COPY;
    b.fake.framework.sync.copy_pattern = "ring";
    b.fake.framework.sync.concatenated.pack_bytes = 1,
    b.fake.framework.sync.overlaps_backward = true;
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    assert_string_equal(b.sync.messages[0].formula, "F-COPY-RING");
    check_close(b.sync.messages[0].ready_s, 1, 1e-12);
    check_close(b.sync.messages[0].bandwidth_s, 15e-3, 1e-12);
    check_close(b.sync.messages[0].latency_s, 12e-6, 1e-12);
    check_close(b.sync.device_copy_s, 0, 0);
    dl_arena_free(&b.fake.arena);
}

/* Two tensors of one layer go together. */
static void caffe_layers(void **state) {
    (void)state;
    struct bench b;
    const double sizes[] = {4e3, 16e6, 8e6}, ready[] = {1, 1, 2};
    make(&b, 3, sizes, ready);
    b.gradients[0].layer = b.gradients[1].layer = 1;
    b.gradients[2].layer = 0;
    run(&b, "per-layer");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 16.004e6, 1e-12);
    assert_false(b.sync.wait_each);
    dl_arena_free(&b.fake.arena);
}

/* Simulated time that does not advance is an error, not a loop without end. */
static void cycles_that_do_not_advance(void **state) {
    (void)state;
    const double sizes[] = {10e6, 20e6}, ready[] = {.010, 1e12};
    const double cycles_s[] = {NAN, 0, 1e-6};
    for (int i = 0; i < 3; i++) {
        struct bench b;
        struct dl_err err = {0};
        make(&b, 2, sizes, ready);
        b.fake.framework.sync.fusion.cycle_s = cycles_s[i];
        if (i < 2) b.gradients[1].ready_s = .012;
        assert_int_equal(
            dl_framework_behaviour_find("tensor-fusion")->synchronize(&b.request, &b.sync, &err),
            i < 2 ? DL_ERR_INPUT : DL_OK);
        if (i < 2) assert_non_null(strstr(err.message, "never reach a gradient"));
        b.gradients[1].ready_s = NAN;
        assert_int_equal(
            dl_framework_behaviour_find("tensor-fusion")->synchronize(&b.request, &b.sync, &err),
            DL_ERR_INPUT);
        dl_arena_free(&b.fake.arena);
    }
}

static void every_row_is_complete(void **state) {
    (void)state;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *row = dl_framework_behaviours[i];
        assert_true(row->name != NULL && row->summary != NULL && row->source != NULL &&
                    row->synchronize != NULL);
        assert_ptr_equal(dl_framework_behaviour_find(row->name), row);
        if (row->old_name != NULL)
            assert_ptr_equal(dl_framework_behaviour_find(row->old_name), row);
        /* what it requires are numbers that a file may leave out */
        for (int k = 0; row->required != NULL && row->required[k] != NULL; k++) {
            const struct dl_field *field = dl_framework_schema.fields;
            while (field->key != NULL && strcmp(field->key, row->required[k]) != 0) field++;
            assert_non_null(field->key);
            assert_true(field->type == DL_FIELD_NUMBER && !field->has_fallback && !field->required);
        }
    }
    assert_null(dl_framework_behaviour_find("no such"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ddp_buckets),
        cmocka_unit_test(equal_buckets),
        cmocka_unit_test(horovod_cycles),
        cmocka_unit_test(horovod_negotiates),
        cmocka_unit_test(horovod_copies),
        cmocka_unit_test(cycles_that_do_not_advance),
        cmocka_unit_test(compressed_gradients),
        cmocka_unit_test(widths_of_a_plan),
        cmocka_unit_test(packs),
        cmocka_unit_test(parameter_servers),
        cmocka_unit_test(packs_of_variables),
        cmocka_unit_test(server_rates),
        cmocka_unit_test(assignment_of_variables),
        cmocka_unit_test(mxnet_device),
        cmocka_unit_test(owners_of_keys),
        cmocka_unit_test(mxnet_serial_keys),
        cmocka_unit_test(mxnet_servers),
        cmocka_unit_test(mxnet_servers_on_the_workers_core),
        cmocka_unit_test(keras_central_weights),
        cmocka_unit_test(keras_weights_on_a_device),
        cmocka_unit_test(a_ring_in_order),
        cmocka_unit_test(caffe_layers),
        cmocka_unit_test(every_row_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
