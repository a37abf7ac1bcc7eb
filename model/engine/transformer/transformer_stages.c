/* transformer_stages.c - the stages of a transformer's plan, one micro-batch on each, and the
 * schedule of a pipeline run on them (schedule.h). See transformer_time.c for the iteration.
 *
 * F-TRANSFORMER-BUBBLE: what the pipeline takes without messages beyond the work of its slowest
 * stage. F-TRANSFORMER-BOUNDARY: what it takes longer with them; a stage waits for each message, or
 * messages move behind other micro-batches where the framework has them do so (interleaved).
 */
#include <math.h>
#include <string.h>

#include "model/engine/schedule.h"
#include "model/engine/transformer/transformer_internal.h"

/* Whether collectives of data parallelism run behind kernels: not where the host waits for each
 * (F-HOST-BLOCKING), nor where stage 1 sums everything at once. */
bool dl_transformer_reduces_behind(const struct dl_transformer *tf, int shard) {
    return tf->framework->sync.overlaps_backward && !tf->input.blocking_launches &&
           !(shard == 1 && tf->framework->transformer.zero1_all_reduce);
}

/* Exposed communication of sharded states in one micro-batch: forward, backward. */
static void shard_exposed(const struct dl_transformer *tf,
                          const struct dl_transformer_mapping *mapping,
                          const struct dl_transformer_stage *compute, double *forward_s,
                          double *backward_s) {
    const double gather_s = mapping->unit_gather.time_s, reduce_s = mapping->unit_reduce.time_s,
                 root_gather_s = mapping->gather.time_s, root_reduce_s = mapping->reduce.time_s;
    const double gathers_s = compute->layers * gather_s, reduces_s = compute->layers * reduce_s;
    *forward_s = *backward_s = 0;
    if (mapping->replicas <= 1) return;
    if (mapping->shard == 2) {
        const double last_s = root_reduce_s / mapping->buckets;
        *backward_s = dl_transformer_reduces_behind(tf, mapping->shard)
                          ? last_s + fmax(0, root_reduce_s - last_s - compute->backward_s)
                          : root_reduce_s;
    }
    if (mapping->bound && mapping->shard == 2)
        *backward_s = fmax(0, root_reduce_s - compute->backward_s);
    if (mapping->shard != 3) return;
    if (mapping->bound) {
        *forward_s = fmax(0, root_gather_s + gathers_s - compute->forward_s);
        *backward_s = fmax(0, gathers_s + reduces_s + root_reduce_s - compute->backward_s);
        return;
    }
    if (!dl_transformer_reduces_behind(tf, mapping->shard)) {
        *forward_s = root_gather_s + gathers_s;
        *backward_s = gathers_s + reduces_s + root_reduce_s;
        return;
    }
    *forward_s = root_gather_s + gather_s + fmax(0, gathers_s - gather_s - compute->forward_s);
    *backward_s = fmax(reduce_s, gathers_s + reduces_s - compute->backward_s) + root_reduce_s;
}

/* What each kind of stage takes for a micro-batch: first, between, last; one stage has all. */
static void time_kinds(const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_micro_batch *micro_batch,
                       const struct dl_transformer_choice *choice,
                       struct dl_transformer_stage kinds[3]) {
    const int recompute = (int)choice->recompute;
    const double add_s = choice->micro_batches > 1 ? mapping->accumulate_s : 0;
    const struct dl_transformer_pass *f = micro_batch->forward;
    for (int i = 0; i < 3; i++) {
        const bool first = i == 0, last = i == 2 || mapping->split.pp <= 1;
        const double layers = mapping->split.pp <= 1 ? mapping->stage_layers
                              : i == 1               ? mapping->stage_layers
                                                     : mapping->end_layers[last ? 1 : 0];
        kinds[i].layers = layers;
        kinds[i].forward_s = layers * (f[DL_TRANSFORMER_BODY].step_s + mapping->copy_out_s) +
                             (first ? f[DL_TRANSFORMER_BEFORE].step_s : 0) +
                             (last ? f[DL_TRANSFORMER_AFTER].step_s : 0);
        kinds[i].backward_s =
            layers * (micro_batch->backward[DL_TRANSFORMER_BODY][recompute].step_s +
                      mapping->copy_out_s + mapping->copy_in_s + add_s) +
            (first ? micro_batch->backward[DL_TRANSFORMER_BEFORE][recompute].step_s : 0) +
            (last ? micro_batch->backward[DL_TRANSFORMER_AFTER][recompute].step_s : 0);
        kinds[i].weights_s =
            layers * (micro_batch->backward[DL_TRANSFORMER_BODY][recompute].weights_s + add_s) +
            (first ? micro_batch->backward[DL_TRANSFORMER_BEFORE][recompute].weights_s : 0) +
            (last ? micro_batch->backward[DL_TRANSFORMER_AFTER][recompute].weights_s : 0);
    }
}

