/* st_pipeline.c - pipeline: consecutive layers on every device, alone or with replicas of the
 * pipeline. F-PIPE-GPIPE. */
#include <math.h>

#include "model/engine/pipe.h"
#include "model/engine/pipeline.h"
#include "model/engine/pipeline_course.h"
#include "model/engine/diagnose.h"
#include "model/engine/memory.h"
#include "model/engine/memory_course.h"
#include "model/engine/prediction_internal.h"

struct pipe {
    struct dl_pipe p;
    struct dl_cost cost; /* of one micro-batch, all layers */
};

/* Without --micro-batch: four for each stage, at most one a sample. */
static double micro_batch(const struct dl_plan *plan) {
    const double samples = plan->batch_per_device_samples * (double)plan->pp;
    if (plan->micro_batch_samples > 0) return fmin(plan->micro_batch_samples, samples);
    return samples / fmax(1, floor(fmin(samples, 4 * (double)plan->pp)));
}

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err) {
    (void)system, (void)framework;
    struct dl_pipe pipe;
    dl_pipe_place(&pipe, plan);
    const double parts = pipe.parts, samples = plan->batch_per_device_samples * (double)plan->pp;
    if (plan->assume == DL_ASSUME_PARADL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--assume paradl: for strategies data, filter, channel and their products");
    }
    if (plan->sequence_parallel)
        return dl_fail(err, DL_ERR_USAGE, "--sequence-parallel: goes with tensor parallelism");
    if (parts > workload->layer_count) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--pp %lld: %s has %d layers for %.0f parts of the pipeline; nearest is "
                       "--pp %d (scaling limit)",
                       (long long)plan->pp, workload->name, workload->layer_count, parts,
                       (int)(workload->layer_count * (double)plan->pp / parts));
    }
    if (plan->micro_batch_samples > samples) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--micro-batch %g: a pipeline has %g samples an iteration; nearest is --micro-batch %g",
            plan->micro_batch_samples, samples, samples);
    }
    const double count = samples / micro_batch(plan);
    if (fabs(count - round(count)) > 1e-6 * count) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--micro-batch %g does not divide the %g samples of a pipeline",
                       micro_batch(plan), samples);
    }
    if (dl_schedules[plan->schedule]->in_groups && fmod(round(count), (double)plan->pp) > 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--schedule %s: %.0f micro-batches are no multiple of --pp %lld; nearest is "
                       "--micro-batch %g",
                       dl_schedule_names[plan->schedule], count, (long long)plan->pp,
                       samples / (ceil(count / (double)plan->pp) * (double)plan->pp));
    }
    return dl_schedule_check(plan->schedule, (double)plan->virtual_stages, (double)plan->pp,
                             round(count), err);
}

static void balance(struct pipe *pipe) {
    struct dl_pipe *p = &pipe->p;
    const struct dl_predict_request *r = p->request;
    const int layers = r->workload->layer_count;
    double *step_s = dl_arena_alloc(r->arena, (size_t)layers, sizeof *step_s);
    double *cuts = dl_arena_alloc(r->arena, (size_t)layers + 1, sizeof *cuts);
    double *work = dl_arena_alloc(r->arena, DL_PIPELINE_WORK(layers, p->parts), sizeof *work);
    p->messages = dl_arena_alloc(r->arena, (size_t)p->stages + 1, sizeof *p->messages);
    dl_pipe_room(p, r->arena);
    dl_pipe_layer_steps(r, &pipe->cost, step_s);
    dl_pipeline_balance(step_s, layers, p->parts, p->first, work);
    dl_pipeline_cuts(r->workload, cuts);
    p->cut_elements = cuts;
    dl_pipe_split(p, r, &pipe->cost);
}

/* Costs of the slowest device over the iteration, for the diagnosis and `explain`: others wait for
 * it. The update is that of the device with the most parameters, which need not be the same one
 * (F-PARADL: max WU). */
static void slowest_cost(const struct pipe *pipe, struct dl_cost *out) {
    const struct dl_pipe *p = &pipe->p;
    const int layers = p->request->workload->layer_count;
    out->layers = dl_arena_alloc(p->request->arena, (size_t)layers, sizeof *out->layers);
    const double times = p->micro_batches / dl_placing_chains(p->placing);
    for (int n = 0; n < dl_pipe_stage_parts(p); n++) {
        const int k = dl_pipe_part(p, p->slowest, n);
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            out->layers[i] = pipe->cost.layers[i];
            dl_cost_scale(&out->layers[i].forward, times);
            dl_cost_scale(&out->layers[i].backward, times);
        }
    }
    out->accumulation = (struct dl_pass_cost){0}; /* F-PARADL counts none */
    out->update = pipe->cost.update;
    dl_cost_scale(&out->update, out->update.time_s > 0 ? p->update_s / out->update.time_s : 0);
}

static void describe_comm(const struct dl_pipe *p, struct dl_prediction *out) {
    for (int m = 0; m < p->message_count; m++) {
        out->messages.bytes += p->messages[m].bytes;
        out->messages.algorithm = p->messages[m].algorithm;
        out->messages.protocol = p->messages[m].protocol;
    }
    out->messages.count = p->message_count;
}

