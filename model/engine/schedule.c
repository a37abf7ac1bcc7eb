/* schedule.c - see schedule.h. F-PIPE-ORDER. */
#include "model/engine/schedule.h"

#include <math.h>
#include <string.h>

#include "model/engine/run.h"

/* A pipeline while its passes are added to a run. */
struct pipeline {
    struct dl_pipeline_order order;
    const struct dl_schedule_row *row;
    int places;   /* parts of all stages */
    int each;     /* micro-batches of a chain */
    int released; /* of these, those that may begin */
    struct dl_run run;
    double *pass_s; /* of each stage, by kind */
    double *end_s;  /* of the passes of the latest micro-batches, by kind and place */
    int kept;       /* how many: a power of two, above all that passes or repeats() read */
    int *done;      /* passes by kind and place */
    struct dl_stage_progress *progress; /* of each stage */
    /* where all passes are wanted: these, stage by stage, and their tasks; else NULL */
    struct dl_pipeline_pass *passes;
    int *end_task;            /* as end_s */
    struct pass_tasks *tasks; /* as passes */
};

struct pass_tasks {
    int pass, message; /* -1: no message */
};

static int kinds_of(const struct dl_schedule_row *row) {
    return row->splits_backward ? DL_PASS_KINDS : DL_PASS_WEIGHTS;
}

static int passes_of(const struct pipeline *p) {
    return kinds_of(p->row) * p->each * p->order.parts;
}

static int place_of(const struct pipeline *p, const struct dl_pipeline_pass *x) {
    return dl_placing_place(p->row->placing, p->order.stages, x->stage, x->part);
}

static int row_of(const struct pipeline *p, int place, enum dl_pass_kind kind) {
    return (int)kind * p->places + place;
}

static size_t slot_of(const struct pipeline *p, int row, int micro_batch) {
    return (size_t)row * (size_t)p->kept + (size_t)(micro_batch & (p->kept - 1));
}
static double *end_of(const struct pipeline *p, int row, int micro_batch) {
    return &p->end_s[slot_of(p, row, micro_batch)];
}

enum { NOTHING = -1 };

/* The row of the pass of the same micro-batch that a pass waits for, or NOTHING. *sends: it runs on
 * another stage. */
static int needs(const struct pipeline *p, const struct dl_pipeline_pass *x, bool *sends) {
    const enum dl_placing placing = p->row->placing;
    const int stages = p->order.stages, place = place_of(p, x),
              from = place + (x->kind == DL_PASS_FORWARD ? -1 : 1);
    *sends = false;
    if (x->kind == DL_PASS_FORWARD && dl_placing_begins(placing, stages, place)) return NOTHING;
    if (x->kind == DL_PASS_WEIGHTS) return row_of(p, place, DL_PASS_BACKWARD);
    if (x->kind == DL_PASS_BACKWARD && dl_placing_ends(placing, stages, p->order.parts, place))
        return row_of(p, place, DL_PASS_FORWARD);
    *sends = dl_placing_stage(placing, stages, from) != x->stage;
    return row_of(p, from, x->kind);
}

/* Lanes: computation of each stage, then what comes to it forward and backward. */
static int link_of(const struct pipeline *p, const struct dl_pipeline_pass *x) {
    if (p->order.blocks) return x->stage;
    return (x->kind == DL_PASS_BACKWARD ? 2 : 1) * p->order.stages + x->stage;
}

/* The task is kept only where all passes are wanted. */
static struct dl_instant add_task(struct pipeline *p, int lane, struct dl_instant ready,
                                  double duration_s) {
    if (p->passes != NULL) return dl_run_add(&p->run, lane, ready, duration_s, DL_TASK_HOST, NULL);
    const double free_s = p->run.lanes[lane].s, start_s = ready.s > free_s ? ready.s : free_s;
    p->run.lanes[lane].s = start_s + duration_s;
    return p->run.lanes[lane];
}

