/* diagnose.c - see diagnose.h. */
#include "model/engine/diagnose.h"

#include <math.h>

#include "model/engine/memory.h"
#include "model/framework/gradient_sync.h"
#include "model/framework/shared_host.h"
#include "model/engine/replica.h"
#include "model/framework/capabilities.h"
#include "model/engine/transformer/transformer_internal.h"

const char *const dl_bottleneck_names[] = {
    "compute",       "memory-bandwidth",
    "latency",       "intra-link",
    "inter-link",    "host-copy",
    "host",          "parameter-server",
    "input",         "pipeline-bubble",
    "framework",     "memory-capacity",
    "scaling-limit", NULL,
};

enum dl_bottleneck dl_resource_bottleneck(enum dl_resource resource) {
    static const enum dl_bottleneck causes[DL_RESOURCES] = {
        [DL_ON_ARITHMETIC] = DL_BOUND_COMPUTE, [DL_ON_MEMORY] = DL_BOUND_MEMORY_BANDWIDTH,
        [DL_ON_LATENCY] = DL_BOUND_LATENCY,    [DL_ON_NODE_LINKS] = DL_BOUND_INTRA,
        [DL_ON_NETWORK] = DL_BOUND_INTER,      [DL_ON_HOST_COPY] = DL_BOUND_HOST_COPY,
        [DL_ON_HOST_CORES] = DL_BOUND_HOST,    [DL_ON_SERVERS] = DL_BOUND_PS,
        [DL_ON_HOST] = DL_BOUND_FRAMEWORK,     [DL_ON_INPUT] = DL_BOUND_INPUT,
        [DL_ON_STAGES] = DL_BOUND_BUBBLE};
    return causes[resource];
}

/* F-BOUND: the resource on which most of the iteration depends, along its critical path
 * (F-CRITICAL-PATH), with the exposed input and the wait for the slowest device. Memory capacity
 * comes first: a plan that does not fit does not run. */
void dl_diagnose_bottleneck(const struct dl_evidence *e, struct dl_prediction *p) {
    struct dl_resource_use *all = &p->course.path;
    int most = 0;
    *all = e->path;
    all->s[DL_ON_HOST] += p->straggler_s;
    all->s[DL_ON_INPUT] += p->exposed_input_s;
    if (!p->fits) {
        p->bottleneck = DL_BOUND_CAPACITY;
        p->bottleneck_share = 1;
        return;
    }
    for (int i = 1; i < DL_RESOURCES; i++)
        if (all->s[i] > all->s[most]) most = i;
    p->bottleneck = dl_resource_bottleneck((enum dl_resource)most);
    p->bottleneck_share = p->iteration_s > 0 ? all->s[most] / p->iteration_s : 0;
}

/* F-INTERVAL: log-normal, 80 %. Errors of kernels are half correlated (one fit, one device, but
 * different shapes): variance = rho (sum t sigma)^2 + (1 - rho) sum (t sigma)^2 with rho = 0.5
 * (assumed); collectives are fully correlated with each other; the framework's residual is
 * independent of both. */
void dl_diagnose_interval(const struct dl_evidence *e, double residual_sigma_log,
                          struct dl_prediction *p) {
    const double correlation = 0.5, z80 = 1.2815515655446004;
    const double kernels_s2 =
        correlation * e->error_s * e->error_s + (1 - correlation) * e->error_square_s2;
    const double relative2 =
        (kernels_s2 + e->comm_error_s * e->comm_error_s) / (p->iteration_s * p->iteration_s);
    p->spread.model_sigma_log = sqrt(relative2);
    p->spread.sigma_log = NAN;
    const double sigma = sqrt(relative2 + residual_sigma_log * residual_sigma_log);
    p->iteration_low_s = p->iteration_s * exp(-z80 * sigma);
    p->iteration_high_s = p->iteration_s * exp(z80 * sigma);
}

enum { MAX_WARNINGS = 12 };

