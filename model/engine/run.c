/* run.c - see run.h. */
#include "model/engine/run.h"

#include <math.h>
#include <string.h>

void dl_run_begin(struct dl_run *run, int lane_count, struct dl_arena *arena) {
    dl_run_begin_in(run, dl_arena_alloc(arena, (size_t)lane_count, sizeof *run->lanes), lane_count,
                    NULL, 0, arena);
}

void dl_run_begin_in(struct dl_run *run, struct dl_instant *lanes, int lane_count,
                     struct dl_task *room, int capacity, struct dl_arena *arena) {
    *run = (struct dl_run){.arena = arena, .lanes = lanes, .tasks = room, .capacity = capacity};
    for (int i = 0; i < lane_count; i++) lanes[i] = (struct dl_instant){0, DL_BEGIN};
}

void dl_run_reserve(struct dl_run *run, int task_count) {
    if (task_count <= run->capacity) return;
    struct dl_task *tasks = dl_arena_alloc(run->arena, (size_t)task_count, sizeof *tasks);
    if (run->count > 0) memcpy(tasks, run->tasks, (size_t)run->count * sizeof *tasks);
    run->tasks = tasks;
    run->capacity = task_count;
}

struct dl_instant dl_run_add(struct dl_run *run, int lane, struct dl_instant ready,
                             double duration_s, enum dl_task_kind kind, const void *of) {
    if (run->count == run->capacity) dl_run_reserve(run, 2 * run->count + 64);
    const struct dl_instant start = dl_later(run->lanes[lane], ready);
    const struct dl_instant end = {start.s + duration_s, run->count};
    run->tasks[run->count++] = (struct dl_task){
        .start_s = start.s, .end_s = end.s, .after = start.task, .kind = kind, .of = of};
    run->lanes[lane] = end;
    return end;
}

/* The messages of a run together, for a task that is of no single one. */
static void add_messages(const struct dl_run *run, double seconds, bool servers,
                         struct dl_resource_use *out) {
    struct dl_resource_use all = {{0}};
    for (int i = 0; i < run->count; i++) {
        const struct dl_task *t = &run->tasks[i];
        if (t->kind == DL_TASK_MESSAGE && t->of != NULL)
            dl_resource_message(t->of, t->end_s - t->start_s, servers, &all);
    }
    dl_resource_share(&all, seconds, DL_ON_NODE_LINKS, out);
}

static void add_task(const struct dl_run *run, const struct dl_task *t, double seconds,
                     bool servers, struct dl_resource_use *out) {
    switch (t->kind) {
    case DL_TASK_KERNELS: dl_resource_kernels(t->of, seconds, out); break;
    case DL_TASK_MESSAGE:
        if (t->of != NULL)
            dl_resource_message(t->of, seconds, servers, out);
        else
            add_messages(run, seconds, servers, out);
        break;
    case DL_TASK_COPY: out->s[DL_ON_MEMORY] += seconds; break;
    case DL_TASK_SLOWDOWN: out->s[DL_ON_ARITHMETIC] += seconds; break;
    case DL_TASK_SHARES: dl_resource_share(t->of, seconds, DL_ON_HOST, out); break;
    default: out->s[DL_ON_HOST] += seconds; break;
    }
}

/* The time between the end of a task and the start of what waited for it, by other means than a
 * lane: a message on its way, or what a message waits for besides tasks. */
static void add_gap(const struct dl_run *run, const struct dl_task *before,
                    const struct dl_task *later, double seconds, bool servers,
                    struct dl_resource_use *out) {
    const bool waits = later->kind == DL_TASK_MESSAGE;
    if (before->kind == DL_TASK_MESSAGE)
        add_task(run, before, seconds, servers, out);
    else
        out->s[waits && servers ? DL_ON_SERVERS : DL_ON_HOST] += seconds;
}

static int previous_task(int after, int end) {
    return after == DL_BEGIN ? end : DL_PREVIOUS(after);
}

void dl_run_path(struct dl_run *run, int end, double period_s, bool servers,
                 struct dl_resource_use *out) {
    enum { CROSSINGS = 48 };
    int crossed[CROSSINGS], count = 0, at = end;
    struct dl_resource_use use[CROSSINGS], sum = {{0}};
    double at_s = run->tasks[end].end_s; /* what is later is accounted for */
    for (;;) {
        struct dl_task *t = &run->tasks[at];
        if (at_s > t->start_s) add_task(run, t, at_s - t->start_s, servers, &sum);
        t->critical = true;
        at_s = fmin(at_s, t->start_s);
        at = t->after;
        if (at < 0) { /* in the iteration before */
            at = previous_task(at, end);
            at_s += period_s;
        }
        if (at_s > run->tasks[at].end_s) {
            add_gap(run, &run->tasks[at], t, at_s - run->tasks[at].end_s, servers, &sum);
            at_s = run->tasks[at].end_s;
        }
        if (t->after >= 0) continue;
        for (int i = count - 1; i >= 0; i--) {
            if (crossed[i] != at) continue;
            dl_resource_add(&sum, &use[i], -1);
            dl_resource_share(&sum, period_s, DL_ON_HOST, out);
            return;
        }
        if (count == CROSSINGS) break;
        crossed[count] = at;
        use[count++] = sum;
    }
    dl_resource_share(&sum, period_s, DL_ON_HOST, out);
}
