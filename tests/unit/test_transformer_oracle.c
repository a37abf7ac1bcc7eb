/* One micro-batch of a transformer and what it keeps in memory, against an account written here
 * that goes through the layers one by one; random splits, policies and sizes.
 * F-TRANSFORMER-LAYER, F-TRANSFORMER-RECOMPUTE, F-TRANSFORMER-HIDE, F-TRANSFORMER-CAPTURE,
 * F-HOST-EAGER, F-TRANSFORMER-ACTIVATIONS, F-TRANSFORMER-IN-FLIGHT, F-TRANSFORMER-MEMORY. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/facts.h"
#include "model/framework/host_dispatch.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer_maker.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"

static uint64_t seed = 47;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double least(double x, double y) { return x < y ? x : y; }
static double most(double x, double y) { return x > y ? x : y; }

/* Two networks: a GPT, and one whose layers are mixtures of experts with a capacity. */
static void make_of(struct gpt *g, bool experts) {
    static struct dl_override o[] = {
        {.key = "layers", .value = "3"},   {.key = "hidden", .value = "128"},
        {.key = "heads", .value = "8"},    {.key = "seq", .value = "64"},
        {.key = "vocab", .value = "1024"}, {.key = "experts", .value = "8"},
        {.key = "topk", .value = "2"},     {.key = "capacity", .value = "1.25"}};
    static struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                                     {.precision = DL_MIXED, .peak_flop_per_s = 8e13},
                                     {.precision = DL_BF16, .peak_flop_per_s = 8e13}};
    gpt_make(g, o, experts ? 8 : 5);
    g->f.device.rates = rates, g->f.device.rate_count = 3;
}

static void add(struct dl_transformer_pass *to, const struct dl_transformer_pass *p, double n) {
    to->device_s += n * p->device_s, to->launches += n * p->launches;
    for (int i = 0; i < 3; i++) to->by_limit_s[i] += n * p->by_limit_s[i];
    to->error_s += n * p->error_s, to->outside_s += n * p->outside_s, to->flop += n * p->flop;
    to->moved_bytes += n * p->moved_bytes, to->comm_s += n * p->comm_s;
    to->comm_latency_s += n * p->comm_latency_s, to->comm_inter_s += n * p->comm_inter_s;
    to->comm_error_s += n * p->comm_error_s, to->comm_bytes += n * p->comm_bytes;
    to->collective_count += n * p->collective_count;
    to->host_operation_count += n * p->host_operation_count;
}

static void same(const struct dl_transformer_pass *is, const struct dl_transformer_pass *expected) {
    const double near = 1e-9;
    check_close(is->device_s, expected->device_s, near);
    for (int i = 0; i < 3; i++) check_close(is->by_limit_s[i], expected->by_limit_s[i], near);
    check_close(is->launches, expected->launches, near);
    check_close(is->error_s, expected->error_s, near);
    check_close(is->outside_s, expected->outside_s, near);
    check_close(is->flop, expected->flop, near);
    check_close(is->moved_bytes, expected->moved_bytes, near);
    check_close(is->comm_s, expected->comm_s, near);
    check_close(is->comm_latency_s, expected->comm_latency_s, near);
    check_close(is->comm_inter_s, expected->comm_inter_s, near);
    check_close(is->comm_error_s, expected->comm_error_s, near);
    check_close(is->comm_bytes, expected->comm_bytes, near);
    check_close(is->collective_count, expected->collective_count, near);
    check_close(is->host_operation_count, expected->host_operation_count, near);
    check_close(is->step_s, expected->step_s, near);
}

static const int selective[] = {DL_SELECTIVE_ATTENTION, DL_SELECTIVE_BLOCKS,
                                DL_SELECTIVE_OPERATIONS};

