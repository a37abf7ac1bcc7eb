/* compare_runs.c - published training runs: each row becomes a plan, the plan a prediction. */
#include <math.h>
#include <string.h>

#include "model/parallel/strategy.h"
#include "predict/compare/compare.h"
#include "model/framework/layer_times.h"
#include "model/framework/shared_host.h"
#include "predict/compare/compare_cause.h"
#include "predict/inputs/inputs.h"

enum column {
    ID,
    SOURCE,
    SYSTEM,
    FRAMEWORK,
    STRATEGY,
    BACKEND,
    WORKLOAD,
    INPUT,
    PRECISION,
    OPTIMIZER,
    NODES,
    DEVICES_PER_NODE,
    BATCH_PER_DEVICE,
    GLOBAL_BATCH,
    DP,
    TP,
    PP,
    MICRO_BATCH,
    METRIC,
    VALUE,
    UNIT,
    NOTES,
    VERSIONS,
    CORE_S,
    COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "id",
    "source",
    "system",
    "framework",
    "strategy",
    "backend",
    "workload",
    "input",
    "precision",
    "optimizer",
    "nodes",
    "devices_per_node",
    "batch_per_device",
    "global_batch",
    "dp",
    "tp",
    "pp",
    "micro_batch",
    "metric",
    "value",
    "unit",
    "notes",
    "versions",
    "core_s",
};

struct loaded {
    const char *key;
    const void *object;
};

struct runs {
    const struct dl_data *data;
    const struct dl_csv *csv;
    int columns[COLUMNS];
    struct loaded *cache;
    int cache_count;
    struct dl_arena *arena;
};

struct run { /* one row, resolved */
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan plan;
    bool throughput; /* else iteration */
    double measured;
    double core_ratio; /* how much slower its core was than predicted; NAN: not measured */
    double global_batch_samples; /* of all devices together; 0: unknown */
    const char *why;             /* not predictable */
};

static const char *cell(const struct runs *r, int row, enum column column) {
    return r->columns[column] < 0 ? "" : r->csv->rows[row][r->columns[column]];
}

static const void *cached(const struct runs *r, const char *key) {
    for (int i = 0; i < r->cache_count; i++) {
        if (strcmp(r->cache[i].key, key) == 0) return r->cache[i].object;
    }
    return NULL;
}

/* At most four new objects a row: the cache has room for them. */
static void remember(struct runs *r, const char *key, const void *object) {
    r->cache[r->cache_count++] = (struct loaded){key, object};
}

static enum dl_code load_workload(struct runs *r, const char *name, const char *input,
                                  const struct dl_workload **out, struct dl_err *err) {
    const char *key = dl_arena_printf(r->arena, "workload %s %s", name, input);
    *out = cached(r, key);
    if (*out != NULL) return DL_OK;
    struct dl_data data = *r->data;
    const int given = data.override_count;
    data.training = true;
    data.overrides = dl_arena_alloc(r->arena, (size_t)given + 1, sizeof *data.overrides);
    if (key == NULL || data.overrides == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < given; i++) data.overrides[i] = r->data->overrides[i];
    if (input[0] != 0)
        data.overrides[data.override_count++] =
            (struct dl_override){.key = "input", .value = input};
    DL_TRY(dl_data_workload(&data, name, r->arena, out, err));
    for (int i = 0; i < given; i++) r->data->overrides[i].used |= data.overrides[i].used;
    if (input[0] != 0 && !data.overrides[given].used) {
        return dl_fail(err, DL_ERR_USAGE, "workload %s has no input \"%s\"", name, input);
    }
    remember(r, key, *out);
    return DL_OK;
}

