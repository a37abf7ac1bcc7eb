/* st_pipeline.c - pipeline: consecutive layers on every device, alone or with replicas of the pipeline. F-PIPE-GPIPE. */
#include <math.h>
#include <string.h>

#include "model/input.h"
#include "model/memory.h"
#include "model/pipeline.h"
#include "model/predict_parts.h"
#include "model/replica.h"
#include "model/stats.h"

struct pipe {
    const struct dl_strategy_request *request;
    struct dl_plan plan;         /* complete; micro_batch_samples > 0 */
    struct dl_cost cost;         /* of one micro-batch, all layers */
    int stages, parts;           /* parts = stages x virtual stages */
    double micro_batches;
    int *first;                  /* of each part */
    double *step_s, *compute_s;  /* of each stage: one micro-batch forward and backward, with and without host stalls */
    int slowest;
    double step_max_s;
    struct dl_message *messages; int message_count;
};

static double virtual_stages(const struct dl_plan *plan) {
    if (plan->schedule != DL_INTERLEAVED) return 1;
    return plan->virtual_stages > 0 ? (double)plan->virtual_stages : 2;
}

/* Without --micro-batch: four for each stage, as far as there are samples. */
static double micro_batch(const struct dl_plan *plan) {
    const double samples = plan->batch_per_device_samples * (double)plan->pp;
    if (plan->micro_batch_samples > 0) return fmin(plan->micro_batch_samples, samples);
    return samples / fmax(1, floor(fmin(samples, 4 * (double)plan->pp)));
}

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan, struct dl_err *err) {
    (void)system, (void)framework;
    const double parts = (double)plan->pp * virtual_stages(plan), samples = plan->batch_per_device_samples * (double)plan->pp;
    if (plan->assume == DL_ASSUME_PARADL) {
        return dl_fail(err, DL_ERR_USAGE, "--assume paradl: for strategies data, filter, channel and their products");
    }
    if (plan->sequence_parallel) return dl_fail(err, DL_ERR_USAGE, "--sequence-parallel: goes with tensor parallelism");
    if (parts > workload->layer_count) {
        return dl_fail(err, DL_ERR_USAGE, "--pp %lld: %s has %d layers for %.0f parts of the pipeline; nearest is --pp %d (scaling limit)",
                       (long long)plan->pp, workload->name, workload->layer_count, parts,
                       (int)(workload->layer_count / virtual_stages(plan)));
    }
    if (plan->micro_batch_samples > samples) {
        return dl_fail(err, DL_ERR_USAGE, "--micro-batch %g: a pipeline has %g samples an iteration; nearest is --micro-batch %g",
                       plan->micro_batch_samples, samples, samples);
    }
    const double count = samples / micro_batch(plan);
    if (fabs(count - round(count)) > 1e-6 * count) {
        return dl_fail(err, DL_ERR_USAGE, "--micro-batch %g does not divide the %g samples of a pipeline", micro_batch(plan), samples);
    }
    if (plan->schedule == DL_INTERLEAVED && fmod(round(count), (double)plan->pp) > 0) {
        return dl_fail(err, DL_ERR_USAGE, "--schedule interleaved: %.0f micro-batches are no multiple of --pp %lld; nearest is "
                       "--micro-batch %g", count, (long long)plan->pp, samples / (ceil(count / (double)plan->pp) * (double)plan->pp));
    }
    return DL_OK;
}

/* One micro-batch through layers [from, to), both ways, with the host's part where it is slower than the device. */
static void add_part(const struct pipe *p, int from, int to, double *compute_s, double *step_s) {
    const struct dl_device *device = p->request->system->device;
    const struct dl_framework *framework = p->request->framework;
    const double gap_s = dl_known(device->kernel_gap_s) ? device->kernel_gap_s : 0;
    const double launch_s = framework->dispatch_s > 0 && dl_known(device->launch_s) ? device->launch_s : 0;
    double sum_s = 0, launches = 0;
    for (int i = from; i < to; i++) {
        const struct dl_layer_cost *layer = &p->cost.layers[i];
        sum_s += layer->forward.time_s + layer->backward.time_s;
        launches += layer->forward.launches + layer->backward.launches;
    }
    *compute_s += sum_s;
    *step_s += fmax(sum_s + launches * gap_s, launches * fmax(framework->dispatch_s, launch_s));
}

