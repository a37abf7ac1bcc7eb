/* runs.c - measured runs to plans. What a row does not say stays at the default of predict; nothing is guessed from notes. */
#include "predict/runs.h"

#include <string.h>

enum { SYSTEM, FRAMEWORK, WORKLOAD };

enum { TEXTS = 10, NUMBERS = 9 };
static const char *const text_columns[TEXTS] = {
    "id", "source", "system", "framework", "strategy", "backend", "workload", "input", "precision", "optimizer",
};
static const char *const number_columns[NUMBERS] = {
    "nodes", "devices_per_node", "batch_per_device", "global_batch", "dp", "tp", "pp", "micro_batch", "value",
};

bool dl_runs_header(const struct dl_csv *csv) {
    return dl_csv_column(csv, "metric") >= 0 && dl_csv_column(csv, "workload") >= 0 && dl_csv_column(csv, "value") >= 0;
}

static const char *cell(const struct dl_csv *csv, int row, int column) {
    return column < 0 || csv->rows[row][column][0] == 0 ? NULL : csv->rows[row][column];
}

static enum dl_code read_row(const struct dl_csv *csv, int row, const int *texts, const int *numbers, int metric,
                             struct dl_run *run, struct dl_err *err) {
    const char **const text_members[TEXTS] = {&run->id, &run->source, &run->system, &run->framework, &run->strategy,
                                              &run->backend, &run->workload, &run->input, &run->precision, &run->optimizer};
    double *const number_members[NUMBERS] = {&run->nodes, &run->devices_per_node, &run->batch_per_device_samples,
                                             &run->global_batch_samples, &run->dp, &run->tp, &run->pp,
                                             &run->micro_batch_samples, &run->value};
    run->file = csv->name;
    run->line = csv->row_lines[row];
    for (int i = 0; i < TEXTS; i++) *text_members[i] = cell(csv, row, texts[i]);
    for (int i = 0; i < NUMBERS; i++) {
        *number_members[i] = NAN;
        if (numbers[i] < 0) continue;
        DL_TRY(dl_csv_number(csv, row, numbers[i], number_members[i], err));
        if (dl_known(*number_members[i]) && !(*number_members[i] > 0)) {
            return dl_fail_at(err, csv->name, run->line, 0, number_columns[i], "expected a number above 0, got %g",
                              *number_members[i]);
        }
    }
    const char *kind = csv->rows[row][metric];
    run->throughput = strcmp(kind, "throughput") == 0;
    if (!run->throughput && strcmp(kind, "iteration") != 0) {
        return dl_fail_at(err, csv->name, run->line, 0, "metric", "expected throughput or iteration, got \"%s\"", kind);
    }
    if (!dl_known(run->value)) return dl_fail_at(err, csv->name, run->line, 0, "value", "expected the measured value");
    return DL_OK;
}

enum dl_code dl_runs_read(const struct dl_csv *csv, struct dl_arena *arena, struct dl_run **out, int *count, struct dl_err *err) {
    static const char *const required[] = {"system", "framework", "workload", "nodes", "devices_per_node", "metric", "value", NULL};
    int texts[TEXTS], numbers[NUMBERS];
    for (int i = 0; required[i] != NULL; i++) {
        if (dl_csv_column(csv, required[i]) < 0) {
            return dl_fail_at(err, csv->name, 1, 0, required[i], "expected this column in a table of runs");
        }
    }
    for (int i = 0; i < TEXTS; i++) texts[i] = dl_csv_column(csv, text_columns[i]);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = dl_csv_column(csv, number_columns[i]);
    struct dl_run *runs = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *runs);
    if (runs == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const int metric = dl_csv_column(csv, "metric");
    for (int r = 0; r < csv->row_count; r++) DL_TRY(read_row(csv, r, texts, numbers, metric, &runs[r], err));
    *out = runs;
    *count = csv->row_count;
    return DL_OK;
}

