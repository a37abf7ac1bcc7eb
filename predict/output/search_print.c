/* search_print.c - prints the results of a search: plans as a table or CSV with the command of
 * each, terms, limits and elasticities of the best one, JSON. */
#include "predict/output/search_print.h"

#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "predict/output/rows.h"
#include "predict/output/search_rows.h"

struct dl_prediction_row dl_searched_row(const struct dl_search_report *report,
                                         const struct dl_searched *row) {
    return (struct dl_prediction_row){
        report->inputs->system, dl_inputs_workload(report->inputs, report->framework),
        row->framework,         row->plan,
        row->prediction,        &report->inputs->length,
        &report->inputs->rates};
}

/* People read iterations of less than a second in ms. */
static bool is_short(const struct dl_search_report *report) {
    return report->row_count > 0 && report->rows[0].prediction->iteration_s < 1;
}

static void show_time(struct dl_column *column, bool in_ms) {
    if (!in_ms) return;
    column->unit = "ms";
    column->scale = 1e-3;
}

/* Plans matter most on a screen: only the longest of the hundreds of kernels of a convolutional
 * network are shown. */
static const char *terms_text(struct dl_context *context, const struct dl_prediction *p,
                              bool in_ms) {
    enum { MANY = 40, SHOWN = 12 };
    struct dl_column term_columns[] = {
        {"term", "term of the best plan", "", DL_COLUMN_STRING, 0, 0},
        {"formula", "formula", "", DL_COLUMN_STRING, 0, 0},
        {"value_s", "time", "s", DL_COLUMN_NUMBER, 0, 4},
        {"value_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 4},
        {"inputs", "inputs", "", DL_COLUMN_STRING, 0, 0},
    };
    struct dl_table table;
    double left_s = 0;
    int left = 0;
    show_time(&term_columns[2], in_ms);
    dl_table_init(&table, context->arena, term_columns, 5);
    const double least_s =
        p->term_count > MANY ? dl_terms_least_shown_s(p, SHOWN, context->arena) : -INFINITY;
    for (int i = 0; i < p->term_count; i++) {
        const bool memory = strcmp(p->terms[i].group, "memory") == 0;
        if (!memory && !(p->terms[i].value >= least_s)) {
            left_s += dl_known(p->terms[i].value) ? p->terms[i].value : 0;
            left++;
            continue;
        }
        union dl_cell *c = dl_table_row(&table);
        c[0].string = p->terms[i].name;
        c[1].string = p->terms[i].formula;
        c[2].number = memory ? NAN : p->terms[i].value;
        c[3].number = memory ? p->terms[i].value : NAN;
        c[4].string = p->terms[i].inputs;
    }
    if (left > 0) {
        union dl_cell *c = dl_table_row(&table);
        c[0].string = dl_arena_printf(context->arena, "%d shorter terms", left);
        c[2].number = left_s;
        c[4].string = "dlmodel explain prints them all";
    }
    return dl_table_text(&table);
}

static const char *limits_text(struct dl_context *context, const struct dl_limits *limits,
                               double iteration_s, bool in_ms) {
    struct dl_arena *arena = context->arena;
    const double per_s = in_ms ? 1e3 : 1;
    const char *unit = in_ms ? "ms" : "s";
    const char *text = "Limits of the best plan:";
    for (int i = 0; i < limits->active_count; i++) {
        const struct dl_limit_active *l = &limits->active[i];
        text = dl_known(l->cost_s)
                   ? dl_arena_printf(arena, "%s\n  %-42s %-14s %.4g %s", text, l->name, l->category,
                                     per_s * l->cost_s, unit)
                   : dl_arena_printf(arena, "%s\n  %-42s %-14s %.4g GiB", text, l->name,
                                     l->category, l->cost_bytes / 1073741824);
    }
    text = dl_arena_printf(
        arena, "%s\nSensitivity (%% change in time per 1 %% change in the resource):", text);
    for (int i = 0; i < limits->elasticity_count; i++) {
        text = dl_arena_printf(arena, "%s\n  %-42s %+.3f", text, limits->elasticity[i].resource,
                               limits->elasticity[i].value);
    }
    for (int of_plan = 1; of_plan >= 0; of_plan--) {
        const char *said = NULL;
        int listed = 0;
        for (int i = 0; i < limits->change_count && listed < 3; i++) {
            const struct dl_change *c = &limits->changes[i];
            if (c->of_plan != (bool)of_plan) continue;
            said = dl_arena_printf(arena, "%s%s%s (%.4g %s, -%.1f %%)", said != NULL ? said : "",
                                   listed > 0 ? "; then " : "", c->text, per_s * c->iteration_s,
                                   unit, 100 * (1 - c->iteration_s / iteration_s));
            listed++;
        }
        text = dl_arena_printf(arena, "%s\n%s: %s", text,
                               of_plan ? "Best change of the plan" : "Best hardware upgrade",
                               said != NULL ? said : "none");
    }
    return dl_arena_printf(arena, "%s\n", text);
}

static const char *rejected_text(struct dl_context *context, const struct dl_search_worker *found) {
    const char *text = "";
    for (int r = 0; r < DL_REJECTIONS; r++) {
        if (found->rejected_count[r] == 0) continue;
        if (text != NULL)
            text = dl_arena_printf(context->arena, "%s%s%lld %s", text, text[0] != 0 ? ", " : "",
                                   (long long)found->rejected_count[r], dl_rejection_names[r]);
    }
    return text == NULL || text[0] != 0 ? text : "none";
}

static bool is_tight(const struct dl_searched *row) {
    const struct dl_memory *m = &row->prediction->memory;
    return m->total_bytes > DL_TIGHT_FRAC * m->capacity_bytes;
}

/* The fastest plan that leaves a tenth of the device's memory, where the best one does not. */
static void add_tight(struct dl_text *text, const struct dl_search_report *report) {
    int roomy = -1;
    if (!is_tight(&report->rows[0])) return;
    for (int i = 0; i < report->row_count && roomy < 0; i++)
        if (!is_tight(&report->rows[i])) roomy = i;
    dl_text_printf(text, "The best plan needs more than %.0f %% of the memory; ",
                   100 * DL_TIGHT_FRAC);
    if (roomy < 0)
        dl_text_add(text, "no other plan found leaves more.\n");
    else
        dl_text_printf(text, "the fastest that leaves more is %.0f %% slower: %s\n",
                       100 * (report->rows[roomy].prediction->iteration_s /
                                  report->rows[0].prediction->iteration_s -
                              1),
                       dl_search_plan_text(report->rows[roomy].plan, text->arena));
}

/* Row 1 is the choice, which a less simple plan may beat. */
static void add_choice(struct dl_text *text, const struct dl_search_report *report) {
    int fastest = 0;
    for (int i = 1; i < report->row_count; i++) {
        if (report->rows[i].prediction->iteration_s < report->rows[fastest].prediction->iteration_s)
            fastest = i;
    }
    if (fastest == 0 || strcmp(report->objective, "time") != 0) return;
    dl_text_printf(
        text,
        "It is the simplest plan within %.0f %% of the fastest, which is %.2g %% faster: "
        "%s\n",
        100 * DL_SIMPLER_FRAC,
        100 * (1 - report->rows[fastest].prediction->iteration_s /
                       report->rows[0].prediction->iteration_s),
        dl_search_plan_text(report->rows[fastest].plan, text->arena));
}

const char *dl_search_remarks(struct dl_arena *arena, const struct dl_search_report *report) {
    struct dl_text text = {.arena = arena};
    int tied = 0;
    for (int i = 1; i < report->row_count; i++) tied += report->rows[i].tied;
    if (tied > 0)
        dl_text_printf(&text, "%d other plan%s within the uncertainty of the best one.\n", tied,
                       tied == 1 ? " is" : "s are");
    add_choice(&text, report);
    add_tight(&text, report);
    return text.length > 0 ? dl_text_string(&text) : "";
}

/* Remarks, and the command that gives each row again. */
static const char *commands_text(struct dl_context *context,
                                 const struct dl_search_report *report) {
    struct dl_text text = {.arena = context->arena};
    dl_text_add(&text, dl_search_remarks(context->arena, report));
    dl_text_add(&text, "\nCommands to reproduce each row:\n");
    for (int i = 0; i < report->row_count; i++)
        dl_text_printf(&text, "  %s\n", report->rows[i].command);
    return dl_text_string(&text);
}

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_search_report *report, const struct dl_table *table,
                               const struct dl_table *front, struct dl_err *err) {
    const struct dl_inputs *in = report->inputs;
    const struct dl_search_worker *found = report->found;
    const struct dl_prediction *best = report->rows[0].prediction;
    const bool in_ms = is_short(report);
    if (!report->every_row && report->front_count == 0)
        return context->output(options, dl_search_brief(context->arena, report), err);
    const char *plans = dl_table_text(table), *terms = terms_text(context, best, in_ms),
               *commands = commands_text(context, report);
    const char *limits = report->limits == NULL
                             ? ""
                             : limits_text(context, report->limits, best->iteration_s, in_ms);
    const char *fronts =
        report->front_count == 0
            ? ""
            : dl_arena_printf(
                  context->arena,
                  "\nPareto front of time, memory and devices (cheap: nothing beats it in time, "
                  "cost and energy either):\n\n%s",
                  dl_table_text(front));
    return context->output(
        options,
        dl_arena_printf(
            context->arena,
            "%s %s on %s (%s), %s, global batch %.0f: best plans by %s\n\n%s\n%s%s\n%s\n%s\n%lld "
            "plans "
            "evaluated, %lld feasible, in %.3g s on %d "
            "thread%s (%.3g plans/s). Rejected: %s.\n",
            in->workload->name, dl_precision_names[in->plan.precision], in->system->name,
            in->system->device->name, report->framework->name,
            report->rows[0].plan->global_batch_samples, report->objective, plans, commands, fronts,
            terms, limits, (long long)found->evaluated_count, (long long)found->feasible_count,
            report->elapsed_s, report->threads, report->threads == 1 ? "" : "s",
            report->elapsed_s > 0 ? (double)found->evaluated_count / report->elapsed_s : 0,
            rejected_text(context, found)),
        err);
}

