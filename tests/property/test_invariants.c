/* What must hold for any prediction, over random ones: $DL_INVARIANTS of them (30000; `make
 * check-all` asks for a million), drawn anew with each $DL_INVARIANTS_SEED.
 *
 *   identities   parts add up to the whole; throughput x iteration = samples
 *   bounds       the ideal framework is never beaten, no arithmetic above the peak, no memory below
 *                the states, efficiency in (0, 1]
 *   monotony     more bandwidth, less latency, a faster device or host never make a job slower
 *   scale        a machine with all rates doubled and all times halved takes half the time
 *   permutation  equal nodes, and groups of nodes, in any order
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/collective/collective.h"
#include "model/framework/gradient_sync.h"
#include "model/hardware/topology.h"
#include "model/hardware/what_if.h"
#include "model/parallel/strategy.h"
#include "model/search/heterogeneous.h"
#include "tests/catalog.h"
#include "tests/check.h"
#include "tests/fake.h"

/* A part of the predictions, and at least this many. */
enum { USUAL = 30000, FEWEST = 1000, SMALL_LAYERS = 64, REPORTED = 400 };

static uint64_t seed;
static int64_t asked, made;
static double unit(void) { return check_uniform(&seed); }
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }
static double between(double low, double high) { return low * pow(high / low, unit()); }

/* What is predicted, and the copies that a change may write to. */
struct subject {
    struct dl_system system;
    struct dl_device device;
    struct dl_rate rates[16];
    struct dl_framework framework;
    const struct dl_workload *workload;
    struct dl_plan plan;
};

static int failures;
static void broken(const struct subject *s, const char *law, double before, double after) {
    if (failures++ < REPORTED)
        print_error("%s: %s, %s, %s, %s, %lld x %lld devices: %.12g, then %.12g (%+.3g %%)\n", law,
                    s->system.name, s->workload->name, s->framework.name,
                    s->plan.strategy != NULL ? s->plan.strategy->name : "-",
                    (long long)s->plan.nodes, (long long)s->plan.devices_per_node, before, after,
                    100 * (after / before - 1));
}
static void require(const struct subject *s, const char *law, bool holds, double a, double b) {
    if (!holds) broken(s, law, a, b);
}
static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

static bool predict(const struct subject *s, struct dl_arena *arena, struct dl_prediction *out) {
    struct dl_err err = {0};
    struct dl_plan plan = s->plan;
    made++;
    return dl_predict(&s->system, s->workload, &s->framework, &plan, NULL, arena, out, &err) ==
           DL_OK;
}

/* Points into the copies of the subject itself. */
static void own(struct subject *s, const struct dl_device *device) {
    s->device = *device;
    if (device->rate_count > 0 && device->rate_count <= 16) {
        memcpy(s->rates, device->rates, (size_t)device->rate_count * sizeof *s->rates);
        s->device.rates = s->rates;
    }
    s->system.device = &s->device;
}

/* Subjects. */

static struct dl_fake fake;

static void random_fake(struct subject *s) {
    fake_make(&fake);
    double features[7];
    const int layers = 1 + upto(6);
    for (int i = 0; i <= layers; i++) features[i] = floor(between(8, 8192));
    fake_layers(&fake, layers, features);
    fake.workload.buffer_elements = once_in(2) ? 0 : floor(between(10, 1e5));
    fake.rate.peak_flop_per_s = between(1e12, 1e14);
    fake.device.memory_bandwidth_bytes_per_s = between(1e11, 4e12);
    fake.device.memory_bytes = between(1e8, 1e12);
    fake.system.intra.bandwidth_bytes_per_s = between(1e9, 4e11);
    fake.system.intra.channel_bandwidth_bytes_per_s = fake.system.intra.bandwidth_bytes_per_s / 6;
    fake.system.inter.bandwidth_bytes_per_s = between(1e8, 5e10);
    fake.system.inter.latency_s = between(1e-6, 1e-4);
    int behaviours = 0;
    while (dl_framework_behaviours[behaviours] != NULL) behaviours++;
    struct dl_framework *f = &fake.framework;
    f->behaviour = dl_framework_behaviours[upto(behaviours)];
    f->host.dispatch_s = once_in(3) ? 0 : between(1e-6, 1e-4);
    f->host.iteration_s = once_in(2) ? 0 : between(1e-5, 1e-2);
    f->sync.bucketed.bucket_bytes = between(1e5, 1e8);
    f->sync.bucketed.buffers_broadcast = once_in(2);
    f->sync.overlap_slowdown_frac = once_in(2) ? 0 : 0.3 * unit();
    f->sync.messages.message_s = once_in(2) ? 0 : between(1e-6, 1e-3);
    fake.plan.nodes = (int64_t)between(1, 64);
    fake.plan.devices_per_node = 1 + upto(4);
    fake.plan.batch_per_device_samples = floor(between(1, 4096));
    if (f->behaviour->refuse != NULL && f->behaviour->refuse(&fake.system, &fake.plan) != NULL)
        fake.plan.nodes = 1;
    *s = (struct subject){
        .system = fake.system, .framework = *f, .workload = &fake.workload, .plan = fake.plan};
    own(s, &fake.device);
}

