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
    *run = (struct dl_run){.arena = arena,
                           .lanes = lanes,
                           .tasks = room,
                           .capacity = capacity,
                           .sharing = {.first = DL_NONE, .last = DL_NONE}};
    for (int i = 0; i < lane_count; i++) lanes[i] = (struct dl_instant){0, DL_BEGIN};
}

void dl_run_reserve(struct dl_run *run, int task_count) {
    if (task_count <= run->capacity) return;
    struct dl_task *tasks = dl_arena_alloc(run->arena, (size_t)task_count, sizeof *tasks);
    if (run->count > 0) memcpy(tasks, run->tasks, (size_t)run->count * sizeof *tasks);
    run->tasks = tasks;
    run->capacity = task_count;
}

void dl_run_share(struct dl_run *run, int by, int of, double held_frac, int earlier) {
    run->sharing = (struct dl_sharing){.by = by,
                                       .of = of,
                                       .frac = fmin(held_frac, 1),
                                       .held_ratio = fmax(held_frac, 1),
                                       .first = earlier,
                                       .last = earlier};
}

/* A task that holds a share, in the order of its lane. */
static void hold_share(struct dl_run *run, int index) {
    struct dl_sharing *x = &run->sharing;
    struct dl_task *own = &run->tasks[index];
    own->held_from_s = own->start_s;
    if (x->last != DL_NONE) {
        own->held_from_s = fmax(own->start_s, run->tasks[x->last].held_until_s);
        run->tasks[x->last].next = index;
    }
    own->held_until_s = own->held_from_s + x->held_ratio * (own->end_s - own->start_s);
    if (x->first == DL_NONE) x->first = index;
    x->last = index;
}

/* When a task ends that goes on with what those beside it leave; their first into *beside. */
static double end_beside(struct dl_run *run, double start_s, double duration_s, int *beside) {
    struct dl_sharing *x = &run->sharing;
    const double rate = 1 - x->frac;
    double at_s = start_s, left_s = duration_s;
    while (x->first != DL_NONE && run->tasks[x->first].held_until_s <= start_s)
        x->first = run->tasks[x->first].next;
    *beside = x->first;
    for (int i = x->first; i != DL_NONE && left_s > 0; i = run->tasks[i].next) {
        const struct dl_task *other = &run->tasks[i];
        const double alone_s = fmax(0, other->held_from_s - at_s);
        if (left_s <= alone_s) break;
        left_s -= alone_s;
        at_s += alone_s;
        const double done_s = rate * (other->held_until_s - at_s);
        if (left_s <= done_s) return at_s + left_s / rate;
        left_s -= done_s;
        at_s = other->held_until_s;
    }
    return at_s + left_s;
}

struct dl_instant dl_run_add(struct dl_run *run, int lane, struct dl_instant ready,
                             double duration_s, enum dl_task_kind kind, const void *of) {
    if (run->count == run->capacity) dl_run_reserve(run, 2 * run->count + 64);
    const struct dl_instant start = dl_later(run->lanes[lane], ready);
    const bool shares = run->sharing.frac > 0, slows = shares && lane == run->sharing.of &&
                                                       kind != DL_TASK_MESSAGE &&
                                                       kind != DL_TASK_MESSAGES;
    struct dl_instant end = {start.s + duration_s, run->count};
    int beside = DL_NONE;
    if (slows) end.s = end_beside(run, start.s, duration_s, &beside);
    run->tasks[run->count++] = (struct dl_task){.start_s = start.s,
                                                .end_s = end.s,
                                                .after = start.task,
                                                .kind = kind,
                                                .of = of,
                                                .beside = beside,
                                                .next = DL_NONE};
    if (shares && lane == run->sharing.by && duration_s > 0) hold_share(run, end.task);
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
    case DL_TASK_MESSAGES:
    case DL_TASK_SHARES: dl_resource_share(t->of, seconds, DL_ON_HOST, out); break;
    default: out->s[DL_ON_HOST] += seconds; break;
    }
}

/* A task until then; what it takes longer beside others is theirs. */
static void add_until(const struct dl_run *run, const struct dl_task *t, double until_s,
                      bool servers, struct dl_resource_use *out) {
    double others_s = 0;
    for (int i = t->beside; i != DL_NONE; i = run->tasks[i].next) {
        const struct dl_task *other = &run->tasks[i];
        const double both_s =
            fmin(until_s, other->held_until_s) - fmax(t->start_s, other->held_from_s);
        if (other->held_from_s >= until_s) break;
        if (!(both_s > 0)) continue;
        add_task(run, other, run->sharing.frac * both_s, servers, out);
        others_s += run->sharing.frac * both_s;
    }
    add_task(run, t, until_s - t->start_s - others_s, servers, out);
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
        if (at_s > t->start_s) add_until(run, t, at_s, servers, &sum);
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
