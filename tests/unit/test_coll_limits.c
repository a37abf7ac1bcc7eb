/* Ends of tables and lists, and what is remembered between calls, in the collectives: the decision
 * table of Open MPI 4.1 on both sides of each step, more pieces asked for than a fit has, links
 * behind the end of a list, and an answer with a memory that equals the one without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/algorithms/coll_copy.h"
#include "model/network/coll_fit.h"
#include "model/network/libraries/mpi_coll.h"
#include "model/network/libraries/nccl.h"
#include "tests/check.h"
#include "tests/fake.h"

/* coll_tuned_decision_fixed.c of Open MPI 4.1: for a range of ranks, algorithms and the sizes at
 * which they give way to the next. */
static const struct {
    double first_ranks, last_ranks;
    struct {
        const char *algorithm;
        double until_bytes;
    } steps[8];
} open_mpi[] = {
    {2,
     3,
     {{"ring", 8},
      {"recursive_doubling", 4096},
      {"ring", 8192},
      {"recursive_doubling", 16384},
      {"ring", 65536},
      {"segmented_ring", 262144},
      {"rabenseifner", HUGE_VAL}}},
    {4, 7, {{"ring", 16}, {"recursive_doubling", 8192}, {"rabenseifner", HUGE_VAL}}},
    {8, 15, {{"recursive_doubling", 8192}, {"rabenseifner", HUGE_VAL}}},
    {16, 31, {{"segmented_ring", 64}, {"recursive_doubling", 4096}, {"rabenseifner", HUGE_VAL}}},
    {32, 63, {{"segmented_ring", 128}, {"rabenseifner", HUGE_VAL}}},
    {64, 127, {{"recursive_doubling", 262144}, {"rabenseifner", HUGE_VAL}}},
    {128,
     255,
     {{"nonoverlapping", 131072}, {"recursive_doubling", 262144}, {"rabenseifner", HUGE_VAL}}},
    {256, 511, {{"nonoverlapping", 4096}, {"rabenseifner", HUGE_VAL}}},
    {512,
     2047,
     {{"nonoverlapping", 2048}, {"recursive_doubling", 16384}, {"rabenseifner", HUGE_VAL}}},
    {2048,
     4095,
     {{"nonoverlapping", 2048},
      {"segmented_ring", 4096},
      {"recursive_doubling", 16384},
      {"rabenseifner", HUGE_VAL}}},
    {4096,
     1e6,
     {{"nonoverlapping", 2048},
      {"segmented_ring", 16384},
      {"recursive_doubling", 32768},
      {"rabenseifner", HUGE_VAL}}}};

static void steps_of_open_mpi(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof open_mpi / sizeof *open_mpi; i++)
        for (int end = 0; end < 2; end++) {
            const double ranks = end == 0 ? open_mpi[i].first_ranks : open_mpi[i].last_ranks;
            double from = 0;
            for (int k = 0; open_mpi[i].steps[k].algorithm != NULL; k++) {
                const double until = open_mpi[i].steps[k].until_bytes;
                const double sizes[] = {from, isinf(until) ? 1e12 : until - 1};
                for (int s = 0; s < 2; s++) {
                    double below = -1;
                    const enum dl_mpi_algorithm chosen =
                        dl_mpi_all_reduce_choice(DL_MPI_OPEN, ranks, sizes[s], &below);
                    assert_string_equal(dl_mpi_algorithm_names[chosen],
                                        open_mpi[i].steps[k].algorithm);
                    check_close(below, from, 0); /* where the one before gave way */
                }
                from = until;
            }
        }
}

/* Ten steps of six samples: five pieces are the most, whatever is asked for. */
static void pieces_of_a_fit(void **state) {
    (void)state;
    struct dl_coll_sample samples[60];
    struct dl_piece pieces[12];
    double error;
    for (int i = 0; i < 60; i++)
        samples[i] = (struct dl_coll_sample){pow(1.2, i), pow(4, i / 6), NAN, NAN};
    for (int most = 1; most <= 10; most++) {
        for (int i = 0; i < 12; i++) pieces[i] = (struct dl_piece){-7, -7, -7};
        const int limit = most < DL_COLL_FIT_PIECES ? most : DL_COLL_FIT_PIECES;
        const int count = dl_coll_fit(samples, 60, most, pieces, &error);
        assert_in_range(count, 1, limit);
        for (int i = count; i < 12; i++) check_close(pieces[i].alpha_s, -7, 0);
        assert_true(isinf(pieces[count - 1].max_bytes));
    }
    assert_int_equal(dl_coll_fit(samples, 60, 0, pieces, &error), 0);
    check_nan(error);
    assert_int_equal(dl_coll_fit(samples, 1, 2, pieces, NULL), 0);
}

/* Device 0 reaches 1 and 2 over links, 3 through the host; the list ends before a link to 3. */
static void links_of_a_list(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_edge edges[] = {{.from = 0, .to = 1, .links = 1},
                              {.from = 2, .to = 0, .links = 2},
                              {.from = 0, .to = 3, .links = 1}};
    f.system.intra.edges = edges, f.system.intra.edge_count = 2;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 1);
    assert_int_equal(dl_copy_staged_devices(&f.system, 3), 0);
    f.system.intra.edge_count = 1;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 2);
    f.system.intra.edge_count = 3;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 0);
    f.system.intra.peer_to_peer = false;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 3);
    f.system.intra.peer_to_peer = true, f.system.has_intra = false;
    assert_int_equal(dl_copy_staged_devices(&f.system, 4), 3);
    dl_arena_free(&f.arena);
}

