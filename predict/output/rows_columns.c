/* rows_columns.c - the columns of a prediction, for text, CSV, JSON and `schema prediction`. */
#include <math.h>
#include <string.h>

#include "model/engine/interval.h"
#include "model/engine/pipe.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/throughput.h"
#include "model/core/columns.h"
#include "model/core/figure.h"
#include "predict/options/results.h"
#include "predict/output/rows.h"

#define GIB 1073741824.0
#define MS 1e-3
#define TERA 1e12

/* What the columns show: the prediction and its plan, and what follows from them. The last line:
 * in text alone. */
struct facts {
    struct dl_prediction p;
    struct dl_plan plan;
    struct dl_throughput throughput;
    struct dl_run_total total;
    struct dl_spending run;
    const char *system, *workload, *framework, *release, *strategy, *plan_text, *precision,
        *bottleneck, *currency, *schedule, *recompute;
    int64_t devices, expert_ranks, virtual_stages, zero_stage, corrected_by;
    double device_hours, power_w, iteration_energy_j, max_micro_batch_samples, micro_batch_samples;
    const char *iteration_text, *run_text, *memory_text, *bottleneck_text;
    double rate;
};

#define SHOWN(member, key, heading, unit, scale, digits, show, help)                               \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, digits, show, help)
#define HIDDEN(member, key, help) DL_HIDDEN(struct facts, member, key, help)
#define TEXT(member, heading, unit, show)                                                          \
    DL_SHOWN(struct facts, member, NULL, heading, unit, 0, 4, show, NULL)
