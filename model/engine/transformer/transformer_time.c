/* transformer_time.c - the prediction of one plan of a transformer: adds the cost of a
 * micro-batch and the collectives of a rank mapping.
 *
 * F-TRANSFORMER-ITERATION: m micro-batches on the slowest stage (kernels, gaps, communication
 * inside layers), the bubble, messages between stages, exposed gradient
 * synchronization, the update, fixed host time, waiting for the slowest device.
 * F-TRANSFORMER-SHARD: what overlaps leaves of R seconds of reduction in k buckets behind B seconds
 * of backward: R/k + max(0, R - R/k - B); parameters gathered behind the next forward likewise. An
 * interleaved pipeline finishes the gradients of its v parts p steps apart: B is B (1 + (v-1) p)/v.
 * Stage 2 reduces after every micro-batch; stage 3 gathers each layer (g) before its forward and
 * its backward and reduces its gradients (r) after that, in one lane. What is not of the body
 * (root: g0, r0) is gathered once, before everything, and reduced last. Forward shows g0 + g +
 * max(0, G - g - F), backward max(r, G + R - B) + r0. Copies into and out of the collectives'
 * buffers are compute. F-TRANSFORMER-ACCUMULATE: with several micro-batches each adds its gradients
 * to the sum (read and written in its width), which is compute too.
 */
#include <math.h>
#include <string.h>

#include "model/engine/transformer/micro_batch_builder.h"
#include "model/engine/transformer/transformer_internal.h"

struct sums { /* of one micro-batch on the slowest stage */
    double forward_s, backward_s, comm_s, error_s, outside_s, comm_error_s, bytes, by_limit_s[3],
        step_s, host_bound_s;
    struct dl_resource_use comm;
};

static void add(struct sums *s, const struct dl_transformer_pass *pass, double times,
                bool forward) {
    if (forward)
        s->forward_s += times * pass->device_s;
    else
        s->backward_s += times * pass->device_s;
    s->comm_s += times * pass->comm_s;
    dl_resource_add(&s->comm, &pass->comm, times);
    s->error_s += times * pass->error_s;
    s->outside_s += times * pass->outside_s;
    s->comm_error_s += times * pass->comm_error_s;
    s->bytes += times * pass->comm_bytes;
    for (int i = 0; i < 3; i++) s->by_limit_s[i] += times * pass->by_limit_s[i];
    s->step_s += times * pass->step_s;
    s->host_bound_s += times * pass->host_bound_s;
}

/* Causes of `seconds` of a collective. */
static void add_causes(const struct dl_collective_time *t, double seconds, struct dl_evidence *e) {
    if (!(t->time_s > 0)) return;
    const double latency_s = seconds / t->time_s * t->latency_s;
    e->comm.s[DL_ON_LATENCY] += latency_s;
    e->comm.s[dl_resource_of_link(t->limit)] += seconds - latency_s;
}

/* Exposed communication by cause, and its spread. */
static void add_limits(const struct dl_collective_time *t, double exposed_s,
                       struct dl_evidence *e) {
    add_causes(t, exposed_s, e);
    e->comm_error_s += exposed_s * t->sigma_log;
}

/* Kernels of `kernels_s` that messages outlast by `beyond_s`: faster kernels alone save nothing,
 * faster messages do until the kernels last as long. As far as a step of 10 % goes (F-SAVING): a
 * link that much faster saves beyond_s at most. */
static double outlasted_s(double kernels_s, double beyond_s) {
    const double step_frac = 0.1;
    return fmin(kernels_s, fmax(0, beyond_s) / step_frac);
}

/* Kernels of `kernels_s`, which a collective outlasts by `beyond_s`. */
static void add_beyond(const struct dl_collective_time *t, double kernels_s, double beyond_s,
                       struct dl_evidence *e) {
    const double outlasted = outlasted_s(kernels_s, beyond_s);
    e->outlasted_s += outlasted;
    add_causes(t, outlasted, e);
}

/* `times` collectives, each hidden behind `hides_s` of kernels but for `shown_s`. */
static void add_hidden(const struct dl_collective_time *t, double times, double shown_s,
                       double hides_s, struct dl_evidence *e) {
    add_beyond(t, times * hides_s, times * (t->time_s - shown_s - hides_s), e);
}

/* How long the work of a pass of the last micro-batch (the first one forward) goes on while parts
 * of the stage are done with theirs. */
static double window_s(const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_choice *choice, double pass_s) {
    const double pp = (double)mapping->split.pp,
                 v = dl_schedule_parts(choice->schedule, (double)choice->virtual_stages);
    return pass_s * (1 + (v - 1) * pp) / v;
}

