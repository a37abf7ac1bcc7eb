/* pipe.c - see pipe.h. Not here: what a plan may be, and what its prediction says besides times and
 * memory (st_pipeline.c). */
#include "model/engine/pipe.h"

#include <math.h>
#include <string.h>

#include "model/engine/memory.h"
#include "model/network/libraries/nccl.h"
#include "model/framework/gradient_width.h"
#include "model/framework/host_dispatch.h"
#include "model/engine/pipeline.h"
#include "model/engine/replica.h"

double dl_pipe_virtual_stages(const struct dl_plan *plan) {
    if (plan->schedule != DL_INTERLEAVED) return 1;
    return plan->virtual_stages > 0 ? (double)plan->virtual_stages : 2;
}

/* One micro-batch through layers [from, to), both ways, with the host's part where it is slower
 * than the device. */
static void add_part(const struct dl_predict_request *r, const struct dl_cost *cost, int from,
                     int to, double *compute_s, double *step_s) {
    const struct dl_device *device = r->system->device;
    const struct dl_framework *framework = r->framework;
    const double scale = dl_plan_compute_scale(r->plan);
    const double gap_s = dl_known(device->kernel_gap_s) ? device->kernel_gap_s : 0;
    double sum_s = 0, launches = 0;
    for (int i = from; i < to; i++) {
        const struct dl_layer_cost *layer = &cost->layers[i];
        sum_s += layer->forward.time_s + layer->backward.time_s;
        launches += layer->forward.launches + layer->backward.launches;
    }
    *compute_s += sum_s;
    *step_s +=
        fmax(sum_s + launches * gap_s * scale, launches * dl_dispatch_s(framework, device) * scale);
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

enum dl_code dl_pipe_room(struct dl_pipe *p, struct dl_arena *arena, struct dl_err *err) {
    p->first = dl_arena_alloc(arena, (size_t)p->parts + 1, sizeof *p->first);
    p->step_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->step_s);
    p->compute_s = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->compute_s);
    p->parameters = dl_arena_alloc(arena, (size_t)p->stages, sizeof *p->parameters);
    const bool all =
        p->first != NULL && p->step_s != NULL && p->compute_s != NULL && p->parameters != NULL;
    return all ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}

void dl_pipe_split(struct dl_pipe *p, const struct dl_predict_request *request,
                   const struct dl_cost *cost) {
    const struct dl_layer *layers = request->workload->layers;
    double most = 0, all = 0;
    p->slowest = 0;
    p->boundary_elements = p->forward_s = p->backward_s = 0;
    for (int s = 0; s < p->stages; s++) p->step_s[s] = p->compute_s[s] = p->parameters[s] = 0;
    for (int k = 0; k < p->parts; k++) { /* part k is on device k mod stages */
        const int stage = k % p->stages;
        add_part(request, cost, p->first[k], p->first[k + 1], &p->compute_s[stage],
                 &p->step_s[stage]);
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            if (layers[i].tied_to < 0) p->parameters[stage] += layers[i].parameter_elements;
        }
        if (k > 0) p->boundary_elements = fmax(p->boundary_elements, p->cut_elements[p->first[k]]);
    }
    for (int s = 0; s < p->stages; s++) {
        if (p->step_s[s] > p->step_s[p->slowest]) p->slowest = s;
        most = fmax(most, p->parameters[s]);
        all += p->parameters[s];
    }
    for (int k = p->slowest; k < p->parts; k += p->stages) {
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            p->forward_s += cost->layers[i].forward.time_s;
            p->backward_s += cost->layers[i].backward.time_s;
        }
    }
    p->step_max_s = p->step_s[p->slowest];
    p->update_s = cost->update.time_s * (all > 0 ? most / all : 0);
}

