/* rows.c - the columns of a prediction, with their public names. */
#include "predict/output/rows.h"

#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "model/engine/interval.h"
#include "model/engine/pipe.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/throughput.h"

enum { GIB = 1 << 30 };
#define MS 1e-3
#define TERA 1e12

/* Text shows the columns with a heading; CSV has all. The order of cells in fill() is this order.
 */
static const struct dl_column columns[] = {
    {"system", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"workload", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"strategy", "strategy", "", DL_COLUMN_STRING, 0, 0},
    {"plan", "plan", "", DL_COLUMN_STRING, 0, 0},
    {"precision", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"batch_per_device_samples", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"global_batch_samples", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"dp", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"tp", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"pp", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"sp", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"compute_s", "compute", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"comm_s", "comm", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"exposed_comm_s", "exposed", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"iteration_s", "iter", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"iteration_low_s", "low", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"iteration_high_s", "high", "ms", DL_COLUMN_NUMBER, MS, 0},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"scaling_efficiency", "eff", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"epoch_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"tokens_per_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"tokens_per_s_per_device", "tokens", "1/s/dev", DL_COLUMN_NUMBER, 0, 4},
    {"model_flop_per_s_per_device", "model", "TFLOP/s", DL_COLUMN_NUMBER, TERA, 0},
    {"mfu_frac", "MFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"hfu_frac", "HFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"run_s", "run", "h", DL_COLUMN_NUMBER, 3600, 0},
    {"cost", "cost", "", DL_COLUMN_NUMBER, 0, 4},
    {"energy_j", "energy", "kWh", DL_COLUMN_NUMBER, 3.6e6, 0},
    {"gpu_hours", "device", "h", DL_COLUMN_NUMBER, 0, 4},
    {"carbon_g", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"power_w", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"iteration_energy_j", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"forward_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"backward_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"update_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"input_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"exposed_input_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"bubble_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"overhead_s", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.weights_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.gradients_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.optimizer_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.activations_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.workspace_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.buffers_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.context_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"memory.total_bytes", "memory", "GiB", DL_COLUMN_NUMBER, GIB, 0},
    {"memory.capacity_bytes", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"fits", NULL, NULL, DL_COLUMN_BOOL, 0, 0},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
    {"bottleneck_share", "share", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"extrapolated", NULL, NULL, DL_COLUMN_BOOL, 0, 0},
    {"max_micro_batch_samples", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"currency", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"ep", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"micro_batch_samples", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"schedule", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"virtual_stages", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"recompute", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"sequence_parallel", NULL, NULL, DL_COLUMN_BOOL, 0, 0},
    {"zero", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"corrected_by", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Meanings of the columns, in their order. */
static const char *const helps[] = {
    "name of the system",
    "name of the workload",
    "a framework in one distributed mode",
    "parallel strategy",
    "ranks, micro-batch, schedule, recomputation and ZeRO stage in short; absent of plain data "
    "parallelism",
    "arithmetic",
    "nodes of the job",
    "devices of the job",
    "batch of one device per iteration",
    "batch of all devices per iteration",
    "data-parallel ranks",
    "tensor-parallel ranks",
    "pipeline stages",
    "context-parallel ranks or spatial parts",
    "forward + backward + update",
    "all communication of an iteration, hidden or not",
    "communication that is not hidden by computation",
    "compute + exposed communication + exposed input + bubble + overhead",
    "low end of the 80 % interval",
    "high end of the 80 % interval",
    "global batch / iteration",
    "time of one device alone with the same batch per device / iteration",
    "time of an epoch of the usual dataset; absent when the workload has none",
    "tokens of all devices; absent when the input is no sequence",
    "the same of one device",
    "flop that the model needs (F-MODEL-FLOP) per second and device",
    "that rate / the device's dense datasheet rate at this precision (F-MFU)",
    "the same with what is recomputed (F-HFU)",
    "time of the run of --tokens or --epochs; absent without them",
    "cost of that run; absent when unknown",
    "energy of that run; absent when unknown",
    "device-hours of that run; absent without --tokens and --epochs",
    "carbon dioxide of that run; absent without --carbon",
    "mean power of all nodes, with PUE (F-POWER); absent when unknown",
    "energy of one iteration (F-ENERGY)",
    "forward pass on the device",
    "backward pass on the device, with the slowdown while collectives run",
    "optimizer step",
    "data loading and host-to-device copy, hidden or not",
    "input that is not hidden by computation",
    "idle time of pipeline stages (bubble)",
    "launch gaps, host time and straggler wait",
    "parameters, with a master copy where the precision keeps one",
    "gradients of all parameters",
    "optimizer states",
    "activations kept for backward",
    "workspace of the convolution library",
    "buffers of gradient synchronization",
    "context of runtime and framework",
    "memory of one device, with fragmentation",
    "memory that one device has",
    "the total fits in the capacity",
    "compute, memory-bandwidth, latency, intra-link, inter-link, parameter-server, input, "
    "pipeline-bubble, framework, memory-capacity or scaling-limit",
    "share of the bottleneck in the iteration",
    "outside the calibrated range",
    "largest micro-batch with which every pipeline stage fits; absent where the model does not "
    "tell",
    "currency of cost; absent where no price is known",
    "expert-parallel ranks",
    "samples per micro-batch; absent where the batch is not divided",
    "pipeline schedule; absent without a pipeline",
    "virtual pipeline stages per device",
    "activations recomputed in backward: none, selective or full",
    "layers outside attention and MLP are split along the sequence",
    "ZeRO stage, 0 to 3",
    "runs of --measured that correct the prediction; 0: none",
};
_Static_assert(sizeof helps / sizeof helps[0] == COLUMNS, "one meaning per column");

/* The unit is the end of the key. */
static const char *unit_of(const char *key) {
    static const struct {
        const char *end, *unit;
    } ends[] = {
        {"samples_per_s", "sample/s"},
        {"tokens_per_s", "token/s"},
        {"tokens_per_s_per_device", "token/s"},
        {"flop_per_s_per_device", "flop/s"},
        {"_hours", "h"},
        {"_j", "J"},
        {"_g", "g"},
        {"_w", "W"},
        {"_samples", "sample"},
        {"_bytes", "byte"},
        {"_s", "s"},
    };
    const size_t length = strlen(key);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t end = strlen(ends[i].end);
        if (length > end && strcmp(key + length - end, ends[i].end) == 0) return ends[i].unit;
    }
    return "";
}