static bool same(const char *a, const char *b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

static enum dl_code load_workload(struct dl_shelf *shelf, const char *name, const char *input, const void **out,
                                  struct dl_err *err) {
    struct dl_data data = shelf->data;
    const struct dl_workload *workload = NULL;
    if (input != NULL) { /* the row's own input size, after what the user set */
        data.overrides = dl_arena_alloc(shelf->arena, (size_t)data.override_count + 1, sizeof *data.overrides);
        if (data.overrides == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        for (int i = 0; i < shelf->data.override_count; i++) data.overrides[i] = shelf->data.overrides[i];
        data.overrides[data.override_count++] = (struct dl_override){.key = "input", .value = input};
    }
    DL_TRY(dl_data_workload(&data, name, shelf->arena, &workload, err));
    if (input != NULL) {
        for (int i = 0; i < shelf->data.override_count; i++) shelf->data.overrides[i].used |= data.overrides[i].used;
        if (!data.overrides[data.override_count - 1].used) {
            return dl_fail(err, DL_ERR_USAGE, "workload %s has no input that \"%s\" could set", name, input);
        }
    }
    *out = workload;
    return DL_OK;
}

static enum dl_code load(struct dl_shelf *shelf, int kind, const char *name, const char *input, const void **out,
                         struct dl_err *err) {
    const struct dl_system *system = NULL;
    const struct dl_framework *framework = NULL;
    enum dl_code code;
    switch (kind) {
    case SYSTEM:
        code = dl_data_system(&shelf->data, name, shelf->arena, &system, err);
        *out = system;
        return code;
    case FRAMEWORK:
        code = dl_data_framework(&shelf->data, name, shelf->arena, &framework, err);
        *out = framework;
        return code;
    default: return load_workload(shelf, name, input, out, err);
    }
}

/* Failures are kept too: a name that is unknown is looked up once. */
static enum dl_code take(struct dl_shelf *shelf, int kind, const char *name, const char *input, const void **out,
                         struct dl_err *err) {
    for (int i = 0; i < shelf->entry_count; i++) {
        const struct dl_shelf_entry *e = &shelf->entries[i];
        if (e->kind != kind || !same(e->name, name) || !same(e->input, input)) continue;
        if (e->loaded == NULL) *err = e->err;
        *out = e->loaded;
        return e->loaded == NULL ? e->err.code : DL_OK;
    }
    if (shelf->entry_count == shelf->entry_capacity) {
        const int capacity = shelf->entry_capacity * 2 + 32;
        struct dl_shelf_entry *grown = dl_arena_alloc(shelf->arena, (size_t)capacity, sizeof *grown);
        if (grown == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        if (shelf->entry_count > 0) memcpy(grown, shelf->entries, (size_t)shelf->entry_count * sizeof *grown);
        shelf->entries = grown;
        shelf->entry_capacity = capacity;
    }
    struct dl_shelf_entry *e = &shelf->entries[shelf->entry_count++];
    *e = (struct dl_shelf_entry){.kind = kind, .name = name, .input = input};
    const enum dl_code code = load(shelf, kind, name, input, &e->loaded, &e->err);
    if (code != DL_OK) {
        e->loaded = NULL;
        e->err.code = code;
        *err = e->err;
    }
    *out = e->loaded;
    return code;
}

enum dl_code dl_shelf_system(struct dl_shelf *shelf, const char *name, const struct dl_system **out, struct dl_err *err) {
    const void *loaded = NULL;
    DL_TRY(take(shelf, SYSTEM, name, NULL, &loaded, err));
    *out = loaded;
    return DL_OK;
}

static int find(const char *const *names, const char *word) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) return i;
    }
    return -1;
}

static int64_t whole(double value) { return dl_known(value) && value < 1e15 ? (int64_t)value : 0; }

