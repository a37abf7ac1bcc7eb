/* One pipeline in parts against an account written here, of random layers, cuts, plans and times:
 * what the split, its evidence and its memory are. F-PIPE-GPIPE, F-PIPE-BUBBLE, F-PIPE-BALANCE. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/engine/pipe.h"
#include "model/engine/pipeline.h"
#include "tests/check.h"
#include "model/engine/memory.h"
#include "tests/fake.h"

enum { LAYERS = 12, STAGES = 4, TRIALS = 300 };
static struct dl_err err;
static uint64_t seed = 61;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double most(double x, double y) { return x > y ? x : y; }

/* A network whose times, sizes and boundaries are drawn, cut anywhere. */
struct bench {
    struct dl_fake f;
    struct dl_predict_request request;
    struct dl_layer layers[LAYERS];
    struct dl_layer_cost times[LAYERS];
    struct dl_cost cost;
    double cuts[LAYERS + 1];
    struct dl_message messages[STAGES + 1];
    int first[STAGES * 3 + 1];
    struct dl_pipe pipe;
};

static void draw_layers(struct bench *b) {
    for (int i = 0; i < LAYERS; i++) {
        b->layers[i] = b->f.workload.layers[i % 4];
        b->layers[i].parameter_elements = 1000 * (1 + upto(50)) * (upto(3) == 0 ? 1000 : 1);
        b->layers[i].buffer_elements = 100 * upto(5);
        b->layers[i].parameter_count = 1 + upto(3);
        b->layers[i].tied_to = upto(4) == 0 ? upto(i + 1) - 1 : -1;
        b->times[i].forward = (struct dl_pass_cost){.time_s = 1e-4 * some(), .launches = upto(40)};
        b->times[i].backward = (struct dl_pass_cost){.time_s = 1e-4 * some(), .launches = upto(40)};
        b->cuts[i + 1] = 1000 * (1 + upto(900));
    }
}

/* Parts of at least one layer: places of their ends without repeats. */
static void draw_cuts(struct bench *b) {
    bool ends[LAYERS] = {false};
    for (int n = 1; n < b->pipe.parts;) {
        const int at = 1 + upto(LAYERS - 1);
        if (!ends[at]) ends[at] = true, n++;
    }
    int k = 0;
    for (int i = 1; i < LAYERS; i++) {
        if (ends[i]) b->first[++k] = i;
    }
    b->first[0] = 0, b->first[b->pipe.parts] = LAYERS;
}

static void draw(struct bench *b) {
    static const enum dl_schedule schedules[] = {DL_1F1B, DL_GPIPE, DL_INTERLEAVED, DL_ASYNC};
    memset(b, 0, sizeof *b);
    fake_make(&b->f);
    draw_layers(b);
    b->f.workload.layers = b->layers, b->f.workload.layer_count = LAYERS;
    b->f.framework.sync.collective_launch_s = 1e-5 * upto(2);
    b->f.framework.host.iteration_s = 1e-4 * upto(3);
    b->f.framework.memory.fragmentation_frac = 0.25 * upto(2);
    if (upto(4) == 0) b->f.device.kernel_gap_s = NAN;
    b->cuts[0] = 0, b->cuts[LAYERS] = 0;
    b->cost = (struct dl_cost){.layers = b->times, .update = {.time_s = 1e-3 * some()}};
    b->request = (struct dl_predict_request){.system = &b->f.system,
                                             .workload = &b->f.workload,
                                             .framework = &b->f.framework,
                                             .plan = &b->f.plan,
                                             .arena = &b->f.arena};
    struct dl_pipe *p = &b->pipe;
    p->stages = 1 + upto(STAGES), p->request = &b->request, p->plan = b->f.plan;
    p->plan.schedule = schedules[upto(4)], p->plan.virtual_stages = upto(4);
    p->plan.pp = p->stages, p->plan.dp = 1 << upto(3), p->plan.tp = 1;
    const int64_t devices = p->plan.pp * p->plan.dp;
    p->plan.nodes = devices % 4 == 0 ? devices / 4 : 1;
    p->plan.devices_per_node = devices / p->plan.nodes;
    b->f.workload.transformer_layers = upto(2) == 0 ? 24 : NAN;
    p->plan.compute_scale = upto(2) == 0 ? 0 : 1.5;
    p->plan.micro_batch_samples = 1 + upto(4), p->micro_batches = STAGES * 3 * (1 + upto(3));
    p->plan.batch_per_device_samples =
        p->plan.micro_batch_samples * p->micro_batches / (double)p->plan.pp;
    b->f.plan = p->plan;
    const int v = p->plan.schedule != DL_INTERLEAVED ? 1
                  : p->plan.virtual_stages > 0       ? (int)p->plan.virtual_stages
                                                     : 2;
    check_close(dl_pipe_virtual_stages(&p->plan), v, 0);
    p->parts = p->stages * v;
    assert_int_equal(dl_pipe_room(p, &b->f.arena, &err), DL_OK);
    draw_cuts(b);
    memcpy(p->first, b->first, ((size_t)p->parts + 1) * sizeof *p->first);
    p->cut_elements = b->cuts, p->messages = b->messages;
    dl_pipe_split(p, &b->request, &b->cost);
}

