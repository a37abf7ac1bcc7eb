/* The rules of MPI, costs of MPI, Gloo, parameter servers and copies worked by hand, groups of a
 * job, measured samples. */
#include "model/network/libraries/coll_copy.h"
#include "model/network/libraries/mpi_coll.h"
#include "model/machine/topology.h"
#include "tests/check.h"

static void mpi_rules(void **state) {
    static const struct {
        enum dl_mpi_kind kind;
        double ranks, bytes;
        enum dl_mpi_algorithm algorithm;
    } cases[] = {{DL_MPI_OPEN, 2, 4, DL_MPI_RING},
                 {DL_MPI_OPEN, 3, 100, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN, 2, 100000, DL_MPI_SEGMENTED},
                 {DL_MPI_OPEN, 2, 1e6, DL_MPI_RABENSEIFNER},
                 {DL_MPI_OPEN, 4, 8191, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN, 7, 8192, DL_MPI_RABENSEIFNER},
                 {DL_MPI_OPEN, 32, 127, DL_MPI_SEGMENTED},
                 {DL_MPI_OPEN, 63, 128, DL_MPI_RABENSEIFNER},
                 {DL_MPI_OPEN, 64, 262143, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN, 128, 131071, DL_MPI_NONOVERLAPPING},
                 {DL_MPI_OPEN, 255, 131072, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN, 2048, 2048, DL_MPI_SEGMENTED},
                 {DL_MPI_OPEN, 1e6, 20000, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN, 1e6, 1e8, DL_MPI_RABENSEIFNER},
                 {DL_MPI_OPEN_OLD, 16, 9999, DL_MPI_DOUBLING},
                 {DL_MPI_OPEN_OLD, 16, 16777216, DL_MPI_RING},
                 {DL_MPI_OPEN_OLD, 16, 16777217, DL_MPI_SEGMENTED},
                 {DL_MPI_OPEN_OLD, 4096, 16384, DL_MPI_NONOVERLAPPING},
                 {DL_MPI_MPICH, 16, 2048, DL_MPI_DOUBLING},
                 {DL_MPI_MPICH, 16, 2049, DL_MPI_RABENSEIFNER},
                 {DL_MPI_MPICH, 1024, 4096, DL_MPI_DOUBLING},
                 {DL_MPI_MPICH, 3, 1e6, DL_MPI_RABENSEIFNER},
                 {DL_MPI_INTEL, 3, 2048, DL_MPI_DOUBLING},
                 {DL_MPI_INTEL, 3, 524288, DL_MPI_RABENSEIFNER},
                 {DL_MPI_INTEL, 3, 524289, DL_MPI_RING},
                 {DL_MPI_INTEL, 4, 1e6, DL_MPI_RABENSEIFNER}};
    double below = 0.0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(
            dl_mpi_all_reduce_choice(cases[i].kind, cases[i].ranks, cases[i].bytes, &below),
            cases[i].algorithm);
    assert_int_equal(dl_mpi_kind_of("openmpi-3.1"), DL_MPI_OPEN_OLD);
    assert_int_equal(dl_mpi_kind_of("openmpi-4.0.5"), DL_MPI_OPEN_OLD);
    assert_int_equal(dl_mpi_kind_of("openmpi-4.1"), DL_MPI_OPEN);
    assert_int_equal(dl_mpi_kind_of("openmpi-5.0"), DL_MPI_OPEN);
    assert_int_equal(dl_mpi_kind_of("mpich-3"), DL_MPI_MPICH);
    assert_int_equal(dl_mpi_kind_of("intel-2017"), DL_MPI_INTEL);
    assert_int_equal(dl_mpi_kind_of("hpcx-2.18"), DL_MPI_HPCX);
    assert_int_equal(dl_mpi_all_reduce_choice(DL_MPI_HPCX, 64, 4095, &below), DL_MPI_DOUBLING);
    assert_int_equal(dl_mpi_all_reduce_choice(DL_MPI_HPCX, 64, 4096, &below), DL_MPI_RABENSEIFNER);
    check_close(below, 4096.0, 0.0);
    assert_int_equal(dl_mpi_kind_of("hpcx"), DL_MPI_HPCX_OLD);
    assert_int_equal(dl_mpi_all_reduce_choice(DL_MPI_HPCX_OLD, 64, 4096, &below), DL_MPI_DOUBLING);
    assert_int_equal(dl_mpi_kind_of(NULL), DL_MPI_OPEN);
}

