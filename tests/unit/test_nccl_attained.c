/* F-NCCL-ATTAINED and F-COLL-DOMAIN by hand: what NCCL's kernels take on A100, H100 and B200, and
 * NVLink domains of several nodes. */
#include "model/network/collective.h"
#include "tests/check.h"

/* A node of 8 behind NVSwitch: as DGX A100, H100 and B200. */
struct node {
    struct dl_device device;
    struct dl_system system;
};

static void make_node(struct node *n, const char *architecture, double ring_bytes_per_s,
                      int64_t channels, const char *version) {
    *n = (struct node){.device = {.architecture = architecture}};
    n->system = (struct dl_system){.device = &n->device,
                                   .nodes = 64,
                                   .devices_per_node = 8,
                                   .has_intra = true,
                                   .intra = {.kind = "nvswitch",
                                             .bandwidth_bytes_per_s = ring_bytes_per_s,
                                             .channels = channels,
                                             .channel_bandwidth_bytes_per_s = NAN,
                                             .peer_to_peer = true,
                                             .domain_nodes = DL_ABSENT,
                                             .peer_group = DL_ABSENT},
                                   .has_inter = true,
                                   .inter = {.kind = "infiniband",
                                             .bandwidth_bytes_per_s = 50e9,
                                             .nccl_bandwidth_bytes_per_s = NAN,
                                             .latency_s = 1.3e-6,
                                             .adapters_per_node = 8,
                                             .rdma = true,
                                             .gpudirect = true,
                                             .distance = "PXB",
                                             .per_message_cpu_s = NAN},
                                   .software.nccl_version = version};
}

static double time_of(const struct dl_system *system, enum dl_collective_op op, double bytes,
                      int64_t nodes, int64_t ranks_per_node, struct dl_collective_time *out) {
    const struct dl_collective_request request = {.op = op,
                                                  .library = DL_LIB_NCCL,
                                                  .bytes = bytes,
                                                  .nodes = nodes,
                                                  .ranks_per_node = ranks_per_node,
                                                  .flows_per_adapter = 1};
    assert_int_equal(dl_collective_time(system, &request, out, NULL), DL_OK);
    return out->time_s * 1e6;
}

static void kernels_by_hand(void **state) {
    struct node a100, h100, b200;
    struct dl_collective_time t;
    make_node(&a100, "ampere", 240e9, 12, "2.27.3");
    make_node(&h100, "hopper", 370e9, 18, "2.29.2");
    make_node(&b200, "blackwell", 722e9, 18, "2.27.5");
    /* LL: 9.39 + 14 x 0.96 us + 2048 x 14/8 B at 87.7 GB/s */
    check_close(time_of(&a100.system, DL_COLL_ALL_REDUCE, 2048, 1, 8, &t), 22.83 + 0.0409, 1e-3);
    assert_string_equal(t.protocol, "LL");
    /* Simple: 24.6 + 7 x 1.19 us; 2^27 x 7/8 B at 370 GB/s; 2^24 B of its own at 1.40 ps/B */
    check_close(time_of(&h100.system, DL_COLL_ALL_GATHER, 134217728, 1, 8, &t),
                32.93 + 317.407 + 23.488, 1e-4);
    assert_string_equal(t.protocol, "Simple");
    /* Simple of 2 ranks: 12.2 + 4.68 us; 2^26 B at 722 GB/s; 2^26 B at 1.01 ps/B */
    check_close(time_of(&b200.system, DL_COLL_REDUCE_SCATTER, 134217728, 1, 2, &t),
                16.88 + 92.949 + 67.780, 1e-4);
    /* in the switch: 67 us; 2^30 B at 370 x 0.85 x 5/6 = 262.08 GB/s for 8 ranks; for 4 the rate is
     * (1 + 1/8) / (1 + 1/4) = 0.9 of it, and a ring is as good: 24.6 + 6 x 1.19 us; 2^30 x 6/4 B at
     * 370 GB/s; 2^28 B at 1.40 ps/B */
    check_close(time_of(&h100.system, DL_COLL_ALL_REDUCE, 1073741824, 1, 8, &t), 67 + 4096.9, 1e-4);
    assert_string_equal(t.algorithm, "nvls");
    check_close(time_of(&h100.system, DL_COLL_ALL_REDUCE, 1073741824, 1, 4, &t),
                fmin(67 + 4096.9 / 0.9, 31.74 + 4353.01 + 375.81), 1e-4);
    /* short message in the switch: 29 us at 0.69 of the rate */
    check_close(time_of(&h100.system, DL_COLL_ALL_REDUCE, 8e6, 1, 8, &t), 29 + 30.525 / 0.69, 1e-3);
    /* a message: 8.6 us and 370 GB/s; all-to-all: short at 144 GB/s, long at the ring's rate with
     * its own block copied: 24.6 + 1.19; 2^27 x 7/8 B at 370; 2^24 B at 1.40 ps/B */
    check_close(time_of(&h100.system, DL_COLL_P2P, 37e6, 1, 2, &t), 8.6 + 100, 1e-6);
    check_close(time_of(&h100.system, DL_COLL_ALL_TO_ALL, 144e3, 1, 8, &t), 8.6 + 1, 1e-6);
    check_close(time_of(&h100.system, DL_COLL_ALL_TO_ALL, 134217728, 1, 8, &t),
                25.79 + 317.407 + 23.488, 1e-4);
}

