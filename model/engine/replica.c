/* replica.c - costs, timeline, input and memory of one replica and its gradient synchronization.
 * Each part of the iteration is measured on the simulated timeline: exposed communication is the
 * difference between the iteration with and without all communication. */
#include "model/engine/replica.h"

#include <math.h>
#include <string.h>

#include "model/framework/gradient_width.h"
#include "model/framework/host_dispatch.h"
#include "model/framework/input.h"
#include "model/network/libraries/nccl.h"
#include "model/framework/shared_host.h"
#include "model/engine/compose.h"
#include "model/engine/diagnose.h"
#include "model/engine/memory.h"
#include "model/engine/memory_advice.h"
#include "model/engine/memory_course.h"
#include "model/engine/prediction_internal.h"
#include "model/engine/split_internal.h"

struct dl_replica dl_replica_of_device(const struct dl_predict_request *request) {
    const struct dl_plan *plan = request->plan;
    return (struct dl_replica){
        .request = request,
        .workload = request->workload,
        .plan = *plan,
        /* the device with the most samples sets the pace */
        .samples = ceil(plan->batch_per_device_samples - 1e-9),
        .parts = 1,
        /* Parameter servers on cores that carry their messages cost one worker as much. */
        .synchronizes = plan->nodes * plan->devices_per_node > 1 ||
                        plan->parameter_servers.nodes != NULL ||
                        (request->framework->sync.messages.servers_colocated &&
                         dl_host_cores_carry_messages(request->system)),
    };
}

/* Gradients in backward order: reverse order of registration, tied parameters once. */
static void list_gradients(struct dl_timeline_request *t) {
    struct dl_gradient_sync_request *x = &t->sync;
    const struct dl_workload *workload = x->workload;
    const double width = dl_framework_gradient_width(x->framework, x->plan->precision).sent_bytes;
    int count = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].tied_to < 0) count += workload->layers[i].parameter_count;
    }
    t->gradients = dl_arena_alloc(x->arena, (size_t)count, sizeof *t->gradients);
    int g = 0;
    for (int i = workload->layer_count - 1; i >= 0; i--) {
        const struct dl_layer *layer = &workload->layers[i];
        if (layer->tied_to >= 0) continue;
        for (int p = layer->parameter_count - 1; p >= 0; p--) {
            const double elements = layer->parameters[p].elements;
            t->gradients[g++] =
                (struct dl_gradient){.layer = i, .elements = elements, .bytes = elements * width};
            x->total_bytes += elements * width;
            x->parameter_bytes += elements * 4;
        }
    }
    x->gradients = t->gradients;
    x->gradient_count = count;
}

/* What runs concurrently with the layers' kernels in a run of the timeline. */
struct run {
    bool synchronizes, one_device, accumulates;
    bool period_alone;                /* nobody reads its path */
    const struct dl_replica *replica; /* with messages inside its layers; NULL: without */
};

/* The period without messages, where the memo has it. */
static bool recall_quiet(const struct dl_quiet_period *known, const struct dl_timeline_request *r,
                         double *period_s) {
    if (!(known->period_s > 0) || known->dispatch_s != r->dispatch_s || known->gap_s != r->gap_s ||
        known->iteration_host_s != r->iteration_host_s ||
        known->checks_overflow != r->checks_overflow || known->accumulates != r->accumulates ||
        memcmp(&known->host, &r->host, sizeof r->host) != 0)
        return false;
    *period_s = known->period_s;
    return true;
}

static enum dl_code run_timeline(const struct dl_prediction_inputs *parts,
                                 const struct dl_cost *cost, const struct run *run,
                                 struct dl_timeline *out, struct dl_err *err) {
    const struct dl_framework *framework = parts->framework;
    const struct dl_device *device = parts->system->device;
    const double sharing = framework->host.single_process && !run->one_device
                               ? (double)parts->plan->devices_per_node
                               : 1;
    const double local = dl_plan_compute_scale(parts->plan),
                 dispatch_s = dl_dispatch_s(framework, device) * sharing * local;
    struct dl_nccl_memo memo = {.system = NULL};
    struct dl_timeline_request request = {
        .cost = cost,
        .behaviour = run->synchronizes ? framework->behaviour : NULL,
        .sync = {.system = parts->system,
                 .workload = parts->workload,
                 .framework = framework,
                 .plan = parts->plan,
                 .library = dl_replica_library(parts->system, framework, parts->plan),
                 .memo = &memo,
                 .arena = parts->arena},
        .dispatch_s = dispatch_s,
        .host = dl_host_cost_of(framework, parts->system, sharing * local),
        .gap_s = dl_device_gap_s(device) * local,
        .iteration_host_s = framework->host.iteration_s,
        .checks_overflow = framework->host.checks_overflow && parts->plan->precision == DL_MIXED,
        .accumulates = run->accumulates,
        .period_alone = run->period_alone,
        .gradient_host_s =
            run->synchronizes ? framework->sync.gradient_launches_per_tensor * dispatch_s : 0,
        .slowdown_frac = dl_replica_slowdown_frac(parts->system, framework, parts->plan),
        .layer_messages = run->replica != NULL ? run->replica->messages : NULL,
        .layer_message_count = run->replica != NULL ? run->replica->message_count : 0,
    };
    struct dl_quiet_period *quiet = run->period_alone ? cost->quiet : NULL;
    if (quiet != NULL && recall_quiet(quiet, &request, &out->period_s)) return DL_OK;
    list_gradients(&request);
    DL_TRY(dl_timeline_run(&request, out, err));
    if (quiet != NULL)
        *quiet = (struct dl_quiet_period){
            request.dispatch_s, request.gap_s,           request.iteration_host_s,
            request.host,       request.checks_overflow, request.accumulates,
            out->period_s};
    return DL_OK;
}

