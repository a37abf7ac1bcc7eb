/* transformer_micro_batch.c - one micro-batch in one split: kernels at their real shapes, the
 * collectives inside layers, what is kept.
 *
 * F-TRANSFORMER-LAYER: a pass takes its kernels (transformer_kernels.c), the gaps between them, and
 * its exposed collectives (transformer_exchange.c); or what the host needs to issue them all, when
 * that is longer (F-TRANSFORMER-HIDE). Full recomputation repeats the forward ones.
 */
#include <math.h>
#include <string.h>

#include "model/framework/cost.h"
#include "model/framework/host_dispatch.h"
#include "model/framework/facts.h"
#include "model/workload/layer.h"
#include "model/engine/transformer/micro_batch_builder.h"

/* F-TRANSFORMER-HIDE: how well the longer of device and host hides the other: T = (D^8 +
 * H^8)^(1/8). 8 is assumed: the longer one wins but for 9 % where both are equal, when gaps of the
 * one no longer fall into reserves of the other at every kernel. */
static const double HIDING = 8;

void dl_transformer_add_pass(struct dl_transformer_pass *to, const struct dl_transformer_pass *from,
                             double times) {
    to->device_s += times * from->device_s;
    for (int i = 0; i < 3; i++) to->by_limit_s[i] += times * from->by_limit_s[i];
    to->launches += times * from->launches;
    to->error_s += times * from->error_s;
    to->outside_s += times * from->outside_s;
    to->flop += times * from->flop;
    to->moved_bytes += times * from->moved_bytes;
    to->comm_s += times * from->comm_s;
    dl_resource_add(&to->comm, &from->comm, times);
    to->comm_error_s += times * from->comm_error_s;
    to->comm_bytes += times * from->comm_bytes;
    to->collective_count += times * from->collective_count;
    to->check_s += times * from->check_s;
    to->host_operation_count += times * from->host_operation_count;
    to->experts_s += times * from->experts_s;
    to->captured_launch_count += times * from->captured_launch_count;
    to->captured_collective_count += times * from->captured_collective_count;
    dl_host_count_add(&to->host, &from->host, times);
    to->weights_s += times * from->weights_s;
}

/* F-RECOMPUTE-MODULES: the MLP and the experts exchange what they read and write again. */
static void add_modules(unsigned repeated, double share, const struct dl_transformer_pass *alone,
                        const struct dl_transformer_pass *forward, struct dl_transformer_pass *to) {
    const unsigned exchanging = 1u << DL_MODULE_MLP | 1u << DL_MODULE_MOE;
    if (repeated != 0)
        dl_transformer_add_pass(to, (repeated & exchanging) != 0 ? forward : alone, share);
}

/* F-TRANSFORMER-RECOMPUTE: what recomputation repeats of a layer before its backward pass. `alone`:
 * its kernels without exchanges. */
static void add_again(const struct dl_transformer *tf, const struct dl_transformer_layer *l,
                      enum dl_recompute recompute, const struct dl_transformer_pass *alone,
                      const struct dl_transformer_pass *forward, struct dl_transformer_pass *to) {
    const double share = l->share;
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    const struct dl_layer *layer = &tf->workload->layers[l->index];
    const bool body = l->in_layer,
               linear = l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW;
    if (recompute == DL_RECOMPUTE_FULL && body) dl_transformer_add_pass(to, forward, share);
    if (recompute == DL_RECOMPUTE_NONE && body && policy->recomputes_norms &&
        dl_layer_is_norm(layer))
        dl_transformer_add_pass(to, alone, share);
    if (recompute != DL_RECOMPUTE_SELECTIVE) return;
    if (tf->input.recomputed.modules != 0) {
        add_modules(tf->input.recomputed.modules & l->modules, share, alone, forward, to);
        return;
    }
    if (policy->selective == DL_SELECTIVE_ATTENTION && layer->recomputable)
        dl_transformer_add_pass(to, alone, share);
    if (policy->selective == DL_SELECTIVE_BLOCKS && body)
        dl_transformer_add_pass(to, forward, share * policy->selective_frac);
    if (policy->selective == DL_SELECTIVE_OPERATIONS && body &&
        !dl_transformer_keeps_attention(tf, layer))
        dl_transformer_add_pass(to, alone, share * (linear ? policy->selective_frac : 1));
}

