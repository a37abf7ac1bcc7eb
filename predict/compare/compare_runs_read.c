/* compare_runs_read.c - each row of a table of runs becomes a plan on a system, or the reason why
 * not. */
#include <math.h>
#include <string.h>

#include "model/core/synonym.h"
#include "model/plan/plan_defaults.h"
#include "model/core/csv_field.h"
#include "model/network/collective.h"
#include "model/framework/layer_times.h"
#include "model/framework/release.h"
#include "model/framework/shared_host.h"
#include "model/engine/strategies/strategy.h"
#include "predict/compare/compare_runs.h"
#include "predict/compare/compare_runs_files.h"
#include "predict/compare/row_system.h"
#include "predict/compare/run_rates.h"
#include "predict/options/input_options.h"

#define COLUMN(name, kind, need, text)                                                             \
    { .key = name, .type = kind, .required = need, .help = text }
#define TEXT(name, need, text) COLUMN(name, DL_FIELD_STRING, need, text)
#define COUNT(name, need, text)                                                                    \
    {                                                                                              \
        .key = name, .type = DL_FIELD_INTEGER, .required = need, DL_RANGE(1, 1e9, DL_UNIT_COUNT),  \
        .help = text                                                                               \
    }
#define NUMBER(name, need, text)                                                                   \
    {                                                                                              \
        .key = name, .type = DL_FIELD_NUMBER, .required = need,                                    \
        DL_RANGE(1e-9, 1e15, DL_UNIT_NONE), .help = text                                           \
    }
static const struct dl_field columns[DL_RUN_COLUMNS + 1] = {
    [DL_RUN_ID] = TEXT("id", true, "name of the row, once in a table"),
    [DL_RUN_SOURCE] = TEXT("source", true, "publication; errors are summarized by it"),
    [DL_RUN_SYSTEM] = TEXT("system", true, "file of data/systems"),
    [DL_RUN_FRAMEWORK] = TEXT("framework", true, "file of data/frameworks"),
    [DL_RUN_FRAMEWORK_VERSION] =
        TEXT("framework_version", false,
             "version or container of the framework; selects its release (`versions` in "
             "data/frameworks); empty: the usual one of the GPU's time (`run_releases`)"),
    [DL_RUN_PP_FIX] =
        TEXT("pp_fix", false,
             "nanotron: True after the repair of its pipelines in December 2024, else False; "
             "selects a release where framework_version is empty"),
    [DL_RUN_STRATEGY] =
        TEXT("strategy", false,
             "a row of `list strategies`; empty: the framework's own, where tp, pp, "
             "cp and ep that are empty are 1"),
    [DL_RUN_BACKEND] = TEXT("backend", false,
                            "collective library (mpi, nccl, gloo), or where a parameter server "
                            "keeps its variables (cpu, gpu)"),
    [DL_RUN_WORKLOAD] = TEXT("workload", true, "file of data/workloads, with its parameters"),
    [DL_RUN_INPUT] = TEXT("input", false,
                          "input size (224x224, seq128), or where samples come from (real, "
                          "synthetic)"),
    [DL_RUN_LAYOUT] = TEXT("layout", false,
                           "order of activations in memory, nchw or nhwc, if the source states it"),
    [DL_RUN_PRECISION] = TEXT("precision", false, "as --precision; empty: fp32"),
    [DL_RUN_OPTIMIZER] = TEXT("optimizer", false, "as --optimizer; empty: the workload's"),
    [DL_RUN_NODES] = COUNT("nodes", true, "nodes of the job"),
    [DL_RUN_DEVICES_PER_NODE] = COUNT("devices_per_node", true, "devices used on each node"),
    [DL_RUN_BATCH_PER_DEVICE] = NUMBER("batch_per_device", false, "samples"),
    [DL_RUN_GLOBAL_BATCH] =
        NUMBER("global_batch", false, "samples; used where batch_per_device is empty"),
    [DL_RUN_DATA] = TEXT("data", false, "where samples come from: synthetic or real"),
    [DL_RUN_METRIC] = TEXT("metric", true, "throughput (of the whole job) or iteration"),
    [DL_RUN_VALUE] = NUMBER("value", true, "measured value, in `unit`"),
    [DL_RUN_UNIT] = TEXT("unit", false, "samples/s of throughput; s, ms or us of iteration"),
    [DL_RUN_CORE_S] =
        NUMBER("core_s", false,
               "time of a fixed matrix multiplication next to the steps: the speed of the core"),
    [DL_RUN_POWER_LIMIT] =
        NUMBER("power_limit_w", false, "limit set on each device's power [W]; empty: none known"),
    [DL_RUN_NCCL_VERSION] =
        TEXT("nccl_version", false, "release of NCCL, as 2.3.7; empty: the system's"),
    [DL_RUN_NCCL_RINGS] = COUNT("nccl_rings", false,
                                "rings that NCCL_MIN_NRINGS asked for; empty: NCCL's own choice"),
    [DL_RUN_NODE_RATE] =
        NUMBER("allreduce_intra_node_gb_per_s", false,
               "bus rate of an all-reduce of 1 GiB inside a node [GB/s] that the run measured; "
               "below half of the predicted rate the run is skipped"),
    [DL_RUN_GATHER_RATE] =
        NUMBER("allgather_gb_per_s", false,
               "with pp_fix: bus rate of an all-gather of 1 GiB over all ranks [GB/s] that the run "
               "measured; below 0.7 of the predicted rate its ranks checked each other"),
    [DL_RUN_NOTES] = TEXT("notes", false, "remarks for people; never read"),
};

