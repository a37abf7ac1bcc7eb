/* pipeline_course.c - see pipeline_course.h. */
#include "model/engine/pipeline_course.h"

#include <math.h>

static const char *const pass_names[DL_PASS_KINDS] = {"forward", "backward", "weight gradients"};
static const char *const groups[DL_PASS_KINDS] = {"forward", "backward", "backward"};
static const char *const send_lanes[] = {"send forward", "send backward"},
                         *const receive_lanes[] = {"receive forward", "receive backward"};

static bool is_later(const struct dl_pipeline_passes *passes, const struct dl_pipeline_pass *x) {
    return passes->left_out > 0 && x->start_s >= passes->left_to_s;
}

/* Where tasks of passes are in the list. */
struct places {
    int rows, micro_batches;
    int *task; /* by row (kind and place) and micro-batch, without those left out */
};

/* Task of the same micro-batch at `place`. */
static int *task_at(const struct places *p, const struct dl_pipeline_passes *passes, int place,
                    const struct dl_pipeline_pass *x) {
    const int row = (int)x->kind * p->rows + place,
              left_out = passes->left_out / dl_placing_chains(passes->placing),
              micro_batch = x->micro_batch - (is_later(passes, x) ? left_out : 0);
    return &p->task[(size_t)row * (size_t)p->micro_batches + (size_t)micro_batch];
}

/* The task of the pass whose output a pass gets from another stage; -1: it is left out. */
static int sender_of(const struct places *p, const struct dl_pipeline_passes *passes, int place,
                     const struct dl_pipeline_pass *x, const struct dl_term *tasks) {
    const int task = *task_at(p, passes, place, x);
    return tasks[task].pass->micro_batch == x->micro_batch ? task : -1;
}

/* One term for the periods that are left out between two passes of a stage. */
static struct dl_term left_out(const struct dl_pipeline_passes *passes,
                               const struct dl_pipeline_pass *before,
                               const struct dl_pipeline_pass *after, struct dl_arena *arena) {
    return (struct dl_term){
        .name = dl_arena_printf(arena, "%d micro-batches in equal periods", passes->left_out),
        .group = "other micro-batches",
        .formula = "F-PIPE-PERIOD",
        .origin = "model",
        .start_s = before->end_s,
        .value = after->start_s - before->end_s,
        .sigma_log = NAN,
        .lane = "compute",
        .critical = true,
        .stage = after->stage};
}

static struct dl_term pass_task(const struct dl_pipeline_passes *passes,
                                const struct dl_pipeline_pass *x, const struct dl_pass_work *work,
                                const struct dl_pipeline_texts *texts, struct dl_arena *arena) {
    const char *part = passes->parts > 1 ? dl_arena_printf(arena, ", part %d", x->part + 1) : "";
    return (struct dl_term){.name = dl_arena_printf(arena, "micro-batch %d %s%s",
                                                    x->micro_batch + 1, pass_names[x->kind], part),
                            .group = groups[x->kind],
                            .formula = texts->formula,
                            .inputs = texts->inputs,
                            .origin = texts->origin,
                            .start_s = x->start_s,
                            .value = x->end_s - x->start_s,
                            .sigma_log = NAN,
                            .lane = "compute",
                            .flop = work->flop[x->kind],
                            .bytes = work->moved_bytes[x->kind],
                            .critical = x->critical,
                            .pass = x,
                            .stage = x->stage,
                            .needs = -1};
}

/* The message that a pass needs, as its sender or its receiver sees it. */
static struct dl_term message_task(const struct dl_pipeline_pass *x, int stage, int peer,
                                   const struct dl_pipeline_texts *texts, struct dl_arena *arena) {
    const bool sends = stage != x->stage;
    const int way = x->kind == DL_PASS_BACKWARD;
    return (struct dl_term){.name = dl_arena_printf(arena, "%s micro-batch %d, %s %s stage %d",
                                                    sends ? "send" : "receive", x->micro_batch + 1,
                                                    way ? "gradients" : "activations",
                                                    sends ? "to" : "from", peer + 1),
                            .group = "communication",
                            .formula = texts->message_formula,
                            .inputs = dl_arena_printf(arena, "%.4g MB", texts->message_bytes / 1e6),
                            .origin = "model",
                            .start_s = x->sent_s,
                            .value = x->received_s - x->sent_s,
                            .sigma_log = NAN,
                            .lane = (sends ? send_lanes : receive_lanes)[way],
                            .bytes = texts->message_bytes,
                            .critical = x->message_critical,
                            .pass = x,
                            .stage = stage,
                            .peer = peer,
                            .needs = -1};
}

void dl_pipeline_tasks(const struct dl_pipeline_passes *passes, const struct dl_pass_work *work,
                       const struct dl_pipeline_texts *texts, int more, struct dl_arena *arena,
                       struct dl_task_list *out) {
    const int stages = passes->stages;
    const int own = passes->count / stages, rows = stages * passes->parts;
    struct places at = {.rows = rows, .micro_batches = passes->micro_batches};
    const size_t places = (size_t)(DL_PASS_KINDS * rows) * (size_t)at.micro_batches,
                 room = 3 * (size_t)passes->count + (size_t)(stages + more);
    at.task = dl_arena_alloc(arena, places, sizeof *at.task);
    out->list = dl_arena_alloc(arena, room, sizeof *out->list);
    out->count = 0;
    for (int i = 0; i < passes->count; i++) {
        const struct dl_pipeline_pass *x = &passes->list[i];
        if (i % own > 0 && is_later(passes, x) && !is_later(passes, x - 1))
            out->list[out->count++] = left_out(passes, x - 1, x, arena);
        const int place = dl_placing_place(passes->placing, stages, x->stage, x->part);
        *task_at(&at, passes, place, x) = out->count;
        out->list[out->count++] = pass_task(passes, x, &work[x->stage], texts, arena);
    }
    const int pass_tasks = out->count;
    for (int i = 0; i < pass_tasks; i++) {
        const struct dl_pipeline_pass *x = out->list[i].pass;
        if (x == NULL || !dl_known(x->sent_s)) continue;
        const int place = dl_placing_place(passes->placing, stages, x->stage, x->part),
                  from = x->kind == DL_PASS_FORWARD ? place - 1 : place + 1,
                  peer = dl_placing_stage(passes->placing, stages, from);
        out->list[i].needs = out->count;
        out->list[out->count++] = message_task(x, x->stage, peer, texts, arena);
        out->list[out->count] = message_task(x, peer, x->stage, texts, arena);
        out->list[out->count++].needs = sender_of(&at, passes, from, x, out->list);
    }
}

struct dl_term dl_pipeline_update(const struct dl_device *device, int stage, double start_s,
                                  double seconds, bool critical) {
    return (struct dl_term){.name = "optimizer step",
                            .group = "update",
                            .formula = "F-UPDATE-BYTES",
                            .origin = device->name,
                            .start_s = start_s,
                            .value = seconds,
                            .sigma_log = NAN,
                            .lane = "compute",
                            .critical = critical,
                            .stage = stage};
}
