/* Predictions of published collectives from the system files alone, without samples: prints the
 * median absolute error by system and size class and holds each to the bound reached when it was
 * last recorded (so that it can only get better). */
#include "model/network/coll_match.h"
#include "model/core/csv.h"
#include "model/catalog/data.h"
#include "model/statistics/stats.h"
#include "tests/check.h"

enum { ROWS = 4096, GROUPS = 64 };
static const double MEBIBYTE = 1048576.0;

/* What the model must keep to: medians in percent below and from 1 MiB (0: too few rows to hold).
 * Recorded 1.0, 3.2; 7.6, 33 (21, 27 before staging was measured, in messages below 4 KiB); 9;
 * 7.5, 13; Ampere 9, 5; Hopper 7, 2; Blackwell 4, 4; GB200 2.5, 3; MI300X, whose two nodes answer
 * short messages in 219 us, 0.7; MI325X 2. */
struct bound {
    const char *system, *library;
    double pct[2];
};
static const struct bound bounds[] = {{"dgx1-v100", "NCCL", {5, 5}},
                                      {"azure-nd40rs-v2", "OSU Open MPI/UCX", {10, 36}},
                                      {"aws-p3dn-24xlarge", "OSU Open MPI", {15, 0}},
                                      {"stampede2-knl", "Intel MLSL", {0, 15}},
                                      {"gcp-v100", "OSU Open MPI", {28, 0}},
                                      {"deepbench-1080ti", "NCCL", {0, 8}},
                                      {"deepbench-m40", "NCCL", {0, 6}},
                                      {"deepbench-p100", "NCCL", {0, 6}},
                                      {"deepbench-titanx", "NCCL", {0, 8}},
                                      {"deepbench-titanx-pascal", "NCCL", {0, 6}},
                                      {"dgx-a100-80", "NCCL (nccl-tests)", {10, 7}},
                                      {"dgx-h100", "NCCL (nccl-tests)", {9, 4}},
                                      {"dgx-b200", "NCCL (nccl-tests)", {6, 6}},
                                      {"gb200-nvl72", "NCCL (nccl-tests)", {4, 5}},
                                      {"mi300x-8x", "RCCL (rccl-tests)", {0, 3}},
                                      {"mi325x-8x", "RCCL (rccl-tests)", {0, 4}},
                                      {"dgx-h100", "NCCL (torch.distributed)", {0, 8}},
                                      {"all", "", {30, 15}}};

struct group {
    const char *system, *library;
    double error[2][ROWS], bias[2];
    size_t count[2];
};
static struct group groups[GROUPS];
static int group_count;
static double all[2][ROWS];
static size_t all_count[2], skipped;

static struct group *group_of(const char *system, const char *library) {
    for (int i = 0; i < group_count; i++)
        if (strcmp(groups[i].system, system) == 0 && strcmp(groups[i].library, library) == 0)
            return &groups[i];
    assert_true(group_count < GROUPS);
    groups[group_count].system = system, groups[group_count].library = library;
    return &groups[group_count++];
}

static void predict_row(const struct dl_data *data, const struct dl_coll_row *row,
                        struct dl_arena *arena) {
    struct dl_err err = {0};
    struct dl_coll_match match = dl_coll_match(row);
    if (match.system == NULL) {
        assert_non_null(match.why);
        skipped++;
        return;
    }
    const struct dl_system *loaded;
    if (dl_data_system(data, match.system, arena, &loaded, &err) != DL_OK)
        fail_msg("%s: %s", match.system, err.message);
    struct dl_system system = *loaded;
    if (match.mpi != NULL) system.software.mpi = match.mpi;
    if (match.nccl_version != NULL) system.software.nccl_version = match.nccl_version;
    system.collective_count = 0; /* from the links alone */
    struct dl_collective_time t;
    if (dl_collective_time(&system, &match.request, &t, &err) != DL_OK)
        fail_msg("%s: %s", match.system, err.message);
    if (match.launches > 0 && system.device != NULL && !isnan(system.device->launch_s))
        t.time_s += match.launches * system.device->launch_s;
    int large = match.request.bytes >= MEBIBYTE;
    struct group *group = group_of(match.system, row->library);
    double error = t.time_s / match.measured_s - 1.0;
    if (getenv("DLMODEL_VERBOSE") != NULL)
        printf("%-16s %-14.14s %3d x %d %11.0f B measured %10.1f us predicted %10.1f us %+6.1f %% "
               "%s %s\n",
               match.system, row->library, (int)match.request.nodes,
               (int)match.request.ranks_per_node, match.request.bytes, match.measured_s * 1e6,
               t.time_s * 1e6, error * 100.0, t.algorithm, t.protocol != NULL ? t.protocol : "");
    group->bias[large] += error;
    group->error[large][group->count[large]++] = fabs(error);
    all[large][all_count[large]++] = fabs(error);
}

