/* pipe.c - see pipe.h. Not here: what a plan may be, and what its prediction says besides times and
 * memory (st_pipeline.c). */
#include "model/engine/pipe.h"

#include <math.h>
#include <string.h>

#include "model/engine/memory.h"
#include "model/network/libraries/nccl.h"
#include "model/framework/workspace.h"
#include "model/framework/gradient_width.h"
#include "model/framework/host_dispatch.h"
#include "model/engine/pipeline.h"
#include "model/engine/schedule.h"
#include "model/engine/replica.h"

double dl_pipe_virtual_stages(const struct dl_plan *plan) {
    return dl_schedule_parts(plan->schedule, (double)plan->virtual_stages);
}

void dl_pipe_place(struct dl_pipe *p, const struct dl_plan *plan) {
    p->placing = dl_schedules[plan->schedule]->placing;
    p->stages = (int)plan->pp;
    p->parts =
        (int)((double)plan->pp * dl_pipe_virtual_stages(plan)) / dl_placing_chains(p->placing);
}

int64_t dl_pipe_replicas(const struct dl_pipe *p) {
    return (p->plan.dp > 1 ? p->plan.dp : 1) * dl_placing_chains(p->placing);
}

int dl_pipe_stage_parts(const struct dl_pipe *p) {
    return p->parts / p->stages * dl_placing_chains(p->placing);
}

int dl_pipe_part(const struct dl_pipe *p, int stage, int i) {
    return dl_placing_place(p->placing, p->stages, stage, i) % p->parts;
}

/* One micro-batch through layers [from, to), both ways, with the host's part where it is slower
 * than the device. */
static void add_part(const struct dl_predict_request *r, const struct dl_cost *cost, int from,
                     int to, double *compute_s, double *step_s) {
    const struct dl_device *device = r->system->device;
    const struct dl_framework *framework = r->framework;
    const double scale = dl_plan_compute_scale(r->plan);
    const double gap_s = dl_device_gap_s(device);
    double sum_s = 0, launches = 0;
    const struct dl_host_cost cost_of_host = dl_host_cost_of(framework, r->system, scale);
    struct dl_host_count host = {0};
    for (int i = from; i < to; i++) {
        const struct dl_layer_cost *layer = &cost->layers[i];
        sum_s += layer->forward.time_s + layer->backward.time_s;
        launches += layer->forward.launches + layer->backward.launches;
        dl_host_count_add(&host, &layer->forward.host, 1);
        dl_host_count_add(&host, &layer->backward.host, 1);
    }
    *compute_s += sum_s;
    *step_s +=
        fmax(sum_s + launches * gap_s * scale, launches * dl_dispatch_s(framework, device) * scale +
                                                   dl_host_count_s(&cost_of_host, &host));
}

double dl_pipe_step_s(const struct dl_predict_request *request, const struct dl_cost *cost,
                      int from, int to) {
    double compute_s = 0, step_s = 0;
    add_part(request, cost, from, to, &compute_s, &step_s);
    return step_s;
}

void dl_pipe_layer_steps(const struct dl_predict_request *request, const struct dl_cost *cost,
                         double *step_s) {
    for (int i = 0; i < request->workload->layer_count; i++)
        step_s[i] = dl_pipe_step_s(request, cost, i, i + 1);
}

void dl_pipe_room(struct dl_pipe *p, struct dl_arena *arena) {
    p->first = dl_arena_alloc(arena, (size_t)p->parts + 1, sizeof *p->first);
    p->step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->step_s);
    p->compute_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->compute_s);
    p->parameters = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->parameters);
    p->forward_step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof(double));
    p->backward_step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof(double));
    p->weights_step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof(double));
    p->sum_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->sum_s);
}