/* The stage of a layer: parts go round. */
static int stage_of(const struct bench *b, int layer) {
    int part = 0;
    while (layer >= b->first[part + 1]) part++;
    return part % b->pipe.stages;
}

/* Each part takes its kernels with the gaps between them, or what the host needs to issue them. */
static double part_s(const struct bench *b, int part, double *kernels_s) {
    const double scale = b->pipe.plan.compute_scale > 0 ? b->pipe.plan.compute_scale : 1,
                 gap_s = isnan(b->f.device.kernel_gap_s) ? 0 : 1e-6;
    double device_s = 0, host_s = 0;
    *kernels_s = 0;
    for (int i = b->first[part]; i < b->first[part + 1]; i++) {
        const double s = b->times[i].forward.time_s + b->times[i].backward.time_s,
                     launches = b->times[i].forward.launches + b->times[i].backward.launches;
        *kernels_s += s;
        device_s += s + launches * gap_s * scale, host_s += launches * 5e-6 * scale;
    }
    return most(device_s, host_s);
}

/* Kept whole: every field of one split. */
static void splits(void **state) {
    (void)state;
    for (int n = 0; n < TRIALS; n++) {
        struct bench b;
        draw(&b);
        const struct dl_pipe *p = &b.pipe;
        double step_s[STAGES] = {0}, compute_s[STAGES] = {0}, parameters[STAGES] = {0};
        double forward_s[STAGES] = {0}, backward_s[STAGES] = {0}, boundary = 0, all = 0,
               fullest = 0;
        for (int k = 0; k < p->parts; k++) {
            double kernels_s;
            step_s[k % p->stages] += part_s(&b, k, &kernels_s);
            compute_s[k % p->stages] += kernels_s;
            if (k > 0) boundary = most(boundary, b.cuts[b.first[k]]);
        }
        for (int i = 0; i < LAYERS; i++) {
            const int s = stage_of(&b, i);
            forward_s[s] += b.times[i].forward.time_s, backward_s[s] += b.times[i].backward.time_s;
            parameters[s] += b.layers[i].tied_to < 0 ? b.layers[i].parameter_elements : 0;
        }
        double others_s = 0;
        int slowest = 0;
        for (int s = 0; s < p->stages; s++) {
            check_close(p->step_s[s], step_s[s], 1e-12);
            check_close(p->compute_s[s], compute_s[s], 1e-12);
            check_close(p->parameters[s], parameters[s], 0);
            if (step_s[s] > step_s[slowest]) slowest = s;
            all += parameters[s], fullest = most(fullest, parameters[s]), others_s += step_s[s];
        }
        others_s -= step_s[slowest];
        assert_int_equal(p->slowest, slowest);
        check_close(p->step_max_s, step_s[slowest], 1e-12);
        check_close(p->forward_s, forward_s[slowest], 1e-12);
        check_close(p->backward_s, backward_s[slowest], 1e-12);
        check_close(p->boundary_elements, boundary, 0);
        check_close(p->update_s, b.cost.update.time_s * fullest / all, 1e-12);
        struct dl_evidence e;
        const double waits_s = most(0, step_s[slowest] - compute_s[slowest]);
        dl_pipe_compute(p, &e);
        check_close(e.forward_s, p->micro_batches * forward_s[slowest], 1e-12);
        check_close(e.backward_s, p->micro_batches * backward_s[slowest], 1e-12);
        check_close(e.update_s, p->update_s, 0);
        check_close(e.host_s, p->micro_batches * waits_s + b.f.framework.host.iteration_s, 1e-9);
        assert_true(fabs(e.bubble_s -
                         (p->plan.schedule == DL_ASYNC ? 0 : others_s * p->stages / p->parts)) <
                    1e-12);
        dl_arena_free(&b.f.arena);
    }
}

/* A network without parameters of its own updates none. */
static void nothing_to_update(void **state) {
    (void)state;
    struct bench b;
    draw(&b);
    for (int i = 0; i < LAYERS; i++) b.layers[i].parameter_elements = 0;
    dl_pipe_split(&b.pipe, &b.request, &b.cost);
    check_close(b.pipe.update_s, 0, 0);
    dl_arena_free(&b.f.arena);
}

