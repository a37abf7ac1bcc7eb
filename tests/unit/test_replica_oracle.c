/* A replica from its parts: micro-batches, one device alone, what is hidden and what is not,
 * messages inside layers, memory that leaves the device, and the lists of gradients; with numbers
 * of cases of its own kind. F-ACCUMULATE, F-ITERATION, F-SLOWDOWN, F-MANAGED, F-SEARCH-BOUND. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/cost.h"
#include "model/framework/shared_host.h"
#include "model/engine/memory.h"
#include "model/engine/replica.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 71;
static struct dl_err err;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static void random_fake(struct dl_fake *f) {
    fake_make(f);
    f->framework.host.dispatch_s = ONE_OF(0, 5e-6, 1e-3);
    f->framework.host.iteration_s = ONE_OF(0, 2e-3);
    f->framework.host.single_process = half();
    f->framework.sync.gradient_launches_per_tensor = ONE_OF(0, 2);
    f->device.kernel_gap_s = ONE_OF(NAN, 0, 1e-5);
    f->workload.input_bytes_per_sample = ONE_OF(NAN, 4e3, 4e6);
    f->framework.input.prefetch_batches = upto(2);
    f->plan.nodes = 1 + upto(3), f->plan.devices_per_node = 1 + upto(4);
    f->plan.batch_per_device_samples = ONE_OF(64, 256, 1024);
    f->plan.micro_batch_samples = half() ? 0 : ONE_OF(16, 32, 64);
    f->plan.compute_scale = ONE_OF(0, 1.5);
}

static void predicted(struct dl_fake *f, struct dl_prediction *p) {
    f->plan.dp = 0, f->plan.global_batch_samples = 0;
    if (dl_plan_complete(&f->system, &f->workload, &f->framework, &f->plan, &err) != DL_OK ||
        dl_predict(&f->system, &f->workload, &f->framework, &f->plan, NULL, &f->arena, p, &err) !=
            DL_OK)
        fail_msg("%s", err.message);
}

/* The efficiency is the time of one device, with its input and its micro-batches, over that of
 * each; without slowdown what is exposed is what one device of as slow a host has not. */
static void one_device_alone(void **state) {
    (void)state;
    int exposed = 0;
    for (int round = 0; round < 1500; round++) {
        struct dl_fake f;
        struct dl_prediction all, one, quiet;
        random_fake(&f);
        predicted(&f, &all);
        struct dl_fake g = f;
        g.arena = (struct dl_arena){0};
        g.plan.nodes = g.plan.devices_per_node = 1;
        predicted(&g, &one);
        check_close(all.scaling_efficiency, one.iteration_s / all.iteration_s, 1e-9);
        check_close(one.scaling_efficiency, 1, 1e-12);
        check_close(one.comm_s + one.exposed_comm_s, 0, 0);
        /* a process that drives several devices takes the sum of their dispatches */
        if (f.framework.host.single_process)
            g.framework.host.dispatch_s *= (double)f.plan.devices_per_node;
        g.device.launch_s = NAN;
        predicted(&g, &quiet);
        if (f.framework.host.dispatch_s == 0 || f.framework.host.dispatch_s > 4e-6) {
            check_close(all.iteration_s - all.exposed_comm_s - all.exposed_input_s,
                        quiet.iteration_s - quiet.exposed_input_s, 1e-9);
            check_close(all.overhead_s, quiet.overhead_s,
                        1e-9 * fmax(1, quiet.iteration_s / fmax(1e-12, quiet.overhead_s)));
        }
        exposed += all.exposed_comm_s > 0;
        assert_true(all.comm_s >= all.exposed_comm_s);
        dl_arena_free(&f.arena);
        dl_arena_free(&g.arena);
    }
    assert_true(exposed > 100);
}

