/* NCCL's cost model against the reference values worked out from its 2.18.3 constants (Volta, Intel
 * host, adapter latency 0): A: 8 devices, 1 node, 6 channels of 20 GB/s; B: 4 nodes of 4, 1 channel
 * of 12; C: 16 nodes of 4, 2 channels of 12, no LL128. By hand, A, 4096 B, ring LL: 6.6 + 14 * 0.6
 * = 15.0 us; bus min(39, 120 / 4) = 30 GB/s, x 8 / 14 = 17.14; 4096 / 17143 = 0.24; together 15.24.
 * B, 4096 B, ring Simple: 8.4 + 22 * 3.4 + 8 * 14 = 195.2, x 1.9 (4096 / 16 >= 64) = 370.9, + 4096
 * / 6400 = 371.5. */
#include "model/network/libraries/nccl.h"
#include "tests/check.h"

static const struct dl_nccl_graph graph_a = {.ranks = 8,
                                             .nodes = 1,
                                             .channels = 6,
                                             .tree_channels = 6,
                                             .ring_bytes_per_s = 20e9,
                                             .tree_bytes_per_s = 20e9,
                                             .nvlink = true,
                                             .ll128 = true};
static const struct dl_nccl_graph graph_b = {.ranks = 16,
                                             .nodes = 4,
                                             .channels = 1,
                                             .tree_channels = 1,
                                             .ring_bytes_per_s = 12e9,
                                             .tree_bytes_per_s = 12e9,
                                             .nvlink = true,
                                             .ll128 = true};
static const struct dl_nccl_graph graph_c = {.ranks = 64,
                                             .nodes = 16,
                                             .channels = 2,
                                             .tree_channels = 2,
                                             .ring_bytes_per_s = 12e9,
                                             .tree_bytes_per_s = 12e9,
                                             .nvlink = true,
                                             .ll128 = false};

struct reference {
    const struct dl_nccl_graph *graph;
    double bytes, us[2][3]; /* tree, ring; LL, LL128, Simple; 0: not available */
    enum dl_nccl_algorithm algorithm;
    enum dl_nccl_protocol protocol;
};
static const struct reference references[] = {
    {&graph_a, 4096, {{15.6, 31.6, 56.1}, {15.2, 40.7, 56.1}}, DL_NCCL_RING, DL_NCCL_LL},
    {&graph_a, 262144, {{60.3, 41.7, 65.5}, {30.3, 44.8, 59.8}}, DL_NCCL_RING, DL_NCCL_LL},
    {&graph_a,
     4194304,
     {{427.7, 153.6, 164.5}, {259.7, 107.1, 117.2}},
     DL_NCCL_RING,
     DL_NCCL_LL128},
    {&graph_a,
     104857600,
     {{7233.7, 2745.2, 2430.5}, {6131.7, 1702.7, 1585.2}},
     DL_NCCL_RING,
     DL_NCCL_SIMPLE},
    {&graph_b, 4096, {{34.8, 56.6, 80.9}, {52.8, 88.5, 371.5}}, DL_NCCL_TREE, DL_NCCL_LL},
    {&graph_b, 262144, {{528.5, 148.7, 184.9}, {214.0, 132.3, 411.8}}, DL_NCCL_RING, DL_NCCL_LL128},
    {&graph_b,
     4194304,
     {{4584.2, 1174.0, 1278.4}, {2671.6, 800.1, 1026.2}},
     DL_NCCL_RING,
     DL_NCCL_LL128},
    {&graph_b,
     104857600,
     {{79722, 24910, 26294}, {65586, 17896, 16754.9}},
     DL_NCCL_RING,
     DL_NCCL_SIMPLE},
    {&graph_c, 4096, {{52.6, 0, 136.5}, {188.3, 0, 776.3}}, DL_NCCL_TREE, DL_NCCL_LL},
    {&graph_c, 262144, {{299.4, 0, 188.4}, {273.0, 0, 1495.9}}, DL_NCCL_TREE, DL_NCCL_SIMPLE},
    {&graph_c, 4194304, {{2327.3, 0, 735.2}, {1563.3, 0, 1818.5}}, DL_NCCL_TREE, DL_NCCL_SIMPLE},
    {&graph_c, 104857600, {{39896, 0, 13243}, {34593, 0, 10076}}, DL_NCCL_RING, DL_NCCL_SIMPLE}};

