/* What a transformer's arrangement of ranks costs before any micro-batch runs: who is in a group,
 * who has how many layers and parameters, what each group sends, what a rank keeps and updates.
 * Random networks, splits and policies against an account written here, which numbers all devices
 * and deals layers out one by one. F-TRANSFORMER-GROUPS, F-TRANSFORMER-STAGES, F-TRANSFORMER-DATA,
 * F-TRANSFORMER-HYBRID, F-TRANSFORMER-STATES, F-TRANSFORMER-SHARD, F-TRANSFORMER-ACCUMULATE. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/memory.h"
#include "model/engine/replica.h"
#include "tests/fake_transformer.h"

static uint64_t seed = 41;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double least(double x, double y) { return x < y ? x : y; }
static double most(double x, double y) { return x > y ? x : y; }

/* Device at these places on the axes. */
struct place {
    int64_t tp, sp, ep, dp, pp;
};

static int64_t number_of(const struct dl_transformer_split *s, const struct place *at) {
    if (s->mapping == DL_MAP_PIPELINE_INSIDE)
        return at->tp + s->tp * (at->sp + s->sp * (at->pp + s->pp * (at->ep + s->ep * at->dp)));
    return at->tp + s->tp * (at->sp + s->sp * (at->ep + s->ep * (at->dp + s->dp * at->pp)));
}

static struct dl_transformer_split random_split(void) {
    struct dl_transformer_split s =
        gpt_split(1 << upto(3), 1 << upto(2), 1 << upto(3), 1 << upto(3), 1 << upto(3));
    s.mapping = half() ? DL_MAP_PIPELINE_INSIDE : DL_MAP_DATA_INSIDE;
    return s;
}

/* Members of the group of device 0, in order: along one axis. */
static void along(const struct dl_transformer_split *s, unsigned axis, int64_t size) {
    const struct dl_transformer_group group = dl_transformer_group_of(s, axis);
    assert_int_equal(group.ranks, size);
    for (int64_t i = 0; i < size; i++) {
        const struct place at = {.tp = axis == DL_AXIS_TP ? i : 0,
                                 .sp = axis == DL_AXIS_SP ? i : 0,
                                 .ep = axis == DL_AXIS_EP ? i : 0,
                                 .pp = axis == DL_AXIS_PP ? i : 0};
        assert_int_equal(i * group.stride, number_of(s, &at));
    }
}

/* Every group is the devices that differ along its axis alone. */
static void groups(void **state) {
    (void)state;
    for (int n = 0; n < 2000; n++) {
        struct dl_transformer_split s = random_split();
        along(&s, DL_AXIS_TP, s.tp);
        along(&s, DL_AXIS_SP, s.sp);
        along(&s, DL_AXIS_EP, s.ep);
        along(&s, DL_AXIS_PP, s.pp);
        assert_int_equal(dl_transformer_expert_ranks(&s), s.ep);
        assert_int_equal(dl_transformer_expert_replicas(&s), s.dp * s.sp);
        /* all that hold a parameter, where they are equally far from each other */
        const struct dl_transformer_group data = dl_transformer_group_of(&s, DL_AXIS_DP);
        assert_int_equal(data.ranks, s.dp * s.ep * s.sp);
        const bool even = s.mapping == DL_MAP_DATA_INSIDE || s.sp == 1 || s.dp * s.ep == 1;
        for (int64_t d = 0; even && d < s.dp; d++)
            for (int64_t e = 0; e < s.ep; e++)
                for (int64_t q = 0; q < s.sp; q++) {
                    const struct place at = {.sp = q, .ep = e, .dp = d};
                    assert_int_equal(number_of(&s, &at), (q + s.sp * (e + s.ep * d)) * data.stride);
                }
        /* folded over tensor ranks: neighbours, whole experts */
        s.folded = s.tp;
        const struct dl_transformer_group folded = dl_transformer_group_of(&s, DL_AXIS_EP);
        assert_int_equal(folded.ranks, s.ep * s.tp);
        assert_int_equal(folded.stride, 1);
        assert_int_equal(dl_transformer_expert_ranks(&s), s.ep * s.tp);
        assert_int_equal(dl_transformer_expert_replicas(&s), s.dp * s.sp);
    }
}

