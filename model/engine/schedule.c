/* schedule.c - see schedule.h. F-PIPE-ORDER. */
#include "model/engine/schedule.h"

#include <math.h>
#include <string.h>

#include "model/engine/run.h"

/* A pipeline while its passes are added to a run. */
struct pipeline {
    const struct dl_pipeline_order *order;
    int micro_batches, places; /* places: parts of all stages */
    struct dl_run run;
    struct dl_instant *ends; /* of passes, by direction, place and micro-batch; task < 0: not yet */
    int *next;               /* of each stage */
};

/* The i-th forward or backward pass of a stage: micro-batches in groups of p, part after part. */
static struct dl_pipeline_pass pass_of(const struct dl_pipeline_order *o, int stage, int i,
                                       bool backward) {
    struct dl_pipeline_pass p = {.stage = stage, .micro_batch = i, .backward = backward};
    if (o->parts > 1) {
        const int group = o->stages * o->parts, part = i % group / o->stages;
        p.part = backward ? o->parts - 1 - part : part;
        p.micro_batch = i / group * o->stages + i % o->stages;
    }
    return p;
}

/* Forward passes before the first backward pass of a stage. */
static int warm_up(const struct dl_pipeline_order *o, int micro_batches, int stage) {
    const int all = micro_batches * o->parts, behind = o->stages - 1 - stage;
    const int count = o->schedule == DL_GPIPE ? all
                      : o->parts > 1          ? 2 * behind + (o->parts - 1) * o->stages
                                              : behind;
    return count < all ? count : all;
}

/* The n-th pass of a stage. */
static struct dl_pipeline_pass nth_of(const struct pipeline *p, int stage, int n) {
    const struct dl_pipeline_order *o = p->order;
    const int all = p->micro_batches * o->parts, first = warm_up(o, p->micro_batches, stage),
              alternating = 2 * (all - first);
    if (n < first) return pass_of(o, stage, n, false);
    n -= first;
    if (n >= alternating) return pass_of(o, stage, n - alternating + all - first, true);
    return n % 2 == 0 ? pass_of(o, stage, first + n / 2, false) : pass_of(o, stage, n / 2, true);
}

static struct dl_instant *end_of(const struct pipeline *p, int place, int micro_batch,
                                 bool backward) {
    return &p->ends[((size_t)(backward ? p->places : 0) + (size_t)place) *
                        (size_t)p->micro_batches +
                    (size_t)micro_batch];
}

/* The message that a pass waits for leaves at this end; NULL: it waits for none. *sends: it comes
 * from another stage. */
static const struct dl_instant *needs(const struct pipeline *p, const struct dl_pipeline_pass *x,
                                      bool *sends) {
    const int place = x->part * p->order->stages + x->stage;
    *sends = p->order->stages > 1;
    if (!x->backward) return place == 0 ? NULL : end_of(p, place - 1, x->micro_batch, false);
    if (place < p->places - 1) return end_of(p, place + 1, x->micro_batch, true);
    *sends = false;
    return end_of(p, place, x->micro_batch, false);
}

/* Lanes: computation of each stage, then what comes to it forward and backward. */
static int link_of(const struct pipeline *p, const struct dl_pipeline_pass *x) {
    if (p->order->blocks) return x->stage;
    return (x->backward ? 2 : 1) * p->order->stages + x->stage;
}

static void add_pass(struct pipeline *p, struct dl_pipeline_pass *x, struct dl_instant ready,
                     bool sends) {
    const struct dl_pipeline_order *o = p->order;
    const double pass_s = (x->backward ? o->backward_s : o->forward_s)[x->stage] / o->parts;
    if (sends && o->message_s > 0)
        ready = dl_run_add(&p->run, link_of(p, x), ready, o->message_s, DL_TASK_MESSAGE, NULL);
    const struct dl_instant end =
        dl_run_add(&p->run, x->stage, ready, pass_s, DL_TASK_KERNELS, NULL);
    x->start_s = p->run.tasks[end.task].start_s;
    x->end_s = end.s;
    *end_of(p, x->part * o->stages + x->stage, x->micro_batch, x->backward) = end;
}

/* Runs the passes of a stage until one has to wait for a neighbour. */
static bool advance(struct pipeline *p, int stage, struct dl_pipeline_pass *passes) {
    const int count = 2 * p->micro_batches * p->order->parts, before = p->next[stage];
    for (int *n = &p->next[stage]; *n < count; ++*n) {
        struct dl_pipeline_pass x = nth_of(p, stage, *n);
        bool sends = false;
        const struct dl_instant *needed = needs(p, &x, &sends), begin = {0, DL_BEGIN};
        if (needed != NULL && needed->task < 0) break;
        add_pass(p, &x, needed != NULL ? *needed : begin, needed != NULL && sends);
        if (passes != NULL) passes[stage * count + *n] = x;
    }
    return p->next[stage] > before;
}

/* passes: NULL, or room for all. */
static void run(struct pipeline *p, const struct dl_pipeline_order *o, int micro_batches,
                struct dl_arena *arena, struct dl_pipeline_pass *passes) {
    *p = (struct pipeline){
        .order = o, .micro_batches = micro_batches, .places = o->stages * o->parts};
    const size_t all = 2 * (size_t)p->places * (size_t)micro_batches;
    dl_run_begin(&p->run, 3 * o->stages, arena);
    dl_run_reserve(&p->run, (int)all * (o->message_s > 0 ? 2 : 1));
    p->ends = dl_arena_alloc(arena, all, sizeof *p->ends);
    p->next = dl_arena_alloc(arena, (size_t)o->stages, sizeof *p->next);
    for (size_t i = 0; i < all; i++) p->ends[i].task = DL_BEGIN;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < o->stages; s++) moved = advance(p, s, passes) || moved;
    }
}