static void reference_values_within_one_percent(void **state) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.18.3", &number);
    assert_int_equal(number, 1803);
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        const struct reference *r = &references[i];
        for (int a = 0; a < 2; a++)
            for (int p = 0; p < 3; p++) {
                struct dl_cost_parts cost;
                bool there =
                    dl_nccl_cost(&(struct dl_nccl_operation){number, row, r->graph,
                                                             DL_COLL_ALL_REDUCE, r->bytes, false},
                                 (enum dl_nccl_algorithm)a, (enum dl_nccl_protocol)p, &cost);
                assert_int_equal(there, r->us[a][p] > 0.0);
                if (there)
                    check_close((cost.latency_s + cost.bandwidth_s) * 1e6, r->us[a][p], 0.01);
            }
        enum dl_nccl_algorithm algorithm;
        enum dl_nccl_protocol protocol;
        struct dl_cost_parts cost;
        assert_true(dl_nccl_choose(
            &(struct dl_nccl_operation){number, row, r->graph, DL_COLL_ALL_REDUCE, r->bytes, false},
            -1, -1, &algorithm, &protocol, &cost));
        assert_int_equal(algorithm, r->algorithm);
        assert_int_equal(protocol, r->protocol);
    }
}

/* All-gather, A, 2.18.3, ring Simple, 8 MiB: 8.4 + 7 * 3.4 = 32.2 us; bus 120 x 8 / 7 = 137.1 GB/s;
 * 8388608 / 137143 = 61.2. Broadcast: 8 steps: 8.4 + 8 * 3.4 = 35.6; ratio 1: 8388608 / 120000
 * = 69.9. */
static void other_operations_by_hand(void **state) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.18.3", &number);
    struct dl_cost_parts cost;
    assert_true(dl_nccl_cost(
        &(struct dl_nccl_operation){number, row, &graph_a, DL_COLL_ALL_GATHER, 8388608, false},
        DL_NCCL_RING, DL_NCCL_SIMPLE, &cost));
    check_close(cost.latency_s, 32.2e-6, 1e-9);
    check_close(cost.bandwidth_s, 8388608 / 137.142857e9, 1e-6);
    enum dl_nccl_algorithm algorithm; /* trees reduce for all or none */
    enum dl_nccl_protocol protocol;
    assert_false(dl_nccl_choose(
        &(struct dl_nccl_operation){number, row, &graph_a, DL_COLL_ALL_GATHER, 8388608, false},
        DL_NCCL_TREE, -1, &algorithm, &protocol, &cost));
    assert_true(dl_nccl_cost(
        &(struct dl_nccl_operation){number, row, &graph_a, DL_COLL_BROADCAST, 8388608, false},
        DL_NCCL_RING, DL_NCCL_SIMPLE, &cost));
    check_close(cost.latency_s, 35.6e-6, 1e-9);
    check_close(cost.bandwidth_s, 8388608 / 120e9, 1e-9);
    assert_false(dl_nccl_cost(
        &(struct dl_nccl_operation){number, row, &graph_a, DL_COLL_BROADCAST, 8, false},
        DL_NCCL_TREE, DL_NCCL_SIMPLE, &cost));
}