static void plan_json(struct dl_json_writer *w, const struct dl_search_report *report,
                      const struct dl_searched *row) {
    const struct dl_prediction_row r = dl_searched_row(report, row);
    const struct dl_plan *plan = row->plan;
    dl_rows_json_open(w, &r);
    dl_jw_string(w, "mapping", dl_mapping_names[plan->mapping]);
    dl_jw_bool(w, "tied_with_best", row->tied);
    if (row->front) dl_jw_bool(w, "cost_front", row->cost_front);
    dl_jw_string(w, "command", row->command);
    dl_jw_end(w);
}

static void limits_json(struct dl_json_writer *w, const struct dl_limits *limits) {
    dl_jw_array(w, "limits");
    for (int i = 0; i < limits->active_count; i++) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "name", limits->active[i].name);
        dl_jw_string(w, "category", limits->active[i].category);
        dl_jw_number(w, "cost_s", limits->active[i].cost_s);
        dl_jw_number(w, "cost_bytes", limits->active[i].cost_bytes);
        dl_jw_end(w);
    }
    dl_jw_end(w);
    dl_jw_object(w, "elasticity");
    for (int i = 0; i < limits->elasticity_count; i++)
        dl_jw_number(w, limits->elasticity[i].resource, limits->elasticity[i].value);
    dl_jw_end(w);
    dl_jw_array(w, "changes");
    for (int i = 0; i < limits->change_count; i++) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "change", limits->changes[i].text);
        dl_jw_number(w, "iteration_s", limits->changes[i].iteration_s);
        dl_jw_bool(w, "fits", limits->changes[i].fits);
        dl_jw_bool(w, "of_plan", limits->changes[i].of_plan);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct dl_search_report *report, struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-search");
    dl_inputs_json(context, report->inputs, options, &w);
    dl_jw_string(&w, "objective", report->objective);
    dl_jw_integer(&w, "evaluated_count", report->found->evaluated_count);
    dl_jw_integer(&w, "feasible_count", report->found->feasible_count);
    dl_jw_number(&w, "elapsed_s", report->elapsed_s);
    dl_jw_integer(&w, "threads", report->threads);
    dl_jw_array(&w, "results");
    for (int i = 0; i < report->row_count; i++) plan_json(&w, report, &report->rows[i]);
    dl_jw_end(&w);
    dl_jw_array(&w, "front");
    for (int i = 0; i < report->front_count; i++) plan_json(&w, report, &report->front[i]);
    dl_jw_end(&w);
    dl_jw_object(&w, "rejected");
    for (int r = 0; r < DL_REJECTIONS; r++) {
        if (report->found->rejected_count[r] > 0)
            dl_jw_integer(&w, dl_rejection_names[r], report->found->rejected_count[r]);
    }
    dl_jw_end(&w);
    if (report->limits != NULL) limits_json(&w, report->limits);
    return context->output(options, dl_jw_text(&w), err);
}