/* Of the gradients' reduction after the last micro-batch. The bound hides it, with the gather of
 * what they update, behind the next forward too (F-FW-IDEAL): what comes before the layers is ready
 * last and wanted first. */
static double exposed_reduce_s(const struct dl_transformer *tf,
                               const struct dl_transformer_mapping *mapping,
                               const struct dl_transformer_choice *choice,
                               const struct dl_transformer_stage *slowest) {
    const double reduce_s = mapping->reduce.time_s, last_s = reduce_s / mapping->buckets,
                 backward_s = window_s(mapping, choice, slowest->backward_s);
    if (!dl_transformer_reduces_behind(tf, mapping->shard)) return reduce_s;
    if (mapping->bound) {
        const double all_s = reduce_s + (mapping->shard == 1 ? mapping->gather.time_s : 0);
        return fmax(mapping->last_frac * all_s,
                    all_s - backward_s - window_s(mapping, choice, slowest->forward_s));
    }
    return last_s + fmax(0, reduce_s - last_s - backward_s);
}

/* Of the parameters that are gathered after the update. */
static double exposed_gather_s(const struct dl_transformer *tf,
                               const struct dl_transformer_mapping *mapping,
                               const struct dl_transformer_choice *choice,
                               const struct dl_transformer_stage *slowest) {
    const double all_s = mapping->gather.time_s, first_s = all_s / mapping->buckets,
                 forward_s = window_s(mapping, choice, slowest->forward_s);
    if (mapping->bound && mapping->shard == 1 && dl_transformer_reduces_behind(tf, mapping->shard))
        return 0; /* with the sums */
    if (mapping->bound) return fmax(0, all_s - forward_s);
    if (!tf->framework->transformer.overlaps_gather || tf->input.blocking_launches) return all_s;
    return first_s + fmax(0, all_s - first_s - forward_s);
}

/* Of sharded layers in one micro-batch: kernels that gathers outlast forward, gathers and sums
 * backward. */
static double sharded_outlasted_s(const struct dl_transformer *tf,
                                  const struct dl_transformer_mapping *mapping,
                                  const struct dl_transformer_stage *compute) {
    const double gather_s = mapping->unit_gather.time_s, sum_s = mapping->unit_reduce.time_s,
                 gathers_s = compute->layers * gather_s, sums_s = compute->layers * sum_s;
    if (mapping->shard != 3 || mapping->replicas <= 1 ||
        !dl_transformer_reduces_behind(tf, mapping->shard))
        return 0;
    return outlasted_s(compute->forward_s, gathers_s - gather_s - compute->forward_s) +
           outlasted_s(compute->backward_s, gathers_s + sums_s - sum_s - compute->backward_s);
}

/* Causes of `seconds` of sharded layers: their gathers forward and backward, and their sums, of
 * which a part may leave the node. */
static void add_sharded_causes(const struct dl_transformer_mapping *mapping, double seconds,
                               struct dl_evidence *e) {
    const struct dl_collective_time *gather = &mapping->unit_gather,
                                    *across = &mapping->unit_across;
    struct dl_collective_time inside = mapping->unit_reduce;
    inside.time_s -= across->time_s;
    inside.latency_s -= across->latency_s;
    inside.bandwidth_s -= across->bandwidth_s;
    if (across->time_s > 0) inside.limit = gather->limit;
    const double all_s = 2 * gather->time_s + mapping->unit_reduce.time_s,
                 share = all_s > 0 ? seconds / all_s : 0;
    add_causes(gather, 2 * share * gather->time_s, e);
    add_causes(&inside, share * inside.time_s, e);
    add_causes(across, share * across->time_s, e);
}

/* Parts of the gathered or scattered bytes that a rank sends. */
struct sent {
    double of_states, of_experts;
    double across; /* hybrid sharding: all-reduce of a share among n/g */
};
static struct sent sent_of(const struct dl_transformer_mapping *mapping) {
    const double n = mapping->replicas, g = mapping->shard_ranks,
                 n_e = fmax(1, mapping->expert_replicas);
    return (struct sent){(g - 1) / g, (n_e - 1) / n_e, g < n ? 2 * (1 - g / n) / g : 0};
}