static void keep_pass(struct pipeline *p, struct dl_pipeline_pass x, int row, int message) {
    const int at = x.stage * passes_of(p) + p->progress[x.stage].all, task = p->run.count - 1;
    x.start_s = p->run.tasks[task].start_s;
    x.end_s = p->run.tasks[task].end_s;
    x.sent_s = message < 0 ? NAN : p->run.tasks[message].start_s;
    x.received_s = message < 0 ? NAN : p->run.tasks[message].end_s;
    p->passes[at] = x;
    p->tasks[at] = (struct pass_tasks){task, message};
    p->end_task[slot_of(p, row, x.micro_batch)] = task;
}

/* A pass that may begin. */
struct ready_pass {
    struct dl_pipeline_pass pass;
    int row, needed; /* needed: NOTHING, or the row of the pass that it waits for */
    int message;     /* -1: none */
    bool sends, with_next;
};

/* When what a pass needs is there. */
static struct dl_instant bring(struct pipeline *p, struct ready_pass *x) {
    struct dl_instant at = {0, DL_BEGIN};
    x->message = -1;
    if (x->needed == NOTHING) return at;
    at = (struct dl_instant){
        *end_of(p, x->needed, x->pass.micro_batch),
        p->passes != NULL ? p->end_task[slot_of(p, x->needed, x->pass.micro_batch)] : DL_BEGIN};
    if (!x->sends || !(p->order.message_s > 0)) return at;
    at = add_task(p, link_of(p, &x->pass), at, p->order.message_s);
    x->message = at.task;
    return at;
}

static void add_pass(struct pipeline *p, const struct ready_pass *x, struct dl_instant ready) {
    const int stage = x->pass.stage;
    *end_of(p, x->row, x->pass.micro_batch) =
        add_task(p, stage, ready, p->pass_s[(int)x->pass.kind * p->order.stages + stage]).s;
    if (p->passes != NULL) keep_pass(p, x->pass, x->row, x->message);
    p->done[x->row]++;
    p->progress[stage].count[x->pass.kind]++;
    p->progress[stage].all++;
    p->progress[stage].position++;
}

enum { TOGETHER = 3 }; /* passes that run as one, at most */

/* They begin when all that they need is there; their outputs leave when the last one has ended. */
static void add_together(struct pipeline *p, struct ready_pass *list, int count) {
    struct dl_instant ready = {0, DL_BEGIN};
    for (int i = 0; i < count; i++) {
        if (i > 0 && list[i].pass.kind == DL_PASS_WEIGHTS) continue; /* of the pass before it */
        const struct dl_instant at = bring(p, &list[i]);
        if (i == 0 || at.s > ready.s) ready = at;
    }
    for (int i = 0; i < count; i++)
        add_pass(p, &list[i], i == 0 ? ready : p->run.lanes[list[0].pass.stage]);
    const struct ready_pass *last = &list[count - 1];
    for (int i = 0; i < count - 1; i++) {
        *end_of(p, list[i].row, list[i].pass.micro_batch) =
            *end_of(p, last->row, last->pass.micro_batch);
        if (p->passes != NULL)
            p->end_task[slot_of(p, list[i].row, list[i].pass.micro_batch)] =
                p->end_task[slot_of(p, last->row, last->pass.micro_batch)];
    }
}

/* The pass at the stage's place in the order; false: of a micro-batch that there is not. */
static bool look_at(const struct pipeline *p, int stage, const struct dl_stage_progress *progress,
                    struct ready_pass *out) {
    const struct dl_stage_pass next = p->row->next(&p->order, stage, progress);
    *out = (struct ready_pass){.pass = {.stage = stage, .part = next.part, .kind = next.kind},
                               .message = -1,
                               .with_next = next.with_next};
    out->row = row_of(p, place_of(p, &out->pass), next.kind);
    out->pass.micro_batch = p->done[out->row];
    out->needed = needs(p, &out->pass, &out->sends);
    return out->pass.micro_batch < p->each;
}

/* The passes that a stage runs next, as one; 0: one of them has to wait. */
static int find_together(struct pipeline *p, int stage, struct ready_pass list[TOGETHER]) {
    struct dl_stage_progress *progress = &p->progress[stage];
    while (!look_at(p, stage, progress, &list[0])) progress->position++;
    struct dl_stage_progress later = *progress;
    for (int count = 1;; count++) {
        const struct ready_pass *x = &list[count - 1];
        const bool follows = count > 1 && x->pass.kind == DL_PASS_WEIGHTS;
        if (!follows &&
            x->pass.micro_batch >= (x->needed == NOTHING ? p->released : p->done[x->needed]))
            return 0;
        if (!x->with_next || count == TOGETHER) return count;
        later.count[x->pass.kind]++, later.all++, later.position++;
        look_at(p, stage, &later, &list[count]);
    }
}

