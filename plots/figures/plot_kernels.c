/* plot_kernels.c - predicted against measured times of the kernels in published tables, one
 * colour per operation and pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "kernel", "", DL_COLUMN_STRING, 0, 0},
    {"measured_s", "measured", "us", DL_COLUMN_NUMBER, 1e-6, 4},
    {"predicted_s", "predicted", "us", DL_COLUMN_NUMBER, 1e-6, 4},
    {"error_pct", "error", "%", DL_COLUMN_NUMBER, 0, 3},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"id", "id", "", DL_COLUMN_STRING, 0, 0},
};

static void fill_group(struct dl_context *context, const struct dl_plot_runs *runs, int group,
                       double *errors, struct dl_figure *out) {
    size_t n = 0;
    for (int i = 0; i < runs->count; i++) {
        const struct dl_compared *c = runs->rows[i].compared;
        if (runs->rows[i].group != group) continue;
        dl_table_add(&out->table, {.integer = group}, {.string = out->labels[group - 1]},
                     {.number = c->measured}, {.number = c->predicted}, {.number = c->error_pct},
                     {.string = c->system}, {.string = c->id});
        errors[n++] = fabs(c->error_pct);
    }
    dl_sort(errors, n);
    const char *label =
        dl_arena_printf(context->arena, "%s: median %.1f %%, p90 %.0f %%", out->labels[group - 1],
                        dl_quantile_sorted(errors, n, 0.5), dl_quantile_sorted(errors, n, 0.9));
    out->notes[group - 1] = label;
}

static void number_groups(struct dl_plot_runs *runs, struct dl_figure *out) {
    for (int i = 0; i < runs->count; i++) {
        struct dl_plot_run *run = &runs->rows[i];
        const struct dl_compared *c = run->compared;
        if (c->skipped || !dl_known(c->error_pct) || c->workload == NULL) continue;
        run->group = dl_text_place(out->labels, &out->group_count, DL_PLOT_CURVES, c->workload) + 1;
    }
}

/* The device, precision, ... that --where selects. */
static const char *chosen(struct dl_context *context, const struct dl_options *options) {
    const char *text = "";
    for (int i = 0; i < options->given_count; i++) {
        const char *equals = strcmp(options->given[i].option->name, "where") == 0
                                 ? strchr(options->given[i].value, '=')
                                 : NULL;
        if (equals != NULL) text = dl_arena_printf(context->arena, "%s, %s", text, equals + 1);
    }
    return text;
}

enum dl_code dl_plot_kernels(struct dl_context *context, const struct dl_options *options,
                             struct dl_figure *out, struct dl_err *err) {
    if (options->positional_count < 2) {
        return dl_fail(err, DL_ERR_USAGE,
                       "plot kernels needs tables of kernel times: dlmodel plot kernels "
                       "data/kernels/deepbench_conv.csv");
    }
    struct dl_plot_runs runs = {0};
    DL_TRY(dl_plot_runs_read(context, options, false, &runs, err));
    for (int i = 0; i < runs.count; i++) {
        const char *what = runs.rows[i].compared->workload;
        if (what != NULL && strncmp(what, "gemm ", 5) != 0 && strncmp(what, "conv ", 5) != 0) {
            return dl_fail(
                err, DL_ERR_USAGE,
                "%s is no kernel; plot kernels takes tables of kernel times (data/kernels/*.csv)",
                runs.rows[i].compared->id);
        }
    }
    number_groups(&runs, out);
    double *errors = dl_arena_alloc(context->arena, (size_t)runs.count + 1, sizeof *errors);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 1; g <= out->group_count; g++) fill_group(context, &runs, g, errors, out);
    if (out->table.row_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "none of the %d rows can be predicted", runs.count);
    out->title = dl_arena_printf(context->arena, "Predicted over measured time of %d kernels%s",
                                 out->table.row_count, chosen(context, options));
    out->subtitle = "in-sample for the shapes of data/kernels, which the fits have seen";
    out->curves = (struct dl_plot_curves){.x = 2,
                                          .curve = 2,
                                          .curve_name = "equal",
                                          .point = 3,
                                          .over = 2,
                                          .log_x = true,
                                          .log_y = true,
                                          .x_scale = 1e-6,
                                          .y_scale = 1,
                                          .x_name = "measured (µs)",
                                          .y_name = "predicted over measured"};
    return DL_OK;
}
