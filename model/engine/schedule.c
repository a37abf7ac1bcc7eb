/* schedule.c - see schedule.h. F-PIPE-ORDER. */
#include "model/engine/schedule.h"

#include <math.h>
#include <string.h>

#include "model/engine/run.h"

/* A pipeline while its passes are added to a run. */
struct pipeline {
    const struct dl_pipeline_order *order;
    int micro_batches, places; /* places: parts of all stages */
    int released;              /* micro-batches that may begin */
    struct dl_run run;
    double *pass_s; /* of each stage, by direction */
    double *end_s;  /* of the passes of the latest micro-batches, by direction and place */
    int kept;       /* how many: a power of two, above all that passes or repeats() read */
    int *done;      /* passes by direction and place */
    int *next;      /* of each stage */
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

static int row_of(const struct pipeline *p, int place, bool backward) {
    return backward ? p->places + place : place;
}

static double *end_of(const struct pipeline *p, int row, int micro_batch) {
    return &p->end_s[(size_t)row * (size_t)p->kept + (size_t)(micro_batch & (p->kept - 1))];
}

enum { NOTHING = -1 };

/* The row of the pass of the same micro-batch that a pass waits for, or NOTHING. *sends: it runs on
 * another stage. */
static int needs(const struct pipeline *p, const struct dl_pipeline_pass *x, bool *sends) {
    const int place = x->part * p->order->stages + x->stage;
    *sends = p->order->stages > 1;
    if (!x->backward) return place == 0 ? NOTHING : row_of(p, place - 1, false);
    if (place < p->places - 1) return row_of(p, place + 1, true);
    *sends = false;
    return row_of(p, place, false);
}

/* Lanes: computation of each stage, then what comes to it forward and backward. */
static int link_of(const struct pipeline *p, const struct dl_pipeline_pass *x) {
    if (p->order->blocks) return x->stage;
    return (x->backward ? 2 : 1) * p->order->stages + x->stage;
}

/* Adds a task to a lane, but keeps none: the times alone are wanted. Returns its start. */
static double time_task(struct dl_run *run, int lane, double ready_s, double duration_s) {
    const double free_s = run->lanes[lane].s, start_s = ready_s > free_s ? ready_s : free_s;
    run->lanes[lane].s = start_s + duration_s;
    return start_s;
}

static void add_pass(struct pipeline *p, struct dl_pipeline_pass *x, double ready_s, bool sends) {
    const struct dl_pipeline_order *o = p->order;
    const int row = row_of(p, x->part * o->stages + x->stage, x->backward);
    if (sends && o->message_s > 0)
        ready_s = time_task(&p->run, link_of(p, x), ready_s, o->message_s) + o->message_s;
    const double pass_s = p->pass_s[x->backward ? o->stages + x->stage : x->stage];
    x->start_s = time_task(&p->run, x->stage, ready_s, pass_s);
    x->end_s = x->start_s + pass_s;
    *end_of(p, row, x->micro_batch) = x->end_s;
    p->done[row]++;
}

/* Runs the passes of a stage until one has to wait for a neighbour. */
static bool advance(struct pipeline *p, int stage, struct dl_pipeline_pass *passes) {
    const int count = 2 * p->micro_batches * p->order->parts, before = p->next[stage];
    for (int *n = &p->next[stage]; *n < count; ++*n) {
        struct dl_pipeline_pass x = nth_of(p, stage, *n);
        bool sends = false;
        const int needed = needs(p, &x, &sends);
        if (x.micro_batch >= (needed == NOTHING ? p->released : p->done[needed])) break;
        add_pass(p, &x, needed == NOTHING ? 0 : *end_of(p, needed, x.micro_batch),
                 needed != NOTHING && sends);
        if (passes != NULL) passes[stage * count + *n] = x;
    }
    return p->next[stage] > before;
}

/* Stages hold at most 3 p micro-batches that another one has passed, and repeats() looks back on
 * 4 p of them. */
static int kept_of(const struct dl_pipeline_order *o, int micro_batches) {
    int kept = 1;
    while (kept < micro_batches && (o->schedule == DL_GPIPE || kept < 8 * o->stages)) kept *= 2;
    return kept;
}

static void begin(struct pipeline *p, const struct dl_pipeline_order *o, int micro_batches,
                  struct dl_arena *arena) {
    *p = (struct pipeline){.order = o,
                           .micro_batches = micro_batches,
                           .places = o->stages * o->parts,
                           .kept = kept_of(o, micro_batches)};
    const size_t rows = 2 * (size_t)p->places, stages = (size_t)o->stages;
    dl_run_begin(&p->run, 3 * o->stages, arena);
    p->end_s = dl_arena_alloc(arena, rows * (size_t)p->kept, sizeof *p->end_s);
    p->done = dl_arena_alloc(arena, rows, sizeof *p->done);
    p->next = dl_arena_alloc(arena, stages, sizeof *p->next);
    p->pass_s = dl_arena_alloc(arena, 2 * stages, sizeof *p->pass_s);
    for (size_t s = 0; s < stages; s++) {
        p->pass_s[s] = o->forward_s[s] / o->parts;
        p->pass_s[stages + s] = o->backward_s[s] / o->parts;
    }
}

/* Runs what can run of the first micro-batches. Forward passes come from the stage before and
 * backward passes from the one after. passes: NULL, or room for all. */
static void run(struct pipeline *p, int released, struct dl_pipeline_pass *passes) {
    const int stages = p->order->stages;
    p->released = released;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; s++) moved = advance(p, s, passes) || moved;
        for (int s = stages - 1; s >= 0; s--) moved = advance(p, s, passes) || moved;
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
    begin(&p, o, o->micro_batches, arena);
    run(&p, o->micro_batches, *out);
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
    const int window = 2 * p->order->stages, first_back = row_of(p, 0, true);
    *later_s = *end_of(p, first_back, last) - *end_of(p, first_back, last - count);
    for (int row = 0; row < 2 * p->places; row++) {
        for (int i = last; i > last - window; i--) {
            const double end_s = *end_of(p, row, i),
                         change_s = end_s - *end_of(p, row, i - count) - *later_s;
            if (fabs(change_s) > 1e-12 * end_s) return false;
        }
    }
    return true;
}

