/* search_print.c - prints the results of a search: plans as a table or CSV with the command of
 * each, terms, limits and elasticities of the best one, JSON. */
#include "predict/output/search_print.h"

#include <math.h>
#include <string.h>

#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "predict/manual/wrap.h"
#include "predict/output/rows.h"
#include "predict/output/search_rows.h"

enum { WIDTH = 100 };

struct dl_prediction_row dl_searched_row(const struct dl_search_report *report,
                                         const struct dl_searched *row) {
    return (struct dl_prediction_row){
        report->inputs->system, dl_inputs_workload(report->inputs, report->framework),
        row->framework,         row->plan,
        row->prediction,        &report->inputs->length,
        &report->inputs->rates};
}

static void show_time(struct dl_column *column, bool in_ms) {
    if (!in_ms) return;
    column->unit = "ms";
    column->scale = 1e-3;
}

/* Plans matter most on a screen: only the longest of the hundreds of kernels of a convolutional
 * network are shown. */
static const char *terms_text(struct dl_arena *arena, const struct dl_prediction *p, bool in_ms) {
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
    dl_table_init(&table, arena, term_columns, 5);
    const double least_s =
        p->term_count > MANY ? dl_terms_least_shown_s(p, SHOWN, arena) : -INFINITY;
    for (int i = 0; i < p->term_count; i++) {
        const bool memory = strcmp(p->terms[i].group, "memory") == 0;
        if (!memory && !(p->terms[i].value >= least_s)) {
            left_s += dl_known(p->terms[i].value) ? p->terms[i].value : 0;
            left++;
            continue;
        }
        dl_table_add(&table, {.string = p->terms[i].name}, {.string = p->terms[i].formula},
                     {.number = memory ? NAN : p->terms[i].value},
                     {.number = memory ? p->terms[i].value : NAN}, {.string = p->terms[i].inputs});
    }
    if (left > 0) {
        union dl_cell *c = dl_table_row(&table);
        c[0].string = dl_arena_printf(arena, "%d shorter terms", left);
        c[2].number = left_s;
        c[4].string = "dlmodel explain prints them all";
    }
    return dl_table_text(&table);
}

static void add_limits(struct dl_text *text, const struct dl_limits *limits, bool in_ms) {
    const double per_s = in_ms ? 1e3 : 1;
    dl_text_add(text, "Limits of the best plan:\n");
    for (int i = 0; i < limits->active_count; i++) {
        const struct dl_limit_active *l = &limits->active[i];
        const bool time = dl_known(l->cost_s);
        dl_text_printf(text, "  %-42s %-14s %.4g %s\n", l->name, l->category,
                       time ? per_s * l->cost_s : l->cost_bytes / 1073741824,
                       !time   ? "GiB"
                       : in_ms ? "ms"
                               : "s");
    }
    dl_text_add(text, "Sensitivity (% change in time per 1 % change in the resource):\n");
    for (int i = 0; i < limits->elasticity_count; i++)
        dl_text_printf(text, "  %-42s %+.3f\n", limits->elasticity[i].resource,
                       limits->elasticity[i].value);
}