static void random_policies(struct gpt *g) {
    struct dl_framework *fw = &g->f.framework;
    struct dl_transformer_policy *policy = &fw->transformer;
    policy->selective = selective[upto(3)], policy->selective_frac = 0.25 * (1 + upto(3));
    policy->recomputes_norms = half(), policy->recomputes_cudnn = half();
    policy->dropout_operation_count = upto(5), policy->recompute_operation_count = upto(5);
    policy->gradient_operation_count = half() ? 0 : 3;
    policy->captured_on = half() ? NULL : half() ? "volta" : "hopper";
    fw->host.eager_calls = half(), fw->host.dispatch_s = 1e-6 * some();
    fw->sync.collective_launch_s = half() ? 0 : 3e-6;
    g->f.device.kernel_gap_s = upto(4) == 0 ? NAN : 1e-6;
    g->tf.compute_scale = half() ? 0 : 1.5;
    g->tf.input.blocking_launches = upto(4) == 0;
    g->tf.input.attention = half() ? DL_ATTENTION_FLASH : DL_ATTENTION_COMPOSED;
    g->tf.plain = false;
}

/* Operations of the host beside the kernels; how long host and device take together. */
static void end_pass(const struct gpt *g, int part, int recompute,
                     struct dl_transformer_pass *pass) {
    const struct dl_framework *fw = &g->f.framework;
    const struct dl_transformer_policy *policy = &fw->transformer;
    const bool body = part == DL_TRANSFORMER_BODY,
               dropout =
                   recompute == DL_RECOMPUTE_FULL || policy->selective == DL_SELECTIVE_ATTENTION;
    if (recompute < 0) {
        pass->host_operation_count += body ? policy->dropout_operation_count : 0;
    } else {
        pass->host_operation_count += policy->gradient_operation_count * g->tf.tensor_count[part];
        if (body && recompute != DL_RECOMPUTE_NONE)
            pass->host_operation_count +=
                policy->recompute_operation_count + (dropout ? policy->dropout_operation_count : 0);
    }
    const double scale = g->tf.compute_scale > 0 ? g->tf.compute_scale : 1,
                 call_s = scale * dl_dispatch_s(fw, &g->f.device),
                 gap_s = isnan(g->f.device.kernel_gap_s) ? 0 : scale * g->f.device.kernel_gap_s;
    double host_s = call_s * (pass->launches + pass->host_operation_count) +
                    pass->collective_count *
                        most(fw->sync.collective_launch_s, fw->host.eager_calls ? call_s : 0);
    const bool captured = g->tf.experts > 0 && !g->tf.dropless && policy->captured_on != NULL &&
                          strcmp(policy->captured_on, "volta") == 0;
    if (captured) host_s = 0;
    const double device_s = pass->device_s + gap_s * pass->launches + pass->comm_s;
    if (g->tf.input.blocking_launches)
        pass->step_s = device_s + host_s;
    else
        pass->step_s = pow(pow(device_s, 8) + pow(host_s, 8), 0.125);
    if (device_s <= 0 && host_s <= 0) pass->step_s = device_s;
}