/* Micro-batches of one step. F-ACCUMULATE: all but the last run forward and backward and add up
 * gradients, without update, and without synchronization unless each micro-batch synchronizes. */
static double micro_batches_of(const struct dl_plan *plan) {
    return plan->micro_batch_samples > 0
               ? ceil(plan->batch_per_device_samples / plan->micro_batch_samples)
               : 1;
}

/* How much longer one run of the timeline takes than another [s], at least 0. Sums of the same
 * times in another order differ by rounding: what is below 10^-12 of the run is 0. */
static double longer_s(double run_s, double than_s) {
    const double more_s = run_s - than_s;
    return more_s > 1e-12 * run_s ? more_s : 0;
}

/* Seconds of the micro-batches before the last one: without messages; and, where each of them
 * synchronizes (each_micro_batch), what the messages add. */
struct before {
    double quiet_s, exposed_s, comm_s, slowdown_s;
    struct dl_resource_use path;
};

static enum dl_code accumulate(const struct dl_prediction_inputs *parts, const struct dl_cost *cost,
                               const struct run *last, struct before *out, struct dl_err *err) {
    const double count = micro_batches_of(parts->plan) - 1;
    struct run run = {
        .one_device = last->one_device, .accumulates = true, .period_alone = last->period_alone};
    struct dl_timeline quiet, busy;
    *out = (struct before){0};
    if (!(count > 0)) return DL_OK;
    DL_TRY(run_timeline(parts, cost, &run, &quiet, err));
    out->quiet_s = count * quiet.period_s;
    dl_resource_add(&out->path, &quiet.path, count);
    run.synchronizes = last->synchronizes && parts->framework->sync.each_micro_batch;
    if (!run.synchronizes) return DL_OK;
    DL_TRY(run_timeline(parts, cost, &run, &busy, err));
    out->path = (struct dl_resource_use){{0}};
    dl_resource_add(&out->path, &busy.path, count);
    out->slowdown_s = count * busy.slowdown_s;
    out->exposed_s = count * longer_s(busy.period_s - busy.slowdown_s, quiet.period_s);
    out->comm_s = count * busy.comm_s;
    return DL_OK;
}

/* Results of the two runs of the timeline: exposed communication is their difference. */
static void gather_evidence(const struct dl_prediction_inputs *parts,
                            const struct dl_replica *replica, const struct before *before,
                            struct dl_evidence *e) {
    const struct dl_timeline *busy = parts->with_comm, *quiet = parts->without_comm;
    const struct dl_gradient_sync *x = &busy->sync;
    const double micro_batches = micro_batches_of(parts->plan),
                 quiet_s = quiet->period_s + before->quiet_s;
    memset(e, 0, sizeof *e);
    for (int i = 0; i < parts->workload->layer_count; i++) {
        e->forward_s += micro_batches * parts->cost->layers[i].forward.time_s;
        e->backward_s += micro_batches * parts->cost->layers[i].backward.time_s;
    }
    e->update_s =
        parts->cost->update.time_s + (micro_batches - 1) * parts->cost->accumulation.time_s;
    e->host_s = fmax(0, quiet_s - (e->forward_s + e->backward_s + e->update_s));
    e->backward_s += busy->slowdown_s + before->slowdown_s;
    e->exposed_comm_s =
        longer_s(busy->period_s - busy->slowdown_s, quiet->period_s) + before->exposed_s;
    e->comm_s = fmax(busy->comm_s + before->comm_s, e->exposed_comm_s);
    e->straggler_frac = dl_straggler_frac(parts->system, parts->framework, parts->plan);
    const struct dl_input_time input =
        dl_input_compute(parts->system, parts->workload, parts->framework, parts->plan);
    dl_compose_input(&input, parts->framework, replica->input_extra_s, e);
    dl_evidence_of_cost(parts->cost, parts->workload->layer_count, micro_batches, e);
    dl_evidence_of_messages(x->messages, x->message_count, x->bound != NULL, e);
    e->path = busy->path;
    dl_resource_add(&e->path, &before->path, 1);
}