bool dl_rows_field(int index, struct dl_row_field *out) {
    static const char *const types[] = {"string", "number", "integer", "boolean"};
    if (index < 0 || index >= (int)COLUMNS) return false;
    *out = (struct dl_row_field){columns[index].key, types[columns[index].type],
                                 unit_of(columns[index].key), helps[index]};
    return true;
}

struct dl_throughput dl_rows_throughput(const struct dl_prediction_row *row) {
    const bool one_kind = row->prediction->group_count == 0;
    return dl_throughput_of(one_kind ? row->system->device : NULL, row->workload, row->plan,
                            row->prediction);
}

struct dl_run_total dl_rows_total(const struct dl_prediction_row *row) {
    const struct dl_run_length none = {0, 0};
    return dl_run_total_of(row->workload, row->plan, row->prediction,
                           row->length != NULL ? row->length : &none);
}

struct dl_power dl_rows_power(const struct dl_prediction_row *row) {
    return dl_power_of(row->system, row->plan, row->prediction, row->rates);
}

struct dl_spending dl_rows_spending(const struct dl_prediction_row *row, double time_s) {
    const struct dl_power power = dl_rows_power(row);
    const bool one_kind = row->prediction->group_count == 0;
    struct dl_spending out = dl_spending_of(row->system, row->plan, &power, row->rates, time_s);
    if (!one_kind && (row->rates == NULL || !(row->rates->price_per_node_hour > 0))) out.cost = NAN;
    return out;
}

static int64_t zero_of(const struct dl_plan *plan) {
    return plan->strategy->shard > 0 ? plan->strategy->shard : plan->shard;
}

bool dl_rows_is_chosen(const struct dl_plan *plan) {
    return plan->tp * plan->pp * plan->sp * dl_plan_expert_ranks(plan) > 1 ||
           plan->micro_batch_samples > 0 || plan->recompute != DL_RECOMPUTE_NONE;
}

