/* The contract's identities and the laws of the model over random systems, workloads, frameworks
 * and plans. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/check.h"
#include "tests/fake.h"

enum { CASES = 1000 };

static uint64_t seed;
static double random_unit(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}
static double random_log(double low, double high) { return low * pow(high / low, random_unit()); }

static void random_case(struct dl_fake *f) {
    fake_make(f);
    double features[33];
    const int layers = 1 + (int)(random_unit() * 31);
    for (int i = 0; i <= layers; i++) features[i] = floor(random_log(8, 8192));
    fake_layers(f, layers, features);
    f->workload.buffer_elements = random_unit() < 0.5 ? 0 : floor(random_log(10, 1e5));
    f->rate.peak_flop_per_s = random_log(1e12, 1e14);
    f->device.memory_bandwidth_bytes_per_s = random_log(1e11, 4e12);
    f->device.memory_bytes = random_log(1e8, 1e12);
    f->system.intra.bandwidth_bytes_per_s = random_log(1e9, 4e11);
    f->system.intra.channel_bandwidth_bytes_per_s = f->system.intra.bandwidth_bytes_per_s / 6;
    f->system.inter.bandwidth_bytes_per_s = random_log(1e8, 5e10);
    f->system.inter.latency_s = random_log(1e-6, 1e-4);
    int behaviours = 0;
    while (dl_framework_behaviours[behaviours] != NULL) behaviours++;
    fake_behaves(&f->framework, dl_framework_behaviours[(int)(random_unit() * behaviours)]);
    f->framework.host.dispatch_s = random_unit() < 0.3 ? 0 : random_log(1e-6, 1e-4);
    f->framework.host.iteration_s = random_unit() < 0.5 ? 0 : random_log(1e-5, 1e-2);
    f->framework.sync.bucket_bytes = random_log(1e5, 1e8);
    fake_try(&f->framework, "buffers_broadcast", random_unit() < 0.5);
    f->framework.sync.messages.message_s = random_unit() < 0.5 ? 0 : random_log(1e-6, 1e-3);
    f->plan.nodes = (int64_t)random_log(1, 64);
    f->plan.devices_per_node = 1 + (int64_t)(random_unit() * 4);
    if (f->plan.devices_per_node > 4) f->plan.devices_per_node = 4;
    f->plan.batch_per_device_samples = floor(random_log(1, 4096));
    const struct dl_framework_behaviour *b = f->framework.behaviour;
    if (b->refuse != NULL && b->refuse(&f->system, &f->plan) != NULL) f->plan.nodes = 1;
}

static void same(double actual, double expected, const char *what, int number) {
    if (fabs(actual - expected) <= 1e-9 * fmax(fabs(expected), 1e-12)) return;
    fail_msg("case %d: %s: %.17g is not %.17g", number, what, actual, expected);
}

static void identities(void **state) {
    (void)state;
    seed = 20240601;
    for (int i = 0; i < CASES; i++) {
        struct dl_fake f;
        struct dl_prediction p;
        random_case(&f);
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        same(p.iteration_s,
             p.compute_s + p.exposed_comm_s + p.exposed_input_s + p.bubble_s + p.overhead_s,
             "iteration", i);
        same(p.compute_s, p.forward_s + p.backward_s + p.update_s, "compute", i);
        const double devices = (double)(f.plan.nodes * f.plan.devices_per_node);
        same(p.throughput_samples_per_s, f.plan.batch_per_device_samples * devices / p.iteration_s,
             "throughput", i);
        same(p.epoch_s, f.workload.epoch_samples / p.throughput_samples_per_s, "epoch", i);
        if (p.exposed_comm_s > p.comm_s || p.exposed_comm_s < 0)
            fail_msg("case %d: exposed communication out of [0, comm]", i);
        if (!(p.iteration_low_s < p.iteration_s && p.iteration_s < p.iteration_high_s))
            fail_msg("case %d: interval", i);
        if (!(p.overhead_s >= 0 && p.exposed_input_s >= 0 && p.iteration_s > 0))
            fail_msg("case %d: negative part", i);
        if (!(p.bottleneck_share > 0 && p.bottleneck_share <= 1 + 1e-12))
            fail_msg("case %d: share %g", i, p.bottleneck_share);
        if (!(p.scaling_efficiency > 0 && p.scaling_efficiency <= 1 + 1e-9))
            fail_msg("case %d: efficiency %g", i, p.scaling_efficiency);
        const struct dl_memory *m = &p.memory;
        same(m->total_bytes,
             m->weights_bytes + m->gradients_bytes + m->optimizer_bytes + m->activations_bytes +
                 m->workspace_bytes + m->buffers_bytes + m->context_bytes,
             "memory", i);
        assert_int_equal(p.fits, m->total_bytes <= m->capacity_bytes);
        if (devices <= 1) {
            same(p.comm_s, 0, "communication of one device", i);
            same(p.scaling_efficiency, 1, "efficiency of one device", i);
        }
        dl_arena_free(&f.arena);
    }
}

/* The terms that explain prints add up to the parts of the prediction. */
static void terms_add_up(void **state) {
    (void)state;
    seed = 7;
    for (int i = 0; i < CASES / 4; i++) {
        struct dl_fake f;
        struct dl_prediction p;
        random_case(&f);
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        double forward = 0, backward = 0, comm = 0, memory = 0;
        for (int t = 0; t < p.term_count; t++) {
            const struct dl_term *term = &p.terms[t];
            if (strcmp(term->group, "forward") == 0) forward += term->value;
            if (strcmp(term->group, "backward") == 0) backward += term->value;
            if (strcmp(term->group, "communication") == 0) comm += term->value;
            if (strcmp(term->group, "memory") == 0) memory += term->value;
        }
        same(forward, p.forward_s, "forward terms", i);
        same(backward, p.backward_s, "backward terms", i);
        same(memory, p.memory.total_bytes, "memory terms", i);
        if (comm > p.comm_s * (1 + 1e-9) + 1e-15)
            fail_msg("case %d: communication terms %g above comm_s %g", i, comm, p.comm_s);
        dl_arena_free(&f.arena);
    }
}