static void warn(struct dl_prediction *p, const char *text, bool extrapolates) {
    if (text == NULL || p->warning_count >= MAX_WARNINGS) return;
    p->warnings[p->warning_count++] = text;
    p->extrapolated = p->extrapolated || extrapolates;
}

/* Beyond what was measured. */
static void warn_of_evidence(const struct dl_diagnosis *d, struct dl_prediction *p) {
    const struct dl_system *system = d->system;
    const struct dl_plan *plan = d->plan;
    const double passes_s = d->evidence->forward_s + d->evidence->backward_s,
                 outside_s = d->evidence->outside_s;
    if (outside_s > 0.05 * passes_s) {
        warn(p,
             dl_arena_printf(
                 d->arena,
                 "%.0f %% of the layer time is extrapolated beyond the kernels measured on "
                 "%s (covered by the interval)",
                 100 * outside_s / passes_s, system->device->name),
             true);
    }
    if (plan->nodes > 1 && system->has_inter && system->inter.assumed) {
        warn(p,
             dl_arena_printf(d->arena,
                             "links.inter of %s is assumed, not measured; set the real bandwidth "
                             "with --set links.inter.bandwidth=...",
                             system->name),
             true);
    }
    if (d->messages_extrapolated)
        warn(p, "message sizes lie outside the measured range of the links", true);
    if (d->unknown_memory != NULL) {
        warn(p,
             dl_arena_printf(d->arena, "memory excludes what the file of %s does not state: %s",
                             system->device->name, d->unknown_memory),
             false);
    }
}

/* 16-bit numbers at the rate of 32-bit ones. */
static void warn_of_precision(const struct dl_diagnosis *d, struct dl_prediction *p) {
    const struct dl_device *device = d->system->device;
    const enum dl_precision precision = d->plan->precision;
    if (device->kind != DL_DEVICE_GPU || (precision != DL_MIXED && precision != DL_FP16) ||
        !(dl_device_peak(device, precision) <= dl_device_peak(device, DL_FP32)))
        return;
    warn(p,
         dl_arena_printf(d->arena,
                         "%s computes in %s no faster than in fp32: it saves memory, and time only "
                         "in layers that memory bandwidth limits",
                         device->name, dl_precision_names[precision]),
         false);
}

/* More devices than the system has, or than the cores of their host can run. */
static void warn_of_devices(const struct dl_diagnosis *d, struct dl_prediction *p) {
    const struct dl_system *system = d->system;
    const struct dl_plan *plan = d->plan;
    if (system->nodes != DL_ABSENT && plan->nodes > system->nodes) {
        warn(p,
             dl_arena_printf(d->arena, "%s has %lld node%s; %lld are extrapolated", system->name,
                             (long long)system->nodes, system->nodes == 1 ? "" : "s",
                             (long long)plan->nodes),
             true);
    }
    const struct dl_shared_host shared = dl_shared_host(system, plan);
    if (shared.core_oversubscription_ratio > 1) {
        warn(p,
             dl_arena_printf(d->arena,
                             "%.0f devices of %lld cores on a host of %lld: oversubscribed %.3g "
                             "times; they time-slice the cores, and a receiver waits until its "
                             "sender is scheduled: use at most %.0f",
                             shared.device_count, (long long)system->device->unit_count,
                             (long long)system->host.cores, shared.core_oversubscription_ratio,
                             shared.device_count / shared.core_oversubscription_ratio),
             true);
    }
    if (system->device->kind == DL_DEVICE_CPU && plan->nodes * plan->devices_per_node > 1 &&
        dl_replica_polls(system, d->framework, plan)) {
        warn(p,
             dl_arena_printf(
                 d->arena,
                 "a thread of %s polls in MPI next to %lld computing thread%s: compute takes %.3g "
                 "times as long",
                 d->framework->name, (long long)system->device->unit_count,
                 system->device->unit_count == 1 ? "" : "s",
                 dl_shared_host_poll_ratio(system, plan,
                                           d->framework->behaviour->poll_cycle_s(d->framework))),
             false);
    }
}

