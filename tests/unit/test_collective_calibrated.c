/* Prediction from samples of published collectives: 5-fold over sizes, and one rank count left out. A series is one
 * machine, library, rank set and kind of run. Prints the mean absolute errors and holds them to bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/coll_match.h"
#include "model/data.h"
#include "tests/check.h"

enum { SERIES = 64, POINTS = 64 };

struct series {
    const char *text, *notes, *system;
    struct dl_coll_match match;
    struct dl_coll_sample samples[POINTS];
    int count;
};
static struct series all[SERIES];
static int series_count;
static struct dl_arena arena, systems;
static struct dl_data data;
static const char *directories[1];
static char directory[512];

static int by_bytes(const void *a, const void *b)
{
    const struct dl_coll_sample *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int load(void **state)
{
    (void)state;
    const char *root = getenv("DLMODEL_ROOT");
    char path[600];
    snprintf(directory, sizeof directory, "%s/data", root != NULL ? root : ".");
    snprintf(path, sizeof path, "%s/collectives/published.csv", directory);
    directories[0] = directory;
    data = (struct dl_data){.directories = directories, .directory_count = 1};
    struct dl_csv csv;
    if (dl_csv_read(path, &arena, &csv, NULL) != DL_OK) return 1;
    for (int i = 0; i < csv.row_count; i++) {
        struct dl_coll_row row;
        if (dl_coll_row_read(&csv, i, &row, NULL) != DL_OK) return 1;
        struct dl_coll_match match = dl_coll_match(&row);
        if (match.system == NULL || isnan(row.size_bytes)) continue;
        int k = 0;
        while (k < series_count && (strcmp(all[k].text, row.system) != 0 || strcmp(all[k].notes, row.notes) != 0 ||
                                    all[k].match.request.nodes != match.request.nodes ||
                                    all[k].match.request.ranks_per_node != match.request.ranks_per_node))
            k++;
        if (k == SERIES || all[k].count == POINTS) return 1;
        if (k == series_count) {
            all[k] = (struct series){.text = row.system, .notes = row.notes, .system = match.system, .match = match};
            series_count++;
        }
        all[k].samples[all[k].count++] = (struct dl_coll_sample){row.size_bytes, match.measured_s, NAN, NAN};
    }
    for (int k = 0; k < series_count; k++)
        qsort(all[k].samples, (size_t)all[k].count, sizeof all[k].samples[0], by_bytes);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    dl_arena_free(&arena);
    dl_arena_free(&systems);
    return 0;
}

/* Relative error of the prediction of one sample of `wanted` from `measured`. */
static double error_of(const struct series *wanted, const struct dl_coll_sample *sample,
                       struct dl_coll_measured *measured, int count)
{
    static const char *name = "";
    static const struct dl_system *loaded;
    struct dl_err err = {0};
    if (strcmp(name, wanted->system) != 0) {
        dl_arena_free(&systems);
        if (dl_data_system(&data, wanted->system, &systems, &loaded, &err) != DL_OK) fail_msg("%s", err.message);
        name = wanted->system;
    }
    struct dl_system system = *loaded;
    if (wanted->match.mpi != NULL) system.mpi = wanted->match.mpi;
    system.collectives = measured, system.collective_count = count;
    struct dl_collective_request request = wanted->match.request;
    request.bytes = sample->bytes;
    struct dl_collective_time t;
    if (dl_collective_time(&system, &request, &t, &err) != DL_OK) fail_msg("%s", err.message);
    assert_string_not_equal(t.origin, "model");
    return fabs(t.time_s / sample->time_s - 1.0);
}

static struct dl_coll_measured measured_of(const struct series *series, struct dl_coll_sample *samples, int fold)
{
    struct dl_coll_measured out = {.library = dl_library_names[series->match.request.library],
                                   .operation = "all_reduce",
                                   .nodes = series->match.request.nodes,
                                   .ranks = series->match.request.nodes * series->match.request.ranks_per_node,
                                   .samples = samples};
    for (int i = 0; i < series->count; i++)
        if (fold < 0 || i % 5 != fold) samples[out.sample_count++] = series->samples[i];
    return out;
}

static void five_folds_over_sizes(void **state)
{
    (void)state;
    double sum[2] = {0, 0};
    int count[2] = {0, 0};
    for (int k = 0; k < series_count; k++) {
        if (all[k].count < 10) continue;
        double mean = 0.0;
        for (int i = 1; i + 1 < all[k].count; i++) { /* inside the range */
            struct dl_coll_sample samples[POINTS];
            struct dl_coll_measured measured = measured_of(&all[k], samples, i % 5);
            double error = error_of(&all[k], &all[k].samples[i], &measured, 1);
            int nccl = all[k].match.request.library == DL_LIB_NCCL;
            sum[nccl] += error, count[nccl]++, mean += error / (all[k].count - 2);
        }
        printf("%-18s %3d x %d: %4.1f %%\n", all[k].system, (int)all[k].match.request.nodes,
               (int)all[k].match.request.ranks_per_node, 100 * mean);
    }
    printf("5-fold over sizes: NCCL %.1f %% of %d, MPI %.1f %% of %d\n", 100 * sum[1] / count[1], count[1],
           100 * sum[0] / count[0], count[0]);
    assert_true(count[0] > 100 && count[1] > 50);
    assert_true(sum[1] / count[1] < 0.03);
    assert_true(sum[0] / count[0] < 0.08);
}

/* Every series from those of the same machine and kind with other rank counts. */
static void one_rank_count_left_out(void **state)
{
    (void)state;
    double total = 0.0;
    int total_count = 0;
    for (int k = 0; k < series_count; k++) {
        static struct dl_coll_sample samples[SERIES][POINTS];
        struct dl_coll_measured measured[SERIES];
        int count = 0;
        for (int j = 0; j < series_count; j++)
            if (j != k && strcmp(all[j].text, all[k].text) == 0 && strcmp(all[j].notes, all[k].notes) == 0)
                measured[count] = measured_of(&all[j], samples[count], -1), count++;
        if (count == 0) continue;
        double mean = 0.0;
        for (int i = 0; i < all[k].count; i++)
            mean += error_of(&all[k], &all[k].samples[i], measured, count) / all[k].count;
        printf("%-18s %3d x %d: %4.1f %%\n", all[k].system, (int)all[k].match.request.nodes,
               (int)all[k].match.request.ranks_per_node, 100 * mean);
        total += mean, total_count++;
    }
    printf("one rank count left out: mean of series %.1f %% of %d\n", 100 * total / total_count, total_count);
    assert_true(total_count >= 15);
    assert_true(total / total_count < 0.10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(five_folds_over_sizes),
                                       cmocka_unit_test(one_rank_count_left_out)};
    return cmocka_run_group_tests(tests, load, unload);
}