static const char *rejected_text(struct dl_arena *arena, const struct dl_search_worker *found) {
    const char *text = "";
    for (int r = 0; r < DL_REJECTIONS; r++) {
        if (found->rejected_count[r] == 0) continue;
        text = dl_arena_printf(arena, "%s%s%lld %s", text, text[0] != 0 ? ", " : "",
                               (long long)found->rejected_count[r], dl_rejection_names[r]);
    }
    return text[0] != 0 ? text : "none";
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

static void add_remarks(struct dl_text *text, const struct dl_search_report *report) {
    int tied = 0;
    for (int i = 1; i < report->row_count; i++) tied += report->rows[i].tied;
    if (tied > 0)
        dl_text_printf(text, "%d other plan%s within the uncertainty of the best one.\n", tied,
                       tied == 1 ? " is" : "s are");
    add_choice(text, report);
    add_tight(text, report);
}

/* "Why not: tp 8: 9 % slower; tp 2: out of memory." */
static void add_neighbors(struct dl_text *text, const struct dl_search_report *report) {
    const double best_s = report->rows[0].prediction->iteration_s;
    struct dl_text line = {.arena = text->arena};
    for (int i = 0; i < report->neighbor_count; i++) {
        const struct dl_search_neighbor *n = &report->neighbors[i];
        const double more = 100 * (n->iteration_s / best_s - 1);
        dl_text_printf(&line, "%s%s %lld: ", i == 0 ? "Why not " : "; ", n->axis,
                       (long long)n->ranks);
        if (isinf(n->iteration_s))
            dl_text_add(&line, "out of memory");
        else if (fabs(more) < 0.5)
            dl_text_add(&line, "as fast, less simple");
        else
            dl_text_printf(&line, "%.0f %% %s", fabs(more),
                           more > 0 ? "slower" : "faster, but less simple");
    }
    if (line.length == 0) return;
    dl_text_add(&line, ".");
    dl_text_wrap(text, dl_text_string(&line), 0, WIDTH);
}

/* The best changes of the plan and of the machine. */
static void add_changes(struct dl_text *text, const struct dl_search_report *report) {
    const struct dl_limits *limits = report->limits;
    const double best_s = report->rows[0].prediction->iteration_s;
    for (int of_plan = 1; of_plan >= 0; of_plan--) {
        const int most = report->every_row ? 3 : 1;
        int listed = 0;
        for (int i = 0; i < limits->change_count && listed < most; i++) {
            const struct dl_change *c = &limits->changes[i];
            if (c->of_plan != (bool)of_plan || !(c->iteration_s < best_s)) continue;
            dl_text_printf(text, "%s%s (%s, -%.1f %%)",
                           listed++ > 0 ? "; then "
                           : of_plan    ? "Best change of the plan: "
                                        : "Best hardware upgrade: ",
                           c->text, dl_duration_text(text->arena, c->iteration_s),
                           100 * (1 - c->iteration_s / best_s));
        }
        if (listed > 0) dl_text_add(text, "\n");
    }
}

static void add_best(struct dl_text *text, const struct dl_search_report *report) {
    const struct dl_searched *best = &report->rows[0];
    const struct dl_prediction *p = best->prediction;
    const struct dl_inputs *in = report->inputs;
    struct dl_arena *arena = text->arena;
    const bool stack = dl_known(in->workload->transformer_layers);
    dl_text_printf(text,
                   "Best plan: %s%s%s: %s per iteration (80 %% prediction interval %s), %s GiB of "
                   "%s. Bottleneck: %s.\n\n",
                   stack ? "" : best->plan->strategy->name, stack ? "" : " ",
                   dl_search_plan_text(best->plan, arena), dl_duration_text(arena, p->iteration_s),
                   dl_duration_range(arena, p->iteration_low_s, p->iteration_high_s),
                   dl_figure_text(arena, p->memory.total_bytes / 1073741824, 3),
                   dl_figure_text(arena, p->memory.capacity_bytes / 1073741824, 3),
                   dl_bottleneck_names[p->bottleneck]);
    dl_text_printf(text, "%s %s on %s (%s), %s, global batch %s: best plans by %s\n\n",
                   in->workload->name, dl_precision_names[in->plan.precision], in->system->name,
                   in->system->device->name, report->framework->name,
                   dl_whole_text(arena, best->plan->global_batch_samples), report->objective);
}

/* --long: the command of each row, terms and limits of the best, what was searched. */
static void add_details(struct dl_text *text, const struct dl_search_report *report) {
    const struct dl_search_worker *found = report->found;
    dl_text_add(text, "\nCommands to reproduce each row:\n");
    for (int i = 0; i < report->row_count; i++)
        dl_text_printf(text, "  %s\n", report->rows[i].command);
    dl_text_printf(text, "\n%s\n",
                   terms_text(text->arena, report->rows[0].prediction, dl_search_is_short(report)));
    if (report->limits != NULL) add_limits(text, report->limits, dl_search_is_short(report));
    dl_text_printf(
        text,
        "\n%s plans evaluated, %s feasible, in %s on %d thread%s (%s plans/s). Rejected: "
        "%s.\n",
        dl_whole_text(text->arena, (double)found->evaluated_count),
        dl_whole_text(text->arena, (double)found->feasible_count),
        dl_duration_text(text->arena, report->elapsed_s), report->threads,
        report->threads == 1 ? "" : "s",
        dl_figure_text(
            text->arena,
            report->elapsed_s > 0 ? (double)found->evaluated_count / report->elapsed_s : 0, 3),
        rejected_text(text->arena, found));
}

static const char *search_text(struct dl_arena *arena, const struct dl_search_report *report,
                               const struct dl_table *table, const struct dl_table *front) {
    struct dl_text text = {.arena = arena};
    add_best(&text, report);
    dl_text_printf(&text, "%s\n", dl_table_text(table));
    if (report->front_count > 0)
        dl_text_printf(&text,
                       "Pareto front of time, memory and devices (cheap: nothing beats it in time, "
                       "cost and energy either):\n\n%s\n",
                       dl_table_text(front));
    add_neighbors(&text, report);
    add_remarks(&text, report);
    if (report->limits != NULL) add_changes(&text, report);
    if (report->every_row)
        add_details(&text, report);
    else
        dl_text_printf(&text,
                       "Reproduce: %s\n%d splits shown, one plan of each; all plans, their "
                       "commands, terms and limits: --long\n",
                       report->rows[0].command, table->row_count);
    return dl_text_string(&text);
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
    struct dl_table table, front;
    const bool csv = format == DL_FORMAT_CSV;
    dl_search_rows_table(&table, context->arena, report);
    dl_search_rows_init(&front, context->arena, DL_SEARCH_FRONT_ROWS, report);
    for (int i = 0; i < report->front_count; i++)
        dl_search_rows_add(csv ? &table : &front, report, &report->front[i]);
    const char *text = format == DL_FORMAT_TEXT
                           ? search_text(context->arena, report, &table, &front)
                           : dl_table_render(&table, format);
    return context->output(options, text, err);
}

enum dl_code dl_search_nothing(struct dl_arena *arena, const struct dl_search *search,
                               const struct dl_search_request *r,
                               const struct dl_search_worker *found, struct dl_err *err) {
    const double gib = 1073741824,
                 capacity = r->memory_bytes > 0 ? r->memory_bytes : r->system->device->memory_bytes;
    if (found->rejected_count[DL_NOT_DEADLINE] > 0) {
        return dl_fail(err, DL_ERR_NO,
                       "no plan meets the deadline of %s per iteration; %lld fit in memory; search "
                       "without --deadline and --max-iteration for the fastest",
                       dl_duration_text(arena, r->iteration_limit_s),
                       (long long)found->rejected_count[DL_NOT_DEADLINE]);
    }
    if (!found->has_nearest) {
        return dl_fail(
            err, DL_ERR_NO,
            "no plan fits: sharded over all %lld devices, weights, gradients and optimizer states "
            "still exceed the %.4g GiB of a device; nearest: more --nodes, or a device with more "
            "memory",
            (long long)(r->nodes[r->node_count - 1] * r->fixed.devices_per_node), capacity / gib);
    }
    const struct dl_plan plan = dl_search_plan(search, &found->nearest);
    return dl_fail(err, DL_ERR_NO,
                   "no plan fits in the %.4g GiB of a device; nearest needs %.4g GiB: --dp %lld "
                   "--tp %lld --pp %lld --cp %lld "
                   "--micro-batch %g --recompute %s --zero %d%s; more --nodes or --memory",
                   capacity / gib, found->nearest.memory_bytes / gib, (long long)plan.dp,
                   (long long)plan.tp, (long long)plan.pp, (long long)plan.sp,
                   plan.micro_batch_samples, dl_plan_recompute_text(&plan, arena),
                   found->nearest.shard, plan.sequence_parallel ? " --sequence-parallel" : "");
}
