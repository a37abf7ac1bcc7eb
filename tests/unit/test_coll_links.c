/* F-COLL-LINKS by hand: which links of a system a library on the host uses, and at what cost;
 * the push and pull of parameter servers over them (F-PS-PUSH-PULL). Values are round: 4 GB/s of
 * one core is 0.25 ns/B. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/coll_parts.h"
#include "tests/check.h"
#include "tests/fake.h"

/* A node of 4 ranks with plain shared memory; adapters of 10 GB/s. */
static struct dl_fake *start(void) {
    static struct dl_fake f;
    fake_make(&f);
    f.system.host.memory_bandwidth_bytes_per_s = NAN;
    f.system.intra.kind = "shm";
    f.system.intra.bandwidth_bytes_per_s = 5e9;
    f.system.intra.latency_s = 3e-6;
    f.system.intra.peer_to_peer = false;
    f.system.inter.bandwidth_bytes_per_s = 10e9;
    f.system.inter.latency_s = 2e-6;
    return &f;
}

static struct dl_coll_links links_of(const struct dl_fake *f, struct dl_collective_request r,
                                     double message_bytes) {
    struct dl_coll_links out;
    struct dl_err err = {0};
    if (r.flows_per_adapter <= 0) r.flows_per_adapter = 1;
    if (dl_coll_links(&f->system, &r, message_bytes, &out, &err) != DL_OK)
        fail_msg("%s", err.message);
    return out;
}

static const struct dl_collective_request one_node = {
    .op = DL_COLL_ALL_REDUCE, .nodes = 1, .ranks_per_node = 4};
static const struct dl_collective_request two_nodes = {
    .op = DL_COLL_ALL_REDUCE, .nodes = 2, .ranks_per_node = 1};

/* shm, upi and qpi join processes; any other word, however near, leaves the copy through a
 * buffer: 0.5 us, 2 / 4 GB/s. */
static void links_between_processes(void **state) {
    (void)state;
    static const char *const host[] = {"shm", "upi", "qpi"};
    static const char *const other[] = {NULL,  "",    "s",   "sh",  "shmx", "sxm", "shx",
                                        "xhm", "uxi", "upx", "qxi", "qpx",  "xpi", "xbus"};
    struct dl_fake *f = start();
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        f->system.intra.kind = host[i];
        const struct dl_coll_links links = links_of(f, one_node, 1e6);
        check_close(links.intra.alpha_s, 3e-6, 1e-12);
        check_close(links.intra.beta_s_per_byte, 0.2e-9, 1e-12);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        f->system.intra.kind = other[i];
        const struct dl_coll_links links = links_of(f, one_node, 1e6);
        check_close(links.intra.alpha_s, 0.5e-6, 1e-12);
        check_close(links.intra.beta_s_per_byte, 0.5e-9, 1e-12);
    }
    f->system.intra.kind = "shm";
    f->system.has_intra = false;
    check_close(links_of(f, one_node, 1e6).intra.alpha_s, 0.5e-6, 1e-12);
    f->system.has_intra = true;
    f->system.intra.latency_s = f->system.intra.bandwidth_bytes_per_s =
        NAN; /* each falls back alone */
    check_close(links_of(f, one_node, 1e6).intra.alpha_s, 0.5e-6, 1e-12);
    check_close(links_of(f, one_node, 1e6).intra.beta_s_per_byte, 0.5e-9, 1e-12);
    dl_arena_free(&f->arena);
}

/* 4 B of memory traffic a byte and rank: 4 x 4 / 16 GB/s = 1 ns/B; 3 groups at once, 3 ns/B.
 * With 160 GB/s the core limits. Sums: 3 x 4 / 16 GB/s = 0.75 ns/B; with 160 GB/s one core's
 * 0.25. */