/* The framework in the release that the run's source, notes and versions name. */
static enum dl_code load_framework(struct runs *r, int row, const struct dl_framework **out,
                                   const char **workload, struct dl_err *err) {
    struct dl_data data = *r->data;
    const struct dl_framework *plain;
    const char *name = cell(r, row, FRAMEWORK);
    const char *base = dl_arena_printf(r->arena, "framework %s", name);
    if (base == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    plain = cached(r, base);
    if (plain == NULL) {
        DL_TRY(dl_data_framework(&data, name, r->arena, &plain, err));
        remember(r, base, plain);
    }
    const char *text = dl_arena_printf(r->arena, "%s %s %s", cell(r, row, SOURCE),
                                       cell(r, row, NOTES), cell(r, row, VERSIONS));
    if (text == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const struct dl_framework_release *release =
        data.release != NULL ? dl_framework_release_find(plain, data.release)
                             : dl_framework_release_match(plain, text);
    *workload = dl_framework_workload(plain, release, cell(r, row, WORKLOAD));
    *out = plain;
    if (release == NULL) return DL_OK;
    const char *key = dl_arena_printf(r->arena, "framework %s release %s", name, release->name);
    if (key == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *out = cached(r, key);
    if (*out != NULL) return DL_OK;
    data.release = release->name;
    DL_TRY(dl_data_framework(&data, name, r->arena, out, err));
    remember(r, key, *out);
    return DL_OK;
}

/* "real" and "synthetic" say where the samples came from, not how large they are. */
static bool names_data(const char *input) {
    return strcmp(input, "real") == 0 || strcmp(input, "synthetic") == 0;
}

static enum dl_code load_all(struct runs *r, int row, struct run *run, struct dl_err *err) {
    const char *system = dl_arena_printf(r->arena, "system %s", cell(r, row, SYSTEM)),
               *workload = NULL;
    if (system == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    run->system = cached(r, system);
    if (run->system == NULL) {
        DL_TRY(dl_data_system(r->data, cell(r, row, SYSTEM), r->arena, &run->system, err));
        remember(r, system, run->system);
    }
    DL_TRY(load_framework(r, row, &run->framework, &workload, err));
    const char *input = cell(r, row, INPUT);
    return load_workload(r, workload, names_data(input) ? "" : input, &run->workload, err);
}

/* Index of a word in a list; `fallback` when the cell is empty, -1 when it is no such word. */
static int choice(const char *word, const char *const *choices, int fallback) {
    if (word[0] == 0) return fallback;
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], word) == 0) return i;
    }
    return -1;
}

/* "unknown precision "amp"; expected fp32, tf32, ..." */
static const char *unknown(const struct runs *r, int row, enum column column,
                           const char *const *choices) {
    const char *text = dl_arena_printf(r->arena, "unknown %s \"%s\"; expected",
                                       column_names[column], cell(r, row, column));
    for (int i = 0; text != NULL && choices[i] != NULL; i++) {
        text = dl_arena_printf(r->arena, "%s%s %s", text, i > 0 ? "," : "", choices[i]);
    }
    return text != NULL ? text : "out of memory";
}

static enum dl_code number(const struct runs *r, int row, enum column column, double *out,
                           struct dl_err *err) {
    *out = NAN;
    return r->columns[column] < 0 ? DL_OK
                                  : dl_csv_number(r->csv, row, r->columns[column], out, err);
}

/* A cell that is empty (0) or a whole number from 1 to 10^9. */
static enum dl_code count(const struct runs *r, int row, enum column column, int64_t *out,
                          struct dl_err *err) {
    double value;
    *out = 0;
    DL_TRY(number(r, row, column, &value, err));
    if (!dl_known(value)) return DL_OK;
    if (!(value >= 1 && value <= 1e9) || value != floor(value)) {
        return dl_csv_fault(r->csv, row, r->columns[column], err,
                            "expected a whole number from 1 to 1000000000, got \"%.60s\"",
                            cell(r, row, column));
    }
    *out = (int64_t)value;
    return DL_OK;
}

/* A cell that is empty (0) or a number above 0. */
static enum dl_code positive(const struct runs *r, int row, enum column column, double *out,
                             struct dl_err *err) {
    DL_TRY(number(r, row, column, out, err));
    if (!dl_known(*out))
        *out = 0;
    else if (*out <= 0) {
        return dl_csv_fault(r->csv, row, r->columns[column], err,
                            "expected a number above 0, got \"%.60s\"", cell(r, row, column));
    }
    return DL_OK;
}

