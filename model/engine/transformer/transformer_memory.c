/* transformer_memory.c - device memory of a transformer's pipeline stages: states, and activations
 * of the micro-batches in flight.
 *
 * F-TRANSFORMER-IN-FLIGHT: stage s of p holds at most p - s micro-batches with 1F1B, all m with
 * GPipe; interleaved with v parts ((v - 1) p + 2 (p - s) - 1)/v, in units of all its layers.
 * F-TRANSFORMER-MEMORY: states of the stage, what its layers keep of each micro-batch in flight,
 * the embedding's on the first stage; on top what is there at the peak, before the first backward
 * pass: the head's, which are freed before a layer is recomputed, or that layer's, whichever is
 * more. The fullest of the first, the second and the last stage.
 */
#include <math.h>

#include "model/engine/transformer/micro_batch_builder.h"
#include "model/engine/transformer/transformer_internal.h"
#include "model/framework/gradient_width.h"
#include "model/framework/workspace.h"

double dl_transformer_stage_in_flight(const struct dl_transformer_mapping *mapping,
                                      const struct dl_transformer_choice *choice, int64_t stage) {
    if (mapping->split.pp <= 1) return 1;
    return dl_schedules[choice->schedule]->held((double)stage, (double)mapping->split.pp,
                                                choice->micro_batches,
                                                (double)choice->virtual_stages);
}

double dl_transformer_in_flight(const struct dl_transformer_mapping *mapping,
                                const struct dl_transformer_choice *choice, int last) {
    return dl_transformer_stage_in_flight(mapping, choice, last ? mapping->split.pp - 1 : 0);
}

/* Micro-batches of which the first part of the network is held. */
static double first_flight(const struct dl_transformer_mapping *mapping,
                           const struct dl_transformer_choice *choice, double flight) {
    const struct dl_schedule_row *row = dl_schedules[choice->schedule];
    if (mapping->split.pp <= 1 || row->held_first == NULL) return flight;
    return row->held_first((double)mapping->split.pp, choice->micro_batches);
}

static double total_of(const struct dl_memory *m) {
    return m->weights_bytes + m->gradients_bytes + m->optimizer_bytes + m->activations_bytes +
           m->workspace_bytes + m->buffers_bytes + m->context_bytes;
}

/* What a layer keeps from its recomputation until its backward pass ends. */
double dl_transformer_recomputed_bytes(const struct dl_transformer_micro_batch *micro_batch,
                                       enum dl_recompute recompute) {
    const double *kept = micro_batch->kept_bytes[DL_TRANSFORMER_BODY];
    if (recompute == DL_RECOMPUTE_FULL) return kept[DL_RECOMPUTE_NONE];
    return fmax(0, kept[DL_RECOMPUTE_NONE] - kept[recompute]);
}

double dl_transformer_ends_bytes(const struct dl_transformer_mapping *mapping,
                                 const struct dl_transformer_micro_batch *micro_batch,
                                 const struct dl_transformer_choice *choice, double head,
                                 double flight) {
    const struct dl_schedule_row *row = dl_schedules[choice->schedule];
    const bool holds_all = row->all_forward_first && mapping->split.pp > 1;
    const double heads = (holds_all ? flight : 1) * head,
                 again = dl_transformer_recomputed_bytes(micro_batch, choice->recompute);
    return fmax(heads, heads - (row->pairs ? 0 : head) + again);
}

/* F-MEM-GATHERED: sequence parallelism holds what it gathers for a linear layer and, until they are
 * scattered, the whole sums of another or the gradient of its input. */
static double gathered_bytes(const struct dl_transformer_micro_batch *micro_batch) {
    const struct dl_transformer_split *split = &micro_batch->split;
    return split->tp > 1 && split->sequence_parallel ? 2 * micro_batch->collective_bytes : 0;
}

/* F-TRANSFORMER-DATA: whole gradients of the part whose round is under way. */
static double round_bytes(const struct dl_transformer *tf,
                          const struct dl_transformer_mapping *mapping,
                          const struct dl_transformer_choice *choice,
                          enum dl_transformer_stage_kind kind) {
    return mapping->parameters[kind] *
           dl_framework_gradient_width(tf->framework, tf->precision).kept_bytes /
           (double)choice->virtual_stages;
}