static void hold(const char *system, const char *library, int large, double median_pct) {
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (strcmp(bounds[i].system, system) != 0 || strcmp(bounds[i].library, library) != 0)
            continue;
        if (bounds[i].pct[large] > 0.0 && median_pct > bounds[i].pct[large])
            fail_msg("%s %s: median error %.1f %%, held to %.0f %%", system, library, median_pct,
                     bounds[i].pct[large]);
    }
}

static void predict_table(const char *directory, const char *name, struct dl_arena *arena) {
    char path[600];
    snprintf(path, sizeof path, "%s/collectives/%s", directory, name);
    struct dl_data data = {.directories = &directory, .directory_count = 1};
    struct dl_arena systems = {0};
    struct dl_csv csv;
    struct dl_err err = {0};
    if (dl_csv_read(path, arena, &csv, &err) != DL_OK) fail_msg("%s", err.message);
    for (int i = 0; i < csv.row_count; i++) {
        struct dl_coll_row row;
        if (dl_coll_row_read(&csv, i, &row, &err) != DL_OK) fail_msg("%s", err.message);
        predict_row(&data, &row, &systems);
        if (i % 50 == 0) dl_arena_free(&systems);
    }
    dl_arena_free(&systems);
}

static void published_collectives(void **state) {
    static double scratch[ROWS];
    const char *root = getenv("DLMODEL_ROOT");
    char directory[512];
    snprintf(directory, sizeof directory, "%s/data", root != NULL ? root : ".");
    /* the groups keep text of the tables */
    struct dl_arena arenas[2] = {{0}, {0}};
    predict_table(directory, "published.csv", &arenas[0]);
    predict_table(directory, "published_2.csv", &arenas[1]);
    printf("%-18s %-14s %22s %22s\n", "system", "library", "< 1 MiB: n med% bias%", ">= 1 MiB");
    for (int i = 0; i < group_count; i++) {
        printf("%-18s %-14.14s", groups[i].system, groups[i].library);
        for (int k = 0; k < 2; k++) {
            size_t n = groups[i].count[k];
            if (n == 0) {
                printf(" %22s", "-");
                continue;
            }
            double median_pct = 100 * dl_median(groups[i].error[k], n, scratch);
            printf(" %7zu %6.1f %+6.1f ", n, median_pct, 100 * groups[i].bias[k] / (double)n);
            hold(groups[i].system, groups[i].library, k, median_pct);
        }
        printf("\n");
    }
    printf("all: below 1 MiB %zu rows, median %.1f %%; from 1 MiB %zu rows, median %.1f %%; %zu "
           "rows without a system "
           "file\n",
           all_count[0], 100 * dl_median(all[0], all_count[0], scratch), all_count[1],
           100 * dl_median(all[1], all_count[1], scratch), skipped);
    for (int k = 0; k < 2; k++) hold("all", "", k, 100 * dl_median(all[k], all_count[k], scratch));
    assert_true(all_count[0] > 100 && all_count[1] > 80);
    dl_arena_free(&arenas[0]);
    dl_arena_free(&arenas[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_collectives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