const struct dl_schema dl_run_row_schema = {
    .name = "dlmodel-runs",
    .summary = "columns of a table of measured training runs; others are kept and ignored",
    .fields = columns,
};

const char *dl_run_cell(const struct dl_run_rows *r, int row, enum dl_run_column column) {
    return r->columns[column] < 0 ? "" : r->csv->rows[row][r->columns[column]];
}

const char *dl_run_version(const struct dl_run_rows *r, int row) {
    const char *version = dl_run_cell(r, row, DL_RUN_FRAMEWORK_VERSION),
               *fix = dl_run_cell(r, row, DL_RUN_PP_FIX);
    return version[0] != '\0' || fix[0] == '\0' ? version
                                                : dl_arena_printf(r->arena, "pp_fix=%s", fix);
}

int64_t dl_run_devices(const struct dl_run_row *run) {
    return run->plan.nodes * run->plan.devices_per_node;
}

enum dl_code dl_run_number(const struct dl_run_rows *r, int row, enum dl_run_column column,
                           double *out, struct dl_err *err) {
    *out = NAN;
    if (r->columns[column] < 0) return DL_OK;
    return dl_csv_field(r->csv, row, r->columns[column], &columns[column], out, err);
}

/* Index of a word in a list; `fallback` when the cell is empty, -1 for another word. */
static int choice(const char *word, const char *const *choices, int fallback) {
    if (word[0] == 0) return fallback;
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], word) == 0) return i;
    }
    return -1;
}

/* "unknown precision "amp"; expected fp32, tf32, ..." */
static const char *unknown(const struct dl_run_rows *r, int row, enum dl_run_column column,
                           const char *const *choices) {
    const char *text = dl_arena_printf(r->arena, "unknown %s \"%s\"; expected", columns[column].key,
                                       dl_run_cell(r, row, column));
    for (int i = 0; choices[i] != NULL; i++) {
        text = dl_arena_printf(r->arena, "%s%s %s", text, i > 0 ? "," : "", choices[i]);
    }
    return text;
}

/* A cell that is empty (0) or a count. */
static enum dl_code count(const struct dl_run_rows *r, int row, enum dl_run_column column,
                          int64_t *out, struct dl_err *err) {
    double value;
    DL_TRY(dl_run_number(r, row, column, &value, err));
    *out = dl_known(value) ? (int64_t)value : 0;
    return DL_OK;
}

/* A cell that is empty (0) or a number above 0. */
static enum dl_code positive(const struct dl_run_rows *r, int row, enum dl_run_column column,
                             double *out, struct dl_err *err) {
    DL_TRY(dl_run_number(r, row, column, out, err));
    if (!dl_known(*out)) *out = 0;
    return DL_OK;
}

