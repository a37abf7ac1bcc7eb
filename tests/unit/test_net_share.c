/* Fair shares of links by hand, what a group gets of adapters, host and switches, and groups inside
 * a cube mesh. */
#include "model/network/collective.h"
#include "model/catalog/data.h"
#include "model/machine/fair.h"
#include "model/network/path.h"
#include "tests/check.h"

/* F-FAIR. Links of 10 and 6. Two flows a on link 0; one flow b on both; c on link 1 wants 1 at
 * most. Together they rise to 1: c has all it wants. Then a, a and b rise to 10 / 3, where link 0
 * is full (link 1 carries 1 + 10 / 3). With link 1 of 4: b is stopped at 3 by link 1 (3 + 1 = 4),
 * and each a rises to (10 - 3) / 2 = 3.5. */
static void shares_by_hand(void **state) {
    struct dl_fair_class classes[3] = {
        {.flows = 2, .demand_bytes_per_s = HUGE_VAL, .use_frac = {1}},
        {.flows = 1, .demand_bytes_per_s = HUGE_VAL, .use_frac = {1, 1}},
        {.flows = 1, .demand_bytes_per_s = 1, .use_frac = {0, 1}}};
    dl_fair_shares((double[]){10, 6}, 2, classes, 3);
    check_close(classes[0].rate_bytes_per_s, 10.0 / 3, 1e-12);
    check_close(classes[1].rate_bytes_per_s, 10.0 / 3, 1e-12);
    check_close(classes[2].rate_bytes_per_s, 1, 1e-12);
    assert_int_equal(classes[0].limit, 0);
    assert_int_equal(classes[2].limit, -1);
    dl_fair_shares((double[]){10, 4}, 2, classes, 3);
    check_close(classes[0].rate_bytes_per_s, 3.5, 1e-12);
    check_close(classes[1].rate_bytes_per_s, 3, 1e-12);
    assert_int_equal(classes[1].limit, 1);
    /* a flow that passes a link twice counts twice: 2 x + x = 6 */
    /* a link that carries nothing, or is full already, leaves nothing */
    struct dl_fair_class none[2] = {{.flows = 1, .demand_bytes_per_s = 5, .use_frac = {1, 0}},
                                    {.flows = 1, .demand_bytes_per_s = 5, .use_frac = {0, 1}}};
    dl_fair_shares((double[]){0, 3}, 2, none, 2);
    check_close(none[0].rate_bytes_per_s, 0, 0);
    assert_int_equal(none[0].limit, 0);
    check_close(none[1].rate_bytes_per_s, 3, 0);
    assert_int_equal(none[1].limit, 1);
    none[0].demand_bytes_per_s = 2, none[1].use_frac[0] = 1;
    dl_fair_shares((double[]){4, 0}, 2, none, 2);
    check_close(none[0].rate_bytes_per_s, 2, 0);
    check_close(none[1].rate_bytes_per_s, 0, 0);
    struct dl_fair_class twice[2] = {{.flows = 1, .demand_bytes_per_s = HUGE_VAL, .use_frac = {2}},
                                     {.flows = 1, .demand_bytes_per_s = HUGE_VAL, .use_frac = {1}}};
    dl_fair_shares((double[]){6}, 1, twice, 2);
    check_close(twice[0].rate_bytes_per_s, 2, 1e-12);
}

static unsigned random_state = 7u;
static double random_number(double low, double high) {
    random_state = random_state * 1664525u + 1013904223u;
    return low + (high - low) * (double)(random_state >> 8) / 16777216.0;
}

/* On random networks no link carries more than it can, and each class stands at its demand or at a
 * full link on which no other has a higher rate. */