/* The kernels of attention that the facts ask for; a bound that asks for none takes the fastest,
 * with the gap after each kernel. */
static enum dl_attention_kernel fastest_attention(const struct dl_micro_batch_builder *m,
                                                  const struct dl_transformer_layer *l,
                                                  const struct dl_layer *layer) {
    static const enum dl_attention_kernel kernels[] = {DL_ATTENTION_COMPOSED, DL_ATTENTION_FLASH};
    enum dl_attention_kernel best = m->facts.attention;
    const double scale = m->tf->compute_scale > 0 ? m->tf->compute_scale : 1,
                 gap_s = dl_device_gap_s(m->tf->system->device) * scale;
    double least_s = INFINITY;
    if (best != DL_ATTENTION_OPEN || layer->kind != &dl_layer_attention ||
        !dl_framework_is_bound(m->tf->framework))
        return best;
    for (int i = 0; i < 2; i++) {
        struct dl_micro_batch_builder other = *m;
        struct dl_transformer_pass pass = {0};
        other.facts.attention = kernels[i];
        dl_transformer_add_kernels(&other, l, layer, DL_FORWARD, 1, &pass);
        dl_transformer_add_kernels(&other, l, layer, DL_BACKWARD_DATA, 1, &pass);
        const double with_gaps_s = pass.device_s + pass.launches * gap_s;
        if (with_gaps_s < least_s) best = kernels[i];
        least_s = fmin(least_s, with_gaps_s);
    }
    return best;
}

/* What the device does in one layer, whatever the links do. */
struct layer_kernels {
    bool fused; /* into another layer: no messages of its own */
    struct dl_transformer_layer_passes passes;
    double kept_bytes[DL_TRANSFORMER_RECOMPUTES];
};

/* A layer whose forward pass, or both, run inside the kernels of the one before it. */
static void time_fused(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                       const struct dl_layer *layer, struct dl_transformer_layer_passes *p) {
    struct dl_kernel rest;
    if (dl_cost_fused_rest(layer, DL_FORWARD, m->micro_samples, &rest))
        dl_transformer_add_rest(m, &rest, &p->forward);
    if (m->facts.fusion != DL_FUSION_BOTH) {
        dl_transformer_add_kernels(m, l, layer, DL_BACKWARD_DATA, 1, &p->data);
        dl_transformer_add_kernels(m, l, layer, DL_BACKWARD_WEIGHTS, 1, &p->weights);
    } else if (dl_cost_fused_rest(layer, DL_BACKWARD_DATA, m->micro_samples, &rest)) {
        dl_transformer_add_rest(m, &rest, &p->data);
    }
}

static void time_layer(struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                       struct layer_kernels *out) {
    const struct dl_transformer *tf = m->tf;
    const struct dl_layer layer = dl_transformer_layer_at(tf, l, m->split);
    struct dl_transformer_layer_passes *p = &out->passes;
    memset(out, 0, sizeof *out);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        out->kept_bytes[r] = m->micro_samples * dl_transformer_kept_bytes(tf, l, &layer, m->split,
                                                                          (enum dl_recompute)r);
    }
    out->fused = dl_cost_fuses(tf->framework, tf->system->device, tf->precision) &&
                 dl_cost_fused(tf->workload, l->index);
    if (out->fused) {
        time_fused(m, l, &layer, p);
        return;
    }
    const enum dl_attention_kernel asked = m->facts.attention;
    m->facts.attention = fastest_attention(m, l, &layer);
    dl_transformer_add_kernels(m, l, &layer, DL_FORWARD, 1, &p->forward);
    dl_transformer_add_kernels(m, l, &layer, DL_BACKWARD_DATA, 1, &p->data);
    dl_transformer_add_kernels(m, l, &layer, DL_BACKWARD_WEIGHTS, 1, &p->weights);
    dl_transformer_add_adapter(m, l, &layer, p);
    m->facts.attention = asked;
    const char *narrow = dl_transformer_narrow(tf, l) ? dl_precision_names[tf->precision] : NULL;
    p->forward.host = dl_host_count_of(tf->framework, &layer, false, m->facts.compiled,
                                       p->forward.launches, narrow);
    p->data.host = dl_host_count_of(tf->framework, &layer, true, m->facts.compiled,
                                    p->data.launches + p->weights.launches, narrow);
}