/* Kept whole: all layers of one random micro-batch. */
static void account(const struct gpt *g, const struct dl_transformer_split *s, double samples,
                    struct dl_transformer_micro_batch *out) {
    const struct dl_transformer *tf = &g->tf;
    const struct dl_transformer_policy *policy = &g->f.framework.transformer;
    struct dl_transformer_maker m = {
        .tf = tf,
        .split = s,
        .micro_batch = out,
        .micro_samples = samples,
        .facts = dl_framework_facts(&g->f.framework, tf->precision, tf->input.attention)};
    struct dl_err err = {0};
    memset(out, 0, sizeof *out);
    assert_int_equal(dl_transformer_make_collectives(&m, &err), DL_OK);
    int end = 0;
    for (int i = 0; i < tf->layer_count; i++) {
        const struct dl_transformer_layer *l = &tf->layers[i];
        const struct dl_layer layer = dl_transformer_layer_at(tf, l, s);
        const bool body = l->part == DL_TRANSFORMER_BODY,
                   linear = l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW;
        struct dl_transformer_layer_passes p = {0};
        dl_transformer_add_kernels(&m, l, &layer, DL_FORWARD, 1, &p.forward);
        dl_transformer_add_kernels(&m, l, &layer, DL_BACKWARD_DATA, 1, &p.data);
        dl_transformer_add_kernels(&m, l, &layer, DL_BACKWARD_WEIGHTS, 1, &p.weights);
        const struct dl_transformer_pass alone = p.forward;
        dl_transformer_add_exchanges(&m, l, &p);
        add(&out->forward[l->part], &p.forward, 1);
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
            struct dl_transformer_pass *to = &out->backward[l->part][r];
            out->kept_bytes[l->part][r] += samples * dl_transformer_kept_bytes(tf, l, &layer, s, r);
            add(to, &p.data, 1), add(to, &p.weights, 1);
            if (r == DL_RECOMPUTE_FULL && body) add(to, &p.forward, 1);
            if (r == DL_RECOMPUTE_NONE && body && policy->recomputes_norms &&
                strstr(layer.kind->name, "norm") != NULL)
                add(to, &alone, 1);
            if (r != DL_RECOMPUTE_SELECTIVE) continue;
            if (policy->selective == DL_SELECTIVE_ATTENTION)
                add(to, &alone, layer.recomputable ? 1 : 0);
            else if (policy->selective == DL_SELECTIVE_BLOCKS)
                add(to, &p.forward, body ? policy->selective_frac : 0);
            else if (body && !dl_transformer_keeps_attention(tf, &layer))
                add(to, &alone, linear ? policy->selective_frac : 1);
        }
        if (body) end = i;
    }
    /* of the last body layer: the gradients of other readers are added up */
    const struct dl_transformer_layer *l = &tf->layers[end];
    struct dl_transformer_pass more = {0};
    const struct dl_stack *stack = &g->workload.stack;
    const struct dl_layer *last =
        &g->workload.layers[stack->first + stack->count * stack->each - 1];
    struct dl_layer layer = dl_transformer_layer_at(tf, l, s);
    if (last->consumers != layer.consumers) {
        dl_transformer_add_kernels(&m, l, &layer, DL_BACKWARD_DATA, -1, &more);
        layer.consumers = last->consumers;
        dl_transformer_add_kernels(&m, l, &layer, DL_BACKWARD_DATA, 1, &more);
    }
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        end_pass(g, p, -1, &out->forward[p]);
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
            if (p == DL_TRANSFORMER_AFTER) add(&out->backward[p][r], &more, 1);
            end_pass(g, p, r, &out->backward[p][r]);
        }
    }
    double *kept = out->kept_bytes[DL_TRANSFORMER_BODY];
    kept[DL_RECOMPUTE_FULL] = out->collective_bytes / (s->sequence_parallel ? (double)s->tp : 1);
    if (policy->selective == DL_SELECTIVE_OPERATIONS)
        kept[DL_RECOMPUTE_SELECTIVE] += kept[DL_RECOMPUTE_FULL];
}

static void micro_batches(void **state) {
    (void)state;
    static const enum dl_precision precisions[] = {DL_FP32, DL_MIXED, DL_BF16};
    struct gpt plain, mixture;
    make_of(&plain, false), make_of(&mixture, true);
    for (int n = 0; n < 600; n++) {
        struct gpt *g = half() ? &plain : &mixture;
        struct dl_transformer_split s =
            gpt_split(1 << upto(3), 1 << upto(2), g == &plain ? 1 : 1 << upto(3), 1, 1 << upto(2));
        struct dl_transformer_micro_batch is, expected;
        struct dl_err err = {0};
        const double samples = 1 + upto(4);
        s.sequence_parallel = s.tp > 1 && half();
        g->tf.precision = precisions[upto(3)];
        random_policies(g);
        assert_int_equal(dl_transformer_micro_batch_make(&g->tf, &s, samples, &is, &err), DL_OK);
        account(g, &s, samples, &expected);
        check_close(is.micro_samples, samples, 0);
        for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
            same(&is.forward[p], &expected.forward[p]);
            for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
                same(&is.backward[p][r], &expected.backward[p][r]);
                check_close(is.kept_bytes[p][r], expected.kept_bytes[p][r], 1e-12);
            }
        }
    }
    dl_arena_free(&plain.f.arena), dl_arena_free(&mixture.f.arena);
}

/* Kept whole: one random layer. Bytes that it keeps for backward, by what it is, where it stands
 * and what is recomputed. */
