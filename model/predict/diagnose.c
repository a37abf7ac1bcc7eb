/* diagnose.c - what a prediction means: its bottleneck, its interval, its warnings. */
#include <math.h>
#include <string.h>

#include "model/predict/memory_advice.h"
#include "model/predict/prediction_parts.h"
#include "model/predict/replica.h"
#include "model/framework/shared_host.h"
#include "model/parallel/strategy.h"

struct shares {
    double seconds[DL_BOUNDS];
};

static void add_compute(const struct dl_parts *parts, struct shares *s) {
    static const enum dl_bottleneck by_limit[] = {DL_BOUND_COMPUTE, DL_BOUND_MEMORY_BANDWIDTH,
                                                  DL_BOUND_LATENCY};
    for (int limit = 0; limit < 3; limit++) {
        for (int i = 0; i < parts->workload->layer_count; i++) {
            const struct dl_layer_cost *layer = &parts->cost->layers[i];
            s->seconds[by_limit[limit]] +=
                layer->forward.by_limit_s[limit] + layer->backward.by_limit_s[limit];
        }
        s->seconds[by_limit[limit]] += parts->cost->update.by_limit_s[limit];
    }
}

/* Which cause carries the exposed communication: the link that most of the messages' time waits
 * for. */
static enum dl_bottleneck comm_cause(const struct dl_gradient_sync *x) {
    double latency_s = 0, inter_s = 0, intra_s = 0;
    for (int m = 0; m < x->message_count; m++) {
        const struct dl_message *message = &x->messages[m];
        latency_s += message->latency_s;
        if (message->limit != NULL && strcmp(message->limit, "inter") == 0)
            inter_s += message->bandwidth_s;
        else
            intra_s += message->bandwidth_s;
    }
    if (latency_s > inter_s + intra_s) return DL_BOUND_LATENCY;
    if (x->bound != NULL) return DL_BOUND_PS;
    return inter_s > intra_s ? DL_BOUND_INTER : DL_BOUND_INTRA;
}

/* F-BOUND: of compute, communication, input and framework the largest part of the iteration; inside
 * compute the largest of arithmetic, memory bandwidth and kernel latency. Memory capacity comes
 * first: what does not fit does not run. */
void dl_diagnose_bottleneck(const struct dl_parts *parts, struct dl_prediction *p) {
    if (!p->fits) {
        p->bottleneck = DL_BOUND_CAPACITY;
        p->bottleneck_share = 1;
        return;
    }
    struct shares compute = {{0}};
    add_compute(parts, &compute);
    double best_s = p->compute_s;
    enum dl_bottleneck best = DL_BOUND_COMPUTE;
    for (int b = 0; b < DL_BOUNDS; b++) {
        if (compute.seconds[b] > compute.seconds[best]) best = (enum dl_bottleneck)b;
    }
    if (p->exposed_comm_s > best_s) {
        best_s = p->exposed_comm_s;
        best = comm_cause(&parts->with_comm->sync);
    }
    if (p->exposed_input_s > best_s) {
        best_s = p->exposed_input_s;
        best = DL_BOUND_INPUT;
    }
    if (p->bubble_s > best_s) {
        best_s = p->bubble_s;
        best = DL_BOUND_BUBBLE;
    }
    if (p->overhead_s > best_s) {
        best_s = p->overhead_s;
        best = DL_BOUND_FRAMEWORK;
    }
    p->bottleneck = best;
    p->bottleneck_share = p->iteration_s > 0 ? best_s / p->iteration_s : 0;
}

/* F-INTERVAL: log-normal, 80 %. Errors of kernels are half correlated (one fit, one device, but
 * different shapes): variance = rho (sum t sigma)^2 + (1 - rho) sum (t sigma)^2 with rho = 0.5
 * (assumed); collectives are fully correlated with each other; the framework's residual is
 * independent of both. */
void dl_diagnose_interval(const struct dl_parts *parts, struct dl_prediction *p) {
    const double correlation = 0.5, z80 = 1.2815515655446004;
    double error_s = 0, square_s2 = 0;
    for (int i = 0; i < parts->workload->layer_count; i++) {
        const struct dl_layer_cost *layer = &parts->cost->layers[i];
        error_s += layer->forward.error_s + layer->backward.error_s;
        square_s2 += layer->forward.error_square_s2 + layer->backward.error_square_s2;
    }
    error_s += parts->cost->update.error_s;
    square_s2 += parts->cost->update.error_square_s2;
    const double compute_var = correlation * error_s * error_s + (1 - correlation) * square_s2;
    const struct dl_gradient_sync *x = &parts->with_comm->sync;
    double comm_error_s = 0, comm_s = 0;
    for (int m = 0; m < x->message_count; m++) {
        comm_error_s += x->messages[m].duration_s * x->messages[m].sigma_log;
        comm_s += x->messages[m].duration_s;
    }
    const double exposed_error_s = comm_s > 0 ? p->exposed_comm_s * comm_error_s / comm_s : 0;
    const double residual = parts->framework->residual_sigma_log;
    const double relative2 =
        (compute_var + exposed_error_s * exposed_error_s) / (p->iteration_s * p->iteration_s);
    const double sigma = sqrt(relative2 + residual * residual);
    p->iteration_low_s = p->iteration_s * exp(-z80 * sigma);
    p->iteration_high_s = p->iteration_s * exp(z80 * sigma);
}

enum { MAX_WARNINGS = 8 };

