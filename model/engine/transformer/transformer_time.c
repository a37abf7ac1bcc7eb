/* transformer_time.c - the prediction of one plan of a transformer: adds the cost of a
 * micro-batch, and runs the collectives of a rank mapping with it (transformer_program.h).
 *
 * F-TRANSFORMER-ITERATION: m micro-batches on the slowest stage (kernels, gaps, communication
 * inside layers), the bubble, messages between stages, exposed gradient
 * synchronization, the update, fixed host time, waiting for the slowest device.
 * F-TRANSFORMER-ACCUMULATE: with several micro-batches each adds its gradients to the sum (read and
 * written in its width), which is compute, as are copies into and out of collectives' buffers.
 */
#include <math.h>
#include <string.h>

#include "model/engine/transformer/micro_batch_builder.h"
#include "model/engine/transformer/transformer_internal.h"

struct sums { /* of one micro-batch on the slowest stage */
    double forward_s, backward_s, comm_s, error_s, outside_s, comm_error_s, bytes, by_limit_s[3],
        step_s, host_bound_s;
};

static void add(struct sums *s, const struct dl_transformer_pass *pass, double times,
                bool forward) {
    if (forward)
        s->forward_s += times * pass->device_s;
    else
        s->backward_s += times * pass->device_s;
    s->comm_s += times * pass->comm_s;
    s->error_s += times * pass->error_s;
    s->outside_s += times * pass->outside_s;
    s->comm_error_s += times * pass->comm_error_s;
    s->bytes += times * pass->comm_bytes;
    for (int i = 0; i < 3; i++) s->by_limit_s[i] += times * pass->by_limit_s[i];
    s->step_s += times * pass->step_s;
    s->host_bound_s += times * pass->host_bound_s;
}

/* Communication that nothing hides, by cause, and its spread. */
static void add_exposed(const struct dl_collective_time *t, double exposed_s,
                        struct dl_evidence *e) {
    if (!(t->time_s > 0)) return;
    const double latency_s = exposed_s / t->time_s * t->latency_s;
    e->path.s[DL_ON_LATENCY] += latency_s;
    e->path.s[dl_resource_of_link(t->limit)] += exposed_s - latency_s;
    e->comm_error_s += exposed_s * t->sigma_log;
}

/* Parts of the gathered or scattered bytes that a rank sends. */
struct sent {
    double of_states, of_experts;
    double across; /* hybrid sharding: all-reduce of a share among n/g */
};
static struct sent sent_of(const struct dl_transformer_mapping *mapping) {
    const double n = mapping->replicas, g = mapping->shard_ranks,
                 n_e = fmax(1, mapping->experts.replicas);
    return (struct sent){(g - 1) / g, (n_e - 1) / n_e, g < n ? 2 * (1 - g / n) / g : 0};
}

/* Bytes and time of gradients, parameters and the tied embedding. */
static void add_data(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_choice *choice,
                     struct dl_transformer_result *out) {
    const double expert_frac =
        mapping->gradient_bytes > 0 ? mapping->experts.gradient_bytes / mapping->gradient_bytes : 0;
    const struct sent parts = sent_of(mapping);
    const double sent = parts.of_states + expert_frac * (parts.of_experts - parts.of_states),
                 each = dl_transformer_sums(tf, mapping, choice),
                 layers = out->part_count[DL_TRANSFORMER_BODY],
                 sums_s = mapping->reduce.time_s + layers * mapping->unit_reduce.time_s;
    out->data_s = mapping->tied.time_s;
    if (mapping->replicas <= 1) return;
    out->data_s += each * sums_s;
    if (mapping->shard == 3) {
        const double elements = mapping->most_parameters,
                     rest = mapping->gather_bytes > 0
                                ? mapping->gradient_bytes / mapping->gather_bytes
                                : 1,
                     moved = parts.of_states * (elements - mapping->experts.parameters) +
                             parts.of_experts * mapping->experts.parameters;
        out->data_s +=
            each * (fmax(0, 2 * layers - 1) * mapping->unit_gather.time_s + mapping->gather.time_s);
        out->sent_bytes += each * dl_precision_bytes(tf->precision) *
                           (moved * (2 + rest) + parts.across * elements * rest);
        return;
    }
    out->sent_bytes +=
        each * (mapping->shard == 0 ? 2 * sent : sent + parts.across) * mapping->gradient_bytes;
    if (mapping->shard == 0) return;
    out->data_s += mapping->gather.time_s;
    out->sent_bytes += sent * mapping->gather_bytes;
}

/* All micro-batches on the slowest stage. */
static void run_stage(const struct dl_transformer_mapping *mapping,
                      const struct dl_transformer_micro_batch *micro_batch, double m, int recompute,
                      struct dl_transformer_result *out) {
    const double layers = out->part_count[DL_TRANSFORMER_BODY],
                 add_s = m > 1 ? layers * mapping->accumulate_s : 0,
                 out_s = layers * mapping->copy_out_s, in_s = layers * mapping->copy_in_s;
    struct dl_evidence *e = &out->evidence;
    struct sums one = {0};
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        add(&one, &micro_batch->forward[p], out->part_count[p], true);
        add(&one, &micro_batch->backward[p][recompute], out->part_count[p], false);
    }
    e->forward_s = m * (one.forward_s + out_s);
    e->backward_s = m * (one.backward_s + out_s + in_s + add_s);
    e->by_limit_s[DL_LIMIT_MEMORY] = m * (2 * out_s + in_s + add_s);
    e->host_s = m * fmax(0, one.step_s - one.forward_s - one.backward_s - one.comm_s);
    e->host_bound_s = m * one.host_bound_s;
    e->comm_error_s = m * one.comm_error_s;
    for (int i = 0; i < 3; i++)
        e->by_limit_s[i] += m * one.by_limit_s[i] + mapping->update_by_limit_s[i];
    e->error_s = m * one.error_s + mapping->update_error_s;
    e->outside_s = m * one.outside_s;
    out->tensor_s = m * one.comm_s;
    out->sent_bytes = m * one.bytes;
}