static enum dl_code read_counts(const struct dl_run_rows *r, int row, struct dl_run_row *run,
                                struct dl_err *err) {
    struct dl_plan *plan = &run->plan;
    double global;
    DL_TRY(count(r, row, DL_RUN_NODES, &plan->nodes, err));
    DL_TRY(count(r, row, DL_RUN_DEVICES_PER_NODE, &plan->devices_per_node, err));
    DL_TRY(positive(r, row, DL_RUN_BATCH_PER_DEVICE, &plan->batch_per_device_samples, err));
    DL_TRY(positive(r, row, DL_RUN_GLOBAL_BATCH, &global, err));
    DL_TRY(positive(r, row, DL_RUN_VALUE, &run->measured, err));
    plan->global_batch_samples = plan->batch_per_device_samples > 0 ? 0 : global;
    run->global_batch_samples = global > 0 ? global
                                           : plan->batch_per_device_samples *
                                                 (double)(plan->nodes * plan->devices_per_node);
    if (plan->nodes == 0 || plan->devices_per_node == 0)
        run->why = "nodes or devices_per_node is not given";
    else if (plan->batch_per_device_samples <= 0 && global <= 0)
        run->why = "no batch size is given";
    if (run->measured <= 0) {
        run->measured = NAN;
        run->why = "no measured value";
    }
    return DL_OK;
}

/* Times of its layers that a profiler measured; NULL: none. */
static const struct dl_layer_times *layers_for(const struct dl_data *data,
                                               const struct dl_run_row *run) {
    for (int i = 0; i < data->layer_times_count; i++) {
        const struct dl_layer_times *t = data->layer_times[i];
        const bool fits = dl_layer_times_fit(t, run->workload, run->framework, run->system->device,
                                             run->plan.precision);
        if (fits && dl_layer_times_known(t, run->workload) > 0) return t;
    }
    return NULL;
}

/* Values in seconds or samples per second, whatever the table's unit is; NULL, or why the row
 * cannot be used. */
static const char *convert_unit(const struct dl_run_rows *r, int row, struct dl_run_row *run) {
    static const struct {
        const char *name;
        bool throughput;
        double factor;
    } units[] = {
        {"", true, 1},       {"samples/s", true, 1},   {"images/s", true, 1},
        {"img/s", true, 1},  {"sequences/s", true, 1}, {"sentences/s", true, 1},
        {"", false, 1},      {"s", false, 1},          {"ms", false, 1e-3},
        {"us", false, 1e-6},
    };
    const char *unit = r->columns[DL_RUN_UNIT] < 0 ? "" : dl_run_cell(r, row, DL_RUN_UNIT);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].throughput != run->throughput || strcmp(units[i].name, unit) != 0) continue;
        run->unit_ratio = units[i].factor;
        run->measured *= run->unit_ratio;
        return NULL;
    }
    return dl_arena_printf(r->arena, "unit \"%.40s\" of %s: expected %s", unit,
                           run->throughput ? "throughput" : "iteration",
                           run->throughput ? "samples/s" : "s, ms or us");
}

/* Strategy and what it runs on; NULL, or why the row cannot be predicted. */
static const char *read_strategy(const struct dl_run_rows *r, int row, struct dl_plan *plan) {
    const char *strategy = dl_run_cell(r, row, DL_RUN_STRATEGY),
               *backend = dl_run_cell(r, row, DL_RUN_BACKEND);
    static const enum dl_library backends[] = {DL_LIB_MPI, DL_LIB_NCCL, DL_LIB_GLOO};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backend, dl_library_names[backends[i]]) == 0) plan->library = backend;
    }
    plan->parameter_servers.variable_placement = strstr(backend, "gpu") != NULL ? "gpu" : "cpu";
    if (strategy[0] == 0) return NULL; /* complete_strategy */
    plan->strategy = dl_strategy_find(strategy);
    if (plan->strategy == NULL)
        return dl_arena_printf(r->arena,
                               "unknown strategy \"%s\"; 'dlmodel list strategies' shows the names",
                               strategy);
    return plan->strategy->predict != NULL
               ? NULL
               : dl_arena_printf(r->arena, "strategy %s is not in this version",
                                 plan->strategy->name);
}

/* Metric and unit; NULL, or why the value cannot be used. */
static const char *read_metric(const struct dl_run_rows *r, int row, struct dl_run_row *run) {
    const char *metric = dl_run_cell(r, row, DL_RUN_METRIC);
    run->throughput = strcmp(metric, "iteration") != 0;
    if (run->throughput && strcmp(metric, "throughput") != 0)
        return "metric is neither throughput nor iteration";
    return convert_unit(r, row, run);
}

/* Precision and optimizer, `*optimizer` DL_OPTIMIZERS where none is given; NULL, or what is wrong.
 */