static void versions_find_their_span(void **state) {
    static const struct {
        const char *text, *span;
        int number;
    } cases[] = {{"2.0", "2.0", 0},          {"2.4.7", "2.4", 407},      {"2.4.7ms0", "2.4", 407},
                 {"2.5.6", "2.5", 506},      {"2.8.3", "2.8", 803},      {"2.12.7", "2.12", 1207},
                 {"2.18.1", "2.18.1", 1801}, {"2.18.5", "2.18.3", 1805}, {"2.22.3", "2.21", 2203},
                 {"2.27.7", "2.24", 2707},   {"2.30", "2.28", 3000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int number = 0;
        const struct dl_nccl_version *row = dl_nccl_version_find(cases[i].text, &number);
        assert_non_null(row);
        assert_string_equal(row->text, cases[i].span);
        assert_int_equal(number, cases[i].number);
    }
    int number = 0;
    assert_null(dl_nccl_version_find("3.0", &number));
    assert_null(dl_nccl_version_find("", &number));
}

/* Versions differ where they should: 2.7 multiplies the LL hop by 1.8 between nodes (B: 3.6 + 24 *
 * .47 * 1.8 + 6 * 2.7 = 40.1 us); 2.12 has a 28 us network hop for ring Simple: 8.4 + 22 * 3.4 + 8
 * * 28 = 307.2, no plateau below 65536 bytes. */
static void version_switch_by_hand(void **state) {
    int number = 0;
    struct dl_cost_parts cost;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.7.8", &number);
    assert_true(dl_nccl_cost(
        &(struct dl_nccl_operation){number, row, &graph_b, DL_COLL_ALL_REDUCE, 0, false},
        DL_NCCL_RING, DL_NCCL_LL, &cost));
    check_close(cost.latency_s * 1e6, 3.6 + 24 * .47 * 1.8 + 6 * 2.7, 1e-9);
    row = dl_nccl_version_find("2.12.7", &number);
    assert_true(dl_nccl_cost(
        &(struct dl_nccl_operation){number, row, &graph_b, DL_COLL_ALL_REDUCE, 4096, false},
        DL_NCCL_RING, DL_NCCL_SIMPLE, &cost));
    check_close(cost.latency_s * 1e6, 307.2, 1e-9);
}

/* The envelope used for predictions never lies below the formula and never falls. */
static void monotone_envelope(void **state) {
    int number = 0;
    const struct dl_nccl_version *row = dl_nccl_version_find("2.18.3", &number);
    for (int p = 0; p < 3; p++) {
        double last_s = 0.0;
        bool raised = false;
        for (double bytes = 1; bytes < 2e9; bytes *= 1.013) {
            struct dl_cost_parts exact, smooth;
            dl_nccl_cost(&(struct dl_nccl_operation){number, row, &graph_b, DL_COLL_ALL_REDUCE,
                                                     bytes, false},
                         DL_NCCL_TREE, (enum dl_nccl_protocol)p, &exact);
            dl_nccl_cost(
                &(struct dl_nccl_operation){number, row, &graph_b, DL_COLL_ALL_REDUCE, bytes, true},
                DL_NCCL_TREE, (enum dl_nccl_protocol)p, &smooth);
            assert_true(smooth.bandwidth_s >= exact.bandwidth_s &&
                        smooth.bandwidth_s <= 1.34 * exact.bandwidth_s);
            assert_true(smooth.bandwidth_s >= last_s);
            if (smooth.bandwidth_s > exact.bandwidth_s) raised = true;
            last_s = smooth.bandwidth_s;
        }
        assert_true(raised);
    }
}

/* NCCL_ALGO and NCCL_PROTO of a job, as fields of the system: the ring where the tree is cheaper;
 * tree for an all-gather, which has none, leaves it its ring; names that do not exist are errors of
 * the file. */
static void imposed_by_the_system(void **state) {
    struct dl_system system = {.name = "fake",
                               .nodes = 64,
                               .devices_per_node = 1,
                               .has_inter = true,
                               .software.nccl_version = "2.18.3"};
    system.inter = (struct dl_link){.kind = "infiniband",
                                    .bandwidth_bytes_per_s = 12e9,
                                    .latency_s = 1.5e-6,
                                    .adapters_per_node = 1,
                                    .rdma = true,
                                    .gpudirect = true,
                                    .distance = "PIX",
                                    .per_message_cpu_s = NAN,
                                    .channel_bandwidth_bytes_per_s = NAN,
                                    .cross_bandwidth_bytes_per_s = NAN};
    struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                      .library = DL_LIB_NCCL,
                                      .bytes = 4096,
                                      .nodes = 64,
                                      .ranks_per_node = 1,
                                      .flows_per_adapter = 1};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
    assert_string_equal(t.algorithm, "tree");
    system.software.nccl_algorithm = "ring", system.software.nccl_protocol = "Simple";
    assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
    assert_string_equal(t.algorithm, "ring");
    assert_string_equal(t.protocol, "Simple");
    check_close(t.steps, 126, 0);
    check_close(t.channels, 1, 0);
    assert_string_equal(t.limit, "inter");
    system.software.nccl_algorithm = "tree", r.op = DL_COLL_ALL_GATHER;
    assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
    assert_string_equal(t.algorithm, "ring");
    system.software.nccl_protocol = "LL256";
    assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_ERR_INPUT);
}