static void warn(struct dl_prediction *p, const char *text, bool extrapolates) {
    if (text == NULL || p->warning_count >= MAX_WARNINGS) return;
    p->warnings[p->warning_count++] = text;
    p->extrapolated = p->extrapolated || extrapolates;
}

/* Share of the layers' time that lies outside the samples. */
static double extrapolated_share(const struct dl_parts *parts) {
    double outside_s = 0, all_s = 0;
    for (int i = 0; i < parts->workload->layer_count; i++) {
        const struct dl_layer_cost *layer = &parts->cost->layers[i];
        all_s += layer->forward.time_s + layer->backward.time_s;
        if (layer->forward.extrapolated) outside_s += layer->forward.time_s;
        if (layer->backward.extrapolated) outside_s += layer->backward.time_s;
    }
    return all_s > 0 ? outside_s / all_s : 0;
}

enum dl_code dl_diagnose_warnings(const struct dl_parts *parts, const char *unknown_memory,
                                  struct dl_prediction *p, struct dl_err *err) {
    const struct dl_system *system = parts->system;
    const struct dl_plan *plan = parts->plan;
    struct dl_arena *arena = parts->arena;
    p->warnings = dl_arena_alloc(arena, MAX_WARNINGS, sizeof *p->warnings);
    if (p->warnings == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (system->nodes != DL_ABSENT && plan->nodes > system->nodes) {
        warn(p,
             dl_arena_printf(arena, "%s has %lld nodes; %lld are extrapolated", system->name,
                             (long long)system->nodes, (long long)plan->nodes),
             true);
    }
    const struct dl_shared_host shared = dl_shared_host(system, plan);
    if (shared.turns_ratio > 1) {
        warn(p,
             dl_arena_printf(arena,
                             "%.0f devices of %lld cores on a host of %lld: oversubscribed %.3g "
                             "times; they take turns, and what waits "
                             "for a message waits for its sender's turn: take no more than %.0f",
                             shared.device_count, (long long)system->device->unit_count,
                             (long long)system->host.cores, shared.turns_ratio,
                             shared.device_count / shared.turns_ratio),
             true);
    }
    if (system->device->kind == DL_DEVICE_CPU && plan->nodes * plan->devices_per_node > 1 &&
        parts->framework->behaviour->polls &&
        dl_replica_library(system, parts->framework, plan) == DL_LIB_MPI) {
        warn(p,
             dl_arena_printf(
                 arena,
                 "%s's own thread polls in MPI beside %lld computing: compute takes "
                 "%.3g times as long",
                 parts->framework->name, (long long)system->device->unit_count,
                 dl_shared_host_poll_ratio(system, plan, parts->framework->sync.fusion.cycle_s)),
             false);
    }
    const double outside = extrapolated_share(parts);
    if (outside > 0.05) {
        warn(p,
             dl_arena_printf(arena,
                             "%.0f %% of the layers' time lies outside the kernel samples of %s",
                             100 * outside, system->device->name),
             true);
    }
    if (plan->nodes > 1 && system->has_inter && system->inter.assumed) {
        warn(p,
             dl_arena_printf(arena,
                             "links.inter of %s is assumed, not measured; give yours with --set "
                             "links.inter.bandwidth=...",
                             system->name),
             true);
    }
    const struct dl_gradient_sync *x = &parts->with_comm->sync;
    for (int m = 0; m < x->message_count; m++) {
        if (!x->messages[m].extrapolated) continue;
        warn(p, "messages lie outside what the links were measured for", true);
        break;
    }
    if (unknown_memory != NULL) {
        warn(p,
             dl_arena_printf(arena, "memory leaves out what %s does not give: %s",
                             system->device->name, unknown_memory),
             false);
    }
    if (parts->framework->sync.asynchronous && plan->nodes > 1) {
        warn(p,
             dl_arena_printf(arena,
                             "asynchronous: gradients meet weights that are %lld updates newer on "
                             "average; the rate says "
                             "nothing about convergence",
                             (long long)plan->nodes - 1),
             false);
    }
    if (plan->backup_workers > 0) {
        warn(p,
             dl_arena_printf(arena,
                             "backup workers: gradients of %lld of %lld workers (%.0f %%) are "
                             "dropped each step; samples/s counts "
                             "the others",
                             (long long)plan->backup_workers, (long long)plan->nodes,
                             100 * (double)plan->backup_workers / (double)plan->nodes),
             false);
    }
    const double room =
        plan->batch_per_device_samples * (double)(plan->nodes * plan->devices_per_node);
    if (plan->strategy == dl_strategy_find("data") &&
        room > plan->global_batch_samples * (1 + 1e-9) && plan->dp > 1) {
        warn(p,
             dl_arena_printf(
                 arena,
                 "%.0f samples do not go evenly into %lld devices: those with %.0f set the pace",
                 plan->global_batch_samples, (long long)plan->dp, plan->batch_per_device_samples),
             false);
    }
    if (!p->fits) {
        const double at_once = plan->micro_batch_samples > 0 ? plan->micro_batch_samples
                                                             : plan->batch_per_device_samples;
        const char *advice =
            plan->strategy == NULL || strcmp(plan->strategy->name, "data") == 0
                ? dl_memory_advice(system, parts->workload, parts->framework, plan, at_once, arena)
                : NULL;
        warn(
            p,
            advice != NULL ? advice
            : p->max_batch_samples >= 1
                ? dl_arena_printf(arena,
                                  "does not fit: the largest batch per device that does is %.0f",
                                  p->max_batch_samples)
                : "does not fit at any batch: take a device with more memory or a sharded strategy",
            false);
    }
    return DL_OK;
}