/* Stage 3: layers that are gathered for each pass, and their sums, at every micro-batch. */
static void add_sharded(const struct dl_transformer *tf,
                        const struct dl_transformer_mapping *mapping,
                        const struct dl_transformer_stage *slowest, double micro_batches,
                        double each_exposed_s, struct dl_transformer_result *out) {
    const struct sent sent = sent_of(mapping);
    const double layers = slowest->layers, elements = mapping->most_parameters,
                 rest = mapping->gather_bytes > 0 ? mapping->gradient_bytes / mapping->gather_bytes
                                                  : 1,
                 moved = sent.of_states * (elements - mapping->expert_parameters) +
                         sent.of_experts * mapping->expert_parameters,
                 kernels_s = micro_batches * sharded_outlasted_s(tf, mapping, slowest),
                 exposed_s = micro_batches * each_exposed_s;
    out->data_s +=
        micro_batches * (2 * layers * mapping->unit_gather.time_s + mapping->gather.time_s +
                         layers * mapping->unit_reduce.time_s + mapping->reduce.time_s);
    out->sent_bytes += micro_batches * dl_precision_bytes(tf->precision) *
                       (moved * (2 + rest) + sent.across * elements * rest);
    out->evidence.outlasted_s += kernels_s;
    add_sharded_causes(mapping, exposed_s + kernels_s, &out->evidence);
    out->evidence.comm_error_s += exposed_s * mapping->unit_gather.sigma_log;
}

/* Sums once an iteration. */
static void add_sums(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_choice *choice,
                     const struct dl_transformer_stage *slowest,
                     struct dl_transformer_result *out) {
    const double reduce_s = mapping->reduce.time_s,
                 shown_s = exposed_reduce_s(tf, mapping, choice, slowest),
                 forward_s = window_s(mapping, choice, slowest->forward_s),
                 backward_s = window_s(mapping, choice, slowest->backward_s);
    out->data_s += reduce_s;
    out->data_exposed_s += shown_s;
    add_limits(&mapping->reduce, shown_s, &out->evidence);
    if (!dl_transformer_reduces_behind(tf, mapping->shard)) return;
    if (mapping->bound) /* overlaps with backward and forward, as the gather does */
        add_beyond(&mapping->reduce, backward_s + forward_s, shown_s, &out->evidence);
    else
        add_hidden(&mapping->reduce, 1, reduce_s / mapping->buckets, backward_s, &out->evidence);
}

/* Gradients, parameters and the tied embedding once an iteration; what stages 2 and 3 do at every
 * micro-batch is given. */
static void add_data(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_choice *choice,
                     const struct dl_transformer_stage *slowest, double each_exposed_s,
                     struct dl_transformer_result *out) {
    const double micro_batches = choice->micro_batches, n = mapping->replicas;
    const double expert_frac =
        mapping->gradient_bytes > 0 ? mapping->expert_gradient_bytes / mapping->gradient_bytes : 0;
    const struct sent parts = sent_of(mapping);
    const double across = parts.across,
                 sent = parts.of_states + expert_frac * (parts.of_experts - parts.of_states);
    const double reduce_s = mapping->reduce.time_s, gather_s = mapping->gather.time_s,
                 forward_s = window_s(mapping, choice, slowest->forward_s);
    const bool behind = dl_transformer_reduces_behind(tf, mapping->shard);
    out->data_exposed_s = micro_batches * each_exposed_s + mapping->tied.time_s;
    out->data_s = mapping->tied.time_s;
    add_limits(&mapping->tied, mapping->tied.time_s, &out->evidence);
    if (n > 1 && mapping->shard <= 1) {
        add_sums(tf, mapping, choice, slowest, out);
        out->sent_bytes +=
            (mapping->shard == 0 ? 2 * sent : sent + across) * mapping->gradient_bytes;
    }
    if (n > 1 && mapping->shard == 2) {
        out->data_s += micro_batches * reduce_s;
        out->sent_bytes += micro_batches * (sent + across) * mapping->gradient_bytes;
        add_limits(&mapping->reduce, micro_batches * each_exposed_s, &out->evidence);
        if (behind)
            add_hidden(&mapping->reduce, micro_batches,
                       mapping->bound ? 0 : reduce_s / mapping->buckets, slowest->backward_s,
                       &out->evidence);
    }
    if (n > 1 && (mapping->shard == 1 || mapping->shard == 2)) {
        const double shown_s = exposed_gather_s(tf, mapping, choice, slowest);
        out->data_s += gather_s;
        out->data_exposed_s += shown_s;
        out->sent_bytes += sent * mapping->gather_bytes;
        add_limits(&mapping->gather, shown_s, &out->evidence);
        if (behind && shown_s < gather_s && !(mapping->bound && mapping->shard == 1))
            add_hidden(&mapping->gather, 1, mapping->bound ? 0 : gather_s / mapping->buckets,
                       forward_s, &out->evidence);
    }
    if (n > 1 && mapping->shard == 3)
        add_sharded(tf, mapping, slowest, micro_batches, each_exposed_s, out);
}