/* One device that computes a device's share of the pipeline's samples. */
static double alone_s(const struct pipe *pipe) {
    const struct dl_pipe *p = &pipe->p;
    const struct dl_framework *framework = p->request->framework;
    double step_s = pipe->cost.update.time_s + framework->host.iteration_s;
    for (int s = 0; s < p->stages; s++) step_s += p->step_s[s] * p->micro_batches;
    struct dl_plan one = p->plan;
    one.nodes = one.devices_per_node = 1;
    one.batch_per_device_samples *= p->stages;
    const struct dl_input_time input =
        dl_input_compute(p->request->system, p->request->workload, framework, &one);
    return (step_s + dl_compose_exposed_input_s(input.pipeline_s, input.feed_s,
                                                framework->input.prefetch_batches > 0, step_s)) /
           p->stages;
}

/* What one pass of a stage computes, of equal parts. */
static struct dl_pass_work work_of(const struct pipe *pipe, int stage) {
    const struct dl_pipe *p = &pipe->p;
    const double parts = dl_pipe_stage_parts(p);
    const bool splits = dl_schedules[p->plan.schedule]->splits_backward;
    struct dl_pass_work out = {.flop = {0}};
    for (int n = 0; n < dl_pipe_stage_parts(p); n++) {
        const int k = dl_pipe_part(p, stage, n);
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            const struct dl_layer_cost *layer = &pipe->cost.layers[i];
            const double weights = splits && layer->backward.time_s > 0
                                       ? layer->backward.weights_s / layer->backward.time_s
                                       : 0;
            const double shares[DL_PASS_KINDS] = {1, 1 - weights, weights};
            for (int pass = 0; pass < DL_PASS_KINDS; pass++) {
                const struct dl_pass_cost *cost =
                    pass == DL_PASS_FORWARD ? &layer->forward : &layer->backward;
                out.flop[pass] += shares[pass] * cost->flop / parts;
                out.moved_bytes[pass] += shares[pass] * cost->bytes / parts;
            }
        }
    }
    return out;
}

/* Gradients of each stage, then the update. */
static void add_end(const struct dl_pipe *p, const struct dl_pipeline_passes *passes,
                    struct dl_task_list *out) {
    /* the last messages, where there are replicas */
    const struct dl_message *sums =
        p->messages + (dl_pipe_replicas(p) > 1 ? p->message_count - p->stages : 0);
    const double *sum_s = p->sum_s;
    double end_s = 0, most = 0;
    for (int s = 0; s < p->stages; s++) {
        end_s = fmax(end_s, dl_pipeline_stage_end_s(passes, s) + sum_s[s]);
        most = fmax(most, p->parameters[s]);
    }
    for (int s = 0; s < p->stages; s++) {
        const double start_s = dl_pipeline_stage_end_s(passes, s),
                     update_s = most > 0 ? p->update_s * p->parameters[s] / most : 0;
        if (sum_s[s] > 0)
            out->list[out->count++] = (struct dl_term){.name = "all-reduce of gradients",
                                                       .group = "communication",
                                                       .formula = sums[s].formula,
                                                       .origin = sums[s].origin,
                                                       .start_s = start_s,
                                                       .value = sum_s[s],
                                                       .sigma_log = sums[s].sigma_log,
                                                       .lane = "communication",
                                                       .bytes = sums[s].bytes,
                                                       .collective = "all_reduce",
                                                       .critical = start_s + sum_s[s] >= end_s,
                                                       .stage = s};
        if (update_s > 0)
            out->list[out->count++] = dl_pipeline_update(p->request->system->device, s, end_s,
                                                         update_s, p->parameters[s] >= most);
    }
}

/* Tasks of all stages, and their memory (F-MEM-COURSE). */
static enum dl_code follow_stages(const struct pipe *pipe, struct dl_prediction *out,
                                  struct dl_err *err) {
    const struct dl_pipe *p = &pipe->p;
    struct dl_arena *arena = p->request->arena;
    const struct dl_pipeline_order order = dl_pipe_order(p);
    const size_t stages = (size_t)p->stages;
    struct dl_layer *layers =
        dl_arena_alloc(arena, (size_t)p->request->workload->layer_count, sizeof *layers);
    struct dl_pass_memory *each = dl_arena_alloc(arena, stages, sizeof *each);
    struct dl_memory *memory = dl_arena_alloc(arena, stages, sizeof *memory);
    struct dl_pass_work *work = dl_arena_alloc(arena, stages, sizeof *work);
    struct dl_pipeline_passes passes;
    struct dl_task_list tasks;
    const char *unknown;
    for (int s = 0; s < p->stages; s++) {
        const double held = dl_pipe_held(p, s);
        dl_pipe_stage_memory(p, s, held, layers, &memory[s], &unknown, false);
        each[s].kept_bytes = memory[s].activations_bytes / held / order.parts;
        each[s].splits = dl_schedules[order.schedule]->splits_backward;
        work[s] = work_of(pipe, s);
    }
    DL_TRY(dl_pipeline_list(&order, DL_PASSES_SHOWN, p->sum_s, arena, &passes, err));
    dl_memory_course_of_stages(&passes, each, memory, arena, &out->course);
    dl_pipeline_tasks(
        &passes, work,
        &(struct dl_pipeline_texts){
            .formula = "F-PIPE-ORDER",
            .message_formula = p->messages[0].formula,
            .inputs = dl_arena_printf(arena, "%g samples", p->plan.micro_batch_samples),
            .origin = p->request->system->device->name,
            .message_bytes = p->boundary_elements * p->plan.micro_batch_samples *
                             dl_precision_bytes(p->plan.precision)},
        2 * p->stages, arena, &tasks);
    add_end(p, &passes, &tasks);
    out->course.tasks = tasks.list;
    out->course.task_count = tasks.count;
    return DL_OK;
}