/* Runs the passes of a stage until one has to wait for a neighbour. */
static bool advance(struct pipeline *p, int stage) {
    const int count = passes_of(p), before = p->progress[stage].all;
    while (p->progress[stage].all < count) {
        struct ready_pass list[TOGETHER];
        const int together = find_together(p, stage, list);
        if (together == 0) break;
        add_together(p, list, together);
    }
    return p->progress[stage].all > before;
}

/* Stages hold at most 3 p micro-batches that another one has passed, and repeats() looks back on
 * 4 p of them. */
static int kept_of(const struct dl_pipeline_order *o, int micro_batches) {
    const bool all = dl_schedules[o->schedule]->all_forward_first;
    int kept = 1;
    while (kept < micro_batches && (all || kept < 8 * o->stages)) kept *= 2;
    return kept;
}

static void begin(struct pipeline *p, const struct dl_pipeline_order *o, int micro_batches,
                  struct dl_arena *arena) {
    const int chains = dl_placing_chains(dl_schedules[o->schedule]->placing);
    *p = (struct pipeline){.order = *o,
                           .row = dl_schedules[o->schedule],
                           .places = o->stages * o->parts,
                           .each = micro_batches / chains,
                           .kept = kept_of(o, micro_batches / chains)};
    p->order.micro_batches = micro_batches;
    const size_t kinds = (size_t)kinds_of(p->row), rows = kinds * (size_t)p->places,
                 stages = (size_t)o->stages;
    dl_run_begin(&p->run, 3 * o->stages, arena);
    p->end_s = dl_arena_alloc(arena, rows * (size_t)p->kept, sizeof *p->end_s);
    p->done = dl_arena_alloc(arena, rows, sizeof *p->done);
    p->progress = dl_arena_alloc(arena, stages, sizeof *p->progress);
    p->pass_s = dl_arena_alloc(arena, kinds * stages, sizeof *p->pass_s);
    for (size_t s = 0; s < stages; s++) {
        const double weights_s = p->row->splits_backward ? o->weights_s[s] : 0;
        p->pass_s[s] = o->forward_s[s] * chains / o->parts;
        p->pass_s[stages + s] = (o->backward_s[s] - weights_s) * chains / o->parts;
        if (p->row->splits_backward) p->pass_s[2 * stages + s] = weights_s * chains / o->parts;
    }
}

/* Runs what can run of the first micro-batches. Forward passes come from the stage before and
 * backward passes from the one after. */
static void run(struct pipeline *p, int released) {
    const int stages = p->order.stages;
    p->released = released;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; s++) moved = advance(p, s) || moved;
        for (int s = stages - 1; s >= 0; s--) moved = advance(p, s) || moved;
    }
}

/* Ends of the stages; returns the latest. */
static double ends_of(const struct pipeline *p, double *end_s) {
    double last_s = 0;
    for (int s = 0; s < p->order.stages; s++) {
        end_s[s] = p->run.lanes[s].s;
        last_s = fmax(last_s, end_s[s]);
    }
    return last_s;
}

/* Whether all passes of the micro-batches up to `last` that can be under way with it end by the
 * same time after those of `count` micro-batches before: then those of the next ones do, too.
 * *later_s: that time. */
