/* generalize_print.c - prints errors of runs that were in no fit. */
#include "fits/first_sight_print.h"
#include "fits/generalize_print.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "model/core/columns.h"
#include "model/core/file.h"
#include "model/catalog/command.h"
#include "predict/compare/decisions.h"
#include "fits/interval_fit.h"
#include "fits/learning.h"

bool dl_generalize_wanted(const struct dl_options *options) {
    return dl_option_given(options, "generalize") || dl_option_given(options, "fit-constants") ||
           dl_option_given(options, "learning-curve") || dl_option_given(options, "write") ||
           dl_option_given(options, "intervals") || dl_option_given(options, "tables");
}

/* What the columns show of one group of runs. */
struct group_columns {
    const char *group;
    int64_t rows, skipped;
    double mape_pct, median_ape_pct, p90_ape_pct, max_ape_pct, bias_pct, in_sample_mape_pct,
        coverage_pct, interval_ratio_median;
};
#define SHOWN(structure, member, heading, unit, digits)                                            \
    DL_SHOWN(struct structure, member, #member, heading, unit, 0, digits, 0, NULL)
#define GROUP(member, heading, unit, digits) SHOWN(group_columns, member, heading, unit, digits)
static const struct dl_list_column columns[] = {
    GROUP(group, "left out", "", 0),
    GROUP(rows, "rows", "", 0),
    GROUP(skipped, "not predicted", "", 0),
    GROUP(mape_pct, "mean", "%", 3),
    GROUP(median_ape_pct, "median", "%", 3),
    GROUP(p90_ape_pct, "90th", "%", 3),
    GROUP(max_ape_pct, "worst", "%", 3),
    GROUP(bias_pct, "bias", "%", 3),
    GROUP(in_sample_mape_pct, "mean in-sample", "%", 3),
    GROUP(coverage_pct, "coverage", "%", 3),
    GROUP(interval_ratio_median, "interval ratio", "", 3),
};
/* The same of one run. */
struct row_columns {
    const char *id, *source, *system, *framework, *workload, *release, *precision, *device;
    int64_t devices;
    double predicted_s, measured_s, predicted_low_s, predicted_high_s, exposed_comm_frac,
        overhead_frac, waits_frac, model_sigma_log, error_pct, in_sample_error_pct;
};
#define ROW(member, heading, unit, digits) SHOWN(row_columns, member, heading, unit, digits)
#define ROW_HIDDEN(member) SHOWN(row_columns, member, NULL, NULL, 0)
static const struct dl_list_column row_columns[] = {
    ROW(id, "id", "", 0),
    ROW_HIDDEN(source),
    ROW(system, "system", "", 0),
    ROW(framework, "framework", "", 0),
    ROW(workload, "workload", "", 0),
    ROW(devices, "dev", "", 0),
    ROW(predicted_s, "predicted", "s", 4),
    ROW(measured_s, "measured", "s", 4),
    ROW_HIDDEN(predicted_low_s),
    ROW_HIDDEN(predicted_high_s),
    ROW_HIDDEN(release),
    ROW_HIDDEN(precision),
    ROW_HIDDEN(device),
    ROW_HIDDEN(exposed_comm_frac),
    ROW_HIDDEN(overhead_frac),
    ROW_HIDDEN(waits_frac),
    ROW_HIDDEN(model_sigma_log),
    ROW(error_pct, "error", "%", 3),
    ROW(in_sample_error_pct, "in-sample", "%", 3),
};
/* The same of the decisions among plans or among frameworks. */
struct decision_columns {
    const char *kind;
    struct dl_decision_summary s;
};
#define DECISION(member, heading, unit, digits)                                                    \
    DL_SHOWN(struct decision_columns, s.member, #member, heading, unit, 0, digits, 0, NULL)
static const struct dl_list_column decision_columns[] = {
    SHOWN(decision_columns, kind, "among", "", 0),
    DECISION(jobs, "jobs", "", 0),
    DECISION(regret_mean_pct, "mean regret", "%", 3),
    DECISION(regret_max_pct, "worst", "%", 3),
    DECISION(distinguished_jobs, "distinguished", "", 0),
    DECISION(distinguished_mean_pct, "mean regret of these", "%", 3),
    DECISION(distinguished_max_pct, "worst of these", "%", 3),
    DECISION(ranked_jobs, "jobs of three and more", "", 0),
    DECISION(rank_correlation, "rank correlation", "", 3),
};
enum { SHOWN_ROWS = 10, LONGEST = 56 };

/* (predicted - measured) / measured of what the row measured. */
static double error_pct(const struct dl_fit_row *row, double iteration_s) {
    return 100 * (row->throughput ? row->measured_s / iteration_s - 1
                                  : iteration_s / row->measured_s - 1);
}

/* Rows as `compare` has them, so that both summarize errors alike; `source` is the group. */
static void comparison_of(const struct dl_generalized *g,
                          const struct dl_fit_prediction *predictions, struct dl_comparison *out) {
    for (size_t i = 0; i < g->rows->count; i++) {
        const struct dl_fit_row *row = &g->rows->rows[i];
        const struct dl_fit_prediction *p = &predictions[i];
        struct dl_compared *c = dl_comparison_add(out);
        *c = (struct dl_compared){
            .id = row->id,
            .source = g->groups[g->group_of[i]],
            .unit = "s",
            .system = row->system,
            .framework = row->framework,
            .workload = row->workload,
            .devices = row->devices,
            .predicted = p->iteration_s,
            .iteration_s = p->iteration_s,
            .measured = row->measured_s,
            .error_pct = error_pct(row, p->iteration_s),
            .low = p->low_s,
            .high = p->high_s,
            .decision = row->decision,
            .skipped = !dl_known(row->measured_s) || !dl_known(p->iteration_s),
        };
    }
}

struct report {
    bool anchor;
    const struct dl_fit_prediction *predictions; /* of the rows, held out */
    const struct dl_generalized *g;
    struct dl_comparison held_out, in_sample;
    struct dl_error_summary *list, *in_sample_list;
    int count, in_sample_count;
    struct dl_decision_list decisions;
};

static void make_report(const struct dl_generalized *g, const struct dl_interval_model *model,
                        bool anchor, struct dl_arena *arena, struct report *out) {
    const size_t n = g->rows->count;
    *out = (struct report){.g = g,
                           .anchor = anchor,
                           .predictions = anchor ? g->anchored : g->held_out,
                           .held_out.arena = arena,
                           .in_sample.arena = arena};
    comparison_of(g, out->predictions, &out->held_out);
    comparison_of(g, anchor ? g->in_sample_anchored : g->in_sample, &out->in_sample);
    dl_compare_summarize(&out->held_out, &out->list, &out->count);
    dl_compare_summarize(&out->in_sample, &out->in_sample_list, &out->in_sample_count);
    struct dl_decision_row *rows = dl_arena_alloc(arena, n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        const struct dl_fit_prediction *p = &out->predictions[i];
        const struct dl_interval_case c = dl_fit_case(&g->rows->rows[i], p);
        const double frameworks_sigma = dl_interval_frameworks_sigma_log(model, &c);
        rows[i] = (struct dl_decision_row){
            .keys = g->rows->rows[i].decision,
            .predicted_s = p->iteration_s,
            .measured_s = g->rows->rows[i].measured_s,
            .plan_half_log = dl_interval_half_log(model->plans_sigma_log, p->low_s, p->high_s),
            .framework_half_log = dl_interval_half_log(frameworks_sigma, p->low_s, p->high_s)};
    }
    out->decisions = dl_decisions(rows, n, arena);
}

static const char *brief(struct dl_arena *arena, const char *text) {
    int length = LONGEST;
    if (strlen(text) <= (size_t)LONGEST) return text;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    return dl_arena_printf(arena, "%.*s...", length, text);
}

/* Groups, then "all" and the macro-average, which are the last two of a summary. */
static void fill_groups(const struct report *r, bool people, struct dl_table *table) {
    for (int i = 0; i < r->count; i++) {
        const struct dl_error_summary *s = &r->list[i];
        if (strcmp(s->kind, "system") == 0) continue;
        const char *name = strcmp(s->group, "all-by-source") == 0 ? "macro-average" : s->group;
        const struct group_columns facts = {.group = people ? brief(table->arena, name) : name,
                                            .rows = s->rows,
                                            .skipped = s->skipped,
                                            .mape_pct = s->time_mape_pct,
                                            .median_ape_pct = s->time_median_ape_pct,
                                            .p90_ape_pct = s->time_p90_ape_pct,
                                            .max_ape_pct = s->time_max_ape_pct,
                                            .bias_pct = s->time_bias_pct,
                                            .in_sample_mape_pct =
                                                r->in_sample_list[i].time_mape_pct,
                                            .coverage_pct = s->inside_pct,
                                            .interval_ratio_median = s->interval_ratio_median};
        dl_list_add(table, columns, &facts);
    }
}

static void add_row(struct dl_table *table, const struct report *r, size_t i, bool people) {
    const struct dl_fit_row *row = &r->g->rows->rows[i];
    const struct dl_fit_prediction *p = &r->predictions[i];
    const struct row_columns facts = {.id = row->id,
                                      .source = row->source,
                                      .system = row->system,
                                      .framework = row->framework,
                                      .workload = people ? brief(table->arena, row->workload)
                                                         : row->workload,
                                      .release = row->release,
                                      .precision = dl_precision_names[row->precision],
                                      .device = row->device,
                                      .devices = row->devices,
                                      .predicted_s = p->iteration_s,
                                      .measured_s = row->measured_s,
                                      .predicted_low_s = p->low_s,
                                      .predicted_high_s = p->high_s,
                                      .exposed_comm_frac = p->exposed_frac,
                                      .overhead_frac = p->overhead_frac,
                                      .waits_frac = p->waits_frac,
                                      .model_sigma_log = p->model_sigma_log,
                                      .error_pct = r->held_out.rows[i].error_pct,
                                      .in_sample_error_pct = r->in_sample.rows[i].error_pct};
    dl_list_add(table, row_columns, &facts);
}

/* The largest errors, at most so many. */
static void fill_rows(const struct report *r, size_t most, bool people, struct dl_table *table) {
    const size_t n = r->g->rows->count;
    bool *shown = dl_arena_alloc(table->arena, n + 1, sizeof *shown);
    for (size_t k = 0; k < most; k++) {
        size_t worst = n;
        for (size_t i = 0; i < n; i++) {
            if (r->held_out.rows[i].skipped || shown[i]) continue;
            if (worst == n ||
                fabs(log(r->predictions[i].iteration_s / r->g->rows->rows[i].measured_s)) >
                    fabs(log(r->predictions[worst].iteration_s /
                             r->g->rows->rows[worst].measured_s)))
                worst = i;
        }
        if (worst == n) return;
        shown[worst] = true;
        add_row(table, r, worst, people);
    }
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct report *r, const struct dl_table *groups,
                               const struct dl_table *rows, struct dl_err *err) {
    struct dl_json_writer w;
    const size_t k = (size_t)r->g->constants->count;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-generalization");
    dl_jw_string(&w, "by", dl_leave_out_names[r->g->by]);
    dl_jw_bool(&w, "anchor", r->anchor);
    dl_jw_array(&w, "constants");
    for (size_t j = 0; j < k; j++) {
        dl_jw_object(&w, NULL);
        dl_jw_string(&w, "key", r->g->constants->list[j].key);
        dl_jw_number(&w, "value", r->g->constants->list[j].value);
        dl_jw_number(&w, "fitted", r->g->all_values[j]);
        dl_jw_object(&w, "without");
        for (size_t i = 0; i < r->g->group_count; i++)
            dl_jw_number(&w, r->g->groups[i], r->g->values[i * k + j]);
        dl_jw_end(&w);
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    dl_jw_array(&w, "rows");
    dl_table_json(rows, &w);
    dl_jw_end(&w);
    dl_jw_array(&w, "summary");
    dl_table_json(groups, &w);
    dl_jw_end(&w);
    dl_decisions_json(&r->decisions, &w);
    return context->output(options, dl_jw_text(&w), err);
}

static enum dl_code print(struct dl_context *context, const struct dl_options *options,
                          const struct dl_generalized *g, const struct dl_interval_model *model,
                          struct dl_err *err) {
    struct dl_table groups, rows;
    struct report r;
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    const bool people = format == DL_FORMAT_TEXT, all = dl_option_given(options, "rows") || !people;
    make_report(g, model, dl_option_given(options, "anchor"), context->arena, &r);
    dl_list_table(&groups, context->arena, DL_LIST(columns), 0);
    dl_list_table(&rows, context->arena, DL_LIST(row_columns), 0);
    fill_groups(&r, people, &groups);
    fill_rows(&r, all ? g->rows->count : SHOWN_ROWS, people, &rows);
    if (format == DL_FORMAT_JSON) return print_json(context, options, &r, &groups, &rows, err);
    if (format == DL_FORMAT_CSV)
        return context->output(
            options, dl_table_csv(dl_option_given(options, "rows") ? &rows : &groups), err);
    return context->output(
        options,
        dl_arena_printf(
            context->arena,
            "Each %s predicted with %d constants fitted to all others\n\n%s\nThe largest "
            "errors\n\n%s\n%s",
            dl_leave_out_names[g->by], g->constants->count, dl_table_text(&groups),
            dl_table_text(&rows), dl_decisions_text(&r.decisions, context->arena)),
        err);
}

static enum dl_code learning_table(struct dl_context *context, const struct dl_fit_rows *rows,
                                   const struct dl_fit_prediction *predictions,
                                   const struct dl_interval_model *model, struct dl_table *table,
                                   struct dl_err *err) {
#define STEP(member, key, heading, unit)                                                           \
    DL_SHOWN(struct dl_learning, member, key, heading, unit, 0, 3, 0, NULL)
    static const struct dl_list_column learning_columns[] = {
        STEP(given, "runs_given", "runs given", ""),
        STEP(groups, "groups", "systems with a framework", ""),
        STEP(mape_pct, "mape_pct", "mean error of the rest", "%"),
        STEP(coverage_pct, "coverage_pct", "coverage", "%"),
        STEP(smallest_mape_pct, "smallest_mape_pct", "smallest runs given", "%"),
    };
    struct dl_learning curve[DL_LEARNING_STEPS];
    DL_TRY(dl_learning_curve(rows, predictions, model, context->arena, curve, err));
    dl_list_table(table, context->arena, DL_LIST(learning_columns), 0);
    for (int i = 0; i < DL_LEARNING_STEPS; i++) dl_list_add(table, learning_columns, &curve[i]);
    return DL_OK;
}

static enum dl_code print_learning(struct dl_context *context, const struct dl_options *options,
                                   const struct dl_fit_rows *rows,
                                   const struct dl_fit_prediction *predictions,
                                   const struct dl_interval_model *model, struct dl_err *err) {
    struct dl_table table;
    DL_TRY(learning_table(context, rows, predictions, model, &table, err));
    return dl_output_table(context, options, &table, "dlmodel-learning-curve", "steps", err);
}

static enum dl_code write_table(struct dl_context *context, const char *folder, const char *name,
                                const struct dl_table *table, struct dl_err *err) {
    const char *path = dl_arena_printf(context->arena, "%s/%s.csv", folder, name),
               *text = dl_table_csv(table);
    return dl_file_write(path, text, strlen(text), err);
}

static void decision_table(struct dl_context *context, const struct report *r,
                           struct dl_table *table) {
    dl_list_table(table, context->arena, DL_LIST(decision_columns), 0);
    for (int kind = 0; kind < 2; kind++) {
        const struct decision_columns facts = {kind == 1 ? "frameworks" : "plans",
                                               dl_decision_summary(&r->decisions, kind == 1)};
        dl_list_add(table, decision_columns, &facts);
    }
}

/* All tables of one run, for the documents. */
static enum dl_code write_tables(struct dl_context *context, const char *folder,
                                 const struct dl_generalized *g,
                                 const struct dl_strangers *strangers,
                                 const struct dl_interval_model *intervals, struct dl_err *err) {
    const char *by = dl_leave_out_names[g->by];
    struct dl_table table;
    struct report r;
    DL_TRY(dl_file_mkdirs(folder, err));
    for (int anchor = 0; anchor < 2; anchor++) {
        make_report(g, intervals, anchor == 1, context->arena, &r);
        dl_list_table(&table, context->arena, DL_LIST(columns), 0);
        fill_groups(&r, false, &table);
        const char *name = dl_arena_printf(context->arena, "%s%s", by, anchor ? "_anchored" : "");
        DL_TRY(write_table(context, folder, name, &table, err));
        if (anchor == 1 || g->by != DL_LEAVE_SOURCE) continue;
        decision_table(context, &r, &table);
        DL_TRY(write_table(context, folder, "decisions", &table, err));
    }
    if (g->by != DL_LEAVE_SOURCE) return DL_OK;
    dl_first_sight_table(strangers, context->arena, &table);
    DL_TRY(write_table(context, folder, "first_sight", &table, err));
    dl_first_sight_rows_table(strangers, context->arena, &table);
    DL_TRY(write_table(context, folder, "first_sight_rows", &table, err));
    DL_TRY(learning_table(context, g->rows, g->held_out, intervals, &table, err));
    DL_TRY(write_table(context, folder, "learning", &table, err));
    dl_fit_constants_table(g, context->arena, &table);
    return write_table(context, folder, "constants", &table, err);
}

/* With the constants of the data files. */
static enum dl_code learn_from_files(struct dl_context *context, const struct dl_options *options,
                                     const struct dl_fit_rows *rows, struct dl_err *err) {
    const size_t n = rows->count;
    struct dl_fit_prediction *p = dl_arena_alloc(context->arena, n + 1, sizeof *p);
    if (rows->data->intervals == NULL)
        return dl_fail(err, DL_ERR_USAGE, "no intervals.json in the data directories");
    for (size_t i = 0; i < n; i++) p[i].iteration_s = NAN;
    DL_TRY(dl_fit_rows_predict(rows, NULL, NULL, p, err));
    return print_learning(context, options, rows, p, rows->data->intervals, err);
}

/* --only, whose errors need no widths of intervals, which come from all groups. */
static enum dl_code read_only(const struct dl_options *options, struct dl_arena *arena,
                              struct dl_generalize_choice *out, struct dl_err *err) {
    const char **only = dl_arena_alloc(arena, (size_t)options->given_count + 1, sizeof *only);
    for (int i = 0; i < options->given_count; i++)
        if (strcmp(options->given[i].option->name, "only") == 0)
            only[out->only_count++] = options->given[i].value;
    out->only = only;
    const char *whole = dl_option_first(options, "intervals tables learning-curve fit-constants");
    if (whole != NULL && out->only_count > 0)
        return dl_fail(err, DL_ERR_USAGE, "--only: goes without --%s", whole);
    return DL_OK;
}

enum dl_code dl_generalize_run(struct dl_context *context, const struct dl_options *options,
                               const struct dl_data *data, const struct dl_csv *csvs, int count,
                               struct dl_err *err) {
    const bool fit = dl_option_given(options, "fit-constants");
    struct dl_fit_rows rows;
    struct dl_constants constants;
    struct dl_generalized g;
    int by = DL_LEAVE_SOURCE;
    if (!fit && !dl_option_given(options, "generalize") &&
        !dl_option_given(options, "learning-curve"))
        return dl_fail(err, DL_ERR_USAGE,
                       "--write goes with --fit-constants, --intervals and --tables with "
                       "--generalize");
    if (dl_option_given(options, "write") && !fit)
        return dl_fail(err, DL_ERR_USAGE, "--write: goes with --fit-constants");
    DL_TRY(dl_option_choice(options, "generalize", dl_leave_out_names, &by, err));
    DL_TRY(dl_constants_read(data, context->arena, &constants, err));
    DL_TRY(dl_fit_rows_read(data, csvs, count, context->arena, &rows, err));
    const bool learning = dl_option_given(options, "learning-curve");
    if (learning && !dl_option_given(options, "generalize"))
        return learn_from_files(context, options, &rows, err);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct dl_generalize_choice choice = {
        .by = (enum dl_leave_out)by,
        .threads = cores > 0 && cores < 64 ? (int)cores : 2,
    };
    DL_TRY(read_only(options, context->arena, &choice, err));
    DL_TRY(dl_generalize(&rows, &constants, &choice, context->arena, &g, err));
    if (choice.only_count > 0) return print(context, options, &g, data->intervals, err);
    struct dl_interval_model intervals;
    struct dl_strangers strangers;
    DL_TRY(dl_strangers_read(data, context->arena, &strangers, err));
    DL_TRY(dl_interval_fit(&g, &strangers, context->arena, &intervals, err));
    DL_TRY(dl_learning_choose(&rows, g.held_out, &intervals, context->arena, err));
    if (dl_option_given(options, "intervals")) {
        if (by != DL_LEAVE_SOURCE)
            return dl_fail(err, DL_ERR_USAGE, "--intervals: goes with --generalize source");
        DL_TRY(dl_interval_write(&intervals, dl_option_text(options, "intervals"), context->arena,
                                 err));
    }
    if (dl_option_given(options, "tables"))
        DL_TRY(write_tables(context, dl_option_text(options, "tables"), &g, &strangers, &intervals,
                            err));
    if (learning) return print_learning(context, options, &rows, g.held_out, &intervals, err);
    return fit ? dl_fit_constants_run(context, options, data, &g, err)
               : print(context, options, &g, &intervals, err);
}