/* What the throughput excludes, or counts differently from what a reader may expect. */
static void warn_of_rate(const struct dl_diagnosis *d, struct dl_prediction *p) {
    const struct dl_plan *plan = d->plan;
    if (d->framework->sync.asynchronous && plan->nodes > 1) {
        warn(p,
             dl_arena_printf(d->arena,
                             "asynchronous: gradients are applied to weights that are %lld updates "
                             "newer on average; throughput says nothing about convergence",
                             (long long)plan->nodes - 1),
             false);
    }
    if (plan->backup_workers > 0) {
        warn(p,
             dl_arena_printf(d->arena,
                             "backup workers: gradients of %lld of %lld workers (%.0f %%) are "
                             "dropped in each step; samples/s counts only the others",
                             (long long)plan->backup_workers, (long long)plan->nodes,
                             100 * (double)plan->backup_workers / (double)plan->nodes),
             false);
    }
    /* the plan of a split replica holds the samples of all its devices */
    const bool split = d->parts > 1;
    const double devices = (double)(plan->nodes * plan->devices_per_node),
                 replicas = devices / (split ? d->parts : 1);
    const bool data_alone = split || (double)plan->dp == devices;
    if (data_alone && replicas > 1 &&
        plan->batch_per_device_samples * replicas > plan->global_batch_samples * (1 + 1e-9)) {
        warn(p,
             dl_arena_printf(
                 d->arena,
                 "%.0f samples do not divide evenly among %.0f %s: those with %.0f set the pace",
                 plan->global_batch_samples, replicas, split ? "replicas" : "devices",
                 plan->batch_per_device_samples),
             false);
    }
    if (d->superlinear != NULL && p->scaling_efficiency > 1) {
        warn(p, dl_arena_printf(d->arena, "scaling efficiency above 1: %s", d->superlinear), false);
    }
}

/* A setting that the framework's release does not have. */
static void warn_of_what_if(const struct dl_diagnosis *d, struct dl_prediction *p) {
    char lacks[DL_LACKS_TEXT];
    if (!dl_framework_lacks(d->framework, d->plan, dl_transformer_shard_of(d->plan), lacks)) return;
    warn(p,
         dl_arena_printf(d->arena, "a what-if: %s %s %s", d->framework->name, d->framework->release,
                         lacks),
         false);
}

static void warn_of_memory(const struct dl_diagnosis *d, struct dl_prediction *p) {
    const double used = p->memory.total_bytes / p->memory.capacity_bytes; /* NAN: unknown */
    const char *text = d->advice;
    if (p->fits && used > DL_TIGHT_FRAC)
        warn(
            p,
            dl_arena_printf(d->arena,
                            "memory is tight: %.0f %% of the device's, fits with a probability of "
                            "%.0f %%; near the limit allocators free and retry, and some runs took "
                            "3 to 6 times as long",
                            100 * used, 100 * p->fits_probability_frac),
            false);
    if (p->fits) return;
    if (text == NULL && p->max_batch_samples >= 1) {
        text = dl_arena_printf(d->arena,
                               "does not fit: the largest batch per device that fits is %.0f",
                               p->max_batch_samples);
    } else if (text == NULL) {
        text =
            "does not fit at any batch size: use a device with more memory or a sharded strategy";
    }
    warn(p, text, false);
}

void dl_diagnose(const struct dl_diagnosis *d, struct dl_prediction *p) {
    p->warnings = dl_arena_alloc(d->arena, MAX_WARNINGS, sizeof *p->warnings);
    dl_memory_weigh(p);
    dl_diagnose_bottleneck(d->evidence, p);
    dl_diagnose_interval(d->evidence, d->framework->errors.residual_sigma_log, p);
    if (d->brief) return;
    warn(p, d->framework->errors.measured_remark, false);
    warn_of_devices(d, p);
    warn_of_precision(d, p);
    warn_of_what_if(d, p);
    warn_of_evidence(d, p);
    warn_of_rate(d, p);
    warn_of_memory(d, p);
}
