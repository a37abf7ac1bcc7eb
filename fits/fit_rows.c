/* fit_rows.c - see fit_rows.h. */
#include "fits/fit_rows.h"

#include <math.h>

#include "model/engine/correct.h"
#include "predict/compare/compare_runs.h"
#include "predict/compare/decisions.h"

/* Rows of one table that are wanted; their numbers in `rows` in `numbers`. */
static void part_of(const struct dl_fit_rows *f, int csv, const bool *wanted,
                    struct dl_arena *arena, struct dl_csv *out, size_t **numbers) {
    const struct dl_csv *all = &f->csvs[csv];
    const size_t room = (size_t)all->row_count + 1;
    const char *const **rows = dl_arena_alloc(arena, room, sizeof *rows);
    int *lines = dl_arena_alloc(arena, room, sizeof *lines);
    *numbers = dl_arena_alloc(arena, room, sizeof **numbers);
    int n = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct dl_fit_row *row = &f->rows[i];
        if (row->csv != csv || (wanted != NULL && !wanted[i]) || !dl_known(row->measured_s))
            continue;
        rows[n] = all->rows[row->csv_row];
        lines[n] = all->row_lines[row->csv_row];
        (*numbers)[n++] = i;
    }
    *out = *all;
    out->rows = rows;
    out->row_lines = lines;
    out->row_count = n;
}

static struct dl_fit_prediction taken_from(const struct dl_prediction *p) {
    return (struct dl_fit_prediction){
        .iteration_s = p->iteration_s,
        .low_s = p->iteration_low_s,
        .high_s = p->iteration_high_s,
        .overhead_frac = (p->overhead_s + p->bubble_s) / p->iteration_s,
        .waits_frac = dl_prediction_waits_s(p) / p->iteration_s,
        .exposed_frac = p->exposed_comm_s / p->iteration_s,
        .model_sigma_log = p->spread.model_sigma_log,
    };
}

static const struct dl_fit_prediction no_prediction = {.iteration_s = NAN,
                                                       .low_s = NAN,
                                                       .high_s = NAN,
                                                       .overhead_frac = NAN,
                                                       .waits_frac = NAN,
                                                       .exposed_frac = NAN,
                                                       .model_sigma_log = NAN};

static enum dl_code predict_one(const struct dl_run_row *run, struct dl_fit_prediction *out,
                                struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_prediction p;
    *out = no_prediction;
    if (run->why != NULL) return DL_OK;
    const enum dl_code code = dl_predict(&(struct dl_predict_request){.system = run->system,
                                                                      .workload = run->workload,
                                                                      .framework = run->framework,
                                                                      .plan = &run->plan,
                                                                      .arena = &arena},
                                         &p, err);
    if (code == DL_OK) *out = taken_from(&p);
    dl_arena_free(&arena);
    return code == DL_ERR_USAGE || code == DL_ERR_INPUT ? DL_OK : code;
}

static enum dl_code predict_all(const struct dl_fit_rows *f, const struct dl_data *data,
                                const bool *wanted, struct dl_arena *arena,
                                struct dl_fit_prediction *out, struct dl_err *err) {
    for (int c = 0; c < f->csv_count; c++) {
        struct dl_csv part;
        struct dl_run_rows r;
        size_t *numbers;
        part_of(f, c, wanted, arena, &part, &numbers);
        if (part.row_count == 0) continue;
        DL_TRY(dl_run_rows_read(data, &part, arena, &r, err));
        for (int i = 0; i < part.row_count; i++)
            DL_TRY(predict_one(&r.rows[i], &out[numbers[i]], err));
    }
    return DL_OK;
}

struct dl_interval_case dl_fit_case(const struct dl_fit_row *row,
                                    const struct dl_fit_prediction *p) {
    return (struct dl_interval_case){
        .framework = row->framework,
        .release = row->release,
        .kernels = row->kernels,
        .architecture = row->architecture,
        .system = row->system,
        .devices = row->devices,
        .precision = row->precision,
        .exposed_frac = dl_known(p->exposed_frac) ? p->exposed_frac : 0,
        .overhead_frac = dl_known(p->overhead_frac) ? p->overhead_frac : 0,
        .waits_frac = dl_known(p->waits_frac) ? p->waits_frac : 0,
        .model_sigma_log = p->model_sigma_log,
        .batch_per_device_samples = row->devices > 0 ? row->samples / (double)row->devices : 0,
        .parameters = row->parameters,
        .layers = row->layers,
        .release_assumed = row->release_assumed,
    };
}