/* A rate is a rate, however low: 0.05 B/s. None is an error of the system. */
static void slow_copies(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_collective_time t;
    struct dl_err err = {0};
    const struct dl_collective_request r = {.op = DL_COLL_P2P,
                                            .library = DL_LIB_COPY,
                                            .bytes = 1,
                                            .nodes = 1,
                                            .ranks_per_node = 2,
                                            .flows_per_adapter = 1};
    fake_make(&f);
    f.system.intra.kind = "nvswitch", f.system.intra.bandwidth_bytes_per_s = 0.05;
    assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_OK);
    check_close(t.bandwidth_s, 20, 1e-12);
    f.system.intra.bandwidth_bytes_per_s = 0, f.system.has_host = false; /* no way round */
    assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_ERR_INPUT);
    assert_string_equal(err.message,
                        "system fake has no bandwidth between the devices of a node: set "
                        "links.intra or host.copy_bandwidth_bytes_per_s");
    dl_arena_free(&f.arena);
}

static double seconds(const struct dl_system *system, struct dl_collective_request r,
                      struct dl_nccl_memo *memo) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    r.memo = memo;
    if (dl_collective_time(system, &r, &t, &err) != DL_OK) fail_msg("%s", err.message);
    return t.time_s;
}

/* Requests that differ in one member, asked one after another with one memory: each gets what it
 * gets without. */
static void memory_of_requests(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.system.devices_per_node = 8, f.system.nccl_version = "2.8.3";
    f.system.intra.kind = "pcie3", f.system.intra.channels = DL_ABSENT,
    f.system.intra.bandwidth_bytes_per_s = 10e9, f.system.intra.channel_bandwidth_bytes_per_s = NAN;
    f.system.intra.peer_group = 4, f.system.intra.cross_bandwidth_bytes_per_s = 6e9;
    struct dl_system other = f.system;
    other.intra.bandwidth_bytes_per_s = 5e9, other.inter.bandwidth_bytes_per_s = 3e9;
    const struct dl_collective_request plain = {.op = DL_COLL_BROADCAST,
                                                .library = DL_LIB_NCCL,
                                                .bytes = 1e8,
                                                .nodes = 2,
                                                .ranks_per_node = 2,
                                                .flows_per_adapter = 1,
                                                .group_stride = 1};
    struct dl_collective_request asked[9];
    for (int i = 0; i < 9; i++) asked[i] = plain;
    asked[1].nodes = 3, asked[2].ranks_per_node = 1, asked[3].flows_per_adapter = 2;
    asked[4].flows_per_adapter = 4, asked[5].nodes = 1, asked[6] = asked[5];
    asked[6].group_stride = 4, asked[7] = asked[6]; /* groups of two in a node of eight */
    asked[7].ranks_per_node = 8, asked[7].group_size = 2, asked[7].concurrent = 3;
    asked[8] = asked[7], asked[8].concurrent = 2;
    struct dl_nccl_memo memo = {0};
    const struct dl_system *const systems[] = {&f.system, &other};
    for (int a = 0; a < 18; a++)
        for (int b = 0; b < 18; b++) { /* a, then b */
            seconds(systems[a / 9], asked[a % 9], &memo);
            check_close(seconds(systems[b / 9], asked[b % 9], &memo),
                        seconds(systems[b / 9], asked[b % 9], NULL), 0);
        }
    for (int a = 0; a < 9; a++) /* the members matter */
        assert_true(seconds(&f.system, asked[a], NULL) < seconds(&other, asked[a], NULL) ||
                    asked[a].group_stride > 1);
    dl_arena_free(&f.arena);
}

/* What a system's names were when it was prepared holds no longer when they change. */
static void prepared_names(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_device newer;
    int number;
    bool assumed;
    fake_make(&f);
    newer = f.device, newer.architecture = "hopper";
    f.system.nccl_version = NULL;
    dl_nccl_prepare(&f.system);
    dl_nccl_version_of(&f.system, &number, &assumed);
    assert_true(assumed);
    assert_int_equal(number, 408);
    f.system.device = &newer; /* the release of its time */
    dl_nccl_version_of(&f.system, &number, &assumed);
    assert_true(assumed);
    assert_int_equal(number, 1903);
    f.system.nccl_version = "2.12.7";
    dl_nccl_version_of(&f.system, &number, &assumed);
    assert_false(assumed);
    assert_int_equal(number, 1207);
    dl_nccl_prepare(&f.system);
    f.system.nccl_version = "2.14.3";
    dl_nccl_version_of(&f.system, &number, &assumed);
    assert_int_equal(number, 1403);
    f.system.host.cpu = "Intel", dl_nccl_prepare(&f.system);
    const struct dl_collective_request r = {
        .op = DL_COLL_BROADCAST, .nodes = 1, .ranks_per_node = 4};
    struct dl_nccl_graph g = {0};
    assert_int_equal(dl_nccl_graph_build(&f.system, &r, &g, NULL), DL_OK);
    assert_false(g.amd_host);
    f.system.host.cpu = "AMD EPYC";
    assert_int_equal(dl_nccl_graph_build(&f.system, &r, &g, NULL), DL_OK);
    assert_true(g.amd_host);
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_open_mpi),  cmocka_unit_test(pieces_of_a_fit),
        cmocka_unit_test(links_of_a_list),    cmocka_unit_test(slow_copies),
        cmocka_unit_test(memory_of_requests), cmocka_unit_test(prepared_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