/* The column backend: a collective library, where tensorflow-ps keeps variables, or nothing that changes the plan. */
static enum dl_code read_backend(const char *backend, struct dl_plan *plan, struct dl_err *err) {
    static const char *const libraries[] = {"nccl", "mpi", "gloo", "grpc", "mlsl", NULL};
    static const struct { const char *word, *placement; } words[] = {
        {"parameter_server (cpu)", "cpu"}, {"parameter_server (gpu)", "gpu"}, {"parameter_server", NULL},
        {"replicated", NULL}, {"distributed_replicated", NULL}, {"independent", NULL},
    };
    if (backend == NULL) return DL_OK;
    const int library = find(libraries, backend);
    if (library >= 0) {
        plan->library = libraries[library];
        return DL_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, backend) != 0) continue;
        plan->variable_placement = words[i].placement;
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_USAGE, "backend \"%s\" is unknown", backend);
}

static enum dl_code read_plan(const struct dl_run *run, struct dl_plan *plan, struct dl_err *err) {
    *plan = (struct dl_plan){.precision = DL_FP32, .optimizer = DL_MOMENTUM, .synthetic_input = true};
    plan->strategy = dl_strategy_find(run->strategy == NULL ? "data" : run->strategy);
    if (plan->strategy == NULL) return dl_fail(err, DL_ERR_USAGE, "strategy \"%s\" is unknown", run->strategy);
    const int precision = run->precision == NULL ? (int)DL_FP32 : find(dl_precision_names, run->precision);
    if (precision < 0) return dl_fail(err, DL_ERR_USAGE, "precision \"%s\" is unknown", run->precision);
    const int optimizer = run->optimizer == NULL ? (int)DL_MOMENTUM : find(dl_optimizer_names, run->optimizer);
    if (optimizer < 0) return dl_fail(err, DL_ERR_USAGE, "optimizer \"%s\" is unknown", run->optimizer);
    plan->precision = (enum dl_precision)precision;
    plan->optimizer = (enum dl_optimizer)optimizer;
    DL_TRY(read_backend(run->backend, plan, err));
    plan->nodes = whole(run->nodes);
    plan->devices_per_node = whole(run->devices_per_node);
    plan->dp = whole(run->dp);
    plan->tp = whole(run->tp);
    plan->pp = whole(run->pp);
    if (dl_known(run->batch_per_device_samples)) plan->batch_per_device_samples = run->batch_per_device_samples;
    if (dl_known(run->global_batch_samples)) plan->global_batch_samples = run->global_batch_samples;
    if (dl_known(run->micro_batch_samples)) plan->micro_batch_samples = run->micro_batch_samples;
    if (plan->nodes < 1 || plan->devices_per_node < 1) {
        return dl_fail(err, DL_ERR_USAGE, "the number of nodes or of devices per node is not given");
    }
    if (plan->batch_per_device_samples <= 0 && plan->global_batch_samples <= 0) {
        return dl_fail(err, DL_ERR_USAGE, "no batch size is given");
    }
    return DL_OK;
}

enum dl_code dl_run_case(struct dl_shelf *shelf, const struct dl_run *run, struct dl_run_case *out, struct dl_err *err) {
    const void *system = NULL, *framework = NULL, *workload = NULL;
    if (run->system == NULL || run->framework == NULL || run->workload == NULL) {
        return dl_fail(err, DL_ERR_USAGE, "no system, framework or workload is given");
    }
    DL_TRY(read_plan(run, &out->plan, err));
    if (!out->plan.strategy->available) { /* said before a framework that only such plans use is missed */
        return dl_fail(err, DL_ERR_USAGE, "strategy %s is not in this version", out->plan.strategy->name);
    }
    DL_TRY(take(shelf, FRAMEWORK, run->framework, NULL, &framework, err));
    DL_TRY(take(shelf, SYSTEM, run->system, NULL, &system, err));
    DL_TRY(take(shelf, WORKLOAD, run->workload, run->input, &workload, err));
    out->system = system;
    out->framework = framework;
    out->workload = workload;
    return dl_plan_complete(out->system, out->workload, out->framework, &out->plan, err);
}

enum dl_code dl_run_predict(const struct dl_run_case *c, double compute_scale, struct dl_arena *arena, struct dl_prediction *out,
                            struct dl_err *err) {
    const struct dl_predict_options options = {.compute_scale = compute_scale};
    return dl_predict(c->system, c->workload, c->framework, &c->plan, &options, arena, out, err);
}