/* Through `compare --anchor`, whose groups need every row of a part. */
static enum dl_code anchor_all(const struct dl_fit_rows *f, const struct dl_data *data,
                               const bool *wanted, struct dl_arena *arena,
                               struct dl_fit_prediction *out, struct dl_err *err) {
    for (int c = 0; c < f->csv_count; c++) {
        struct dl_csv part;
        struct dl_comparison compared = {.arena = arena};
        size_t *numbers;
        part_of(f, c, wanted, arena, &part, &numbers);
        if (part.row_count == 0) continue;
        DL_TRY(dl_compare_runs(data, &part, true, &compared, err));
        for (int i = 0; i < part.row_count; i++) {
            const struct dl_compared *row = &compared.rows[i];
            out[numbers[i]] = row->skipped ? no_prediction : taken_from(row->modelled.prediction);
        }
    }
    return DL_OK;
}

typedef enum dl_code predictor(const struct dl_fit_rows *, const struct dl_data *, const bool *,
                               struct dl_arena *, struct dl_fit_prediction *, struct dl_err *);

static enum dl_code with_values(const struct dl_fit_rows *f, const struct dl_fit_values *values,
                                const bool *wanted, predictor *predict,
                                struct dl_fit_prediction *out, struct dl_err *err) {
    const int count = values != NULL ? values->count : 0;
    struct dl_arena arena = {0};
    struct dl_data data = *f->data;
    const int given = data.override_count;
    data.overrides = dl_arena_alloc(&arena, (size_t)(given + count) + 1, sizeof *data.overrides);
    for (int i = 0; i < given; i++) data.overrides[i] = f->data->overrides[i];
    for (int i = 0; i < count; i++) {
        const char *text = dl_arena_printf(&arena, "%.17g", values->values[i]);
        data.overrides[data.override_count++] =
            (struct dl_override){.key = values->keys[i], .value = text};
    }
    const enum dl_code code = predict(f, &data, wanted, &arena, out, err);
    dl_arena_free(&arena);
    return code;
}

enum dl_code dl_fit_rows_predict(const struct dl_fit_rows *f, const struct dl_fit_values *values,
                                 const bool *wanted, struct dl_fit_prediction *out,
                                 struct dl_err *err) {
    return with_values(f, values, wanted, predict_all, out, err);
}

enum dl_code dl_fit_rows_anchored(const struct dl_fit_rows *f, const struct dl_fit_values *values,
                                  const bool *wanted, struct dl_fit_prediction *out,
                                  struct dl_err *err) {
    return with_values(f, values, wanted, anchor_all, out, err);
}

static struct dl_fit_row row_of(const struct dl_run_rows *r, int csv, int i) {
    const struct dl_run_row *run = &r->rows[i];
    struct dl_fit_row row = {
        .id = dl_run_cell(r, i, DL_RUN_ID),
        .source = dl_run_cell(r, i, DL_RUN_SOURCE),
        .system = dl_run_cell(r, i, DL_RUN_SYSTEM),
        .framework = dl_run_cell(r, i, DL_RUN_FRAMEWORK),
        .version = dl_run_cell(r, i, DL_RUN_FRAMEWORK_VERSION),
        .workload = dl_run_cell(r, i, DL_RUN_WORKLOAD),
        .precision = run->plan.precision,
        .devices = dl_run_devices(run),
        .throughput = run->throughput,
        .samples = run->global_batch_samples,
        .decision = dl_decision_keys(r, i),
        .measured_s = NAN,
        .csv = csv,
        .csv_row = i,
    };
    if (run->why != NULL) return row;
    row.device = run->system->device->name;
    row.kernels = dl_device_kernels_name(run->system->device);
    row.architecture = dl_device_architecture(run->system->device);
    row.release = run->framework->release;
    row.parameters = run->workload->parameters + run->workload->frozen_elements;
    row.layers = dl_workload_layers(run->workload);
    row.release_assumed = run->framework->loaded.release_assumed;
    row.measured_s = run->throughput ? run->global_batch_samples / run->measured : run->measured;
    return row;
}

enum dl_code dl_fit_rows_read(const struct dl_data *data, const struct dl_csv *csvs, int csv_count,
                              struct dl_arena *arena, struct dl_fit_rows *out, struct dl_err *err) {
    size_t room = 1;
    for (int c = 0; c < csv_count; c++) room += (size_t)csvs[c].row_count;
    *out = (struct dl_fit_rows){.data = data, .csvs = csvs, .csv_count = csv_count, .arena = arena};
    out->rows = dl_arena_alloc(arena, room, sizeof *out->rows);
    for (int c = 0; c < csv_count; c++) {
        struct dl_run_rows r;
        if (csvs[c].row_count == 0) continue;
        if (dl_csv_column(&csvs[c], "framework") < 0)
            return dl_fail(err, DL_ERR_USAGE, "%s is not a table of runs", csvs[c].name);
        DL_TRY(dl_run_rows_read(data, &csvs[c], arena, &r, err));
        for (int i = 0; i < csvs[c].row_count; i++) out->rows[out->count++] = row_of(&r, c, i);
    }
    return DL_OK;
}
