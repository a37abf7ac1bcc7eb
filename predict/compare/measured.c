/* measured.c - see measured.h. */
#include "predict/compare/measured.h"

#include <math.h>
#include <string.h>

#include "model/predict/correct.h"
#include "predict/compare/compare_runs.h"

/* As the inputs name a workload: with its parameters, where it has them. */
static const char *workload_name(const struct dl_run_rows *r, int row) {
    const char *cell = dl_run_cell(r, row, DL_RUN_WORKLOAD);
    return strchr(cell, ':') != NULL ? cell : r->rows[row].workload->name;
}

static bool is_of(const struct dl_run_rows *r, int row, const char *system, const char *framework) {
    return r->rows[row].why == NULL && strcmp(dl_run_cell(r, row, DL_RUN_SYSTEM), system) == 0 &&
           strcmp(dl_run_cell(r, row, DL_RUN_FRAMEWORK), framework) == 0;
}

/* false: the run cannot be predicted. */
static bool measure(const struct dl_run_rows *r, int row, struct dl_arena *arena,
                    struct dl_measured_run *out) {
    const struct dl_run_row *run = &r->rows[row];
    struct dl_prediction p;
    struct dl_err refused;
    if (dl_predict(run->system, run->workload, run->framework, &run->plan, NULL, arena, &p,
                   &refused) != DL_OK)
        return false;
    const double ratio = run->throughput ? p.throughput_samples_per_s / run->measured
                                         : run->measured / p.iteration_s;
    *out = (struct dl_measured_run){
        .log_ratio = log(ratio),
        .what = dl_interval_case_of(run->system, run->workload, run->framework, &run->plan, &p),
        .workload = workload_name(r, row),
    };
    return true;
}

static enum dl_code attach(const struct dl_run_rows *r, const struct dl_framework **framework,
                           const char *system, struct dl_arena *arena, size_t *used,
                           struct dl_err *err) {
    const size_t room = (size_t)r->csv->row_count + 1;
    struct dl_measured_run *runs = dl_arena_alloc(arena, room, sizeof *runs);
    struct dl_framework *own = dl_arena_alloc(arena, 1, sizeof *own);
    size_t count = 0;
    if (runs == NULL || own == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < r->csv->row_count; i++) {
        if (is_of(r, i, system, (*framework)->name) && measure(r, i, arena, &runs[count])) count++;
    }
    *used += count;
    if (count == 0) return DL_OK;
    *own = **framework;
    DL_TRY(dl_posterior_make((*framework)->intervals, runs, count, arena, &own->measured, err));
    *framework = own;
    return DL_OK;
}

static enum dl_code load(struct dl_context *context, const struct dl_data *data, const char *path,
                         struct dl_inputs *inputs, struct dl_err *err) {
    struct dl_csv *csv = dl_arena_alloc(context->arena, 1, sizeof *csv);
    struct dl_run_rows r;
    size_t used = 0;
    if (csv == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (data->intervals == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--measured: no intervals.json in the data directories");
    DL_TRY(dl_data_csv(data, path, context->arena, csv, err));
    DL_TRY(dl_run_rows_read(data, csv, context->arena, &r, err));
    for (int i = 0; i < inputs->framework_count; i++)
        DL_TRY(attach(&r, &inputs->frameworks[i], inputs->system_name, context->arena, &used, err));
    if (used == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--measured: %s has no run that can be predicted on system %s with %s", path,
                       inputs->system_name,
                       inputs->framework_count == 1 ? inputs->frameworks[0]->name
                                                    : "one of these frameworks");
    context->note(context, "corrected by %zu of the %d runs in %s", used, csv->row_count, path);
    return DL_OK;
}

enum dl_code dl_measured_load(struct dl_context *context, const struct dl_data *data,
                              const char *path, struct dl_inputs *inputs, struct dl_err *err) {
    const struct dl_attachment *sent = dl_data_attachment(data, path);
    const enum dl_code code = load(context, data, path, inputs, err);
    if (code != DL_ERR_USAGE && code != DL_ERR_INPUT) return code;
    if (sent == NULL || !sent->if_it_fits) return code;
    context->note(context, "without measured runs: %s", err->message);
    *err = (struct dl_err){0};
    return DL_OK;
}