/* k micro-batches take k times the passes of one, and sums of gradients before the update. */
static void micro_batches(void **state) {
    (void)state;
    for (int round = 0; round < 600; round++) {
        struct dl_fake f;
        struct dl_prediction many, one;
        struct dl_cost cost;
        random_fake(&f);
        const double micro = ONE_OF(8, 16, 24), count = 1 + upto(5);
        f.plan.batch_per_device_samples = micro * count;
        f.plan.micro_batch_samples = micro;
        predicted(&f, &many);
        f.plan.batch_per_device_samples = micro, f.plan.micro_batch_samples = 0;
        predicted(&f, &one);
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, micro,
                                         &f.arena, &cost, &err),
                         DL_OK);
        check_close(many.forward_s, count * one.forward_s, 1e-12);
        check_close(many.backward_s, count * one.backward_s, 1e-12);
        check_close(many.update_s, one.update_s + (count - 1) * cost.accumulation.time_s, 1e-12);
        assert_true(cost.accumulation.time_s > 0);
        for (int i = 0; i < 3; i++)
            check_close(many.by_limit_s[i],
                        count * (one.by_limit_s[i] - cost.update.by_limit_s[i]) +
                            cost.update.by_limit_s[i] +
                            (count - 1) * cost.accumulation.by_limit_s[i],
                        1e-9);
        /* without a host the passes follow each other */
        f.framework.host.dispatch_s = f.framework.host.iteration_s = 0;
        f.device.kernel_gap_s = 0, f.plan.nodes = f.plan.devices_per_node = 1;
        f.workload.input_bytes_per_sample = NAN;
        f.plan.batch_per_device_samples = micro * count, f.plan.micro_batch_samples = micro;
        predicted(&f, &many);
        check_close(many.iteration_s, many.forward_s + many.backward_s + many.update_s, 1e-9);
        dl_arena_free(&f.arena);
    }
}

/* All bytes of the gradients in their type, of parameters that layers share once; algorithm and
 * protocol are those of the largest message. */
static void gradients_by_type(void **state) {
    (void)state;
    for (int round = 0; round < 600; round++) {
        struct dl_fake f;
        struct dl_prediction p;
        random_fake(&f);
        struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                                  {.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 8e13},
                                  {.precision = DL_BF16, .unit = 1, .peak_flop_per_s = 8e13}};
        static const enum dl_precision types[] = {DL_FP32, DL_MIXED, DL_FP16, DL_BF16};
        f.device.rates = rates, f.device.rate_count = 3;
        f.plan.precision = types[upto(4)], f.plan.nodes = 2;
        f.framework.sync.gradient_bytes = ONE_OF(2, 4);
        f.framework.sync.mixed_gradient_bytes = ONE_OF(2, 4);
        f.framework.sync.bucketed.first_bucket_bytes = ONE_OF(1e6, 4e7);
        f.framework.sync.bucketed.bucket_bytes = ONE_OF(1e6, 4e7);
        struct dl_layer *layers = dl_arena_alloc(&f.arena, 4, sizeof *layers);
        memcpy(layers, f.workload.layers, 4 * sizeof *layers);
        const int tied = upto(3);
        if (tied > 0) layers[tied].tied_to = 0;
        f.workload.layers = layers;
        double elements = 0;
        for (int i = 0; i < 4; i++)
            if (tied == 0 || i != tied) elements += layers[i].parameter_elements;
        const double width = f.plan.precision == DL_MIXED  ? f.framework.sync.mixed_gradient_bytes
                             : f.plan.precision == DL_FP32 ? f.framework.sync.gradient_bytes
                                                           : 2;
        f.plan.dp = 0, f.plan.global_batch_samples = 0;
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        check_close(p.comm_bytes, elements * width, 1e-12);
        int messages = 0;
        double largest = -1, sum_s = 0;
        const char *inputs = NULL;
        for (int t = 0; t < p.term_count; t++) {
            const char *size = strstr(p.terms[t].inputs, "S=");
            if (strcmp(p.terms[t].group, "communication") != 0 || size == NULL) continue;
            messages++, sum_s += p.terms[t].value;
            if (!(atof(size + 2) > largest)) continue;
            largest = atof(size + 2), inputs = p.terms[t].inputs;
        }
        assert_int_equal(p.comm_messages, messages);
        check_contains(inputs, p.comm_algorithm);
        if (p.comm_protocol != NULL) check_contains(inputs, p.comm_protocol);
        assert_true(sum_s <= p.comm_s * (1 + 1e-9));
        dl_arena_free(&f.arena);
    }
}

/* ---- a replica of several devices ---- */

struct split {
    struct dl_fake f;
    struct dl_layer_message messages[2];
    struct dl_predict_options options;
    struct dl_predict_request request;
    struct dl_replica replica;
};

