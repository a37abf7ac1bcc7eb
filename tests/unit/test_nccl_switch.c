/* Where NCCL leaves LL128 for Simple on the NVLinks of a V100 cube mesh: by its own rate of a link
 * (21 GB/s), not by the attained 22.4. By hand, 2.14.3, 8 GPUs, 6 rings: LL128 10 + 14 * 1.9 = 36.6
 * us at 0.92 of the bus, Simple 8.4 + 14 * 3.4 = 56.0 us; 19.4 us = S * 1.75 / 126 GB/s * (1 / 0.92
 * - 1), S = 16.06e6 bytes. */
#include "model/catalog/data.h"
#include "model/network/libraries/nccl.h"
#include "tests/check.h"

static const struct dl_system *load(const char *name, struct dl_arena *arena) {
    static char directory[512];
    const char *root = getenv("DLMODEL_ROOT");
    snprintf(directory, sizeof directory, "%s/data", root != NULL ? root : ".");
    const char *directories[] = {directory};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_system *system;
    struct dl_err err = {0};
    if (dl_data_system(&data, name, arena, &system, &err) != DL_OK) fail_msg("%s", err.message);
    return system;
}

static double switch_bytes(const struct dl_system *system, int64_t devices, bool allow_decreasing) {
    double last = 0;
    for (double bytes = 65536; bytes < 64e6; bytes *= 1.001) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_NCCL,
                                                .bytes = bytes,
                                                .nodes = 1,
                                                .ranks_per_node = devices,
                                                .flows_per_adapter = 1,
                                                .allow_decreasing = allow_decreasing};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(system, &r, &t, NULL), DL_OK);
        if (strcmp(t.protocol, "LL128") == 0) last = bytes;
        if (strcmp(t.protocol, "Simple") == 0) return last;
    }
    return HUGE_VAL;
}

/* Bus bandwidth of the published traces (collectives/published.csv, vTrain) jumps between these two
 * sizes. */
static void switches_where_measured(void **state) {
    static const struct {
        int devices;
        double below_mib, from_mib;
    } jumps[] = {{3, 1, 2}, {4, 4, 8}, {6, 2, 4}, {7, 8, 16}, {8, 8, 16}};
    struct dl_system system = *load("dgx1-v100", &test_arena);
    system.software.nccl_version = "2.14.3", system.collective_count = 0;
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        const double at = switch_bytes(&system, jumps[i].devices, true) / 1048576.0;
        assert_true(at >= jumps[i].below_mib && at < jumps[i].from_mib);
    }
    const double eight = switch_bytes(&system, 8, true);
    assert_true(eight > 16.06e6 / 1.002 && eight < 16.06e6 * 1.002);
}

/* A prediction never falls with size at such a switch, nor with a faster link. */
static void a_switch_never_makes_it_faster(void **state) {
    static const char *const names[] = {"dgx1-v100", "iris-v100", "dgx-a100-80", "dgx1-p100",
                                        "dgx-h100"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct dl_system system = *load(names[i], &test_arena), faster = system;
        system.collective_count = faster.collective_count = 0;
        faster.intra.bandwidth_bytes_per_s *= 1.1;
        double last_s = 0;
        for (double bytes = 1024; bytes < 1e9; bytes *= 1.01) {
            const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                    .library = DL_LIB_NCCL,
                                                    .bytes = bytes,
                                                    .nodes = 1,
                                                    .ranks_per_node = 4,
                                                    .flows_per_adapter = 1};
            struct dl_collective_time t, u;
            assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
            assert_int_equal(dl_collective_time(&faster, &r, &u, NULL), DL_OK);
            assert_true(t.time_s >= last_s);
            assert_true(u.time_s <= t.time_s * (1 + 1e-12));
            last_s = t.time_s;
        }
    }
}

/* The caller's scratch changes nothing, whatever is asked one after the other. */
static void a_memo_changes_nothing(void **state) {
    static const char *const names[] = {"dgx1-v100", "iris-v100", "dgx-h100", "gce-k80"};
    for (size_t s = 0; s < sizeof names / sizeof names[0]; s++) {
        const struct dl_system *system = load(names[s], &test_arena);
        struct dl_nccl_memo memo = {.system = NULL};
        unsigned seed = 7;
        for (int i = 0; i < 4000; i++) {
            seed = seed * 1664525u + 1013904223u;
            const unsigned dice = seed >> 8;
            struct dl_collective_request r = {.op = dice % 3 == 0   ? DL_COLL_ALL_GATHER
                                                    : dice % 7 == 0 ? DL_COLL_P2P
                                                                    : DL_COLL_ALL_REDUCE,
                                              .library = DL_LIB_NCCL,
                                              .bytes = (double)(dice % 100000) * 997.0,
                                              .nodes = 1 + (dice >> 4) % 3,
                                              .ranks_per_node = 1 + (dice >> 6) % 4,
                                              .flows_per_adapter = 1 + (dice >> 9) % 2,
                                              .concurrent = (dice >> 11) % 3,
                                              .group_stride = 1,
                                              .allow_decreasing = dice % 11 == 0};
            struct dl_collective_time t, u;
            struct dl_err one = {0}, two = {0};
            /* often the same again */
            if (i % 2 == 0)
                r.nodes = 2, r.ranks_per_node = 4, r.flows_per_adapter = 1, r.concurrent = 0;
            const enum dl_code plain = dl_collective_time(system, &r, &t, &one);
            r.memo = &memo;
            assert_int_equal(dl_collective_time(system, &r, &u, &two), plain);
            if (plain != DL_OK) continue;
            assert_true(!(t.time_s < u.time_s) && !(t.time_s > u.time_s));
            assert_true(!(t.latency_s < u.latency_s) && !(t.latency_s > u.latency_s));
            assert_string_equal(t.algorithm, u.algorithm);
            assert_true(t.protocol == u.protocol && t.limit == u.limit && t.origin == u.origin);
        }
    }
}

/* All-reduces of 8 GiB on 2 to 32 p5.48xlarge (key "aws-gpu-communication"):
 * bus bandwidth [GB/s]. With two nodes the NVSwitches limit; with more an adapter takes the sums of
 * two nodes and the result, twice the message. */
static void trees_between_switches(void **state) {
    static const struct {
        int64_t nodes;
        double bus_gb_per_s;
    } published[] = {{2, 478}, {4, 357}, {8, 355}, {16, 356}, {32, 321}};
    const struct dl_system *p5 = load("aws-p5-48xlarge", &test_arena);
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const double ranks = 8.0 * (double)published[i].nodes;
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_NCCL,
                                                .bytes = 8589934592,
                                                .nodes = published[i].nodes,
                                                .ranks_per_node = 8,
                                                .flows_per_adapter = 1};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(p5, &r, &t, NULL), DL_OK);
        check_close(r.bytes * 2 * (ranks - 1) / ranks / t.time_s, published[i].bus_gb_per_s * 1e9,
                    0.06);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memo_changes_nothing), cmocka_unit_test(switches_where_measured),
        cmocka_unit_test(a_switch_never_makes_it_faster), cmocka_unit_test(trees_between_switches)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
