/* campaign.c - the simulation: events are ends of tasks, of copies and of repairs. */
#include "model/search/campaign/campaign.h"

#include <math.h>

#include "model/search/campaign/campaign_internal.h"

enum copy { COPY_NONE, COPY_RUNS, COPY_DONE };

/* A task on its slot. */
struct running {
    struct dl_campaign_piece piece;
    double start_s, begins_s; /* begins: started up, with or without data */
    double train_s;           /* from when it trains; NAN: waits for data */
};

struct simulation {
    const struct dl_campaign *campaign;
    struct dl_campaign_state state;
    struct dl_heap queue; /* pieces by the order of the campaign: id is a place in pieces */
    /* by time; id: slot: its task ends; slots + slot: its task fails; -1 - slot: it is repaired;
     * 2 slots: the scheduler can start the next task */
    struct dl_heap events;
    struct dl_heap idle; /* slots, the lowest first */
    struct dl_campaign_piece *pieces;
    int piece_count;
    struct running *running; /* by slot */
    int taken;               /* of state.ready */
    double now_s, dispatch_free_s;
    bool dispatch_waits;

    /* Copies share the rate equally and are of one size, so they end in the order in which they
     * began. `copied` is what a copy that runs all the time has moved. */
    char *copy;         /* by place: enum copy */
    double *copy_until; /* by place: value of `copied` at its end */
    int64_t *copying;   /* places that copy now, in a ring */
    int64_t copy_first, copy_count, places, slots_per_place;
    double copied, copied_at_s, copy_bytes;

    uint64_t seed;
    bool keep;
    struct dl_campaign_task *tasks;
    struct dl_campaign_result result;
    struct dl_arena *arena;
};

static enum dl_code out_of_range(struct dl_err *err, const char *what) {
    return dl_fail(err, DL_ERR_USAGE, "campaign: %s", what);
}

static enum dl_code check_machine(const struct dl_campaign *c, struct dl_err *err) {
    if (c->nodes < 1 || c->devices_per_node < 1 || c->devices_per_trial < 1 || c->trial_count < 1)
        return out_of_range(err, "expected at least one node, device and trial");
    if (c->devices_per_trial > c->nodes * c->devices_per_node)
        return dl_fail(err, DL_ERR_USAGE,
                       "campaign: a trial on %lld devices does not fit on %lld nodes of %lld",
                       (long long)c->devices_per_trial, (long long)c->nodes,
                       (long long)c->devices_per_node);
    if (c->devices_per_trial > c->devices_per_node &&
        c->devices_per_trial % c->devices_per_node != 0)
        return out_of_range(err, "a trial on several nodes takes whole nodes");
    if (c->stage_bytes > 0 && !(c->node_bytes_per_s > 0 && c->shared_bytes_per_s > 0))
        return out_of_range(err, "expected rates above 0 for the copy of the data");
    return DL_OK;
}

static enum dl_code check_policy(const struct dl_campaign *c, struct dl_err *err) {
    const bool rungs = c->policy == DL_CAMPAIGN_HALVING || c->policy == DL_CAMPAIGN_HYPERBAND ||
                       c->policy == DL_CAMPAIGN_ASHA;
    if (rungs && (!(c->reduction > 1) || c->rungs < 1 || c->rungs > 32))
        return out_of_range(err, "expected a reduction above 1 and 1 to 32 rungs");
    for (int i = 0; i < c->check_count; i++) {
        if (!(c->survive_frac[i] > 0 && c->survive_frac[i] <= 1))
            return out_of_range(err, "expected surviving fractions above 0, at most 1");
    }
    return DL_OK;
}

static enum dl_code check(const struct dl_campaign *c, struct dl_err *err) {
    const double amounts[] = {c->dispatch_s,           c->startup_s, c->resume_s,
                              c->stage_bytes,          c->repair_s,  c->checkpoint_s,
                              c->device_failures_per_s};
    DL_TRY(check_machine(c, err));
    DL_TRY(check_policy(c, err));
    for (int i = 0; i < c->trial_count; i++) {
        if (!(c->trial_s[i] > 0) || !isfinite(c->trial_s[i]))
            return out_of_range(err, "expected times of trials above 0");
    }
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        if (!(amounts[i] >= 0)) return out_of_range(err, "expected times and sizes of at least 0");
    }
    return DL_OK;
}

/* ---- copies ---- */

static double copy_rate(const struct simulation *s) {
    const double share =
        s->campaign->shared_bytes_per_s / ((double)s->copy_count * (double)s->result.slot_nodes);
    return fmin(s->campaign->node_bytes_per_s, share);
}