static void split_make(struct split *s) {
    fake_make(&s->f);
    s->f.plan.nodes = 1, s->f.plan.devices_per_node = 2, s->f.plan.batch_per_device_samples = 64;
    assert_int_equal(
        dl_plan_complete(&s->f.system, &s->f.workload, &s->f.framework, &s->f.plan, &err), DL_OK);
    s->options = (struct dl_predict_options){.terms = true};
    s->request = (struct dl_predict_request){&s->f.system, &s->f.workload, &s->f.framework,
                                             &s->f.plan,   &s->options,    &s->f.arena};
    s->replica = dl_replica_of_device(&s->request);
    s->replica.synchronizes = false, s->replica.parts = 2;
    s->messages[0] = (struct dl_layer_message){.layer = 1, .hidden_frac = 0};
    s->messages[1] = (struct dl_layer_message){.layer = 2, .backward = true, .hidden_frac = 0.5};
    for (int i = 0; i < 2; i++)
        s->messages[i].message = (struct dl_message){.name = "exchange",
                                                     .bytes = 1e6 * (i + 1),
                                                     .duration_s = 3e-3,
                                                     .latency_s = 1e-3,
                                                     .bandwidth_s = 2e-3,
                                                     .limit = i == 0 ? "intra" : "inter",
                                                     .formula = "F-COLL-RING",
                                                     .origin = "model",
                                                     .algorithm = i == 0 ? "ring" : "tree"};
}

static double pass_s(const struct dl_cost *cost, int layer, bool backward) {
    return backward ? cost->layers[layer].backward.time_s : cost->layers[layer].forward.time_s;
}

/* The devices wait for what the layer's own pass does not hide of its message; before a backward
 * pass, after a forward one. */
static void messages_inside_layers(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct split s;
        struct dl_prediction without, with;
        struct dl_cost cost;
        split_make(&s);
        s.f.framework.host.dispatch_s = 0, s.f.device.kernel_gap_s = 0;
        assert_int_equal(dl_replica_predict(&s.replica, &without, &err), DL_OK);
        assert_int_equal(dl_cost_compute(&s.f.device, &s.f.workload, &s.f.framework, &s.f.plan, 64,
                                         &s.f.arena, &cost, &err),
                         DL_OK);
        double waits_s = 0;
        for (int i = 0; i < 2; i++) {
            struct dl_layer_message *m = &s.messages[i];
            m->layer = upto(4), m->backward = half(), m->hidden_frac = ONE_OF(0, 0.5, 1);
            m->message.duration_s = ONE_OF(1e-6, 1e-3, 3e-2);
            m->message.extrapolated = upto(3) == 0;
            const double rest_s =
                m->message.duration_s - m->hidden_frac * pass_s(&cost, m->layer, m->backward);
            waits_s += rest_s > 0 ? rest_s : 0;
        }
        s.replica.messages = s.messages, s.replica.message_count = 2;
        assert_int_equal(dl_replica_predict(&s.replica, &with, &err), DL_OK);
        check_close(with.exposed_comm_s, waits_s < 1e-12 ? 0 : waits_s, 1e-9);
        check_close(with.iteration_s, without.iteration_s + waits_s, 1e-9);
        check_close(with.comm_s,
                    s.messages[0].message.duration_s + s.messages[1].message.duration_s, 1e-12);
        check_close(with.comm_bytes, 3e6, 1e-12);
        assert_int_equal(with.comm_messages, 2);
        assert_string_equal(with.comm_algorithm, "tree"); /* of the larger */
        bool said = false;
        for (int i = 0; i < with.warning_count; i++)
            said = said || strncmp(with.warnings[i], "message sizes lie outside", 25) == 0;
        assert_int_equal(said,
                         s.messages[0].message.extrapolated || s.messages[1].message.extrapolated);
        /* when each runs: after the forward pass, or so that it ends with its hidden part begun */
        double at[4][2] = {{0}};
        int seen = 0;
        for (int t = 0; t < with.term_count; t++)
            for (int l = 0; l < 4; l++)
                for (int b = 0; b < 2; b++)
                    if (strstr(with.terms[t].name, b ? "backward" : "forward") != NULL &&
                        strncmp(with.terms[t].name, s.f.workload.layers[l].name, 6) == 0)
                        at[l][b] = with.terms[t].start_s;
        for (int t = 0; t < with.term_count; t++) {
            if (strncmp(with.terms[t].name, "exchange ", 9) != 0) continue;
            const struct dl_layer_message *m = &s.messages[seen++];
            const double own_s = pass_s(&cost, m->layer, m->backward),
                         rest_s = m->message.duration_s - m->hidden_frac * own_s;
            check_close(with.terms[t].start_s,
                        m->backward ? at[m->layer][1] - (rest_s > 0 ? rest_s : 0)
                                    : at[m->layer][0] + own_s,
                        1e-9);
        }
        assert_int_equal(seen, 2);
        dl_arena_free(&s.f.arena);
    }
}

/* Buffers of the messages are memory, with what fragments; the largest batch is that of the devices
 * together, by the parts. */
