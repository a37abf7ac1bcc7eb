/* report_repeats.c - how runs were measured, for a paper: repeats of each configuration with the
 * distribution-free 95 % interval of their median, and the environment (the method of Deep500,
 * Ben-Nun et al. 2019). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "predict/options/where.h"
#include "plots/reports/report.h"

enum { MAX_GROUPS = 200, MAX_ENVIRONMENTS = 40, MAX_LINES = 24, FEWEST_RUNS = 6 };

/* Columns in which repeats of one configuration agree. */
static const char *const keys[] = {"source",
                                   "system",
                                   "framework",
                                   "framework_version",
                                   "workload",
                                   "input",
                                   "precision",
                                   "optimizer",
                                   "backend",
                                   "nodes",
                                   "devices_per_node",
                                   "batch_per_device",
                                   "global_batch",
                                   "metric",
                                   "unit"};
enum { KEYS = sizeof keys / sizeof *keys };

struct group {
    const struct dl_csv *csv;
    int row; /* the first of it */
    double *values;
    size_t count;
    int disturbed;
    double steps, outliers;
};

static const char *cell(const struct dl_csv *csv, int row, const char *column) {
    const int c = dl_csv_column(csv, column);
    return c < 0 ? "" : csv->rows[row][c];
}

static bool same(const struct group *g, const struct dl_csv *csv, int row) {
    for (int k = 0; k < KEYS; k++) {
        if (strcmp(cell(g->csv, g->row, keys[k]), cell(csv, row, keys[k])) != 0) return false;
    }
    return true;
}

/* A cell as a number; 0 where it is not one. */
static double number(const struct dl_csv *csv, int row, const char *column) {
    return strtod(cell(csv, row, column), NULL);
}

static enum dl_code take_row(struct group *groups, int *count, const struct dl_csv *csv, int row,
                             struct dl_arena *arena, struct dl_err *err) {
    double value;
    const int place = dl_csv_column(csv, "value");
    if (place < 0) return DL_OK;
    DL_TRY(dl_csv_number(csv, row, place, &value, err));
    if (!(value > 0)) return DL_OK;
    int g = 0;
    while (g < *count && !same(&groups[g], csv, row)) g++;
    if (g == MAX_GROUPS) return DL_OK;
    if (g == *count) {
        groups[(*count)++] = (struct group){.csv = csv, .row = row};
        groups[g].values = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof(double));
    }
    if (groups[g].csv != csv) return DL_OK; /* another file's runs are other measurements */
    groups[g].values[groups[g].count++] = value;
    groups[g].disturbed += strcmp(cell(csv, row, "disturbed"), "yes") == 0;
    groups[g].steps += number(csv, row, "steps");
    groups[g].outliers += number(csv, row, "outliers");
    return DL_OK;
}

static const struct dl_column columns[] = {
    {"configuration", "configuration", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_STRING, 0, 0},
    {"level", "level", "", DL_COLUMN_INTEGER, 0, 0},
    {"runs", "runs", "", DL_COLUMN_INTEGER, 0, 0},
    {"steps", "steps", "", DL_COLUMN_INTEGER, 0, 0},
    {"outliers", "outliers", "", DL_COLUMN_INTEGER, 0, 0},
    {"disturbed", "disturbed", "", DL_COLUMN_INTEGER, 0, 0},
    {"median", "median", "", DL_COLUMN_NUMBER, 0, 4},
    {"low", "low", "", DL_COLUMN_NUMBER, 0, 4},
    {"high", "high", "", DL_COLUMN_NUMBER, 0, 4},
    {"width_frac", "width", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"unit", "unit", "", DL_COLUMN_STRING, 0, 0},
};