static enum dl_code read_counts(const struct runs *r, int row, struct run *run,
                                struct dl_err *err) {
    struct dl_plan *plan = &run->plan;
    double global;
    DL_TRY(count(r, row, NODES, &plan->nodes, err));
    DL_TRY(count(r, row, DEVICES_PER_NODE, &plan->devices_per_node, err));
    DL_TRY(count(r, row, DP, &plan->dp, err));
    DL_TRY(count(r, row, TP, &plan->tp, err));
    DL_TRY(count(r, row, PP, &plan->pp, err));
    DL_TRY(positive(r, row, BATCH_PER_DEVICE, &plan->batch_per_device_samples, err));
    DL_TRY(positive(r, row, GLOBAL_BATCH, &global, err));
    DL_TRY(positive(r, row, MICRO_BATCH, &plan->micro_batch_samples, err));
    DL_TRY(positive(r, row, VALUE, &run->measured, err));
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
static const struct dl_layer_times *layers_for(const struct dl_data *data, const struct run *run) {
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
static const char *convert_unit(const struct runs *r, int row, struct run *run) {
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
    const char *unit = r->columns[UNIT] < 0 ? "" : cell(r, row, UNIT);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].throughput != run->throughput || strcmp(units[i].name, unit) != 0) continue;
        run->measured *= units[i].factor;
        return NULL;
    }
    return dl_arena_printf(r->arena, "unit \"%.40s\" of %s: expected %s", unit,
                           run->throughput ? "throughput" : "iteration",
                           run->throughput ? "samples/s" : "s, ms or us");
}

static enum dl_code read_run(struct runs *r, int row, struct run *run, struct dl_err *err) {
    memset(run, 0, sizeof *run);
    struct dl_plan *plan = &run->plan;
    const char *metric = cell(r, row, METRIC), *backend = cell(r, row, BACKEND),
               *strategy = cell(r, row, STRATEGY);
    const int precision = choice(cell(r, row, PRECISION), dl_precision_names, DL_FP32);
    const int optimizer = choice(cell(r, row, OPTIMIZER), dl_optimizer_names, DL_OPTIMIZERS);
    plan->strategy = dl_strategy_find(strategy[0] == 0 ? "data" : strategy);
    plan->synthetic_input = strcmp(cell(r, row, INPUT), "real") != 0;
    plan->recompute_open = true;
    if (strcmp(backend, "mpi") == 0 || strcmp(backend, "nccl") == 0 || strcmp(backend, "gloo") == 0)
        plan->library = backend;
    plan->variable_placement = strstr(backend, "gpu") != NULL ? "gpu" : "cpu";
    DL_TRY(read_counts(r, row, run, err));
    /* as its ranks say */
    if (strcmp(strategy, "tensor") == 0 && plan->dp > 1)
        plan->strategy = dl_strategy_find("data+tensor");
    run->throughput = strcmp(metric, "iteration") != 0;
    if (run->why == NULL) run->why = convert_unit(r, row, run);
    if (run->throughput && strcmp(metric, "throughput") != 0)
        run->why = "metric is neither throughput nor iteration";
    if (precision < 0) run->why = unknown(r, row, PRECISION, dl_precision_names);
    if (optimizer < 0) run->why = unknown(r, row, OPTIMIZER, dl_optimizer_names);
    if (plan->strategy == NULL)
        run->why = dl_arena_printf(
            r->arena, "unknown strategy \"%s\"; `dlmodel list strategies` shows those there are",
            strategy);
    else if (plan->strategy->predict == NULL) {
        run->why =
            dl_arena_printf(r->arena, "strategy %s is not in this version", plan->strategy->name);
    }
    if (run->why != NULL) return DL_OK;
    plan->precision = (enum dl_precision)precision;
    plan->optimizer = (enum dl_optimizer)optimizer;
    struct dl_err inner = {0};
    const enum dl_code code = load_all(r, row, run, &inner);
    if (code == DL_OK) plan->layer_times = layers_for(r->data, run);
    if (code == DL_OK && optimizer == DL_OPTIMIZERS)
        plan->optimizer = dl_default_optimizer(run->workload);
    if (code == DL_ERR_USAGE)
        run->why = dl_arena_strdup(r->arena, inner.message);
    else if (code != DL_OK) {
        *err = inner;
        return code;
    }
    return DL_OK;
}