typedef void (*change)(struct dl_fake *f);
static void more_latency(struct dl_fake *f) {
    f->system.inter.latency_s *= 2;
    f->system.intra.latency_s *= 2;
}
/* Every message twice as long: limits grow along, else gradients are grouped anew and other things
 * change too. */
static void wider_gradients(struct dl_fake *f) {
    f->framework.sync.gradient_bytes *= 2;
    f->framework.sync.bucket_bytes *= 2;
    static const char *const keys[] = {"first_bucket_bytes", "fusion_bytes"};
    for (int k = 0; k < 2; k++)
        fake_try(&f->framework, keys[k], 2 * dl_framework_number(&f->framework, keys[k]));
}
static void dearer_messages(struct dl_fake *f) {
    f->framework.sync.messages.message_s += 1e-4;
    f->framework.sync.collective_launch_s += 1e-4;
}
static void half_inter(struct dl_fake *f) { f->system.inter.bandwidth_bytes_per_s /= 2; }
static void half_intra(struct dl_fake *f) {
    f->system.intra.bandwidth_bytes_per_s /= 2;
    f->system.intra.channel_bandwidth_bytes_per_s /= 2;
}
static void half_host(struct dl_fake *f) {
    f->system.host.copy_bandwidth_bytes_per_s /= 2;
    f->system.host.memory_bandwidth_bytes_per_s /= 2;
}

static void worse_is_never_faster(void **state) {
    (void)state;
    static const struct {
        change apply;
        const char *name;
    } changes[] = {
        {more_latency, "latency x 2"},        {wider_gradients, "bytes x 2"},
        {dearer_messages, "dearer messages"}, {half_inter, "inter bandwidth / 2"},
        {half_intra, "intra bandwidth / 2"},  {half_host, "host bandwidth / 2"},
    };
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
        seed = 99;
        for (int i = 0; i < CASES; i++) {
            struct dl_fake f;
            struct dl_prediction before, after;
            random_case(&f);
            assert_int_equal(fake_predict(&f, &before), DL_OK);
            changes[c].apply(&f);
            assert_int_equal(fake_predict(&f, &after), DL_OK);
            if (after.iteration_s < before.iteration_s * (1 - 1e-9)) {
                fail_msg("case %d (%s): %s made the iteration faster: %.9g -> %.9g s", i,
                         f.framework.behaviour, changes[c].name, before.iteration_s,
                         after.iteration_s);
            }
            dl_arena_free(&f.arena);
        }
    }
}

static void same_twice(void **state) {
    (void)state;
    seed = 5;
    for (int i = 0; i < 50; i++) {
        struct dl_fake f;
        struct dl_prediction a, b;
        random_case(&f);
        assert_int_equal(fake_predict(&f, &a), DL_OK);
        assert_int_equal(fake_predict(&f, &b), DL_OK);
        assert_memory_equal(&a.iteration_s, &b.iteration_s, sizeof a.iteration_s);
        assert_memory_equal(&a.memory, &b.memory, sizeof a.memory);
        dl_arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities),
        cmocka_unit_test(terms_add_up),
        cmocka_unit_test(worse_is_never_faster),
        cmocka_unit_test(same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