/* RCCL on 8 MI300X, 316 GB/s: LL128 20.4 us and 72 % of the links; Simple 60 us. Over nodes 8 paths
 * enter where 7 rings would close, 361 GB/s, less than the adapters' 400: 16 GiB x 30/16 over that.
 * Four devices have 3 of 7 links each. */
static void infinity_by_hand(void **state) {
    struct node n;
    struct dl_collective_time t;
    make_node(&n, "cdna3", 316e9, 28, "2.22.3");
    n.system.intra.kind = "infinity";
    check_close(time_of(&n.system, DL_COLL_ALL_REDUCE, 4194304, 1, 8, &t),
                20.4 + 4.194304 * 1.75 / 0.316 / 0.72, 1e-4);
    check_close(time_of(&n.system, DL_COLL_ALL_REDUCE, 1e10, 1, 8, &t), 60 + 1.75e10 / 316e3, 1e-4);
    check_close(time_of(&n.system, DL_COLL_ALL_REDUCE, 1e10, 1, 4, &t), 60 + 1.5e10 / 316e3 * 7 / 3,
                1e-4);
    time_of(&n.system, DL_COLL_ALL_REDUCE, 17179869184, 2, 8, &t);
    check_close(t.bandwidth_s, 17179869184 * 30.0 / 16 / (316e9 * 8 / 7), 1e-4);
}

static void longer_never_takes_less(void **state) {
    static const struct {
        const char *architecture, *version;
        double bytes_per_s;
        int64_t channels;
    } nodes[] = {{"ampere", "2.8.3", 231.6e9, 12},
                 {"ampere", "2.27.3", 231.6e9, 12},
                 {"hopper", "2.19.3", 370e9, 18},
                 {"blackwell", "2.28.9", 722e9, 18}};
    static const enum dl_collective_op ops[] = {DL_COLL_ALL_REDUCE, DL_COLL_ALL_GATHER,
                                                DL_COLL_REDUCE_SCATTER, DL_COLL_ALL_TO_ALL,
                                                DL_COLL_P2P};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        struct node n;
        make_node(&n, nodes[i].architecture, nodes[i].bytes_per_s, nodes[i].channels,
                  nodes[i].version);
        for (int64_t count = 1; count <= 16; count *= 4)
            for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++)
                for (int64_t ranks = 1; ranks <= 8; ranks *= 2) {
                    double last_us = 0;
                    struct dl_collective_time t;
                    if (ranks * count < 2) continue;
                    for (double bytes = 512; bytes < 4e9; bytes *= 1.07) {
                        const double us = time_of(&n.system, ops[op], bytes, count, ranks, &t);
                        assert_true(us >= last_us);
                        last_us = us;
                    }
                }
    }
}

/* Trays of 4 with 4 adapters, 18 of which share one NVLink domain, cost what nodes of 4 x n with
 * 4 x n adapters do. */