/* One group's collective among all like it, by the request that says so. */
static void requests(void **state) {
    (void)state;
    static const enum dl_collective_op ops[] = {DL_COLL_ALL_REDUCE, DL_COLL_ALL_GATHER,
                                                DL_COLL_ALL_TO_ALL, DL_COLL_P2P};
    struct gpt g;
    gpt_make(&g, NULL, 0);
    for (int n = 0; n < 400; n++) {
        const struct dl_transformer_split s = random_split();
        const unsigned axes[] = {DL_AXIS_TP, DL_AXIS_SP, DL_AXIS_EP, DL_AXIS_PP, DL_AXIS_DP};
        const struct dl_transformer_group group = dl_transformer_group_of(&s, axes[upto(5)]);
        const enum dl_collective_op op = ops[upto(4)];
        const double bytes = 1e6 * some();
        struct dl_collective_time got, is = {0};
        struct dl_err err = {0};
        assert_int_equal(dl_transformer_collective(&g.tf, &s, group, op, bytes, &got, &err), DL_OK);
        struct dl_collective_request request = {.op = op, .library = g.tf.library, .bytes = bytes};
        if (op == DL_COLL_P2P) {
            dl_collective_neighbours(&g.f.system, s.nodes, s.devices_per_node, group.ranks,
                                     group.stride, &request);
        } else {
            request.nodes = s.nodes, request.ranks_per_node = s.devices_per_node;
            request.group_size = group.ranks, request.group_stride = group.stride;
            request.concurrent = s.nodes * s.devices_per_node / group.ranks;
        }
        if (group.ranks > 1)
            assert_int_equal(dl_collective_time(&g.f.system, &request, &is, &err), DL_OK);
        assert_int_equal(got.time_s > 0, group.ranks > 1);
        check_close(got.time_s, is.time_s, 0);
        check_close(got.latency_s, is.latency_s, 0);
        check_close(got.bandwidth_s, is.bandwidth_s, 0);
    }
    dl_arena_free(&g.f.arena);
}

/* Layers dealt out: leading layers and those of the body; the last stage, then the first, then any
 * other has one less where they do not divide. */
struct dealt {
    double first, last, fullest; /* of the body */
};

static struct dealt deal(int lead, int stack, int pp) {
    int count[8] = {0}, left = stack;
    if (pp == 1) return (struct dealt){stack, stack, stack};
    const int each = (lead + stack + pp - 1) / pp, from = lead > 0 && each <= lead ? 1 : 0;
    const int stages = pp - from, full = from ? (stack + stages - 1) / stages : each;
    for (int s = from; s < pp; s++) count[s] = full;
    int spare = from ? full * stages - stack : full * pp - lead - stack;
    if (spare > 0) count[pp - 1]--, spare--;
    if (spare > 0 && from == 0) count[0]--, spare--;
    if (from == 0) count[0] -= lead;
    for (int s = 1; s < pp - 1 && spare > 0; s++) count[s]--, spare--;
    for (int s = 0; s < pp; s++) left -= count[s];
    if (spare == 0) assert_int_equal(left, 0);
    return (struct dealt){count[0], count[pp - 1], full};
}

struct sent {
    double time_s, latency_s, bandwidth_s;
    bool outside;
};

static struct sent sum(const struct gpt *g, const struct dl_transformer_split *s, int64_t ranks,
                       int64_t stride, enum dl_collective_op op, double bytes) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    const struct dl_transformer_group group = {ranks, stride};
    assert_int_equal(dl_transformer_collective(&g->tf, s, group, op, bytes, &t, &err), DL_OK);
    return (struct sent){t.time_s, t.latency_s, t.bandwidth_s, t.extrapolated};
}

static struct sent both(struct sent a, struct sent b) {
    return (struct sent){a.time_s + b.time_s, a.latency_s + b.latency_s,
                         a.bandwidth_s + b.bandwidth_s, a.outside || b.outside};
}