enum dl_code dl_pipeline_passes(const struct dl_pipeline_order *o, struct dl_arena *arena,
                                struct dl_pipeline_pass **out, int *count, struct dl_err *err) {
    if (o->parts > 1 && o->micro_batches % o->stages != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "an interleaved schedule needs micro-batches (%d) in groups of the "
                       "pipeline's %d stages",
                       o->micro_batches, o->stages);
    struct pipeline p;
    const size_t all = 2 * (size_t)o->parts * (size_t)o->micro_batches * (size_t)o->stages;
    *out = dl_arena_alloc(arena, all, sizeof **out);
    *count = (int)all;
    run(&p, o, o->micro_batches, arena, *out);
    return DL_OK;
}

/* Ends of the stages; returns the latest. */
static double ends_of(const struct pipeline *p, double *end_s) {
    double last_s = 0;
    for (int s = 0; s < p->order->stages; s++) {
        end_s[s] = p->run.lanes[s].s;
        last_s = fmax(last_s, end_s[s]);
    }
    return last_s;
}

/* Whether all passes of the micro-batches up to `last` that can be under way with it end by the
 * same time after those of `count` micro-batches before: then those of the next ones do, too.
 * *later_s: that time. */
static bool repeats(const struct pipeline *p, int last, int count, double *later_s) {
    const int window = 2 * p->order->stages;
    *later_s = end_of(p, 0, last, true)->s - end_of(p, 0, last - count, true)->s;
    for (int backward = 0; backward < 2; backward++) {
        for (int place = 0; place < p->places; place++) {
            const struct dl_instant *end = end_of(p, place, 0, backward);
            for (int i = last; i > last - window; i--) {
                const double change_s = end[i].s - end[i - count].s - *later_s;
                if (fabs(change_s) > 1e-12 * end[i].s) return false;
            }
        }
    }
    return true;
}

/* F-PIPE-PERIOD: after how many micro-batches the passes before the last ones (those that are under
 * way when no more come) repeat; 0: they do not. */
static int period_of(const struct pipeline *p, double *period_s) {
    const int step = p->order->parts > 1 ? p->order->stages : 1,
              last = p->micro_batches - 2 * p->order->stages - 1;
    for (int count = step;
         last - count - 2 * p->order->stages >= -1 && count <= 2 * p->order->stages;
         count += step) {
        if (repeats(p, last, count, period_s)) return count;
    }
    return 0;
}

/* All micro-batches, one by one. */
static double simulate(const struct dl_pipeline_order *o, int micro_batches, struct dl_arena *arena,
                       double *end_s) {
    struct pipeline p;
    run(&p, o, micro_batches, arena, NULL);
    return ends_of(&p, end_s);
}

double dl_pipeline_span(const struct dl_pipeline_order *o, double micro_batches,
                        struct dl_arena *arena, double *end_s) {
    const int stages = o->stages, many = (int)micro_batches;
    if (o->schedule == DL_ASYNC) { /* stages wait for the slowest, or for messages */
        double most_s = 0;
        for (int s = 0; s < stages; s++)
            most_s =
                fmax(most_s, o->blocks ? o->forward_s[s] + o->backward_s[s] + 2 * o->message_s
                                       : fmax(o->forward_s[s] + o->backward_s[s], o->message_s));
        for (int s = 0; s < stages; s++) end_s[s] = micro_batches * most_s;
        return end_s[0];
    }
    if (o->schedule == DL_GPIPE && many > 2) { /* as in any flow shop of equal jobs */
        const double one_s = simulate(o, 1, arena, end_s), two_s = simulate(o, 2, arena, end_s),
                     more_s = (many - 2) * (two_s - one_s);
        for (int s = 0; s < stages; s++) end_s[s] += more_s;
        return two_s + more_s;
    }
    for (int simulated = 5 * stages; simulated < many; simulated *= 2) {
        struct pipeline p;
        double period_s;
        run(&p, o, simulated, arena, NULL);
        const int period = period_of(&p, &period_s);
        if (period == 0) continue;
        const int rest = (many - simulated) % period;
        const double last_s = rest == 0 ? ends_of(&p, end_s)
                                        : simulate(o, simulated + rest, arena, end_s),
                     more_s = (many - simulated - rest) / period * period_s;
        for (int s = 0; s < stages; s++) end_s[s] += more_s;
        return last_s + more_s;
    }
    return simulate(o, many, arena, end_s);
}

double dl_pipeline_least_s(const struct dl_pipeline_order *o, double micro_batches) {
    double through_s = 0, least_s = 0;
    for (int s = 0; s < o->stages; s++) {
        const double own_s = o->forward_s[s] + o->backward_s[s];
        least_s = fmax(least_s, through_s + micro_batches * own_s);
        if (o->schedule != DL_ASYNC) through_s += own_s / o->parts + 2 * o->message_s;
    }
    return least_s;
}

double dl_pipeline_least_of_any_s(double all_s, double stages, double parts, double micro_batches) {
    return all_s / (parts * (1 - pow(1 - 1 / (parts * micro_batches), stages)));
}