static void a_domain_is_a_node(void **state) {
    struct node tray, rack;
    struct dl_collective_time t, u;
    make_node(&tray, "blackwell", 722e9, 18, "2.28.9");
    tray.system.devices_per_node = tray.system.inter.adapters_per_node = 4;
    tray.system.intra.domain_nodes = 18;
    make_node(&rack, "blackwell", 722e9, 18, "2.28.9");
    static const struct {
        int64_t trays, domains;
    } cases[] = {{2, 1}, {8, 1}, {18, 1}, {36, 2}, {54, 3}, {20, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t each = cases[i].trays * 4 / cases[i].domains;
        rack.system.devices_per_node = rack.system.inter.adapters_per_node = each;
        for (double bytes = 4096; bytes < 2e9; bytes *= 8)
            for (int op = DL_COLL_P2P + 1; op <= DL_COLL_ALL_TO_ALL; op++) {
                const enum dl_collective_op asked = (enum dl_collective_op)op;
                const double one = time_of(&tray.system, asked, bytes, cases[i].trays, 4, &t),
                             same = time_of(&rack.system, asked, bytes, cases[i].domains, each, &u);
                check_close(one, same, 1e-12);
                if (cases[i].domains == 1) assert_string_equal(t.limit, "intra");
            }
    }
    /* over two domains the 72 adapters of each carry more than the ring inside (722 GB/s) */
    time_of(&tray.system, DL_COLL_ALL_GATHER, 1e10, 36, 4, &t);
    check_close(t.bandwidth_s, 1e10 * 143 / 144 / 722e9 + 1e10 / 144 * 1.01e-12, 1e-2);
    /* 8 trays, 1 GB, in the switches: 94 us; 722 x 0.74 x 5/6 GB/s x (1 + 1/8) / (1 + 1/32) */
    check_close(time_of(&tray.system, DL_COLL_ALL_REDUCE, 1e9, 8, 4, &t),
                94 + 1e9 / (722e3 * 0.74 * 5 / 6 * 1.125 / 1.03125), 1e-4);
}

/* Groups wider than a tray: tensor groups of 8 stay inside a domain; the data groups across them
 * leave it by an adapter of their own for each rank. Libraries on the host know no domain. */
static void groups_in_domains(void **state) {
    struct node tray;
    make_node(&tray, "blackwell", 722e9, 18, "2.28.9");
    tray.system.devices_per_node = tray.system.inter.adapters_per_node = 4;
    tray.system.intra.domain_nodes = 18;
    struct dl_collective_request job = {.op = DL_COLL_ALL_REDUCE,
                                        .library = DL_LIB_NCCL,
                                        .bytes = 1e8,
                                        .nodes = 36,
                                        .ranks_per_node = 4,
                                        .flows_per_adapter = 1,
                                        .group_size = 8,
                                        .group_stride = 1,
                                        .concurrent = 18},
                                 folded, group;
    dl_collective_domain(&tray.system, &job, &folded);
    assert_int_equal(folded.nodes, 2);
    assert_int_equal(folded.ranks_per_node, 72);
    assert_int_equal(folded.domain_nodes, 18);
    assert_int_equal(dl_collective_group(&tray.system, &folded, &group, NULL), DL_OK);
    assert_int_equal(group.nodes, 1);
    assert_int_equal(group.ranks_per_node, 8);
    folded.group_size = 18, folded.group_stride = 8, folded.concurrent = 8;
    assert_int_equal(dl_collective_group(&tray.system, &folded, &group, NULL), DL_OK);
    assert_int_equal(group.nodes, 2);
    assert_int_equal(group.ranks_per_node, 9);
    check_close(group.flows_per_adapter, 1, 1e-12);
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&tray.system, &job, &t, NULL), DL_OK);
    assert_string_equal(t.limit, "intra");
    job.library = DL_LIB_MPI;
    dl_collective_domain(&tray.system, &job, &folded);
    assert_int_equal(folded.nodes, 36);
}

/* Chains of stages: 4 stages of 8 ranks fit into a domain of 18 trays; 4 of 32 do not: 32 senders
 * of a domain on its 72 adapters. Without domains a stage of a full tray leaves it, 4 on 4. */
static void neighbours_by_hand(void **state) {
    struct node tray;
    make_node(&tray, "blackwell", 722e9, 18, "2.28.9");
    tray.system.devices_per_node = 4, tray.system.inter.adapters_per_node = 2;
    struct dl_collective_request r = {.op = DL_COLL_P2P, .library = DL_LIB_NCCL, .bytes = 1e6};
    struct dl_collective_time t;
    for (int domain = 0; domain < 2; domain++) {
        tray.system.intra.domain_nodes = domain ? 18 : DL_ABSENT;
        dl_collective_neighbours(&tray.system, 36, 4, 4, 8, &r);
        assert_int_equal(r.nodes, domain ? 1 : 2);
        assert_int_equal(dl_collective_time(&tray.system, &r, &t, NULL), DL_OK);
        assert_string_equal(t.limit, domain ? "intra" : "inter");
        if (!domain) check_close(r.flows_per_adapter, 2, 1e-12);
        dl_collective_neighbours(&tray.system, 36, 4, 4, 32, &r);
        assert_int_equal(r.nodes, 2);
        check_close(r.flows_per_adapter, domain ? 1 : 2, 1e-12);
        assert_int_equal(dl_collective_time(&tray.system, &r, &t, NULL), DL_OK);
        assert_string_equal(t.limit, "inter");
    }
    dl_collective_neighbours(&tray.system, 2, 4, 2, 1, &r); /* both in one tray */
    assert_int_equal(r.nodes, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_by_hand),         cmocka_unit_test(infinity_by_hand),
        cmocka_unit_test(longer_never_takes_less), cmocka_unit_test(a_domain_is_a_node),
        cmocka_unit_test(groups_in_domains),       cmocka_unit_test(neighbours_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
