/* transformer_stages.c - the stages of a transformer's plan, one micro-batch on each, and the
 * schedule of a pipeline run on them (schedule.h). See transformer_time.c for the iteration.
 *
 * F-TRANSFORMER-BUBBLE: what the pipeline takes without messages beyond the work of its slowest
 * stage. F-TRANSFORMER-BOUNDARY: what it takes longer with them; a stage waits for each message, or
 * messages move behind other micro-batches where the framework has them do so (interleaved).
 */
#include <math.h>

#include "model/engine/schedule.h"
#include "model/engine/transformer/transformer_internal.h"

double dl_transformer_pass_s(const struct dl_transformer_stage *stage, enum dl_direction way) {
    double sum_s = 0;
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
        sum_s += stage->part_count[p] * stage->seconds[p][way];
    return sum_s;
}

double dl_transformer_weights_s(const struct dl_transformer_stage *stage) {
    double sum_s = 0;
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
        sum_s += stage->part_count[p] * stage->weights_s[p];
    return sum_s;
}

bool dl_transformer_sums_each(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *mapping,
                              const struct dl_transformer_choice *choice) {
    const bool rounds = mapping->shard == 2 && tf->framework->transformer.sums_each_round &&
                        mapping->split.pp > 1 &&
                        dl_schedule_parts(choice->schedule, (double)choice->virtual_stages) > 1;
    return mapping->shard >= 2 && !rounds;
}

double dl_transformer_sums(const struct dl_transformer *tf,
                           const struct dl_transformer_mapping *mapping,
                           const struct dl_transformer_choice *choice) {
    if (mapping->shard < 2) return 1;
    if (dl_transformer_sums_each(tf, mapping, choice)) return choice->micro_batches;
    return ceil(choice->micro_batches / (double)mapping->split.pp);
}

/* Whether collectives of data parallelism run behind kernels: not where the host waits for each
 * (F-HOST-BLOCKING), nor where stage 1 sums everything at once. */
bool dl_transformer_reduces_behind(const struct dl_transformer *tf, int shard) {
    return tf->framework->sync.overlaps_backward && !tf->input.blocking_launches &&
           !(shard == 1 && tf->framework->transformer.zero1_all_reduce);
}

/* Body layers add their gradients to those of earlier micro-batches. */
static double accumulation_s(const struct dl_transformer_mapping *mapping,
                             const struct dl_transformer_choice *choice) {
    return choice->micro_batches > 1 ? mapping->accumulate_s : 0;
}

/* What each kind of stage takes for a micro-batch: first, between, last; one stage has all. */
static void time_kinds(const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_micro_batch *micro_batch,
                       const struct dl_transformer_choice *choice,
                       struct dl_transformer_stage kinds[3]) {
    static const enum dl_transformer_stage_kind order[] = {
        DL_TRANSFORMER_FIRST, DL_TRANSFORMER_BETWEEN, DL_TRANSFORMER_LAST};
    for (int i = 0; i < 3; i++) {
        struct dl_transformer_stage *k = &kinds[i];
        *k = (struct dl_transformer_stage){.part_count = {0}};
        dl_transformer_kind_times(mapping, order[i], k->part_count);
        for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
            k->seconds[p][DL_FORWARDS] = micro_batch->forward[p].step_s;
            k->seconds[p][DL_BACKWARDS] = micro_batch->backward[p][choice->recompute].step_s;
            k->weights_s[p] = micro_batch->backward[p][choice->recompute].weights_s;
        }
        k->weights_s[DL_TRANSFORMER_BODY] += accumulation_s(mapping, choice);
        k->seconds[DL_TRANSFORMER_BODY][DL_FORWARDS] += mapping->copy_out_s;
        k->seconds[DL_TRANSFORMER_BODY][DL_BACKWARDS] +=
            mapping->copy_out_s + mapping->copy_in_s + accumulation_s(mapping, choice);
    }
}