static void memory_of_the_host(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_collective_request r = one_node;
    f->system.intra.kind = "pcie3";
    f->system.host.memory_bandwidth_bytes_per_s = 16e9;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1e-9, 1e-12);
    check_close(links_of(f, r, 1e6).intra.gamma_s_per_byte, 0.75e-9, 1e-12);
    r.concurrent = 1;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1e-9, 1e-12);
    r.concurrent = 3;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 3e-9, 1e-12);
    f->system.host.memory_bandwidth_bytes_per_s = 160e9;
    r.concurrent = 0;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 0.5e-9, 1e-12);
    check_close(links_of(f, r, 1e6).inter.gamma_s_per_byte, 0.25e-9, 1e-12);
    f->system.has_host = false;
    check_close(links_of(f, r, 1e6).intra.gamma_s_per_byte, 0.25e-9, 1e-12);
    r.device_direct = true;
    check_close(links_of(f, r, 1e6).intra.gamma_s_per_byte, 0, 0);
    dl_arena_free(&f->arena);
}

/* MPI that moves device memory: a pair has a third of an NVLink mesh of 4; all of a switch, a
 * bus, a pair of devices. */
static void device_memory(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_collective_request r = one_node;
    struct dl_link *intra = &f->system.intra;
    r.device_direct = true;
    intra->peer_to_peer = true;
    intra->kind = "nvlink2";
    intra->bandwidth_bytes_per_s = 120e9;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 40e9, 1e-12);
    check_close(links_of(f, r, 1e6).intra.alpha_s, 3e-6, 1e-12);
    intra->latency_s = NAN;
    check_close(links_of(f, r, 1e6).intra.alpha_s, 0.5e-6, 1e-12);
    intra->kind = "nvswitch";
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    intra->kind = NULL;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    intra->kind = "nvlink2", f->system.devices_per_node = 2, r.ranks_per_node = 2;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    intra->peer_to_peer = false; /* copied by the cores */
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 0.5e-9, 1e-12);
    intra->peer_to_peer = true, f->system.has_intra = false;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 0.5e-9, 1e-12);
    dl_arena_free(&f->arena);
}

/* A graph of links: of 4 rings over 4 devices a neighbour has the links of its group of 2. */
static void device_memory_over_a_graph(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_collective_request r = one_node;
    struct dl_link *intra = &f->system.intra;
    r.device_direct = true;
    intra->peer_to_peer = true, intra->kind = "nvlink2", intra->bandwidth_bytes_per_s = 120e9;
    intra->edge_count = 1;
    intra->ring_channels[4] = 4;
    intra->group_channels[1][2] = 2, intra->group_channels[2][2] = 1;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 60e9,
                1e-12); /* stride 0: neighbours */
    r.group_stride = 2;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 30e9, 1e-12);
    r.group_stride = 3; /* no two such groups fit: not searched */
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    r.group_stride = 2;
    intra->ring_channels[4] = 0;
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    intra->ring_channels[4] = 4;
    intra->group_channels[2][2] = DL_GROUP_APART; /* no link: through the host */
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 0.5e-9, 1e-12);
    f->system.devices_per_node = DL_LINK_DEVICES + 1; /* larger than what is searched */
    check_close(links_of(f, r, 1e6).intra.beta_s_per_byte, 1 / 120e9, 1e-12);
    dl_arena_free(&f->arena);
}