static void memory_of_a_replica(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct split s;
        struct dl_prediction p;
        struct dl_memory m;
        split_make(&s);
        s.f.framework.memory.fragmentation_frac = ONE_OF(0, 0.2);
        s.f.framework.activations.managed_memory = half();
        s.replica.buffer_bytes = ONE_OF(0, 1e8, 5e8), s.replica.parts = ONE_OF(1, 2, 4);
        if (half()) s.f.framework.host.dispatch_s = 0, s.f.device.kernel_gap_s = 0;
        const char *unknown;
        dl_memory_compute(&s.f.system, &s.f.workload, &s.f.framework, &s.f.plan, 64, &m, &unknown);
        const double more = s.replica.buffer_bytes / (1 - s.f.framework.memory.fragmentation_frac),
                     total = m.total_bytes + more;
        s.f.device.memory_bytes = total * ONE_OF(0.5, 0.99999, 1, 1.5, 3);
        const bool over = total > s.f.device.memory_bytes,
                   managed = s.f.framework.activations.managed_memory && s.replica.parts > 1;
        assert_int_equal(dl_replica_predict(&s.replica, &p, &err), DL_OK);
        check_close(p.memory.buffers_bytes, m.buffers_bytes + s.replica.buffer_bytes, 1e-12);
        check_close(p.memory.total_bytes, total, 1e-12);
        assert_int_equal(p.fits, !over || managed);
        check_close(p.max_batch_samples,
                    dl_memory_max_batch(&s.f.system, &s.f.workload, &s.f.framework, &s.f.plan) /
                        s.replica.parts,
                    1e-12);
        /* what does not fit goes out and comes back over a link that two share */
        struct dl_prediction fits;
        const double excess = total - s.f.device.memory_bytes;
        s.f.device.memory_bytes = 1e15;
        assert_int_equal(dl_replica_predict(&s.replica, &fits, &err), DL_OK);
        check_close(p.overhead_s - fits.overhead_s, managed && over ? 2 * excess * 2 / 6e9 : 0,
                    managed && over ? 1e-9 : 1e-15);
        bool said = false, advised = false; /* without its messages, what one device can change */
        for (int i = 0; i < p.warning_count; i++) {
            said = said || strncmp(p.warnings[i], "does not fit", 12) == 0;
            advised = advised || strncmp(p.warnings[i], "does not fit, ", 14) == 0;
        }
        assert_int_equal(said, over && !managed);
        assert_int_equal(advised, said && excess > more * (1 + 1e-9));
        dl_arena_free(&s.f.arena);
    }
}

/* A brief prediction ends where its passes and waits alone, of all micro-batches, exceed the limit;
 * not where measured runs may shorten it, nor without a limit. */
static void beyond_a_limit(void **state) {
    (void)state;
    int beyond = 0;
    for (int round = 0; round < 500; round++) {
        struct split s;
        struct dl_prediction p;
        struct dl_cost cost;
        split_make(&s);
        const double micro = ONE_OF(0, 16, 24);
        s.f.plan.micro_batch_samples = s.replica.plan.micro_batch_samples = micro;
        s.messages[0].message.duration_s = ONE_OF(1e-4, 1e-2);
        s.replica.messages = s.messages, s.replica.message_count = upto(3);
        s.replica.least_wait_s = ONE_OF(0, 1e-4, 10);
        assert_int_equal(dl_cost_compute(&s.f.device, &s.f.workload, &s.f.framework, &s.f.plan,
                                         micro > 0 ? micro : 64, &s.f.arena, &cost, &err),
                         DL_OK);
        double least_s = 0;
        for (int i = 0; i < 4; i++)
            least_s += (micro > 0 ? ceil(64 / micro) : 1) *
                       (pass_s(&cost, i, false) + pass_s(&cost, i, true));
        for (int i = 0; i < s.replica.message_count; i++) {
            const struct dl_layer_message *m = &s.messages[i];
            const double rest_s =
                m->message.duration_s - m->hidden_frac * pass_s(&cost, m->layer, m->backward);
            if (rest_s > 0) least_s += rest_s;
        }
        s.options.brief = upto(6) > 0;
        s.options.terms = false;
        s.options.limit_s = least_s * ONE_OF(0, 0.5, 0.999, 1, 1.001);
        if (upto(6) == 0) s.f.framework.measured = (const void *)&s;
        const double limit_s = s.options.limit_s;
        const bool asks = s.options.brief && limit_s > 0 && s.f.framework.measured == NULL,
                   waits = asks && s.replica.least_wait_s > limit_s * (1 + 1e-6),
                   passes = asks && least_s > limit_s * (1 + 1e-6);
        assert_int_equal(dl_replica_predict(&s.replica, &p, &err), DL_OK);
        if (fabs(s.replica.least_wait_s - limit_s) > 1e-6 * limit_s) {
            assert_int_equal(p.beyond_limit, waits || passes);
            if (waits) check_close(p.iteration_s, s.replica.least_wait_s, 0);
            if (!waits && passes) check_close(p.iteration_s, least_s, 1e-12);
            if (!waits && !passes) assert_true(p.iteration_s >= least_s * (1 - 1e-12));
        }
        beyond += p.beyond_limit;
        assert_int_equal(dl_replica_is_beyond(&s.request, limit_s), false);
        assert_int_equal(dl_replica_is_beyond(&s.request, limit_s * (1 + 1e-8)), asks);
        dl_arena_free(&s.f.arena);
    }
    assert_true(beyond > 100);
}