/* The time of one product of matrices, beside the steps of the run / (beside those of the profile x
 * what sharing the host is predicted to cost). NAN where one of them is not known. */
static enum dl_code read_core_ratio(const struct runs *r, int row, struct run *run,
                                    struct dl_err *err) {
    double core_s;
    DL_TRY(number(r, row, CORE_S, &core_s, err));
    run->core_ratio = NAN;
    if (run->why != NULL || run->plan.layer_times == NULL || !(core_s > 0)) return DL_OK;
    const double profile_s =
        dl_layer_times_core_s(run->plan.layer_times, run->plan.batch_per_device_samples);
    run->core_ratio =
        core_s / (profile_s * dl_shared_host(run->system, &run->plan).arithmetic_ratio);
    return DL_OK;
}

static int64_t devices_of(const struct run *run) {
    return run->plan.nodes * run->plan.devices_per_node;
}

/* Equal within 1 %: batches are printed with rounding. */
static bool same_batch(double a, double b) {
    return a > 0 && b > 0 && fabs(a - b) <= 0.01 * fmax(a, b);
}

/* Same run but for the number of devices, of the same release where the data files tell releases
 * apart. Two ways to give more devices to a run: each gets the batch that each had (weak scaling),
 * or they share out the batch that there was (`whole`: strong scaling). */
static bool same_group(const struct runs *r, const struct run *all, bool whole, int a, int b) {
    static const enum column same[] = {SOURCE,   SYSTEM, FRAMEWORK,  STRATEGY,  BACKEND,
                                       WORKLOAD, INPUT,  PRECISION,  OPTIMIZER, METRIC,
                                       TP,       PP,     MICRO_BATCH};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (strcmp(cell(r, a, same[i]), cell(r, b, same[i])) != 0) return false;
    }
    if (all[a].framework != all[b].framework) return false;
    if (whole) return same_batch(all[a].global_batch_samples, all[b].global_batch_samples);
    return same_batch(all[a].plan.batch_per_device_samples, all[b].plan.batch_per_device_samples);
}

/* What a run belongs to: the runs of its batch per device, or else those of its global batch. */
struct group {
    bool whole;
    /* the first run with the fewest devices that can be predicted; -1: no runs with other device
     * counts */
    int anchor;
    double measured; /* of that run; the mean where it was measured several times */
};

static struct group group_with(const struct runs *r, const struct run *all, bool whole, int row) {
    struct group group = {.whole = whole, .anchor = -1};
    int64_t fewest = INT64_MAX, most = 0;
    int repeats = 0;
    for (int i = 0; i < r->csv->row_count; i++) {
        const int64_t devices = devices_of(&all[i]);
        if (all[i].why != NULL || !same_group(r, all, whole, i, row)) continue;
        if (devices < fewest) fewest = devices, group.anchor = i, group.measured = 0, repeats = 0;
        if (devices == fewest) group.measured += (all[i].measured - group.measured) / ++repeats;
        if (devices > most) most = devices;
    }
    if (most <= fewest) group.anchor = -1;
    return group;
}

static struct group group_of(const struct runs *r, const struct run *all, int row) {
    const struct group weak = group_with(r, all, false, row);
    return weak.anchor >= 0 ? weak : group_with(r, all, true, row);
}

static double predicted_value(const struct run *run, const struct dl_prediction *p) {
    return run->throughput ? p->throughput_samples_per_s : p->iteration_s;
}

static enum dl_code predict_run(const struct run *run, double compute_scale, struct dl_arena *arena,
                                struct dl_prediction *p, struct dl_err *err) {
    struct dl_plan plan = run->plan;
    plan.compute_scale = compute_scale;
    return dl_predict(run->system, run->workload, run->framework, &plan, NULL, arena, p, err);
}

/* The factor on all kernel times with which the prediction of the run is what was measured; NAN
 * when there is none. */
