/* measured.c - see measured.h. */
#include "predict/compare/measured.h"

#include <math.h>
#include <string.h>

#include "import/log.h"
#include "model/core/text.h"
#include "model/engine/agreement.h"
#include "model/engine/correct.h"
#include "model/framework/capabilities.h"
#include "model/plan/plan_defaults.h"
#include "predict/compare/run_belief.h"

/* As the inputs name a workload: with its parameters, where it has them. */
static const char *workload_name(const struct dl_run_rows *r, int row) {
    const char *cell = dl_run_cell(r, row, DL_RUN_WORKLOAD);
    return strchr(cell, ':') != NULL ? cell : r->rows[row].workload->name;
}

/* A system given as a file: rows have the path, or the name in the file. */
static void name_system(struct dl_csv *csv, const struct dl_inputs *inputs,
                        struct dl_arena *arena) {
    const int column = dl_csv_column(csv, "system");
    const char *const **rows =
        dl_arena_alloc(arena, (size_t)csv->row_count + 1, sizeof(const char *const *));
    for (int i = 0; column >= 0 && i < csv->row_count; i++) {
        rows[i] = csv->rows[i];
        if (strcmp(rows[i][column], inputs->system->name) != 0) continue;
        const char **cells = dl_arena_alloc(arena, (size_t)csv->column_count, sizeof(const char *));
        for (int c = 0; c < csv->column_count; c++)
            cells[c] = c == column ? inputs->words.system : csv->rows[i][c];
        rows[i] = cells;
    }
    if (column >= 0) csv->rows = rows;
}

/* What becomes of the rows of the system and the frameworks. */
struct use {
    size_t used, refused;
    struct dl_text reasons; /* of those refused */
    double widened_ratio;
    const char *left_out; /* those that the others contradict, and why, likely; NULL: none */
};

enum { NAMED = 5 }; /* refused rows whose reasons are given */

/* A run with its prediction. */
struct candidate {
    int row;
    struct dl_prediction prediction; /* its numbers */
};

static bool is_of(const struct dl_run_rows *r, int row, const char *system, const char *framework) {
    return strcmp(dl_run_cell(r, row, DL_RUN_SYSTEM), system) == 0 &&
           strcmp(dl_run_cell(r, row, DL_RUN_FRAMEWORK), framework) == 0;
}

/* NULL, or why the run cannot be predicted or believed. */
static const char *measure(const struct dl_run_rows *r, int row, struct dl_arena *arena,
                           struct candidate *candidate, struct dl_measured_run *out) {
    const struct dl_run_row *run = &r->rows[row];
    struct dl_prediction *p = &candidate->prediction;
    struct dl_err refused;
    candidate->row = row;
    if (run->why != NULL) return run->why;
    if (dl_predict(&(struct dl_predict_request){.system = run->system,
                                                .workload = run->workload,
                                                .framework = run->framework,
                                                .plan = &run->plan,
                                                .arena = arena},
                   p, &refused) != DL_OK)
        return dl_arena_strdup(arena, refused.message);
    const double ratio = run->throughput ? p->throughput_samples_per_s / run->measured
                                         : run->measured / p->iteration_s;
    *out = (struct dl_measured_run){
        .log_ratio = log(ratio),
        .what = dl_interval_case_of(run->system, run->workload, run->framework, &run->plan, p),
        .workload = workload_name(r, row),
    };
    return dl_run_beyond_belief(run, p, ratio, arena);
}

/* Names the runs that were left out, each with how far it is off and why, likely. */
static void name_left_out(const struct dl_run_rows *r, const struct candidate *candidates,
                          const struct dl_measured_run *runs, size_t count,
                          const struct dl_agreement *agreed, struct dl_arena *arena,
                          struct use *use) {
    for (size_t i = 0; i < count; i++) {
        if (!agreed->left_out[i]) continue;
        const struct candidate *c = &candidates[i];
        const double ratio = exp(runs[i].log_ratio), rest = exp(agreed->rest_log[i]);
        use->left_out = dl_arena_printf(
            arena,
            "%s%s%s (line %d) left out: %.2f times its prediction, the others %.2f times "
            "theirs (%.0f standard deviations); %s",
            use->left_out != NULL ? use->left_out : "", use->left_out != NULL ? "; " : "",
            dl_run_cell(r, c->row, DL_RUN_ID), r->csv->row_lines[c->row], ratio, rest,
            fabs(agreed->off_ratio[i]),
            dl_run_suspicion(&r->rows[c->row], &c->prediction, ratio, rest, arena));
    }
}

static enum dl_code attach(const struct dl_run_rows *r, const struct dl_framework **framework,
                           const char *system, struct dl_arena *arena, struct use *use,
                           struct dl_err *err) {
    const size_t room = (size_t)r->csv->row_count + 1;
    struct dl_measured_run *runs = dl_arena_alloc(arena, room, sizeof *runs);
    struct candidate *candidates = dl_arena_alloc(arena, room, sizeof *candidates);
    struct dl_framework *own = dl_arena_alloc(arena, 1, sizeof *own);
    struct dl_agreement agreed;
    size_t count = 0;
    for (int i = 0; i < r->csv->row_count; i++) {
        if (!is_of(r, i, system, (*framework)->name)) continue;
        const char *why = measure(r, i, arena, &candidates[count], &runs[count]);
        if (why == NULL)
            count++;
        else if (use->refused++ < NAMED)
            dl_text_printf(&use->reasons, "; line %d (%s): %s", r->csv->row_lines[i],
                           dl_run_cell(r, i, DL_RUN_ID), why);
    }
    if (count == 0) return DL_OK;
    DL_TRY(dl_runs_agree((*framework)->errors.intervals, runs, count, arena, &agreed, err));
    name_left_out(r, candidates, runs, count, &agreed, arena, use);
    use->used += agreed.used;
    use->widened_ratio = fmax(use->widened_ratio, agreed.widened_ratio);
    *own = **framework;
    own->errors.measured = agreed.posterior;
    own->errors.intervals = agreed.intervals;
    *framework = own;
    return DL_OK;
}