enum dl_code dl_search_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_search_report *report, enum dl_format format,
                             struct dl_err *err) {
    if (format == DL_FORMAT_JSON) return print_json(context, options, report, err);
    if (format == DL_FORMAT_LATEX)
        return context->output(options, dl_search_latex(context->arena, report), err);
    struct dl_table table, front;
    const bool csv = format == DL_FORMAT_CSV, in_ms = is_short(report);
    const struct dl_run_length *length = &report->inputs->length;
    unsigned show =
        dl_known(dl_tokens_per_sample(report->inputs->workload)) ? DL_SEARCH_TOKENS : 0u;
    if (length->tokens > 0 || length->epoch_count > 0) show |= DL_SEARCH_RUN;
    if (strcmp(report->objective, "energy") == 0) show |= DL_SEARCH_ENERGY;
    if (dl_known(dl_price_of(report->inputs->system, &report->inputs->rates)))
        show |= DL_SEARCH_COST;
    dl_search_rows_init(&table, context->arena, in_ms, show, report);
    dl_search_rows_init(&front, context->arena, in_ms, show | DL_SEARCH_FRONT_ROWS, report);
    for (int i = 0; i < report->row_count; i++)
        dl_search_rows_add(&table, report, &report->rows[i]);
    for (int i = 0; i < report->front_count; i++)
        dl_search_rows_add(csv ? &table : &front, report, &report->front[i]);
    if (csv) return context->output(options, dl_table_csv(&table), err);
    return print_text(context, options, report, &table, &front, err);
}