/* 2 us and 2 x 1 us of the host a message; 3 groups share two of 4 adapters: 0.1 ns/B x 3 / 2. */
static void adapters_and_staging(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_collective_request r = two_nodes;
    struct dl_link *inter = &f->system.inter;
    check_close(links_of(f, r, 1e6).inter.alpha_s, 2e-6, 1e-12);
    check_close(links_of(f, r, 1e6).inter.beta_s_per_byte, 0.1e-9, 1e-12);
    check_close(links_of(f, r, 1e6).intra.alpha_s, 0, 0);
    inter->per_message_cpu_s = 1e-6;
    check_close(links_of(f, r, 1e6).inter.alpha_s, 4e-6, 1e-12);
    inter->kind = NULL;
    check_close(links_of(f, r, 1e6).inter.beta_s_per_byte, 0.1e-9, 1e-12);
    inter->kind = "loopback";
    check_close(links_of(f, r, 1e6).inter.beta_s_per_byte, 0.2e-9, 1e-12);
    inter->kind = "infiniband";
    inter->adapters_per_node = 4;
    r.ranks_per_node = 2, r.flows_per_adapter = 3;
    check_close(links_of(f, r, 1e6).inter.beta_s_per_byte, 0.15e-9, 1e-12);
    r.flows_per_adapter = 0.5; /* never less than one */
    check_close(links_of(f, r, 1e6).inter.beta_s_per_byte, 0.05e-9, 1e-12);
    r.device_buffers = true; /* 20 us on either link */
    check_close(links_of(f, r, 1e6).inter.alpha_s, 24e-6, 1e-12);
    check_close(links_of(f, r, 1e6).intra.alpha_s, 23e-6, 1e-12);
    r = one_node, r.device_buffers = true;
    check_close(links_of(f, r, 1e6).intra.alpha_s, 23e-6, 1e-12);
    check_close(links_of(f, r, 1e6).inter.alpha_s, 0, 0);
    dl_arena_free(&f->arena);
}

/* Pieces up to 1 kB and 1 MB: 1 us + 1 ns/B, then 0.5 us + 0.2 ns/B, which never costs less than
 * 1 kB did: 2 us. */
static void pieces_of_a_link(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_piece pieces[] = {{1e3, 1e-6, 1e-9}, {1e6, 0.5e-6, 0.2e-9}};
    struct dl_err err = {0};
    struct dl_coll_links out;
    f->system.inter.pieces = pieces, f->system.inter.piece_count = 2;
    f->system.inter.bandwidth_bytes_per_s = NAN; /* the pieces suffice */
    check_close(links_of(f, two_nodes, 1e3).inter.alpha_s, 1e-6, 1e-12);
    check_close(links_of(f, two_nodes, 1e3).inter.beta_s_per_byte, 1e-9, 1e-12);
    check_close(links_of(f, two_nodes, 2e3).inter.alpha_s, 1.6e-6, 1e-12); /* + 2 us - 0.9 us */
    check_close(links_of(f, two_nodes, 2e3).inter.beta_s_per_byte, 0.2e-9, 1e-12);
    check_close(links_of(f, two_nodes, 1e5).inter.alpha_s, 0.5e-6, 1e-12); /* 20.5 us is more */
    check_close(links_of(f, two_nodes, 1e9).inter.beta_s_per_byte, 0.2e-9, 1e-12);
    f->system.intra.pieces = pieces, f->system.intra.piece_count = 2;
    check_close(links_of(f, one_node, 5e2).intra.beta_s_per_byte, 1e-9, 1e-12);
    f->system.inter.piece_count = 0;
    assert_int_equal(dl_coll_links(&f->system, &two_nodes, 1e3, &out, &err), DL_ERR_INPUT);
    check_contains(err.message, "links.inter.bandwidth_bytes_per_s, needed for 2 nodes");
    f->system.inter.bandwidth_bytes_per_s = 10e9, f->system.has_inter = false;
    assert_int_equal(dl_coll_links(&f->system, &two_nodes, 1e3, &out, NULL), DL_ERR_INPUT);
    dl_arena_free(&f->arena);
}

static struct dl_parameter_server_request servers(double workers, double count) {
    return (struct dl_parameter_server_request){.workers = workers,
                                                .servers = count,
                                                .total_bytes = 1e9,
                                                .message_count = 1,
                                                .copy_bytes_per_s = NAN,
                                                .update_bytes_per_s = NAN};
}

static struct dl_parameter_server_time push_pull(const struct dl_fake *f,
                                                 struct dl_parameter_server_request r) {
    struct dl_parameter_server_time out;
    struct dl_err err = {0};
    if (dl_parameter_server_time(&f->system, &r, &out, &err) != DL_OK) fail_msg("%s", err.message);
    return out;
}