/* "tp4 pp8 v2 mb1 selective zero1"; NULL where there is nothing to tell, or out of memory. */
static const char *plan_text(const struct dl_plan *plan, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    const struct {
        const char *name;
        int64_t ranks;
    } axes[] = {
        {"tp", plan->tp}, {"pp", plan->pp}, {"cp", plan->sp}, {"ep", dl_plan_expert_ranks(plan)}};
    if (!dl_rows_is_chosen(plan)) return NULL;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        if (axes[i].ranks > 1)
            dl_text_printf(&text, "%s%lld ", axes[i].name, (long long)axes[i].ranks);
    }
    if (plan->pp > 1 && dl_pipe_virtual_stages(plan) > 1)
        dl_text_printf(&text, "v%.0f ", dl_pipe_virtual_stages(plan));
    if (plan->micro_batch_samples > 0) dl_text_printf(&text, "mb%g ", plan->micro_batch_samples);
    if (plan->recompute != DL_RECOMPUTE_NONE)
        dl_text_printf(&text, "%s ", dl_recompute_names[plan->recompute]);
    if (zero_of(plan) > 0) dl_text_printf(&text, "zero%lld ", (long long)zero_of(plan));
    if (text.length > 0) text.bytes[text.length - 1] = 0; /* the last blank */
    return dl_text_string(&text);
}

const char *dl_rows_plan_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    if (!dl_rows_is_chosen(row->plan)) return "";
    return dl_arena_printf(arena, "Plan of %s on %lld nodes: dp%lld %s\n", row->framework->name,
                           (long long)row->plan->nodes, (long long)row->plan->dp,
                           plan_text(row->plan, arena));
}

/* The columns that identify a row. Returns how many. */
static int fill_plan(union dl_cell *c, const struct dl_prediction_row *row,
                     struct dl_arena *arena) {
    const struct dl_plan *plan = row->plan;
    int i = 0;
    c[i++].string = row->system->name;
    c[i++].string = row->workload->name;
    c[i++].string = row->framework->name;
    c[i++].string = plan->strategy->name;
    c[i++].string = plan_text(plan, arena);
    c[i++].string = dl_precision_names[plan->precision];
    c[i++].integer = plan->nodes;
    c[i++].integer = plan->nodes * plan->devices_per_node;
    c[i++].number = plan->batch_per_device_samples;
    c[i++].number = plan->global_batch_samples;
    c[i++].integer = plan->dp;
    c[i++].integer = plan->tp;
    c[i++].integer = plan->pp;
    c[i++].integer = plan->sp;
    return i;
}

/* Runs of --measured that correct predictions of the framework. */
static int64_t corrected_by(const struct dl_framework *framework) {
    const struct dl_posterior *measured = framework->measured;
    return measured != NULL ? (int64_t)dl_posterior_runs(measured) : 0;
}