/* F-CUDA-GRAPHS: experts that take every token wait for counts on the host. */
static bool is_in_graph(const struct dl_transformer *tf, const struct dl_transformer_layer *l) {
    return tf->framework->transformer.captures_layers && l->part == DL_TRANSFORMER_BODY &&
           !tf->is_generic_stack && !(tf->dropless && l->role == DL_TRANSFORMER_EXPERTS);
}

static void capture(struct dl_transformer_pass *pass) {
    pass->captured_launch_count = pass->launches;
    pass->captured_collective_count = pass->collective_count;
    pass->host = (struct dl_host_count){0};
    pass->check_s = 0;
}

/* Adds one layer to its part; the last body layer is added to the last part as its difference from
 * the other layers. */
static void add_layer(struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                      const struct layer_kernels *kernels) {
    struct dl_transformer_micro_batch *micro_batch = m->micro_batch;
    const struct dl_transformer *tf = m->tf;
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
        micro_batch->kept_bytes[l->part][r] += l->share * kernels->kept_bytes[r];
    struct dl_transformer_layer_passes p = kernels->passes;
    struct dl_transformer_pass again = p.forward;
    if (!kernels->fused) dl_transformer_add_exchanges(m, l, &p);
    if (l->role == DL_TRANSFORMER_EXPERTS && l->part == DL_TRANSFORMER_BODY) {
        again.experts_s = p.forward.experts_s = p.forward.device_s;
        p.data.experts_s = p.data.device_s;
        p.weights.experts_s = p.weights.device_s;
    }
    if (is_in_graph(tf, l)) {
        capture(&again);
        capture(&p.forward);
        capture(&p.data);
        capture(&p.weights);
    }
    dl_transformer_add_pass(&micro_batch->forward[l->part], &p.forward, l->share);
    if (tf->workload->layers[l->index].detached) return; /* F-FROZEN: no backward pass */
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        struct dl_transformer_pass *to = &micro_batch->backward[l->part][r];
        dl_transformer_add_pass(to, &p.data, l->share);
        dl_transformer_add_pass(to, &p.weights, l->share);
        to->weights_s += l->share * p.weights.device_s;
        add_again(tf, l, (enum dl_recompute)r, &again, &p.forward, to);
    }
}

/* The last layer of the body has fewer readers than the others: what adding their gradients costs
 * less. Nothing in a network that is no stack. */
static struct dl_transformer_pass difference_of(const struct dl_micro_batch_builder *m) {
    const struct dl_transformer *tf = m->tf;
    const struct dl_transformer_layer *end = NULL;
    struct dl_transformer_pass difference = {0};
    for (int i = 0; i < tf->layer_count; i++) {
        if (tf->layers[i].part == DL_TRANSFORMER_BODY) end = &tf->layers[i];
    }
    if (tf->is_generic_stack || end == NULL || tf->stack < 2) return difference;
    const struct dl_stack *stack = &tf->workload->stack;
    const int last = stack->mixed > 0 ? stack->first + stack->each - 1
                                      : end->index + (int)(tf->stack - 2) * tf->body_count;
    if (tf->workload->layers[last].consumers == tf->workload->layers[end->index].consumers ||
        (dl_cost_fuses(tf->framework, tf->system->device, tf->precision) &&
         dl_cost_fused(tf->workload, end->index)))
        return difference;
    struct dl_layer layer = dl_transformer_layer_at(tf, end, m->split);
    dl_transformer_add_kernels(m, end, &layer, DL_BACKWARD_DATA, -1, &difference);
    layer.consumers = tf->workload->layers[last].consumers;
    dl_transformer_add_kernels(m, end, &layer, DL_BACKWARD_DATA, 1, &difference);
    return difference;
}