/* 4 workers push 1 GB each to 2 servers of 0.5 GB: a server takes 4 x 0.5 GB at 10 GB/s, 0.2 s. */
static void push_and_pull(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_parameter_server_request r = servers(4, 2);
    struct dl_parameter_server_time t = push_pull(f, r);
    check_close(t.push_s, 0.2, 1e-12);
    check_close(t.server_s, 0, 0); /* no rate of sums is known */
    assert_string_equal(t.limit, "server");
    check_close(t.bandwidth_s, 0.4, 1e-12);
    check_close(t.latency_s, 4e-6, 1e-12);
    r.copy_bytes_per_s = 20e9; /* faster than the adapter: nothing */
    check_close(push_pull(f, r).push_s, 0.2, 1e-12);
    r.copy_bytes_per_s = 5e9;
    check_close(push_pull(f, r).push_s, 0.4, 1e-12);
    r.copy_bytes_per_s = NAN;
    f->system.host.memory_bandwidth_bytes_per_s = 60e9; /* sums at 20 GB/s: 4 x 0.5 / 20 */
    check_close(push_pull(f, r).server_s, 0.1, 1e-12);
    r.update_bytes_per_s = 4e9;
    t = push_pull(f, r);
    check_close(t.server_s, 0.5, 1e-12);
    assert_string_equal(t.limit, "update");
    f->system.has_host = false, r.update_bytes_per_s = NAN;
    check_close(push_pull(f, r).server_s, 0, 0);
    r.message_count = 4; /* full duplex: 0.2 + 0.2 / 4 */
    check_close(push_pull(f, r).bandwidth_s, 0.25, 1e-12);
    r.half_duplex = true;
    check_close(push_pull(f, r).bandwidth_s, 0.4, 1e-12);
    r.message_s = 1e-3; /* server: 2 x 4 x 4 x 0.5 ms; 16 ms and 4 us */
    t = push_pull(f, r);
    check_close(t.latency_s, 16.004e-3, 1e-12);
    r.message_s = 1;
    assert_string_equal(push_pull(f, r).limit, "message");
    dl_arena_free(&f->arena);
}

/* Servers on the workers' nodes: 3/4 of the bytes leave; alone on a node only copies cost. 4
 * adapters carry four times. */
static void colocated_servers(void **state) {
    (void)state;
    struct dl_fake *f = start();
    struct dl_parameter_server_request r = servers(4, 4);
    struct dl_parameter_server_time out;
    struct dl_err err = {0};
    r.colocated = true;
    check_close(push_pull(f, r).push_s, 0.075, 1e-12); /* 3/4 x 1 GB / 10 GB/s */
    assert_string_equal(push_pull(f, r).limit, "worker");
    f->system.inter.adapters_per_node = 4; /* one rank a node, but the streams of a node use all */
    check_close(push_pull(f, r).push_s, 0.075 / 4, 1e-12);
    r = servers(1, 1), r.colocated = true;
    check_close(push_pull(f, r).push_s, 0, 0);
    r.copy_bytes_per_s = 2e9;
    check_close(push_pull(f, r).push_s, 0.5, 1e-12);
    r.colocated = false;
    r.copy_bytes_per_s = NAN;
    check_close(push_pull(f, r).push_s, 0.1 / 4, 1e-12);
    r = servers(2, 2), r.largest_server_bytes = 0.75e9; /* the fullest: 2 x 0.75 / 40 GB/s */
    check_close(push_pull(f, r).push_s, 0.0375, 1e-12);
    r = servers(0, 1);
    assert_int_equal(dl_parameter_server_time(&f->system, &r, &out, &err), DL_ERR_USAGE);
    r = servers(1, 0);
    assert_int_equal(dl_parameter_server_time(&f->system, &r, &out, &err), DL_ERR_USAGE);
    r = servers(1, 1), r.total_bytes = NAN;
    assert_int_equal(dl_parameter_server_time(&f->system, &r, &out, &err), DL_ERR_USAGE);
    check_contains(err.message, "at least one worker, one server and a size");
    dl_arena_free(&f->arena);
}