/* When the first copy ends; INFINITY: none runs. */
static double next_copy_s(const struct simulation *s) {
    if (s->copy_count == 0) return INFINITY;
    const double left = s->copy_until[s->copying[s->copy_first]] - s->copied;
    return s->copied_at_s + fmax(left, 0) / copy_rate(s);
}

static void advance_copies(struct simulation *s, double now_s) {
    if (s->copy_count > 0) s->copied += (now_s - s->copied_at_s) * copy_rate(s);
    s->copied_at_s = now_s;
}

static void start_copy(struct simulation *s, int64_t place, double now_s) {
    advance_copies(s, now_s);
    s->copy[place] = COPY_RUNS;
    s->copy_until[place] = s->copied + s->copy_bytes;
    s->copying[(s->copy_first + s->copy_count++) % s->places] = place;
}

/* ---- tasks ---- */

static double failure_after_s(struct simulation *s) {
    const double rate = s->campaign->device_failures_per_s * (double)s->result.slot_devices;
    return rate > 0 ? -log(dl_campaign_random(&s->seed)) / rate : INFINITY;
}

/* The task of a slot trains from train_s on: its end, or its failure, becomes an event. */
static void train(struct simulation *s, int slot, double train_s) {
    struct running *r = &s->running[slot];
    r->train_s = train_s;
    s->result.stage_wait_s += train_s - r->begins_s;
    const double fails_s = failure_after_s(s);
    const bool fails = fails_s < r->piece.train_s;
    dl_heap_add(&s->events, train_s + (fails ? fails_s : r->piece.train_s),
                fails ? slot + (int)s->result.slots : slot);
}

static void start(struct simulation *s, int slot, const struct dl_campaign_piece *piece) {
    const struct dl_campaign *c = s->campaign;
    const double start_s = s->now_s;
    const int64_t place = slot / s->slots_per_place;
    const double startup_s = c->startup_s + (piece->resumed ? c->resume_s : 0);
    s->dispatch_free_s = start_s + c->dispatch_s;
    s->running[slot] = (struct running){
        .piece = *piece, .start_s = start_s, .begins_s = start_s + startup_s, .train_s = NAN};
    s->result.startup_s += startup_s;
    if (s->copy[place] == COPY_NONE) start_copy(s, place, s->now_s);
    if (s->copy[place] == COPY_DONE) train(s, slot, s->running[slot].begins_s);
}

/* A copy ended: the tasks of its place train as soon as they have started up. */
static void end_copy(struct simulation *s) {
    const int64_t place = s->copying[s->copy_first];
    const double now_s = next_copy_s(s);
    advance_copies(s, now_s);
    s->now_s = now_s;
    s->copy_first = (s->copy_first + 1) % s->places;
    s->copy_count--;
    s->copy[place] = COPY_DONE;
    for (int64_t i = 0; i < s->slots_per_place; i++) {
        const int slot = (int)(place * s->slots_per_place + i);
        struct running *r = &s->running[slot];
        if (slot < s->result.slots && r->piece.trial >= 0 && isnan(r->train_s))
            train(s, slot, fmax(now_s, r->begins_s));
    }
}

static void record(struct simulation *s, int slot, double end_s, bool failed) {
    const struct running *r = &s->running[slot];
    const int task = s->result.task_count++;
    if (!s->keep) return;
    s->tasks = dl_arena_grow(s->arena, s->tasks, (size_t)task, sizeof *s->tasks);
    s->tasks[task] = (struct dl_campaign_task){.trial = r->piece.trial,
                                               .rung = r->piece.rung,
                                               .slot = slot,
                                               .start_s = r->start_s,
                                               .train_s = r->train_s,
                                               .end_s = end_s,
                                               .failed = failed};
}

static void put_piece(struct simulation *s, const struct dl_campaign_piece *piece) {
    s->pieces = dl_arena_grow(s->arena, s->pieces, (size_t)s->piece_count, sizeof *s->pieces);
    s->pieces[s->piece_count] = *piece;
    dl_heap_add(&s->queue, s->campaign->order == DL_CAMPAIGN_LONGEST_FIRST ? -piece->train_s : 0,
                s->piece_count++);
}

static void take_ready(struct simulation *s) {
    for (; s->taken < s->state.ready_count; s->taken++) put_piece(s, &s->state.ready[s->taken]);
}