/* The micro-batches of the slowest stage with what they wait for. */
static void run_program(const struct dl_transformer_program *program,
                        struct dl_transformer_result *out) {
    struct dl_transformer_run run;
    struct dl_evidence *e = &out->evidence;
    dl_transformer_run_iteration(program, &run);
    out->data_exposed_s = run.exposed.s;
    out->slowdown_s = run.slowdown_s;
    e->comm_error_s += run.exposed.error_s;
    e->path = run.path;
}

/* The update, fixed time of the host, and the tied embedding. */
static void add_end(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                    double backward_s, struct dl_transformer_result *out) {
    struct dl_evidence *e = &out->evidence;
    const double host_s =
        tf->framework->host.iteration_s + dl_transformer_iteration_calls_s(tf, mapping, backward_s);
    const struct dl_resource_use update = {
        {[DL_ON_ARITHMETIC] = mapping->update_by_limit_s[DL_LIMIT_COMPUTE],
         [DL_ON_MEMORY] = mapping->update_by_limit_s[DL_LIMIT_MEMORY],
         [DL_ON_LATENCY] = mapping->update_by_limit_s[DL_LIMIT_LATENCY]}};
    out->data_exposed_s += mapping->tied.time_s;
    add_exposed(&mapping->tied, mapping->tied.time_s, e);
    e->update_s = mapping->update_s;
    dl_resource_share(&update, mapping->update_s, DL_ON_MEMORY, &e->path);
    e->host_s += host_s + mapping->host.update_s + mapping->host.copy_s;
    e->host_bound_s += host_s + mapping->host.update_s;
    e->path.s[DL_ON_HOST] += host_s;
    e->path.s[DL_ON_HOST_CORES] += mapping->host.update_s;
    e->path.s[DL_ON_HOST_COPY] += mapping->host.copy_s;
}

static void add_pipeline(const struct dl_transformer_mapping *mapping,
                         const struct dl_transformer_micro_batch *micro_batch,
                         const struct dl_collective_time *boundary,
                         const struct dl_transformer_choice *choice,
                         const struct dl_transformer_pace *pace,
                         struct dl_transformer_result *out) {
    const double v = dl_schedule_parts(choice->schedule, (double)choice->virtual_stages),
                 messages = 2 * choice->micro_batches * v / dl_transformer_chains(&mapping->split);
    struct dl_evidence *e = &out->evidence;
    e->bubble_s = pace->bubble_s;
    e->path.s[DL_ON_STAGES] += pace->bubble_s;
    out->boundary_s = pace->boundary_s;
    e->comm_s = fmax(pace->boundary_s, messages * boundary->time_s);
    out->sent_bytes += messages * micro_batch->boundary_bytes;
    add_exposed(boundary, pace->boundary_s, e);
}

static void evaluate(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_micro_batch *micro_batch,
                     const struct dl_collective_time *boundary,
                     const struct dl_transformer_choice *choice, bool least,
                     struct dl_transformer_result *out) {
    const double pp = (double)mapping->split.pp, m = choice->micro_batches;
    struct dl_evidence *e = &out->evidence;
    struct dl_transformer_uses uses;
    memset(out, 0, sizeof *out);
    const struct dl_transformer_pace pace =
        dl_transformer_pace_of(tf, mapping, micro_batch, choice, boundary->time_s, least);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
        out->part_count[p] = dl_transformer_cuts_evenly(mapping) && p != DL_TRANSFORMER_BODY
                                 ? 1 / pp
                                 : pace.stage.part_count[p];
    run_stage(mapping, micro_batch, m, (int)choice->recompute, out);
    if (!least) dl_transformer_uses_of(mapping, micro_batch, choice, &uses);
    run_program(&(struct dl_transformer_program){.tf = tf,
                                                 .mapping = mapping,
                                                 .choice = choice,
                                                 .stage = &pace.stage,
                                                 .uses = least ? NULL : &uses,
                                                 .least = least},
                out);
    if (pp > 1) add_pipeline(mapping, micro_batch, boundary, choice, &pace, out);
    add_end(tf, mapping, dl_transformer_pass_s(&pace.stage, DL_BACKWARDS), out);
    add_data(tf, mapping, choice, out);
    if (out->data_s - out->data_exposed_s < 1e-9 * out->data_s) /* nothing is hidden */
        out->data_exposed_s = out->data_s;
    e->straggler_frac = mapping->straggler_frac;
    e->comm_s += out->tensor_s + out->data_s;
    e->exposed_comm_s = out->tensor_s + out->boundary_s + out->data_exposed_s;
    e->backward_s += out->slowdown_s;
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