static void compare(const struct dl_collective_time *is, struct sent expected) {
    check_close(is->time_s, expected.time_s, 1e-12);
    check_close(is->latency_s, expected.latency_s, 1e-12);
    check_close(is->bandwidth_s, expected.bandwidth_s, 1e-12);
}

static double elements_of(const struct gpt *g, const struct dl_transformer_split *s, int part) {
    const int64_t holders = s->folded > 0 ? s->ep * s->folded : s->ep * s->tp;
    return g->tf.split_elements[part] / (double)s->tp + g->tf.whole_elements[part] +
           g->tf.expert_elements[part] / (double)holders;
}

/* The numbers of a network that the arrangement reads, and what a framework may do.
 * Kept whole: one draw of each member. */
static void random_case(struct gpt *g, struct dl_transformer_split *s) {
    static const enum dl_precision precisions[] = {DL_FP32, DL_TF32, DL_MIXED,
                                                   DL_BF16, DL_FP8,  DL_MXFP8};
    struct dl_framework *fw = &g->f.framework;
    struct dl_transformer *tf = &g->tf;
    *s = random_split();
    s->folded = upto(3) == 0 ? s->tp : 0;
    s->shard_group = half() ? 1 << upto(4) : 0;
    tf->stack = (double)(s->pp + upto(9));
    tf->lead_layer_count = half() ? 0 : upto(4);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        tf->split_elements[p] = 1e6 * some(), tf->whole_elements[p] = 1e3 * some();
        tf->expert_elements[p] = p == DL_TRANSFORMER_BODY && half() ? 1e6 * some() : 0;
        tf->tensor_count[p] = 1 + upto(20);
    }
    tf->tied_elements = half() ? 0 : 1e5 * some();
    tf->precision = precisions[upto(6)];
    tf->optimizer = half() ? DL_ADAM : DL_MOMENTUM;
    tf->compute_scale = half() ? 0 : 1.25;
    tf->input.master_weights = half() ? DL_MASTERS_NONE : DL_MASTERS_FP32;
    fw->behaviour = dl_framework_behaviour_find(upto(4) == 0 ? "ideal" : "bucketed");
    fw->sync.gradient_bytes = 4, fw->sync.mixed_gradient_bytes = half() ? 2 : 4;
    fw->sync.overlaps_backward = upto(4) > 0;
    fw->sync.fusion.fusion_bytes = half() ? NAN : 1e5 * some();
    fw->sync.bucketed.bucket_bytes = upto(3) == 0 ? NAN : 1e6 * some();
    fw->kernels.update_launches_per_tensor = half() ? 0 : 3;
    fw->memory.context_bytes = 1e6 * some();
    struct dl_transformer_policy *policy = &fw->transformer;
    policy->bf16_gradient_bytes = half() ? 2 : 4, policy->fp8_gather_bytes = half() ? 1 : 2;
    policy->pipeline_keeps_gathered = half(), policy->casts_gathered = half();
    policy->bucket_elements = half() ? NAN : 1e5 * some();
    policy->bucket_elements_per_rank = half() ? 0 : 2e4 * some();
    policy->copies_gathered = half(), policy->copies_gradients = half();
    policy->accumulate_bytes = half() ? 0 : 6;
    g->f.device.kernel_latency_s = upto(4) == 0 ? NAN : 5e-6;
    g->f.device.workspace_bytes = half() ? NAN : 1e6 * some();
    g->f.device.context_bytes = half() ? NAN : 1e6 * some();
    g->f.system.jitter_frac = half() ? NAN : 0.05;
}

static double width_of_gradients(const struct gpt *g) {
    if (g->tf.precision == DL_FP32 || g->tf.precision == DL_TF32) return 4;
    if (g->tf.precision == DL_MIXED) return g->f.framework.sync.mixed_gradient_bytes;
    return g->f.framework.transformer.bf16_gradient_bytes;
}