static enum dl_code anchor_scale(const struct run *run, double measured, double *scale_out,
                                 struct dl_err *err) {
    double scale = 1;
    for (int i = 0; i < 30; i++) {
        struct dl_arena arena = {0};
        struct dl_prediction p;
        const enum dl_code code = predict_run(run, scale, &arena, &p, err);
        dl_arena_free(&arena);
        DL_TRY(code);
        const double samples = p.iteration_s * p.throughput_samples_per_s;
        const double wanted_s = run->throughput ? samples / measured : measured;
        const double step = (wanted_s - p.iteration_s) / p.compute_s;
        if (fabs(wanted_s - p.iteration_s) < 1e-6 * wanted_s) {
            *scale_out = scale;
            return DL_OK;
        }
        scale = fmax(0.02, scale * (1 + step));
    }
    *scale_out = NAN; /* no compute time explains the measured value */
    return DL_OK;
}

/* What to know of the prediction, NULL: nothing. */
static const char *remark_of(const struct runs *r, const struct run *run) {
    static const double NOTICEABLE = 1.2;
    const struct dl_shared_host shared = dl_shared_host(run->system, &run->plan);
    if (shared.turns_ratio > 1) {
        return dl_arena_printf(
            r->arena, "oversubscribed %.3g times: %.0f devices take turns on a host for %.3g",
            shared.turns_ratio, shared.device_count, shared.device_count / shared.turns_ratio);
    }
    const double ratio = run->core_ratio;
    if (!dl_known(ratio) || (ratio < NOTICEABLE && ratio > 1 / NOTICEABLE)) return NULL;
    return dl_arena_printf(r->arena,
                           "its core was %.3g times %s than beside the profile of its layers (a "
                           "fixed product of matrices)",
                           ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "slower" : "faster");
}

static enum dl_code compare_row(struct runs *r, struct run *all, double *scales, int row,
                                bool anchor, struct dl_compared *out, struct dl_prediction *kept,
                                struct dl_err *err) {
    const struct run *run = &all[row];
    double scale = 0;
    if (anchor && run->why == NULL) {
        const struct group group = group_of(r, all, row);
        const int base = group.anchor;
        if (base < 0 || base == row) {
            out->skipped = true;
            out->why = "the anchor of its group, or alone in it";
            return DL_OK;
        }
        if (scales[base] == 0) DL_TRY(anchor_scale(&all[base], group.measured, &scales[base], err));
        scale = scales[base];
        if (!dl_known(scale)) {
            out->skipped = true;
            out->why = "the anchor of its group is faster than its predicted communication and "
                       "overhead alone";
            return DL_OK;
        }
    }
    struct dl_arena arena = {0};
    struct dl_prediction p;
    struct dl_err inner = {0};
    const enum dl_code code =
        run->why == NULL ? predict_run(run, scale, &arena, &p, &inner) : DL_OK;
    if (run->why != NULL || code == DL_ERR_USAGE || code == DL_ERR_INPUT) {
        out->skipped = true;
        out->why = run->why != NULL ? run->why : dl_arena_strdup(r->arena, inner.message);
    } else if (code == DL_OK) {
        const double samples = p.iteration_s * p.throughput_samples_per_s;
        out->samples_per_iteration = samples;
        out->predicted = predicted_value(run, &p);
        out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
        out->low = run->throughput ? samples / p.iteration_high_s : p.iteration_low_s;
        out->high = run->throughput ? samples / p.iteration_low_s : p.iteration_high_s;
        out->bottleneck = dl_bottleneck_names[p.bottleneck];
        out->remark = remark_of(r, run);
        *kept = p; /* its numbers; what it points to is freed */
        kept->warnings = NULL, kept->terms = NULL, kept->warning_count = kept->term_count = 0;
        kept->comm_algorithm = kept->comm_protocol = NULL;
        out->modelled =
            (struct dl_modelled){run->system, run->workload, run->framework, &run->plan, kept};
    }
    dl_arena_free(&arena);
    if (code != DL_OK && !out->skipped) *err = inner;
    return out->skipped ? DL_OK : code;
}

/* Measured / predicted iteration of a row; NAN when it was not predicted. */
static double ratio_of(const struct run *run, const struct dl_compared *row) {
    if (row->skipped || !dl_known(row->predicted)) return NAN;
    return run->throughput ? row->predicted / row->measured : row->measured / row->predicted;
}

