/* compare_repeats.c - see the header. */
#include "predict/compare/compare_repeats.h"

#include <string.h>

#include "model/statistics/stats.h"

/* Rows that agree in these are repeats of one run. */
static const char *const same[] = {"source",
                                   "system",
                                   "framework",
                                   "framework_version",
                                   "layout",
                                   "strategy",
                                   "backend",
                                   "workload",
                                   "input",
                                   "precision",
                                   "optimizer",
                                   "nodes",
                                   "devices_per_node",
                                   "batch_per_device",
                                   "global_batch",
                                   "dp",
                                   "tp",
                                   "pp",
                                   "micro_batch",
                                   "metric",
                                   "unit"};
enum { SAME = sizeof same / sizeof *same };

struct joining {
    const struct dl_csv *csv;
    struct dl_arena *arena;
    int columns[SAME], id, value;
    bool *taken;    /* rows that another one represents */
    double *values; /* room for one of each row */
};

static bool repeats(const struct dl_csv *csv, const int *columns, int a, int b) {
    for (int i = 0; i < SAME; i++) {
        if (columns[i] >= 0 && strcmp(csv->rows[a][columns[i]], csv->rows[b][columns[i]]) != 0)
            return false;
    }
    return true;
}

/* "NAME-r3" is "NAME". */
static const char *without_repeat(struct dl_arena *arena, const char *id) {
    const char *dash = strrchr(id, '-');
    const bool number = dash != NULL && dash[1] == 'r' && dash[2] != 0 &&
                        strspn(dash + 2, "0123456789") == strlen(dash + 2);
    return number ? dl_arena_strndup(arena, id, (size_t)(dash - id)) : id;
}

/* The median of a column over `first` and the rows like it into the row that represents them;
 * empty cells do not count. */
static enum dl_code join_column(const struct joining *j, int first, int column, const char **row,
                                struct dl_err *err) {
    const struct dl_csv *csv = j->csv;
    double *values = j->values;
    int count = 0;
    for (int i = first; i < csv->row_count; i++) {
        if (csv->rows[i][column][0] == 0 || !repeats(csv, j->columns, first, i)) continue;
        DL_TRY(dl_csv_number(csv, i, column, &values[count++], err));
    }
    dl_sort(values, (size_t)count);
    if (count > 1)
        row[column] =
            dl_arena_printf(j->arena, "%.17g", dl_quantile_sorted(values, (size_t)count, 0.5));
    return DL_OK;
}

/* One row for `first` and those like it. */
static enum dl_code join(const struct joining *j, int first, const char *const **out,
                         struct dl_err *err) {
    const struct dl_csv *csv = j->csv;
    const int core = dl_csv_column(csv, "core_s");
    const char **row = dl_arena_alloc(j->arena, (size_t)csv->column_count, sizeof *row);
    memcpy(row, csv->rows[first], (size_t)csv->column_count * sizeof *row);
    for (int i = first; i < csv->row_count; i++)
        j->taken[i] = j->taken[i] || repeats(csv, j->columns, first, i);
    DL_TRY(join_column(j, first, j->value, row, err));
    if (core >= 0) DL_TRY(join_column(j, first, core, row, err));
    row[j->id] = without_repeat(j->arena, row[j->id]);
    *out = row;
    return DL_OK;
}

enum dl_code dl_compare_join_repeats(const struct dl_csv *csv, struct dl_arena *arena,
                                     struct dl_csv *out, struct dl_err *err) {
    struct joining j = {.csv = csv,
                        .arena = arena,
                        .id = dl_csv_column(csv, "id"),
                        .value = dl_csv_column(csv, "value")};
    *out = *csv;
    if (j.id < 0 || j.value < 0 || csv->row_count == 0) return DL_OK; /* no table of runs */
    for (int i = 0; i < SAME; i++) j.columns[i] = dl_csv_column(csv, same[i]);
    j.taken = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *j.taken);
    j.values = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *j.values);
    int *lines = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *lines);
    const char *const **rows = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *rows);
    out->row_count = 0;
    for (int i = 0; i < csv->row_count; i++) {
        if (j.taken[i]) continue;
        lines[out->row_count] = csv->row_lines[i];
        DL_TRY(join(&j, i, &rows[out->row_count++], err));
    }
    out->rows = rows;
    out->row_lines = lines;
    return DL_OK;
}

void dl_compare_take_quartiles(const struct dl_csv *csv, struct dl_arena *arena,
                               struct dl_csv *out) {
    /* of checkpoints, which have no record of disturbances, the fastest repeat */
    const bool checkpoints = dl_csv_column(csv, "write_s") >= 0;
    const int quartile = dl_csv_column(csv, checkpoints ? "low_s" : "quartile_s"),
              value = dl_csv_column(csv, checkpoints ? "write_s" : "value"),
              metric = dl_csv_column(csv, "metric");
    const int disturbed = dl_csv_column(csv, "disturbed");
    *out = *csv;
    if (quartile < 0 || value < 0 || csv->row_count == 0) return;
    if (!checkpoints && (metric < 0 || disturbed < 0)) return;
    const char *const **rows = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *rows);
    for (int i = 0; i < csv->row_count; i++) {
        rows[i] = csv->rows[i];
        if (rows[i][quartile][0] == 0) continue;
        if (!checkpoints &&
            (strcmp(rows[i][disturbed], "yes") != 0 || strcmp(rows[i][metric], "iteration") != 0))
            continue;
        const char **row = dl_arena_alloc(arena, (size_t)csv->column_count, sizeof *row);
        memcpy(row, csv->rows[i], (size_t)csv->column_count * sizeof *row);
        row[value] = row[quartile];
        rows[i] = row;
    }
    out->rows = rows;
}