static double width_of_weights(const struct gpt *g) {
    if (g->tf.precision == DL_FP32 || g->tf.precision == DL_TF32) return 4;
    return g->tf.precision == DL_FP8 ? g->f.framework.transformer.fp8_gather_bytes : 2;
}

/* Where the fastest way counts alone: pieces of the cheapest size. */
static struct sent cheapest(const struct gpt *g, const struct dl_transformer_split *s,
                            int64_t ranks, int64_t stride, double bytes) {
    struct dl_plan plan = {.nodes = s->nodes,
                           .devices_per_node = s->devices_per_node,
                           .dp = ranks,
                           .tp = stride,
                           .library = g->tf.input.library};
    struct dl_gradient_sync_request request = {.system = &g->f.system,
                                               .workload = g->tf.workload,
                                               .framework = &g->f.framework,
                                               .plan = &plan,
                                               .total_bytes = bytes,
                                               .library = g->tf.library};
    struct dl_message m = {0};
    struct dl_err err = {0};
    if (ranks <= 1) return (struct sent){0};
    assert_int_equal(dl_gradient_sync_cheapest(&request, &m, &err), DL_OK);
    const double pieces = bytes / m.bytes;
    return (struct sent){pieces * m.duration_s, pieces * m.latency_s, pieces * m.bandwidth_s,
                         false};
}

/* Gradients of `bytes` among all that hold them: of those that share them out each has its part. */
static struct sent reduced(const struct gpt *g, const struct dl_transformer_mapping *m,
                           double bytes) {
    const struct dl_transformer_split *s = &m->split;
    const struct dl_transformer_group all = dl_transformer_group_of(s, DL_AXIS_DP);
    const int64_t shares = (int64_t)m->shard_ranks;
    if (m->shard == 0)
        return m->bound ? cheapest(g, s, all.ranks, all.stride, bytes)
                        : sum(g, s, all.ranks, all.stride, DL_COLL_ALL_REDUCE, bytes);
    return both(sum(g, s, shares, all.stride, DL_COLL_REDUCE_SCATTER, bytes),
                sum(g, s, all.ranks / shares, all.stride * shares, DL_COLL_ALL_REDUCE,
                    bytes / (double)shares));
}

static struct sent gathered(const struct gpt *g, const struct dl_transformer_mapping *m,
                            double bytes) {
    return sum(g, &m->split, (int64_t)m->shard_ranks,
               dl_transformer_group_of(&m->split, DL_AXIS_DP).stride, DL_COLL_ALL_GATHER, bytes);
}