static const char *read_choices(const struct dl_run_rows *r, int row, struct dl_plan *plan,
                                int *optimizer) {
    const int precision =
        choice(dl_run_cell(r, row, DL_RUN_PRECISION), dl_precision_names, DL_FP32);
    *optimizer = choice(dl_run_cell(r, row, DL_RUN_OPTIMIZER), dl_optimizer_names, DL_OPTIMIZERS);
    if (*optimizer < 0) return unknown(r, row, DL_RUN_OPTIMIZER, dl_optimizer_names);
    if (precision < 0) return unknown(r, row, DL_RUN_PRECISION, dl_precision_names);
    plan->precision = (enum dl_precision)precision;
    plan->optimizer = (enum dl_optimizer) * optimizer;
    return NULL;
}

/* The ranks of a row decide: tensor parallelism with replicas is data+tensor, experts over ranks
 * make 3d expert. A row without a strategy fills no node. */
static void complete_strategy(struct dl_run_row *run) {
    struct dl_plan *plan = &run->plan;
    if (plan->strategy == NULL && plan->tp <= 0 && plan->dp <= 0) plan->tp = 1;
    if (plan->strategy != NULL && strcmp(plan->strategy->name, "tensor") == 0 && plan->dp > 1)
        plan->strategy = dl_strategy_find("data+tensor");
    dl_plan_complete_strategy(run->workload, run->framework, plan);
}

/* `data` decides; in older tables `input` is "real". DL_ERR_INPUT for another word. */
static enum dl_code read_data(const struct dl_run_rows *r, int row, struct dl_plan *plan,
                              struct dl_err *err) {
    const char *data = dl_run_cell(r, row, DL_RUN_DATA);
    const bool real = strcmp(data, "real") == 0;
    if (data[0] == 0)
        plan->input.synthetic = strcmp(dl_run_cell(r, row, DL_RUN_INPUT), "real") != 0;
    else if (!real && strcmp(data, "synthetic") != 0)
        return dl_csv_fault(r->csv, row, r->columns[DL_RUN_DATA], err,
                            "expected synthetic or real, got \"%.60s\"", data);
    else
        plan->input.synthetic = !real;
    return DL_OK;
}

/* A node has so many devices; the cores of one are shared by any number of tasks. */
static enum dl_code check_node(const struct dl_run_rows *r, int row, const struct dl_run_row *run,
                               struct dl_err *err) {
    const struct dl_system *system = run->system;
    if (system->device->kind != DL_DEVICE_GPU ||
        run->plan.devices_per_node <= system->devices_per_node)
        return DL_OK;
    return dl_csv_fault(r->csv, row, r->columns[DL_RUN_DEVICES_PER_NODE], err,
                        "expected at most the %lld devices of a node of %s, got \"%.60s\"",
                        (long long)system->devices_per_node, system->name,
                        dl_run_cell(r, row, DL_RUN_DEVICES_PER_NODE));
}

/* Of several reasons, one is reported: strategy before choices, metric and counts. */
static enum dl_code read_run(struct dl_run_rows *r, int row, struct dl_run_row *run,
                             struct dl_err *err) {
    struct dl_plan *plan = &run->plan;
    int optimizer = DL_OPTIMIZERS;
    DL_TRY(read_data(r, row, plan, err));
    DL_TRY(read_counts(r, row, run, err));
    const char *metric = read_metric(r, row, run),
               *choices = read_choices(r, row, plan, &optimizer),
               *strategy = read_strategy(r, row, plan);
    run->why = strategy != NULL  ? strategy
               : choices != NULL ? choices
               : metric != NULL  ? metric
                                 : run->why;
    DL_TRY(dl_run_plan_read(r, row, plan, err));
    if (plan->shard_group == 0 && plan->devices_per_node > 1 &&
        dl_name_shards_in_nodes(dl_run_cell(r, row, DL_RUN_FRAMEWORK)))
        plan->shard_group = plan->devices_per_node;
    /* a reason without a text does not count */
    if (run->why != NULL) return DL_OK;
    struct dl_err inner = {0};
    const enum dl_code code = dl_run_load_files(r, row, run, &inner);
    if (code == DL_ERR_USAGE) run->why = dl_arena_strdup(r->arena, inner.message);
    if (code != DL_OK && code != DL_ERR_USAGE) {
        *err = inner;
        return code;
    }
    if (run->why != NULL) return DL_OK;
    complete_strategy(run);
    DL_TRY(check_node(r, row, run, err));
    DL_TRY(dl_run_links(r, row, run, err));
    plan->measured.layer_times = layers_for(r->data, run);
    if (optimizer == DL_OPTIMIZERS) plan->optimizer = dl_default_optimizer(run->workload);
    return dl_run_plan_dataset(r, run->workload, plan, err);
}