/* F-FW-IDEAL: stages of the bound are cut evenly, wherever that is. */
bool dl_transformer_cuts_evenly(const struct dl_transformer_mapping *mapping) {
    return mapping->bound && mapping->split.pp > 1;
}

static void even_stages(const struct dl_transformer_mapping *mapping,
                        struct dl_transformer_stage kinds[3]) {
    const double pp = (double)mapping->split.pp, /* stages like the second one */
        between = (mapping->all_layers - mapping->end_layers[0] - mapping->end_layers[1]) /
                  kinds[1].layers;
    const struct dl_transformer_stage mean = {
        .layers = mapping->all_layers / pp,
        .forward_s = (kinds[0].forward_s + between * kinds[1].forward_s + kinds[2].forward_s) / pp,
        .backward_s =
            (kinds[0].backward_s + between * kinds[1].backward_s + kinds[2].backward_s) / pp,
        .weights_s = (kinds[0].weights_s + between * kinds[1].weights_s + kinds[2].weights_s) / pp};
    kinds[0] = kinds[1] = kinds[2] = mean;
}

/* Stages between the first and the last; the last ones of them may have a layer less. */
static struct dl_transformer_stage stage_at(const struct dl_transformer_mapping *mapping,
                                            const struct dl_transformer_stage kinds[3], int index) {
    const int last = (int)mapping->split.pp - 1;
    if (index == 0 || index == last) return kinds[index == 0 ? 0 : 2];
    struct dl_transformer_stage out = kinds[1];
    const double count = last - 1,
                 layers = mapping->all_layers - mapping->end_layers[0] - mapping->end_layers[1],
                 shorter = count * out.layers - layers;
    if (index - 1 < count - shorter || dl_transformer_cuts_evenly(mapping)) return out;
    out.forward_s *= (out.layers - 1) / out.layers;
    out.backward_s *= (out.layers - 1) / out.layers;
    out.weights_s *= (out.layers - 1) / out.layers;
    out.layers -= 1;
    return out;
}

/* A stage with what its gathers and sums expose. */
static struct dl_transformer_stage with_shards(const struct dl_transformer *tf,
                                               const struct dl_transformer_mapping *mapping,
                                               const struct dl_transformer_stage *kernels) {
    struct dl_transformer_stage out = *kernels;
    double forward_s, backward_s;
    shard_exposed(tf, mapping, kernels, &forward_s, &backward_s);
    out.forward_s += forward_s;
    out.backward_s += backward_s;
    return out;
}

static double both_s(const struct dl_transformer_stage *stage) {
    return stage->forward_s + stage->backward_s;
}

static double parts_of(const struct dl_transformer_choice *choice) {
    return dl_schedule_parts(choice->schedule, (double)choice->virtual_stages);
}

/* F-FW-IDEAL: no cut takes less; messages of the first and of the last micro-batch show. */
static void bound_pace(const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_choice *choice, double message_s,
                       struct dl_transformer_pace *out) {
    const double pp = (double)mapping->split.pp, m = choice->micro_batches,
                 work_s = both_s(&out->stage) + out->exposed_s;
    if (dl_schedule_waits(choice->schedule))
        out->bubble_s =
            fmax(0, dl_pipeline_least_of_any_s(pp * work_s, pp, parts_of(choice), m) - m * work_s);
    out->boundary_s = 2 * (pp - 1) * message_s;
}

/* Whether a stage waits for each message. */
static bool blocks(const struct dl_transformer *tf, const struct dl_transformer_choice *choice) {
    return choice->schedule != DL_INTERLEAVED || !tf->framework->transformer.p2p_overlap ||
           tf->input.blocking_launches;
}