/* Host stalls of a stage's step divide between the directions as its kernels do. */
static void split_directions(struct dl_pipe *p, const struct dl_cost *cost, int stage) {
    double forward_s = 0, backward_s = 0, weights_s = 0;
    for (int n = 0; n < dl_pipe_stage_parts(p); n++) {
        const int k = dl_pipe_part(p, stage, n);
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            forward_s += cost->layers[i].forward.time_s;
            backward_s += cost->layers[i].backward.time_s;
            weights_s += cost->layers[i].backward.weights_s;
        }
    }
    const double both_s = forward_s + backward_s;
    p->forward_step_s[stage] = p->step_s[stage] * (both_s > 0 ? forward_s / both_s : 0.5);
    p->backward_step_s[stage] = p->step_s[stage] - p->forward_step_s[stage];
    p->weights_step_s[stage] =
        p->backward_step_s[stage] * (backward_s > 0 ? weights_s / backward_s : 0);
    if (stage != p->slowest) return;
    p->forward_s = forward_s / dl_placing_chains(p->placing);
    p->backward_s = backward_s / dl_placing_chains(p->placing);
}

void dl_pipe_split(struct dl_pipe *p, const struct dl_predict_request *request,
                   const struct dl_cost *cost) {
    const struct dl_layer *layers = request->workload->layers;
    double most = 0, all = 0;
    p->slowest = 0;
    p->boundary_elements = 0;
    for (int s = 0; s < p->stages; s++) p->step_s[s] = p->compute_s[s] = p->parameters[s] = 0;
    for (int k = 1; k < p->parts; k++)
        p->boundary_elements = fmax(p->boundary_elements, p->cut_elements[p->first[k]]);
    for (int s = 0; s < p->stages; s++) {
        for (int n = 0; n < dl_pipe_stage_parts(p); n++) {
            const int k = dl_pipe_part(p, s, n);
            add_part(request, cost, p->first[k], p->first[k + 1], &p->compute_s[s], &p->step_s[s]);
            for (int i = p->first[k]; i < p->first[k + 1]; i++) {
                if (layers[i].tied_to < 0) p->parameters[s] += layers[i].parameter_elements;
            }
        }
        p->compute_s[s] /= dl_placing_chains(p->placing);
        p->step_s[s] /= dl_placing_chains(p->placing);
    }
    for (int s = 0; s < p->stages; s++) {
        if (p->step_s[s] > p->step_s[p->slowest]) p->slowest = s;
        most = fmax(most, p->parameters[s]);
        all += p->parameters[s];
    }
    for (int s = 0; s < p->stages; s++) split_directions(p, cost, s);
    p->step_max_s = p->step_s[p->slowest];
    p->update_s = cost->update.time_s * (all > 0 ? most * dl_placing_chains(p->placing) / all : 0);
}

struct dl_workload dl_pipe_stage_workload(const struct dl_pipe *p, int stage,
                                          struct dl_layer *room) {
    const struct dl_layer *all = p->request->workload->layers;
    struct dl_workload own = *p->request->workload;
    const bool together = dl_pipe_stage_parts(p) == 1; /* its layers follow each other */
    own.layers = together ? all + p->first[stage] : room;
    own.layer_count = 0;
    own.parameters = own.frozen_elements = own.buffer_elements = 0;
    own.parameter_tensors = 0;
    for (int n = 0; n < dl_pipe_stage_parts(p); n++) {
        const int k = dl_pipe_part(p, stage, n);
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            if (!together) room[own.layer_count] = all[i];
            own.layer_count++;
            own.buffer_elements += all[i].buffer_elements;
            own.frozen_elements += all[i].frozen_elements;
            if (all[i].tied_to >= 0) continue;
            own.parameters += all[i].parameter_elements;
            own.parameter_tensors += all[i].parameter_count;
        }
    }
    if (dl_known(own.transformer_layers)) own.transformer_layers /= p->stages;
    if (stage > 0) own.input_bytes_per_sample = 0;
    return own;
}

/* The plan for a stage's memory: buffers for gradient synchronization only where there is any. */
static struct dl_plan memory_plan(const struct dl_pipe *p) {
    struct dl_plan plan = p->plan;
    plan.nodes = plan.devices_per_node = dl_pipe_replicas(p) > 1 ? 2 : 1;
    return plan;
}

void dl_pipe_hold(const struct dl_pipe *p, const struct dl_workload *own, double held,
                  struct dl_memory *out, const char **unknown) {
    const struct dl_plan plan = memory_plan(p);
    dl_memory_compute(p->request->system, own, p->request->framework, &plan,
                      held * plan.micro_batch_samples, out, unknown);
}

