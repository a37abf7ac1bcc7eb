/* transformer_course.c - the tasks of a transformer's stages over an iteration, and their memory.
 *
 * F-MEM-COURSE: a forward pass allocates what F-TRANSFORMER-MEMORY counts for its layers, then what
 * the head keeps; a backward pass frees the head's, repeats a layer, frees the layers'.
 */
#include <math.h>
#include <string.h>

#include "model/engine/memory_course.h"
#include "model/engine/pipeline_course.h"
#include "model/engine/transformer/transformer_internal.h"

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
    out.name = dl_arena_printf(
        t->arena, "%s %s%s", dl_transformer_part_name(t->tf, span->part), way_names[span->way],
        fabs(times - 1) < 1e-9 ? "" : dl_arena_printf(t->arena, " x %.3g", times));
    out.group = way_names[span->way];
    out.formula = dl_transformer_part_formula(t->tf, span->part);
    out.inputs = dl_arena_printf(t->arena, "%g samples", t->micro_samples);
    out.flop = times * pass->flop;
    out.bytes = times * pass->moved_bytes;
    return out;
}

/* The slowest stage's iteration. */
static void run_slowest(const struct dl_transformer_parts *t, struct dl_transformer_pace *pace,
                        struct dl_transformer_run *run) {
    struct dl_transformer_uses uses;
    *pace = dl_transformer_pace_of(t->tf, &t->mapping, &t->micro_batch, &t->choice,
                                   t->boundary.time_s, false);
    dl_transformer_uses_of(&t->mapping, &t->micro_batch, &t->choice, &uses);
    dl_transformer_run_iteration(&(struct dl_transformer_program){.tf = t->tf,
                                                                  .mapping = &t->mapping,
                                                                  .choice = &t->choice,
                                                                  .stage = &pace->stage,
                                                                  .uses = &uses,
                                                                  .arena = t->arena},
                                 run);
}

/* The iteration of a stage that is all of the model; the update ends it. */
static void list_tasks(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    struct dl_transformer_pace pace;
    struct dl_transformer_run run;
    double end_s = 0;
    int count = 0;
    run_slowest(t, &pace, &run);
    struct dl_term *tasks = dl_arena_alloc(t->arena, (size_t)run.span_count + 1, sizeof *tasks);
    for (int i = 0; i < run.span_count; i++) {
        end_s = fmax(end_s, run.spans[i].end_s);
        if (run.spans[i].end_s > run.spans[i].start_s)
            tasks[count++] = task_of(t, &pace.stage, &run.spans[i]);
    }
    if (t->mapping.update_s > 0)
        tasks[count++] =
            dl_pipeline_update(t->tf->system->device, 0, end_s, t->mapping.update_s, true);
    p->course.tasks = tasks;
    p->course.task_count = count;
}

/* What one pass of a part of a stage computes; all but the first and the last stage are alike. */
static struct dl_pass_work work_of_pass(const struct dl_transformer_parts *t, int stage,
                                        double parts) {
    const int r = (int)t->choice.recompute;
    double times[DL_TRANSFORMER_PARTS];
    dl_transformer_stage_times(t->tf, &t->mapping, stage, times);
    struct dl_pass_work out = {.flop = {0}};
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        const struct dl_transformer_pass *backward = &t->micro_batch.backward[p][r];
        const double weights =
            dl_schedules[t->choice.schedule]->splits_backward && backward->step_s > 0
                ? backward->weights_s / backward->step_s
                : 0;
        const double shares[DL_PASS_KINDS] = {1, 1 - weights, weights};
        for (int kind = 0; kind < DL_PASS_KINDS; kind++) {
            const struct dl_transformer_pass *pass =
                kind == DL_PASS_FORWARD ? &t->micro_batch.forward[p] : backward;
            out.flop[kind] += shares[kind] * times[p] * pass->flop / parts;
            out.moved_bytes[kind] += shares[kind] * times[p] * pass->moved_bytes / parts;
        }
    }
    return out;
}

/* After the passes of a stage, what is left of the sums of gradients (those of the slowest stage
 * stand for all), the update, and parameters that are gathered after it. In stages 2 and 3 the
 * passes have them. */