/* 3 us and 0.2 ns/B inside, 2 us and 0.1 ns/B between, sums at 0.25 ns/B; 1 MB. Ring: 4 (p - 1)
 * messages of the slower start, (p - 1)/p of the bytes twice and summed. Halving and doubling
 * over 2 and then 2: 2 starts, the bytes once and half of the sums at each level; cube: twice
 * the bytes and all sums. */
static void gloo_and_grpc(void **state) {
    (void)state;
    static const struct {
        enum dl_library library;
        const char *algorithm, *ran;
        int64_t nodes, per_node;
        double bytes, latency_us, bandwidth_us, steps;
    } cases[] = {{DL_LIB_GLOO, NULL, "ring", 2, 2, 1e6, 36, 487.5, 12},
                 {DL_LIB_GLOO, "ring", "ring", 1, 4, 1e6, 36, 487.5, 12},
                 {DL_LIB_GLOO, "ring", "ring", 2, 1, 1e6, 8, 225, 4},
                 {DL_LIB_GLOO, "halving_doubling", "halving_doubling", 2, 2, 1e6, 10, 550, 4},
                 {DL_LIB_GLOO, "bcube", "bcube", 2, 2, 1e6, 10, 1100, 4},
                 /* an RPC is 100 us, a stream 0.4 ns/B; blocks of 4 MiB at most */
                 {DL_LIB_GRPC, NULL, "ring", 2, 1, 1e6, 204, 525, 2},
                 {DL_LIB_GRPC, NULL, "ring", 2, 1, 16777216, 408, 8388.608 * 1.05, 4},
                 {DL_LIB_GRPC, NULL, "ring", 1, 2, 1e6, 206, 525, 2}};
    struct dl_fake *f = start();
    struct dl_err err = {0};
    struct dl_collective_time t;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = cases[i].library,
                                                .bytes = cases[i].bytes,
                                                .nodes = cases[i].nodes,
                                                .ranks_per_node = cases[i].per_node,
                                                .flows_per_adapter = 1,
                                                .algorithm = cases[i].algorithm};
        if (dl_collective_time(&f->system, &r, &t, &err) != DL_OK) fail_msg("%s", err.message);
        check_close(t.latency_s * 1e6, cases[i].latency_us, 1e-9);
        check_close(t.bandwidth_s * 1e6, cases[i].bandwidth_us, 1e-9);
        check_close(t.steps, cases[i].steps, 0);
        assert_string_equal(t.algorithm, cases[i].ran);
        assert_string_equal(t.limit, cases[i].nodes > 1 ? "inter" : "intra");
    }
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                            .library = DL_LIB_GLOO,
                                            .bytes = 1,
                                            .nodes = 2,
                                            .ranks_per_node = 1,
                                            .flows_per_adapter = 1,
                                            .algorithm = "tree"};
    assert_int_equal(dl_collective_time(&f->system, &r, &t, &err), DL_ERR_USAGE);
    check_contains(err.message, "Gloo has no all-reduce 'tree'");
    dl_arena_free(&f->arena);
}

/* 10 bytes in segments of 4: 3 of them, of at most 4 bytes. */
static void segments(void **state) {
    (void)state;
    static const double cases[][4] = {{10, 4, 3, 4}, {8, 4, 2, 4},   {4, 4, 1, 4},
                                      {3, 4, 1, 3},  {10, 0, 1, 10}, {10, -1, 1, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_close(dl_segments(cases[i][0], cases[i][1]), cases[i][2], 0);
        check_close(dl_segment(cases[i][0], cases[i][1]), cases[i][3], 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_between_processes), cmocka_unit_test(memory_of_the_host),
        cmocka_unit_test(device_memory),           cmocka_unit_test(device_memory_over_a_graph),
        cmocka_unit_test(adapters_and_staging),    cmocka_unit_test(pieces_of_a_link),
        cmocka_unit_test(push_and_pull),           cmocka_unit_test(colocated_servers),
        cmocka_unit_test(gloo_and_grpc),           cmocka_unit_test(segments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