/* Of a pass: the host's pace (F-PACED), kernels and messages in the time that it leaves. */
static struct dl_resource_use use_of(const struct dl_transformer_pass *pass, double copies_s) {
    struct dl_resource_use out = {{[DL_ON_MEMORY] = copies_s}};
    const double idle_s = pass->step_s - pass->device_s - pass->comm_s,
                 host_s = fmin(fmax(0, pass->step_s), fmax(fmax(0, idle_s), pass->host_bound_s)),
                 device_s = pass->device_s + pass->comm_s,
                 share = device_s > 0 ? (pass->step_s - host_s) / device_s : 0,
                 kernels_s = device_s - dl_resource_sum_s(&pass->comm);
    const struct dl_resource_use kernels = {
        {[DL_ON_ARITHMETIC] = pass->by_limit_s[DL_LIMIT_COMPUTE],
         [DL_ON_MEMORY] = pass->by_limit_s[DL_LIMIT_MEMORY],
         [DL_ON_LATENCY] = pass->by_limit_s[DL_LIMIT_LATENCY]}};
    out.s[DL_ON_HOST] = host_s;
    dl_resource_share(&kernels, share * kernels_s, DL_ON_ARITHMETIC, &out);
    dl_resource_add(&out, &pass->comm, share);
    return out;
}

void dl_transformer_uses_of(const struct dl_transformer_mapping *mapping,
                            const struct dl_transformer_micro_batch *micro_batch,
                            const struct dl_transformer_choice *choice,
                            struct dl_transformer_uses *out) {
    const bool even = dl_transformer_cuts_evenly(mapping);
    const double layers = mapping->all_layers, forward_s = mapping->copy_out_s,
                 backward_s =
                     mapping->copy_out_s + mapping->copy_in_s + accumulation_s(mapping, choice);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        const bool body = p == DL_TRANSFORMER_BODY;
        out->of[p][DL_FORWARDS] = use_of(&micro_batch->forward[p], body ? forward_s : 0);
        out->of[p][DL_BACKWARDS] =
            use_of(&micro_batch->backward[p][choice->recompute], body ? backward_s : 0);
    }
    for (int way = 0; even && way < DL_DIRECTIONS; way++) { /* each layer with its share of all */
        dl_resource_add(&out->of[DL_TRANSFORMER_BODY][way], &out->of[DL_TRANSFORMER_BEFORE][way],
                        1 / layers);
        dl_resource_add(&out->of[DL_TRANSFORMER_BODY][way], &out->of[DL_TRANSFORMER_AFTER][way],
                        1 / layers);
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
                  kinds[1].part_count[DL_TRANSFORMER_BODY];
    struct dl_transformer_stage mean = {
        .part_count = {[DL_TRANSFORMER_BODY] = mapping->all_layers / pp}};
    for (int way = 0; way < DL_DIRECTIONS; way++) {
        const enum dl_direction w = (enum dl_direction)way;
        const double all_s = dl_transformer_pass_s(&kinds[0], w) +
                             between * dl_transformer_pass_s(&kinds[1], w) +
                             dl_transformer_pass_s(&kinds[2], w);
        mean.seconds[DL_TRANSFORMER_BODY][way] = all_s / mapping->all_layers;
    }
    mean.weights_s[DL_TRANSFORMER_BODY] =
        (dl_transformer_weights_s(&kinds[0]) + between * dl_transformer_weights_s(&kinds[1]) +
         dl_transformer_weights_s(&kinds[2])) /
        mapping->all_layers;
    kinds[0] = kinds[1] = kinds[2] = mean;
}