/* Kept whole: all messages of one random arrangement. */
static void check_messages(const struct gpt *g, const struct dl_transformer_mapping *m) {
    const struct dl_transformer_split *s = &m->split;
    const double up = width_of_gradients(g), down = width_of_weights(g),
                 body = elements_of(g, s, DL_TRANSFORMER_BODY) -
                        m->expert_parameters / m->stage_layers;
    const struct sent none = {0};
    double rest = m->most_parameters - m->expert_parameters;
    struct sent reduce = none, gather = none, unit_reduce = none, unit_gather = none;
    if (m->shard == 3) {
        rest -= m->stage_layers * body;
        unit_reduce = reduced(g, m, body * up), unit_gather = gathered(g, m, body * down);
    }
    double sums = rest * up, parts = rest * down;
    if (rest > 0) {
        reduce = reduced(g, m, sums);
        if (m->shard > 0) gather = gathered(g, m, parts);
    }
    if (m->expert_parameters > 0) {
        /* as many ranks hold the same experts as data and sequence ranks; their distance */
        const int64_t inside = s->mapping == DL_MAP_PIPELINE_INSIDE && s->dp > 1 ? s->pp : 1;
        const int64_t stride = s->folded > 0 ? s->ep * s->folded
                               : s->dp > 1   ? s->tp * s->ep * inside
                                             : s->tp;
        const double elements = m->expert_parameters / (m->shard == 3 ? m->stage_layers : 1);
        const int64_t ranks = (int64_t)m->expert_replicas;
        const struct sent up_s =
            sum(g, s, ranks, stride, m->shard > 0 ? DL_COLL_REDUCE_SCATTER : DL_COLL_ALL_REDUCE,
                elements * up);
        const struct sent down_s =
            m->shard > 0 ? sum(g, s, ranks, stride, DL_COLL_ALL_GATHER, elements * down) : none;
        if (m->shard == 3) {
            unit_reduce = both(unit_reduce, up_s), unit_gather = both(unit_gather, down_s);
        } else {
            reduce = both(reduce, up_s), gather = both(gather, down_s);
            compare(&m->expert_reduce, up_s), compare(&m->expert_gather, down_s);
            sums += elements * up, parts += elements * down;
            check_close(m->expert_gradient_bytes, elements * up, 1e-12);
            check_close(m->expert_gather_bytes, elements * down, 1e-12);
        }
    }
    if (m->shard == 3 || !(m->expert_parameters > 0)) {
        compare(&m->expert_reduce, none), compare(&m->expert_gather, none);
        check_close(m->expert_gradient_bytes, 0, 0);
        check_close(m->expert_gather_bytes, 0, 0);
    }
    compare(&m->reduce, reduce), compare(&m->gather, gather);
    compare(&m->unit_reduce, unit_reduce), compare(&m->unit_gather, unit_gather);
    check_close(m->gradient_bytes, sums, 1e-9 * m->most_parameters / most(1, rest));
    check_close(m->gather_bytes, parts, 1e-9 * m->most_parameters / most(1, rest));
    /* the first and the last stage add up the gradients of what both hold */
    struct sent tied = none;
    if (s->pp > 1 && g->tf.tied_elements > 0) {
        const struct place end = {.pp = s->pp - 1};
        tied = sum(g, s, 2, number_of(s, &end), DL_COLL_ALL_REDUCE,
                   g->tf.tied_elements / (double)s->tp * up);
    }
    compare(&m->tied, tied);
    assert_int_equal(m->extrapolated, reduce.outside || gather.outside || unit_reduce.outside ||
                                          unit_gather.outside || tied.outside);
}

/* Seconds of one pass over memory: `bytes` with nothing to compute. */
static double stream_s(const struct gpt *g, enum dl_precision precision, double bytes) {
    struct dl_kernel kernel = dl_kernel_stream(DL_UPDATE, 0, 0, 0);
    struct dl_kernel_time t;
    kernel.extra_bytes = bytes;
    dl_kernel_time(g->tf.system->device, precision, &kernel, &t);
    return t.time_s;
}

/* Kept whole: what a rank of each kind of stage keeps. */
static void check_states(const struct gpt *g, const struct dl_transformer_mapping *m) {
    const struct dl_transformer *tf = &g->tf;
    const struct dl_framework *fw = &g->f.framework;
    const struct dl_transformer_policy *policy = &fw->transformer;
    const bool wide = tf->precision == DL_FP32 || tf->precision == DL_TF32;
    const double body = elements_of(g, &m->split, DL_TRANSFORMER_BODY),
                 after = elements_of(g, &m->split, DL_TRANSFORMER_AFTER), used = wide ? 4 : 2,
                 master = tf->precision == DL_MIXED ||
                                  (!wide && tf->input.master_weights != DL_MASTERS_NONE)
                              ? 4
                              : 0;
    for (int i = 0; i < 3; i++) {
        const struct dl_memory *is = &m->states[i];
        const double all = i < 2 ? m->parameters[i] : m->stage_layers * body,
                     own = (all - m->expert_parameters) / m->shard_ranks +
                           m->expert_parameters / m->expert_replicas;
        double kept = used, width = width_of_gradients(g);
        if (policy->casts_gathered && m->shard == 3 && master > 0) kept = 0;
        if (policy->casts_gathered) width = most(4, width);
        check_close(is->weights_bytes,
                    (m->shard == 3 ? own : all) * kept + (m->shard > 0 ? own : all) * master,
                    1e-12);
        check_close(is->gradients_bytes, (m->shard > 1 ? own : all) * width, 1e-12);
        check_close(is->optimizer_bytes,
                    (m->shard > 0 ? own : all) * (tf->optimizer == DL_ADAM ? 8 : 4), 1e-12);
        double buffers = 0;
        if (m->replicas > 1) {
            if (!isnan(fw->sync.fusion.fusion_bytes))
                buffers = fw->sync.fusion.fusion_bytes;
            else if (!isnan(fw->sync.bucketed.bucket_bytes))
                buffers =
                    m->shard > 0 ? least(fw->sync.bucketed.bucket_bytes, all * width) : all * width;
            if (m->shard == 3) buffers += used * (body + most(body, after));
        }
        check_close(is->buffers_bytes, buffers, 1e-12);
        const struct dl_device *d = tf->system->device;
        check_close(is->workspace_bytes, isnan(d->workspace_bytes) ? 0 : d->workspace_bytes, 0);
        check_close(is->context_bytes,
                    (isnan(d->context_bytes) ? 0 : d->context_bytes) + fw->memory.context_bytes,
                    1e-15);
        check_close(is->capacity_bytes, 16e9, 0);
        check_close(is->activations_bytes, 0, 0);
    }
}