/* Messages: one between stages, where there are several, there and back for each micro-batch and
 * part; then the sum of each stage's gradients, where there are replicas. What of it is seen:
 * filling and draining, boundaries slower than a stage, and sums beyond the backward passes (two
 * thirds of a step) of the stages before. Asynchronous ones neither fill nor wait. */
static void messages(void **state) {
    (void)state;
    for (int n = 0; n < TRIALS; n++) {
        struct bench b;
        struct dl_evidence e;
        draw(&b);
        struct dl_pipe *p = &b.pipe;
        const bool async = p->plan.schedule == DL_ASYNC;
        const double v = (double)p->parts / p->stages;
        double comm_s = 0, seen_s = 0, sums_s = 0;
        int count = 0;
        assert_int_equal(dl_pipe_evidence(p, &e, &err), DL_OK);
        if (p->stages > 1) {
            const struct dl_message *m = &b.messages[count++];
            const double passes = 2 * v * p->micro_batches, each_s = m->duration_s / passes;
            assert_string_equal(m->name, "activations and gradients between stages");
            check_close(m->bytes, passes * p->boundary_elements * p->plan.micro_batch_samples * 4,
                        1e-12);
            assert_true(each_s > b.f.framework.sync.collective_launch_s);
            if (!async) seen_s += 2 * (p->parts - 1) * each_s;
            seen_s += p->micro_batches * most(0, 2 * v * each_s - p->step_max_s);
            comm_s += m->duration_s;
        }
        for (int s = 0; s < p->stages && p->plan.dp > 1; s++) {
            const struct dl_message *m = &b.messages[count++];
            const double hidden_s = async ? 0 : s * p->step_max_s / 1.5;
            assert_string_equal(m->name, "all-reduce of a stage");
            check_close(m->bytes, 4 * p->parameters[s], 1e-12);
            const struct dl_collective_request sum = {.op = DL_COLL_ALL_REDUCE,
                                                      .library = DL_LIB_NCCL,
                                                      .bytes = m->bytes,
                                                      .nodes = p->plan.nodes,
                                                      .ranks_per_node = p->plan.devices_per_node,
                                                      .group_size = p->plan.dp,
                                                      .group_stride = p->stages,
                                                      .concurrent = p->stages};
            struct dl_collective_time t;
            assert_int_equal(dl_collective_time(&b.f.system, &sum, &t, &err), DL_OK);
            check_close(m->duration_s, t.time_s + b.f.framework.sync.collective_launch_s, 1e-9);
            comm_s += m->duration_s, sums_s = most(sums_s, m->duration_s - hidden_s);
        }
        assert_int_equal(p->message_count, count);
        seen_s += sums_s;
        check_close(e.exposed_comm_s, seen_s, 1e-9);
        check_close(e.comm_s, most(comm_s, seen_s), 1e-9);
        for (int m = 0; m < count; m++)
            check_close(b.messages[m].latency_s + b.messages[m].bandwidth_s,
                        b.messages[m].duration_s, 1e-9);
        dl_arena_free(&b.f.arena);
    }
}

/* The layers of a stage as a network, and what its schedule adds to its memory. */
static void memory_of_stage(const struct bench *b, int s, double held, struct dl_memory *out) {
    const struct dl_pipe *p = &b->pipe;
    struct dl_layer room[LAYERS];
    const struct dl_workload own = dl_pipe_stage_workload(p, s, room);
    double parameters = 0, buffers = 0;
    int count = 0, tensors = 0;
    for (int i = 0; i < LAYERS; i++) {
        if (stage_of(b, i) != s) continue;
        check_close(own.layers[count++].parameter_elements, b->layers[i].parameter_elements, 0);
        buffers += b->layers[i].buffer_elements;
        if (b->layers[i].tied_to >= 0) continue;
        parameters += b->layers[i].parameter_elements, tensors += b->layers[i].parameter_count;
    }
    assert_int_equal(own.layer_count, count);
    assert_int_equal(own.parameter_tensors, tensors);
    check_close(own.parameters, parameters, 0);
    check_close(own.buffer_elements, buffers, 0);
    check_close(own.input_bytes_per_sample, s == 0 ? b->f.workload.input_bytes_per_sample : 0, 0);
    if (isnan(b->f.workload.transformer_layers))
        assert_true(isnan(own.transformer_layers));
    else
        check_close(own.transformer_layers, 24.0 / p->stages, 1e-12);
    struct dl_plan plan = p->plan; /* two devices sum gradients as any do; one alone does not */
    plan.nodes = plan.devices_per_node = p->plan.dp == 1 ? 1 : 2;
    dl_memory_compute(&b->f.system, &own, &b->f.framework, &plan,
                      held * p->plan.micro_batch_samples, out, NULL);
    const double stash = p->plan.schedule == DL_ASYNC ? (p->stages - s - 1) * 4 * parameters : 0;
    const double boundaries = 4 * 4 * b->cuts[b->first[s]] * p->plan.micro_batch_samples;
    out->weights_bytes += stash, out->buffers_bytes += boundaries;
    out->total_bytes += (stash + boundaries) / (1 - b->f.framework.memory.fragmentation_frac);
}