/* F-NCCL-FLOWS: what the rings of 8 nodes attain in all over a 2.8 GB/s adapter of a network that
 * gives a TCP connection 0.625 GB/s. One connection a ring before 2.4.8, 16 from then on. */
static void connections_of_rings(void **state) {
    static const struct {
        const char *version;
        int64_t rings, sockets;
        double flow, bytes_per_s;
        bool rdma;
    } cases[] = {{"2.2.13", DL_ABSENT, 16, 0.625e9, 0.625e9, false},
                 {"2.3.7", 4, 16, 0.625e9, 2.5e9, false},
                 {"2.3.7", 8, 16, 0.625e9, 2.8e9, false},
                 {"2.4.7", 2, 16, 0.625e9, 1.25e9, false},
                 {"2.4.8", DL_ABSENT, 16, 0.625e9, 2.8e9, false},
                 {"2.4.8", 1, 2, 0.625e9, 1.25e9, false},
                 {"2.4.8", 3, DL_ABSENT, 0.625e9, 1.875e9, false},
                 {"2.2.13", 1, 16, NAN, 2.8e9, false},
                 {"2.2.13", 1, 16, 5e9, 2.8e9, false},
                 {"2.2.13", 1, 16, 0.625e9, 2.8e9, true}};
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                            .library = DL_LIB_NCCL,
                                            .bytes = 1e8,
                                            .nodes = 8,
                                            .ranks_per_node = 1,
                                            .flows_per_adapter = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_system system = {.name = "fake",
                                   .nodes = 8,
                                   .devices_per_node = 1,
                                   .has_inter = true,
                                   .software.nccl_version = cases[i].version,
                                   .software.nccl_rings = cases[i].rings};
        system.inter = (struct dl_link){.kind = "ethernet",
                                        .bandwidth_bytes_per_s = 2.8e9,
                                        .latency_s = 3e-5,
                                        .adapters_per_node = 1,
                                        .rdma = cases[i].rdma,
                                        .gpudirect = cases[i].rdma,
                                        .flow_bandwidth_bytes_per_s = cases[i].flow,
                                        .sockets_per_ring = cases[i].sockets,
                                        .nccl_bandwidth_bytes_per_s = NAN,
                                        .per_message_cpu_s = NAN};
        struct dl_nccl_graph graph = {0};
        assert_int_equal(dl_nccl_graph_build(&system, &r, &graph, NULL), DL_OK);
        check_close(graph.ring_bytes_per_s * graph.channels, cases[i].bytes_per_s, 1e-12);
        check_close(graph.channels, cases[i].rings > 1 ? (double)cases[i].rings : 1, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_values_within_one_percent),
                                       cmocka_unit_test(other_operations_by_hand),
                                       cmocka_unit_test(versions_find_their_span),
                                       cmocka_unit_test(version_switch_by_hand),
                                       cmocka_unit_test(monotone_envelope),
                                       cmocka_unit_test(imposed_by_the_system),
                                       cmocka_unit_test(connections_of_rings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