struct dl_workload dl_pipe_stage_workload(const struct dl_pipe *p, int stage,
                                          struct dl_layer *room) {
    const struct dl_layer *all = p->request->workload->layers;
    struct dl_workload own = *p->request->workload;
    const bool together = p->parts == p->stages; /* its layers follow each other */
    own.layers = together ? all + p->first[stage] : room;
    own.layer_count = 0;
    own.parameters = own.buffer_elements = 0;
    own.parameter_tensors = 0;
    for (int k = stage; k < p->parts; k += p->stages) {
        for (int i = p->first[k]; i < p->first[k + 1]; i++) {
            if (!together) room[own.layer_count] = all[i];
            own.layer_count++;
            own.buffer_elements += all[i].buffer_elements;
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
    plan.nodes = plan.devices_per_node = plan.dp > 1 ? 2 : 1;
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
    const double versions = dl_pipeline_weight_versions(plan->schedule, stage, p->stages) - 1;
    const double stash =
        versions * own->parameters * dl_memory_weight_bytes(plan->precision, plan->master_weights);
    const double boundaries =
        4 * p->cut_elements[p->first[stage]] * plan->micro_batch_samples *
        dl_precision_bytes(plan->precision); /* in and out, activation and gradient */
    memory->weights_bytes += stash;
    memory->buffers_bytes += boundaries;
    memory->total_bytes +=
        (stash + boundaries) / (1 - p->request->framework->memory.fragmentation_frac);
}

double dl_pipe_stage_memory(const struct dl_pipe *p, int stage, double held,
                            struct dl_layer *layers, struct dl_memory *out, const char **unknown,
                            bool most_too) {
    const struct dl_workload own = dl_pipe_stage_workload(p, stage, layers);
    const struct dl_plan plan = memory_plan(p);
    dl_pipe_hold(p, &own, held, out, unknown);
    dl_pipe_add_schedule(p, stage, &own, out);
    return most_too ? dl_memory_max_batch(p->request->system, &own, p->request->framework, &plan)
                    : NAN;
}

void dl_pipe_memory(const struct dl_pipe *p, struct dl_layer *layers, struct dl_memory *out,
                    const char **unknown, double *samples_max) {
    out->total_bytes = -1;
    double samples = HUGE_VAL;
    for (int s = 0; s < p->stages; s++) {
        const double held = dl_pipeline_in_flight(p->plan.schedule, s, p->stages, p->micro_batches,
                                                  dl_pipe_virtual_stages(&p->plan));
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

/* Activations between stages (the largest boundary sets the pace), and gradients of each stage
 * among its replicas. Returns the exposed seconds: filling and draining the pipeline,
 * and what an all-reduce takes beyond the cool-down. */
static enum dl_code communicate(struct dl_pipe *p, double *comm_s, double *exposed_s,
                                struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    const double v = dl_pipe_virtual_stages(&p->plan),
                 width = dl_precision_bytes(p->plan.precision);
    const int64_t replicas = p->plan.dp > 1 ? p->plan.dp : 1;
    struct dl_nccl_memo memo = {.system = NULL};
    *comm_s = *exposed_s = 0;
    if (p->stages > 1) {
        const double count = 2 * v * p->micro_batches;
        /* stages fill nodes: one boundary of a pipeline leaves a node */
        struct dl_collective_request one = {
            .op = DL_COLL_P2P,
            .library = dl_replica_library(r->system, r->framework, &p->plan),
            .bytes = p->boundary_elements * p->plan.micro_batch_samples * width};
        dl_collective_neighbours(r->system, p->plan.nodes, p->plan.devices_per_node, p->plan.pp, 1,
                                 &one);
        DL_TRY(put_message(p, "activations and gradients between stages", one, count, comm_s, err));
        const double p2p_s = *comm_s / count;
        const double steps = p->plan.schedule == DL_ASYNC ? 0 : 2 * (p->parts - 1);
        /* a boundary slower than the stage itself */
        const double late_s = fmax(0, 2 * v * p2p_s - p->step_max_s);
        *exposed_s = steps * p2p_s + p->micro_batches * late_s;
    }
    double sync_s = 0;
    const double gradient_bytes =
        dl_framework_gradient_width(r->framework, p->plan.precision).sent_bytes;
    for (int s = 0; replicas > 1 && s < p->stages; s++) {
        const double bytes = p->parameters[s] * gradient_bytes;
        double duration_s;
        const struct dl_collective_request sum = {.op = DL_COLL_ALL_REDUCE,
                                                  .bytes = bytes,
                                                  .nodes = p->plan.nodes,
                                                  .ranks_per_node = p->plan.devices_per_node,
                                                  .group_size = p->plan.pp > 1 ? replicas : 0,
                                                  .group_stride = p->plan.pp,
                                                  .concurrent = p->plan.pp,
                                                  .memo = &memo};
        DL_TRY(put_message(p, "all-reduce of a stage", sum, 1, &duration_s, err));
        *comm_s += duration_s;
        /* backward is two thirds */
        const double early_s = p->plan.schedule == DL_ASYNC ? 0 : s * p->step_max_s * 2 / 3;
        sync_s = fmax(sync_s, duration_s - early_s);
    }
    *exposed_s += sync_s;
    return DL_OK;
}

/* F-PIPE-BUBBLE: while the first micro-batch passes the other stages, the slowest one waits. */
static double bubble_s(const struct dl_pipe *p) {
    double others_s = 0;
    if (p->plan.schedule == DL_ASYNC) return 0;
    for (int s = 0; s < p->stages; s++) others_s += s != p->slowest ? p->step_s[s] : 0;
    return others_s / dl_pipe_virtual_stages(&p->plan);
}

void dl_pipe_compute(const struct dl_pipe *p, struct dl_evidence *e) {
    *e = (struct dl_evidence){.forward_s = p->micro_batches * p->forward_s,
                              .backward_s = p->micro_batches * p->backward_s,
                              .update_s = p->update_s,
                              .bubble_s = bubble_s(p),
                              .host_s = p->micro_batches *
                                            fmax(0, p->step_max_s - p->compute_s[p->slowest]) +
                                        p->request->framework->host.iteration_s};
}

enum dl_code dl_pipe_evidence(struct dl_pipe *p, struct dl_evidence *e, struct dl_err *err) {
    const struct dl_predict_request *r = p->request;
    dl_pipe_compute(p, e);
    DL_TRY(communicate(p, &e->comm_s, &e->exposed_comm_s, err));
    e->comm_s = fmax(e->comm_s, e->exposed_comm_s);
    e->straggler_frac = dl_straggler_frac(r->system, r->framework, &p->plan);
    const struct dl_input_time input =
        dl_input_compute(r->system, r->workload, r->framework, &p->plan);
    dl_compose_input(&input, r->framework, 0, e);
    return DL_OK;
}