/* A table, or a log: what it does not say of the run is as in this prediction. */
static enum dl_code read_table(struct dl_context *context, const struct dl_data *data,
                               const char *path, const struct dl_inputs *in, struct dl_csv *csv,
                               struct dl_err *err) {
    const struct dl_plan *plan = &in->plan;
    struct dl_arena *arena = context->arena;
    const int64_t each =
        plan->devices_per_node > 0 ? plan->devices_per_node : in->system->devices_per_node;
    const enum dl_precision precision =
        in->given.plan.precision
            ? plan->precision
            : dl_default_precision(in->system->device, in->frameworks, (int)in->framework_count);
    const enum dl_optimizer optimizer =
        in->given.plan.optimizer ? plan->optimizer : dl_default_optimizer(in->workload);
    struct dl_log_fill fills[16] = {
        {"system", in->words.system, false},
        {"workload", in->words.workload, false},
        {"precision", dl_precision_names[precision], false},
        {"optimizer", dl_optimizer_names[optimizer], false},
        {"framework", in->framework_count == 1 ? in->frameworks[0]->name : NULL, false},
        {"nodes", dl_arena_printf(arena, "%lld", (long long)in->nodes[0]), false},
        {"devices_per_node", dl_arena_printf(arena, "%lld", (long long)each), false}};
    const struct {
        const char *column;
        double value;
    } numbers[] = {{"tp", (double)plan->tp},
                   {"pp", (double)plan->pp},
                   {"cp", (double)plan->sp},
                   {"ep", (double)plan->ep},
                   {"micro_batch", plan->micro_batch_samples},
                   {"batch_per_device", plan->batch_per_device_samples},
                   {"global_batch", plan->global_batch_samples}};
    int count = 7;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].value > 0)
            fills[count++] = (struct dl_log_fill){
                numbers[i].column, dl_arena_printf(arena, "%.10g", numbers[i].value), false};
    return dl_log_csv(context, data, path, fills, count, csv, err);
}

/* Warns with every prediction that the runs correct. */
static void add_remark(const char *remark, struct dl_arena *arena, struct dl_inputs *inputs) {
    for (int i = 0; remark != NULL && i < inputs->framework_count; i++) {
        const char *before = inputs->frameworks[i]->errors.measured_remark;
        struct dl_framework *own = dl_arena_alloc(arena, 1, sizeof *own);
        *own = *inputs->frameworks[i];
        own->errors.measured_remark =
            before == NULL ? remark : dl_arena_printf(arena, "%s; %s", before, remark);
        inputs->frameworks[i] = own;
    }
}

/* Runs that were not used, and why; how far the others disagree. NULL: nothing to say. */
static const char *remark_of(const struct use *use, const char *reasons, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    const char *between = "measured runs: ";
    if (use->refused > 0) {
        dl_text_printf(&text, "%s%zu of this system and framework cannot be used%s", between,
                       use->refused, reasons);
        between = "; ";
    }
    if (use->left_out != NULL) {
        dl_text_printf(&text, "%s%s", between, use->left_out);
        between = "; ";
    }
    if (use->widened_ratio > 1.2) {
        dl_text_printf(&text,
                       "%sthey disagree with each other or with what is known of the machine: "
                       "their spread is %.1f times the usual, which widens the interval",
                       between, use->widened_ratio);
        between = "; ";
    }
    return between[0] == ';' ? dl_text_string(&text) : NULL;
}

static enum dl_code load(struct dl_context *context, const struct dl_data *data, const char *path,
                         struct dl_inputs *inputs, struct dl_err *err) {
    struct dl_csv *csv = dl_arena_alloc(context->arena, 1, sizeof *csv);
    struct dl_run_rows r;
    struct use use = {.reasons = {.arena = context->arena}};
    if (data->intervals == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--measured: no intervals.json in the data directories");
    DL_TRY(read_table(context, data, path, inputs, csv, err));
    name_system(csv, inputs, context->arena);
    DL_TRY(dl_run_rows_read(data, csv, context->arena, &r, err));
    for (int i = 0; i < inputs->framework_count; i++)
        DL_TRY(attach(&r, &inputs->frameworks[i], inputs->words.system, context->arena, &use, err));
    const char *reasons = dl_text_string(&use.reasons);
    if (use.used == 0)
        return dl_fail(
            err, DL_ERR_USAGE, "--measured: %s has no run that can be used on system %s with %s%s",
            path, inputs->words.system,
            inputs->framework_count == 1 ? inputs->frameworks[0]->name : "one of these frameworks",
            reasons);
    context->note(context, "corrected by %zu of the %d runs in %s", use.used, csv->row_count, path);
    add_remark(remark_of(&use, reasons, context->arena), context->arena, inputs);
    return DL_OK;
}

enum dl_code dl_measured_load(struct dl_context *context, const struct dl_data *data,
                              const char *path, struct dl_inputs *inputs, struct dl_err *err) {
    const struct dl_attachment *sent = dl_data_attachment(data, path);
    const enum dl_code code = load(context, data, path, inputs, err);
    if (sent != NULL && sent->remark != NULL) add_remark(sent->remark, context->arena, inputs);
    if (code != DL_ERR_USAGE && code != DL_ERR_INPUT) return code;
    if (sent == NULL || !sent->if_it_fits) return code;
    context->note(context, "without measured runs: %s", err->message);
    *err = (struct dl_err){0};
    return DL_OK;
}
