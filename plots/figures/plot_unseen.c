/* plot_unseen.c - errors that no fit has seen, group by group: a table that
 * `compare --generalize BY --tables DIR` wrote (docs/generalize). Groups by mean error, best first,
 * next to the errors of the same rows with constants that were fitted to them too. */
#include <stdlib.h>
#include <string.h>

#include "plots/figures/plot.h"
#include "model/core/text.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "group", "", DL_COLUMN_STRING, 0, 0},
    {"rows", "rows", "", DL_COLUMN_INTEGER, 0, 0},
    {"mean_pct", "mean", "%", DL_COLUMN_NUMBER, 0, 0},
    {"median_pct", "median", "%", DL_COLUMN_NUMBER, 0, 0},
    {"p90_pct", "90 %", "%", DL_COLUMN_NUMBER, 0, 0},
    {"in_sample_mean_pct", "in-sample", "%", DL_COLUMN_NUMBER, 0, 0},
    {"bias_pct", "bias", "%", DL_COLUMN_NUMBER, 0, 0},
};
enum { ROWS, MEAN, MEDIAN, P90, IN_SAMPLE, BIAS, READ };
static const char *const read_names[READ] = {"rows",        "mape_pct",           "median_ape_pct",
                                             "p90_ape_pct", "in_sample_mape_pct", "bias_pct"};

struct group {
    const char *name;
    double v[READ];
};

static int by_mean(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    if (x->v[MEAN] < y->v[MEAN] || x->v[MEAN] > y->v[MEAN]) return x->v[MEAN] < y->v[MEAN] ? -1 : 1;
    return strcmp(x->name, y->name);
}

bool dl_plot_unseen_table(const struct dl_csv *csv) {
    return dl_csv_column(csv, "group") >= 0 && dl_csv_column(csv, "in_sample_mape_pct") >= 0;
}

/* What is said of all after them is not a group. */
static enum dl_code read_groups(const struct dl_csv *csv, struct group *groups, int *count,
                                struct dl_err *err) {
    int at[READ];
    const int name = dl_csv_column(csv, "group");
    for (int i = 0; i < READ; i++) {
        at[i] = dl_csv_column(csv, read_names[i]);
        if (at[i] < 0)
            return dl_fail_at(err, csv->name, 1, 1, read_names[i],
                              "expected a table of compare --generalize: this column is missing");
    }
    for (int row = 0; row < csv->row_count; row++) {
        struct group *g = &groups[*count];
        g->name = csv->rows[row][name];
        if (strcmp(g->name, "macro-average") == 0 || strcmp(g->name, "all") == 0) continue;
        for (int i = 0; i < READ; i++) {
            DL_TRY(dl_csv_number(csv, row, at[i], &g->v[i], err));
            if (dl_known(g->v[i]) && (i == BIAS || (g->v[i] >= 0 && g->v[i] < 1e6))) continue;
            return dl_csv_fault(csv, row, at[i], err, "expected a number%s",
                                i == BIAS ? "" : " from 0 to 1e6");
        }
        if (g->v[ROWS] > 0) ++*count;
    }
    return DL_OK;
}

static void add(const struct group *g, int number, struct dl_figure *out, struct dl_arena *arena) {
    union dl_cell *c = dl_table_row(&out->table);
    out->labels[number - 1] = dl_arena_printf(arena, "%s (%.0f)", g->name, g->v[ROWS]);
    out->notes[number - 1] = g->name;
    c[0].integer = number;
    c[1].string = g->name;
    c[2].integer = (int64_t)g->v[ROWS];
    for (int i = MEAN; i < READ; i++) c[2 + i].number = g->v[i];
}

/* What the groups are: `compare --generalize BY --tables DIR` names its table BY.csv. */
static const char *groups_of(const struct dl_csv *csv, struct dl_arena *arena) {
    const char *stem = dl_base_name(csv->name);
    for (int k = 0; dl_plot_keys[k] != NULL; k++) {
        const size_t length = strlen(dl_plot_keys[k]);
        if (strncmp(stem, dl_plot_keys[k], length) == 0 && strcmp(stem + length, ".csv") == 0)
            return dl_arena_printf(arena, "%ss", dl_plot_keys[k]);
    }
    return "groups";
}

enum dl_code dl_plot_unseen(struct dl_context *context, const struct dl_csv *csv,
                            struct dl_figure *out, struct dl_err *err) {
    struct group *groups =
        dl_arena_alloc(context->arena, (size_t)csv->row_count + 1, sizeof *groups);
    int count = 0;
    double mean = 0, in_sample = 0, rows = 0, over_runs = 0;
    const char *what = groups_of(csv, context->arena);
    DL_TRY(read_groups(csv, groups, &count, err));
    if (count == 0) return dl_fail_at(err, csv->name, 1, 1, NULL, "expected groups of rows");
    if (count > DL_PLOT_GROUPS)
        return dl_fail(err, DL_ERR_USAGE, "%d groups and a figure holds %d", count,
                       (int)DL_PLOT_GROUPS);
    qsort(groups, (size_t)count, sizeof *groups, by_mean);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 0; g < count; g++) {
        add(&groups[g], g + 1, out, context->arena);
        mean += groups[g].v[MEAN] / count;
        in_sample += groups[g].v[IN_SAMPLE] / count;
        rows += groups[g].v[ROWS];
        over_runs += groups[g].v[ROWS] * groups[g].v[MEAN];
    }
    out->group_count = count;
    out->script = "unseen";
    out->width = 1000; /* names on the left, numbers on the right */
    out->height = 230 + 19 * count;
    dl_plot_set(out, 0, "mean_pct", mean);
    out->parameters[1] = (struct dl_plot_parameter){.name = "what", .text = what};
    static const struct dl_plot_strip strips[] = {{5, "·", "nine of ten runs are below"},
                                                  {4, "▒", "median"},
                                                  {6, "○", "mean in-sample"},
                                                  {3, "◆", "mean"},
                                                  {0, NULL, NULL}};
    out->strips = strips;
    out->strip_axis = "error (%)";
    out->title = dl_arena_printf(context->arena,
                                 "Error on %s that were held out of the fit: %.1f %% on average",
                                 what, mean);
    out->subtitle = dl_arena_printf(
        context->arena, "%d %s, %.0f runs; seen by the fit: %.1f %%; average over runs: %.1f %%",
        count, what, rows, in_sample, over_runs / rows);
    return DL_OK;
}