/* All that the device does in one micro-batch, and what that depends on beside the objects. */
struct kept {
    struct dl_memo_entry entry; /* first; parts: tp */
    enum dl_precision precision;
    enum dl_attention_kernel attention;
    enum dl_compiler compiler;
    unsigned modules; /* recomputed */
    unsigned fp8_store;
    double compute_scale;
    int64_t sp, ep, ep_within_tp_cp;
    bool sequence_parallel;
    struct layer_kernels *layers;
    struct dl_transformer_pass difference;
};

static struct kept key_of(const struct dl_micro_batch_builder *m) {
    const struct dl_transformer *tf = m->tf;
    return (struct kept){.entry = {.device = tf->system->device,
                                   .workload = tf->workload,
                                   .framework = tf->framework,
                                   .samples = m->micro_samples,
                                   .parts = m->split->tp},
                         .precision = tf->precision,
                         .attention = tf->input.attention,
                         .compiler = tf->input.compiler,
                         .modules = tf->input.recomputed.modules,
                         .fp8_store = tf->input.settings.fp8_store,
                         .compute_scale = tf->compute_scale,
                         .sp = m->split->sp,
                         .ep = m->split->ep,
                         .ep_within_tp_cp = m->split->ep_within_tp_cp,
                         .sequence_parallel = m->split->sequence_parallel};
}

static bool same_kernels(const struct kept *a, const struct kept *b) {
    return dl_memo_entry_same(&a->entry, &b->entry) && a->precision == b->precision &&
           a->attention == b->attention && a->compiler == b->compiler && a->modules == b->modules &&
           a->fp8_store == b->fp8_store && a->compute_scale == b->compute_scale && a->sp == b->sp &&
           a->ep == b->ep && a->ep_within_tp_cp == b->ep_within_tp_cp &&
           a->sequence_parallel == b->sequence_parallel;
}

/* From the memo, or into it. */
static const struct kept *recall(struct dl_micro_batch_builder *m, struct dl_cost_memo *memo) {
    const struct dl_transformer *tf = m->tf;
    const struct kept asked = key_of(m);
    for (const struct dl_memo_entry *e = dl_cost_memo_first(memo, DL_MEMO_STACK, &asked.entry);
         e != NULL; e = e->next) {
        if (same_kernels((const struct kept *)e, &asked)) return (const struct kept *)e;
    }
    struct kept *made = dl_arena_alloc(memo->arena, 1, sizeof *made);
    *made = asked;
    made->layers = dl_arena_alloc(memo->arena, (size_t)tf->layer_count, sizeof *made->layers);
    for (int i = 0; i < tf->layer_count; i++) time_layer(m, &tf->layers[i], &made->layers[i]);
    made->difference = difference_of(m);
    dl_cost_memo_add(memo, DL_MEMO_STACK, &made->entry);
    return made;
}

/* All layers, and for a stack how its last one differs. */
static void add_layers(struct dl_micro_batch_builder *m) {
    const struct dl_transformer *tf = m->tf;
    const struct kept *known = tf->memo != NULL ? recall(m, tf->memo) : NULL;
    for (int i = 0; i < tf->layer_count; i++) {
        struct layer_kernels own;
        if (known == NULL) time_layer(m, &tf->layers[i], &own);
        add_layer(m, &tf->layers[i], known != NULL ? &known->layers[i] : &own);
    }
    const struct dl_transformer_pass difference =
        known != NULL ? known->difference : difference_of(m);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
        dl_transformer_add_pass(&m->micro_batch->backward[DL_TRANSFORMER_AFTER][r], &difference, 1);
}