void dl_pipe_add_schedule(const struct dl_pipe *p, int stage, const struct dl_workload *own,
                          struct dl_memory *memory) {
    const struct dl_plan *plan = &p->plan;
    /* an asynchronous stage keeps its weights of every micro-batch in flight */
    const double versions = dl_schedules[plan->schedule]->asynchronous ? p->stages - stage - 1 : 0;
    const double stash =
        versions * own->parameters * dl_memory_weight_bytes(plan->precision, plan->master_weights);
    const double boundaries =
        4 * p->cut_elements[p->first[stage]] * plan->micro_batch_samples *
        dl_precision_bytes(plan->precision); /* in and out, activation and gradient */
    memory->weights_bytes += stash;
    memory->buffers_bytes += boundaries;
    memory->total_bytes +=
        (stash + boundaries) / (1 - dl_fragmentation_frac(p->request->framework));
}

double dl_pipe_stage_memory(const struct dl_pipe *p, int stage, double held,
                            struct dl_layer *layers, struct dl_memory *out, const char **unknown,
                            bool most_too) {
    const struct dl_workload own = dl_pipe_stage_workload(p, stage, layers);
    const struct dl_plan plan = memory_plan(p);
    dl_pipe_hold(p, &own, held, out, unknown);
    dl_pipe_add_schedule(p, stage, &own, out);
    return most_too
               ? dl_memory_max_batch(p->request->system, &own, p->request->framework, &plan, NULL)
               : NAN;
}

double dl_pipe_held(const struct dl_pipe *p, int stage) {
    return dl_schedules[p->plan.schedule]->held(stage, p->stages, p->micro_batches,
                                                dl_pipe_virtual_stages(&p->plan)) /
           dl_placing_chains(p->placing);
}

void dl_pipe_memory(const struct dl_pipe *p, struct dl_layer *layers, struct dl_memory *out,
                    const char **unknown, double *samples_max) {
    out->total_bytes = -1;
    double samples = HUGE_VAL;
    for (int s = 0; s < p->stages; s++) {
        const double held = dl_pipe_held(p, s);
        struct dl_memory m;
        /* samples held at once */
        const double most =
            dl_pipe_stage_memory(p, s, held, layers, &m, unknown, samples_max != NULL);
        if (dl_known(most))
            samples = fmin(samples, floor(most / held) * p->micro_batches / p->stages);
        if (m.total_bytes > out->total_bytes) *out = m;
    }
    if (samples_max != NULL) *samples_max = samples < HUGE_VAL ? samples : NAN;
}

/* `count` times one collective; concurrency and group as in `wanted`. */
static enum dl_code put_message(struct dl_pipe *p, const char *name,
                                struct dl_collective_request wanted, double count,
                                double *duration_s, struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    wanted.library = dl_replica_library(r->system, r->framework, &p->plan);
    struct dl_collective_time t;
    DL_TRY(dl_collective_time(r->system, &wanted, &t, err));
    const double host_s = r->framework->sync.collective_launch_s;
    *duration_s = (t.time_s + host_s) * count;
    if (p->messages == NULL) return DL_OK;
    p->messages[p->message_count++] = (struct dl_message){
        .name = name,
        .bytes = wanted.bytes * count,
        .duration_s = *duration_s,
        .latency_s = (t.latency_s + host_s) * count,
        .bandwidth_s = t.bandwidth_s * count,
        .sigma_log = t.sigma_log,
        .algorithm = t.algorithm,
        .protocol = t.protocol,
        .formula = t.formula,
        .limit = t.limit,
        .origin = t.origin,
        .extrapolated = t.extrapolated,
        .start_s = NAN,
        .end_s = NAN,
    };
    return DL_OK;
}