/* Stages between the first and the last; the last ones of them may have a layer less. */
static struct dl_transformer_stage stage_at(const struct dl_transformer *tf,
                                            const struct dl_transformer_mapping *mapping,
                                            const struct dl_transformer_stage kinds[3], int index) {
    const int last = (int)mapping->split.pp - 1;
    if (index == 0 || index == last) return kinds[index == 0 ? 0 : 2];
    struct dl_transformer_stage out = kinds[1];
    double *own = &out.part_count[DL_TRANSFORMER_BODY];
    if (tf->listed_stages > 0 && !dl_transformer_cuts_evenly(mapping)) {
        *own = dl_transformer_stage_layers(tf, mapping, index);
        return out;
    }
    const double count = last - 1,
                 layers = mapping->all_layers - mapping->end_layers[0] - mapping->end_layers[1],
                 shorter = count * *own - layers;
    if (index - 1 < count - shorter || dl_transformer_cuts_evenly(mapping)) return out;
    *own -= 1;
    return out;
}

/* A pass with its wait for gathers and sums. */
static double both_s(const struct dl_transformer_stage *stage) {
    double sum_s = 0;
    for (int way = 0; way < DL_DIRECTIONS; way++)
        sum_s += dl_transformer_pass_s(stage, (enum dl_direction)way) + stage->exposed_s[way];
    return sum_s;
}

static double parts_of(const struct dl_transformer_choice *choice) {
    return dl_schedule_parts(choice->schedule, (double)choice->virtual_stages);
}

/* F-FW-IDEAL: no cut takes less; messages of the first and of the last micro-batch show. */
static void bound_pace(const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_choice *choice, double message_s,
                       struct dl_transformer_pace *out) {
    const double pp = (double)mapping->split.pp, m = choice->micro_batches,
                 work_s = both_s(&out->stage);
    if (dl_schedule_waits(choice->schedule))
        out->bubble_s =
            fmax(0, dl_pipeline_least_of_any_s(pp * work_s, pp, parts_of(choice), m) - m * work_s);
    out->boundary_s = 2 * (pp - 1) * message_s;
}

/* Whether a stage waits for each message. */
static bool blocks(const struct dl_transformer *tf, const struct dl_transformer_choice *choice) {
    return !dl_schedules[choice->schedule]->p2p_behind || !tf->framework->transformer.p2p_overlap ||
           tf->input.blocking_launches;
}

/* What runs the passes of stages. */
struct stages {
    struct dl_transformer_program program; /* of any stage */
    struct dl_transformer_stage kinds[3];
};

static struct dl_transformer_stage with_exposed(const struct stages *all,
                                                struct dl_transformer_stage stage) {
    struct dl_transformer_program program = all->program;
    program.stage = &stage;
    dl_transformer_run_passes(&program, &stage);
    return stage;
}

/* forward_s: room for all stages three times. */
static struct dl_pipeline_order order_of(const struct stages *all, double *forward_s) {
    const struct dl_transformer_program *in = &all->program;
    const int stages = (int)in->mapping->split.pp;
    double *backward_s = forward_s + stages, *weights_s = backward_s + stages;
    struct dl_transformer_stage shorter = {.part_count = {[DL_TRANSFORMER_BODY] = -1}};
    for (int i = 0; i < stages; i++) {
        struct dl_transformer_stage stage = stage_at(in->tf, in->mapping, all->kinds, i);
        const double layers = stage.part_count[DL_TRANSFORMER_BODY];
        if (i > 0 && i < stages - 1 && layers < all->kinds[1].part_count[DL_TRANSFORMER_BODY]) {
            if (layers != shorter.part_count[DL_TRANSFORMER_BODY])
                shorter = with_exposed(all, stage);
            stage = shorter;
        }
        forward_s[i] = dl_transformer_pass_s(&stage, DL_FORWARDS) + stage.exposed_s[DL_FORWARDS];
        backward_s[i] = dl_transformer_pass_s(&stage, DL_BACKWARDS) + stage.exposed_s[DL_BACKWARDS];
        weights_s[i] = dl_transformer_weights_s(&stage);
    }
    return (struct dl_pipeline_order){.schedule = in->choice->schedule,
                                      .stages = stages,
                                      .parts = (int)parts_of(in->choice),
                                      .forward_s = forward_s,
                                      .backward_s = backward_s,
                                      .weights_s = weights_s,
                                      .blocks = blocks(in->tf, in->choice)};
}