static void add_end(const struct dl_transformer_parts *t, const struct dl_transformer_pace *pace,
                    const struct dl_transformer_run *run, const struct dl_pipeline_passes *passes,
                    struct dl_task_list *out) {
    const int shard = t->mapping.replicas > 1 ? t->mapping.shard : 3;
    double compute_s = 0, after_s = 0;
    for (int i = 0; i < run->span_count; i++) {
        if (!run->spans[i].is_message) compute_s = fmax(compute_s, run->spans[i].end_s);
        after_s = fmax(after_s, run->spans[i].end_s);
    }
    after_s -= compute_s;
    for (int s = 0; s < passes->stages; s++) {
        const double stage_s = dl_pipeline_stage_end_s(passes, s),
                     update_s = passes->end_s + after_s;
        const bool last = stage_s >= passes->end_s;
        for (int i = 0; shard <= 1 && i < run->span_count; i++) {
            const struct dl_transformer_span *span = &run->spans[i];
            struct dl_term *task = &out->list[out->count];
            if (!span->is_message || !(span->end_s > span->start_s)) continue;
            *task = task_of(t, &pace->stage, span);
            const bool gathers = strcmp(task->collective, "all_gather") == 0;
            task->stage = s;
            task->start_s += gathers ? update_s + t->mapping.update_s : stage_s - compute_s;
            task->critical = task->critical && last;
            out->count++;
        }
        if (t->mapping.update_s > 0)
            out->list[out->count++] =
                dl_pipeline_update(t->tf->system->device, s, update_s, t->mapping.update_s, last);
    }
}

static struct dl_pass_memory memory_of_pass(const struct dl_transformer_parts *t,
                                            const struct dl_memory *m, int stage, double parts) {
    const int r = (int)t->choice.recompute;
    double times[DL_TRANSFORMER_PARTS];
    dl_transformer_stage_times(t->tf, &t->mapping, stage, times);
    const double head = times[DL_TRANSFORMER_AFTER] > 0
                            ? t->micro_batch.kept_bytes[DL_TRANSFORMER_AFTER][r]
                            : 0,
                 again = dl_transformer_recomputed_bytes(&t->micro_batch, t->choice.recompute),
                 flight = dl_transformer_stage_in_flight(&t->mapping, &t->choice, stage);
    const double kept =
                     m->activations_bytes - dl_transformer_ends_bytes(&t->mapping, &t->micro_batch,
                                                                      &t->choice, head, flight),
                 head_s = t->micro_batch.backward[DL_TRANSFORMER_AFTER][r].step_s,
                 layers_s = t->mapping.stage_layers *
                            t->micro_batch.backward[DL_TRANSFORMER_BODY][r].step_s;
    return (struct dl_pass_memory){.kept_bytes = kept / flight / parts,
                                   .head_bytes = head,
                                   .repeated_bytes = again,
                                   .head_frac = head_s > 0 ? head_s / (head_s + layers_s) : 0,
                                   .splits = dl_schedules[t->choice.schedule]->splits_backward};
}

/* Stages with what they hold. */
static void follow_stages(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    struct dl_transformer_pace pace;
    struct dl_transformer_run run;
    struct dl_pipeline_order order = dl_transformer_order_of(t);
    struct dl_pipeline_passes passes;
    struct dl_task_list tasks;
    struct dl_err err;
    order.micro_batches = (int)fmax(1, round(t->choice.micro_batches));
    if (dl_pipeline_list(&order, DL_PASSES_SHOWN, NULL, t->arena, &passes, &err) != DL_OK) return;
    const size_t stages = (size_t)passes.stages;
    struct dl_pass_memory *each = dl_arena_alloc(t->arena, stages, sizeof *each);
    struct dl_pass_work *work = dl_arena_alloc(t->arena, stages, sizeof *work);
    for (int s = 0; s < passes.stages; s++) {
        const double parts = (double)order.parts / dl_transformer_chains(&t->mapping.split);
        each[s] = memory_of_pass(t, &p->stages[s], s, parts);
        work[s] = work_of_pass(t, s, parts);
    }
    dl_memory_course_of_stages(&passes, each, p->stages, t->arena, &p->course);
    if (passes.stages == 1) return;
    run_slowest(t, &pace, &run);
    dl_pipeline_tasks(&passes, work,
                      &(struct dl_pipeline_texts){
                          .formula = "F-TRANSFORMER-LAYER",
                          .message_formula = "F-TRANSFORMER-BOUNDARY",
                          .inputs = dl_arena_printf(t->arena, "%g samples", t->micro_samples),
                          .origin = t->tf->system->device->name,
                          .message_bytes = t->micro_batch.boundary_bytes},
                      (run.span_count + 1) * passes.stages, t->arena, &tasks);
    add_end(t, &pace, &run, &passes, &tasks);
    p->course.tasks = tasks.list;
    p->course.task_count = tasks.count;
}

void dl_transformer_course(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    if (t->mapping.split.pp <= 1) list_tasks(t, p);
    if (p->stage_count > 0) follow_stages(t, p);
}