/* One unit of a network that is no stack. */
static void divide_pass(struct dl_transformer_pass *pass, double by) {
    struct dl_transformer_pass part = {0};
    part.device_s = pass->device_s / by, part.launches = pass->launches / by,
    part.error_s = pass->error_s / by;
    part.outside_s = pass->outside_s / by, part.flop = pass->flop / by,
    part.moved_bytes = pass->moved_bytes / by;
    part.host_operation_count = pass->host_operation_count / by;
    dl_host_count_add(&part.host, &pass->host, 1 / by);
    part.weights_s = pass->weights_s / by;
    for (int i = 0; i < 3; i++) part.by_limit_s[i] = pass->by_limit_s[i] / by;
    *pass = part;
}

static void divide_micro_batch(const struct dl_transformer *tf,
                               struct dl_transformer_micro_batch *micro_batch) {
    divide_pass(&micro_batch->forward[DL_TRANSFORMER_BODY], tf->stack);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        divide_pass(&micro_batch->backward[DL_TRANSFORMER_BODY][r], tf->stack);
        micro_batch->kept_bytes[DL_TRANSFORMER_BODY][r] /= tf->stack;
    }
}

/* F-HOST-COUNT: operations of the host beside the kernels of a layer; `recompute` -1: forward. */
static double host_operations(const struct dl_transformer *tf, enum dl_transformer_part part,
                              int recompute) {
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    const bool body = part == DL_TRANSFORMER_BODY && !tf->is_generic_stack;
    if (recompute < 0) return body ? policy->dropout_operation_count : 0;
    const double repeated =
        !body || recompute == DL_RECOMPUTE_NONE
            ? 0
            : policy->recompute_operation_count +
                  (recompute == DL_RECOMPUTE_FULL || policy->selective == DL_SELECTIVE_ATTENTION
                       ? policy->dropout_operation_count
                       : 0);
    return repeated + policy->gradient_operation_count * tf->tensor_count[part];
}

/* F-TRANSFORMER-CAPTURE: whether an iteration is one CUDA graph, which the host launches at once.
 * Experts that take every token have no fixed shapes. */
static bool is_captured(const struct dl_transformer *tf) {
    const char *on = tf->framework->transformer.experts.captured_on,
               *architecture = dl_device_architecture(tf->system->device);
    return tf->experts > 0 && !tf->dropless && on != NULL && architecture != NULL &&
           strcmp(on, architecture) == 0;
}

/* Of two times of which the longer hides the shorter, but for its ends; one is above 0. */
static double hidden_s(double device_s, double host_s) {
    const double most_s = fmax(device_s, host_s);
    return most_s * pow(1 + pow(fmin(device_s, host_s) / most_s, HIDING), 1 / HIDING);
}

/* F-FW-IDEAL: the bound moves what it sends behind all kernels of the pass. */
static void hide_messages(struct dl_transformer_pass *pass) {
    const double shown_s = fmax(0, pass->comm_s - pass->device_s);
    if (shown_s > 0)
        pass->comm_error_s *= shown_s / pass->comm_s;
    else
        pass->comm_error_s = 0, pass->comm = (struct dl_resource_use){{0}};
    pass->comm_s = shown_s;
}

double dl_transformer_set_pace(const struct dl_transformer *tf, struct dl_transformer_pass *pass) {
    const struct dl_device *device = tf->system->device;
    const double scale = tf->compute_scale > 0 ? tf->compute_scale : 1,
                 gap_s = dl_device_gap_s(device) * scale,
                 device_s = pass->device_s + pass->launches * gap_s + pass->comm_s,
                 host_s = pass->host_s;
    const bool blocking = tf->input.blocking_launches;
    pass->step_s = device_s; /* negative where the last layer does less than the others */
    if (!(fmax(device_s, host_s) > 0)) return 1;
    pass->step_s = blocking ? device_s + host_s : hidden_s(device_s, host_s);
    pass->host_bound_s = blocking ? host_s : pass->step_s * pow(host_s / pass->step_s, HIDING);
    return device_s > 0 ? pass->step_s / device_s : 0;
}

