/* cmd_compare.c - how accurate are predictions of measured runs, and what limits each run? */
#include <math.h>
#include <string.h>

#include "import/log.h"
#include "predict/compare/compare.h"
#include "fits/compare_fit.h"
#include "predict/compare/compare_print.h"
#include "predict/compare/compare_repeats.h"
#include "predict/compare/first_sight.h"
#include "fits/generalize_print.h"
#include "predict/inputs/inputs.h"
#include "predict/inputs/layer_inputs.h"
#include "predict/options/where.h"
#include "predict/output/search_sweep.h"
#include "model/core/text.h"

static const struct dl_option compare_options[] = {
    {"rows", 0, NULL, "What",
     "print every row, not only the errors by group and the worst rows (JSON has both)", NULL},
    {"long", 0, NULL, "What",
     "print every row with all columns: also system, framework and why it is not predicted", NULL},
    {"markdown", 0, NULL, "What",
     "print every row as a Markdown table, with the likely cause where a run is slower than its "
     "interval",
     NULL},
    {"quartile", 0, NULL, "What",
     "for runs that other programs disturbed: use the lower quartile of the steps instead of their "
     "median, and the fastest repeat of checkpoints",
     NULL},
    {"median", 0, NULL, "What",
     "count repeats of a run once, with the median of their measurements", NULL},
    {"anchor", 0, NULL, "What",
     "normalize compute to the smallest run of each group (same batch per device, or else the "
     "same global batch; same release), so that only the scaling error of the others remains",
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
    {"fill", 0, "COLUMN=VALUE", "What",
     "of a log in place of a table: a column of the run that it does not say, e.g. "
     "system=dgx-h100",
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
    {"first-sight", 0, "NAME", "What",
     "record these predictions of runs that nobody has worked with as data/first_sight/NAME.csv; "
     "refuses runs that are recorded already",
     NULL},
    {"shard", 0, "I/N", "Rows",
     "with --rows --csv: only part I (from 0) of N of the rows, for `merge`; rows that explain "
     "each other stay together",
     NULL},
    {"leave-out", 0, "COLUMN", "Fit",
     "for each value of that column, fit without its rows and predict them", NULL},
    {"generalize", 0, "source|framework|device|system", "Fit",
     "refit all constants of data/constants.json without each source, framework, ... and predict "
     "it: errors of runs that were in no fit",
     NULL},
    {"only", 0, "GROUP", "Fit",
     "with --generalize: leave out this source, framework, ... alone, not each; repeat it for more",
     DL_REPEATED},
    {"intervals", 0, "FILE", "Fit",
     "with --generalize source: write the spread of these errors, from which predictions have "
     "their intervals (data/intervals.json)",
     NULL},
    {"tables", 0, "DIR", "Fit",
     "with --generalize: also write its tables, anchored ones, decisions, learning curve and "
     "constants as CSV files",
     NULL},
    {"learning-curve", 0, NULL, "Fit",
     "errors of runs when 0, 1, 2, 4 and 8 other runs of their system and framework are given, as "
     "to predict --measured",
     NULL},
    {"fit-constants", 0, NULL, "Fit",
     "fit all constants of data/constants.json to the rows; refuses constants that a single source "
     "determines",
     NULL},
    {"write", 0, NULL, "Fit", "with --fit-constants: store the values in their files", NULL},
    {.name = NULL},
};
static const struct dl_option *const option_tables[] = {compare_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel compare data/runs/tensorflow_2017.csv --rows",
    "dlmodel compare data/runs/nvidia_deeplearningexamples.csv --anchor --json",
    "dlmodel compare data/runs/keras_aws.csv --fit message_s=0.0001",
    "dlmodel compare data/runs/*.csv --generalize source",
    NULL,
};

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

/* PCT is a percentage, with or without the sign. */
static enum dl_code read_max_error(const struct dl_options *options, double *out,
                                   struct dl_err *err) {
    const char *text = dl_option_text(options, "max-error");
    DL_TRY(dl_option_number(options, "max-error",
                            &(struct dl_value){.unit = DL_UNIT_NONE, .min = 0, .max = 1e6}, out,
                            err));
    if (text != NULL && strchr(text, '%') != NULL) *out *= 100;
    return DL_OK;
}

/* Whether tables of runs can be read row by row: what needs all rows at once reads them whole. */
static bool row_by_row(const struct dl_context *context, const struct dl_options *options,
                       const char *path) {
    if (dl_option_first(options, "anchor calibrated quartile median fit leave-out first-sight "
                                 "intervals tables") != NULL)
        return false;
    return !dl_generalize_wanted(options) && !context->data.names_only &&
           dl_data_attachment(&context->data, path) == NULL;
}

/* --fill COLUMN=VALUE. */
static enum dl_code read_fills(struct dl_context *context, const struct dl_options *options,
                               struct dl_log_fill *fills, int *count, struct dl_err *err) {
    *count = 0;
    for (int i = 0; i < options->given_count; i++) {
        const char *text = options->given[i].value, *equals = strchr(text, '=');
        if (strcmp(options->given[i].option->name, "fill") != 0) continue;
        if (equals == NULL || equals == text)
            return dl_fail(err, DL_ERR_USAGE, "--fill: expected COLUMN=VALUE, got \"%s\"", text);
        fills[(*count)++] = (struct dl_log_fill){
            dl_arena_strndup(context->arena, text, (size_t)(equals - text)), equals + 1, true};
    }
    return DL_OK;
}

/* Reads the file or, of one that is read row by row, its header. */
static enum dl_code open_table(struct dl_context *context, const struct dl_options *options,
                               const char *path, struct dl_compare_table *out, struct dl_err *err) {
    *out = (struct dl_compare_table){.streamed = false};
    struct dl_log_fill fills[DL_MAX_REPEATS];
    int fill_count;
    const bool log = dl_log_is(context, &context->data, path);
    DL_TRY(read_fills(context, options, fills, &fill_count, err));
    if (!log && row_by_row(context, options, path))
        DL_TRY(dl_run_cases_open(path, context->arena, &out->cases, &out->streamed, err));
    if (out->streamed) {
        out->csv = out->cases.csv;
        return DL_OK;
    }
    DL_TRY(dl_log_csv(context, &context->data, path, fills, fill_count, &out->csv, err));
    if (out->csv.row_count > 0) return DL_OK;
    return dl_fail_at(err, path, 1, 1, NULL, "expected a row of measurements below the header");
}

/* Keeps the rows that --where selects. */
static enum dl_code select_rows(struct dl_context *context, const struct dl_options *options,
                                const struct dl_filters *filters, struct dl_compare_table *t,
                                struct dl_err *err) {
    if (t->streamed) {
        DL_TRY(dl_run_cases_read(&t->cases, filters, context->arena, err));
        t->csv = t->cases.csv;
        if (t->cases.any) return DL_OK;
        return dl_fail_at(err, t->csv.name, 1, 1, NULL,
                          "expected a row of measurements below the header");
    }
    struct dl_csv all = t->csv;
    dl_filters_apply(filters, &all, context->arena, &t->csv);
    if (dl_option_given(options, "quartile")) {
        all = t->csv;
        dl_compare_take_quartiles(&all, context->arena, &t->csv);
    }
    if (dl_option_given(options, "median")) {
        all = t->csv;
        DL_TRY(dl_compare_join_repeats(&all, context->arena, &t->csv, err));
    }
    return DL_OK;
}

static void note_columns(struct dl_context *context, const struct dl_csv *csv) {
    const char *names =
        dl_compare_is_runs(csv) ? dl_run_columns_left_out(csv, context->arena) : NULL;
    if (names != NULL)
        context->note(context, "%s: columns that are not modelled: %s", csv->name, names);
}

/* Reads the files and keeps the rows that --where selects. */
static enum dl_code read_tables(struct dl_context *context, const struct dl_options *options,
                                struct dl_compare_tables *out, struct dl_err *err) {
    const int count = options->positional_count;
    if (count == 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "expected at least one CSV file of measurements, such as "
                       "data/runs/tensorflow_2017.csv");
    }
    struct dl_filters *filters = dl_arena_alloc(context->arena, 1, sizeof *filters);
    struct dl_csv *csvs = dl_arena_alloc(context->arena, (size_t)count, sizeof *csvs);
    struct dl_compare_table *tables = dl_arena_alloc(context->arena, (size_t)count, sizeof *tables);
    *out = (struct dl_compare_tables){tables, count, filters};
    DL_TRY(dl_filters_read(options, context->arena, filters, err));
    bool left = false;
    for (int i = 0; i < count; i++) {
        DL_TRY(open_table(context, options, options->positional[i], &tables[i], err));
        csvs[i] = tables[i].csv;
        note_columns(context, &csvs[i]);
    }
    DL_TRY(dl_filters_check(filters, csvs, count, err));
    for (int i = 0; i < count; i++) {
        DL_TRY(select_rows(context, options, filters, &tables[i], err));
        left = left || tables[i].csv.row_count > 0;
    }
    if (!left) return dl_fail(err, DL_ERR_USAGE, "--where: no row of the files has these values");
    return DL_OK;
}

static enum dl_code read_data(struct dl_context *context, const struct dl_options *options,
                              struct dl_data *data, struct dl_err *err) {
    DL_TRY(dl_inputs_overrides(context, options, data, err));
    data->release = dl_option_text(options, "release");
    return dl_layer_inputs_all(context, options, data, err);
}

/* The rows of a table, in the order of the file: of one that was read row by row by their cases. */
static enum dl_code list_rows(const struct dl_compare_table *table, int first,
                              struct dl_comparison *out, struct dl_err *err) {
    if (!table->streamed) {
        for (int i = first; i < out->count; i++)
            DL_TRY(dl_row_list_add(&out->list, i, NAN, out->arena, err));
        return DL_OK;
    }
    const struct dl_row_list *rows = &table->cases.rows;
    for (int i = 0; i < rows->count; i++) {
        const struct dl_row_block *block = rows->blocks[i / DL_ROW_BLOCK];
        DL_TRY(dl_row_list_add(&out->list, first + block->of[i % DL_ROW_BLOCK],
                               block->measured[i % DL_ROW_BLOCK], out->arena, err));
    }
    return DL_OK;
}

static enum dl_code compare_all(struct dl_context *context, const struct dl_options *options,
                                const struct dl_data *data, const struct dl_compare_tables *tables,
                                struct dl_comparison *out, struct dl_err *err) {
    out->listed = true;
    for (int i = 0; i < tables->count; i++) {
        struct dl_compare_table *table = &tables->list[i];
        const int first = out->count;
        DL_TRY(compare_file(context, options, data, &table->csv, out, err));
        table->first_row = out->list.count;
        if (i == 0 && table->streamed && first == 0)
            out->list = table->cases.rows; /* numbers of cases are numbers of `rows` */
        else
            DL_TRY(list_rows(table, first, out, err));
        table->row_count = out->list.count - table->first_row;
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

/* What needs all rows of all tables: fits. */
static enum dl_code fit(struct dl_context *context, const struct dl_options *options,
                        const struct dl_data *data, const struct dl_compare_tables *tables,
                        struct dl_err *err) {
    struct dl_csv *csvs = dl_arena_alloc(context->arena, (size_t)tables->count, sizeof *csvs);
    for (int i = 0; i < tables->count; i++) csvs[i] = tables->list[i].csv;
    return dl_option_given(options, "fit")
               ? dl_compare_fit_run(context, options, data, csvs, tables->count, err)
               : dl_generalize_run(context, options, data, csvs, tables->count, err);
}

/* Refuses a release that no row has. */
static enum dl_code check_release(const struct dl_comparison *comparison, struct dl_err *err) {
    const char *refusal = NULL;
    for (int i = 0; i < comparison->count; i++) {
        const struct dl_compared *row = &comparison->rows[i];
        if (!row->skipped) return DL_OK;
        if (refusal == NULL && row->why != NULL && strncmp(row->why, "--release: ", 11) == 0)
            refusal = row->why;
    }
    return refusal == NULL ? DL_OK : dl_fail(err, DL_ERR_USAGE, "%s", refusal);
}

/* --first-sight NAME: as the data files and no profile or what-if have it. */
static enum dl_code record(struct dl_context *context, const struct dl_options *options,
                           const struct dl_data *data, const struct dl_compare_tables *tables,
                           const struct dl_comparison *comparison, struct dl_err *err) {
    const char *changed =
        dl_option_first(options, "anchor calibrated set release layers quartile median shard");
    if (changed != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--first-sight: goes without --%s", changed);
    const size_t rows = (size_t)dl_comparison_row_count(comparison);
    const char **files = dl_arena_alloc(context->arena, rows + 1, sizeof *files);
    for (int t = 0; t < tables->count; t++) {
        const struct dl_compare_table *table = &tables->list[t];
        if (!dl_compare_is_runs(&table->csv) || dl_first_sight_is(&table->csv))
            return dl_fail(err, DL_ERR_USAGE, "--first-sight: %s is not a table of runs",
                           table->csv.name);
        for (int i = 0; i < table->row_count; i++)
            files[table->first_row + i] = dl_base_name(table->csv.name);
    }
    return dl_first_sight_add(data, dl_option_text(options, "first-sight"), comparison, files,
                              context->arena, err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    double max_error = NAN, overall = NAN;
    struct dl_comparison comparison = {.arena = context->arena};
    struct dl_data data;
    struct dl_compare_tables tables;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(read_max_error(options, &max_error, err));
    DL_TRY(read_tables(context, options, &tables, err));
    DL_TRY(read_data(context, options, &data, err));
    if (dl_option_given(options, "fit") || dl_generalize_wanted(options))
        return fit(context, options, &data, &tables, err);
    if (dl_option_given(options, "leave-out"))
        return dl_fail(err, DL_ERR_USAGE, "--leave-out: goes with --fit");
    DL_TRY(read_part(options, format, &comparison, err));
    DL_TRY(compare_all(context, options, &data, &tables, &comparison, err));
    if (data.release != NULL) DL_TRY(check_release(&comparison, err));
    if (dl_option_given(options, "first-sight"))
        DL_TRY(record(context, options, &data, &tables, &comparison, err));
    DL_TRY(dl_compare_print(context, options, &comparison, &tables, format, &overall, err));
    if (comparison.part_count > 1) return DL_OK;
    if (!dl_known(overall))
        return dl_fail(err, DL_ERR_NO, "no row could be predicted%s",
                       format == DL_FORMAT_TEXT ? "" : "; --rows shows the reasons");
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
    .options = option_tables,
    .exit_notes = "1 when no row could be predicted, or the mean absolute error, macro-averaged "
                  "over sources, exceeds --max-error",
    .latex = true,
    .run = run,
};