static void shares_are_max_min(void **state) {
    enum { LINKS = 6, CLASSES = 7 };
    for (int trial = 0; trial < 3000; trial++) {
        double capacity[LINKS];
        struct dl_fair_class classes[CLASSES];
        for (int l = 0; l < LINKS; l++) capacity[l] = random_number(1, 20);
        for (int c = 0; c < CLASSES; c++) {
            classes[c] = (struct dl_fair_class){.flows = 1 + (int)random_number(0, 4),
                                                .demand_bytes_per_s = random_number(0.1, 8)};
            for (int l = 0; l < LINKS; l++)
                classes[c].use_frac[l] = random_number(0, 1) < 0.4 ? random_number(0.5, 3) : 0;
        }
        dl_fair_shares(capacity, LINKS, classes, CLASSES);
        double load[LINKS] = {0};
        for (int c = 0; c < CLASSES; c++)
            for (int l = 0; l < LINKS; l++)
                load[l] += classes[c].flows * classes[c].use_frac[l] * classes[c].rate_bytes_per_s;
        for (int l = 0; l < LINKS; l++) assert_true(load[l] <= capacity[l] * (1 + 1e-9));
        for (int c = 0; c < CLASSES; c++) {
            if (classes[c].limit < 0) {
                check_close(classes[c].rate_bytes_per_s, classes[c].demand_bytes_per_s, 1e-9);
                continue;
            }
            const int l = classes[c].limit;
            check_close(load[l], capacity[l], 1e-9);
            for (int k = 0; k < CLASSES; k++)
                if (classes[k].use_frac[l] > 0)
                    assert_true(classes[k].rate_bytes_per_s <=
                                classes[c].rate_bytes_per_s * (1 + 1e-9));
        }
    }
}

static struct dl_system node(void) {
    struct dl_system system = {
        .name = "fake", .has_inter = true, .has_host = true, .has_intra = true};
    system.inter = (struct dl_link){.kind = "infiniband",
                                    .bandwidth_bytes_per_s = 12e9,
                                    .adapters_per_node = 4,
                                    .gpudirect = true,
                                    .distance = "PIX",
                                    .rdma = true};
    system.host.copy_bandwidth_bytes_per_s = 10e9, system.host.memory_bandwidth_bytes_per_s = 100e9;
    system.intra.cross_bandwidth_bytes_per_s = 20e9;
    return system;
}

/* F-NETWORK, 4 adapters of 12 GB/s. One group of 8 ranks: 48. One rank: a rail of 12. 8 groups of
 * one rank: two on a rail, 6. 2 groups of 2: a rail for each rank, 24. Staged: a copy of 10 GB/s a
 * rail, and 4 passes through a memory of 100 GB/s: 4 rails get 25 in all; through a switch shared
 * with the adapter half a copy, 5. From the other socket: 20 for all. */
