/* plot_error.c - the signed error of the time of every compared row, by source, system, workload or
 * another column. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "plots/figures/plot.h"
#include "predict/compare/headline.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "group", "", DL_COLUMN_STRING, 0, 0},
    {"offset", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"time_error_pct", "time error", "%", DL_COLUMN_NUMBER, 0, 0},
    {"mean_pct", "mean", "%", DL_COLUMN_NUMBER, 0, 0},
    {"quartile_1_pct", "25 %", "%", DL_COLUMN_NUMBER, 0, 0},
    {"median_pct", "median", "%", DL_COLUMN_NUMBER, 0, 0},
    {"quartile_3_pct", "75 %", "%", DL_COLUMN_NUMBER, 0, 0},
    {"predicted", "predicted", "", DL_COLUMN_NUMBER, 0, 0},
    {"measured", "measured", "", DL_COLUMN_NUMBER, 0, 0},
    {"unit", "unit", "", DL_COLUMN_STRING, 0, 0},
    {"id", "id", "", DL_COLUMN_STRING, 0, 0},
};
enum {
    GROUP,
    LABEL,
    OFFSET,
    ERROR,
    MEAN,
    QUARTILE_1,
    MEDIAN,
    QUARTILE_3,
    PREDICTED,
    MEASURED,
    UNIT,
    ID
};

struct spread {
    double mean, quartile_1, median, quartile_3, mean_absolute;
    int rows;
};

static struct spread spread_of(const struct dl_plot_runs *runs, int group, double *scratch) {
    struct spread s = {.rows = 0};
    double absolute = 0;
    for (int i = 0; i < runs->count; i++) {
        if (runs->rows[i].group != group) continue;
        const double error_pct = dl_compared_time_error_pct(runs->rows[i].compared);
        scratch[s.rows++] = error_pct;
        absolute += fabs(error_pct);
    }
    const size_t n = (size_t)s.rows;
    dl_sort(scratch, n);
    s.mean = dl_mean(scratch, n);
    s.quartile_1 = dl_quantile_sorted(scratch, n, 0.25);
    s.median = dl_quantile_sorted(scratch, n, 0.5);
    s.quartile_3 = dl_quantile_sorted(scratch, n, 0.75);
    s.mean_absolute = absolute / s.rows;
    return s;
}

/* A place between -0.3 and 0.3 around the middle of the group, so that equal errors do not hide
 * each other: multiples of the golden ratio spread evenly, and the same rows always give the same
 * picture. */
static double offset_of(int number) {
    const double golden = 0.6180339887498949;
    return 0.6 * (fmod(number * golden, 1) - 0.5);
}

static void fill_group(struct dl_context *context, const struct dl_plot_runs *runs, int group,
                       double *scratch, struct dl_figure *out) {
    const struct spread s = spread_of(runs, group, scratch);
    int number = 0;
    for (int i = 0; i < runs->count; i++) {
        const struct dl_compared *c = runs->rows[i].compared;
        if (runs->rows[i].group != group) continue;
        union dl_cell *cells = dl_table_row(&out->table);
        cells[GROUP].integer = group;
        cells[LABEL].string = out->labels[group - 1];
        const double values[] = {offset_of(number++),
                                 dl_compared_time_error_pct(c),
                                 s.mean,
                                 s.quartile_1,
                                 s.median,
                                 s.quartile_3,
                                 c->predicted,
                                 c->measured};
        for (int v = 0; v < 8; v++) cells[OFFSET + v].number = values[v];
        cells[UNIT].string = c->unit;
        cells[ID].string = c->id;
    }
    out->notes[group - 1] = dl_arena_printf(context->arena, "%d run%s, mean |error| %.0f %%",
                                            s.rows, s.rows == 1 ? "" : "s", s.mean_absolute);
}

static enum dl_code number_groups(struct dl_plot_runs *runs, int key, struct dl_figure *out,
                                  struct dl_err *err) {
    for (int i = 0; i < runs->count; i++) {
        struct dl_plot_run *run = &runs->rows[i];
        if (run->compared->skipped || !dl_known(run->compared->error_pct)) continue;
        const char *name = run->keys[key][0] == 0 ? "not given" : run->keys[key];
        run->group = dl_text_place(out->labels, &out->group_count, DL_PLOT_GROUPS, name) + 1;
        if (run->group == 0)
            return dl_fail(err, DL_ERR_USAGE,
                           "more than %d different values of %s; choose another --by",
                           (int)DL_PLOT_GROUPS, dl_plot_keys[key]);
    }
    return DL_OK;
}