static enum dl_code balance(struct pipe *p, struct dl_err *err) {
    struct dl_arena *arena = p->request->arena;
    const int layers = p->request->workload->layer_count;
    double *cost = dl_arena_alloc(arena, (size_t)layers, sizeof *cost);
    double *work = dl_arena_alloc(arena, 2 * ((size_t)p->parts + 1) * ((size_t)layers + 1), sizeof *work);
    p->first = dl_arena_alloc(arena, (size_t)p->parts + 1, sizeof *p->first);
    p->step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->step_s);
    p->compute_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->compute_s);
    if (cost == NULL || work == NULL || p->first == NULL || p->step_s == NULL || p->compute_s == NULL) {
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    }
    for (int i = 0; i < layers; i++) {
        double compute_s = 0;
        add_part(p, i, i + 1, &compute_s, &cost[i]);
    }
    dl_pipeline_balance(cost, layers, p->parts, p->first, work);
    for (int k = 0; k < p->parts; k++) { /* part k is on device k mod stages */
        add_part(p, p->first[k], p->first[k + 1], &p->compute_s[k % p->stages], &p->step_s[k % p->stages]);
    }
    for (int s = 0; s < p->stages; s++) {
        if (p->step_s[s] > p->step_s[p->slowest]) p->slowest = s;
    }
    p->step_max_s = p->step_s[p->slowest];
    return DL_OK;
}

/* The layers of one device as a network of its own, for its memory. */
static struct dl_workload stage_workload(const struct pipe *p, int stage, struct dl_layer *layers) {
    struct dl_workload own = *p->request->workload;
    own.layers = layers;
    own.layer_count = 0;
    own.parameters = own.buffer_elements = 0;
    own.parameter_tensors = 0;
    for (int k = stage; k < p->parts; k += p->stages) {
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            layers[own.layer_count] = p->request->workload->layers[i];
            const struct dl_layer *layer = &layers[own.layer_count++];
            own.buffer_elements += layer->buffer_elements;
            if (layer->tied_to >= 0) continue;
            own.parameters += layer->parameter_elements;
            own.parameter_tensors += layer->parameter_count;
        }
    }
    if (dl_known(own.transformer_layers)) own.transformer_layers /= p->stages;
    if (stage > 0) own.input_bytes_per_sample = 0;
    return own;
}

/* Memory of the fullest device; *samples_max: samples per device at which it is full. */
static enum dl_code compute_memory(struct pipe *p, struct dl_memory *out, const char **unknown, double *samples_max,
                                   struct dl_err *err) {
    const struct dl_strategy_request *r = p->request;
    struct dl_layer *layers = dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof *layers);
    if (layers == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    out->total_bytes = -1;
    *samples_max = HUGE_VAL;
    for (int s = 0; s < p->stages; s++) {
        const struct dl_workload own = stage_workload(p, s, layers);
        struct dl_plan plan = p->plan;
        const double held = dl_pipeline_in_flight(plan.schedule, s, p->stages, p->micro_batches, virtual_stages(&plan));
        const double versions = dl_pipeline_weight_versions(plan.schedule, s, p->stages) - 1;
        plan.nodes = plan.devices_per_node = plan.dp > 1 ? 2 : 1; /* buffers of the exchange only where there is one */
        struct dl_memory m;
        dl_memory_compute(r->system, &own, r->framework, &plan, held * plan.micro_batch_samples, &m, unknown);
        const double stash = versions * own.parameters * dl_memory_weight_bytes(plan.precision);
        const double borders = 4 * dl_pipeline_cut_elements(r->workload, p->first[s]) * plan.micro_batch_samples *
                               dl_precision_bytes(plan.precision); /* in and out, activation and gradient */
        m.weights_bytes += stash;
        m.buffers_bytes += borders;
        m.total_bytes += (stash + borders) / (1 - r->framework->fragmentation_frac);
        const double most = dl_memory_max_batch(r->system, &own, r->framework, &plan); /* samples held at once */
        if (dl_known(most)) *samples_max = fmin(*samples_max, floor(most / held) * p->micro_batches / p->stages);
        if (m.total_bytes > out->total_bytes) *out = m;
    }
    if (!(*samples_max < HUGE_VAL)) *samples_max = NAN;
    return DL_OK;
}