/* 4 nodes of 2, alpha 1 inside and 10 outside, beta .01 and .1, no sums, S = 800. Rabenseifner:
 * 2*1*1 + 2*2*10 = 42; inside 2 * 400 * .01 = 8; outside 2 * 300 * .1 * 2 flows = 120. Doubling: 1
 * + 2 * 10 = 21; 800 (.01 + 2 * .1 * 2) = 328. Ring: 14 * 10; 7 * 100 * 2 * .1 = 140. */
static struct dl_cost_parts rabenseifner(const struct dl_coll_links *links, double bytes,
                                         const void *context) {
    (void)context;
    return dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_RABENSEIFNER, links, bytes);
}

static void mpi_costs_over_nodes(void **state) {
    struct dl_coll_links links = {.intra = {1, .01, 0},
                                  .inter = {10, .1, 0},
                                  .nodes = 4,
                                  .per_node = 2,
                                  .ranks = 8,
                                  .flows = 1,
                                  .bisection = 1};
    struct dl_cost_parts cost =
        dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_RABENSEIFNER, &links, 800);
    check_close(cost.latency_s, 42, 1e-12);
    check_close(cost.bandwidth_s, 128, 1e-12);
    cost = dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_DOUBLING, &links, 800);
    check_close(cost.latency_s, 21, 1e-12);
    check_close(cost.bandwidth_s, 328, 1e-12);
    cost = dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_RING, &links, 800);
    check_close(cost.latency_s, 140, 1e-12);
    check_close(cost.bandwidth_s, 140, 1e-12);
    /* fewer elements than ranks: the ring is not taken */
    cost = dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_RING, &links, 16);
    check_close(cost.steps, 3, 1e-12);
    /* Reduce by a heap over 8 ranks: 3 hops (1 + 2 * 10) and 4 messages, of which 3 leave a node;
     * broadcast by a 4-nomial tree: 1 + 10, 1 and 3 messages; 0.5 us for each message beside
     * another; 800 * 2 * (.01 + 3 * .1). */
    cost = dl_mpi_all_reduce_cost(DL_MPI_OPEN, DL_MPI_NONOVERLAPPING, &links, 800);
    check_close(cost.latency_s, 32 + 3 * 0.5e-6, 1e-9);
    check_close(cost.bandwidth_s, 496, 1e-12);
    /* without the adapters 8 of 128 would be left, without what is inside 120; sums: none */
    links.inside_limit = "intra";
    assert_string_equal(dl_coll_links_limit(&links, rabenseifner, 800, NULL), "inter");
    links.intra.beta_s_per_byte = 1; /* 800 */
    assert_string_equal(dl_coll_links_limit(&links, rabenseifner, 800, NULL), "intra");
    links.intra.gamma_s_per_byte = links.inter.gamma_s_per_byte = 10;
    assert_string_equal(dl_coll_links_limit(&links, rabenseifner, 800, NULL), "host");
}

static struct dl_system fake_system(void) {
    struct dl_system system = {
        .name = "fake", .nodes = 8, .devices_per_node = 4, .has_inter = true, .has_host = true};
    system.host.copy_bandwidth_bytes_per_s = 10e9;
    system.host.memory_bandwidth_bytes_per_s = NAN;
    system.host.devices_per_copy_link = 2;
    system.inter = (struct dl_link){.kind = "ethernet",
                                    .bandwidth_bytes_per_s = 1e9,
                                    .latency_s = 50e-6,
                                    .adapters_per_node = 1,
                                    .per_message_cpu_s = NAN,
                                    .channel_bandwidth_bytes_per_s = NAN,
                                    .cross_bandwidth_bytes_per_s = NAN};
    return system;
}

/* Nodes of 1 on links of 50 us and 1 GB/s; no sums: the host's memory bandwidth is unknown, so that
 * a core adds at 4 GB/s. S = 12 MB: 12 ms on the wire, 3 ms of sums. */
