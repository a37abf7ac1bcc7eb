/* transformer_micro_batch.c - one micro-batch in one split: kernels at their real shapes, the
 * collectives inside layers, what is kept.
 *
 * F-TRANSFORMER-LAYER: a pass takes its kernels, the gaps between them, and its exposed
 * collectives; or what the host needs to issue them all, when that is longer
 * (F-TRANSFORMER-HIDE). F-TRANSFORMER-TENSOR: with tensor parallelism t, a micro-batch of b samples
 * and m = b s h bytes(element): one all-reduce of m forward for each layer split by rows, one
 * backward for each input of layers split by columns. Sequence parallelism makes all-gather +
 * reduce-scatter of each, the same bytes. Full recomputation repeats the forward ones.
 * F-TRANSFORMER-EXPERT: with e expert ranks each layer's tokens go to their experts and back: 2
 * all-to-all forward and 2 backward of b s h k c bytes(element), of which a rank sends (e-1)/e; k
 * experts for each token, capacity factor c. F-TRANSFORMER-CONTEXT: with context parallelism c,
 * keys and values go around a ring: c - 1 messages of 2 b (s/c) h_kv / t elements forward, twice
 * that backward; hidden behind the attention of one share each.
 */
#include <math.h>
#include <string.h>

#include "model/framework/cost.h"
#include "model/framework/facts.h"
#include "model/workload/layer.h"
#include "model/parallel/strategy.h"
#include "model/parallel/transformer.h"

/* F-TRANSFORMER-HIDE: how well the longer of device and host hides the other: T = (D^8 +
 * H^8)^(1/8). 8 is assumed: the longer one wins but for 9 % where both are equal, when gaps of the
 * one no longer fall into reserves of the other at every kernel. */
static const double HIDING = 8;

struct maker {
    const struct dl_transformer *tf;
    const struct dl_transformer_split *split;
    struct dl_transformer_micro_batch *micro_batch;
    double micro_samples;
    struct dl_collective_time ring; /* of context parallelism: keys and values of one share */
};

static void add_kernel(const struct maker *m, const struct dl_layer *layer,
                       const struct dl_kernel *kernel, double sign,
                       struct dl_transformer_pass *pass) {
    struct dl_kernel_time t;
    dl_kernel_time(m->tf->system->device, kernel->has_type ? kernel->type : m->tf->precision,
                   kernel, &t);
    const double scale = m->tf->compute_scale > 0 ? m->tf->compute_scale : 1;
    (void)layer;
    const double time_s = sign * scale * t.time_s;
    pass->device_s += time_s;
    pass->by_limit_s[t.limit] += time_s;
    pass->launches += sign * kernel->launches;
    pass->error_s += time_s * t.sigma_log;
    if (t.extrapolated) pass->outside_s += time_s;
    pass->flop += sign * kernel->flop;
    pass->moved_bytes += sign * ((kernel->read_elements + kernel->write_elements) *
                                     dl_precision_bytes(m->tf->precision) +
                                 kernel->extra_bytes);
}

static void add_passes(const struct maker *m, const struct dl_layer *layer,
                       const enum dl_pass *passes, int count, double sign,
                       struct dl_transformer_pass *out) {
    const struct dl_kernel_facts facts =
        dl_framework_facts(m->tf->framework, m->tf->precision, m->tf->input.attention);
    for (int p = 0; p < count; p++) {
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        const int n = layer->kind->kernels(layer, &facts, passes[p], m->micro_samples, kernels);
        for (int i = 0; i < n; i++) add_kernel(m, layer, &kernels[i], sign, out);
        struct dl_kernel unfused[DL_TRANSFORMER_SOFTMAX_KERNELS];
        const int more = dl_transformer_softmax_kernels(m->tf->framework, m->tf->precision, layer,
                                                        passes[p], m->micro_samples, unfused);
        for (int i = 0; i < more; i++) add_kernel(m, layer, &unfused[i], sign, out);
    }
}