static void kept(void **state) {
    (void)state;
    static const struct dl_layer_kind *const kinds[] = {&dl_layer_dense, &dl_layer_gelu,
                                                        &dl_layer_layernorm, &dl_layer_attention};
    static const enum dl_precision precisions[] = {DL_FP32, DL_MIXED, DL_BF16, DL_FP8};
    static const enum dl_transformer_role roles[] = {DL_TRANSFORMER_SAME, DL_TRANSFORMER_COLUMN,
                                                     DL_TRANSFORMER_ROW, DL_TRANSFORMER_HEADS};
    static const enum dl_attention_kernel kernels[] = {DL_ATTENTION_OPEN, DL_ATTENTION_COMPOSED,
                                                       DL_ATTENTION_FLASH};
    struct gpt g;
    make_of(&g, false);
    for (int n = 0; n < 5000; n++) {
        random_policies(&g);
        struct dl_layer layer = {.kind = kinds[upto(4)],
                                 .out = {.channels = 32 << upto(3), .dims = 1, .size = {1, 1, 64}},
                                 .heads = 1 + upto(8),
                                 .own_elements = half() ? 0 : 100 * some(),
                                 .saved_bytes = half() ? 0 : 100 * some(),
                                 .recomputable = half(),
                                 .flash = half(),
                                 .tied_to = -1};
        layer.saved_elements = layer.own_elements + (half() ? 0 : 1);
        if (upto(5) == 0) layer.out.size[DL_DIMS - 1] = 16; /* no tokens */
        const struct dl_workload one = {.layers = &layer, .layer_count = 1};
        const struct dl_transformer_layer l = {.part = (enum dl_transformer_part)upto(3),
                                               .role = roles[upto(4)],
                                               .out = half() ? DL_TRANSFORMER_WHOLE
                                                             : DL_TRANSFORMER_SPLIT};
        struct dl_transformer_split s = gpt_split(1 << upto(3), 1 << upto(3), 1, 1, 1);
        s.sequence_parallel = half();
        struct dl_transformer tf = g.tf;
        tf.workload = &one, tf.precision = precisions[upto(4)];
        tf.input.attention = kernels[upto(3)];
        const struct dl_transformer_policy *policy = &g.f.framework.transformer;
        const bool body = l.part == DL_TRANSFORMER_BODY, whole = l.out == DL_TRANSFORMER_WHOLE,
                   attends = layer.kind == &dl_layer_attention,
                   flash = tf.input.attention == DL_ATTENTION_FLASH ||
                           (tf.input.attention == DL_ATTENTION_OPEN && layer.flash),
                   narrow = tf.precision == DL_FP8 && body &&
                            (layer.kind == &dl_layer_gelu || layer.kind == &dl_layer_layernorm);
        const double element = tf.precision == DL_FP32 ? 4 : 2, t = (double)s.tp;
        double tokens = layer.out.size[DL_DIMS - 1], channels = layer.out.channels;
        if (tokens == 64) tokens /= (double)s.sp * (whole && s.sequence_parallel ? t : 1);
        if (!whole) channels /= t;
        const double result = tokens * channels * (narrow ? 1 : element),
                     out = layer.saved_elements > layer.own_elements ? result : 0,
                     own = attends && flash ? 4 * layer.heads * layer.out.size[DL_DIMS - 1]
                                            : layer.own_elements * element + layer.saved_bytes,
                     share = 1 - policy->selective_frac;
        double chosen = out + own;
        if (policy->selective == DL_SELECTIVE_ATTENTION)
            chosen = layer.recomputable ? out : out + own;
        else if (body && policy->selective == DL_SELECTIVE_BLOCKS)
            chosen = share * (out + own);
        else if (body && !dl_transformer_keeps_attention(&tf, &layer))
            chosen = l.role == DL_TRANSFORMER_COLUMN || l.role == DL_TRANSFORMER_ROW
                         ? share * result
                         : 0;
        check_close(dl_transformer_kept_bytes(&tf, &l, &layer, &s, DL_RECOMPUTE_NONE), out + own,
                    1e-12);
        check_close(dl_transformer_kept_bytes(&tf, &l, &layer, &s, DL_RECOMPUTE_SELECTIVE), chosen,
                    1e-12);
    }
    dl_arena_free(&g.f.arena);
}

/* A layer at a split: who has a share of its tokens, channels, heads, rows or experts.
 * Kept whole: all members of one layer. */
