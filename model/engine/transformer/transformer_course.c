/* transformer_course.c - what a transformer's stage does when, and what memory it holds meanwhile.
 *
 * F-MEM-COURSE: the passes of the fullest stage allocate and free what F-TRANSFORMER-MEMORY counts:
 * a forward pass what its layers keep, layer by layer, then what the head keeps; a backward pass
 * frees the head's, repeats a layer, frees layer by layer. States, buffers and the context stay.
 * The most of it is the memory of the prediction.
 */
#include <math.h>

#include "model/engine/schedule.h"
#include "model/engine/transformer/transformer_internal.h"

static const char *const part_names[] = {"embedding", "layer", "head"};
static const char *const way_names[] = {"forward", "backward"};

static struct dl_term task_of(const struct dl_transformer_parts *t,
                              const struct dl_transformer_stage *stage,
                              const struct dl_transformer_span *span) {
    struct dl_term out = {.start_s = span->start_s,
                          .value = span->end_s - span->start_s,
                          .sigma_log = NAN,
                          .critical = span->critical,
                          .lane = "compute"};
    if (span->is_message) {
        out.name = out.collective = span->message.name;
        out.group = out.lane = "communication";
        out.formula = "F-TRANSFORMER-SHARD";
        out.bytes = span->message.bytes;
        out.inputs = dl_arena_printf(t->arena, "%.4g MB", out.bytes / 1e6);
        out.origin = "model";
        return out;
    }
    out.origin = t->tf->system->device->name;
    if (span->rest) {
        out.name = out.group = "other micro-batches";
        out.formula = "F-TRANSFORMER-ITERATION";
        out.inputs = dl_arena_printf(t->arena, "%g micro-batches", t->choice.micro_batches);
        return out;
    }
    const struct dl_transformer_pass *pass =
        span->way == DL_FORWARDS ? &t->micro_batch.forward[span->part]
                                 : &t->micro_batch.backward[span->part][t->choice.recompute];
    const double each_s = stage->seconds[span->part][span->way],
                 times = each_s > 0 ? out.value / each_s : 0;
    out.name =
        dl_arena_printf(t->arena, "%s %s%s", part_names[span->part], way_names[span->way],
                        fabs(times - 1) < 1e-9 ? "" : dl_arena_printf(t->arena, " x %.3g", times));
    out.group = way_names[span->way];
    out.formula = "F-TRANSFORMER-LAYER";
    out.inputs = dl_arena_printf(t->arena, "%g samples", t->micro_samples);
    out.flop = times * pass->flop;
    out.bytes = times * pass->moved_bytes;
    return out;
}

/* The iteration of a stage that is all of the model; the update ends it. */
static void list_tasks(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    const struct dl_transformer_pace pace = dl_transformer_pace_of(
        t->tf, &t->mapping, &t->micro_batch, &t->choice, t->boundary.time_s, false);
    struct dl_transformer_uses uses;
    struct dl_transformer_run run;
    double end_s = 0;
    int count = 0;
    dl_transformer_uses_of(&t->mapping, &t->micro_batch, &t->choice, &uses);
    dl_transformer_run_iteration(&(struct dl_transformer_program){.tf = t->tf,
                                                                  .mapping = &t->mapping,
                                                                  .choice = &t->choice,
                                                                  .stage = &pace.stage,
                                                                  .uses = &uses,
                                                                  .arena = t->arena},
                                 &run);
    struct dl_term *tasks = dl_arena_alloc(t->arena, (size_t)run.span_count + 1, sizeof *tasks);
    for (int i = 0; i < run.span_count; i++) {
        end_s = fmax(end_s, run.spans[i].end_s);
        if (run.spans[i].end_s > run.spans[i].start_s)
            tasks[count++] = task_of(t, &pace.stage, &run.spans[i]);
    }
    if (t->mapping.update_s > 0)
        tasks[count++] = (struct dl_term){.name = "optimizer step",
                                          .group = "update",
                                          .formula = "F-UPDATE-BYTES",
                                          .origin = t->tf->system->device->name,
                                          .start_s = end_s,
                                          .value = t->mapping.update_s,
                                          .sigma_log = NAN,
                                          .lane = "compute",
                                          .critical = true};
    p->course.tasks = tasks;
    p->course.task_count = count;
}

/* What one pass of a stage allocates, and when its points come. */
struct passes {
    double kept_bytes, head_bytes, repeated_bytes; /* of one part */
    double head_share;                             /* of a backward pass, before its layers */
    bool splits;                                   /* frees after the gradients of the weights */
};

