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

/* The end of a task that runs at the rate which concurrent holders leave. *first_holder: the first
 * of them; DL_NONE. */
static double shared_end_s(struct dl_run *run, double start_s, double duration_s,
                           int *first_holder) {
    struct dl_sharing *x = &run->sharing;
    const double rate = 1 - x->frac;
    double at_s = start_s, left_s = duration_s;
    while (x->first != DL_NONE && run->tasks[x->first].held_until_s <= start_s)
        x->first = run->tasks[x->first].next;
    *first_holder = x->first;
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
                                                       kind != DL_TASK_LAYER_MESSAGE;
    struct dl_instant end = {start.s + duration_s, run->count};
    int first_holder = DL_NONE;
    if (slows) end.s = shared_end_s(run, start.s, duration_s, &first_holder);
    run->tasks[run->count++] = (struct dl_task){.start_s = start.s,
                                                .end_s = end.s,
                                                .after = start.task,
                                                .kind = kind,
                                                .of = of,
                                                .first_holder = first_holder,
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
    case DL_TASK_LAYER_MESSAGE: dl_resource_message(t->of, seconds, false, out); break;
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

static const double NEGLIGIBLE = 1e-9; /* of a derivative */

/* Derivatives of the last end, for each task: by its end; by its start while its end stays; and the
 * first times the seconds by which a later task started before that end. */
struct derivatives {
    double *end, *start, *early_s;
};

struct walk {
    struct dl_run *run;
    int end;
    double period_s;
    bool servers;
    struct derivatives now, before; /* of this iteration; of the one before it, not complete yet */
    struct dl_resource_use use;
};

static void add_work(struct walk *w, const struct dl_task *t, double seconds, double by) {
    struct dl_resource_use use = {{0}};
    add_task(w->run, t, seconds, w->servers, by == 1 ? &w->use : &use);
    if (by != 1) dl_resource_add(&w->use, &use, by);
}

/* Passes the derivative by the start of a task on to the task that it waited for. */
static void add_cause(struct walk *w, const struct dl_task *t, double by) {
    const bool earlier = t->after < 0;
    const int after = t->after == DL_BEGIN ? w->end : earlier ? DL_PREVIOUS(t->after) : t->after;
    const struct derivatives *of = earlier ? &w->before : &w->now;
    const struct dl_task *cause = &w->run->tasks[after];
    const double gap_s = t->start_s + (earlier ? w->period_s : 0) - cause->end_s;
    struct dl_resource_use use = {{0}};
    of->end[after] += by;
    if (gap_s < 0) of->early_s[after] -= by * gap_s;
    if (!(gap_s > 0)) return;
    add_gap(w->run, cause, t, gap_s, w->servers, &use);
    dl_resource_add(&w->use, &use, by);
}

/* Distributes the derivative by the end of a task that ran at a shared rate: to its work, to the
 * starts and ends of the holders, and to its own start, which it returns. */
static double add_shared(struct walk *w, const struct dl_task *t, double by) {
    const struct dl_sharing *x = &w->run->sharing;
    double start_by = by, lost_s = 0, work_by = by;
    const struct dl_task *last = NULL;
    for (int i = t->first_holder; i != DL_NONE; i = w->run->tasks[i].next) {
        const struct dl_task *other = &w->run->tasks[i];
        if (other->held_from_s >= t->end_s) break;
        lost_s += x->frac * fmax(0, fmin(t->end_s, other->held_until_s) -
                                        fmax(t->start_s, other->held_from_s));
        if (other->held_until_s > t->end_s) last = other;
    }
    if (last != NULL && x->frac < 1) start_by = work_by = by / (1 - x->frac);
    for (int i = t->first_holder; i != DL_NONE; i = w->run->tasks[i].next) {
        const struct dl_task *other = &w->run->tasks[i];
        if (other->held_from_s >= t->end_s) break;
        const double until_by = other == last ? 0 : work_by * x->frac,
                     from_by = other == last ? work_by - by : until_by;
        w->now.end[i] += x->held_ratio * until_by;
        w->now.start[i] += (1 - x->held_ratio) * until_by;
        if (other->held_from_s > t->start_s)
            w->now.start[i] -= from_by;
        else
            start_by -= from_by;
    }
    add_work(w, t, t->end_s - t->start_s - lost_s, work_by);
    return start_by;
}

/* Through one iteration, from the last task to the first. */
static void walk_back(struct walk *w) {
    for (int i = w->run->count - 1; i >= 0; i--) {
        struct dl_task *t = &w->run->tasks[i];
        const double by = w->now.end[i];
        if (by == 0 && w->now.start[i] == 0) continue;
        double start_by = by;
        if (t->first_holder != DL_NONE)
            start_by = add_shared(w, t, by);
        else if (by != 0)
            add_work(w, t, fmax(0, t->end_s - t->start_s - w->now.early_s[i] / by), by);
        t->critical = t->critical || by > NEGLIGIBLE;
        add_cause(w, t, start_by + w->now.start[i]);
    }
}

static int largest(const double *list, int count) {
    int at = 0;
    for (int i = 1; i < count; i++)
        if (list[i] > list[at]) at = i;
    return at;
}

static struct derivatives derivatives_in(double *room, size_t count) {
    return (struct derivatives){room, room + count, room + 2 * count};
}

void dl_run_path(struct dl_run *run, int end, double period_s, bool servers,
                 struct dl_resource_use *out) {
    enum { CROSSINGS = 48 };
    const size_t count = (size_t)run->count;
    int crossed[CROSSINGS], crossings = 0;
    double by[CROSSINGS], *room = dl_arena_alloc(run->arena, 6 * count, sizeof *room);
    struct dl_resource_use use[CROSSINGS];
    struct walk w = {.run = run,
                     .end = end,
                     .period_s = period_s,
                     .servers = servers,
                     .now = derivatives_in(room, count),
                     .before = derivatives_in(room + 3 * count, count)};
    w.now.end[end] = 1;
    crossed[0] = end, by[0] = 1, use[0] = w.use, crossings = 1;
    while (crossings < CROSSINGS) {
        walk_back(&w);
        const struct derivatives done = w.now;
        w.now = w.before;
        w.before = done;
        memset(done.end, 0, 3 * count * sizeof *done.end);
        const int at = largest(w.now.end, run->count);
        for (int i = crossings - 1; i >= 0; i--) {
            if (crossed[i] != at || fabs(by[i] - w.now.end[at]) > NEGLIGIBLE) continue;
            /* the walk began at an end that nothing precedes */
            if (i == 0 && (w.now.early_s[at] != 0 || w.now.start[at] != 0)) continue;
            dl_resource_add(&w.use, &use[i], -1);
            dl_resource_share(&w.use, period_s, DL_ON_HOST, out);
            return;
        }
        crossed[crossings] = at;
        by[crossings] = w.now.end[at];
        use[crossings++] = w.use;
    }
    dl_resource_share(&w.use, period_s, DL_ON_HOST, out);
}