static void shapes(void **state) {
    (void)state;
    struct gpt plain, mixture;
    make_of(&plain, false), make_of(&mixture, true);
    for (int n = 0; n < 400; n++) {
        const struct gpt *g = half() ? &plain : &mixture;
        struct dl_transformer_split s =
            gpt_split(1 << upto(4), 1 << upto(2), g == &plain ? 1 : 1 << upto(2), 1, 1);
        s.sequence_parallel = s.tp > 1 && half();
        if (g == &mixture && s.ep * s.tp <= 8 && half()) s.folded = s.tp;
        const double t = (double)s.tp, e = (double)(s.folded > 0 ? s.ep * s.tp : s.ep);
        for (int i = 0; i < g->tf.layer_count; i++) {
            const struct dl_transformer_layer *l = &g->tf.layers[i];
            const struct dl_layer *whole = &g->workload.layers[l->index];
            const struct dl_layer is = dl_transformer_layer_at(&g->tf, l, &s);
            const bool of_tokens = whole->out.dims == 1 && whole->out.size[DL_DIMS - 1] == 64;
            const bool own = l->role == DL_TRANSFORMER_EXPERTS && s.folded > 0,
                       shares = l->role == DL_TRANSFORMER_SAME && s.sequence_parallel &&
                                l->in == DL_TRANSFORMER_WHOLE;
            const double by = (double)s.sp * (own || shares ? t : 1),
                         in_by = l->in == DL_TRANSFORMER_SPLIT ? t : 1,
                         out_by = l->out == DL_TRANSFORMER_SPLIT ? t : 1;
            const bool heads = l->role == DL_TRANSFORMER_HEADS;
            check_close(is.in.channels, whole->in.channels / in_by, 1e-15);
            check_close(is.out.channels, whole->out.channels / out_by, 1e-15);
            if (of_tokens) check_close(is.out.size[DL_DIMS - 1], 64 / by, 1e-15);
            check_close(is.heads, whole->heads / (heads ? t : 1), 1e-15);
            check_close(is.kv_heads, heads ? most(1, whole->kv_heads / t) : whole->kv_heads, 1e-15);
            check_close(is.rows, whole->rows / (l->role == DL_TRANSFORMER_VOCABULARY ? t : 1),
                        1e-15);
            const double in = dl_shape_elements(&whole->in), out = dl_shape_elements(&whole->out);
            if (in > 0)
                check_close(is.in_elements, whole->in_elements * dl_shape_elements(&is.in) / in,
                            1e-12);
            if (l->role == DL_TRANSFORMER_EXPERTS) {
                check_close(is.held_experts, 8 / e, 1e-15);
                check_close(is.hidden, whole->hidden / (s.folded > 0 ? 1 : t), 1e-15);
                check_close(is.capacity, 1.25, 1e-15);
                continue;
            }
            check_close(is.hidden, whole->hidden / (heads ? t : 1), 1e-15);
            const double share = l->role == DL_TRANSFORMER_LOSS ? dl_shape_elements(&is.in) / in
                                                                : dl_shape_elements(&is.out) / out;
            check_close(is.saved_bytes, share * whole->saved_bytes, 1e-12);
            if (!heads) check_close(is.own_elements, share * whole->own_elements, 1e-12);
        }
    }
    dl_arena_free(&plain.f.arena), dl_arena_free(&mixture.f.arena);
}

/* Micro-batches whose activations a stage holds. */
static double in_flight(const struct dl_transformer_choice *c, double pp, double s) {
    if (pp == 1) return 1;
    if (c->schedule == DL_GPIPE) return c->micro_batches;
    const double v = (double)c->virtual_stages;
    return least(c->micro_batches,
                 c->schedule == DL_INTERLEAVED ? ((v - 1) * pp + 2 * (pp - s) - 1) / v : pp - s);
}

static double total(const struct dl_memory *m) {
    return m->weights_bytes + m->gradients_bytes + m->optimizer_bytes + m->activations_bytes +
           m->workspace_bytes + m->buffers_bytes + m->context_bytes;
}

