/* measured.c - see measured.h. */
#include "predict/compare/measured.h"

#include <math.h>
#include <string.h>

#include "import/log.h"
#include "model/engine/correct.h"
#include "model/framework/capabilities.h"
#include "model/plan/plan_defaults.h"
#include "predict/compare/compare_runs.h"

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

/* Rows that correct, and those of the same system and framework that cannot. */
struct use {
    size_t used, refused;
    int line;        /* of the first that is refused */
    const char *why; /* its reason */
};

static bool is_of(const struct dl_run_rows *r, int row, const char *system, const char *framework) {
    return strcmp(dl_run_cell(r, row, DL_RUN_SYSTEM), system) == 0 &&
           strcmp(dl_run_cell(r, row, DL_RUN_FRAMEWORK), framework) == 0;
}

/* NULL, or why the run cannot be predicted. */
static const char *measure(const struct dl_run_rows *r, int row, struct dl_arena *arena,
                           struct dl_measured_run *out) {
    const struct dl_run_row *run = &r->rows[row];
    struct dl_prediction p;
    struct dl_err refused;
    if (run->why != NULL) return run->why;
    if (dl_predict(&(struct dl_predict_request){.system = run->system,
                                                .workload = run->workload,
                                                .framework = run->framework,
                                                .plan = &run->plan,
                                                .arena = arena},
                   &p, &refused) != DL_OK)
        return dl_arena_strdup(arena, refused.message);
    const double ratio = run->throughput ? p.throughput_samples_per_s / run->measured
                                         : run->measured / p.iteration_s;
    *out = (struct dl_measured_run){
        .log_ratio = log(ratio),
        .what = dl_interval_case_of(run->system, run->workload, run->framework, &run->plan, &p),
        .workload = workload_name(r, row),
    };
    return NULL;
}

static enum dl_code attach(const struct dl_run_rows *r, const struct dl_framework **framework,
                           const char *system, struct dl_arena *arena, struct use *use,
                           struct dl_err *err) {
    const size_t room = (size_t)r->csv->row_count + 1;
    struct dl_measured_run *runs = dl_arena_alloc(arena, room, sizeof *runs);
    struct dl_framework *own = dl_arena_alloc(arena, 1, sizeof *own);
    size_t count = 0;
    for (int i = 0; i < r->csv->row_count; i++) {
        if (!is_of(r, i, system, (*framework)->name)) continue;
        const char *why = measure(r, i, arena, &runs[count]);
        if (why == NULL)
            count++;
        else if (use->refused++ == 0)
            use->line = r->csv->row_lines[i], use->why = why;
    }
    use->used += count;
    if (count == 0) return DL_OK;
    *own = **framework;
    DL_TRY(dl_posterior_make((*framework)->errors.intervals, runs, count, arena,
                             &own->errors.measured, err));
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

static enum dl_code load(struct dl_context *context, const struct dl_data *data, const char *path,
                         struct dl_inputs *inputs, struct dl_err *err) {
    struct dl_csv *csv = dl_arena_alloc(context->arena, 1, sizeof *csv);
    struct dl_run_rows r;
    struct use use = {.used = 0};
    if (data->intervals == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--measured: no intervals.json in the data directories");
    DL_TRY(read_table(context, data, path, inputs, csv, err));
    name_system(csv, inputs, context->arena);
    DL_TRY(dl_run_rows_read(data, csv, context->arena, &r, err));
    for (int i = 0; i < inputs->framework_count; i++)
        DL_TRY(attach(&r, &inputs->frameworks[i], inputs->words.system, context->arena, &use, err));
    const char *first =
        use.why == NULL ? "" : dl_arena_printf(context->arena, "; line %d: %s", use.line, use.why);
    if (use.used == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--measured: %s has no run that can be predicted on system %s with %s%s",
                       path, inputs->words.system,
                       inputs->framework_count == 1 ? inputs->frameworks[0]->name
                                                    : "one of these frameworks",
                       first);
    context->note(context, "corrected by %zu of the %d runs in %s", use.used, csv->row_count, path);
    if (use.refused > 0)
        context->note(context,
                      "warning: %zu of the runs of this system and framework cannot be "
                      "predicted%s; 'dlmodel compare %s --rows' shows all",
                      use.refused, first, path);
    return DL_OK;
}

static void add_remark(const char *remark, struct dl_arena *arena, struct dl_inputs *inputs) {
    for (int i = 0; i < inputs->framework_count; i++) {
        struct dl_framework *own = dl_arena_alloc(arena, 1, sizeof *own);
        *own = *inputs->frameworks[i];
        own->errors.measured_remark = remark;
        inputs->frameworks[i] = own;
    }
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