/* `count` times one collective; concurrency and group as in `wanted`. */
static enum dl_code put_message(struct pipe *p, const char *name, struct dl_collective_request wanted, double count,
                                struct dl_err *err) {
    const struct dl_strategy_request *r = p->request;
    wanted.library = dl_replica_library(r->system, r->framework, &p->plan);
    wanted.flows_per_adapter = 1;
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(r->system, &wanted, &t, err));
    const double host_s = r->framework->collective_launch_s;
    p->messages[p->message_count++] = (struct dl_message){
        .name = name, .bytes = wanted.bytes * count, .duration_s = (t.time_s + host_s) * count,
        .latency_s = (t.latency_s + host_s) * count, .bandwidth_s = t.bandwidth_s * count, .sigma_log = t.sigma_log,
        .algorithm = t.algorithm, .protocol = t.protocol, .formula = t.formula, .limit = t.limit, .origin = t.origin,
        .extrapolated = t.extrapolated, .start_s = NAN, .end_s = NAN,
    };
    return DL_OK;
}

/* Activations between stages (the largest border sets the pace), and gradients of each stage among its replicas. Returns the
 * seconds that nothing hides: filling and draining the pipeline, and what an all-reduce takes beyond the cool-down. */
static enum dl_code communicate(struct pipe *p, double *p2p_s, double *exposed_s, struct dl_err *err) {
    const struct dl_strategy_request *r = p->request;
    const double v = virtual_stages(&p->plan), width = dl_precision_bytes(p->plan.precision);
    const int64_t replicas = p->plan.dp > 1 ? p->plan.dp : 1;
    p->messages = dl_arena_alloc(r->arena, (size_t)p->stages + 1, sizeof *p->messages);
    if (p->messages == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    double border = 0;
    for (int k = 1; k < p->parts; k++) border = fmax(border, dl_pipeline_cut_elements(r->workload, p->first[k]));
    *p2p_s = *exposed_s = 0;
    if (p->stages > 1) {
        const double count = 2 * v * p->micro_batches;
        const bool between = p->plan.pp > p->plan.devices_per_node; /* stages fill nodes: one border of a pipeline leaves a node */
        const struct dl_collective_request one = {.op = DL_COLL_P2P, .bytes = border * p->plan.micro_batch_samples * width,
                                                  .nodes = between ? 2 : 1, .ranks_per_node = between ? 1 : 2};
        DL_TRY(put_message(p, "activations and gradients between stages", one, count, err));
        *p2p_s = p->messages[0].duration_s / count;
        const double steps = p->plan.schedule == DL_ASYNC ? 0 : 2 * (p->parts - 1);
        const double late_s = fmax(0, 2 * v * *p2p_s - p->step_max_s); /* a border slower than the stage itself */
        *exposed_s = steps * *p2p_s + p->micro_batches * late_s;
    }
    struct dl_layer *layers = dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof *layers);
    if (layers == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    double sync_s = 0;
    for (int s = 0; replicas > 1 && s < p->stages; s++) {
        const struct dl_workload own = stage_workload(p, s, layers);
        const double bytes = own.parameters * (p->plan.precision == DL_MIXED ? r->framework->mixed_gradient_bytes
                                                                             : r->framework->gradient_bytes);
        const struct dl_collective_request sum = {
            .op = DL_COLL_ALL_REDUCE, .bytes = bytes, .nodes = p->plan.nodes, .ranks_per_node = p->plan.devices_per_node,
            .group_size = p->plan.pp > 1 ? replicas : 0, .group_stride = p->plan.pp, .concurrent = p->plan.pp};
        DL_TRY(put_message(p, "all-reduce of a stage", sum, 1, err));
        const double early_s = p->plan.schedule == DL_ASYNC ? 0 : s * p->step_max_s * 2 / 3; /* backward is two thirds */
        sync_s = fmax(sync_s, p->messages[p->message_count - 1].duration_s - early_s);
    }
    *exposed_s += sync_s;
    return DL_OK;
}

/* Costs of the slowest device over the iteration, for the judge and `explain`: others wait for it. */
static enum dl_code slowest_cost(const struct pipe *p, struct dl_cost *out, struct dl_err *err) {
    const int layers = p->request->workload->layer_count;
    out->layers = dl_arena_alloc(p->request->arena, (size_t)layers, sizeof *out->layers);
    if (out->layers == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    double own = 0, all = 0;
    for (int k = 0; k < p->parts; k++) {
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            const double elements = p->request->workload->layers[i].tied_to < 0 ? p->request->workload->layers[i].parameter_elements : 0;
            all += elements;
            if (k % p->stages != p->slowest) continue;
            own += elements;
            out->layers[i] = p->cost.layers[i];
            dl_cost_scale(&out->layers[i].forward, p->micro_batches);
            dl_cost_scale(&out->layers[i].backward, p->micro_batches);
        }
    }
    out->update = p->cost.update;
    dl_cost_scale(&out->update, all > 0 ? own / all : 0);
    return DL_OK;
}

static void compose(struct pipe *p, const struct dl_cost *cost, double exposed_s, double single_s, struct dl_prediction *out) {
    const struct dl_strategy_request *r = p->request;
    const double devices = (double)(p->plan.nodes * p->plan.devices_per_node);
    for (int i = 0; i < r->workload->layer_count; i++) {
        out->forward_s += cost->layers[i].forward.time_s;
        out->backward_s += cost->layers[i].backward.time_s;
    }
    out->update_s = cost->update.time_s;
    out->compute_s = out->forward_s + out->backward_s + out->update_s;
    out->bubble_s = p->step_max_s * dl_pipeline_bubble_steps(p->plan.schedule, p->stages, virtual_stages(&p->plan));
    out->exposed_comm_s = exposed_s;
    for (int m = 0; m < p->message_count; m++) {
        out->comm_s += p->messages[m].duration_s;
        out->comm_bytes += p->messages[m].bytes;
        out->comm_algorithm = p->messages[m].algorithm;
        out->comm_protocol = p->messages[m].protocol;
    }
    out->comm_s = fmax(out->comm_s, exposed_s);
    out->comm_messages = p->message_count;
    out->overhead_s = p->micro_batches * (p->step_max_s - p->compute_s[p->slowest]) + r->framework->iteration_s;
    if (devices > 1 && dl_known(r->system->jitter_frac)) {
        out->overhead_s += r->system->jitter_frac * dl_normal_expected_max(devices) * out->compute_s;
    }
    const struct dl_input_time input = dl_input_compute(r->system, r->workload, r->framework, &p->plan);
    const double step_s = out->compute_s + out->exposed_comm_s + out->bubble_s + out->overhead_s;
    out->input_s = input.pipeline_s + input.feed_s;
    out->exposed_input_s = input.feed_s + (r->framework->prefetch_batches > 0 ? fmax(0, input.pipeline_s - step_s) : input.pipeline_s);
    out->iteration_s = step_s + out->exposed_input_s;
    out->throughput_samples_per_s = p->plan.global_batch_samples / out->iteration_s;
    const double samples = p->plan.dataset_samples > 0 ? p->plan.dataset_samples : r->workload->epoch_samples;
    out->epoch_s = samples / out->throughput_samples_per_s;
    out->scaling_efficiency = single_s / p->stages / out->iteration_s;
}

static enum dl_code predict_pipe(struct pipe *p, struct dl_prediction *out, struct dl_err *err) {
    const struct dl_strategy_request *r = p->request;
    struct dl_cost cost;
    double p2p_s = 0, exposed_s = 0, single_s = 0;
    DL_TRY(dl_cost_compute(r->system->device, r->workload, r->framework, &p->plan, p->plan.micro_batch_samples, r->arena, &p->cost, err));
    DL_TRY(balance(p, err));
    DL_TRY(communicate(p, &p2p_s, &exposed_s, err));
    DL_TRY(slowest_cost(p, &cost, err));
    for (int s = 0; s < p->stages; s++) single_s += p->step_s[s] * p->micro_batches;
    struct dl_prediction result = {0};
    compose(p, &cost, exposed_s, single_s + p->cost.update.time_s, &result);
    const char *unknown_memory = NULL;
    DL_TRY(compute_memory(p, &result.memory, &unknown_memory, &result.max_batch_samples, err));
    result.fits = !dl_known(result.memory.capacity_bytes) || result.memory.total_bytes <= result.memory.capacity_bytes;
    struct dl_timeline t = {.period_s = result.iteration_s, .comm_s = result.comm_s, .update_start_s = NAN,
                            .exchange = {.messages = p->messages, .message_count = p->message_count}};
    t.forward_start_s = t.backward_start_s = dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof(double));
    if (t.forward_start_s == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < r->workload->layer_count; i++) t.forward_start_s[i] = NAN;
    const struct dl_parts parts = {.system = r->system, .workload = r->workload, .framework = r->framework, .plan = &p->plan,
                                   .cost = &cost, .with_comm = &t, .without_comm = &t, .arena = r->arena};
    dl_judge_bottleneck(&parts, &result);
    dl_judge_interval(&parts, &result);
    DL_TRY(dl_judge_warnings(&parts, unknown_memory, &result, err));
    if (r->options != NULL && r->options->terms) DL_TRY(dl_explain_terms(&parts, &result, err));
    *out = result;
    return DL_OK;
}