/* A micro-batch's activations or gradients across the largest boundary, with the host's part. */
static enum dl_code time_boundary(struct dl_pipe *p, double *message_s, double *all_s,
                                  struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    const double count = 2.0 * p->parts / p->stages * p->micro_batches;
    *message_s = *all_s = 0;
    if (p->stages <= 1) return DL_OK;
    /* stages fill nodes: one boundary of a pipeline leaves a node */
    struct dl_collective_request one = {
        .op = DL_COLL_P2P,
        .library = dl_replica_library(r->system, r->framework, &p->plan),
        .bytes = p->boundary_elements * p->plan.micro_batch_samples *
                 dl_precision_bytes(p->plan.precision)};
    dl_collective_neighbours(r->system, p->plan.nodes, p->plan.devices_per_node, p->plan.pp, 1,
                             &one);
    DL_TRY(put_message(p, "activations and gradients between stages", one, count, all_s, err));
    *message_s = *all_s / count;
    return DL_OK;
}

/* F-FW-IDEAL: an all-reduce of the bound takes the cheapest way. */
static enum dl_code cheapest_s(const struct dl_pipe *p, double bytes, double *duration_s,
                               struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    struct dl_plan plan = p->plan;
    plan.tp = plan.pp; /* replicas of a stage are so far apart */
    plan.pp = plan.sp = 1;
    const struct dl_gradient_sync_request request = {
        .system = r->system,
        .workload = r->workload,
        .framework = r->framework,
        .plan = &plan,
        .total_bytes = bytes,
        .library = dl_replica_library(r->system, r->framework, &p->plan)};
    struct dl_message m;
    DL_TRY(dl_gradient_sync_cheapest(&request, &m, err));
    if (m.bytes > 0) *duration_s = fmin(*duration_s, bytes / m.bytes * m.duration_s);
    return DL_OK;
}

/* Gradients of each stage among its replicas. */
static enum dl_code sum_gradients(struct dl_pipe *p, double *comm_s, struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    const int64_t replicas = dl_pipe_replicas(p),
                  apart = p->plan.pp / dl_placing_chains(p->placing);
    struct dl_nccl_memo memo = {.system = NULL};
    const double gradient_bytes =
        dl_framework_gradient_width(r->framework, p->plan.precision).sent_bytes;
    for (int s = 0; s < p->stages; s++) p->sum_s[s] = 0;
    for (int s = 0; replicas > 1 && s < p->stages; s++) {
        const double bytes = p->parameters[s] * gradient_bytes;
        const struct dl_collective_request sum = {.op = DL_COLL_ALL_REDUCE,
                                                  .bytes = bytes,
                                                  .nodes = p->plan.nodes,
                                                  .ranks_per_node = p->plan.devices_per_node,
                                                  .group_size = p->plan.pp > 1 ? replicas : 0,
                                                  .group_stride = apart,
                                                  .concurrent = apart,
                                                  .memo = &memo};
        DL_TRY(put_message(p, "all-reduce of a stage", sum, 1, &p->sum_s[s], err));
        if (dl_framework_is_bound(r->framework)) DL_TRY(cheapest_s(p, bytes, &p->sum_s[s], err));
        *comm_s += p->sum_s[s];
    }
    return DL_OK;
}

struct dl_pipeline_order dl_pipe_order(const struct dl_pipe *p) {
    return (struct dl_pipeline_order){.schedule = p->plan.schedule,
                                      .stages = p->stages,
                                      .parts = (int)dl_pipe_virtual_stages(&p->plan),
                                      .micro_batches = (int)p->micro_batches,
                                      .forward_s = p->forward_step_s,
                                      .backward_s = p->backward_step_s,
                                      .weights_s = p->weights_step_s,
                                      .message_s = p->message_s};
}

/* What the slowest device does for a micro-batch; of the bound each one: no cut is more even. */
struct share {
    double step_s, forward_s, backward_s, compute_s;
};

static struct share share_of(const struct dl_pipe *p) {
    const int slowest = p->slowest;
    struct share mean = {0};
    if (!dl_framework_is_bound(p->request->framework))
        return (struct share){p->step_s[slowest], p->forward_s, p->backward_s,
                              p->compute_s[slowest]};
    for (int s = 0; s < p->stages; s++) {
        const double stage = 1.0 / p->stages,
                     busy = p->step_s[s] > 0 ? p->compute_s[s] / p->step_s[s] : 0;
        mean.step_s += stage * p->step_s[s];
        mean.forward_s += stage * busy * p->forward_step_s[s];
        mean.backward_s += stage * busy * p->backward_step_s[s];
        mean.compute_s += stage * p->compute_s[s];
    }
    return mean;
}