void dl_transformer_stage_memory(const struct dl_transformer *tf,
                                 const struct dl_transformer_mapping *mapping,
                                 const struct dl_transformer_micro_batch *micro_batch,
                                 const struct dl_transformer_choice *choice, int64_t stage,
                                 struct dl_memory *out) {
    const int r = (int)choice->recompute;
    const struct dl_schedule_row *row = dl_schedules[choice->schedule];
    const double input = dl_known(tf->workload->input_bytes_per_sample)
                             ? micro_batch->micro_samples * tf->workload->input_bytes_per_sample
                             : 0;
    const double flight = dl_transformer_stage_in_flight(mapping, choice, stage);
    const enum dl_transformer_stage_kind kind = dl_transformer_kind_of(mapping, stage);
    double times[DL_TRANSFORMER_PARTS];
    dl_transformer_stage_times(tf, mapping, stage, times);
    struct dl_memory m = mapping->states[kind];
    m.activations_bytes =
        flight * times[DL_TRANSFORMER_BODY] * micro_batch->kept_bytes[DL_TRANSFORMER_BODY][r];
    if (times[DL_TRANSFORMER_BEFORE] > 0)
        m.activations_bytes += first_flight(mapping, choice, flight) *
                               (micro_batch->kept_bytes[DL_TRANSFORMER_BEFORE][r] + input);
    const double head =
        times[DL_TRANSFORMER_AFTER] > 0 ? micro_batch->kept_bytes[DL_TRANSFORMER_AFTER][r] : 0;
    m.activations_bytes += dl_transformer_ends_bytes(mapping, micro_batch, choice, head, flight);
    m.buffers_bytes += gathered_bytes(micro_batch) + 2 * micro_batch->offloaded_bytes[r];
    if (mapping->shard == 2 && !dl_transformer_sums_each(tf, mapping, choice))
        m.buffers_bytes += round_bytes(tf, mapping, choice, kind);
    if (row->asynchronous &&
        kind != DL_TRANSFORMER_LAST) /* weights of every micro-batch in flight */
        m.weights_bytes +=
            mapping->parameters[0] * dl_precision_bytes(tf->precision) * (flight - 1);
    m.total_bytes = total_of(&m) / (1 - dl_fragmentation_frac(tf->framework));
    *out = m;
}

/* The stages that may be fullest: the first, the last, the second; all where their layers are
 * listed. */
static int stage_count(const struct dl_transformer *tf,
                       const struct dl_transformer_mapping *mapping) {
    const int64_t pp = mapping->split.pp;
    return (int)(tf->listed_stages > 0 || pp < 3 ? pp : 3);
}

static int64_t stage_of(const struct dl_transformer *tf,
                        const struct dl_transformer_mapping *mapping, int index) {
    if (tf->listed_stages > 0) return index;
    return index == 0 ? 0 : index == 1 ? mapping->split.pp - 1 : 1;
}

void dl_transformer_hold(const struct dl_transformer *tf,
                         const struct dl_transformer_mapping *mapping,
                         const struct dl_transformer_micro_batch *micro_batch,
                         const struct dl_transformer_choice *choice,
                         struct dl_transformer_result *out) {
    for (int i = 0; i < stage_count(tf, mapping); i++) {
        struct dl_memory m;
        dl_transformer_stage_memory(tf, mapping, micro_batch, choice, stage_of(tf, mapping, i), &m);
        if (i == 0 || m.total_bytes > out->memory.total_bytes) out->memory = m;
    }
    out->fits = !dl_known(out->memory.capacity_bytes) ||
                out->memory.total_bytes <= out->memory.capacity_bytes;
}

double dl_transformer_largest_micro_batch(const struct dl_transformer *tf,
                                          const struct dl_transformer_mapping *mapping,
                                          const struct dl_transformer_micro_batch *micro_batch,
                                          const struct dl_transformer_choice *choice) {
    double samples = HUGE_VAL;
    for (int i = 0; i < stage_count(tf, mapping); i++) {
        struct dl_memory m;
        dl_transformer_stage_memory(tf, mapping, micro_batch, choice, stage_of(tf, mapping, i), &m);
        if (!dl_known(m.capacity_bytes)) return NAN;
        const double whole = m.capacity_bytes * (1 - dl_fragmentation_frac(tf->framework)),
                     fixed = total_of(&m) - m.activations_bytes,
                     each = m.activations_bytes / micro_batch->micro_samples;
        samples = fmin(samples, each > 0 ? floor((whole - fixed) / each) : HUGE_VAL);
    }
    return fmax(0, samples);
}