/* The rung at which a trial has been trained in full. */
static int last_rung(const struct dl_campaign *c) {
    if (c->policy == DL_CAMPAIGN_ALL) return 0;
    return c->policy == DL_CAMPAIGN_MEDIAN_STOP ? c->check_count : c->rungs - 1;
}

/* The slot's task ended as an event says. */
static void end_task(struct simulation *s, int slot, double now_s, bool failed) {
    struct running *r = &s->running[slot];
    struct dl_campaign_piece piece = r->piece;
    const double trained_s = now_s - r->train_s, step_s = s->campaign->checkpoint_s;
    record(s, slot, now_s, failed);
    s->result.train_s += trained_s;
    r->piece.trial = -1;
    if (!failed) {
        if (piece.rung == last_rung(s->campaign)) s->result.full_count++;
        dl_campaign_ended(&s->state, &piece);
        take_ready(s);
        dl_heap_add(&s->idle, (double)slot, slot);
        return;
    }
    const double kept_s = step_s > 0 ? floor(trained_s / step_s) * step_s : 0;
    s->result.failure_count++;
    s->result.lost_s += trained_s - kept_s;
    piece.train_s -= kept_s;
    piece.resumed = piece.resumed || kept_s > 0;
    put_piece(s, &piece);
    dl_heap_add(&s->events, now_s + s->campaign->repair_s, -1 - slot);
}

static void fill_slots(struct simulation *s) {
    while (s->idle.count > 0) {
        if (s->queue.count == 0) {
            dl_campaign_idle(&s->state);
            take_ready(s);
        }
        if (s->queue.count == 0) return;
        if (s->now_s < s->dispatch_free_s) {
            if (!s->dispatch_waits)
                dl_heap_add(&s->events, s->dispatch_free_s, 2 * (int)s->result.slots);
            s->dispatch_waits = true;
            return;
        }
        const int slot = dl_heap_take(&s->idle).id;
        start(s, slot, &s->pieces[dl_heap_take(&s->queue).id]);
    }
}

static void next_event(struct simulation *s) {
    const int slots = (int)s->result.slots;
    if (next_copy_s(s) <= (s->events.count > 0 ? s->events.entries[0].key : INFINITY)) {
        end_copy(s);
        return;
    }
    const struct dl_heap_entry event = dl_heap_take(&s->events);
    s->now_s = fmax(s->now_s, event.key);
    if (event.id == 2 * slots) {
        s->dispatch_waits = false;
        return;
    }
    if (event.id < 0)
        dl_heap_add(&s->idle, (double)(-1 - event.id), -1 - event.id);
    else
        end_task(s, event.id % slots, event.key, event.id >= slots);
    if (event.id >= 0 && event.id < slots) s->result.makespan_s = s->now_s;
}

/* ---- bounds ---- */

/* All that a trial does when it is trained in full, alone, without failures. */
static double whole_trial_s(const struct dl_campaign *c, int trial) {
    return c->trial_s[trial] + c->startup_s;
}

/* F-CAMPAIGN-BOUNDS: work / slots; Graham (1969) for list and longest-first scheduling. Bounds
 * count tasks as they ran, without copies, failures and waits for the scheduler. */
static void find_bounds(struct simulation *s) {
    const struct dl_campaign *c = s->campaign;
    struct dl_campaign_result *r = &s->result;
    const double slots = (double)r->slots;
    const bool independent = c->policy == DL_CAMPAIGN_ALL || c->policy == DL_CAMPAIGN_MEDIAN_STOP;
    const double work_s = r->train_s - r->lost_s + r->startup_s, mean_s = work_s / slots;
    double longest_s = 0;
    for (int i = 0; i < s->piece_count && independent; i++)
        longest_s = fmax(longest_s, s->pieces[i].train_s + c->startup_s);
    for (int i = 0; i < c->trial_count && !independent; i++)
        if (s->state.rank[i] == 0) longest_s = whole_trial_s(c, i);
    r->longest_trial_s = longest_s;
    r->lower_bound_s = fmax(mean_s, longest_s);
    r->list_bound_s = independent ? mean_s + (1 - 1 / slots) * longest_s : (double)NAN;
    r->longest_first_bound_s = independent && c->order == DL_CAMPAIGN_LONGEST_FIRST
                                   ? r->makespan_s / (4.0 / 3 - 1 / (3 * slots))
                                   : (double)NAN;
    if (r->makespan_s > 0) r->utilization_frac = (r->train_s - r->lost_s) / (slots * r->makespan_s);
}