static void count_compute(const struct dl_pipe *p, double span_s, struct dl_evidence *e) {
    const struct share own = share_of(p);
    *e = (struct dl_evidence){.forward_s = p->micro_batches * own.forward_s,
                              .backward_s = p->micro_batches * own.backward_s,
                              .update_s = p->update_s,
                              .bubble_s = fmax(0, span_s - p->micro_batches * own.step_s),
                              .host_s = p->micro_batches * fmax(0, own.step_s - own.compute_s) +
                                        p->request->framework->host.iteration_s};
}

/* F-FW-IDEAL: no cut into as many stages takes less. */
static double bound_span_s(const struct dl_pipe *p) {
    const double stage_s = share_of(p).step_s, busy_s = p->micro_batches * stage_s;
    if (!dl_schedule_waits(p->plan.schedule)) return busy_s;
    return fmax(busy_s,
                dl_pipeline_least_of_any_s(p->stages * stage_s, p->stages,
                                           dl_pipe_virtual_stages(&p->plan), p->micro_batches));
}

enum dl_code dl_pipe_least(struct dl_pipe *p, bool messages, struct dl_evidence *e,
                           struct dl_err *err) {
    struct dl_pipeline_order order = dl_pipe_order(p);
    const bool bound = dl_framework_is_bound(p->request->framework);
    double all_s;
    order.message_s = 0;
    if (messages && !bound) DL_TRY(time_boundary(p, &order.message_s, &all_s, err));
    count_compute(p, bound ? bound_span_s(p) : dl_pipeline_least_s(&order, p->micro_batches), e);
    return DL_OK;
}

/* F-PIPE-BUBBLE: while others work, the slowest stage waits. Messages expose by how much the
 * pipeline takes longer with them, and all-reduces what is left of them after its end. The bound
 * hides messages, and all-reduces up to the time of the pipeline (F-FW-IDEAL). together: what
 * messages expose may count as waiting. */
static enum dl_code run_pipeline(struct dl_pipe *p, bool together, struct dl_arena *arena,
                                 struct dl_evidence *e, struct dl_err *err) {
    struct dl_pipeline_order order = dl_pipe_order(p);
    const bool bound = dl_framework_is_bound(p->request->framework);
    struct dl_pipeline_spans spans;
    double comm_s;
    DL_TRY(time_boundary(p, &order.message_s, &comm_s, err));
    DL_TRY(sum_gradients(p, &comm_s, err));
    p->message_s = bound ? 0 : order.message_s;
    if (bound) {
        spans.quiet_s = spans.end_s = bound_span_s(p);
        for (int s = 0; s < p->stages; s++) spans.end_s = fmax(spans.end_s, p->sum_s[s]);
    } else {
        spans = dl_pipeline_spans_of(&order, p->micro_batches, p->sum_s, !together, arena);
    }
    count_compute(p, spans.quiet_s, e);
    e->exposed_comm_s = fmax(0, spans.end_s - spans.quiet_s);
    e->comm_s = fmax(comm_s, e->exposed_comm_s);
    return DL_OK;
}

static enum dl_code evidence_of(struct dl_pipe *p, bool together, struct dl_evidence *e,
                                struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    struct dl_arena scratch = {0};
    const enum dl_code code = run_pipeline(p, together, &scratch, e, err);
    dl_arena_free(&scratch);
    DL_TRY(code);
    e->straggler_frac = dl_straggler_frac(r->system, r->framework, &p->plan);
    const struct dl_input_time input =
        dl_input_compute(r->system, r->workload, r->framework, &p->plan);
    dl_compose_input(&input, r->framework, 0, e);
    return DL_OK;
}

enum dl_code dl_pipe_evidence(struct dl_pipe *p, struct dl_evidence *e, struct dl_err *err) {
    return evidence_of(p, false, e, err);
}

enum dl_code dl_pipe_iteration(struct dl_pipe *p, struct dl_iteration *out, struct dl_err *err) {
    struct dl_evidence e;
    DL_TRY(evidence_of(p, true, &e, err));
    dl_compose_iteration(&e, out);
    return DL_OK;
}