static void add_group(struct dl_table *table, struct group *g) {
    const struct dl_csv *csv = g->csv;
    const double devices = number(csv, g->row, "nodes") * number(csv, g->row, "devices_per_node");
    double low = NAN, high = NAN;
    dl_sort(g->values, g->count);
    if (g->count >= FEWEST_RUNS) dl_median_interval(g->values, g->count, &low, &high);
    const double median = dl_quantile_sorted(g->values, g->count, 0.5);
    dl_table_add(table,
                 {.string = dl_arena_printf(
                      table->arena, "%s %s%s%s %s", cell(csv, g->row, "framework"),
                      cell(csv, g->row, "workload"), *cell(csv, g->row, "input") != 0 ? " " : "",
                      cell(csv, g->row, "input"), cell(csv, g->row, "precision"))},
                 {.string = dl_arena_printf(table->arena, "%s x %s", cell(csv, g->row, "nodes"),
                                            cell(csv, g->row, "devices_per_node"))},
                 {.integer = devices > 1 ? 3 : 2}, {.integer = (int64_t)g->count},
                 {.integer = (int64_t)g->steps}, {.integer = (int64_t)g->outliers},
                 {.integer = g->disturbed}, {.number = median}, {.number = low}, {.number = high},
                 {.number = (high - low) / median}, {.string = cell(csv, g->row, "unit")});
}

static const struct dl_column figure_columns[] = {
    {"kind", NULL, NULL, DL_COLUMN_INTEGER, 0, 0}, /* 1 a run, 2 the median of the runs */
    {"line", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"configuration", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"value", NULL, NULL, DL_COLUMN_NUMBER, 0, 6},
    {"low", NULL, NULL, DL_COLUMN_NUMBER, 0, 6},
    {"high", NULL, NULL, DL_COLUMN_NUMBER, 0, 6},
    {"unit", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"from_median_frac", NULL, NULL, DL_COLUMN_NUMBER, 0, 4},
    {"low_frac", NULL, NULL, DL_COLUMN_NUMBER, 0, 4},
    {"high_frac", NULL, NULL, DL_COLUMN_NUMBER, 0, 4},
};

/* A row of the figure; low and high NAN: a run. */
static void add_point(struct dl_table *table, const struct group *g, int line, double value,
                      double low, double high) {
    union dl_cell *c = dl_table_row(table);
    const double median = dl_quantile_sorted(g->values, g->count, 0.5);
    c[0].integer = isnan(low) ? 1 : 2;
    c[1].integer = line;
    c[2].string = dl_arena_printf(table->arena, "%s %s %s x %s", cell(g->csv, g->row, "framework"),
                                  cell(g->csv, g->row, "workload"), cell(g->csv, g->row, "nodes"),
                                  cell(g->csv, g->row, "devices_per_node"));
    c[6].string = cell(g->csv, g->row, "unit");
    const double values[] = {value, low, high};
    for (int i = 0; i < 3; i++) {
        c[3 + i].number = values[i];
        c[7 + i].number = values[i] / median - 1;
    }
}

/* The runs of each repeated configuration about their median, and its interval; the first
 * MAX_LINES of them. */
static enum dl_code draw(struct dl_report *r, const struct group *groups, int count,
                         struct dl_err *err) {
    struct dl_figure figure = {.group_count = 2,
                               .labels = {"a run", "median of the runs, 95 % interval"},
                               .title = "Repeats of each configuration",
                               .subtitle = "difference of a run from the median of all"};
    int lines = 0;
    dl_table_init(&figure.table, r->context->arena, figure_columns,
                  sizeof figure_columns / sizeof *figure_columns);
    for (int kind = 1; kind <= 2; kind++) {
        lines = 0;
        for (int g = 0; g < count && lines < MAX_LINES; g++) {
            const struct group *one = &groups[g];
            double low, high;
            if (one->count < FEWEST_RUNS) continue;
            lines++;
            dl_median_interval(one->values, one->count, &low, &high);
            if (kind == 2)
                add_point(&figure.table, one, lines,
                          dl_quantile_sorted(one->values, one->count, 0.5), low, high);
            for (size_t i = 0; kind == 1 && i < one->count; i++)
                add_point(&figure.table, one, lines, one->values[i], NAN, NAN);
        }
    }
    if (lines == 0) return DL_OK;
    figure.parameters[0] = (struct dl_plot_parameter){.name = "configurations", .number = lines};
    return dl_report_drawn(r, &figure, "repeats",
                           "Runs of each configuration about their median, and its interval.", err);
}

