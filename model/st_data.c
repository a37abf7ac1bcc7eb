/* st_data.c - data parallelism: costs, timeline, input and memory composed into a prediction. F-ITERATION:
 * iteration = compute + exposed communication + exposed input + bubble + overhead, each measured on the simulated timeline:
 * exposed communication is the difference between the iteration with and without the exchange.
 */
#include <math.h>
#include <string.h>

#include "model/input.h"
#include "model/memory.h"
#include "model/predict_parts.h"
#include "model/stats.h"
#include "model/strategy.h"

static enum dl_library find_library(const struct dl_system *system, const struct dl_framework *framework,
                                    const struct dl_plan *plan) {
    const bool cpu = strcmp(system->device->kind, "cpu") == 0;
    const char *own = cpu ? framework->cpu_library : framework->library;
    const char *name = plan->library != NULL ? plan->library : own;
    int library = 0;
    while (dl_library_names[library] != NULL && strcmp(dl_library_names[library], name) != 0) library++;
    return (enum dl_library)library;
}

/* Gradients in backward order: reverse order of registration, tied parameters once. */
static enum dl_code list_gradients(struct dl_timeline_request *t, struct dl_err *err) {
    struct dl_exchange_request *x = &t->exchange;
    const struct dl_workload *workload = x->workload;
    const double width = x->plan->precision == DL_MIXED ? x->framework->mixed_gradient_bytes
                         : x->plan->precision == DL_FP16 || x->plan->precision == DL_BF16 ? 2 : x->framework->gradient_bytes;
    int count = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].tied_to < 0) count += workload->layers[i].parameter_count;
    }
    t->gradients = dl_arena_alloc(x->arena, (size_t)count, sizeof *t->gradients);
    if (t->gradients == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    int g = 0;
    for (int i = workload->layer_count - 1; i >= 0; i--) {
        const struct dl_layer *layer = &workload->layers[i];
        if (layer->tied_to >= 0) continue;
        for (int p = layer->parameter_count - 1; p >= 0; p--) {
            const double elements = layer->parameters[p].elements;
            t->gradients[g++] = (struct dl_gradient){.layer = i, .elements = elements, .bytes = elements * width};
            x->total_bytes += elements * width;
            x->parameter_bytes += elements * 4;
        }
    }
    x->gradients = t->gradients;
    x->gradient_count = count;
    return DL_OK;
}

static enum dl_code run_timeline(const struct dl_parts *parts, struct dl_cost *cost, bool exchange, bool one_device,
                                 struct dl_timeline *out, struct dl_err *err) {
    const struct dl_framework *framework = parts->framework;
    const struct dl_device *device = parts->system->device;
    const double sharing = framework->single_process && !one_device ? (double)parts->plan->devices_per_node : 1;
    const double launch_s = dl_known(device->launch_s) ? device->launch_s : 0;
    struct dl_timeline_request request = {
        .cost = cost,
        .behaviour = exchange ? dl_framework_behaviour_find(framework->behaviour) : NULL,
        .exchange = {.system = parts->system, .workload = parts->workload, .framework = framework, .plan = parts->plan,
                     .library = find_library(parts->system, framework, parts->plan), .arena = parts->arena},
        .dispatch_s = fmax(framework->dispatch_s, framework->dispatch_s > 0 ? launch_s : 0) * sharing,
        .gap_s = dl_known(device->kernel_gap_s) ? device->kernel_gap_s : 0,
        .iteration_host_s = framework->iteration_s,
        .slowdown_frac = framework->overlap_slowdown_frac,
    };
    DL_TRY(list_gradients(&request, err));
    return dl_timeline_run(&request, out, err);
}

/* Micro-batches of one step. F-ACCUMULATE: all but the last run forward and backward without exchange or update. */
static double steps_of(const struct dl_plan *plan) {
    return plan->micro_batch_samples > 0 ? ceil(plan->batch_per_device_samples / plan->micro_batch_samples) : 1;
}

/* Seconds of the micro-batches before the last one, from the period of one step without exchange. */
static double accumulate_s(const struct dl_parts *parts, double period_s) {
    return (steps_of(parts->plan) - 1) * fmax(0, period_s - parts->cost->update.time_s);
}

static void sum_compute(const struct dl_parts *parts, struct dl_prediction *p) {
    for (int i = 0; i < parts->workload->layer_count; i++) {
        p->forward_s += parts->cost->layers[i].forward.time_s;
        p->backward_s += parts->cost->layers[i].backward.time_s;
    }
    const double steps = steps_of(parts->plan);
    p->forward_s *= steps;
    p->backward_s *= steps;
    p->backward_s += parts->with_comm->slowdown_s;
    p->update_s = parts->cost->update.time_s;
    p->compute_s = p->forward_s + p->backward_s + p->update_s;
}