/* least: no schedule takes less (F-SEARCH-BOUND). */
static void run_pipeline(struct dl_pipeline_order *order, double micro_batches, double message_s,
                         bool least, struct dl_arena *scratch, struct dl_transformer_pace *out) {
    const double busy_s = micro_batches * both_s(&out->stage);
    order->message_s = message_s;
    if (least) {
        out->bubble_s = fmax(0, dl_pipeline_least_s(order, micro_batches) - busy_s);
        return;
    }
    const struct dl_pipeline_spans spans =
        dl_pipeline_spans_of(order, micro_batches, NULL, true, scratch);
    out->bubble_s = fmax(0, spans.quiet_s - busy_s);
    out->boundary_s = fmax(0, spans.span_s - fmax(spans.quiet_s, busy_s));
}

static int slowest_of(const struct stages *all) {
    const int64_t pp = all->program.mapping->split.pp;
    double most_s = -1;
    int slowest = 0;
    for (int i = 0; i < 3; i++) {
        if ((i == 1 && pp < 3) || (i == 2 && pp < 2)) continue;
        if (both_s(&all->kinds[i]) <= most_s) continue;
        most_s = both_s(&all->kinds[i]);
        slowest = i;
    }
    return slowest;
}

static void make_stages(const struct dl_transformer_program *program,
                        const struct dl_transformer_micro_batch *micro_batch, struct stages *out) {
    const struct dl_transformer_mapping *mapping = program->mapping;
    *out = (struct stages){.program = *program};
    time_kinds(mapping, micro_batch, program->choice, out->kinds);
    if (dl_transformer_cuts_evenly(mapping)) even_stages(mapping, out->kinds);
    for (int i = 0; i < 3 && mapping->split.pp > 1; i++)
        out->kinds[i] = with_exposed(out, out->kinds[i]);
}

struct dl_transformer_pace
dl_transformer_pace_of(const struct dl_transformer *tf,
                       const struct dl_transformer_mapping *mapping,
                       const struct dl_transformer_micro_batch *micro_batch,
                       const struct dl_transformer_choice *choice, double message_s, bool least) {
    const struct dl_transformer_program program = {
        .tf = tf, .mapping = mapping, .choice = choice, .least = least};
    struct stages all;
    make_stages(&program, micro_batch, &all);
    struct dl_transformer_pace out = {.slowest = slowest_of(&all)};
    out.stage = all.kinds[out.slowest];
    if (mapping->split.pp <= 1) return out;
    if (dl_transformer_cuts_evenly(mapping)) {
        bound_pace(mapping, choice, message_s, &out);
        return out;
    }
    struct dl_arena scratch = {0};
    struct dl_pipeline_order order =
        order_of(&all, dl_arena_alloc(&scratch, 3 * (size_t)mapping->split.pp, sizeof(double)));
    run_pipeline(&order, round(choice->micro_batches), message_s, least, &scratch, &out);
    dl_arena_free(&scratch);
    return out;
}

struct dl_pipeline_order dl_transformer_order_of(const struct dl_transformer_parts *t) {
    const struct dl_transformer_program program = {
        .tf = t->tf, .mapping = &t->mapping, .choice = &t->choice};
    const size_t stages = (size_t)t->mapping.split.pp;
    struct stages all;
    make_stages(&program, &t->micro_batch, &all);
    if (stages == 1) all.kinds[0] = with_exposed(&all, all.kinds[0]);
    struct dl_pipeline_order order =
        order_of(&all, dl_arena_alloc(t->arena, 3 * stages, sizeof(double)));
    order.message_s = dl_transformer_cuts_evenly(&t->mapping) ? 0 : t->boundary.time_s;
    return order;
}