static bool repeats(const struct pipeline *p, int last, int count, double *later_s) {
    const int window = 2 * p->order.stages, first_back = row_of(p, 0, DL_PASS_BACKWARD),
              rows = kinds_of(p->row) * p->places;
    *later_s = *end_of(p, first_back, last) - *end_of(p, first_back, last - count);
    for (int row = 0; row < rows; row++) {
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
    const int step = p->row->in_groups ? p->order.stages : 1,
              last = p->released - 2 * p->order.stages - 1;
    for (int count = step; last - count - 2 * p->order.stages >= -1 && count <= 2 * p->order.stages;
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
    run(&p, p.each);
    return ends_of(&p, end_s);
}

/* Fewer micro-batches that end as all of them but for whole periods between. */
struct shortened {
    int micro_batches, left_out; /* of all chains */
    double steady_s;             /* in the steady state, before the last of them begin */
    double more_s;               /* of what is left out */
};

static bool shorten(struct pipeline *p, struct shortened *out) {
    const int many = p->each, stages = p->order.stages, chains = p->order.micro_batches / many;
    for (int released = 5 * stages; released < many && !p->row->all_forward_first; released *= 2) {
        double period_s;
        run(p, released);
        const int period = period_of(p, &period_s);
        if (period == 0) continue;
        const int rest = (many - released) % period, left_out = many - released - rest;
        *out = (struct shortened){
            .micro_batches = (released + rest) * chains,
            .left_out = left_out * chains,
            .steady_s = *end_of(p, row_of(p, 0, DL_PASS_BACKWARD), released - 2 * stages - 1),
            .more_s = left_out / period * period_s};
        return true;
    }
    return false;
}

static double asynchronous_span(const struct dl_pipeline_order *o, double micro_batches,
                                double *end_s) { /* stages wait for the slowest, or for messages */
    double most_s = 0;
    for (int s = 0; s < o->stages; s++) {
        const double both_s = o->forward_s[s] + o->backward_s[s];
        most_s = fmax(most_s, o->blocks ? both_s + 2 * o->message_s : fmax(both_s, o->message_s));
    }
    for (int s = 0; s < o->stages; s++) end_s[s] = micro_batches * most_s;
    return end_s[0];
}

double dl_pipeline_span(const struct dl_pipeline_order *o, double micro_batches,
                        struct dl_arena *arena, double *end_s) {
    const struct dl_schedule_row *row = dl_schedules[o->schedule];
    const int stages = o->stages, many = (int)micro_batches;
    if (row->asynchronous) return asynchronous_span(o, micro_batches, end_s);
    if (row->all_forward_first && many > 2) { /* as in any flow shop of equal jobs */
        double *one_s = dl_arena_alloc(arena, (size_t)stages, sizeof *one_s), last_s = 0;
        simulate(o, 1, arena, one_s);
        simulate(o, 2, arena, end_s);
        for (int s = 0; s < stages; s++) {
            end_s[s] += (many - 2) * (end_s[s] - one_s[s]);
            last_s = fmax(last_s, end_s[s]);
        }
        return last_s;
    }
    struct pipeline p;
    struct shortened few;
    begin(&p, o, many, arena);
    if (shorten(&p, &few)) {
        const double last_s = simulate(o, few.micro_batches, arena, end_s);
        for (int s = 0; s < stages; s++) end_s[s] += few.more_s;
        return last_s + few.more_s;
    }
    run(&p, p.each);
    return ends_of(&p, end_s);
}

struct dl_pipeline_spans dl_pipeline_spans_of(const struct dl_pipeline_order *o,
                                              double micro_batches, const double *after_s,
                                              bool quiet_too, struct dl_arena *arena) {
    struct dl_pipeline_order quiet = *o;
    double *ends_s = dl_arena_alloc(arena, (size_t)o->stages, sizeof *ends_s);
    const double span_s = dl_pipeline_span(o, micro_batches, arena, ends_s);
    struct dl_pipeline_spans out = {span_s, span_s, span_s};
    for (int s = 0; after_s != NULL && s < o->stages; s++)
        out.end_s = fmax(out.end_s, ends_s[s] + after_s[s]);
    quiet.message_s = 0;
    if (o->message_s > 0 && quiet_too)
        out.quiet_s = dl_pipeline_span(&quiet, micro_batches, arena, ends_s);
    return out;
}

/* Passes and messages on the path to the end of what follows the passes. */
static void mark_path(struct pipeline *p, const double *after_s, struct dl_pipeline_passes *out) {
    struct dl_resource_use unused = {{0}};
    double last_s = -1;
    int last = 0;
    for (int s = 0; s < out->stages; s++) {
        const double pass_s = p->run.lanes[s].s,
                     stage_s = pass_s + (after_s != NULL ? after_s[s] : 0);
        out->end_s = fmax(out->end_s, pass_s);
        if (stage_s <= last_s) continue;
        last_s = stage_s;
        last = p->run.lanes[s].task;
    }
    dl_run_path(&p->run, last, p->run.tasks[last].end_s, false, &unused);
    for (int i = 0; i < out->count; i++) {
        const struct pass_tasks *own = &p->tasks[i];
        out->list[i].critical = p->run.tasks[own->pass].critical;
        out->list[i].message_critical = own->message >= 0 && p->run.tasks[own->message].critical;
    }
}

static void put_back(const struct shortened *few, struct dl_pipeline_passes *out) {
    out->left_out = few->left_out;
    out->left_from_s = few->steady_s;
    out->left_to_s = few->steady_s + few->more_s;
    out->end_s += few->more_s;
    for (int i = 0; i < out->count; i++) {
        struct dl_pipeline_pass *x = &out->list[i];
        if (x->start_s < few->steady_s) continue;
        x->micro_batch += few->left_out / dl_placing_chains(out->placing);
        x->start_s += few->more_s;
        x->end_s += few->more_s;
        x->sent_s += few->more_s;
        x->received_s += few->more_s;
    }
}

double dl_pipeline_stage_end_s(const struct dl_pipeline_passes *passes, int stage) {
    const int own = passes->count / passes->stages; /* the list is stage by stage */
    return passes->list[(stage + 1) * own - 1].end_s;
}

enum dl_code dl_pipeline_list(const struct dl_pipeline_order *o, int most, const double *after_s,
                              struct dl_arena *arena, struct dl_pipeline_passes *out,
                              struct dl_err *err) {
    if (dl_schedules[o->schedule]->in_groups && o->micro_batches % o->stages != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "an interleaved schedule needs micro-batches (%d) in groups of the "
                       "pipeline's %d stages",
                       o->micro_batches, o->stages);
    struct pipeline p;
    struct shortened few = {.micro_batches = o->micro_batches};
    begin(&p, o, o->micro_batches, arena);
    if (passes_of(&p) * o->stages > most) shorten(&p, &few);
    begin(&p, o, few.micro_batches, arena);
    const size_t count = (size_t)(passes_of(&p) * o->stages),
                 rows = (size_t)(kinds_of(p.row) * p.places);
    p.passes = dl_arena_alloc(arena, count, sizeof *p.passes);
    p.tasks = dl_arena_alloc(arena, count, sizeof *p.tasks);
    p.end_task = dl_arena_alloc(arena, rows * (size_t)p.kept, sizeof *p.end_task);
    *out = (struct dl_pipeline_passes){.list = p.passes,
                                       .count = (int)count,
                                       .stages = o->stages,
                                       .parts = o->parts,
                                       .placing = p.row->placing,
                                       .micro_batches = p.each};
    run(&p, p.each);
    mark_path(&p, after_s, out);
    if (few.left_out > 0) put_back(&few, out);
    return DL_OK;
}

double dl_pipeline_least_s(const struct dl_pipeline_order *o, double micro_batches) {
    const struct dl_schedule_row *row = dl_schedules[o->schedule];
    double through_s = 0, least_s = 0;
    for (int s = 0; s < o->stages; s++) {
        const double own_s = o->forward_s[s] + o->backward_s[s];
        least_s = fmax(least_s, through_s + micro_batches * own_s);
        if (row->placing == DL_PLACED_BOTH_WAYS) continue; /* each end has work at once */
        if (row->splits_backward) /* weight gradients of its micro-batches fill the way back */
            through_s += o->forward_s[s] / o->parts + dl_schedule_messages_s(o) / 2;
        else if (!row->asynchronous)
            through_s += own_s / o->parts + dl_schedule_messages_s(o);
    }
    return row->least_s != NULL ? fmax(least_s, row->least_s(o, micro_batches)) : least_s;
}

double dl_pipeline_least_of_any_s(double all_s, double stages, double parts, double micro_batches) {
    return all_s / (parts * (1 - pow(1 - 1 / (parts * micro_batches), stages)));
}