/* forward_s: room for all stages three times. */
static struct dl_pipeline_order order_of(const struct dl_transformer *tf,
                                         const struct dl_transformer_mapping *mapping,
                                         const struct dl_transformer_choice *choice,
                                         const struct dl_transformer_stage kinds[3],
                                         double *forward_s) {
    const int stages = (int)mapping->split.pp;
    double *backward_s = forward_s + stages, *weights_s = backward_s + stages;
    for (int i = 0; i < stages; i++) {
        const struct dl_transformer_stage kernels = stage_at(mapping, kinds, i),
                                          stage = with_shards(tf, mapping, &kernels);
        forward_s[i] = stage.forward_s;
        backward_s[i] = stage.backward_s;
        weights_s[i] = stage.weights_s;
    }
    return (struct dl_pipeline_order){.schedule = choice->schedule,
                                      .stages = stages,
                                      .parts = (int)parts_of(choice),
                                      .forward_s = forward_s,
                                      .backward_s = backward_s,
                                      .weights_s = weights_s,
                                      .blocks = blocks(tf, choice)};
}

/* least: no schedule takes less (F-SEARCH-BOUND). */
static void run_pipeline(struct dl_pipeline_order *order, double micro_batches, double message_s,
                         bool least, struct dl_arena *scratch, struct dl_transformer_pace *out) {
    const double busy_s = micro_batches * (both_s(&out->stage) + out->exposed_s);
    double *end_s = dl_arena_alloc(scratch, (size_t)order->stages, sizeof *end_s), quiet_s, span_s;
    if (least) {
        order->message_s = message_s;
        out->bubble_s = fmax(0, dl_pipeline_least_s(order, micro_batches) - busy_s);
        return;
    }
    quiet_s = span_s = dl_pipeline_span(order, micro_batches, scratch, end_s);
    order->message_s = message_s;
    if (message_s > 0) span_s = dl_pipeline_span(order, micro_batches, scratch, end_s);
    out->bubble_s = fmax(0, quiet_s - busy_s);
    out->boundary_s = fmax(0, span_s - fmax(quiet_s, busy_s));
}

static int slowest_of(const struct dl_transformer *tf, const struct dl_transformer_mapping *mapping,
                      const struct dl_transformer_stage kinds[3]) {
    const int64_t pp = mapping->split.pp;
    double most_s = -1;
    int slowest = 0;
    for (int i = 0; i < 3; i++) {
        if ((i == 1 && pp < 3) || (i == 2 && pp < 2)) continue;
        const struct dl_transformer_stage stage = with_shards(tf, mapping, &kinds[i]);
        if (both_s(&stage) <= most_s) continue;
        most_s = both_s(&stage);
        slowest = i;
    }
    return slowest;
}

struct dl_transformer_pace
dl_transformer_pace_of(const struct dl_transformer *tf,
                       const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_micro_batch *micro_batch,
                       const struct dl_transformer_choice *choice, double message_s, bool least) {
    struct dl_transformer_stage kinds[3];
    time_kinds(mapping, micro_batch, choice, kinds);
    if (dl_transformer_cuts_evenly(mapping)) even_stages(mapping, kinds);
    struct dl_transformer_pace out = {.slowest = slowest_of(tf, mapping, kinds)};
    out.stage = kinds[out.slowest];
    const struct dl_transformer_stage all = with_shards(tf, mapping, &out.stage);
    out.exposed_s = both_s(&all) - both_s(&out.stage);
    if (mapping->split.pp <= 1) return out;
    if (dl_transformer_cuts_evenly(mapping)) {
        bound_pace(mapping, choice, message_s, &out);
        return out;
    }
    struct dl_arena scratch = {0};
    struct dl_pipeline_order order =
        order_of(tf, mapping, choice, kinds,
                 dl_arena_alloc(&scratch, 3 * (size_t)mapping->split.pp, sizeof(double)));
    run_pipeline(&order, round(choice->micro_batches), message_s, least, &scratch, &out);
    dl_arena_free(&scratch);
    return out;
}

void dl_transformer_stage_times(const struct dl_transformer_parts *t, struct dl_prediction *out) {
    const int count = (int)t->mapping.split.pp;
    struct dl_transformer_stage kinds[3];
    if (count <= 1) return;
    struct dl_stage_time *times = dl_arena_alloc(t->arena, (size_t)count, sizeof *times);
    time_kinds(&t->mapping, &t->micro_batch, &t->choice, kinds);
    for (int i = 0; i < count; i++) {
        const struct dl_transformer_stage kernels = stage_at(&t->mapping, kinds, i),
                                          stage = with_shards(t->tf, &t->mapping, &kernels);
        times[i] = (struct dl_stage_time){stage.forward_s, stage.backward_s, stage.weights_s};
    }
    out->schedule.times = times;
    out->schedule.micro_batches = t->choice.micro_batches;
    out->schedule.message_s = dl_transformer_cuts_evenly(&t->mapping) ? 0 : t->boundary.time_s;
    out->schedule.blocks = blocks(t->tf, &t->choice);
}
