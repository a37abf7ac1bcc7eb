/* Published collectives predicted from other samples of the same machine, as a calibrated profile
 * would: five folds over the sizes of each series, and every rank count from the others. Holds the
 * mean by source to what was reached when it was last recorded (so that it can only get better). */
#include "predict/compare/compare.h"
#include "tests/check.h"

static void hold(enum dl_calibrated mode, double by_source_pct, double median_pct,
                 int fewest_rows) {
    const char *root = getenv("DLMODEL_ROOT");
    char directory[512], path[600];
    snprintf(directory, sizeof directory, "%s/data", root != NULL ? root : ".");
    snprintf(path, sizeof path, "%s/collectives/published.csv", directory);
    const char *directories[] = {directory};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    struct dl_arena arena = {0};
    struct dl_comparison comparison = {.arena = &arena};
    struct dl_error_summary *list;
    struct dl_err err = {0};
    struct dl_csv csv;
    int count = 0;
    if (dl_csv_read(path, &arena, &csv, &err) != DL_OK ||
        dl_compare_calibrated(&data, &csv, mode, &comparison, &err) != DL_OK)
        fail_msg("%s", err.message);
    dl_compare_summarize(&comparison, &list, &count);
    bool found = false;
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].kind, "system") == 0 && list[i].rows > 0)
            printf("%-26s %4d rows, mean %5.1f %%, median %5.1f %%, worst %6.1f %%\n",
                   list[i].group, (int)list[i].rows, list[i].mape_pct, list[i].median_ape_pct,
                   list[i].max_ape_pct);
        if (strcmp(list[i].group, "all-by-source") != 0) continue;
        found = true;
        printf("macro-average over sources: mean %.2f %%, median %.2f %%\n", list[i].mape_pct,
               list[i].median_ape_pct);
        assert_true(list[i].mape_pct < by_source_pct);
        assert_true(list[i].median_ape_pct < median_pct);
        assert_true(comparison.count >= fewest_rows);
    }
    assert_true(found);
    for (int i = 0; i < comparison.count; i++)
        assert_true(comparison.rows[i].skipped == (comparison.rows[i].why != NULL));
    dl_arena_free(&arena);
}

static void five_folds_over_sizes(void **state) { hold(DL_CALIBRATED_SIZES, 3.2, 1.1, 718); }

static void one_rank_count_left_out(void **state) { hold(DL_CALIBRATED_RANKS, 7.1, 4.7, 718); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(five_folds_over_sizes),
                                       cmocka_unit_test(one_rank_count_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