static const struct dl_list_column columns[] = {
    HIDDEN(system, "system", "name of the system"),
    HIDDEN(workload, "workload", "name of the workload"),
    SHOWN(framework, "framework", "framework", "", 0, 0, DL_ROWS_FRAMEWORK,
          "a framework in one distributed mode"),
    TEXT(release, "release", "", DL_ROWS_RELEASE),
    SHOWN(strategy, "strategy", "strategy", "", 0, 0, DL_ROWS_STRATEGY, "parallel strategy"),
    SHOWN(plan_text, "plan", "plan", "", 0, 0, DL_ROWS_PLAN,
          "ranks, micro-batch, schedule, recomputation and ZeRO stage in short; absent of plain "
          "data parallelism"),
    HIDDEN(precision, "precision", "arithmetic"),
    SHOWN(plan.nodes, "nodes", "nodes", "", 0, 0, DL_ROWS_NODES, "nodes of the job"),
    SHOWN(devices, "devices", "GPUs", "", 0, 0, DL_ROWS_NODES, "devices of the job"),
    HIDDEN(plan.batch_per_device_samples, "batch_per_device_samples",
           "batch of one device per iteration"),
    HIDDEN(plan.global_batch_samples, "global_batch_samples", "batch of all devices per iteration"),
    HIDDEN(plan.dp, "dp", "data-parallel ranks"),
    HIDDEN(plan.tp, "tp", "tensor-parallel ranks"),
    HIDDEN(plan.pp, "pp", "pipeline stages"),
    HIDDEN(plan.sp, "sp", "context-parallel ranks or spatial parts"),
    SHOWN(p.compute_s, "compute_s", "compute", "ms", MS, 0, DL_ROWS_LONG,
          "forward + backward + update"),
    SHOWN(p.comm_s, "comm_s", "comm", "ms", MS, 0, DL_ROWS_LONG,
          "all communication of an iteration, hidden or not"),
    SHOWN(p.exposed_comm_s, "exposed_comm_s", "exposed", "ms", MS, 0, DL_ROWS_LONG,
          "communication that is not hidden by computation"),
    TEXT(iteration_text, "iteration", "ms (80 %)", 0),
    HIDDEN(p.iteration_s, "iteration_s",
           "compute + exposed communication + exposed input + bubble + overhead"),
    HIDDEN(p.iteration_low_s, "iteration_low_s", "low end of the 80 % interval"),
    HIDDEN(p.iteration_high_s, "iteration_high_s", "high end of the 80 % interval"),
    TEXT(rate, "samples/s", "", 0),
    HIDDEN(p.throughput_samples_per_s, "throughput_samples_per_s", "global batch / iteration"),
    SHOWN(p.scaling_efficiency, "scaling_efficiency", "scaling", "%", 0.01, 0, DL_ROWS_SCALING,
          "time of one device alone with the same batch per device / iteration"),
    HIDDEN(p.epoch_s, "epoch_s",
           "time of an epoch of the usual dataset; absent when the workload has none"),
    HIDDEN(throughput.tokens_per_s, "tokens_per_s",
           "tokens of all devices; absent when the input is no sequence"),
    SHOWN(throughput.device_tokens_per_s, "tokens_per_s_per_device", "tokens", "1/s/dev", 0, 4,
          DL_ROWS_TOKENS, "the same of one device"),
    SHOWN(throughput.device_model_flop_per_s, "model_flop_per_s_per_device", "model", "TFLOP/s",
          TERA, 0, DL_ROWS_TOKENS,
          "flop that the model needs (F-MODEL-FLOP) per second and device"),
    SHOWN(throughput.mfu_frac, "mfu_frac", "MFU", "%", 0.01, 0, DL_ROWS_TOKENS,
          "that rate / the device's dense datasheet rate at this precision (F-MFU)"),
    SHOWN(throughput.hfu_frac, "hfu_frac", "HFU", "%", 0.01, 0, DL_ROWS_TOKENS,
          "the same with recomputation (F-HFU)"),
    TEXT(run_text, "run", "", DL_ROWS_RUN),
    HIDDEN(total.time_s, "run_s", "time of the run of --tokens or --epochs; absent without them"),
    SHOWN(run.cost, "cost", "cost", "", 0, 4, DL_ROWS_RUN, "cost of that run; absent when unknown"),
    SHOWN(run.energy_j, "energy_j", "energy", "kWh", 3.6e6, 0, DL_ROWS_LONG_RUN,
          "energy of that run; absent when unknown"),
    SHOWN(device_hours, "gpu_hours", "device", "h", 0, 4, DL_ROWS_LONG_RUN,
          "device-hours of that run; absent without --tokens and --epochs"),
    HIDDEN(run.carbon_g, "carbon_g", "carbon dioxide of that run; absent without --carbon"),
    HIDDEN(power_w, "power_w", "mean power of all nodes, with PUE (F-POWER); absent when unknown"),
    HIDDEN(iteration_energy_j, "iteration_energy_j", "energy of one iteration (F-ENERGY)"),
    HIDDEN(p.forward_s, "forward_s", "forward pass on the device"),
    HIDDEN(p.backward_s, "backward_s",
           "backward pass on the device, with the slowdown while collectives run"),
    HIDDEN(p.update_s, "update_s", "optimizer step"),
    HIDDEN(p.input_s, "input_s", "data loading and host-to-device copy, hidden or not"),
    SHOWN(p.exposed_input_s, "exposed_input_s", "input", "ms", MS, 0, DL_ROWS_INPUT,
          "input that is not hidden by computation"),
    HIDDEN(p.bubble_s, "bubble_s", "idle time of pipeline stages (bubble)"),
    HIDDEN(p.overhead_s, "overhead_s", "launch gaps, host time and straggler wait"),
    HIDDEN(p.memory.weights_bytes, "memory.weights_bytes",
           "parameters, with a master copy where the precision keeps one"),
    HIDDEN(p.memory.gradients_bytes, "memory.gradients_bytes", "gradients of all parameters"),
    HIDDEN(p.memory.optimizer_bytes, "memory.optimizer_bytes", "optimizer states"),
    HIDDEN(p.memory.activations_bytes, "memory.activations_bytes", "activations kept for backward"),
    HIDDEN(p.memory.workspace_bytes, "memory.workspace_bytes",
           "workspace of libraries, and what the allocator reserves in vain"),
    HIDDEN(p.memory.buffers_bytes, "memory.buffers_bytes", "buffers of gradient synchronization"),
    HIDDEN(p.memory.context_bytes, "memory.context_bytes", "context of runtime and framework"),
    TEXT(memory_text, "memory", "GiB", 0),
    HIDDEN(p.memory.total_bytes, "memory.total_bytes", "memory of one device, with fragmentation"),
    HIDDEN(p.memory.reserved_bytes, "memory.reserved_bytes",
           "of it, reserved by the framework's allocator: all but the context"),
    HIDDEN(p.memory.capacity_bytes, "memory.capacity_bytes", "memory that one device has"),
    HIDDEN(p.fits, "fits", "the total fits in the capacity"),
    HIDDEN(p.fits_probability_frac, "fits_probability",
           "probability that it fits, from the spread of measured over predicted memory"),
    TEXT(bottleneck_text, "bottleneck", "", 0),
    HIDDEN(bottleneck, "bottleneck",
           "compute, memory-bandwidth, latency, intra-link, inter-link, host-copy, "
           "host, parameter-server, input, pipeline-bubble, framework, memory-capacity or "
           "scaling-limit"),
    HIDDEN(p.bottleneck_share, "bottleneck_share", "share of the bottleneck in the iteration"),
    HIDDEN(p.extrapolated, "extrapolated", "outside the calibrated range"),
    HIDDEN(max_micro_batch_samples, "max_micro_batch_samples",
           "largest micro-batch with which every pipeline stage fits; absent where it is not "
           "modelled"),
    HIDDEN(currency, "currency", "currency of cost; absent where no price is known"),
    HIDDEN(expert_ranks, "ep", "expert-parallel ranks"),
    HIDDEN(micro_batch_samples, "micro_batch_samples",
           "samples per micro-batch; absent where the batch is not divided"),
    HIDDEN(schedule, "schedule", "pipeline schedule; absent without a pipeline"),
    HIDDEN(virtual_stages, "virtual_stages", "virtual pipeline stages per device"),
    HIDDEN(recompute, "recompute",
           "activations recomputed in backward: none, selective, full "
           "or modules"),
    HIDDEN(plan.sequence_parallel, "sequence_parallel",
           "layers outside attention and MLP are split along the sequence"),
    HIDDEN(zero_stage, "zero", "ZeRO stage, 0 to 3"),
    HIDDEN(release, "release", "release of the framework"),
    HIDDEN(corrected_by, "corrected_by", "runs of --measured that corrected the result"),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

const struct dl_result dl_prediction_result = {"prediction", "results", columns, COLUMNS};

/* A plan that does not fit trains nothing: it has an iteration and a memory, but no speed. */
static void drop_speed(struct facts *f) {
    f->p.throughput_samples_per_s = f->p.scaling_efficiency = f->p.epoch_s = NAN;
    f->throughput.tokens_per_s = f->throughput.device_tokens_per_s = NAN;
    f->throughput.device_model_flop_per_s = f->throughput.mfu_frac = f->throughput.hfu_frac = NAN;
    f->total.time_s = f->device_hours = f->run.cost = f->run.energy_j = f->run.carbon_g = NAN;
}

const char *dl_rows_iteration_text(const struct dl_prediction *p, bool in_s,
                                   struct dl_arena *arena) {
    const double unit_s = in_s ? 1 : MS;
    return dl_arena_printf(arena, "%s (%s-%s)", dl_figure_text(arena, p->iteration_s / unit_s, 3),
                           dl_figure_text(arena, p->iteration_low_s / unit_s, 3),
                           dl_figure_text(arena, p->iteration_high_s / unit_s, 3));
}

const char *dl_rows_memory_text(const struct dl_memory *m, struct dl_arena *arena) {
    const char *total = dl_figure_text(arena, m->total_bytes / GIB, 3);
    return dl_known(m->capacity_bytes)
               ? dl_arena_printf(arena, "%s of %.3g", total, m->capacity_bytes / GIB)
               : total;
}

/* "tp4 pp2 selective zero1": without micro-batch and virtual stages. */
static const char *short_plan(const struct dl_plan *plan, struct dl_arena *arena) {
    struct dl_plan ranks = *plan;
    ranks.micro_batch_samples = 0;
    ranks.virtual_stages = 1;
    ranks.schedule = DL_1F1B;
    return dl_rows_plan_words(&ranks, arena);
}

static void read_texts(const struct dl_prediction_row *row, const struct dl_rows_style *style,
                       struct dl_arena *arena, struct facts *f) {
    const double tokens = dl_tokens_per_sample(row->workload);
    f->rate = f->p.throughput_samples_per_s * (dl_known(tokens) ? tokens : 1);
    if (f->p.fits) f->iteration_text = dl_rows_iteration_text(&f->p, style->in_s, arena);
    f->run_text = dl_known(f->total.time_s) ? dl_duration_text(arena, f->total.time_s) : NULL;
    f->memory_text = dl_rows_memory_text(&f->p.memory, arena);
    f->bottleneck_text = style->no_share ? f->bottleneck
                                         : dl_arena_printf(arena, "%s %.0f %%", f->bottleneck,
                                                           100 * f->p.bottleneck_share);
    if (style->short_plan) f->plan_text = short_plan(row->plan, arena);
}

static void read_facts(const struct dl_prediction_row *row, struct dl_arena *arena,
                       struct facts *out) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_plan *plan = row->plan;
    const struct dl_run_total total = dl_rows_total(row);
    *out = (struct facts){
        .p = *p,
        .plan = *plan,
        .throughput = dl_rows_throughput(row),
        .total = total,
        .run = dl_rows_spending(row, total.time_s),
        .system = row->system->name,
        .workload = row->workload->name,
        .framework = row->framework->name,
        .release = row->framework->release,
        .strategy = plan->strategy->name,
        .plan_text = dl_rows_plan_words(plan, arena),
        .precision = dl_precision_names[plan->precision],
        .bottleneck = dl_bottleneck_names[p->bottleneck],
        .currency = dl_currency_of(row->system, row->rates),
        .schedule = plan->pp > 1 ? dl_schedule_names[plan->schedule] : NULL,
        .recompute = dl_plan_recompute_text(plan, arena),
        .devices = plan->nodes * plan->devices_per_node,
        .expert_ranks = dl_plan_expert_ranks(plan),
        .virtual_stages = (int64_t)dl_pipe_virtual_stages(plan),
        .zero_stage = dl_rows_zero(plan),
        .corrected_by = row->framework->errors.measured != NULL
                            ? (int64_t)dl_posterior_runs(row->framework->errors.measured)
                            : 0,
        .device_hours = total.device_time_s / 3600,
        .power_w = dl_rows_power(row).job_w,
        .iteration_energy_j = dl_rows_spending(row, p->iteration_s).energy_j,
        .max_micro_batch_samples = p->stage_count > 0 ? p->max_micro_batch_samples : NAN,
        .micro_batch_samples = plan->micro_batch_samples > 0 ? plan->micro_batch_samples : NAN,
    };
    if (!p->fits) drop_speed(out);
}