static const struct dl_workload *small[MOST];
static int small_count;

static void random_catalog(struct subject *s) {
    static const double batches[] = {1, 2, 4, 8, 16, 32, 64, 96};
    memset(&fake, 0, sizeof fake);
    *s = (struct subject){.system = *all.systems[upto(all.system_count)],
                          .framework = *all.frameworks[upto(all.framework_count)],
                          .workload = small[upto(small_count)]};
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    s->plan = (struct dl_plan){.strategy = dl_strategy_find("data"),
                               .nodes = (int64_t)1 << upto(6),
                               .batch_per_device_samples = batches[upto(8)],
                               .precision = once_in(3) ? DL_MIXED : DL_FP32,
                               .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                               .synthetic_input = !once_in(4)};
    if (once_in(4)) s->plan.strategy = dl_strategies[upto(strategies)];
    if (once_in(6)) s->plan.pp = 2, s->plan.micro_batch_samples = 1;
    if (once_in(6)) s->plan.tp = 2;
    own(s, s->system.device);
}

/* Identities and bounds. */

static void check_one(const struct subject *s, const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    const double parts =
        p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s + p->overhead_s;
    const double states = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    const double memory =
        states + m->activations_bytes + m->workspace_bytes + m->buffers_bytes + m->context_bytes;
    require(s, "finite", isfinite(p->iteration_s) && p->iteration_s > 0, p->iteration_s, 0);
    require(s, "sum of parts", near(p->iteration_s, parts), p->iteration_s, parts);
    require(s, "compute", near(p->compute_s, p->forward_s + p->backward_s + p->update_s),
            p->compute_s, p->forward_s + p->backward_s + p->update_s);
    require(s, "negative part",
            fmin(fmin(p->exposed_comm_s, p->exposed_input_s), fmin(p->bubble_s, p->overhead_s)) >=
                0,
            1, 1);
    require(s, "exposed above all communication", p->exposed_comm_s <= p->comm_s * (1 + 1e-9),
            p->comm_s, p->exposed_comm_s);
    require(s, "interval",
            p->iteration_low_s <= p->iteration_s && p->iteration_s <= p->iteration_high_s,
            p->iteration_low_s, p->iteration_high_s);
    require(s, "memory below the states", m->total_bytes >= states * (1 - 1e-12), states,
            m->total_bytes);
    require(s, "memory", near(m->total_bytes, memory) || s->framework.memory.fragmentation_frac > 0,
            memory, m->total_bytes);
    require(s, "fits", p->fits == (isnan(m->capacity_bytes) || m->total_bytes <= m->capacity_bytes),
            m->capacity_bytes, m->total_bytes);
    require(s, "efficiency", p->scaling_efficiency > 0, p->scaling_efficiency, 0);
    require(s, "throughput",
            p->throughput_samples_per_s > 0 &&
                p->throughput_samples_per_s * p->iteration_s >= 1 - 1e-9,
            p->throughput_samples_per_s, p->iteration_s);
}

/* Monotony: one change for the better. */

static void scale(double *value, double by) {
    if (dl_known(*value)) *value *= by;
}