struct curve {
    struct dl_memory_point *points;
    int count;
    double fixed_bytes, held_bytes, whole; /* whole: 1 - fragmentation */
};

static void add_point(struct curve *c, double s, double change_bytes) {
    c->held_bytes += change_bytes;
    c->points[c->count++] =
        (struct dl_memory_point){s, (c->fixed_bytes + c->held_bytes) / c->whole};
}

enum { POINTS = 5 }; /* of a pass, at most */

static void add_pass(struct curve *c, const struct passes *each, bool has_head,
                     const struct dl_pipeline_pass *x) {
    const double head = has_head ? each->head_bytes : 0;
    add_point(c, x->start_s, 0);
    switch (x->kind) {
    case DL_PASS_FORWARD:
        add_point(c, x->end_s, each->kept_bytes);
        add_point(c, x->end_s, head);
        return;
    case DL_PASS_BACKWARD: {
        const double layers_s =
            x->start_s + (has_head ? each->head_share : 0) * (x->end_s - x->start_s);
        add_point(c, layers_s, -head);
        add_point(c, layers_s, each->repeated_bytes);
        add_point(c, x->end_s, each->splits ? 0 : -each->kept_bytes);
        add_point(c, x->end_s, -each->repeated_bytes);
        return;
    }
    default: add_point(c, x->end_s, -each->kept_bytes);
    }
}

/* Micro-batches after which nothing new is held: a schedule that goes back in turn repeats. */
static int shown_micro_batches(const struct dl_transformer_parts *t) {
    const int all = (int)fmax(1, round(t->choice.micro_batches)), stages = (int)t->mapping.split.pp,
              most = 4 * stages;
    return dl_schedules[t->choice.schedule]->all_forward_first || all < most ? all : most;
}

static int fullest_of(const struct dl_prediction *p) {
    int most = 0;
    for (int i = 1; i < p->stage_count; i++)
        if (p->stages[i].total_bytes > p->stages[most].total_bytes) most = i;
    return most;
}

static struct passes passes_of(const struct dl_transformer_parts *t, const struct dl_memory *m,
                               int stage, double parts) {
    const int r = (int)t->choice.recompute;
    const bool last = stage == (int)t->mapping.split.pp - 1;
    const double head = last ? t->micro_batch.kept_bytes[DL_TRANSFORMER_AFTER][r] : 0,
                 again = dl_transformer_recomputed_bytes(&t->micro_batch, t->choice.recompute),
                 flight = dl_transformer_stage_in_flight(&t->mapping, &t->choice, stage);
    const bool all_first = dl_schedules[t->choice.schedule]->all_forward_first && t->plan->pp > 1;
    const double heads = (all_first ? flight : 1) * head,
                 kept = m->activations_bytes - fmax(heads, heads - head + again),
                 head_s = t->micro_batch.backward[DL_TRANSFORMER_AFTER][r].step_s,
                 layers_s = t->mapping.stage_layers *
                            t->micro_batch.backward[DL_TRANSFORMER_BODY][r].step_s;
    return (struct passes){.kept_bytes = kept / flight / parts,
                           .head_bytes = head,
                           .repeated_bytes = again,
                           .head_share = head_s > 0 ? head_s / (head_s + layers_s) : 0,
                           .splits = dl_schedules[t->choice.schedule]->splits_backward};
}

static void follow_memory(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    struct dl_pipeline_order order = dl_transformer_order_of(t);
    struct dl_pipeline_pass *passes;
    struct dl_err err;
    int count;
    const int stage = fullest_of(p);
    const struct dl_memory *m = &p->stages[stage];
    order.micro_batches = shown_micro_batches(t);
    if (dl_pipeline_passes(&order, t->arena, &passes, &count, &err) != DL_OK) return;
    const struct passes each = passes_of(t, m, stage, order.parts);
    struct curve c = {.points = dl_arena_alloc(t->arena, (size_t)count * POINTS, sizeof *c.points),
                      .whole = 1 - t->tf->framework->memory.fragmentation_frac};
    c.fixed_bytes = m->total_bytes * c.whole - m->activations_bytes;
    for (int i = 0; i < count; i++) {
        if (passes[i].stage == stage)
            add_pass(&c, &each, passes[i].part == order.parts - 1, &passes[i]);
    }
    p->course.memory = c.points;
    p->course.memory_count = c.count;
}

void dl_transformer_course(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    if (t->mapping.split.pp <= 1) list_tasks(t, p);
    if (p->stage_count > 0) follow_memory(t, p);
}