static void what_a_group_gets(void **state) {
    struct dl_system system = node();
    static const struct {
        double per_node, groups;
        bool gpudirect;
        const char *distance;
        double bytes_per_s;
        enum dl_network_link limit;
    } cases[] = {
        {8, 1, true, "PIX", 48e9, DL_NET_ADAPTERS}, {1, 1, true, "PIX", 12e9, DL_NET_ADAPTERS},
        {1, 8, true, "PIX", 6e9, DL_NET_ADAPTERS},  {2, 2, true, "PIX", 24e9, DL_NET_ADAPTERS},
        {1, 1, false, "SYS", 10e9, DL_NET_COPY},    {1, 1, false, "PXB", 5e9, DL_NET_COPY},
        {4, 1, false, "NODE", 25e9, DL_NET_MEMORY}, {4, 1, true, "SYS", 20e9, DL_NET_CROSS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        system.inter.gpudirect = cases[i].gpudirect, system.inter.distance = cases[i].distance;
        const struct dl_rank_group group = {.nodes = 4,
                                            .ranks_per_node = (int64_t)cases[i].per_node};
        struct dl_path path;
        dl_path_of(&system, &group, &path);
        path.groups = cases[i].groups;
        const struct dl_path_share share = dl_path_between(&path, 12e9, true);
        check_close(share.bytes_per_s, cases[i].bytes_per_s, 1e-12);
        assert_int_equal(share.limit, cases[i].limit);
        check_close(path.oversubscription, 1, 0);
    }
}

/* A fat tree with 3 : 1 behind 16 nodes, hops of 1 us: nothing inside a leaf, two hops and a third
 * of the rate for exchanges beyond. The same as a dragonfly: three hops, detours. */
static void switches_by_hand(void **state) {
    struct dl_system system = node();
    system.has_fabric = true;
    system.fabric = (struct dl_fabric){
        .topology = "fat-tree", .oversubscription = 3, .nodes_per_leaf = 16, .hop_latency_s = 1e-6};
    static const struct {
        const char *topology;
        int64_t nodes;
        double oversubscription, latency_s;
    } cases[] = {{"fat-tree", 16, 1, 0}, {"fat-tree", 17, 3, 2e-6}, {"dragonfly", 17, 6, 3e-6}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_rank_group group = {.nodes = cases[i].nodes, .ranks_per_node = 1};
        struct dl_path path;
        system.fabric.topology = cases[i].topology;
        dl_path_of(&system, &group, &path);
        check_close(path.oversubscription, cases[i].oversubscription, 0);
        check_close(path.fabric_latency_s, cases[i].latency_s, 1e-12);
    }
}

/* Leaves of 16 nodes with 32 : 1. Neighbours in a ring: one node of 16 sends out, twice what the
 * uplinks carry; nodes 4 apart: 4 of them, 8 times; 64 apart: all, 32 times. 64 workers that are
 * servers, too, send 3/4 of their bytes to other leaves: 16 * 3/4 * 32 / 16. A server on a node
 * after 32 workers takes the bytes of all of them: 32 * 32 / 16. */
static void uplinks_by_hand(void **state) {
    struct dl_system system = node();
    system.has_fabric = true;
    system.inter.bandwidth_bytes_per_s = 12e9;
    system.fabric =
        (struct dl_fabric){.topology = "fat-tree", .oversubscription = 32, .nodes_per_leaf = 16};
    static const struct {
        int64_t nodes, stride, span;
        double load;
    } cases[] = {{16, 1, 0, 0}, {64, 1, 0, 2}, {16, 4, 0, 8}, {2, 64, 128, 32}, {2, 1, 8, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_rank_group group = {.nodes = cases[i].nodes,
                                            .ranks_per_node = 1,
                                            .node_stride = cases[i].stride,
                                            .span_nodes = cases[i].span};
        struct dl_path path;
        dl_path_of(&system, &group, &path);
        check_close(path.uplink_load, cases[i].load, 1e-12);
        check_close(dl_path_adapter_bytes_per_s(&path, 11e9),
                    cases[i].load > 1 ? 12e9 / cases[i].load : 11e9, 1e-12);
    }
    check_close(dl_path_server_load(&system, 16, 0, 16), 0, 0);
    check_close(dl_path_server_load(&system, 64, 0, 64), 24, 1e-12);
    check_close(dl_path_server_load(&system, 32, 32, 1), 64, 1e-12);
}

/* V100 cube mesh, 22.4 GB/s a link. Four groups of two that stand 4 apart: 0-4 and 1-5 have two
 * links, 2-6 and 3-7 one: the worst counts. Two groups of four neighbours have four rings each, as
 * one alone; two groups of four that stand 2 apart have the square 0-2-6-4, both ways. Large
 * all-reduce: bus bandwidth = rings x 22.4. */
static void groups_inside_a_cube_mesh(void **state) {
    const char *root = getenv("DLMODEL_ROOT");
    const char *directories[] = {
        dl_arena_printf(&test_arena, "%s/data", root != NULL ? root : ".")};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_system *system;
    struct dl_err err = {0};
    if (dl_data_system(&data, "dgx1-v100", &test_arena, &system, &err) != DL_OK)
        fail_msg("%s", err.message);
    static const struct {
        int64_t size, stride, groups;
        double rings;
    } cases[] = {{2, 4, 4, 1}, {4, 1, 2, 4}, {4, 1, 1, 4}, {4, 2, 2, 2}, {8, 1, 1, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                          .library = DL_LIB_NCCL,
                                          .bytes = 4e9,
                                          .nodes = 1,
                                          .ranks_per_node = 8,
                                          .flows_per_adapter = 1,
                                          .group_size = cases[i].size,
                                          .group_stride = cases[i].stride,
                                          .concurrent = cases[i].groups};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(system, &r, &t, &err), DL_OK);
        const double n = (double)cases[i].size, bus = 4e9 / t.bandwidth_s * 2 * (n - 1) / n;
        check_close(bus, cases[i].rings * system->intra.bandwidth_bytes_per_s / 6, 0.02);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_by_hand),    cmocka_unit_test(shares_are_max_min),
        cmocka_unit_test(what_a_group_gets), cmocka_unit_test(switches_by_hand),
        cmocka_unit_test(uplinks_by_hand),   cmocka_unit_test(groups_inside_a_cube_mesh)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