static void add_pass(struct dl_transformer_pass *to, const struct dl_transformer_pass *from) {
    to->device_s += from->device_s;
    for (int i = 0; i < 3; i++) to->by_limit_s[i] += from->by_limit_s[i];
    to->launches += from->launches;
    to->error_s += from->error_s;
    to->outside_s += from->outside_s;
    to->flop += from->flop;
    to->moved_bytes += from->moved_bytes;
    to->comm_s += from->comm_s;
    to->comm_latency_s += from->comm_latency_s;
    to->comm_inter_s += from->comm_inter_s;
    to->comm_error_s += from->comm_error_s;
    to->comm_bytes += from->comm_bytes;
    to->collective_count += from->collective_count;
}

static void add_comm(const struct dl_collective_time *t, double times, double sent_bytes,
                     struct dl_transformer_pass *pass) {
    pass->comm_s += times * t->time_s;
    pass->comm_latency_s += times * t->latency_s;
    if (t->limit != NULL && strcmp(t->limit, "inter") == 0)
        pass->comm_inter_s += times * t->bandwidth_s;
    pass->comm_error_s += times * t->time_s * t->sigma_log;
    pass->comm_bytes += times * sent_bytes;
    pass->collective_count += times;
}

/* Collectives of tensor parallelism for one layer, forward and backward. */
static void add_tensor(const struct maker *m, const struct dl_transformer_layer *l,
                       struct dl_transformer_pass *forward, struct dl_transformer_pass *backward) {
    const struct dl_transformer_micro_batch *micro_batch = m->micro_batch;
    const double ranks = (double)m->split->tp,
                 half = (ranks - 1) / ranks * micro_batch->collective_bytes;
    if (m->split->tp <= 1) return;
    /* by columns and then by rows inside each */
    const bool experts = l->role == DL_TRANSFORMER_EXPERTS;
    const bool rows =
        l->role == DL_TRANSFORMER_ROW || l->role == DL_TRANSFORMER_VOCABULARY || experts;
    if (!rows && !l->gathers) return;
    if (!m->split->sequence_parallel) {
        if (rows) add_comm(&micro_batch->reduce, 1, 2 * half, forward);
        if (l->gathers || experts) add_comm(&micro_batch->reduce, 1, 2 * half, backward);
        return;
    }
    if (experts) {
        add_comm(&micro_batch->gather, 1, half, forward);
        add_comm(&micro_batch->scatter, 1, half, backward);
    }
    add_comm(rows ? &micro_batch->scatter : &micro_batch->gather, 1, half, forward);
    add_comm(rows ? &micro_batch->gather : &micro_batch->scatter, 1, half, backward);
}

/* F-TRANSFORMER-EXPERT: tokens to their experts and back, forward; gradients the same ways,
 * backward. */
static void add_experts(const struct maker *m, const struct dl_transformer_layer *l,
                        struct dl_transformer_pass *forward, struct dl_transformer_pass *backward) {
    const double ranks = (double)m->split->ep,
                 sent_bytes = m->micro_batch->route_bytes * (ranks - 1) / ranks;
    if (l->role != DL_TRANSFORMER_EXPERTS || m->split->ep <= 1) return;
    add_comm(&m->micro_batch->route, 2, sent_bytes, forward);
    add_comm(&m->micro_batch->route, 2, sent_bytes, backward);
}

static void add_context(const struct maker *m, struct dl_transformer_pass *forward,
                        struct dl_transformer_pass *backward, double forward_s, double backward_s) {
    const double steps = (double)m->split->sp - 1, ranks = (double)m->split->sp;
    struct dl_collective_time shown = m->ring;
    if (steps <= 0 || shown.time_s <= 0) return;
    const double fraction = fmax(0, shown.time_s - forward_s / ranks) / shown.time_s;
    const double back = fmax(0, 2 * shown.time_s - backward_s / ranks) / (2 * shown.time_s);
    shown.time_s *= fraction, shown.latency_s *= fraction, shown.bandwidth_s *= fraction;
    add_comm(&shown, steps, 0, forward);
    shown = m->ring;
    shown.time_s *= back, shown.latency_s *= back, shown.bandwidth_s *= back;
    add_comm(&shown, 2 * steps, 0, backward);
}

