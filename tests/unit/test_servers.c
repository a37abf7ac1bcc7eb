/* Parameter servers and MXNet's KVStore (F-PS-QUEUE, F-KEY-OWNER, F-FW-PS, F-FW-KVSTORE-*), against
 * cases worked by hand. */
#include "tests/check.h"
#include "model/framework/key_owners.h"
#include "model/framework/servers.h"
#include "tests/gradient_bench.h"

/* Four variables on two servers, round-robin in registration order (the reverse of backward order):
 * 10, 10, 10, 70 MB: server 0 has the first and the third, server 1 the others. Two workers of one
 * node each, of which half of a worker's bytes and one of two workers' stay on the node; the
 * adapter has 1 GB/s: 0.5 ns a byte at the worker, 1 ns at the server (sums in host memory of 200
 * GB/s take 3 bytes, 0.015 ns). Copies to the host, over a link that two GPUs share, take 1/6 ns.
 * Push of 70 MB, ready at 1 s: at the worker from 1 + 70/6 ms for 35 ms, at the server for 70 ms,
 * half of it for the other worker. F-PS-SKEW: pulled, the 70 MB have left for the last worker 50 ms
 * after the barrier (15 ms of 30 MB, 35) and arrived after 80 (10 MB and 70 at the server): the
 * other has them 30 ms earlier. Where it then pushes as much earlier, the server ends 40 ms after
 * the last begins.
 */