static void make_room(struct simulation *s) {
    const size_t slots = (size_t)s->result.slots, places = (size_t)s->places;
    s->running = dl_arena_alloc(s->arena, slots, sizeof *s->running);
    s->copy = dl_arena_alloc(s->arena, places, sizeof *s->copy);
    s->copy_until = dl_arena_alloc(s->arena, places, sizeof *s->copy_until);
    s->copying = dl_arena_alloc(s->arena, places, sizeof *s->copying);
    for (size_t i = 0; i < slots; i++) {
        s->running[i].piece.trial = -1;
        dl_heap_add(&s->idle, (double)i, (int)i);
    }
    for (size_t i = 0; i < places; i++)
        s->copy[i] = s->campaign->stage_bytes > 0 ? COPY_NONE : COPY_DONE;
}

static enum dl_code set_up(struct simulation *s, struct dl_err *err) {
    const struct dl_campaign *c = s->campaign;
    struct dl_campaign_result *r = &s->result;
    r->slot_devices = c->devices_per_trial;
    r->slot_nodes =
        c->devices_per_trial > c->devices_per_node ? c->devices_per_trial / c->devices_per_node : 1;
    s->slots_per_place = r->slot_nodes > 1 ? 1 : c->devices_per_node / c->devices_per_trial;
    s->places = c->nodes / r->slot_nodes;
    r->slots = s->places * s->slots_per_place;
    s->copy_bytes = c->stage_bytes;
    if (r->slots > 100000000)
        return out_of_range(err, "expected at most 100 million slots; use fewer nodes");
    s->queue.arena = s->events.arena = s->idle.arena = s->arena;
    make_room(s);
    s->state = (struct dl_campaign_state){.campaign = c, .arena = s->arena};
    dl_campaign_begin(&s->state);
    return DL_OK;
}

enum dl_code dl_campaign_simulate(const struct dl_campaign *campaign, bool keep_tasks,
                                  struct dl_arena *arena, struct dl_campaign_result *out,
                                  struct dl_err *err) {
    struct simulation s = {
        .campaign = campaign, .keep = keep_tasks, .arena = arena, .seed = campaign->seed ^ 0x5eed};
    DL_TRY(check(campaign, err));
    DL_TRY(set_up(&s, err));
    take_ready(&s);
    /* failures so frequent that nothing ends would go on forever */
    const double most_events = 1000.0 * ((double)campaign->trial_count + (double)s.result.slots);
    double events = 0;
    for (fill_slots(&s); s.events.count > 0 || s.copy_count > 0; fill_slots(&s)) {
        next_event(&s);
        if (++events > most_events)
            return out_of_range(err, "failures are so frequent that trials do not end");
    }
    find_bounds(&s);
    s.result.tasks = s.tasks;
    *out = s.result;
    return DL_OK;
}

/* ---- what limits it ---- */

static enum dl_code without(const struct dl_campaign *changed, double makespan_s,
                            struct dl_arena *arena, double *gain_frac, struct dl_err *err) {
    struct dl_campaign_result result;
    DL_TRY(dl_campaign_simulate(changed, false, arena, &result, err));
    *gain_frac = result.makespan_s / makespan_s - 1;
    return DL_OK;
}

enum dl_code dl_campaign_find_limits(const struct dl_campaign *campaign, double makespan_s,
                                     struct dl_arena *arena, struct dl_campaign_limits *out,
                                     struct dl_err *err) {
    struct dl_campaign c = *campaign;
    c.dispatch_s = 0;
    DL_TRY(without(&c, makespan_s, arena, &out->dispatch_frac, err));
    c = *campaign;
    c.startup_s = c.resume_s = 0;
    DL_TRY(without(&c, makespan_s, arena, &out->startup_frac, err));
    c = *campaign;
    c.stage_bytes = 0;
    DL_TRY(without(&c, makespan_s, arena, &out->staging_frac, err));
    c = *campaign;
    c.device_failures_per_s = 0;
    DL_TRY(without(&c, makespan_s, arena, &out->failures_frac, err));
    c = *campaign;
    c.nodes *= 2;
    DL_TRY(without(&c, makespan_s, arena, &out->slots_frac, err));
    double *even = dl_arena_alloc(arena, (size_t)campaign->trial_count, sizeof *even), sum_s = 0;
    for (int i = 0; i < campaign->trial_count; i++) sum_s += campaign->trial_s[i];
    for (int i = 0; i < campaign->trial_count; i++) even[i] = sum_s / campaign->trial_count;
    c = *campaign;
    c.trial_s = even;
    return without(&c, makespan_s, arena, &out->longest_frac, err);
}