void dl_rows_init(struct dl_table *table, struct dl_arena *arena,
                  const struct dl_rows_style *style) {
    struct dl_column *shown = dl_list_table(table, arena, columns, COLUMNS, style->show);
    for (size_t i = 0; i < COLUMNS; i++) {
        struct dl_column *c = &shown[i];
        const size_t member = columns[i].at;
        if (style->in_s && c->unit != NULL && strcmp(c->unit, "ms") == 0)
            c->unit = "s", c->scale = 1;
        if (style->in_s && member == offsetof(struct facts, iteration_text)) c->unit = "s (80 %)";
        if (style->tokens && member == offsetof(struct facts, rate)) c->heading = "tokens/s";
        if (style->no_gpus && c->heading != NULL && member == offsetof(struct facts, devices))
            c->heading = "devices";
    }
}

void dl_rows_add(struct dl_table *table, const struct dl_prediction_row *row,
                 const struct dl_rows_style *style) {
    struct facts facts;
    read_facts(row, table->arena, &facts);
    if (!style->no_texts) read_texts(row, style, table->arena, &facts);
    dl_list_add(table, columns, &facts);
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
    struct facts facts;
    read_facts(row, w->arena, &facts);
    dl_jw_object(w, NULL);
    dl_list_json(w, columns, COLUMNS, &facts);
    dl_jw_array(w, "warnings");
    for (int i = 0; i < row->prediction->warning_count; i++)
        dl_jw_string(w, NULL, row->prediction->warnings[i]);
    dl_jw_end(w);
    stages_json(w, row->prediction);
}