enum change {
    NETWORK,
    NETWORK_LATENCY,
    LINKS,
    LINK_LATENCY,
    COPIES,
    PEAK,
    MEMORY,
    LATENCY,
    DISPATCH,
    SAMPLES,
    CHANGES
};
static const char *const change_names[CHANGES] = {"more network bandwidth",
                                                  "less network latency",
                                                  "more bandwidth in the node",
                                                  "less latency in the node",
                                                  "faster host copies",
                                                  "more arithmetic",
                                                  "more memory bandwidth",
                                                  "less kernel latency",
                                                  "faster host",
                                                  "fewer samples"};

static bool improve(struct subject *s, enum change what, double by, struct dl_arena *arena,
                    const struct subject *from) {
    struct dl_err err = {0};
    *s = *from;
    own(s, &from->device);
    if (s->system.as_measured == NULL) s->system.as_measured = &from->system;
    switch (what) {
    case NETWORK: scale(&s->system.inter.bandwidth_bytes_per_s, by); break;
    case NETWORK_LATENCY:
        scale(&s->system.inter.latency_s, 1 / by);
        scale(&s->system.inter.per_message_cpu_s, 1 / by);
        break;
    case LINKS:
        scale(&s->system.intra.bandwidth_bytes_per_s, by);
        scale(&s->system.intra.cross_bandwidth_bytes_per_s, by);
        break;
    case LINK_LATENCY: scale(&s->system.intra.latency_s, 1 / by); break;
    case COPIES:
        scale(&s->system.host.copy_bandwidth_bytes_per_s, by);
        scale(&s->system.host.pageable_bandwidth_bytes_per_s, by);
        scale(&s->system.host.memory_bandwidth_bytes_per_s, by);
        break;
    case PEAK:
        for (int i = 0; i < s->device.rate_count; i++) s->rates[i].peak_flop_per_s *= by;
        break;
    case MEMORY: s->device.memory_bandwidth_bytes_per_s *= by; break;
    case LATENCY: scale(&s->device.kernel_latency_s, 1 / by); break;
    case DISPATCH:
        s->framework.host.dispatch_s /= by;
        s->framework.host.iteration_s /= by;
        s->framework.sync.messages.message_s /= by;
        s->framework.sync.collective_launch_s /= by;
        break;
    default:
        s->plan.batch_per_device_samples = fmax(1, floor(s->plan.batch_per_device_samples / by));
        s->plan.global_batch_samples = 0;
    }
    return dl_device_what_if(&from->device, &s->device, arena, &err) == DL_OK &&
           dl_system_what_if(&from->system, &s->system, arena, &err) == DL_OK;
}

static int64_t pairs, slower[CHANGES];
static double worst[CHANGES];

static void check_better(const struct subject *s, const struct dl_prediction *p,
                         struct dl_arena *arena) {
    static struct subject better;
    struct dl_prediction after;
    const enum change what = (enum change)upto(CHANGES);
    const double by = once_in(2) ? 2 : 1 + unit();
    if (s->device.rate_count > 16) return;
    if (!improve(&better, what, by, arena, s) || !predict(&better, arena, &after)) return;
    pairs++;
    if (after.iteration_s <= p->iteration_s * (1 + 1e-9)) return;
    slower[what]++;
    if (after.iteration_s / p->iteration_s - 1 > worst[what])
        worst[what] = after.iteration_s / p->iteration_s - 1;
    broken(s, change_names[what], p->iteration_s, after.iteration_s);
    print_error("   PARTS %s by %.3f c %.6g>%.6g x %.6g>%.6g in %.6g>%.6g bub %.6g>%.6g ov %.6g>%.6g comm %.6g>%.6g f %.6g>%.6g b %.6g>%.6g u %.6g>%.6g\n", s->framework.behaviour->name, by, p->compute_s, after.compute_s, p->exposed_comm_s, after.exposed_comm_s, p->exposed_input_s, after.exposed_input_s, p->bubble_s, after.bubble_s, p->overhead_s, after.overhead_s, p->comm_s, after.comm_s, p->forward_s, after.forward_s, p->backward_s, after.backward_s, p->update_s, after.update_s);
}