static void parameter_servers(void **state) {
    struct bench b;
    const double sizes[] = {70e6, 10e6, 10e6, 10e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.system.inter.bandwidth_bytes_per_s = 1e9;
    /* a partitioner splits 17.5 million elements over both servers, which then keep up */
    b.fake.framework.sync.big_key_elements = 1e7;
    run(&b, "parameter-server");
    check_close(b.sync.messages[0].tail_s, 0, 1e-9);
    b.fake.framework.sync.big_key_elements = NAN;
    memset(&b.sync, 0, sizeof b.sync);
    b.request.lead_s = 0.030;
    run(&b, "parameter-server");
    assert_int_equal(b.sync.message_count, 8);
    const struct dl_message *push = &b.sync.messages[0];
    check_close(push->ready_s, 1 + 70e6 / 6e9, 1e-12);
    check_close(push->duration_s, 0.035, 1e-9);
    check_close(push->tail_s, 0.005, 1e-9);
    assert_string_equal(push->limit, "inter");
    assert_string_equal(push->formula, "F-PS-QUEUE");
    assert_true(b.sync.per_layer_wait && b.sync.update_remote);
    /* Pulls come in forward order, after the last push: ready at 4 s, copied for 10/6 ms, pushed
     * for 5 ms behind the other worker's, updated with 30 MB of traffic in 0.15 ms. The 10 MB of
     * server 0 go first; the 70 MB on server 1 follow the 10 MB there, and then pass to the
     * devices. */
    const double barrier_s = 4 + 10e6 / 6e9 + 5e6 * 1e-9 + 30e6 / 200e9;
    const struct dl_message *pull = &b.sync.messages[4];
    assert_int_equal(pull[0].first, 3);
    check_close(pull[0].ready_s, barrier_s, 1e-9);
    check_close(pull[3].ready_s + pull[3].duration_s + pull[3].tail_s,
                barrier_s + 0.010 + 0.070 + 70e6 / 6e9, 1e-9);
    check_close(pull[3].lead_s, 0.030, 1e-9);
    /* One server: the worker on node 1 has none of its own, so that all its bytes leave. */
    b.fake.plan.parameter_servers.count = 1;
    run(&b, "parameter-server");
    check_close(b.sync.messages[0].duration_s, 0.070, 1e-9);
}

/* Rates of servers by hand: 4 nodes of 4 devices, 8 servers, two on each node. Memory of 1 TB/s
 * never sets the pace. One worker a node: 3/4 of its bytes leave over 2 GB/s, 0.375 ns; its
 * receiving thread takes 1 ns. A server gets 3 workers' bytes over an adapter that two share: 3 ns,
 * its thread 4 ns (receives at 1 GB/s) and sends for 4 workers at 8 GB/s: 0.5 ns, the adapter 3. */
static void server_rates(void **state) {
    struct bench b;
    struct dl_servers servers;
    const double size = 4e6, ready = 1;
    make(&b, 1, &size, &ready);
    b.fake.plan.nodes = 4, b.fake.plan.devices_per_node = 4,
    b.fake.plan.parameter_servers.count = 8;
    b.fake.system.inter.bandwidth_bytes_per_s = 2e9;
    b.fake.system.host.memory_bandwidth_bytes_per_s = 1e12;
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.framework.sync.messages.message_s = 1e-4;
    b.fake.framework.sync.messages.message_copy_bytes_per_s = 1e9;
    b.fake.framework.sync.messages.send_bytes_per_s = 8e9;
    assert_int_equal(dl_servers_of(&b.request, &servers, NULL), DL_OK);
    assert_int_equal(servers.count, 8);
    check_close(servers.worker_push_s_per_byte, 0.375e-9, 1e-9);
    check_close(servers.worker_pull_s_per_byte, 1e-9, 1e-9);
    check_close(servers.server_push_s_per_byte, 4e-9, 1e-9);
    check_close(servers.server_pull_s_per_byte, 3e-9, 1e-9);
    check_close(servers.server_message_s, 4e-4, 1e-9);
    check_close(servers.flow_s_per_byte, 0, 0);
    b.fake.framework.sync.messages.flow_bytes_per_s = 0.5e9;
    assert_int_equal(dl_servers_of(&b.request, &servers, NULL), DL_OK);
    check_close(servers.flow_s_per_byte, 2e-9, 1e-12);
    /* Adding at 0.5 GB/s takes a server's thread 2 ns for each of four workers. */
    b.fake.framework.sync.messages.sum_bytes_per_s = 0.5e9;
    assert_int_equal(dl_servers_of(&b.request, &servers, NULL), DL_OK);
    check_close(servers.server_push_s_per_byte, 8e-9, 1e-9);
    /* Servers on nodes of their own: everything leaves, one of them has an adapter. */
    b.fake.framework.sync.messages.servers_colocated = false;
    assert_int_equal(dl_servers_of(&b.request, &servers, NULL), DL_OK);
    check_close(servers.worker_push_s_per_byte, 0.5e-9, 1e-9);
    check_close(servers.server_pull_s_per_byte, 2e-9, 1e-9);
}

/* Registration order 8, 4, 4, 4, 20 MB on 2 servers. In turn: 0 1 0 1 0. Fewest bytes: 8 to server
 * 0, 4 and 4 to server 1, then 4 to server 0 (8 = 8) and 20 to server 1 (12 > 8). Hashed on 4
 * servers: 9973 mod 4 = 1: 0 1 2 3 0, those of 5e6 elements on all. */
static void assignment_of_variables(void **state) {
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
}

/* One node of four: 40 MB has one owner, three copies of it at 120 GB/s take 1 ms, and 1 ms back;
 * it adds 5 x 40 MB and updates with 5 x 40 MB (momentum: gradient, weight and momentum in, two
 * out), at 400 GB/s and a kernel's latency. */
static void mxnet_device(void **state) {
    struct bench b;
    const double sizes[] = {40e6}, ready[] = {1};
    make(&b, 1, sizes, ready);
    b.fake.plan.nodes = 1;
    run(&b, "kvstore-device");
    const struct dl_message *m = &b.sync.messages[0];
    check_close(m->ready_s + m->duration_s + m->tail_s - 1, 2e-3 + 2 * 200e6 / 400e9, 0.02);
    /* four owners work side by side */
    check_close(m->duration_s, 2e-3 / 4, 1e-12);
    assert_true(b.sync.per_layer_wait && b.sync.update_remote);
}

/* Sixteen GPUs on PCIe: each has at most eight peers, opened in order, so that those from 8 on
 * reach each other, 7 of 15, through the host. A copy takes 1 ns a byte between peers, 2 / 12
 * through the host's links. Arrays of 40, 30, 20, 10 MB on two owners: 40 to GPU 0, 30 to 1, 20 to
 * 1, 10 to 0 (50 = 50, the first). */
static void owners_of_keys(void **state) {
    struct bench b;
    struct dl_key_owners owners;
    const double sizes[] = {10e6, 20e6, 30e6, 40e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.plan.nodes = 1, b.fake.plan.devices_per_node = 2;
    b.fake.system.intra.kind = "pcie3", b.fake.system.intra.bandwidth_bytes_per_s = 1e9;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    static const int expected[] = {0, 1, 1, 0};
    for (int g = 0; g < 4; g++) assert_int_equal(owners.owner_of[g], expected[g]);
    /* both on one slot: one after the other, and the sum (3 passes) */
    const double first_s = dl_key_owner_pass(&owners, 0, 10e6, 1, 1),
                 second_s = dl_key_owner_pass(&owners, 1, 20e6, 1, 1);
    check_close(first_s - 1, 10e-3 + 10e6 * owners.sum_s_per_byte, 1e-9);
    check_close(second_s - 1, 30e-3 + 20e6 * owners.sum_s_per_byte, 1e-9);
    b.fake.plan.devices_per_node = 16;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    assert_int_equal(dl_key_owner_staged(&owners, 7), 0);
    assert_int_equal(dl_key_owner_staged(&owners, 8), 7);
    owners.owner_of[0] = 15;
    check_close(dl_key_owner_copy_s(&owners, 0, 10e6), 10e6 * (8e-9 + 7 * 2 / 12e9), 1e-9);
    /* behind NVSwitch there is no such limit */
    b.fake.system.intra.kind = "nvswitch";
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    assert_int_equal(dl_key_owner_staged(&owners, 15), 0);
    /* two sockets: 8 copies of each array cross the bridge of 2 GB/s: 40 MB in 160 ms there, and
     * as long back, but the two directions serve two arrays at a time */
    b.fake.system.intra.kind = "pcie3", b.fake.system.intra.peer_group = 8;
    b.fake.system.intra.bandwidth_bytes_per_s = 1e12;
    b.fake.system.intra.cross_bandwidth_bytes_per_s = 2e9;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    check_close(dl_key_owner_pass(&owners, 3, 40e6, 2, 0), 0.160 + 40e6 * owners.sum_s_per_byte,
                1e-9);
}

/* Keys of 4e6 bytes and more (1e6 elements) are split over both servers, the others sit on server
 * key * 9973 mod 2 = key mod 2. Two nodes of one GPU: the 40 MB, ready at 1 s, are copied to the
 * host in 10/3 ms; half of them leave at 1 GB/s, 20 ms, and each server takes 20 MB of one worker
 * from the other node. Updated (120 MB at 200 GB/s), they come back in 20 ms and go up. */
static void mxnet_servers(void **state) {
    struct bench b;
    const double sizes[] = {40e6, 2e6, 2e6, 2e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.fake.plan.devices_per_node = 1;
    b.fake.system.inter.bandwidth_bytes_per_s = 1e9;
    b.fake.framework.sync.messages.servers_colocated = true;
    b.fake.framework.sync.messages.server_assignment = DL_SERVERS_HASHED;
    fake_behaviour(&b.fake.framework, "kvstore-server");
    fake_set(&b.fake.framework, "host_staged", true);
    run(&b, "kvstore-server");
    assert_int_equal(b.sync.message_count, 4);
    const struct dl_message *m = &b.sync.messages[0];
    check_close(m->duration_s, 0.020, 1e-9);
    check_close(m->ready_s + m->duration_s + m->tail_s,
                1 + 2 * 40e6 / 12e9 + 0.020 + 120e6 / 200e9 + 0.020, 1e-9);
    assert_string_equal(m->limit, "inter");
    assert_true(b.sync.per_layer_wait && b.sync.update_remote);
}

/* Two keys of 60 MB, ready at once, on the two GPUs of a node: each owner receives one copy at 120
 * GB/s (0.5 ms) and its sum leaves at 12 GB/s in 5 ms. Serially the second is summed when the first
 * has left, and leaves one sum later than otherwise. */
static void mxnet_serial_keys(void **state) {
    struct bench b;
    const double sizes[] = {60e6, 60e6}, ready[] = {1, 1};
    double usable_s[2];
    for (int serial = 0; serial < 2; serial++) {
        make(&b, 2, sizes, ready);
        b.fake.plan.devices_per_node = 2;
        b.fake.system.inter.bandwidth_bytes_per_s = 1e12;
        b.fake.system.host.memory_bandwidth_bytes_per_s = 1e13;
        fake_behaviour(&b.fake.framework, "kvstore-server");
        fake_set(&b.fake.framework, "serial_keys", serial);
        run(&b, "kvstore-server");
        const struct dl_message *m = &b.sync.messages[1];
        usable_s[serial] = fmax(b.sync.messages[0].ready_s + b.sync.messages[0].duration_s, 1) +
                           m->duration_s + m->tail_s;
    }
    struct dl_key_owners owners;
    assert_int_equal(dl_key_owners_of(&b.request, &owners, NULL), DL_OK);
    check_close(usable_s[1] - usable_s[0], 0.5e-3 + 60e6 * owners.sum_s_per_byte, 1e-6);
}

/* Cores that carry all messages: the library's push and pull of all 46 MB was measured between two
 * nodes, 0.46 s. Its worker sends and receives all, the fuller server 48/46 of its share: (1 +
 * 48/46) / 2 x 10 ns a byte, push and pull one after the other, all of it after backward; so too
 * with one worker (imbalance 1). */
static void mxnet_servers_on_the_workers_core(void **state) {
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
    assert_true(b.sync.messages[0].tail_s == 0 && !b.sync.per_layer_wait && !b.sync.update_remote);
    assert_string_equal(b.sync.bound, "parameter-server");
    assert_string_equal(b.sync.messages[0].algorithm, "keys on servers");
    assert_string_equal(b.sync.messages[0].formula, "F-FW-KVSTORE-SERVER");
    assert_string_equal(b.sync.messages[0].name, "push and pull");
    b.fake.plan.nodes = 1;
    run(&b, "kvstore-server");
    check_close(b.sync.messages[0].duration_s, 1e-4 + 0.4, 1e-6);
    /* TensorFlow's servers: one of two holds the 40 MB and a 2 MB variable, 42 / 23 of the mean;
     * pushes and pulls each half of it. */
    b.fake.plan.nodes = 2;
    run(&b, "parameter-server");
    check_close(b.sync.messages[0].bandwidth_s, 0.2 * (1 + 42.0 / 23) / 2, 1e-6);
    check_close(b.sync.messages[0].ready_s, 4, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_servers),
        cmocka_unit_test(server_rates),
        cmocka_unit_test(assignment_of_variables),
        cmocka_unit_test(mxnet_device),
        cmocka_unit_test(owners_of_keys),
        cmocka_unit_test(mxnet_servers),
        cmocka_unit_test(mxnet_serial_keys),
        cmocka_unit_test(mxnet_servers_on_the_workers_core),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