/* All micro-batches on the slowest stage. */
static void run_stage(const struct dl_transformer_mapping *mapping,
                      const struct dl_transformer_micro_batch *micro_batch, double m, int recompute,
                      struct dl_transformer_result *out) {
    const double add_s = m > 1 ? out->layers * mapping->accumulate_s : 0;
    const double out_s = out->layers * mapping->copy_out_s, in_s = out->layers * mapping->copy_in_s;
    struct dl_evidence *e = &out->evidence;
    struct sums one = {0};
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        const bool there =
            p == DL_TRANSFORMER_BODY || (p == DL_TRANSFORMER_BEFORE ? out->before : out->after);
        const double times = p == DL_TRANSFORMER_BODY              ? out->layers
                             : dl_transformer_cuts_evenly(mapping) ? 1 / (double)mapping->split.pp
                                                                   : 1;
        if (!there && !dl_transformer_cuts_evenly(mapping)) continue;
        add(&one, &micro_batch->forward[p], times, true);
        add(&one, &micro_batch->backward[p][recompute], times, false);
    }
    e->forward_s = m * (one.forward_s + out_s);
    e->backward_s = m * (one.backward_s + out_s + in_s + add_s);
    e->by_limit_s[DL_LIMIT_MEMORY] = m * (2 * out_s + in_s + add_s);
    e->host_s = m * fmax(0, one.step_s - one.forward_s - one.backward_s - one.comm_s);
    e->host_bound_s = m * one.host_bound_s;
    dl_resource_add(&e->comm, &one.comm, m);
    e->comm_error_s = m * one.comm_error_s;
    for (int i = 0; i < 3; i++)
        e->by_limit_s[i] += m * one.by_limit_s[i] + mapping->update_by_limit_s[i];
    e->error_s = m * one.error_s + mapping->update_error_s;
    e->outside_s = m * one.outside_s;
    out->tensor_s = m * one.comm_s;
    out->sent_bytes = m * one.bytes;
}

static void evaluate(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_micro_batch *micro_batch,
                     const struct dl_collective_time *boundary,
                     const struct dl_transformer_choice *choice, bool least,
                     struct dl_transformer_result *out) {
    const int recompute = (int)choice->recompute;
    const double pp = (double)mapping->split.pp, m = choice->micro_batches;
    const double v = dl_schedule_parts(choice->schedule, (double)choice->virtual_stages);
    struct dl_evidence *e = &out->evidence;
    memset(out, 0, sizeof *out);
    const struct dl_transformer_pace pace =
        dl_transformer_pace_of(tf, mapping, micro_batch, choice, boundary->time_s, least);
    out->before = pace.slowest == 0;
    out->after = pace.slowest == 2 || pp <= 1;
    out->layers = pace.stage.layers;
    run_stage(mapping, micro_batch, m, recompute, out);
    e->update_s = mapping->update_s;
    e->bubble_s = pace.bubble_s;
    const double host_s = tf->framework->host.iteration_s +
                          dl_transformer_iteration_checks_s(tf, mapping, pace.stage.backward_s);
    e->host_s += host_s;
    e->host_bound_s += host_s;
    e->straggler_frac = mapping->straggler_frac;
    if (pp > 1) {
        out->boundary_s = pace.boundary_s;
        e->comm_s = fmax(pace.boundary_s, 2 * m * v * boundary->time_s);
        out->sent_bytes += 2 * m * v * micro_batch->boundary_bytes;
        add_limits(boundary, pace.boundary_s, e);
    }
    add_data(tf, mapping, choice, &pace.stage, pace.exposed_s, out);
    e->comm_s += out->tensor_s + out->data_s;
    e->exposed_comm_s = out->tensor_s + pace.boundary_s + out->data_exposed_s;
    e->backward_s += mapping->slowdown_frac * fmax(0, out->data_s - out->data_exposed_s);
    dl_compose_input(&mapping->input, tf->framework, 0, e);
    dl_compose_iteration(e, &out->iteration);
    dl_transformer_hold(tf, mapping, micro_batch, choice, out);
}

void dl_transformer_evaluate(const struct dl_transformer *tf,
                             const struct dl_transformer_mapping *mapping,
                             const struct dl_transformer_micro_batch *micro_batch,
                             const struct dl_collective_time *boundary,
                             const struct dl_transformer_choice *choice,
                             struct dl_transformer_result *out) {
    evaluate(tf, mapping, micro_batch, boundary, choice, false, out);
}

void dl_transformer_least(const struct dl_transformer *tf,
                          const struct dl_transformer_mapping *mapping,
                          const struct dl_transformer_micro_batch *micro_batch,
                          const struct dl_collective_time *boundary,
                          const struct dl_transformer_choice *choice,
                          struct dl_transformer_result *out) {
    evaluate(tf, mapping, micro_batch, boundary, choice, true, out);
}