/* One layer into its part; the last body layer goes into the part after it with what it has more or
 * less than the others. */
static void add_layer(struct maker *m, const struct dl_transformer_layer *l) {
    static const enum dl_pass forward[] = {DL_FORWARD},
                              backward[] = {DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS};
    struct dl_transformer_micro_batch *micro_batch = m->micro_batch;
    const struct dl_transformer *tf = m->tf;
    const struct dl_layer layer = dl_transformer_layer_at(tf, l, m->split);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        micro_batch->kept_bytes[l->part][r] +=
            m->micro_samples * dl_transformer_kept_bytes(tf, l, m->split, (enum dl_recompute)r);
    }
    if (dl_cost_fuses(tf->framework, tf->precision) && dl_cost_fused(tf->workload, l->index))
        return;
    struct dl_transformer_pass ahead = {0}, back = {0};
    add_passes(m, &layer, forward, 1, 1, &ahead);
    add_passes(m, &layer, backward, 2, 1, &back);
    struct dl_transformer_pass again = ahead;
    add_tensor(m, l, &ahead, &back);
    add_experts(m, l, &ahead, &back);
    if (l->role == DL_TRANSFORMER_HEADS || layer.kind == &dl_layer_attention) {
        add_context(m, &ahead, &back, ahead.device_s, back.device_s);
    }
    add_pass(&micro_batch->forward[l->part], &ahead);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        struct dl_transformer_pass *to = &micro_batch->backward[l->part][r];
        add_pass(to, &back);
        if (r == DL_RECOMPUTE_SELECTIVE && tf->workload->layers[l->index].recomputable)
            add_pass(to, &again);
        if (r == DL_RECOMPUTE_FULL && l->part == DL_TRANSFORMER_BODY) add_pass(to, &ahead);
    }
}

/* The last layer of the body has fewer readers than the others: what adding their gradients costs
 * less. */
static void add_difference(struct maker *m) {
    const struct dl_transformer *tf = m->tf;
    static const enum dl_pass data[] = {DL_BACKWARD_DATA};
    const struct dl_transformer_layer *end = NULL;
    for (int i = 0; i < tf->layer_count; i++) {
        if (tf->layers[i].part == DL_TRANSFORMER_BODY) end = &tf->layers[i];
    }
    if (end == NULL || tf->stack < 2) return;
    const int last = end->index + (int)(tf->stack - 2) * tf->body_count;
    if (tf->workload->layers[last].consumers == tf->workload->layers[end->index].consumers) return;
    struct dl_transformer_layer l = *end;
    struct dl_transformer_pass difference = {0};
    struct dl_layer layer = dl_transformer_layer_at(tf, &l, m->split);
    if (dl_cost_fuses(tf->framework, tf->precision) && dl_cost_fused(tf->workload, l.index)) return;
    add_passes(m, &layer, data, 1, -1, &difference);
    layer.consumers = tf->workload->layers[last].consumers;
    add_passes(m, &layer, data, 1, 1, &difference);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
        add_pass(&m->micro_batch->backward[DL_TRANSFORMER_AFTER][r], &difference);
}