/* ---- who sends, and what it costs ---- */

/* Kept whole: one random case and what follows from it. */
static void libraries_and_slowdowns(void **state) {
    (void)state;
    for (int round = 0; round < 3000; round++) {
        static const char *const names[] = {NULL, "nccl", "mpi"}, *const behaviours[] = {
                                                                      "bucketed", "tensor-fusion",
                                                                      "ideal"};
        struct dl_fake f;
        fake_make(&f);
        const bool cpu = half(), loopback = half();
        f.device.kind = cpu ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        f.device.unit_count = upto(4) == 0 ? DL_ABSENT : 1 + upto(4);
        f.device.collective_slowdown_frac = ONE_OF(NAN, 0, 0.1, 0.3);
        f.framework.sync.library = upto(4) ? DL_LIB_NCCL : DL_LIB_MPI;
        f.framework.sync.cpu_library = upto(4) ? DL_LIB_MPI : -1;
        f.framework.sync.overlap_slowdown_frac = ONE_OF(0, 0.2, 0.4);
        f.framework.sync.messages.servers_colocated = half();
        const int b = upto(4);
        f.framework.behaviour = b < 3 ? dl_framework_behaviour_find(behaviours[b]) : NULL;
        f.system.inter.kind = loopback ? "loopback" : "ethernet";
        f.plan.library = names[upto(3)], f.plan.nodes = 1 + upto(2);
        f.plan.devices_per_node = 1 + upto(2);
        f.plan.server_nodes = upto(4) == 0 ? &f.system : NULL;
        f.plan.batch_per_device_samples = ONE_OF(7, 7.000001, 7.5, 7 + 1e-10);
        const int own = cpu ? f.framework.sync.cpu_library : f.framework.sync.library,
                  library = f.plan.library == NULL     ? (own < 0 ? DL_LIB_NCCL : own)
                            : f.plan.library[0] == 'n' ? DL_LIB_NCCL
                                                       : DL_LIB_MPI;
        const bool polls = b == 1 && library == DL_LIB_MPI, many = f.plan.nodes > 1;
        const double cores = f.device.unit_count >= 1 ? (double)f.device.unit_count : 1,
                     stop = cpu && loopback && many && !polls ? 1 / cores : 0;
        double slower = fmax(f.framework.sync.overlap_slowdown_frac, stop);
        if (library == DL_LIB_NCCL && f.device.collective_slowdown_frac > slower)
            slower = f.device.collective_slowdown_frac;
        assert_int_equal(dl_replica_library(&f.system, &f.framework, &f.plan), library);
        assert_int_equal(dl_replica_polls(&f.system, &f.framework, &f.plan), polls);
        check_close(dl_replica_slowdown_frac(&f.system, &f.framework, &f.plan), b == 2 ? 0 : slower,
                    1e-12);
        const struct dl_predict_request request = {&f.system, &f.workload, &f.framework,
                                                   &f.plan,   NULL,        &f.arena};
        const struct dl_replica replica = dl_replica_of_device(&request);
        assert_int_equal(replica.synchronizes,
                         many || f.plan.devices_per_node > 1 || f.plan.server_nodes != NULL ||
                             (f.framework.sync.messages.servers_colocated && cpu && loopback));
        check_close(replica.samples, f.plan.batch_per_device_samples < 7 + 1e-9 ? 7 : 8, 0);
        check_close(replica.parts, 1, 0);
        assert_int_equal(replica.message_count, 0);
        dl_arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_alone),       cmocka_unit_test(micro_batches),
        cmocka_unit_test(gradients_by_type),      cmocka_unit_test(messages_inside_layers),
        cmocka_unit_test(memory_of_a_replica),    cmocka_unit_test(beyond_a_limit),
        cmocka_unit_test(libraries_and_slowdowns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