/* Kept whole: memory of all stages of one random pipeline. */
static void memory(void **state) {
    (void)state;
    static const enum dl_schedule schedules[] = {DL_1F1B, DL_GPIPE, DL_INTERLEAVED, DL_ASYNC};
    struct gpt g;
    make_of(&g, false);
    for (int n = 0; n < 4000; n++) {
        const int pp = 1 + upto(5);
        struct dl_transformer_mapping m = {.split = gpt_split(1, 1, 1, pp, 1)};
        struct dl_transformer_micro_batch b = {.micro_samples = 1 + upto(4)};
        const struct dl_transformer_choice c = {.micro_batches = 1 + upto(8),
                                                .schedule = schedules[upto(4)],
                                                .virtual_stages = 1 + upto(3),
                                                .recompute = (enum dl_recompute)upto(3)};
        const int r = (int)c.recompute;
        const double lost = half() ? 0 : 0.1, capacity = upto(6) == 0 ? NAN : 2e4 * some();
        m.stage_layers = 2 + upto(3), m.end_layers[0] = 1 + upto(3), m.end_layers[1] = 1 + upto(3);
        m.parameters[0] = 100 * some(), m.parameters[1] = 100 * some();
        for (int i = 0; i < 3; i++)
            m.states[i] = (struct dl_memory){.weights_bytes = 1e3 * some(),
                                             .gradients_bytes = 1e3 * some(),
                                             .optimizer_bytes = 1e3 * some(),
                                             .workspace_bytes = 1e2 * some(),
                                             .buffers_bytes = 1e2 * some(),
                                             .context_bytes = 1e2 * some(),
                                             .capacity_bytes = capacity};
        for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
            for (int k = 0; k < 3; k++) b.kept_bytes[p][k] = 100 * b.micro_samples * some();
        g.f.framework.memory.fragmentation_frac = lost;
        g.tf.precision = half() ? DL_FP32 : DL_BF16;
        g.workload.input_bytes_per_sample = half() ? NAN : 50;
        double fullest = 0, samples = HUGE_VAL;
        for (int s = 0; s < pp; s++) {
            struct dl_memory is;
            dl_transformer_stage_memory(&g.tf, &m, &b, &c, s, &is);
            const bool first = s == 0, last = s == pp - 1;
            const double held = in_flight(&c, pp, s), layers = pp == 1 ? m.stage_layers
                                                               : first ? m.end_layers[0]
                                                               : last  ? m.end_layers[1]
                                                                       : m.stage_layers;
            const double *body = b.kept_bytes[DL_TRANSFORMER_BODY];
            check_close(dl_transformer_stage_in_flight(&m, &c, s), held, 1e-15);
            if (first) check_close(dl_transformer_in_flight(&m, &c, 0), held, 1e-15);
            if (last) check_close(dl_transformer_in_flight(&m, &c, 1), held, 1e-15);
            double kept_bytes = held * layers * body[r];
            if (first)
                kept_bytes +=
                    held * (b.kept_bytes[DL_TRANSFORMER_BEFORE][r] +
                            (isnan(g.workload.input_bytes_per_sample) ? 0 : 50 * b.micro_samples));
            /* at the peak: the head's, or those of the layer that is computed again */
            const double head = last ? b.kept_bytes[DL_TRANSFORMER_AFTER][r] *
                                           (c.schedule == DL_GPIPE ? held : 1)
                                     : 0,
                         again = r == DL_RECOMPUTE_FULL ? body[DL_RECOMPUTE_NONE]
                                                        : body[DL_RECOMPUTE_NONE] - body[r];
            kept_bytes += most(head, most(0, again));
            const struct dl_memory *states = &m.states[first ? 0 : last ? 1 : 2];
            double weights = states->weights_bytes;
            if (c.schedule == DL_ASYNC && !last)
                weights += m.parameters[0] * (g.tf.precision == DL_FP32 ? 4 : 2) * (held - 1);
            check_close(is.activations_bytes, kept_bytes, 1e-12);
            check_close(is.weights_bytes, weights, 1e-12);
            check_close(is.gradients_bytes, states->gradients_bytes, 0);
            check_close(is.optimizer_bytes, states->optimizer_bytes, 0);
            check_close(is.workspace_bytes, states->workspace_bytes, 0);
            check_close(is.buffers_bytes, states->buffers_bytes, 0);
            check_close(is.context_bytes, states->context_bytes, 0);
            check_close(is.total_bytes, total(&is) / (1 - lost), 1e-12);
            if (s > 1 && !last) continue; /* between the ends the second has most in flight */
            fullest = most(fullest, is.total_bytes);
            samples = least(samples, floor((capacity * (1 - lost) - total(&is) + kept_bytes) /
                                           (kept_bytes / b.micro_samples)));
        }
        struct dl_transformer_result result = {0};
        dl_transformer_hold(&g.tf, &m, &b, &c, &result);
        check_close(result.memory.total_bytes, fullest, 1e-12);
        assert_int_equal(result.fits, !(fullest > capacity));
        check_close(dl_transformer_largest_micro_batch(&g.tf, &m, &b, &c),
                    isnan(capacity) ? NAN : most(0, samples), 0);
    }
    dl_arena_free(&g.f.arena);
}