static const struct dl_column environment_columns[] = {
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"framework_version", "release", "", DL_COLUMN_STRING, 0, 0},
    {"backend", "library", "", DL_COLUMN_STRING, 0, 0},
    {"versions", "software", "", DL_COLUMN_STRING, 0, 0},
};
enum { ENVIRONMENT = sizeof environment_columns / sizeof *environment_columns };

static bool same_environment(const struct dl_table *table, const struct dl_csv *csv, int row) {
    for (int r = 0; r < table->row_count; r++) {
        bool equal = true;
        for (int c = 0; c < ENVIRONMENT && equal; c++)
            equal = strcmp(dl_table_cells(table, r)[c].string,
                           cell(csv, row, environment_columns[c].key)) == 0;
        if (equal) return true;
    }
    return false;
}

static void add_environment(struct dl_table *table, const struct dl_csv *csv, int row) {
    if (table->row_count == MAX_ENVIRONMENTS || same_environment(table, csv, row)) return;
    union dl_cell *c = dl_table_row(table);
    for (int i = 0; i < ENVIRONMENT; i++) c[i].string = cell(csv, row, environment_columns[i].key);
}

static void method(struct dl_report *r, bool repeated) {
    dl_document_paragraph(
        &r->page,
        "The value of a run is the median of its steps; warm-up steps and outliers (modified "
        "z-score above 3.5) are left out, as are rows without a value. Of repeats of a "
        "configuration the table gives the median and its 95 % interval from order statistics, "
        "which assumes no distribution; fewer than six runs have none. Levels are those of "
        "Deep500: 2 training on one device, 3 distributed training (0, operators, and 1, a "
        "network, are what dlmodel calibrate and slurm submit --profile measure). A run is "
        "disturbed when other processes used its nodes, or clocks fell.");
    if (!repeated)
        dl_document_paragraph(&r->page, "No configuration was repeated six times: the runs have no "
                                        "interval. dlmodel slurm submit --method deep500 plans "
                                        "repeats.");
}

/* --where, and the options that choose runs. */
static enum dl_code read_filters(struct dl_report *r, struct dl_filters *filters,
                                 struct dl_err *err) {
    static const char *const chosen[] = {"system", "workload", "framework"};
    DL_TRY(dl_filters_read(&r->options, r->context->arena, filters, err));
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        const char *value = dl_option_text(&r->options, chosen[i]);
        if (value == NULL || strcmp(value, "all") == 0) continue;
        filters->list[filters->count++] =
            (struct dl_filter){.option = chosen[i], .column = chosen[i], .value = value};
    }
    return DL_OK;
}

enum dl_code dl_report_repeats(struct dl_report *r, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct group *groups = dl_arena_alloc(arena, MAX_GROUPS, sizeof *groups);
    struct dl_filters *filters = dl_arena_alloc(arena, 1, sizeof *filters);
    struct dl_csv *csvs = dl_arena_alloc(arena, 2 * DL_MAX_POSITIONAL, sizeof *csvs);
    struct dl_table environment, table;
    int count = 0;
    bool repeated = false;
    dl_table_init(&environment, arena, environment_columns, ENVIRONMENT);
    dl_table_init(&table, arena, columns, sizeof columns / sizeof *columns);
    DL_TRY(read_filters(r, filters, err));
    for (int i = 1; i < r->options.positional_count; i++) {
        struct dl_csv *csv = &csvs[2 * i];
        DL_TRY(dl_csv_read(r->options.positional[i], arena, csv + 1, err));
        dl_filters_apply(filters, csv + 1, arena, csv);
        for (int row = 0; row < csv->row_count; row++) {
            DL_TRY(take_row(groups, &count, csv, row, arena, err));
            add_environment(&environment, csv, row);
        }
    }
    for (int g = 0; g < count; g++) {
        add_group(&table, &groups[g]);
        repeated = repeated || groups[g].count >= FEWEST_RUNS;
    }
    dl_document_section(&r->page, "How it was measured");
    method(r, repeated);
    dl_document_table(&r->page, &table, "Repeats, and the interval of their median.");
    DL_TRY(draw(r, groups, count, err));
    dl_document_table(&r->page, &environment, "Environment of the runs.");
    return DL_OK;
}