static void gloo_by_hand(void **state) {
    static const struct {
        const char *algorithm;
        int64_t nodes;
        double time_s;
    } cases[] = {{"ring", 4, 12 * 50e-6 + 0.75 * (2 * 12e-3 + 3e-3)},
                 {"ring", 3, 8 * 50e-6 + 2.0 / 3 * (2 * 12e-3 + 3e-3)},
                 {"halving_doubling", 4, 4 * 50e-6 + 0.75 * (2 * 12e-3 + 3e-3)},
                 /* binary blocks: all bytes each way */
                 {"halving_doubling", 3, 4 * 50e-6 + 2 * 12e-3 + 3e-3},
                 /* 2 stages each way with S/2 + S/2 and S/4 + S/4: 3/2 of S */
                 {"bcube", 4, 4 * 50e-6 + 1.5 * (2 * 12e-3 + 3e-3)}};
    const struct dl_system system = fake_system();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_GLOO,
                                                .algorithm = cases[i].algorithm,
                                                .bytes = 12e6,
                                                .nodes = cases[i].nodes,
                                                .ranks_per_node = 1};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
        check_close(t.time_s, cases[i].time_s, 1e-9);
    }
}

/* The same machine: 5000, 100000 and 3 million elements of 4 bytes. nreduce: 3 + 3 messages. */
static void oneccl_by_hand(void **state) {
    static const struct {
        const char *algorithm;
        double bytes, time_s;
    } cases[] = {{"recursive_doubling", 20e3, 2 * (50e-6 + 20e-6 + 5e-6)},
                 {"nreduce", 400e3, 6 * 50e-6 + 0.75 * (2 * 0.4e-3 + 0.1e-3)},
                 {"ring", 12e6, 6 * 50e-6 + 0.75 * (2 * 12e-3 + 3e-3)}};
    const struct dl_system system = fake_system();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_ONECCL,
                                                .bytes = cases[i].bytes,
                                                .nodes = 4,
                                                .ranks_per_node = 1,
                                                .allow_decreasing = true};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
        assert_string_equal(t.algorithm, cases[i].algorithm);
        check_close(t.time_s, cases[i].time_s, 1e-9);
    }
}

/* 4 nodes of 1 on 50 us links: recursive doubling of 8 bytes takes 2 messages; staged from device
 * memory each costs 26 us more. */
static void device_buffers_cost_copies(void **state) {
    struct dl_system system = fake_system();
    struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                      .library = DL_LIB_MPI,
                                      .bytes = 64,
                                      .nodes = 4,
                                      .ranks_per_node = 1,
                                      .flows_per_adapter = 1};
    struct dl_collective_time host, staged;
    assert_int_equal(dl_collective_time(&system, &r, &host, NULL), DL_OK);
    r.device_buffers = true;
    assert_int_equal(dl_collective_time(&system, &r, &staged, NULL), DL_OK);
    check_close(host.latency_s, 100e-6, 1e-12);
    check_close(staged.latency_s, 152e-6, 1e-12);
}

/* 4 workers and 4 colocated servers, S = 400 MB, balanced, 1 GB/s: each way 3/4 * .4 = .3 s; half
 * duplex .6 s. Largest server 200 MB: 3/4 * 4 * .2 = .6 s each way. Separate servers: 4 * 100 MB /
 * 1 GB/s = .4 s each way. Full duplex with 4 messages: .3 + .3 / 4. Messages: 2 * 4 * 1 ms. */
static void parameter_servers_by_hand(void **state) {
    struct dl_system system = fake_system();
    struct dl_parameter_server_request r = {.workers = 4,
                                            .servers = 4,
                                            .total_bytes = 400e6,
                                            .largest_server_bytes = 100e6,
                                            .colocated = true,
                                            .half_duplex = true,
                                            .message_count = 4,
                                            .copy_bytes_per_s = NAN,
                                            .update_bytes_per_s = NAN};
    struct dl_parameter_server_time t;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.time_s, 0.6 + 100e-6, 1e-12);
    r.largest_server_bytes = 200e6;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.push_s, 0.6, 1e-12);
    assert_string_equal(t.limit, "server");
    r.largest_server_bytes = 0.0, r.colocated = false;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.push_s, 0.4, 1e-12);
    r.colocated = true, r.half_duplex = false, r.message_s = 1e-3;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.bandwidth_s, 0.375, 1e-12);
    check_close(t.latency_s, 8e-3 + 100e-6, 1e-12);
    r.update_bytes_per_s = 1e9; /* 4 workers * 100 MB */
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.server_s, 0.4, 1e-12);
    system.has_inter = false;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_ERR_INPUT);
    r.workers = r.servers = 1;
    assert_int_equal(dl_parameter_server_time(&system, &r, &t, NULL), DL_OK);
    check_close(t.push_s, 0.0, 1e-12);
}

/* Host copies at 10 GB/s, two devices on a link: 4 devices x 1 GB = .2 s + 2 * 10 us. Without a
 * link between devices, a star of 4 over the host: 3 GB at 10 GB/s; tree: 2 rounds; sharded: 2 *
 * 3/4 GB. */