/* Kept whole: what a rank does once an iteration. */
static void check_kernels(const struct gpt *g, const struct dl_transformer_mapping *m) {
    const struct dl_transformer *tf = &g->tf;
    const struct dl_framework *fw = &g->f.framework;
    const struct dl_transformer_policy *policy = &fw->transformer;
    const struct dl_device *d = tf->system->device;
    const double body = elements_of(g, &m->split, DL_TRANSFORMER_BODY), up = width_of_gradients(g),
                 scale = tf->compute_scale > 0 ? tf->compute_scale : 1;
    double updated = m->most_parameters;
    if (m->shard > 0)
        updated = (updated - m->expert_parameters) / m->shard_ranks +
                  m->expert_parameters / m->expert_replicas;
    check_close(m->updated_elements, updated, 1e-12);
    const double bytes = tf->optimizer == DL_ADAM ? 28 : 20,
                 pass_s =
                     stream_s(g, DL_FP32, updated * (bytes + (tf->precision == DL_MIXED ? 2 : 0))),
                 launches = fw->kernels.update_launches_per_tensor *
                            (tf->tensor_count[DL_TRANSFORMER_BEFORE] +
                             tf->tensor_count[DL_TRANSFORMER_AFTER] +
                             m->stage_layers * tf->tensor_count[DL_TRANSFORMER_BODY]);
    double late_s = 0;
    if (!isnan(d->kernel_latency_s)) late_s = most(0, launches * d->kernel_latency_s - pass_s);
    if (launches <= 1) late_s = 0;
    check_close(m->update_s, scale * (pass_s + late_s), 1e-9);
    check_close(m->update_by_limit_s[0] + m->update_by_limit_s[1] + m->update_by_limit_s[2],
                m->update_s, 1e-12);
    assert_true(late_s == 0 || m->update_by_limit_s[DL_LIMIT_LATENCY] >= scale * late_s);
    struct dl_kernel sample = dl_kernel_stream(DL_UPDATE, 0, updated, updated);
    struct dl_kernel_time t;
    dl_kernel_time(d, DL_FP32, &sample, &t);
    check_close(m->update_error_s, scale * pass_s * t.sigma_log, 1e-9);
    const bool copies = m->shard == 3 && m->replicas > 1;
    check_close(m->copy_out_s,
                copies && policy->copies_gathered ? stream_s(g, DL_BF16, 4 * body) : 0, 1e-9);
    check_close(m->copy_in_s,
                copies && policy->copies_gradients ? stream_s(g, DL_BF16, (2 + up) * body) : 0,
                1e-9);
    const bool narrow =
        tf->precision == DL_BF16 || tf->precision == DL_FP8 || tf->precision == DL_MXFP8;
    check_close(m->accumulate_s,
                narrow && !m->bound && policy->accumulate_bytes > 0 ? stream_s(g, DL_FP32, 6 * body)
                                                                    : 0,
                1e-9);
    /* pieces of gradients: no more than layers, and one each for what is before and after */
    double buckets = m->stage_layers;
    if (policy->bucket_elements > 0)
        buckets =
            ceil(m->gradient_bytes / up /
                 most(policy->bucket_elements, policy->bucket_elements_per_rank * m->shard_ranks) *
                 (1 - 1e-15));
    else if (!isnan(fw->sync.bucketed.bucket_bytes))
        buckets = ceil(m->gradient_bytes / fw->sync.bucketed.bucket_bytes);
    buckets = most(1, least(buckets, m->stage_layers + 2));
    check_close(m->buckets, fw->sync.overlaps_backward ? buckets : 1, 0);
}