/* Layers have no place on a common timeline: `explain` shows them without. */
static enum dl_code explain(const struct pipe *pipe, const struct dl_cost *cost,
                            struct dl_prediction *out, struct dl_err *err) {
    const struct dl_pipe *p = &pipe->p;
    const struct dl_predict_request *r = p->request;
    struct dl_timeline t = {.period_s = out->iteration_s,
                            .comm_s = out->comm_s,
                            .update_start_s = NAN,
                            .sync = {.messages = p->messages, .message_count = p->message_count}};
    t.forward_start_s = t.backward_start_s =
        dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof(double));
    for (int i = 0; i < r->workload->layer_count; i++) t.forward_start_s[i] = NAN;
    const struct dl_prediction_inputs parts = {.system = r->system,
                                               .workload = r->workload,
                                               .framework = r->framework,
                                               .plan = &p->plan,
                                               .cost = cost,
                                               .with_comm = &t,
                                               .without_comm = &t,
                                               .arena = r->arena};
    dl_explain_terms(&parts, out);
    return follow_stages(pipe, out, err);
}

static enum dl_code predict_pipe(struct pipe *pipe, struct dl_prediction *out, struct dl_err *err) {
    struct dl_pipe *p = &pipe->p;
    const struct dl_predict_request *r = p->request;
    struct dl_cost cost;
    struct dl_evidence evidence;
    DL_TRY(dl_cost_compute(&(struct dl_cost_request){r->system->device, r->workload, r->framework,
                                                     &p->plan, p->plan.micro_batch_samples},
                           r->arena, &pipe->cost, err));
    balance(pipe);
    slowest_cost(pipe, &cost);
    DL_TRY(dl_pipe_evidence(p, &evidence, err));
    dl_evidence_of_cost(&cost, r->workload->layer_count, 1, &evidence);
    dl_evidence_of_messages(p->messages, p->message_count, false, &evidence);
    dl_evidence_serial_path(&evidence);
    struct dl_prediction result = {0};
    dl_compose(&evidence, r->workload, &p->plan, alone_s(pipe), &result);
    describe_comm(p, &result);
    struct dl_layer *layers =
        dl_arena_alloc(r->arena, (size_t)r->workload->layer_count, sizeof *layers);
    struct dl_diagnosis diagnosis = {.system = r->system,
                                     .framework = r->framework,
                                     .plan = &p->plan,
                                     .evidence = &evidence,
                                     .arena = r->arena};
    for (int m = 0; m < p->message_count; m++)
        diagnosis.messages_extrapolated =
            diagnosis.messages_extrapolated || p->messages[m].extrapolated;
    dl_pipe_memory(p, layers, &result.memory, &diagnosis.unknown_memory, &result.max_batch_samples);
    result.fits = dl_memory_fits(&result.memory);
    dl_diagnose(&diagnosis, &result);
    if (r->options != NULL && r->options->terms) DL_TRY(explain(pipe, &cost, &result, err));
    *out = result;
    return DL_OK;
}

static enum dl_code predict(const struct dl_predict_request *request, struct dl_prediction *out,
                            struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    struct pipe pipe = {.p = {.request = request, .plan = *plan}};
    dl_pipe_place(&pipe.p, plan);
    pipe.p.plan.micro_batch_samples = micro_batch(plan);
    pipe.p.micro_batches =
        round(plan->batch_per_device_samples * (double)plan->pp / pipe.p.plan.micro_batch_samples);
    return predict_pipe(&pipe, out, err);
}

const struct dl_strategy dl_st_pipeline = {
    .name = "pipeline",
    .partitioning = DL_PARTITION_STAGES,
    .summary = "every device holds some consecutive layers; micro-batches flow through",
    .axes = DL_AXIS_PP,
    .check = check,
    .predict = predict,
};

const struct dl_strategy dl_st_data_pipeline = {
    .name = "data+pipeline",
    .partitioning = DL_PARTITION_STAGES,
    .summary = "pipeline inside a group, data across groups",
    .axes = DL_AXIS_DP | DL_AXIS_PP,
    .inside = DL_AXIS_PP,
    .check = check,
    .predict = predict,
};