static void sum_iteration(const struct dl_parts *parts, double single_s, struct dl_prediction *p) {
    const struct dl_plan *plan = parts->plan;
    const double devices = (double)(plan->nodes * plan->devices_per_node);
    const double quiet_s = parts->without_comm->period_s + accumulate_s(parts, parts->without_comm->period_s);
    p->exposed_comm_s = fmax(0, parts->with_comm->period_s - parts->with_comm->slowdown_s - parts->without_comm->period_s);
    p->comm_s = fmax(parts->with_comm->comm_s, p->exposed_comm_s);
    p->overhead_s = fmax(0, quiet_s - (p->compute_s - parts->with_comm->slowdown_s));
    const bool waits = !parts->framework->asynchronous && strcmp(parts->framework->behaviour, "ideal") != 0;
    if (devices > 1 && dl_known(parts->system->jitter_frac) && waits) { /* all wait for the slowest; F-STRAGGLER */
        p->overhead_s += parts->system->jitter_frac * dl_normal_expected_max(devices) * p->compute_s;
    }
    const struct dl_input_time input = dl_input_compute(parts->system, parts->workload, parts->framework, plan);
    const double step_s = p->compute_s + p->exposed_comm_s + p->overhead_s;
    const bool prefetch = parts->framework->prefetch_batches > 0;
    p->input_s = input.pipeline_s + input.feed_s;
    p->exposed_input_s = input.feed_s + (prefetch ? fmax(0, input.pipeline_s - step_s) : input.pipeline_s);
    p->iteration_s = step_s + p->exposed_input_s;
    struct dl_plan alone = *plan;
    alone.nodes = alone.devices_per_node = 1;
    const struct dl_input_time one = dl_input_compute(parts->system, parts->workload, parts->framework, &alone);
    const double single_input_s = one.feed_s + (prefetch ? fmax(0, one.pipeline_s - single_s) : one.pipeline_s);
    p->scaling_efficiency = (single_s + single_input_s) / p->iteration_s;
    p->throughput_samples_per_s = plan->global_batch_samples / p->iteration_s;
    const double samples = plan->dataset_samples > 0 ? plan->dataset_samples : parts->workload->epoch_samples;
    p->epoch_s = samples / p->throughput_samples_per_s; /* NAN when unknown */
}

static void describe_comm(const struct dl_exchange *x, struct dl_prediction *p) {
    double largest = -1;
    p->comm_messages = x->message_count;
    for (int m = 0; m < x->message_count; m++) {
        p->comm_bytes += x->messages[m].bytes;
        if (x->messages[m].bytes <= largest) continue;
        largest = x->messages[m].bytes;
        p->comm_algorithm = x->messages[m].algorithm;
        p->comm_protocol = x->messages[m].protocol;
    }
}

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan, struct dl_err *err) {
    (void)system, (void)workload, (void)framework;
    if (plan->sequence_parallel) return dl_fail(err, DL_ERR_USAGE, "--sequence-parallel: goes with tensor parallelism");
    const double micro = plan->micro_batch_samples;
    if (micro > 0 && fabs(plan->batch_per_device_samples / micro - round(plan->batch_per_device_samples / micro)) > 1e-6) {
        return dl_fail(err, DL_ERR_USAGE, "--micro-batch %g: the batch of %g samples a device is not a multiple of it", micro,
                       plan->batch_per_device_samples);
    }
    return DL_OK;
}

static enum dl_code predict(const struct dl_strategy_request *request, struct dl_prediction *out, struct dl_err *err) {
    const struct dl_system *system = request->system;
    const struct dl_workload *workload = request->workload;
    const struct dl_framework *framework = request->framework;
    const struct dl_predict_options *options = request->options;
    const struct dl_plan plan = *request->plan;
    struct dl_arena *arena = request->arena;
    struct dl_cost cost;
    const double at_once = plan.micro_batch_samples > 0 ? plan.micro_batch_samples : plan.batch_per_device_samples;
    DL_TRY(dl_cost_compute(system->device, workload, framework, &plan, at_once, arena, &cost, err));
    struct dl_timeline with_comm, without_comm, single;
    struct dl_parts parts = {.system = system, .workload = workload, .framework = framework, .plan = &plan, .cost = &cost,
                             .with_comm = &with_comm, .without_comm = &without_comm, .arena = arena};
    const bool several = plan.nodes * plan.devices_per_node > 1;
    DL_TRY(run_timeline(&parts, &cost, several, false, &with_comm, err));
    /* Who updates on servers does so with one device too: the reference for the efficiency leaves the update out as well. */
    if (with_comm.exchange.update_remote) memset(&cost.update, 0, sizeof cost.update);
    DL_TRY(run_timeline(&parts, &cost, false, true, &single, err));
    DL_TRY(run_timeline(&parts, &cost, false, false, &without_comm, err));

    struct dl_prediction p = {0};
    sum_compute(&parts, &p);
    sum_iteration(&parts, single.period_s + accumulate_s(&parts, single.period_s), &p);
    describe_comm(&with_comm.exchange, &p);
    const char *unknown_memory;
    dl_memory_compute(system, workload, framework, &plan, at_once, &p.memory, &unknown_memory);
    p.max_batch_samples = dl_memory_max_batch(system, workload, framework, &plan);
    p.fits = !dl_known(p.memory.capacity_bytes) || p.memory.total_bytes <= p.memory.capacity_bytes;
    dl_judge_bottleneck(&parts, &p);
    dl_judge_interval(&parts, &p);
    DL_TRY(dl_judge_warnings(&parts, unknown_memory, &p, err));
    if (options != NULL && options->terms) DL_TRY(dl_explain_terms(&parts, &p, err));
    *out = p;
    return DL_OK;
}

const struct dl_strategy dl_st_data = {
    .name = "data",
    .summary = "every device holds the whole network and a share of the batch; gradients are summed",
    .axes = DL_AXIS_DP,
    .check = check,
    .predict = predict,
};
