/* plot_runs.c - selects rows of tables of measurements for a figure and predicts them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "plots/figures/plot.h"
#include "predict/options/where.h"

const char *const dl_plot_keys[] = {
    "workload", "system", "precision",        "framework", "strategy",
    "backend",  "input",  "batch_per_device", "source",    NULL,
};

static enum dl_code read_filters(struct dl_context *context, const struct dl_options *options,
                                 struct dl_filters *out, struct dl_err *err) {
    static const char *const direct[] = {"system", "workload", "framework", "precision", NULL};
    for (int i = 0; i < options->given_count; i++) {
        const char *name = options->given[i].option->name, *value = options->given[i].value;
        for (int d = 0; direct[d] != NULL; d++) {
            if (strcmp(direct[d], name) != 0 || strcmp(value, "all") == 0) continue;
            out->list[out->count++] = (struct dl_filter){name, name, value, false};
        }
    }
    return dl_filters_read(options, context->arena, out, err);
}

/* Reports which condition no row meets, and the available values. */
static enum dl_code fail_empty(const struct dl_filters *filters, const struct dl_csv *csvs,
                               int count, struct dl_err *err) {
    for (int f = 0; f < filters->count; f++) {
        const struct dl_filter *filter = &filters->list[f];
        bool met = false;
        for (int i = 0; i < count; i++) {
            for (int r = 0; r < csvs[i].row_count && !met; r++) {
                const struct dl_filters one = {.list = {*filter}, .count = 1};
                met = dl_filters_pass(&one, &csvs[i], r);
            }
        }
        if (met) continue;
        const char *values[33], *near;
        const int n = dl_filter_values(csvs, count, filter->column, false, values, 32);
        char all[400] = "";
        values[n] = NULL;
        near = dl_suggest(filter->value, values);
        for (int v = 0; v < n && strlen(all) < 300; v++) {
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.40s", v > 0 ? ", " : "",
                     values[v]);
        }
        return dl_fail(err, DL_ERR_USAGE, "no row has %s \"%.60s\"; %s%s%sthere are %s",
                       filter->column, filter->value, near != NULL ? "did you mean " : "",
                       near != NULL ? near : "", near != NULL ? "? " : "", all);
    }
    if (filters->count == 0) return dl_fail(err, DL_ERR_INPUT, "%s has no rows", csvs[0].name);
    return dl_fail(
        err, DL_ERR_USAGE,
        "each condition is met by some row, but no row meets them all; give fewer of --system, "
        "--workload, --framework, --precision and --where");
}

static enum dl_code compare_all(struct dl_context *context, const struct dl_options *options,
                                const struct dl_csv *chosen, int count, bool only_runs,
                                struct dl_comparison *comparison, struct dl_err *err) {
    struct dl_data data;
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    for (int i = 0; i < count; i++) {
        const bool runs =
            dl_csv_column(&chosen[i], "workload") >= 0 && dl_csv_column(&chosen[i], "metric") >= 0;
        if (!runs && only_runs) {
            return dl_fail_at(err, chosen[i].name, 1, 1, NULL,
                              "expected a table of runs (columns workload, metric, ...)");
        }
        if (chosen[i].row_count > 0)
            DL_TRY(dl_compare_table(&data, &chosen[i], false, comparison, err));
    }
    return dl_inputs_overrides_used(context, &data, err);
}

/* Options of a plan have no meaning where each row of a file is a plan. */
static enum dl_code refuse_plan(const struct dl_options *options, struct dl_err *err) {
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_option *o = options->given[i].option;
        if (strncmp(o->group, "Plan", 4) != 0 || strcmp(o->name, "precision") == 0) continue;
        return dl_fail(err, DL_ERR_USAGE,
                       "--%s: the rows of the files describe each run; choose rows with --where "
                       "COLUMN=VALUE",
                       o->name);
    }
    return DL_OK;
}

enum dl_code dl_plot_runs_read(struct dl_context *context, const struct dl_options *options,
                               bool only_runs, struct dl_plot_runs *out, struct dl_err *err) {
    const int count = options->positional_count - 1;
    struct dl_filters *filters = dl_arena_alloc(context->arena, 1, sizeof *filters);
    struct dl_csv *csvs = dl_arena_alloc(context->arena, 2 * (size_t)count, sizeof *csvs);
    struct dl_csv *chosen = csvs + count;
    DL_TRY(refuse_plan(options, err));
    DL_TRY(read_filters(context, options, filters, err));
    for (int i = 0; i < count; i++)
        DL_TRY(dl_csv_read(options->positional[i + 1], context->arena, &csvs[i], err));
    DL_TRY(dl_filters_check(filters, csvs, count, err));
    int left = 0;
    for (int i = 0; i < count; i++) {
        dl_filters_apply(filters, &csvs[i], context->arena, &chosen[i]);
        left += chosen[i].row_count;
    }
    if (left == 0) return fail_empty(filters, csvs, count, err);
    struct dl_comparison comparison = {.arena = context->arena};
    DL_TRY(compare_all(context, options, chosen, count, only_runs, &comparison, err));
    out->rows = dl_arena_alloc(context->arena, (size_t)left, sizeof *out->rows);
    for (int i = 0; i < count; i++) {
        /* one row per compared row, in order */
        for (int r = 0; r < chosen[i].row_count && out->count < comparison.count; r++) {
            struct dl_plot_run *run = &out->rows[out->count];
            run->compared = &comparison.rows[out->count++];
            for (int k = 0; k < DL_KEYS; k++)
                run->keys[k] = dl_filter_cell(&chosen[i], r, dl_plot_keys[k]);
            const long nodes = strtol(dl_filter_cell(&chosen[i], r, "nodes"), NULL, 10);
            run->nodes = nodes > 0 ? nodes : DL_ABSENT;
        }
    }
    return DL_OK;
}