/* F-PIPE-GPIPE: held at once are all micro-batches (GPipe), or those that later stages have not yet
 * returned; with v parts on a device, of which the others hold some. The fullest device counts. */
static void memories(void **state) {
    (void)state;
    for (int n = 0; n < TRIALS; n++) {
        struct bench b;
        draw(&b);
        const struct dl_pipe *p = &b.pipe;
        const double stages = p->stages, v = p->parts / stages;
        double fullest = -1, least = INFINITY, samples;
        struct dl_layer room[LAYERS];
        struct dl_memory one, got;
        for (int s = 0; s < p->stages; s++) {
            double held = stages - s, weights, buffers;
            if (p->plan.schedule == DL_GPIPE) held = p->micro_batches;
            if (p->plan.schedule == DL_INTERLEAVED) held = stages + (stages - 1) / v;
            if (held > p->micro_batches) held = p->micro_batches;
            memory_of_stage(&b, s, held, &one);
            fullest = most(fullest, one.total_bytes);
            weights = one.weights_bytes, buffers = one.buffers_bytes;
            const double most_samples = dl_pipe_stage_memory(p, s, held, room, &got, NULL, true);
            check_close(got.total_bytes, one.total_bytes, 1e-12);
            check_close(got.weights_bytes, weights, 1e-12);
            check_close(got.buffers_bytes, buffers, 1e-12);
            const double all = floor(most_samples / held) * p->micro_batches / stages;
            if (all < least) least = all;
            assert_true(isnan(dl_pipe_stage_memory(p, s, held, room, &got, NULL, false)));
        }
        dl_pipe_memory(p, room, &got, NULL, &samples);
        check_close(got.total_bytes, fullest, 1e-12);
        check_close(samples, least, 1e-12);
        b.f.device.memory_bytes = NAN;
        dl_pipe_memory(p, room, &got, NULL, &samples);
        assert_true(isnan(samples));
        check_close(got.total_bytes, fullest, 1e-12);
        dl_arena_free(&b.f.arena);
    }
}

/* The least largest sum of stages by trying every cut, over layers [from, LAYERS). */
static double least_of(const double *cost, int layers, int from, int stages) {
    double sum = 0, best = INFINITY;
    if (stages == 1) {
        for (int i = from; i < layers; i++) sum += cost[i];
        return sum;
    }
    for (int i = from; i <= layers - stages; i++) {
        sum += cost[i];
        const double rest = most(sum, least_of(cost, layers, i + 1, stages - 1));
        if (rest < best) best = rest;
    }
    return best;
}

/* F-PIPE-BALANCE in room of which nothing is read before it is written. */
static void balances(void **state) {
    (void)state;
    for (int n = 0; n < TRIALS; n++) {
        double cost[8], work[DL_PIPELINE_WORK(8, 8)];
        int first[9];
        const int layers = 1 + upto(8), stages = 1 + upto(layers);
        for (int i = 0; i < layers; i++) cost[i] = 1 + upto(9);
        for (size_t i = 0; i < sizeof work / sizeof *work; i++) work[i] = NAN;
        check_close(dl_pipeline_balance(cost, layers, stages, first, work),
                    least_of(cost, layers, 0, stages), 0);
        assert_int_equal(first[0], 0);
        assert_int_equal(first[stages], layers);
        double largest = 0;
        for (int s = 0; s < stages; s++) {
            double sum = 0;
            assert_true(first[s] < first[s + 1]);
            for (int i = first[s]; i < first[s + 1]; i++) sum += cost[i];
            largest = most(largest, sum);
        }
        check_close(largest, least_of(cost, layers, 0, stages), 0);
        assert_true(isnan(dl_pipeline_balance(cost, layers, layers + 1, first, work)));
        assert_true(isnan(dl_pipeline_balance(cost, layers, 0, first, work)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits), cmocka_unit_test(nothing_to_update), cmocka_unit_test(messages),
        cmocka_unit_test(memories), cmocka_unit_test(balances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