/* The time of one matrix multiplication during the steps of the run / (during those of the profile
 * x the predicted cost of sharing the host). NAN where one of them is not known. */
static enum dl_code read_core_ratio(const struct dl_run_rows *r, int row, struct dl_run_row *run,
                                    struct dl_err *err) {
    double core_s;
    DL_TRY(dl_run_number(r, row, DL_RUN_CORE_S, &core_s, err));
    run->core_ratio = NAN;
    if (run->why != NULL || run->plan.measured.layer_times == NULL || !(core_s > 0)) return DL_OK;
    const double profile_s =
        dl_layer_times_core_s(run->plan.measured.layer_times, run->plan.batch_per_device_samples);
    run->core_ratio =
        core_s / (profile_s * dl_shared_host(run->system, &run->plan).arithmetic_ratio);
    return DL_OK;
}

/* A fault in the row itself is the reason why it is skipped; other rows are compared. *faults
 * counts them, and `err` keeps the first. */
static enum dl_code read_row(struct dl_run_rows *r, int row, struct dl_run_row *run, int *faults,
                             struct dl_err *err) {
    struct dl_err fault = {.code = DL_OK};
    enum dl_code code = read_run(r, row, run, &fault);
    if (code == DL_OK) code = read_core_ratio(r, row, run, &fault);
    const bool skip = code == DL_ERR_INPUT && strcmp(fault.file, r->csv->name) == 0;
    if (code != DL_OK && (!skip || *faults == 0)) *err = fault;
    if (!skip) return code;
    if (run->measured <= 0) run->measured = NAN; /* not read */
    run->why = dl_arena_printf(r->arena, "%s:%d:%d: error: %s: %s", fault.file, fault.line,
                               fault.col, fault.key, fault.message);
    (*faults)++;
    return DL_OK;
}

static enum dl_code find_columns(struct dl_run_rows *r, struct dl_err *err) {
    const char *first = NULL, *missing = "";
    for (int c = 0; c < DL_RUN_COLUMNS && missing != NULL; c++) {
        r->columns[c] = dl_csv_column(r->csv, columns[c].key);
        if (r->columns[c] >= 0 || !columns[c].required) continue;
        missing =
            dl_arena_printf(r->arena, "%s%s%s", missing, first != NULL ? ", " : "", columns[c].key);
        if (first == NULL) first = columns[c].key;
    }
    if (first == NULL) return dl_run_plan_find(r, err);
    const char *near = dl_csv_misspelt(r->csv, first);
    return dl_fail_at(err, r->csv->name, 1, 1, first,
                      "a table of runs also needs the columns %s%s%.60s%s; dlmodel schema runs "
                      "--template prints a header",
                      missing != NULL ? missing : first, near != NULL ? " (misspelt as '" : "",
                      near != NULL ? near : "", near != NULL ? "'?)" : "");
}

enum dl_code dl_run_rows_read(const struct dl_data *data, const struct dl_csv *csv,
                              struct dl_arena *arena, struct dl_run_rows *out, struct dl_err *err) {
    const size_t count = (size_t)csv->row_count;
    struct dl_err first = {.code = DL_OK};
    *out = (struct dl_run_rows){.data = data, .csv = csv, .arena = arena};
    DL_TRY(find_columns(out, err));
    out->cache = dl_arena_alloc(arena, count * DL_RUN_NEW_FILES + 1, sizeof *out->cache);
    out->rows = dl_arena_alloc(arena, count, sizeof *out->rows);
    int faults = 0;
    for (int row = 0; row < csv->row_count; row++) {
        const enum dl_code code = read_row(out, row, &out->rows[row], &faults, &first);
        if (code != DL_OK) {
            *err = first;
            return code;
        }
    }
    if (faults > 0 && faults == csv->row_count) { /* nothing is left to compare */
        *err = first;
        return first.code;
    }
    dl_run_groups_make(out);
    return DL_OK;
}