static void copies_by_hand(void **state) {
    struct dl_system system = fake_system();
    struct dl_cost_parts cost;
    assert_true(dl_copy_host_cost(&system, 4, 1e9, &cost));
    check_close(cost.bandwidth_s, 0.2, 1e-12);
    check_close(cost.latency_s, 20e-6, 1e-12);
    assert_true(dl_copy_star_cost(&system, 4, 1e9, &cost));
    check_close(cost.bandwidth_s, 0.3, 1e-12);
    assert_true(dl_copy_tree_cost(&system, 4, 1e9, &cost));
    check_close(cost.bandwidth_s, 0.2, 1e-12);
    assert_true(dl_copy_sharded_cost(&system, 4, 1e9, &cost));
    check_close(cost.bandwidth_s, 0.15, 1e-12);
    assert_true(dl_copy_hierarchical_cost(&system, 4, 1e9, &cost)); /* 2 * .1 + .1 */
    check_close(cost.bandwidth_s, 0.3, 1e-12);
    /* One way is half of an all-reduce, which sends there and back. */
    static const struct {
        const char *algorithm, *formula;
        enum dl_collective_op op;
    } patterns[] = {{"sharded", "F-COPY-SHARDED", DL_COLL_ALL_GATHER},
                    {"ring", "F-COPY-RING", DL_COLL_ALL_GATHER},
                    {"hierarchical", "F-COPY-HIERARCHICAL", DL_COLL_REDUCE_SCATTER},
                    {"star", "F-COPY-STAR", DL_COLL_BROADCAST},
                    {"tree", "F-COPY-TREE", DL_COLL_BROADCAST},
                    {"host", "F-COPY-HOST", DL_COLL_BROADCAST}};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct dl_collective_request request = {.op = patterns[i].op,
                                                .library = DL_LIB_COPY,
                                                .algorithm = patterns[i].algorithm,
                                                .bytes = 1e9,
                                                .nodes = 1,
                                                .ranks_per_node = 4};
        struct dl_collective_time one, all;
        assert_int_equal(dl_collective_time(&system, &request, &one, NULL), DL_OK);
        request.op = DL_COLL_ALL_REDUCE;
        assert_int_equal(dl_collective_time(&system, &request, &all, NULL), DL_OK);
        assert_string_equal(one.formula, patterns[i].formula);
        check_close(one.latency_s, all.latency_s / 2, 1e-12);
        check_close(one.bandwidth_s, all.bandwidth_s / 2, 1e-12);
    }
    system.has_host = false;
    assert_false(dl_copy_star_cost(&system, 4, 1e9, &cost));
    assert_true(dl_copy_star_cost(&system, 1, 1e9, &cost));
}

/* Groups in a job of 8 nodes with 4 devices and 2 adapters. Tensor groups of 4 neighbours stay in a
 * node, one to a node. Data groups of 8, 4 apart: one rank on each node; 4 of them share 2
 * adapters, each uses one: 2 flows on an adapter. Groups of 16, 2 apart: 2 ranks on each node, 2
 * groups: both adapters carry both. 32 neighbours: all, alone. */
static void groups_of_a_job_by_hand(void **state) {
    struct dl_system system = fake_system();
    system.inter.adapters_per_node = 2;
    static const struct {
        int64_t size, stride, concurrent, nodes, per_node;
        double flows;
    } cases[] = {{4, 1, 8, 1, 4, 1},  {8, 4, 4, 8, 1, 2},   {8, 4, 2, 8, 1, 1}, {16, 2, 2, 8, 2, 2},
                 {32, 1, 1, 8, 4, 1}, {2, 16, 16, 2, 1, 2}, {2, 1, 16, 1, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_collective_request group, job = {.op = DL_COLL_ALL_REDUCE,
                                                   .library = DL_LIB_MPI,
                                                   .bytes = 1e6,
                                                   .nodes = 8,
                                                   .ranks_per_node = 4,
                                                   .flows_per_adapter = 1,
                                                   .group_size = cases[i].size,
                                                   .group_stride = cases[i].stride,
                                                   .concurrent = cases[i].concurrent};
        assert_int_equal(dl_collective_group(&system, &job, &group, NULL), DL_OK);
        assert_int_equal(group.nodes, cases[i].nodes);
        assert_int_equal(group.ranks_per_node, cases[i].per_node);
        check_close(group.flows_per_adapter, cases[i].flows, 1e-12);
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&system, &job, &t, NULL), DL_OK);
        job.group_size = 33, job.group_stride = 1;
        assert_int_equal(dl_collective_time(&system, &job, &t, NULL), DL_ERR_USAGE);
    }
}

