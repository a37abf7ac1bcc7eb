/* compare_fit_print.c - `compare --fit KEY=START`: reads the keys to fit, and prints values,
 * errors and, with --leave-out, the error on the rows that each fit had not seen. */
#include <stdlib.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/catalog/command.h"
#include "fits/compare_fit.h"
#include "predict/options/where.h"

enum { MAX_GROUPS = 64 };

/* What the columns show of one key of a fit. */
struct facts {
    const char *fit, *key;
    double start, value, error_before_pct, error_after_pct, left_out_error_pct;
    int rows, left_out_rows;
};
#define SHOWN(member, heading, unit, digits)                                                       \
    DL_SHOWN(struct facts, member, #member, heading, unit, 0, digits, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(fit, "fit", "", 0),
    SHOWN(key, "key", "", 0),
    SHOWN(start, "start", "", 4),
    SHOWN(value, "value", "", 4),
    SHOWN(rows, "rows", "", 0),
    SHOWN(error_before_pct, "before", "%", 3),
    SHOWN(error_after_pct, "after", "%", 3),
    SHOWN(left_out_rows, "unseen rows", "", 0),
    SHOWN(left_out_error_pct, "unseen", "%", 3),
};

static enum dl_code read_fit(const struct dl_options *options, struct dl_arena *arena,
                             struct dl_fit *fit, struct dl_err *err) {
    fit->count = 0;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "fit") != 0) continue;
        const char *text = options->given[i].value, *equals = strchr(text, '=');
        char *end = NULL;
        const double start = equals == NULL ? 0 : strtod(equals + 1, &end);
        if (equals == NULL || equals == text || *end != 0 || !(start > 0 && start < 1e30)) {
            return dl_fail(
                err, DL_ERR_USAGE,
                "--fit: expected KEY=START with a number above 0 in SI units, got \"%s\"", text);
        }
        if (fit->count == DL_FIT_KEYS)
            return dl_fail(err, DL_ERR_USAGE, "--fit: at most %d keys", DL_FIT_KEYS);
        const char *key = dl_arena_strndup(arena, text, (size_t)(equals - text));
        fit->values[fit->count++] = (struct dl_fit_value){.key = key, .start_value = start};
    }
    return DL_OK;
}

static void add_rows(struct dl_table *table, const char *name, const struct dl_fit *fit,
                     int left_rows, double left_pct) {
    for (int i = 0; i < fit->count; i++) {
        const struct facts facts = {.fit = name,
                                    .key = fit->values[i].key,
                                    .start = fit->values[i].start_value,
                                    .value = fit->values[i].value,
                                    .rows = fit->rows,
                                    .error_before_pct = fit->error_before_pct,
                                    .error_after_pct = fit->error_after_pct,
                                    .left_out_rows = left_rows,
                                    .left_out_error_pct = left_pct};
        dl_list_add(table, columns, &facts);
    }
}

/* Rows with (keep) or without that value. */
static void part(const struct dl_csv *csvs, int count, const char *column, const char *value,
                 bool keep, struct dl_arena *arena, struct dl_csv **out) {
    *out = dl_arena_alloc(arena, (size_t)count, sizeof **out);
    for (int i = 0; i < count; i++) {
        const char *const **rows =
            dl_arena_alloc(arena, (size_t)csvs[i].row_count + 1, sizeof *rows);
        int *lines = dl_arena_alloc(arena, (size_t)csvs[i].row_count + 1, sizeof *lines);
        int n = 0;
        for (int r = 0; r < csvs[i].row_count; r++) {
            if ((strcmp(dl_filter_cell(&csvs[i], r, column), value) == 0) != keep) continue;
            rows[n] = csvs[i].rows[r];
            lines[n++] = csvs[i].row_lines[r];
        }
        (*out)[i] = csvs[i];
        (*out)[i].rows = rows;
        (*out)[i].row_lines = lines;
        (*out)[i].row_count = n;
    }
}

enum dl_code dl_compare_fit_run(struct dl_context *context, const struct dl_options *options,
                                const struct dl_data *data, const struct dl_csv *csvs, int count,
                                struct dl_err *err) {
    struct dl_fit fit = {.count = 0};
    struct dl_table table;
    const char *column = dl_option_text(options, "leave-out");
    const bool anchor = dl_option_given(options, "anchor");
    DL_TRY(read_fit(options, context->arena, &fit, err));
    dl_list_table(&table, context->arena, DL_LIST(columns), 0);
    struct dl_fit_tables tables = {data, csvs, count, anchor};
    DL_TRY(dl_compare_fit(&tables, &fit, err));
    add_rows(&table, "all", &fit, 0, NAN);
    const char *groups[MAX_GROUPS];
    const int group_count =
        column == NULL ? 0 : dl_filter_values(csvs, count, column, true, groups, MAX_GROUPS);
    if (column != NULL && group_count < 2) {
        return dl_fail(err, DL_ERR_USAGE, "--leave-out %s: all rows have the same value", column);
    }
    for (int g = 0; g < group_count; g++) {
        struct dl_csv *seen, *unseen;
        double left_pct = NAN;
        int left_rows = 0;
        if (context->progress)
            context->note(context, "fit %d of %d: without %s", g + 1, group_count, groups[g]);
        part(csvs, count, column, groups[g], false, context->arena, &seen);
        part(csvs, count, column, groups[g], true, context->arena, &unseen);
        tables.csvs = seen;
        DL_TRY(dl_compare_fit(&tables, &fit, err));
        tables.csvs = unseen;
        DL_TRY(dl_compare_fit_error(&tables, &fit, &left_pct, &left_rows, err));
        add_rows(&table, dl_arena_printf(context->arena, "without %s", groups[g]), &fit, left_rows,
                 left_pct);
    }
    return dl_output_table(context, options, &table, "dlmodel-fit", "fits", err);
}
