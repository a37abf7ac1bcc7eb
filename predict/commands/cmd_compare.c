/* cmd_compare.c - how accurate are predictions of measured runs, and what limits each run? */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/compare/compare.h"
#include "predict/compare/compare_counts.h"
#include "predict/compare/compare_fit.h"
#include "predict/compare/compare_markdown.h"
#include "predict/compare/compare_repeats.h"
#include "predict/compare/decisions.h"
#include "predict/compare/generalize_print.h"
#include "predict/inputs/inputs.h"
#include "predict/inputs/layer_inputs.h"
#include "predict/inputs/where.h"
#include "predict/output/search_sweep.h"

static const struct dl_option compare_options[] = {
    {"rows", 0, NULL, "What",
     "print every row, not only the errors by group and the worst rows (JSON has both)", NULL},
    {"markdown", 0, NULL, "What",
     "print every row as a Markdown table, with the likely cause where a run is slower than its "
     "interval",
     NULL},
    {"quartile", 0, NULL, "What",
     "use the lower quartile of the steps instead of their median for runs that other programs "
     "disturbed; of checkpoints the fastest repeat",
     NULL},
    {"median", 0, NULL, "What",
     "count repeats of a run once, with the median of their measurements", NULL},
    {"anchor", 0, NULL, "What",
     "correct compute by the smallest run of each group (same batch per device, or else the same "
     "global batch; same release) and predict the others: the scaling error alone",
     NULL},
    {"calibrated", 0, "HOW", "What",
     "predict collectives from other samples of the same table, as a calibration would: sizes "
     "(five folds) or ranks (each rank count from the others)",
     NULL},
    {"max-error", 0, "PCT", "What",
     "exit with 1 when the mean absolute error, macro-averaged over sources, exceeds this", NULL},
    {"where", 0, "COLUMN=VALUE", "What",
     "use only rows with that value, with one of several values (workload=vgg16,alexnet), or that "
     "contain a text (notes~NGC)",
     DL_REPEATED},
    {"release", 0, "NAME", "What",
     "release of the framework for every row, instead of the one that its framework_version "
     "selects",
     NULL},
    {"layers", 0, "NAME|FILE", "What",
     "layer times written by import trace, used for matching runs; default: the files in "
     "data/layers/",
     DL_REPEATED},
    {"set", 0, "KEY=VALUE", "What",
     "what if: change a field of every system, workload or framework", DL_REPEATED},
    {"fit", 0, "KEY=START", "Fit",
     "find the value of a field (a KEY of --set) that minimizes the error over the rows, beginning "
     "with START",
     DL_REPEATED},
    {"shard", 0, "I/N", "Rows",
     "with --rows --csv: only part I (from 0) of N of the rows, for `merge`; rows that explain "
     "each "
     "other stay together",
     NULL},
    {"leave-out", 0, "COLUMN", "Fit",
     "for each value of that column, fit without its rows and predict them", NULL},
    {"generalize", 0, "source|framework|device|system", "Fit",
     "refit all constants of data/constants.json without each source, framework, ... and predict "
     "it: errors of runs that were in no fit",
     NULL},
    {"intervals", 0, "FILE", "Fit",
     "with --generalize source: write the spread of these errors, from which predictions have "
     "their "
     "intervals (data/intervals.json)",
     NULL},
    {"tables", 0, "DIR", "Fit",
     "with --generalize: also write its tables, anchored ones, decisions, learning curve and "
     "constants as CSV files",
     NULL},
    {"learning-curve", 0, NULL, "Fit",
     "errors of runs after 0, 1, 2, 4 and 8 others of their system and framework were given, as "
     "predict --measured does",
     NULL},
    {"fit-constants", 0, NULL, "Fit",
     "fit all constants of data/constants.json to the rows; refuses those that one source decides",
     NULL},
    {"write", 0, NULL, "Fit", "with --fit-constants: store the values in their files", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {compare_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel compare data/runs/tensorflow_2017.csv --rows",
    "dlmodel compare data/runs/nvidia_deeplearningexamples.csv --anchor --json",
    "dlmodel compare data/runs/keras_aws.csv --fit message_s=0.0001",
    "dlmodel compare data/runs/*.csv --generalize source",
    NULL,
};

static const struct dl_column row_columns[] = {
    {"id", "id", "", DL_COLUMN_STRING, 0, 0},
    {"source", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"workload", "workload", "", DL_COLUMN_STRING, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"predicted", "predicted", "", DL_COLUMN_NUMBER, 0, 4},
    {"measured", "measured", "", DL_COLUMN_NUMBER, 0, 4},
    {"predicted_low", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"predicted_high", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"unit", "unit", "", DL_COLUMN_STRING, 0, 0},
    {"error_pct", "error", "%", DL_COLUMN_NUMBER, 0, 3},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
    {"cause", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"skipped", NULL, NULL, DL_COLUMN_BOOL, 0, 0},
    {"why", "not predicted because", "", DL_COLUMN_STRING, 0, 0},
    {"remark", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};
enum { SHOWN_ROWS = 8, LONGEST = 56 };

/* Shortens names of groups, such as publications, to their beginning. Never splits a character. */
static const char *brief(struct dl_arena *arena, const char *text) {
    int length = LONGEST;
    if (text == NULL || strlen(text) <= (size_t)LONGEST) return text;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    return dl_arena_printf(arena, "%.*s...", length, text);
}

static enum dl_code fill_rows(struct dl_table *table, const struct dl_compared *list, int count,
                              bool people, struct dl_err *err) {
    for (int i = 0; i < count; i++) {
        const struct dl_compared *row = &list[i];
        union dl_cell *cells = dl_table_row(table);
        if (cells == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        cells[0].string = row->id;
        cells[1].string = row->source;
        cells[2].string = people ? brief(table->arena, row->system) : row->system;
        cells[3].string = row->framework;
        cells[4].string = row->workload;
        cells[5].integer = row->devices;
        cells[6].number = row->predicted;
        cells[7].number = row->measured;
        cells[8].number = row->low;
        cells[9].number = row->high;
        cells[10].string = row->unit;
        cells[11].number = row->error_pct;
        cells[12].string = row->bottleneck;
        cells[13].string = row->cause;
        cells[14].boolean = row->skipped;
        cells[15].string = row->why;
        cells[16].string = row->remark;
    }
    return DL_OK;
}

static enum dl_code fill_summary(struct dl_table *table, const struct dl_error_summary *list,
                                 int count, bool people, struct dl_err *err) {
    for (int i = 0; i < count; i++) {
        const char *group = people ? brief(table->arena, list[i].group) : list[i].group;
        DL_TRY(dl_compare_summary_row(table, &list[i], group, err));
    }
    return DL_OK;
}

static enum dl_code compare_file(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_data *data, const struct dl_csv *csv,
                                 struct dl_comparison *out, struct dl_err *err) {
    static const char *const modes[] = {"sizes", "ranks", NULL};
    int mode = -1;
    DL_TRY(dl_option_choice(options, "calibrated", modes, &mode, err));
    if (csv->row_count == 0) return DL_OK; /* --where left none */
    if (dl_csv_column(csv, "op") >= 0 && dl_csv_column(csv, "pass") >= 0) {
        context->note(
            context,
            "%s: kernel times of devices whose files were fitted to this table show the error of "
            "the fit; for held-out shapes: dlmodel calibrate --kernels %s --device NAME",
            csv->name, csv->name);
    }
    if (mode >= 0) return dl_compare_calibrated(data, csv, (enum dl_calibrated)mode, out, err);
    return dl_compare_table(data, csv, dl_option_given(options, "anchor"), out, err);
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct dl_table *rows, const struct dl_table *summary,
                               const struct dl_decision_list *decisions, struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-comparison");
    dl_jw_object(&w, "inputs");
    dl_jw_array(&w, "files");
    for (int i = 0; i < options->positional_count; i++)
        dl_jw_string(&w, NULL, options->positional[i]);
    dl_jw_end(&w);
    dl_jw_array(&w, "set");
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "set") == 0)
            dl_jw_string(&w, NULL, options->given[i].value);
    }
    dl_jw_end(&w);
    struct dl_constants constants;
    struct dl_err absent;
    if (dl_constants_read(&context->data, context->arena, &constants, &absent) == DL_OK)
        dl_jw_string(&w, "constants_hash",
                     dl_arena_printf(context->arena, "%016" PRIx64, constants.hash));
    dl_jw_bool(&w, "anchor", dl_option_given(options, "anchor"));
    if (dl_option_given(options, "calibrated"))
        dl_jw_string(&w, "calibrated", dl_option_text(options, "calibrated"));
    dl_jw_end(&w);
    dl_jw_array(&w, "rows");
    dl_table_json(rows, &w);
    dl_jw_end(&w);
    dl_jw_array(&w, "summary");
    dl_table_json(summary, &w);
    dl_jw_end(&w);
    dl_decisions_json(decisions->list, decisions->count, &w);
    dl_jw_end(&w);
    return context->output(options,
                           w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

static int by_error(const void *a, const void *b) {
    const double x = fabs(((const struct dl_compared *)a)->error_pct),
                 y = fabs(((const struct dl_compared *)b)->error_pct);
    return x < y ? 1
           : x > y
               ? -1
               : strcmp(((const struct dl_compared *)a)->id, ((const struct dl_compared *)b)->id);
}

/* The rows with the largest errors as a table, "" when there are none; NULL when memory is
 * exhausted. */
static const char *worst_text(struct dl_context *context, const struct dl_comparison *c,
                              struct dl_err *err) {
    struct dl_compared *rows = dl_arena_alloc(context->arena, (size_t)c->count + 1, sizeof *rows);
    int count = 0;
    struct dl_table table;
    if (rows == NULL) return NULL;
    for (int i = 0; i < c->count; i++) {
        if (!c->rows[i].skipped) rows[count++] = c->rows[i];
    }
    if (count == 0) return "";
    qsort(rows, (size_t)count, sizeof *rows, by_error);
    /* without "why" and "remark" */
    dl_table_init(&table, context->arena, row_columns,
                  sizeof row_columns / sizeof row_columns[0] - 2);
    if (fill_rows(&table, rows, count < SHOWN_ROWS ? count : SHOWN_ROWS, true, err) != DL_OK)
        return NULL;
    const char *text = dl_table_text(&table);
    return text == NULL ? NULL
                        : dl_arena_printf(context->arena, "\nThe largest errors\n\n%s", text);
}

/* Runs slower than their interval, the worst first, with the likely cause of each. */
static const char *causes_text(struct dl_context *context, const struct dl_comparison *c) {
    const char *text = "";
    double above = INFINITY;
    for (int shown = 0; shown < SHOWN_ROWS; shown++) {
        int worst = -1;
        for (int i = 0; i < c->count; i++) {
            const double error = c->rows[i].cause == NULL ? -1 : fabs(c->rows[i].error_pct);
            if (error < 0 || error >= above) continue;
            if (worst < 0 || error > fabs(c->rows[worst].error_pct)) worst = i;
        }
        if (worst < 0) break;
        above = fabs(c->rows[worst].error_pct);
        text = dl_arena_printf(context->arena, "%s  %s: %s\n", text, c->rows[worst].id,
                               c->rows[worst].cause);
    }
    return text[0] == 0 ? ""
                        : dl_arena_printf(context->arena,
                                          "\nSlower than predicted, and why (likely)\n%s", text);
}

static const char *sentence(struct dl_context *context, const struct dl_error_summary *list,
                            int count) {
    if (count == 0 || list[count - 1].rows == 0) return "\nNo row could be predicted.\n";
    const struct dl_error_summary *all = &list[count - 2], *by_source = &list[count - 1];
    const char *inside =
        dl_known(all->inside_pct)
            ? dl_arena_printf(context->arena, "; interval coverage %.0f %% (of 80 %% intervals)",
                              all->inside_pct)
            : "";
    return dl_arena_printf(
        context->arena,
        "\nOver %d rows the absolute error is %.3g %% on average and %.3g %% in the median; "
        "macro-average over sources %.3g %%%s.\n",
        all->rows, all->mape_pct, all->median_ape_pct, by_source->mape_pct, inside);
}

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_comparison *c, const struct dl_table *rows,
                               const struct dl_table *summary, const char *end,
                               struct dl_err *err) {
    const bool all = dl_option_given(options, "rows");
    const char *errors = dl_table_text(summary),
               *table = all ? dl_table_text(rows) : worst_text(context, c, err);
    if (errors == NULL || table == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const char *before = all ? table : "", *after = all ? "" : table,
               *reasons = dl_compare_reasons(c), *told = dl_compare_remarks(c);
    if (reasons == NULL || told == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    return context->output(options,
                           dl_arena_printf(context->arena, "%s%s%s%s%s%s%s%s", before,
                                           all ? "\n" : "", errors, after, causes_text(context, c),
                                           reasons, told, end),
                           err);
}

/* PCT is a percentage, with or without the sign. */
static enum dl_code read_max_error(const struct dl_options *options, double *out,
                                   struct dl_err *err) {
    const char *text = dl_option_text(options, "max-error");
    DL_TRY(dl_option_number(options, "max-error", DL_UNIT_NONE, 0, 1e6, out, err));
    if (text != NULL && strchr(text, '%') != NULL) *out *= 100;
    return DL_OK;
}

/* Reads the files and keeps the rows that --where selects. */
static enum dl_code read_tables(struct dl_context *context, const struct dl_options *options,
                                struct dl_csv **out, struct dl_err *err) {
    const int count = options->positional_count;
    if (count == 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "expected at least one CSV file of measurements, such as "
                       "data/runs/tensorflow_2017.csv");
    }
    struct dl_filters *filters = dl_arena_alloc(context->arena, 1, sizeof *filters);
    struct dl_csv *csvs = dl_arena_alloc(context->arena, 2 * (size_t)count, sizeof *csvs);
    if (filters == NULL || csvs == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(dl_filters_read(options, context->arena, filters, err));
    int left = 0;
    for (int i = 0; i < count; i++) {
        const char *path = options->positional[i];
        DL_TRY(dl_data_csv(&context->data, path, context->arena, &csvs[i], err));
        if (csvs[i].row_count == 0)
            return dl_fail_at(err, path, 1, 1, NULL,
                              "expected a row of measurements below the header");
    }
    DL_TRY(dl_filters_check(filters, csvs, count, err));
    for (int i = 0; i < count; i++) {
        DL_TRY(dl_filters_apply(filters, &csvs[i], context->arena, &csvs[count + i], err));
        if (dl_option_given(options, "quartile")) {
            struct dl_csv all = csvs[count + i];
            DL_TRY(dl_compare_take_quartiles(&all, context->arena, &csvs[count + i], err));
        }
        if (dl_option_given(options, "median")) {
            struct dl_csv all = csvs[count + i];
            DL_TRY(dl_compare_join_repeats(&all, context->arena, &csvs[count + i], err));
        }
        left += csvs[count + i].row_count;
    }
    if (left == 0)
        return dl_fail(err, DL_ERR_USAGE, "--where: no row of the files has these values");
    *out = csvs + count;
    return DL_OK;
}

static enum dl_code read_data(struct dl_context *context, const struct dl_options *options,
                              struct dl_data *data, struct dl_err *err) {
    DL_TRY(dl_inputs_overrides(context, options, data, err));
    data->release = dl_option_text(options, "release");
    return dl_layer_inputs_all(context, options, data, err);
}

static enum dl_code compare_all(struct dl_context *context, const struct dl_options *options,
                                const struct dl_data *data, const struct dl_csv *csvs,
                                struct dl_comparison *out, struct dl_err *err) {
    for (int i = 0; i < options->positional_count; i++) {
        DL_TRY(compare_file(context, options, data, &csvs[i], out, err));
    }
    return dl_inputs_overrides_used(context, data, err);
}

static enum dl_code read_part(const struct dl_options *options, enum dl_format format,
                              struct dl_comparison *out, struct dl_err *err) {
    const char *text = dl_option_text(options, "shard");
    if (text != NULL && (format != DL_FORMAT_CSV || !dl_option_given(options, "rows")))
        return dl_fail(err, DL_ERR_USAGE, "--shard: goes with --rows --csv");
    return dl_part_read(text, &out->part_index, &out->part_count, err);
}

/* The rows of this part, with their numbers among all. */
static enum dl_code print_part(struct dl_context *context, const struct dl_options *options,
                               const struct dl_comparison *c, struct dl_err *err) {
    struct dl_table rows;
    dl_table_init(&rows, context->arena, row_columns, sizeof row_columns / sizeof row_columns[0]);
    DL_TRY(fill_rows(&rows, c->rows, c->count, false, err));
    return context->output(options, dl_compare_part_csv(c, dl_table_csv(&rows)), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    double max_error = NAN;
    struct dl_comparison comparison = {.arena = context->arena};
    struct dl_error_summary *list = NULL;
    int count = 0;
    struct dl_table rows, summary;
    struct dl_data data;
    struct dl_csv *csvs = NULL;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(read_max_error(options, &max_error, err));
    DL_TRY(read_tables(context, options, &csvs, err));
    DL_TRY(read_data(context, options, &data, err));
    if (dl_option_given(options, "fit"))
        return dl_compare_fit_run(context, options, &data, csvs, options->positional_count, err);
    if (dl_generalize_wanted(options))
        return dl_generalize_run(context, options, &data, csvs, options->positional_count, err);
    if (dl_option_given(options, "leave-out"))
        return dl_fail(err, DL_ERR_USAGE, "--leave-out: goes with --fit");
    DL_TRY(read_part(options, format, &comparison, err));
    DL_TRY(compare_all(context, options, &data, csvs, &comparison, err));
    if (comparison.part_count > 1) return print_part(context, options, &comparison, err);
    DL_TRY(dl_compare_summarize(&comparison, &list, &count, err));
    dl_table_init(&rows, context->arena, row_columns, sizeof row_columns / sizeof row_columns[0]);
    dl_compare_summary_init(&summary, context->arena);
    DL_TRY(fill_rows(&rows, comparison.rows, comparison.count, format == DL_FORMAT_TEXT, err));
    DL_TRY(fill_summary(&summary, list, count, format == DL_FORMAT_TEXT, err));
    struct dl_decision_list decisions;
    DL_TRY(dl_decisions_of(&comparison, &decisions, err));
    const char *end =
        dl_arena_printf(context->arena, "%s%s", sentence(context, list, count),
                        dl_decisions_text(decisions.list, decisions.count, context->arena));
    if (end == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (format == DL_FORMAT_JSON)
        DL_TRY(print_json(context, options, &rows, &summary, &decisions, err));
    if (format == DL_FORMAT_CSV)
        DL_TRY(context->output(
            options, dl_table_csv(dl_option_given(options, "rows") ? &rows : &summary), err));
    const bool markdown = dl_option_given(options, "markdown") && format == DL_FORMAT_TEXT;
    if (markdown)
        DL_TRY(context->output(
            options,
            dl_compare_markdown(&comparison, count > 1 ? &list[count - 2] : NULL, context->arena),
            err));
    if (format == DL_FORMAT_TEXT && !markdown)
        DL_TRY(print_text(context, options, &comparison, &rows, &summary, end, err));
    if (format != DL_FORMAT_TEXT)
        context->note(context, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    if (count == 0 || list[count - 1].rows == 0)
        return dl_fail(err, DL_ERR_NO, "no row could be predicted%s",
                       format == DL_FORMAT_TEXT ? "" : "; --rows shows the reasons");
    const double overall = list[count - 1].mape_pct;
    if (dl_known(max_error) && !(overall <= max_error)) {
        return dl_fail(err, DL_ERR_NO,
                       "mean absolute error by source is %.3g %%, above --max-error %g %%", overall,
                       max_error);
    }
    return DL_OK;
}

const struct dl_command dl_cmd_compare = {
    .name = "compare",
    .summary = "compare predictions with measured runs, collectives or kernels; errors by source",
    .usage = "FILE.csv... [options]",
    .purpose = "Predicts every row of tables of measurements and prints mean, median, 90th "
               "percentile, worst and signed mean of "
               "the error (predicted - measured) / measured by source, by system and over all. "
               "Rows that cannot be predicted "
               "are counted, with the reason. Kernel times of devices whose files were fitted to "
               "the same table show the error of "
               "the fit, not of a prediction.",
    .examples = examples,
    .options = tables,
    .exit_notes = "1 when no row could be predicted, or the mean absolute error, macro-averaged "
                  "over sources, exceeds --max-error",
    .run = run,
};