/* A single device, with its input, for a device's share of the replica's samples. step_s:
 * without the input. */
static double alone_s(const struct dl_prediction_inputs *parts, const struct dl_replica *replica,
                      double step_s) {
    struct dl_plan one = *parts->plan;
    one.nodes = one.devices_per_node = 1;
    const struct dl_input_time input =
        dl_input_compute(parts->system, replica->request->workload, parts->framework, &one);
    return (step_s + dl_compose_exposed_input_s(input.pipeline_s, input.feed_s,
                                                parts->framework->input.prefetch_batches > 0,
                                                step_s)) /
           replica->parts;
}

static void describe_comm(const struct dl_gradient_sync *x, struct dl_prediction *p) {
    double largest = -1;
    p->messages.count = x->message_count;
    for (int m = 0; m < x->message_count; m++) {
        p->messages.bytes += x->messages[m].bytes;
        if (x->messages[m].bytes <= largest) continue;
        largest = x->messages[m].bytes;
        p->messages.algorithm = x->messages[m].algorithm;
        p->messages.protocol = x->messages[m].protocol;
    }
}

static bool may_end_early(const struct dl_predict_request *request) {
    const struct dl_predict_options *options = request->options;
    return options != NULL && options->brief && options->limit_s > 0 &&
           request->framework->errors.measured == NULL;
}

bool dl_replica_is_beyond(const struct dl_predict_request *request, double least_s) {
    return may_end_early(request) && least_s > request->options->limit_s * (1 + 1e-9);
}

/* The messages of gradient synchronization after those of the layers, for the diagnosis,
 * `explain` and totals. */
static void join_messages(const struct dl_replica *replica, struct dl_timeline *t) {
    struct dl_gradient_sync *x = &t->sync;
    const int count = replica->message_count + x->message_count;
    if (replica->message_count == 0) return;
    struct dl_message *all = dl_arena_alloc(replica->request->arena, (size_t)count, sizeof *all);
    for (int m = 0; m < replica->message_count; m++) {
        all[m] = replica->messages[m].message;
        t->comm_s += all[m].duration_s;
    }
    for (int m = 0; m < x->message_count; m++) all[replica->message_count + m] = x->messages[m];
    x->messages = all;
    x->message_count = count;
}

static void add_memory(const struct dl_replica *replica, struct dl_prediction *p) {
    if (!(replica->buffer_bytes > 0)) return;
    p->memory.buffers_bytes += replica->buffer_bytes;
    p->memory.total_bytes +=
        replica->buffer_bytes / (1 - dl_fragmentation_frac(replica->request->framework));
}

/* The slowdown of devices that share a host; the costs of one device alone do not change.
 * F-SHARED-HOST */
static void share_host(const struct dl_system *system, const struct dl_framework *framework,
                       const struct dl_plan *plan, const struct dl_workload *workload,
                       const struct dl_cost *alone, struct dl_arena *arena, struct dl_cost *out) {
    struct dl_shared_host shared = dl_shared_host(system, plan);
    *out = *alone;
    if (dl_replica_polls(system, framework, plan))
        shared.core_oversubscription_ratio *=
            dl_shared_host_poll_ratio(system, plan, framework->behaviour->poll_cycle_s(framework));
    shared.arithmetic_ratio *= dl_shared_host_endpoint_ratio(system, framework, plan);
    if (shared.arithmetic_ratio <= 1 && shared.memory_ratio <= 1 &&
        shared.core_oversubscription_ratio <= 1)
        return;
    out->quiet = NULL;
    out->layers = dl_arena_alloc(arena, (size_t)workload->layer_count, sizeof *out->layers);
    memcpy(out->layers, alone->layers, (size_t)workload->layer_count * sizeof *out->layers);
    for (int i = 0; i < workload->layer_count; i++) {
        dl_shared_host_scale(&shared, &out->layers[i].forward);
        dl_shared_host_scale(&shared, &out->layers[i].backward);
    }
    dl_shared_host_scale(&shared, &out->update);
    dl_shared_host_scale(&shared, &out->accumulation);
}