/* One unit of a network that is no stack. */
static void divide_pass(struct dl_transformer_pass *pass, double by) {
    struct dl_transformer_pass part = {0};
    part.device_s = pass->device_s / by, part.launches = pass->launches / by,
    part.error_s = pass->error_s / by;
    part.outside_s = pass->outside_s / by, part.flop = pass->flop / by,
    part.moved_bytes = pass->moved_bytes / by;
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

static void finish_pass(const struct dl_transformer *tf, struct dl_transformer_pass *pass) {
    const struct dl_device *device = tf->system->device;
    const struct dl_framework *framework = tf->framework;
    const double launch_s = dl_known(device->launch_s) ? device->launch_s : 0;
    const double dispatch_s =
        framework->host.dispatch_s > 0 ? fmax(framework->host.dispatch_s, launch_s) : 0;
    const double scale = tf->compute_scale > 0 ? tf->compute_scale : 1;
    const double gap_s = dl_known(device->kernel_gap_s) ? device->kernel_gap_s * scale : 0;
    const double host_s = pass->launches * dispatch_s * scale +
                          pass->collective_count * framework->sync.collective_launch_s;
    const double device_s = pass->device_s + pass->launches * gap_s + pass->comm_s,
                 most_s = fmax(device_s, host_s);
    pass->step_s = device_s; /* below 0: what the last layer has less than the others */
    if (!(most_s > 0)) return;
    pass->step_s = most_s * pow(1 + pow(fmin(device_s, host_s) / most_s, HIDING), 1 / HIDING);
}

static enum dl_code make_collectives(struct maker *m, struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    struct dl_transformer_micro_batch *micro_batch = m->micro_batch;
    const struct dl_transformer_split *split = m->split;
    const double width = dl_precision_bytes(tf->precision), tokens = tf->tokens / (double)split->sp;
    const struct dl_transformer_group tensor = dl_transformer_group_of(split, DL_AXIS_TP),
                                      context = dl_transformer_group_of(split, DL_AXIS_SP);
    micro_batch->collective_bytes = m->micro_samples * tokens * tf->hidden * width;
    micro_batch->boundary_bytes = micro_batch->collective_bytes / (double)split->tp;
    if (split->tp > 1 && !split->sequence_parallel) {
        DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_ALL_REDUCE,
                                         micro_batch->collective_bytes, &micro_batch->reduce, err));
    }
    if (split->tp > 1 && split->sequence_parallel) {
        DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_ALL_GATHER,
                                         micro_batch->collective_bytes, &micro_batch->gather, err));
        DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_REDUCE_SCATTER,
                                         micro_batch->collective_bytes, &micro_batch->scatter,
                                         err));
    }
    if (split->sp > 1) {
        const double kv = tf->hidden * tf->kv_heads / tf->heads / (double)split->tp;
        DL_TRY(dl_transformer_collective(tf, split, context, DL_COLL_P2P,
                                         2 * m->micro_samples * tokens * kv * width, &m->ring,
                                         err));
    }
    if (split->ep > 1) {
        micro_batch->route_bytes = micro_batch->collective_bytes * tf->routed /
                                   (split->sequence_parallel ? (double)split->tp : 1);
        DL_TRY(dl_transformer_collective(tf, split, dl_transformer_group_of(split, DL_AXIS_EP),
                                         DL_COLL_ALL_TO_ALL, micro_batch->route_bytes,
                                         &micro_batch->route, err));
    }
    micro_batch->extrapolated = micro_batch->reduce.extrapolated ||
                                micro_batch->route.extrapolated ||
                                micro_batch->gather.extrapolated ||
                                micro_batch->scatter.extrapolated || m->ring.extrapolated;
    return DL_OK;
}

enum dl_code dl_transformer_micro_batch_make(const struct dl_transformer *tf,
                                             const struct dl_transformer_split *split,
                                             double micro_samples,
                                             struct dl_transformer_micro_batch *out,
                                             struct dl_err *err) {
    struct maker m = {.tf = tf, .split = split, .micro_batch = out, .micro_samples = micro_samples};
    memset(out, 0, sizeof *out);
    out->split = *split;
    out->micro_samples = micro_samples;
    DL_TRY(make_collectives(&m, err));
    for (int i = 0; i < tf->layer_count; i++) add_layer(&m, &tf->layers[i]);
    if (tf->plain)
        divide_micro_batch(tf, out);
    else
        add_difference(&m);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        finish_pass(tf, &out->forward[p]);
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) finish_pass(tf, &out->backward[p][r]);
        if (!dl_known(out->forward[p].device_s)) {
            return dl_fail(err, DL_ERR_USAGE,
                           "device %s has no rate for %s; choose another --precision or add the "
                           "rate to its file",
                           tf->system->device->name, dl_precision_names[tf->precision]);
        }
    }
    /* Full recomputation keeps the input of each body layer alone. */
    const double share = split->sequence_parallel ? (double)split->tp : 1;
    out->kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL] = out->collective_bytes / share;
    return DL_OK;
}