/* Up to 1000 bytes 10 us + 1 ns a byte, then 5 us + 0.1 ns: a longer message is never faster than
 * the 11 us of 1000 bytes, and 1 MB takes 105 us. */
static void pieces_of_a_link_by_hand(void **state) {
    struct dl_system system = fake_system();
    struct dl_piece pieces[] = {{1000, 10e-6, 1e-9}, {HUGE_VAL, 5e-6, 0.1e-9}};
    const double cases[][2] = {{0, 10e-6},    {500, 10.5e-6}, {1000, 11e-6}, {1001, 11e-6},
                               {2000, 11e-6}, {60000, 11e-6}, {1e6, 105e-6}};
    struct dl_collective_request r = {
        .op = DL_COLL_P2P, .library = DL_LIB_MPI, .nodes = 2, .ranks_per_node = 1};
    struct dl_collective_time t;
    system.inter.pieces = pieces, system.inter.piece_count = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r.bytes = cases[i][0];
        assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
        check_close(t.time_s, cases[i][1], 1e-12);
    }
}

static void one_rank_is_free_and_faults_are_named(void **state) {
    struct dl_system system = fake_system();
    struct dl_err err = {0};
    struct dl_collective_time t;
    for (int op = 0; op < DL_COLL_OPS; op++)
        for (int library = 0; library < DL_LIBRARIES; library++) {
            struct dl_collective_request r = {.op = (enum dl_collective_op)op,
                                              .library = (enum dl_library)library,
                                              .bytes = 1e6,
                                              .nodes = 1,
                                              .ranks_per_node = 1,
                                              .flows_per_adapter = 1};
            assert_int_equal(dl_collective_time(&system, &r, &t, &err), DL_OK);
            check_close(t.time_s, 0.0, 0.0);
            check_close(t.latency_s + t.bandwidth_s, 0.0, 0.0);
        }
    struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                      .library = DL_LIB_NCCL,
                                      .bytes = 1e6,
                                      .nodes = 2,
                                      .ranks_per_node = 1,
                                      .flows_per_adapter = 1};
    assert_int_equal(dl_collective_time(&system, &r, &t, &err), DL_OK);
    assert_true(t.time_s > 1e-3); /* 1 MB at 1 GB/s */
    r.algorithm = "telepathy";
    assert_int_equal(dl_collective_time(&system, &r, &t, &err), DL_ERR_USAGE);
    r.algorithm = NULL, r.bytes = -1;
    assert_int_equal(dl_collective_time(&system, &r, &t, &err), DL_ERR_USAGE);
    r.bytes = 1, system.has_inter = false;
    assert_int_equal(dl_collective_time(&system, &r, &t, &err), DL_ERR_INPUT);
    assert_non_null(strstr(err.message, "links.inter"));
}

static double model_s(struct dl_system *system, struct dl_collective_request r, double bytes,
                      int64_t nodes) {
    const int count = system->collective_count;
    struct dl_collective_time t;
    system->collective_count = 0;
    r.bytes = bytes, r.nodes = nodes;
    assert_int_equal(dl_collective_time(system, &r, &t, NULL), DL_OK);
    system->collective_count = count;
    return t.time_s;
}

/* A system whose all-reduce was measured on 4 nodes, at 1 KiB and 1 MiB, and once on 16. */
struct measured_system {
    struct dl_system system;
    struct dl_coll_sample samples[2], more[1];
    struct dl_coll_measured measured[2];
    struct dl_collective_request request; /* 4 nodes */
    double small, large;                  /* measured / model at 1 KiB and 1 MiB */
};

static void make_measured(struct measured_system *m) {
    *m = (struct measured_system){
        .system = fake_system(),
        .samples = {{1024, 10e-6, 9e-6, 11e-6}, {1048576, 160e-6, 159e-6, 161e-6}},
        .more = {{1048576, 640e-6, NAN, NAN}},
        .request = {.op = DL_COLL_ALL_REDUCE,
                    .library = DL_LIB_MPI,
                    .nodes = 4,
                    .ranks_per_node = 1,
                    .flows_per_adapter = 1}};
    m->measured[0] = (struct dl_coll_measured){.library = "mpi",
                                               .operation = "all_reduce",
                                               .nodes = 4,
                                               .ranks = 4,
                                               .samples = m->samples,
                                               .sample_count = 2};
    m->measured[1] = (struct dl_coll_measured){.library = "mpi",
                                               .operation = "all_reduce",
                                               .nodes = 16,
                                               .ranks = 16,
                                               .samples = m->more,
                                               .sample_count = 1};
    m->system.collectives = m->measured, m->system.collective_count = 1;
    m->small = 10e-6 / model_s(&m->system, m->request, 1024, 4);
    m->large = 160e-6 / model_s(&m->system, m->request, 1048576, 4);
}