static struct dl_cost_memo *memo_of(const struct dl_predict_request *request) {
    const struct dl_predict_options *options = request->options;
    return options != NULL ? options->memo : NULL;
}

/* Seconds that one device alone would take for all samples of the replica, without its input. */
static enum dl_code single_device_s(const struct dl_replica *replica,
                                    const struct dl_prediction_inputs *parts,
                                    const struct dl_cost *own, double *out, struct dl_err *err) {
    const struct run alone = {.one_device = true, .period_alone = true};
    struct dl_timeline single;
    struct dl_prediction_inputs whole = *parts;
    struct dl_cost cost;
    if (replica->parts > 1) {
        whole.workload = replica->request->workload;
        whole.cost = &cost;
        DL_TRY(dl_cost_recall(memo_of(replica->request),
                              &(struct dl_cost_request){parts->system->device, whole.workload,
                                                        parts->framework, parts->plan,
                                                        replica->samples},
                              parts->arena, &cost, err));
    }
    DL_TRY(run_timeline(&whole, replica->parts > 1 ? &cost : own, &alone, &single, err));
    struct before before;
    DL_TRY(accumulate(&whole, replica->parts > 1 ? &cost : own, &alone, &before, err));
    *out = single.period_s + before.quiet_s;
    return DL_OK;
}

/* Whether the run without communication is that of one device alone. */
static bool is_quiet_alone(const struct dl_replica *replica,
                           const struct dl_prediction_inputs *parts, const struct dl_cost *alone) {
    const bool shares = parts->framework->host.single_process && parts->plan->devices_per_node > 1;
    return replica->parts <= 1 && replica->message_count == 0 && !shares &&
           parts->cost->layers == alone->layers;
}

/* Both runs of the timeline. *alone: costs of a device alone on its host. */
static enum dl_code simulate(const struct dl_replica *replica,
                             const struct dl_prediction_inputs *parts, struct dl_cost *alone,
                             struct dl_cost *cost, struct dl_timeline *busy,
                             struct dl_timeline *quiet, struct dl_err *err) {
    const struct run run = {.synchronizes = replica->synchronizes, .replica = replica},
                     silent = {.period_alone = true};
    DL_TRY(run_timeline(parts, cost, &run, busy, err));
    join_messages(replica, busy);
    /* A framework that updates on servers does so with one device too: the reference for the
     * efficiency excludes the update as well. */
    if (busy->sync.update_remote) {
        memset(&cost->update, 0, sizeof cost->update), alone->update = cost->update;
        cost->quiet = alone->quiet = NULL;
    }
    return run_timeline(parts, cost, &silent, quiet, err);
}

static bool any_extrapolated(const struct dl_gradient_sync *x) {
    for (int m = 0; m < x->message_count; m++) {
        if (x->messages[m].extrapolated) return true;
    }
    return false;
}

static bool is_brief(const struct dl_replica *replica) {
    return replica->request->options != NULL && replica->request->options->brief;
}

/* F-SEARCH-BOUND: no iteration takes less than the passes of all micro-batches one after the other,
 * and in one of them the messages inside layers that nothing hides. */
static double least_s(const struct dl_replica *replica, const struct dl_prediction_inputs *parts) {
    double sum_s = 0;
    for (int i = 0; i < parts->workload->layer_count; i++)
        sum_s += parts->cost->layers[i].forward.time_s + parts->cost->layers[i].backward.time_s;
    return sum_s * micro_batches_of(parts->plan) + replica->least_wait_s;
}

/* Costs of a device alone, and as the devices of its host slow it down. */
static enum dl_code compute_costs(const struct dl_replica *replica, const struct dl_plan *plan,
                                  double at_once, struct dl_cost *alone, struct dl_cost *shared,
                                  struct dl_err *err) {
    const struct dl_predict_request *r = replica->request;
    if (is_brief(replica) && r->options->cost != NULL && replica->workload == r->workload)
        *alone = *r->options->cost;
    else
        DL_TRY(dl_cost_recall(memo_of(r),
                              &(struct dl_cost_request){r->system->device, replica->workload,
                                                        r->framework, plan, at_once},
                              r->arena, alone, err));
    share_host(r->system, r->framework, plan, replica->workload, alone, r->arena, shared);
    return DL_OK;
}

/* Whether devices may take more memory than they have, by moving it to the host and back. */
static bool is_managed(const struct dl_replica *replica) {
    const struct dl_framework *framework = replica->request->framework;
    const struct dl_split_behaviour *split = framework->behaviour->split;
    return replica->parts > 1 && split != NULL && split->is_managed != NULL &&
           split->is_managed(framework);
}