/* F-HOST-BLOCKING: a host that waits for each kernel hides nothing: both times add up. F-PACED is
 * the derivative of the step by the logarithm of the host's time. */
static void finish_pass(const struct dl_transformer *tf, double operations,
                        struct dl_transformer_pass *pass) {
    const struct dl_device *device = tf->system->device;
    const struct dl_framework *framework = tf->framework;
    const double dispatch_s = dl_dispatch_s(framework, device);
    const double scale = tf->compute_scale > 0 ? tf->compute_scale : 1;
    const struct dl_host_cost cost = dl_host_cost_of(framework, tf->system, scale);
    pass->host_operation_count += operations;
    pass->host.operation_count += pass->host_operation_count;
    const double call_s =
        framework->host.counts != NULL ? dispatch_s * scale + cost.operation_s : 0;
    if (dl_framework_is_bound(framework)) hide_messages(pass);
    const double graphs = pass->captured_launch_count > 0 ? 1 : 0,
                 issued = pass->launches - pass->captured_launch_count + graphs,
                 collectives = pass->collective_count - pass->captured_collective_count;
    pass->host_s = (issued + pass->host_operation_count) * dispatch_s * scale +
                   dl_host_count_s(&cost, &pass->host) + graphs * cost.operation_s +
                   collectives * fmax(framework->sync.collective_launch_s, call_s) + pass->check_s;
    if (is_captured(tf)) pass->host_s = 0;
    pass->weights_s *= dl_transformer_set_pace(tf, pass);
}

/* Full recomputation keeps the input of each body layer alone, that of chosen operations keeps it
 * beside their results: both begin from it. */
static void keep_inputs(const struct dl_transformer *tf, const struct dl_transformer_split *split,
                        struct dl_transformer_micro_batch *out) {
    const double share = split->sequence_parallel ? (double)split->tp : 1;
    double *kept_bytes = out->kept_bytes[DL_TRANSFORMER_BODY];
    if (!(out->backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].device_s > 0)) return;
    kept_bytes[DL_RECOMPUTE_FULL] = out->collective_bytes / share;
    if (tf->framework->transformer.selective == DL_SELECTIVE_OPERATIONS && !tf->is_generic_stack &&
        tf->input.recomputed.modules == 0)
        kept_bytes[DL_RECOMPUTE_SELECTIVE] += kept_bytes[DL_RECOMPUTE_FULL];
}

enum dl_code dl_transformer_micro_batch_make(const struct dl_transformer *tf,
                                             const struct dl_transformer_split *split,
                                             double micro_samples,
                                             struct dl_transformer_micro_batch *out,
                                             struct dl_err *err) {
    struct dl_micro_batch_builder m = {.tf = tf,
                                       .split = split,
                                       .micro_batch = out,
                                       .micro_samples = micro_samples,
                                       .facts =
                                           dl_framework_facts(tf->framework, tf->system->device,
                                                              tf->precision, tf->input.attention)};
    dl_facts_compile(&m.facts, tf->framework, tf->input.compiler);
    memset(out, 0, sizeof *out);
    out->split = *split;
    out->micro_samples = micro_samples;
    DL_TRY(dl_transformer_make_collectives(&m, err));
    add_layers(&m);
    if (tf->is_generic_stack) divide_micro_batch(tf, out);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        const enum dl_transformer_part part = (enum dl_transformer_part)p;
        finish_pass(tf, host_operations(tf, part, -1), &out->forward[p]);
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
            finish_pass(tf, host_operations(tf, part, r), &out->backward[p][r]);
        if (!dl_known(out->forward[p].device_s)) {
            return dl_fail(err, DL_ERR_USAGE,
                           "device %s has no rate for %s; choose another --precision or add the "
                           "rate to its file",
                           tf->system->device->name, dl_precision_names[tf->precision]);
        }
    }
    keep_inputs(tf, split, out);
    return DL_OK;
}