static void fill(union dl_cell *c, const struct dl_prediction_row *row, struct dl_arena *arena) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_memory *m = &p->memory;
    const struct dl_throughput t = dl_rows_throughput(row);
    const struct dl_run_total total = dl_rows_total(row);
    const struct dl_spending run = dl_rows_spending(row, total.time_s);
    int i = fill_plan(c, row, arena);
    const double times[] = {p->compute_s,
                            p->comm_s,
                            p->exposed_comm_s,
                            p->iteration_s,
                            p->iteration_low_s,
                            p->iteration_high_s,
                            p->throughput_samples_per_s,
                            p->scaling_efficiency,
                            p->epoch_s,
                            t.tokens_per_s,
                            t.device_tokens_per_s,
                            t.device_model_flop_per_s,
                            t.mfu_frac,
                            t.hfu_frac,
                            total.time_s,
                            run.cost,
                            run.energy_j,
                            total.device_time_s / 3600,
                            run.carbon_g,
                            dl_rows_power(row).job_w,
                            dl_rows_spending(row, p->iteration_s).energy_j,
                            p->forward_s,
                            p->backward_s,
                            p->update_s,
                            p->input_s,
                            p->exposed_input_s,
                            p->bubble_s,
                            p->overhead_s,
                            m->weights_bytes,
                            m->gradients_bytes,
                            m->optimizer_bytes,
                            m->activations_bytes,
                            m->workspace_bytes,
                            m->buffers_bytes,
                            m->context_bytes,
                            m->total_bytes,
                            m->capacity_bytes};
    for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) c[i++].number = times[k];
    c[i++].boolean = p->fits;
    c[i++].string = dl_bottleneck_names[p->bottleneck];
    c[i++].number = p->bottleneck_share;
    c[i++].boolean = p->extrapolated;
    c[i++].number = p->stage_count > 0 ? p->max_micro_batch_samples : NAN;
    c[i++].string = dl_currency_of(row->system, row->rates);
    const struct dl_plan *plan = row->plan;
    c[i++].integer = dl_plan_expert_ranks(plan);
    c[i++].number = plan->micro_batch_samples > 0 ? plan->micro_batch_samples : NAN;
    c[i++].string = plan->pp > 1 ? dl_schedule_names[plan->schedule] : NULL;
    c[i++].integer = (int64_t)dl_pipe_virtual_stages(plan);
    c[i++].string = dl_recompute_names[plan->recompute];
    c[i++].boolean = plan->sequence_parallel;
    c[i++].integer = zero_of(plan);
    c[i++].integer = corrected_by(row->framework);
}

/* Columns that a reader wants of some tables alone. */
static const struct {
    const char *key;
    unsigned show;
} optional[] = {
    {"strategy", DL_ROWS_STRATEGY},
    {"tokens_per_s_per_device", DL_ROWS_TOKENS},
    {"model_flop_per_s_per_device", DL_ROWS_TOKENS},
    {"mfu_frac", DL_ROWS_TOKENS},
    {"hfu_frac", DL_ROWS_TOKENS},
    {"plan", DL_ROWS_PLAN},
    {"run_s", DL_ROWS_RUN},
    {"cost", DL_ROWS_RUN},
    {"energy_j", DL_ROWS_RUN},
    {"gpu_hours", DL_ROWS_RUN},
};

void dl_rows_init(struct dl_table *table, struct dl_arena *arena, unsigned show) {
    struct dl_column *shown = dl_arena_alloc(arena, COLUMNS, sizeof *shown);
    memcpy(shown, columns, sizeof columns);
    for (int i = 0; i < COLUMNS; i++) {
        for (size_t k = 0; k < sizeof optional / sizeof optional[0]; k++) {
            if (strcmp(shown[i].key, optional[k].key) == 0 && (show & optional[k].show) == 0)
                shown[i].heading = NULL;
        }
    }
    dl_table_init(table, arena, shown, COLUMNS);
}

void dl_rows_add(struct dl_table *table, const struct dl_prediction_row *row) {
    union dl_cell *cells = dl_table_row(table);
    fill(cells, row, table->arena);
}

/* "54.1 days", "6.2 hours". */
static const char *days_text(struct dl_arena *arena, double time_s) {
    return time_s < 172800 ? dl_arena_printf(arena, "%.3g hours", time_s / 3600)
                           : dl_arena_printf(arena, "%.4g days", time_s / 86400);
}

const char *dl_rows_length_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_run_total total = dl_rows_total(row);
    if (!dl_known(total.time_s)) return "";
    const double low = p->iteration_low_s / p->iteration_s,
                 high = p->iteration_high_s / p->iteration_s;
    const bool tokens = row->length->tokens > 0, gpu = row->system->device->kind == DL_DEVICE_GPU;
    return dl_arena_printf(
        arena,
        "%.4g %s on %s: %.0f iterations, %s (with 80 %% probability %s to %s), %.4g %s-hours of "
        "training alone.\n",
        tokens ? row->length->tokens : row->length->epoch_count, tokens ? "tokens" : "epochs",
        row->framework->name, total.iteration_count, days_text(arena, total.time_s),
        days_text(arena, low * total.time_s), days_text(arena, high * total.time_s),
        total.device_time_s / 3600, gpu ? "GPU" : "device");
}