static void arrangements(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    for (int n = 0; n < 3000; n++) {
        struct dl_transformer_split s;
        struct dl_transformer_mapping m;
        struct dl_err err = {0};
        random_case(&g, &s);
        const int asked = upto(4), pp = (int)s.pp;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, asked, &m, &err), DL_OK);
        const bool keeps = g.f.framework.transformer.pipeline_keeps_gathered;
        assert_int_equal(m.shard, asked == 3 && pp > 1 && keeps ? 1 : asked);
        assert_memory_equal(&m.split, &s, sizeof s);
        check_close(m.replicas, (double)(s.dp * s.ep * s.sp), 0);
        check_close(m.shard_ranks,
                    s.shard_group > 0 && m.shard > 0 ? least((double)s.shard_group, m.replicas)
                                                     : m.replicas,
                    0);
        const struct dealt layers = deal((int)g.tf.lead_layer_count, (int)g.tf.stack, pp);
        check_close(m.all_layers, g.tf.stack, 0);
        check_close(m.stage_layers, layers.fullest, 0);
        check_close(m.end_layers[0], layers.first, 0);
        check_close(m.end_layers[1], layers.last, 0);
        const double before = elements_of(&g, &s, DL_TRANSFORMER_BEFORE),
                     body = elements_of(&g, &s, DL_TRANSFORMER_BODY),
                     after = elements_of(&g, &s, DL_TRANSFORMER_AFTER);
        double first = before + layers.first * body,
               last = after + layers.last * body + g.tf.tied_elements / (double)s.tp;
        if (pp == 1) first = last = before + g.tf.stack * body + after;
        check_close(m.parameters[0], first, 1e-12);
        check_close(m.parameters[1], last, 1e-12);
        check_close(m.most_parameters, most(most(first, last), pp > 2 ? layers.fullest * body : 0),
                    1e-12);
        check_close(m.before_frac, before / first, 1e-12);
        const int64_t ranks = s.folded > 0 ? s.ep * s.folded : s.ep;
        check_close(m.expert_replicas, (double)(s.dp * s.sp), 0);
        check_close(m.expert_parameters,
                    ranks > 1 ? layers.fullest * g.tf.expert_elements[DL_TRANSFORMER_BODY] /
                                    (double)(s.folded > 0 ? ranks : ranks * s.tp)
                              : 0,
                    1e-12);
        assert_int_equal(m.bound, g.f.framework.behaviour->is_bound);
        check_messages(&g, &m);
        check_states(&g, &m);
        check_kernels(&g, &m);
        struct dl_plan plan = g.tf.input;
        plan.nodes = s.nodes, plan.devices_per_node = s.devices_per_node;
        plan.batch_per_device_samples =
            plan.global_batch_samples / (double)(s.nodes * s.devices_per_node);
        check_close(m.straggler_frac, dl_straggler_frac(&g.f.system, &g.f.framework, &plan), 0);
        double slowed = dl_replica_slowdown_frac(&g.f.system, &g.f.framework, &plan);
        const double channels = most(most(m.reduce.channels, m.gather.channels),
                                     most(m.unit_gather.channels, m.unit_reduce.channels));
        if (!m.bound) slowed = most(slowed, least(0.5, channels / 80));
        check_close(m.slowdown_frac, slowed, 1e-12);
    }
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(requests),
                                       cmocka_unit_test(arrangements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