static enum dl_code predict(const struct dl_strategy_request *request, struct dl_prediction *out, struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    if (plan->pp <= 1 && plan->micro_batch_samples <= 0) { /* replicas of one device each */
        const struct dl_replica replica = {.request = request, .workload = request->workload, .plan = *plan,
                                           .samples = plan->batch_per_device_samples, .parts = 1, .exchange = plan->dp > 1};
        return dl_replica_predict(&replica, out, err);
    }
    struct pipe p = {.request = request, .plan = *plan, .stages = (int)plan->pp,
                     .parts = (int)((double)plan->pp * virtual_stages(plan))};
    p.plan.micro_batch_samples = micro_batch(plan);
    p.micro_batches = round(plan->batch_per_device_samples * (double)plan->pp / p.plan.micro_batch_samples);
    return predict_pipe(&p, out, err);
}

const struct dl_strategy dl_st_pipeline = {
    .name = "pipeline",
    .summary = "every device holds some consecutive layers; micro-batches flow through",
    .axes = DL_AXIS_PP,
    .check = check,
    .predict = predict,
};

const struct dl_strategy dl_st_data_pipeline = {
    .name = "data+pipeline",
    .summary = "pipeline inside a group, data across groups",
    .axes = DL_AXIS_DP | DL_AXIS_PP,
    .inside = DL_AXIS_PP,
    .check = check,
    .predict = predict,
};