struct group_order {
    int group;
    double mean_absolute;
    const char *name;
};

static int best_first(const void *a, const void *b) {
    const struct group_order *x = a, *y = b;
    if (x->mean_absolute < y->mean_absolute || x->mean_absolute > y->mean_absolute)
        return x->mean_absolute < y->mean_absolute ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Numbers the groups anew, by their mean absolute error, as figures of unseen errors do. */
static void sort_groups(struct dl_plot_runs *runs, double *scratch, struct dl_figure *out) {
    struct group_order order[DL_PLOT_GROUPS];
    int place[DL_PLOT_GROUPS + 1] = {0};
    for (int g = 1; g <= out->group_count; g++)
        order[g - 1] =
            (struct group_order){g, spread_of(runs, g, scratch).mean_absolute, out->labels[g - 1]};
    qsort(order, (size_t)out->group_count, sizeof *order, best_first);
    for (int i = 0; i < out->group_count; i++) {
        place[order[i].group] = i + 1;
        out->labels[i] = order[i].name;
    }
    for (int i = 0; i < runs->count; i++) runs->rows[i].group = place[runs->rows[i].group];
}

enum dl_code dl_plot_error(struct dl_context *context, const struct dl_options *options,
                           struct dl_figure *out, struct dl_err *err) {
    if (options->positional_count < 2) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "plot error needs files of measurements: dlmodel plot error data/runs/*.csv");
    }
    struct dl_csv first;
    DL_TRY(dl_csv_read(options->positional[1], context->arena, &first, err));
    if (options->positional_count == 2 && dl_plot_unseen_table(&first))
        return dl_plot_unseen(context, &first, out, err);
    int key = DL_KEY_SOURCE;
    DL_TRY(dl_option_choice(options, "by", dl_plot_keys, &key, err));
    struct dl_plot_runs runs = {0};
    DL_TRY(dl_plot_runs_read(context, options, false, &runs, err));
    DL_TRY(number_groups(&runs, key, out, err));
    int drawn = 0;
    const char *why = NULL;
    for (int i = 0; i < runs.count; i++) {
        drawn += runs.rows[i].group > 0;
        if (why == NULL && runs.rows[i].compared->skipped) why = runs.rows[i].compared->why;
    }
    if (drawn == 0)
        return dl_fail(err, DL_ERR_USAGE, "none of the %d rows can be predicted, for instance: %s",
                       runs.count, why);
    const char *headline;
    DL_TRY(dl_headline(&context->data, context->arena, &headline, err));
    double *scratch = dl_arena_alloc(context->arena, (size_t)runs.count, sizeof *scratch);
    sort_groups(&runs, scratch, out);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 1; g <= out->group_count; g++) fill_group(context, &runs, g, scratch, out);
    out->width = 1000; /* names on the left, numbers on the right */
    if (out->group_count > 12) out->height = 220 + 22 * out->group_count;
    static const struct dl_plot_strip strips[] = {
        {ERROR, "•", "one run"}, {MEDIAN, "▒", "median"}, {MEAN, "◆", "mean"}, {0, NULL, NULL}};
    out->strips = strips;
    out->strip_axis = "error of the predicted time (%; right: predicted too slow)";
    out->title = dl_arena_printf(
        context->arena, "Error of %d predicted times by %s, with the constants as installed", drawn,
        dl_plot_keys[key]);
    const size_t length = strcspn(headline, ";"); /* the rest is of other runs */
    out->subtitle = dl_arena_printf(
        context->arena, "%.*s%s. Here: in-sample for data/runs, on which these were fitted%s",
        (int)length, headline, headline[length] == ';' ? ")" : "",
        drawn == runs.count
            ? ""
            : dl_arena_printf(context->arena, "; %d rows are not predicted", runs.count - drawn));
    return DL_OK;
}