/* What the runs that differ in devices alone tell about one that falls short. */
static void find_causes(const struct runs *r, const struct run *all,
                        const struct dl_prediction *kept, struct dl_compared *rows) {
    for (int i = 0; i < r->csv->row_count; i++) {
        const double ratio = ratio_of(&all[i], &rows[i]);
        if (!dl_known(ratio) || !(ratio * kept[i].iteration_s > kept[i].iteration_high_s)) continue;
        const int64_t devices = devices_of(&all[i]);
        const bool whole = group_of(r, all, i).whole;
        struct dl_shortfall s = {.prediction = &kept[i],
                                 .plan = &all[i].plan,
                                 .measured_s = ratio * kept[i].iteration_s,
                                 .base_ratio = NAN,
                                 .node_ratio = NAN,
                                 .fewer_ratio = NAN};
        int64_t base = devices, node = 0, fewer = 0;
        for (int k = 0; k < r->csv->row_count; k++) {
            const double other = ratio_of(&all[k], &rows[k]);
            const int64_t n = devices_of(&all[k]);
            if (!dl_known(other) || n >= devices || !same_group(r, all, whole, i, k)) continue;
            if (n < base) base = n, s.base_ratio = other, s.base_devices = n;
            if (all[k].plan.nodes == 1 && n > node && all[i].plan.nodes > 1)
                node = n, s.node_ratio = other;
            if (n > fewer) fewer = n, s.fewer_ratio = other;
        }
        rows[i].cause = rows[i].remark != NULL ? rows[i].remark : dl_compare_cause(&s, r->arena);
    }
}

static enum dl_code find_columns(struct runs *r, struct dl_err *err) {
    for (int c = 0; c < COLUMNS; c++) r->columns[c] = dl_csv_column(r->csv, column_names[c]);
    static const enum column needed[] = {ID,    SOURCE,           SYSTEM, FRAMEWORK, WORKLOAD,
                                         NODES, DEVICES_PER_NODE, METRIC, VALUE};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (r->columns[needed[i]] < 0) {
            return dl_fail_at(err, r->csv->name, 1, 1, column_names[needed[i]],
                              "a table of runs needs this column");
        }
    }
    return DL_OK;
}

enum dl_code dl_compare_runs(const struct dl_data *data, const struct dl_csv *csv, bool anchor,
                             struct dl_comparison *out, struct dl_err *err) {
    struct runs r = {.data = data, .csv = csv, .arena = out->arena};
    DL_TRY(find_columns(&r, err));
    r.cache = dl_arena_alloc(out->arena, (size_t)csv->row_count * 4 + 1, sizeof *r.cache);
    struct run *all = dl_arena_alloc(out->arena, (size_t)csv->row_count, sizeof *all);
    double *scales = dl_arena_alloc(out->arena, (size_t)csv->row_count, sizeof *scales);
    if (r.cache == NULL || all == NULL || scales == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int row = 0; row < csv->row_count; row++) {
        DL_TRY(read_run(&r, row, &all[row], err));
        DL_TRY(read_core_ratio(&r, row, &all[row], err));
    }
    struct dl_prediction *kept = dl_arena_alloc(out->arena, (size_t)csv->row_count, sizeof *kept);
    const int first = out->count;
    if (kept == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int row = 0; row < csv->row_count; row++) {
        struct dl_compared *compared = dl_comparison_add(out);
        if (compared == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        *compared = (struct dl_compared){
            .id = cell(&r, row, ID),
            .source = cell(&r, row, SOURCE),
            .system = cell(&r, row, SYSTEM),
            .framework = cell(&r, row, FRAMEWORK),
            .workload = cell(&r, row, WORKLOAD),
            .unit = all[row].throughput ? "samples/s" : "s",
            .measured = all[row].measured,
            .predicted = NAN,
            .error_pct = NAN,
            .low = NAN,
            .high = NAN,
            .samples_per_iteration = NAN,
            .devices = devices_of(&all[row]),
        };
        DL_TRY(compare_row(&r, all, scales, row, anchor, compared, &kept[row], err));
    }
    find_causes(&r, all, kept, &out->rows[first]);
    return DL_OK;
}