/* F-PIPE-PERIOD: after how many micro-batches the passes before the last released ones repeat
 * (those that are under way with the last ones wait for more); 0: they do not. */
static int period_of(const struct pipeline *p, double *period_s) {
    const int step = p->order->parts > 1 ? p->order->stages : 1,
              last = p->released - 2 * p->order->stages - 1;
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
    begin(&p, o, micro_batches, arena);
    run(&p, micro_batches, NULL);
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
    struct pipeline p;
    begin(&p, o, many, arena);
    for (int released = 5 * stages; released < many; released *= 2) {
        double period_s;
        run(&p, released, NULL);
        const int period = period_of(&p, &period_s);
        if (period == 0) continue;
        const int rest = (many - released) % period;
        const double last_s = simulate(o, released + rest, arena, end_s),
                     more_s = (many - released - rest) / period * period_s;
        for (int s = 0; s < stages; s++) end_s[s] += more_s;
        return last_s + more_s;
    }
    run(&p, many, NULL);
    return ends_of(&p, end_s);
}

/* Messages of a micro-batch between a part and the one after it, in both directions. */
static double messages_s(const struct dl_pipeline_order *o) {
    return o->stages > 1 ? 2 * o->message_s : 0;
}

/* A micro-batch through one part of each stage and back. */
static double round_trip_s(const struct dl_pipeline_order *o) {
    double sum_s = (o->stages - 1) * messages_s(o);
    for (int s = 0; s < o->stages; s++) sum_s += (o->forward_s[s] + o->backward_s[s]) / o->parts;
    return sum_s;
}

/* GPipe: two flow shops of equal jobs, the second from the last stage back. */
static double least_gpipe_s(const struct dl_pipeline_order *o, double micro_batches) {
    double forward_s = messages_s(o) / 2, backward_s = forward_s;
    for (int s = 0; s < o->stages; s++) {
        forward_s = fmax(forward_s, o->forward_s[s]);
        backward_s = fmax(backward_s, o->backward_s[s]);
    }
    return round_trip_s(o) + (micro_batches - 1) * (forward_s + backward_s);
}

/* 1F1B: a stage that is `held` stages from the end holds so many micro-batches; of those that
 * follow each waits for the round trip of one of these. */
static double least_1f1b_s(const struct dl_pipeline_order *o, double micro_batches) {
    double through_s = 0, least_s = 0, round_s = round_trip_s(o);
    for (int s = 0; s < o->stages; s++) {
        const double held = o->stages - s, rounds = floor((micro_batches - 1) / held),
                     rest = micro_batches - 1 - rounds * held,
                     step_s = o->forward_s[s] + o->backward_s[s] + messages_s(o);
        least_s = fmax(least_s, through_s + (rounds + 1) * round_s + rest * o->backward_s[s]);
        through_s += step_s;
        round_s -= step_s;
    }
    return least_s;
}

/* Interleaved: on the first stage pass i backward ends before pass i + 1 + warm-up forward begins.
 */
static double least_interleaved_s(const struct dl_pipeline_order *o, double micro_batches) {
    const int all = (int)micro_batches * o->parts, ahead = warm_up(o, (int)micro_batches, 0),
              last_part = o->parts - 1;
    const double round_s = round_trip_s(o);
    double end_s = 0;
    int backward = 0;
    for (int i = 0; i < all; i = backward + 1 + ahead) {
        const int laps = last_part - pass_of(o, 0, i, false).part; /* before the round trip */
        end_s += laps * (round_s + messages_s(o)) + round_s;
        backward = i + (2 * laps - last_part) * o->stages;
    }
    return end_s + (all - 1 - backward) * o->backward_s[0] / o->parts;
}

double dl_pipeline_least_s(const struct dl_pipeline_order *o, double micro_batches) {
    double through_s = 0, least_s = 0;
    for (int s = 0; s < o->stages; s++) {
        const double own_s = o->forward_s[s] + o->backward_s[s];
        least_s = fmax(least_s, through_s + micro_batches * own_s);
        if (o->schedule != DL_ASYNC) through_s += own_s / o->parts + messages_s(o);
    }
    if (o->schedule == DL_GPIPE) least_s = fmax(least_s, least_gpipe_s(o, micro_batches));
    if (o->schedule == DL_1F1B) least_s = fmax(least_s, least_1f1b_s(o, micro_batches));
    if (o->schedule == DL_INTERLEAVED)
        least_s = fmax(least_s, least_interleaved_s(o, micro_batches));
    return least_s;
}

double dl_pipeline_least_of_any_s(double all_s, double stages, double parts, double micro_batches) {
    return all_s / (parts * (1 - pow(1 - 1 / (parts * micro_batches), stages)));
}
