/* search_print.c - prints the results of a search: plans as a table or CSV, terms, limits and
 * elasticities of the best one, JSON; and reads the CSV of a part of a search. */
#include "predict/output/search_print.h"

#include <math.h>
#include <string.h>

#include "model/base/csv.h"
#include "model/base/stats.h"
#include "model/parallel/strategy.h"
#include "predict/output/rows.h"

static const struct dl_column columns[] = {
    {"strategy", "strategy", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"dp", "dp", "", DL_COLUMN_INTEGER, 0, 0},
    {"tp", "tp", "", DL_COLUMN_INTEGER, 0, 0},
    {"pp", "pp", "", DL_COLUMN_INTEGER, 0, 0},
    {"sp", "cp/sp", "", DL_COLUMN_INTEGER, 0, 0},
    {"ep", "ep", "", DL_COLUMN_INTEGER, 0, 0},
    {"micro_batch_samples", "micro", "", DL_COLUMN_NUMBER, 0, 0},
    {"schedule", "schedule", "", DL_COLUMN_STRING, 0, 0},
    {"virtual_stages", "v", "", DL_COLUMN_INTEGER, 0, 0},
    {"recompute", "recompute", "", DL_COLUMN_STRING, 0, 0},
    {"sequence_parallel", "seq", "", DL_COLUMN_INTEGER, 0, 0},
    {"zero", "zero", "", DL_COLUMN_INTEGER, 0, 0},
    {"mapping", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"iteration_s", "iter", "s", DL_COLUMN_NUMBER, 0, 4},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"compute_s", "compute", "s", DL_COLUMN_NUMBER, 0, 3},
    {"exposed_comm_s", "exposed", "s", DL_COLUMN_NUMBER, 0, 3},
    {"bubble_s", "bubble", "s", DL_COLUMN_NUMBER, 0, 3},
    {"memory_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 3},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
    {"front", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"evaluated_count", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"feasible_count", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_heads", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_layers", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_tokens", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_batch", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_memory", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_deadline", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_bound", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_parts", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
};
enum {
    COLUMNS = sizeof columns / sizeof columns[0],
    COUNTS_AT = COLUMNS - DL_REJECTIONS - 2,
    MICRO_AT = 8
};

static int64_t zero_of(const struct dl_plan *plan) {
    return plan->strategy->shard > 0 ? plan->strategy->shard : plan->shard;
}

static enum dl_code add_row(struct dl_table *table, const struct dl_search_report *report,
                            const struct dl_searched *row, struct dl_err *err) {
    union dl_cell *c = dl_table_row(table);
    const struct dl_plan *plan = row->plan;
    const struct dl_prediction *p = row->prediction;
    const struct dl_search_worker *found = report->found;
    if (c == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    int i = 0;
    c[i++].string = plan->strategy->name;
    c[i++].integer = plan->nodes;
    c[i++].integer = plan->nodes * plan->devices_per_node;
    c[i++].integer = plan->dp;
    c[i++].integer = plan->tp;
    c[i++].integer = plan->pp;
    c[i++].integer = plan->sp;
    c[i++].integer = plan->ep;
    c[i++].number = plan->micro_batch_samples;
    c[i++].string = plan->pp > 1 ? dl_schedule_names[plan->schedule] : "-";
    c[i++].integer = plan->virtual_stages > 0 ? plan->virtual_stages : 1;
    c[i++].string = dl_recompute_names[plan->recompute];
    c[i++].integer = plan->sequence_parallel;
    c[i++].integer = zero_of(plan);
    c[i++].string = dl_mapping_names[plan->mapping];
    c[i++].number = p->iteration_s;
    c[i++].number = p->throughput_samples_per_s;
    c[i++].number = p->compute_s;
    c[i++].number = p->exposed_comm_s;
    c[i++].number = p->bubble_s;
    c[i++].number = p->memory.total_bytes;
    c[i++].string = dl_bottleneck_names[p->bottleneck];
    c[i++].integer = row->front;
    c[i++].integer = found->evaluated_count;
    c[i++].integer = found->feasible_count;
    for (int r = 0; r < DL_REJECTIONS; r++) c[i++].integer = found->rejected_count[r];
    return DL_OK;
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
        if (c == NULL) return NULL;
        c[0].string = p->terms[i].name;
        c[1].string = p->terms[i].formula;
        c[2].number = memory ? NAN : p->terms[i].value;
        c[3].number = memory ? p->terms[i].value : NAN;
        c[4].string = p->terms[i].inputs;
    }
    if (left > 0) {
        union dl_cell *c = dl_table_row(&table);
        if (c == NULL) return NULL;
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
    text =
        dl_arena_printf(arena, "%s\nElasticity of the iteration (d log T / d log resource):", text);
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
            said =
                dl_arena_printf(arena, "%s%s%s (%.4g %s, %.1f %% less)", said != NULL ? said : "",
                                listed > 0 ? "; then " : "", c->text, per_s * c->iteration_s, unit,
                                100 * (1 - c->iteration_s / iteration_s));
            listed++;
        }
        text = dl_arena_printf(arena, "%s\n%s: %s", text,
                               of_plan ? "First change of the plan that pays"
                                       : "First change of the machine that pays",
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

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_search_report *report, const struct dl_table *table,
                               const struct dl_table *front, struct dl_err *err) {
    const struct dl_inputs *in = report->inputs;
    const struct dl_search_worker *found = report->found;
    const struct dl_prediction *best = report->rows[0].prediction;
    const bool in_ms = is_short(report);
    const char *plans = dl_table_text(table), *terms = terms_text(context, best, in_ms);
    const char *limits = report->limits == NULL
                             ? ""
                             : limits_text(context, report->limits, best->iteration_s, in_ms);
    const char *fronts =
        report->front_count == 0
            ? ""
            : dl_arena_printf(context->arena, "\nPareto front of time, memory and devices:\n\n%s",
                              dl_table_text(front));
    if (plans == NULL || terms == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    return context->output(
        options,
        dl_arena_printf(
            context->arena,
            "%s %s on %s (%s), %s, global batch %.0f: best plans by %s\n\n%s%s\n%s\n%s\n%lld plans "
            "evaluated, %lld feasible, in %.3g s on %d "
            "thread%s (%.3g plans/s). Rejected: %s.\n",
            in->workload->name, dl_precision_names[in->plan.precision], in->system->name,
            in->system->device->name, report->framework->name,
            report->rows[0].plan->global_batch_samples, report->objective, plans, fronts, terms,
            limits, (long long)found->evaluated_count, (long long)found->feasible_count,
            report->elapsed_s, report->threads, report->threads == 1 ? "" : "s",
            report->elapsed_s > 0 ? (double)found->evaluated_count / report->elapsed_s : 0,
            rejected_text(context, found)),
        err);
}

static void plan_json(struct dl_json_writer *w, const struct dl_search_report *report,
                      const struct dl_searched *row) {
    const struct dl_prediction_row r = {report->inputs->system, report->inputs->workload,
                                        report->framework, row->plan, row->prediction};
    const struct dl_plan *plan = row->plan;
    dl_rows_json_open(w, &r);
    dl_jw_integer(w, "ep", plan->ep);
    dl_jw_number(w, "micro_batch_samples", plan->micro_batch_samples);
    dl_jw_string(w, "schedule", dl_schedule_names[plan->schedule]);
    dl_jw_integer(w, "virtual_stages", plan->virtual_stages > 0 ? plan->virtual_stages : 1);
    dl_jw_string(w, "recompute", dl_recompute_names[plan->recompute]);
    dl_jw_bool(w, "sequence_parallel", plan->sequence_parallel);
    dl_jw_integer(w, "zero", zero_of(plan));
    dl_jw_string(w, "mapping", dl_mapping_names[plan->mapping]);
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
    dl_jw_end(&w);
    return context->output(options,
                           w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

/* Whole numbers for readers, and nothing where the batch is not split. */
static void name_micro_batches(struct dl_table *table, struct dl_arena *arena) {
    for (int r = 0; r < table->row_count; r++) {
        union dl_cell *c = &table->cells[(size_t)r * COLUMNS + MICRO_AT];
        const double number = c->number; /* replaced by the text */
        c->string = number > 0 ? dl_arena_printf(arena, "%.4g", number) : "-";
    }
}

enum dl_code dl_search_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_search_report *report, enum dl_format format,
                             struct dl_err *err) {
    if (format == DL_FORMAT_JSON) return print_json(context, options, report, err);
    struct dl_table table, front;
    struct dl_column *shown = dl_arena_alloc(context->arena, COLUMNS, sizeof *shown);
    if (shown == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    memcpy(shown, columns, sizeof columns);
    if (format != DL_FORMAT_CSV) shown[MICRO_AT].type = DL_COLUMN_STRING;
    for (int i = 0; i < COLUMNS; i++) {
        if (shown[i].unit != NULL && strcmp(shown[i].unit, "s") == 0)
            show_time(&shown[i], is_short(report));
    }
    dl_table_init(&table, context->arena, shown, COLUMNS);
    dl_table_init(&front, context->arena, shown, COLUMNS);
    for (int i = 0; i < report->row_count; i++)
        DL_TRY(add_row(&table, report, &report->rows[i], err));
    for (int i = 0; i < report->front_count; i++) {
        DL_TRY(add_row(format == DL_FORMAT_CSV ? &table : &front, report, &report->front[i], err));
    }
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    name_micro_batches(&table, context->arena);
    name_micro_batches(&front, context->arena);
    return print_text(context, options, report, &table, &front, err);
}

static int choice_of(const char *word, const char *const *names) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) return i;
    }
    return 0;
}

enum dl_code dl_search_read(const char *path, const struct dl_search_request *request,
                            struct dl_arena *arena, struct dl_search_worker *into,
                            struct dl_err *err) {
    struct dl_csv csv;
    int at[COLUMNS];
    double v[COLUMNS];
    DL_TRY(dl_csv_read(path, arena, &csv, err));
    for (int c = 0; c < COLUMNS; c++) {
        at[c] = dl_csv_column(&csv, columns[c].key);
        if (at[c] < 0)
            return dl_fail_at(err, path, 1, 1, columns[c].key,
                              "a part of a search (search --shard I/N --csv) has this column");
    }
    for (int row = 0; row < csv.row_count; row++) {
        for (int c = 0; c < COLUMNS; c++) {
            v[c] = 0;
            if (columns[c].type != DL_COLUMN_STRING)
                DL_TRY(dl_csv_number(&csv, row, at[c], &v[c], err));
        }
        const int64_t devices = (int64_t)v[2], nodes = (int64_t)v[1] > 0 ? (int64_t)v[1] : 1;
        struct dl_found f = {.iteration_s = v[15],
                             .memory_bytes = v[20],
                             .micro_samples = v[8],
                             .shard = (int)v[13],
                             .fits = true,
                             .order = into->evaluated_count + row};
        f.split = (struct dl_transformer_split){
            .tp = (int64_t)v[4],
            .sp = (int64_t)v[6],
            .ep = (int64_t)v[7],
            .pp = (int64_t)v[5],
            .dp = (int64_t)v[3],
            .nodes = nodes,
            .devices_per_node = devices / nodes,
            .sequence_parallel = v[12] > 0,
            .mapping = (enum dl_mapping)choice_of(csv.rows[row][at[14]], dl_mapping_names)};
        f.choice = (struct dl_transformer_choice){
            .schedule = (enum dl_schedule)choice_of(csv.rows[row][at[9]], dl_schedule_names),
            .recompute = (enum dl_recompute)choice_of(csv.rows[row][at[11]], dl_recompute_names),
            .virtual_stages = (int64_t)v[10]};
        const struct dl_strategy *strategy = dl_strategy_find(csv.rows[row][at[0]]);
        if (dl_search_serves_network(strategy)) f.strategy = strategy;
        f.score = dl_search_score(request, &f);
        if (v[22] > 0)
            dl_search_keep_front(into, &f);
        else
            dl_search_keep(request, into, &f);
        if (row > 0) continue;
        into->evaluated_count += (int64_t)v[COUNTS_AT];
        into->feasible_count += (int64_t)v[COUNTS_AT + 1];
        for (int r = 0; r < DL_REJECTIONS; r++)
            into->rejected_count[r] += (int64_t)v[COUNTS_AT + 2 + r];
    }
    return DL_OK;
}