/* Refusals of splits, letter for letter, each beside a plan that is taken: 8 heads, 8 tokens, no
 * experts; then experts with a capacity. F-TRANSFORMER-SOFTMAX: backward the first kernel reads the
 * gradient, the output and what it is multiplied with. */
static void words(void **state) {
    (void)state;
    static struct dl_override o[] = {{.key = "layers", .value = "2"},
                                     {.key = "hidden", .value = "128"},
                                     {.key = "heads", .value = "8"},
                                     {.key = "seq", .value = "8"}};
    struct gpt g, mixture;
    struct dl_err err = {0};
    gpt_make(&g, o, 4), make_of(&mixture, true);
    struct dl_plan p = g.f.plan;
    p.strategy = dl_strategy_find("3d"), p.dp = 1, p.global_batch_samples = 8;
    p.tp = 8, p.sequence_parallel = true, p.micro_batch_samples = 1;
    const struct dl_workload *w = &g.workload;
    assert_int_equal(dl_transformer_check(&g.f.system, w, &g.f.framework, &p, &err), DL_OK);
    p.sp = 2;
    assert_int_equal(dl_transformer_check(&g.f.system, w, &g.f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--sequence-parallel: 4 tokens of a rank do not divide by --tp 8");
    p.tp = p.sp = 1, p.sequence_parallel = false, p.ep = 2;
    assert_int_equal(dl_transformer_check(&g.f.system, w, &g.f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--ep: gpt has no experts to spread; nearest is --ep 1");
    p.ep = 1, p.expert_imbalance = 2;
    assert_int_equal(dl_plan_check_support(&g.f.system, w, &g.f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--expert-imbalance: gpt has no mixture of experts");
    assert_int_equal(
        dl_plan_check_support(&g.f.system, &mixture.workload, &g.f.framework, &p, &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--expert-imbalance: a capacity bounds what each expert of gpt "
                        "takes; leave one of both out");
    struct dl_strategy none = *p.strategy;
    none.predict = NULL, none.name = "none", p.strategy = &none;
    assert_int_equal(dl_plan_complete(&g.f.system, w, &g.f.framework, &p, &err), DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "strategy none is not in this version; see 'dlmodel list strategies'");
    const struct dl_layer scores = {.kind = &dl_layer_attention,
                                    .heads = 3,
                                    .tokens = 16,
                                    .out = {.dims = 1, .channels = 8, .size = {1, 1, 16}}};
    static const struct {
        enum dl_precision precision;
        enum dl_pass pass;
        int count;
        double first;
    } cases[] = {{DL_MIXED, DL_FORWARD, 4, 2},      {DL_FP16, DL_BACKWARD_DATA, 4, 3},
                 {DL_BF16, DL_BACKWARD_DATA, 4, 3}, {DL_FP32, DL_FORWARD, 0, 0},
                 {DL_FP8, DL_FORWARD, 0, 0},        {DL_BF16, DL_BACKWARD_WEIGHTS, 0, 0}};
    g.f.framework.kernels.softmax_matrices = 4, g.f.framework.kernels.softmax_keys = 64;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_kernel k[DL_TRANSFORMER_SOFTMAX_KERNELS];
        assert_int_equal(dl_transformer_softmax_kernels(&g.f.framework, cases[i].precision, &scores,
                                                        cases[i].pass, 1, k),
                         cases[i].count);
        for (int n = 0; n < cases[i].count; n++) {
            check_close(k[n].read_elements, 3 * 256 * (n == 0 ? cases[i].first : 2), 0);
            check_close(k[n].write_elements, 3 * 256 * 2, 0);
        }
    }
    dl_arena_free(&g.f.arena), dl_arena_free(&mixture.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(micro_batches), cmocka_unit_test(kept),
                                       cmocka_unit_test(shapes), cmocka_unit_test(memory),
                                       cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