static struct dl_collective_time measured_time(struct measured_system *m, double bytes) {
    struct dl_collective_time t;
    m->request.bytes = bytes;
    assert_int_equal(dl_collective_time(&m->system, &m->request, &t, NULL), DL_OK);
    return t;
}

/* Measured / model is 10 us / model(1 KiB), recursive doubling, and 160 us / model(1 MiB),
 * Rabenseifner. 4 bytes have the first ratio, 256 KiB, 512 KiB and 2 MiB the second; 32 KiB, 32
 * times from the next sample of its algorithm, lies half way in log bytes: the root of both. */
static void samples_come_first(void **state) {
    struct measured_system m;
    make_measured(&m);
    const struct {
        double bytes, ratio;
        bool extrapolated;
    } cases[] = {{1024, m.small, false},
                 {4, m.small, false},
                 {32768, sqrt(m.small * m.large), false},
                 {262144, m.large, false},
                 {1048576, m.large, false},
                 {2097152, m.large, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_collective_time t = measured_time(&m, cases[i].bytes);
        check_close(t.time_s, cases[i].ratio * model_s(&m.system, m.request, cases[i].bytes, 4),
                    1e-12);
        assert_string_equal(t.origin, "measured");
        assert_int_equal(t.extrapolated, cases[i].extrapolated);
    }
}

/* 8 nodes take the ratio of 4, or lie half way between 4 and 16 in log ranks. */
static void other_numbers_of_nodes_are_scaled(void **state) {
    struct measured_system m;
    make_measured(&m);
    m.request.nodes = 8;
    struct dl_collective_time t = measured_time(&m, 1048576);
    assert_string_equal(t.formula, "F-COLL-SCALED");
    check_close(t.time_s, m.large * model_s(&m.system, m.request, 1048576, 8), 1e-12);
    m.system.collective_count = 2;
    const double largest = 640e-6 / model_s(&m.system, m.request, 1048576, 16);
    t = measured_time(&m, 1048576);
    check_close(t.time_s, sqrt(m.large * largest) * model_s(&m.system, m.request, 1048576, 8),
                1e-12);
}

static void fits_extend_the_samples(void **state) {
    struct measured_system m;
    make_measured(&m);
    struct dl_piece piece = {1e9, 100e-6, 1e-10};
    m.measured[0].pieces = &piece, m.measured[0].piece_count = 1, m.system.collective_count = 2;
    const struct dl_collective_time t = measured_time(&m, 1e8);
    check_close(t.time_s, 100e-6 + 1e-2, 1e-12);
    assert_string_equal(t.origin, "fitted");
}

/* No model without a link: the times themselves, on a cubic in log-log that two samples make a
 * line. */
static void samples_need_no_link(void **state) {
    struct measured_system m;
    make_measured(&m);
    m.system.has_inter = false;
    const struct dl_collective_time t = measured_time(&m, 32768);
    check_close(t.time_s, 40e-6, 1e-9);
    assert_string_equal(t.algorithm, "as measured");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(mpi_rules),
                                       cmocka_unit_test(gloo_by_hand),
                                       cmocka_unit_test(oneccl_by_hand),
                                       cmocka_unit_test(mpi_costs_over_nodes),
                                       cmocka_unit_test(parameter_servers_by_hand),
                                       cmocka_unit_test(copies_by_hand),
                                       cmocka_unit_test(groups_of_a_job_by_hand),
                                       cmocka_unit_test(pieces_of_a_link_by_hand),
                                       cmocka_unit_test(one_rank_is_free_and_faults_are_named),
                                       cmocka_unit_test(samples_come_first),
                                       cmocka_unit_test(other_numbers_of_nodes_are_scaled),
                                       cmocka_unit_test(fits_extend_the_samples),
                                       cmocka_unit_test(samples_need_no_link),
                                       cmocka_unit_test(device_buffers_cost_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