/* Every other change for the better moves what one device does alone; this one halves all of it. */
static void check_scale(const struct subject *s, struct dl_arena *arena) {
    static struct subject one, twice;
    struct dl_prediction before, after;
    one = *s;
    own(&one, &s->device);
    one.plan.nodes = one.plan.devices_per_node = 1;
    if (!predict(&one, arena, &before)) return;
    twice = one;
    own(&twice, &one.device);
    struct dl_device *d = &twice.device;
    for (int i = 0; i < d->rate_count; i++) {
        twice.rates[i].peak_flop_per_s *= 2;
    }
    d->memory_bandwidth_bytes_per_s *= 2;
    scale(&d->kernel_latency_s, 0.5), scale(&d->kernel_gap_s, 0.5), scale(&d->launch_s, 0.5);
    twice.framework.host.dispatch_s /= 2, twice.framework.host.iteration_s /= 2;
    twice.framework.sync.messages.message_s /= 2, twice.framework.sync.collective_launch_s /= 2;
    struct dl_host *h = &twice.system.host;
    scale(&h->copy_bandwidth_bytes_per_s, 2), scale(&h->memory_bandwidth_bytes_per_s, 2),
        scale(&h->pageable_bandwidth_bytes_per_s, 2);
    if (!predict(&twice, arena, &after)) return;
    require(s, "everything twice as fast", near(2 * after.iteration_s, before.iteration_s),
            before.iteration_s, 2 * after.iteration_s);
}

/* The bound of every framework that keeps gradients whole and waits for all devices. */
static const struct dl_framework *ideal;
static void check_bound(const struct subject *s, const struct dl_prediction *p,
                        struct dl_arena *arena) {
    static struct subject best;
    struct dl_prediction bound;
    const struct dl_framework_behaviour *b = s->framework.behaviour;
    if (s->framework.sync.asynchronous || b->lossy || b->is_bound ||
        strcmp(s->plan.strategy->name, "data") != 0 || s->plan.tp > 1 || s->plan.pp > 1)
        return;
    best = *s;
    own(&best, &s->device);
    best.framework = *ideal;
    if (!predict(&best, arena, &bound)) return;
    const double least = bound.iteration_s - fmax(0, bound.update_s - p->update_s);
    require(s, "faster than ideal", p->iteration_s >= least * (1 - 1e-9), least, p->iteration_s);
}

static void any_prediction(void **state) {
    (void)state;
    const char *count = getenv("DL_INVARIANTS"), *first = getenv("DL_INVARIANTS_SEED");
    asked = count != NULL ? atoll(count) : USUAL;
    seed = 0x9e3779b97f4a7c15u ^ (first != NULL ? strtoull(first, NULL, 10) : 20261123u);
    for (int i = 0; i < all.workload_count; i++)
        if (all.workloads[i]->layer_count <= SMALL_LAYERS) small[small_count++] = all.workloads[i];
    for (int i = 0; i < all.framework_count; i++)
        if (strcmp(all.frameworks[i]->name, "ideal") == 0) ideal = all.frameworks[i];
    assert_true(small_count > 4 && ideal != NULL && asked >= FEWEST);
    int64_t refused = 0;
    while (made < asked) {
        static struct subject s;
        struct dl_arena arena = {0};
        struct dl_prediction p;
        const bool is_fake = !once_in(3);
        if (is_fake)
            random_fake(&s);
        else
            random_catalog(&s);
        if (predict(&s, &arena, &p)) {
            check_one(&s, &p);
            for (int i = 0; i < 3; i++) check_better(&s, &p, &arena);
            if (!is_fake && once_in(2)) check_bound(&s, &p, &arena);
            if (is_fake && once_in(4)) check_scale(&s, &arena);
        } else {
            refused++;
        }
        dl_arena_free(&arena);
        if (is_fake) dl_arena_free(&fake.arena);
    }
    print_message("# %lld predictions, %lld refused, %lld pairs, %d laws broken\n", (long long)made,
                  (long long)refused, (long long)pairs, failures);
    for (int c = 0; c < CHANGES; c++)
        if (slower[c] > 0)
            print_message("# %s: slower %lld times, at most %.3g %%\n", change_names[c],
                          (long long)slower[c], 100 * worst[c]);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_prediction)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