/* Memory, and the advice if it does not fit. */
static void account_memory(const struct dl_replica *replica,
                           const struct dl_prediction_inputs *parts, double at_once,
                           struct dl_diagnosis *d, struct dl_prediction *p) {
    const struct dl_plan *plan = parts->plan;
    dl_memory_compute(parts->system, parts->workload, parts->framework, plan, at_once, &p->memory,
                      &d->unknown_memory);
    add_memory(replica, p);
    p->fits = dl_memory_fits(&p->memory) || is_managed(replica);
    if (is_brief(replica)) return;
    p->max_batch_samples = dl_memory_max_batch(parts->system, parts->workload, parts->framework,
                                               plan, memo_of(replica->request)) /
                           replica->parts;
    if (!p->fits && plan->tp * plan->pp * plan->sp * plan->ep == 1) {
        d->advice = dl_memory_advice(parts->system, parts->workload, parts->framework, plan,
                                     at_once, parts->arena);
    }
}

/* Managed memory that does not fit takes time. */
static bool needs_memory(const struct dl_replica *replica) {
    const struct dl_predict_options *options = replica->request->options;
    return options == NULL || !options->times_only || is_managed(replica);
}

static void add_paging(const struct dl_replica *replica, const struct dl_memory *memory,
                       struct dl_evidence *e) {
    const struct dl_split_behaviour *split = replica->request->framework->behaviour->split;
    const double paging_s = is_managed(replica) ? split->paging_s(replica, memory) : 0;
    e->host_s += paging_s;
    e->path.s[DL_ON_HOST] += paging_s;
}

enum dl_code dl_replica_predict(const struct dl_replica *replica, struct dl_prediction *out,
                                struct dl_err *err) {
    const struct dl_predict_request *request = replica->request;
    const struct dl_system *system = request->system;
    const struct dl_workload *workload = replica->workload;
    const struct dl_framework *framework = request->framework;
    struct dl_arena *arena = request->arena;
    struct dl_plan plan = replica->plan;
    plan.batch_per_device_samples = replica->samples;
    struct dl_cost alone, cost;
    const double at_once =
        plan.micro_batch_samples > 0 ? plan.micro_batch_samples : replica->samples;
    *out = (struct dl_prediction){.beyond_limit = true, .iteration_s = replica->least_wait_s};
    if (dl_replica_is_beyond(request, out->iteration_s)) return DL_OK;
    DL_TRY(compute_costs(replica, &plan, at_once, &alone, &cost, err));
    struct dl_timeline busy, quiet;
    const struct dl_prediction_inputs parts = {.system = system,
                                               .workload = workload,
                                               .framework = framework,
                                               .plan = &plan,
                                               .cost = &cost,
                                               .with_comm = &busy,
                                               .without_comm = &quiet,
                                               .arena = arena};
    out->iteration_s = least_s(replica, &parts);
    if (dl_replica_is_beyond(request, out->iteration_s)) return DL_OK;
    DL_TRY(simulate(replica, &parts, &alone, &cost, &busy, &quiet, err));
    const struct run last = {.synchronizes = replica->synchronizes};
    struct before before;
    DL_TRY(accumulate(&parts, &cost, &last, &before, err));
    double single_s = quiet.period_s + before.quiet_s;
    if (!is_brief(replica) && !is_quiet_alone(replica, &parts, &alone))
        DL_TRY(single_device_s(replica, &parts, &alone, &single_s, err));

    struct dl_evidence evidence;
    struct dl_prediction p = {.fits = true};
    gather_evidence(&parts, replica, &before, &evidence);
    struct dl_diagnosis diagnosis = {
        .system = system,
        .framework = framework,
        .plan = &plan,
        .evidence = &evidence,
        .parts = replica->parts,
        .messages_extrapolated = any_extrapolated(&busy.sync),
        .superlinear = replica->parts > 1 ? "kernels and update of a split layer take less than "
                                            "their share of the time of the whole layer"
                                          : NULL,
        .brief = is_brief(replica),
        .arena = arena};
    if (needs_memory(replica)) account_memory(replica, &parts, at_once, &diagnosis, &p);
    add_paging(replica, &p.memory, &evidence);
    dl_compose(&evidence, workload, &plan, alone_s(&parts, replica, single_s), &p);
    describe_comm(&busy.sync, &p);
    dl_diagnose(&diagnosis, &p);
    if (request->options != NULL && request->options->terms) dl_explain_terms(&parts, &p);
    if (p.term_count > 0 && needs_memory(replica))
        dl_memory_course_of_layers(&parts, at_once, &p.memory, &p.course);
    *out = p;
    return DL_OK;
}