const char *dl_rows_stages_text(const struct dl_prediction *p, struct dl_arena *arena) {
    enum { SHOWN = 16 };
    const double capacity = p->stage_count > 0 ? p->stages[0].capacity_bytes : NAN;
    struct dl_text text = {.arena = arena};
    if (!dl_known(capacity)) return "";
    dl_text_printf(&text, "Memory%s, %.4g GiB of a device [GiB (margin)]:",
                   p->stage_count > 1 ? " of the stages" : "", capacity / GIB);
    for (int i = 0; i < p->stage_count; i++) {
        const double total = p->stages[i].total_bytes;
        /* of long pipelines the first and the last */
        if (p->stage_count > SHOWN && i == SHOWN - 1) dl_text_add(&text, " ...");
        if (p->stage_count > SHOWN && i >= SHOWN - 1 && i < p->stage_count - 1) continue;
        dl_text_printf(&text, " %.3g (%.0f %%%s)", total / GIB, 100 * (1 - total / capacity),
                       total > capacity                   ? ", does not fit"
                       : total > DL_TIGHT_FRAC * capacity ? ", tight"
                                                          : "");
    }
    if (dl_known(p->max_micro_batch_samples))
        dl_text_printf(&text, ". The largest micro-batch that fits is %.0f sample%s.\n",
                       p->max_micro_batch_samples, p->max_micro_batch_samples == 1 ? "" : "s");
    else
        dl_text_add(&text, ".\n");
    return dl_text_string(&text);
}

static void stages_json(struct dl_json_writer *w, const struct dl_prediction *p) {
    if (p->stage_count == 0) return;
    dl_jw_array(w, "stages");
    for (int i = 0; i < p->stage_count; i++) {
        const struct dl_memory *m = &p->stages[i];
        dl_jw_object(w, NULL);
        dl_jw_number(w, "activations_bytes", m->activations_bytes);
        dl_jw_number(w, "total_bytes", m->total_bytes);
        dl_jw_number(w, "margin_frac", 1 - m->total_bytes / m->capacity_bytes);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

void dl_rows_json_open(struct dl_json_writer *w, const struct dl_prediction_row *row) {
    union dl_cell cells[COLUMNS];
    bool in_memory = false;
    fill(cells, row, w->arena);
    dl_jw_object(w, NULL);
    for (int i = 0; i < COLUMNS; i++) {
        const char *dot = strchr(columns[i].key, '.'),
                   *key = dot == NULL ? columns[i].key : dot + 1;
        if (dot != NULL && !in_memory) dl_jw_object(w, "memory");
        if (dot == NULL && in_memory) dl_jw_end(w);
        in_memory = dot != NULL;
        switch (columns[i].type) {
        case DL_COLUMN_STRING: dl_jw_string(w, key, cells[i].string); break;
        case DL_COLUMN_NUMBER: dl_jw_number(w, key, cells[i].number); break;
        case DL_COLUMN_INTEGER: dl_jw_integer(w, key, cells[i].integer); break;
        case DL_COLUMN_BOOL: dl_jw_bool(w, key, cells[i].boolean); break;
        }
    }
    dl_jw_array(w, "warnings");
    for (int i = 0; i < row->prediction->warning_count; i++)
        dl_jw_string(w, NULL, row->prediction->warnings[i]);
    dl_jw_end(w);
    stages_json(w, row->prediction);
}

void dl_rows_json(struct dl_json_writer *w, const struct dl_prediction_row *row) {
    dl_rows_json_open(w, row);
    dl_jw_end(w);
}

double dl_terms_least_shown_s(const struct dl_prediction *p, size_t shown, struct dl_arena *arena) {
    double *times_s = dl_arena_alloc(arena, (size_t)p->term_count + 1, sizeof *times_s);
    size_t n = 0;
    for (int i = 0; i < p->term_count && times_s != NULL; i++) {
        if (strcmp(p->terms[i].group, "memory") != 0 && dl_known(p->terms[i].value))
            times_s[n++] = p->terms[i].value;
    }
    if (n <= shown) return -INFINITY;
    dl_sort(times_s, n);
    return times_s[n - shown];
}
