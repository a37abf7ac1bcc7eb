/* transformer_program.c - see transformer_program.h.
 *
 * F-TRANSFORMER-SHARD. Collectives of data parallelism run in one lane, first in, first out, behind
 * kernels, or device and host wait for each.
 *   Sums once an iteration (stages 0 and 1; stage 2: in each micro-batch): k buckets of equal size.
 * Each is ready when the backward pass has come through its parameters; what comes before the
 * layers is last. The update, or the next micro-batch, waits for the last of them.
 *   Parameters after the update (stages 1 and 2): all, or k buckets behind the next forward pass,
 * which waits for each where its parameters begin.
 *   Stage 3 gathers each layer before its forward pass, while the layer before it computes, and
 * again before its backward pass, but the last one, which is still there; its gradients are reduced
 * after the latter. What is not of the body (the root) is gathered before everything and reduced
 * last. Sources: kernels-of-frameworks, torchtitan-compile (the last layer).
 *   An interleaved pipeline comes through the v parts of a stage p passes apart.
 *   The bound (F-FW-IDEAL) moves what it sends in pieces of any size behind all kernels.
 */
#include "model/engine/transformer/transformer_program.h"

#include <math.h>

#include "model/engine/transformer/transformer_internal.h"

enum lane { COMPUTE, DATA, LANES };
enum message { ROOT_GATHER, ROOT_REDUCE, UNIT_GATHER, UNIT_REDUCE, UNIT_ACROSS, MESSAGES };
enum { ROOM = 640 }; /* tasks; more take memory from the heap */

struct program {
    const struct dl_transformer_program *in;
    bool behind, fluid; /* collectives behind kernels; in pieces of any size */
    double parts;       /* of the stage, between which other micro-batches pass */
    struct dl_arena scratch;
    struct dl_run run;
    struct dl_instant lanes[LANES];
    struct dl_task room[ROOM];
    struct dl_message messages[MESSAGES];
    struct dl_exposure exposed;
    double full_rate_s; /* of computation, had it shared nothing */
};

static struct dl_message message_of(const struct dl_collective_time *t, enum dl_collective_op op,
                                    double bytes) {
    return (struct dl_message){.name = dl_collective_op_names[op],
                               .bytes = bytes,
                               .duration_s = t->time_s,
                               .latency_s = t->latency_s,
                               .bandwidth_s = t->bandwidth_s,
                               .sigma_log = t->sigma_log,
                               .limit = t->limit};
}

static void begin(struct program *p, const struct dl_transformer_program *in, double parts) {
    const struct dl_transformer_mapping *mapping = in->mapping;
    const struct dl_collective_time *across = &mapping->unit_across;
    struct dl_collective_time inside = mapping->unit_reduce;
    inside.time_s -= across->time_s;
    inside.latency_s -= across->latency_s;
    inside.bandwidth_s -= across->bandwidth_s;
    if (across->time_s > 0) inside.limit = mapping->unit_gather.limit;
    p->in = in;
    p->behind = mapping->bound || dl_transformer_reduces_behind(in->tf, mapping->shard);
    p->fluid = (mapping->bound || in->least) && p->behind;
    p->parts = parts;
    p->scratch = (struct dl_arena){0};
    p->exposed = (struct dl_exposure){0};
    p->full_rate_s = 0;
    p->messages[ROOT_GATHER] =
        message_of(&mapping->gather, DL_COLL_ALL_GATHER, mapping->gather_bytes);
    p->messages[ROOT_REDUCE] = message_of(
        &mapping->reduce, mapping->shard > 0 ? DL_COLL_REDUCE_SCATTER : DL_COLL_ALL_REDUCE,
        mapping->gradient_bytes);
    p->messages[UNIT_GATHER] =
        message_of(&mapping->unit_gather, DL_COLL_ALL_GATHER, mapping->unit_gather_bytes);
    p->messages[UNIT_REDUCE] =
        message_of(&inside, DL_COLL_REDUCE_SCATTER, mapping->unit_gradient_bytes);
    p->messages[UNIT_ACROSS] = message_of(
        across, DL_COLL_ALL_REDUCE, mapping->unit_gradient_bytes / fmax(1, mapping->shard_ranks));
    dl_run_begin_in(&p->run, p->lanes, LANES, p->room, ROOM, &p->scratch);
    dl_run_share(&p->run, DATA, COMPUTE, mapping->slowdown_frac, DL_NONE);
}

static void finish(struct program *p) { dl_arena_free(&p->scratch); }

static struct dl_instant now(const struct program *p) { return p->lanes[COMPUTE]; }

/* The compute lane waits; what the lane of collectives does meanwhile shows. */
static void wait_for(struct program *p, struct dl_instant until) {
    const double free_s = now(p).s;
    double at_s = until.s;
    if (!(at_s > free_s)) return;
    p->exposed.s += at_s - free_s;
    for (int t = until.task; t >= 0 && at_s > free_s; t--) {
        const struct dl_task *task = &p->run.tasks[t];
        if (task->kind != DL_TASK_MESSAGE || !(task->end_s > task->start_s)) continue;
        const struct dl_message *message = task->of;
        const double shown_s = fmin(at_s, task->end_s) - fmax(task->start_s, free_s);
        p->exposed.error_s += shown_s * message->sigma_log;
        at_s = task->start_s;
    }
    dl_run_hold(&p->run, COMPUTE, until);
}

/* F-SLOWDOWN: time that computation has lost to concurrent collectives; 0 within rounding. */
static double slowdown_s(const struct program *p) {
    const double more_s = now(p).s - p->exposed.s - p->full_rate_s;
    return more_s > 1e-12 * now(p).s ? more_s : 0;
}

static struct dl_instant compute_as(struct program *p, double seconds,
                                    const struct dl_resource_use *use) {
    p->full_rate_s += seconds;
    return dl_run_add(&p->run, COMPUTE, now(p), seconds, DL_TASK_SHARES, use);
}

static struct dl_instant compute(struct program *p, int part, enum dl_direction way, double times) {
    const struct dl_transformer_program *in = p->in;
    return compute_as(p, times * in->stage->seconds[part][way],
                      in->uses != NULL ? &in->uses->of[part][way] : NULL);
}

/* `times` messages as one task. */
static struct dl_instant send(struct program *p, enum message which, struct dl_instant ready,
                              double times) {
    const struct dl_message *m = &p->messages[which];
    const struct dl_instant from = p->behind ? ready : now(p),
                            end = dl_run_add(&p->run, DATA, from, times * m->duration_s,
                                             DL_TASK_MESSAGE, m);
    if (!p->behind) wait_for(p, end);
    return end;
}

static void join(struct program *p) { wait_for(p, p->lanes[DATA]); }

/* What a stage computes in one direction, in forward order: what comes before the layers, the
 * layers of each part, between the parts the passes of other micro-batches, the head. */
struct unit {
    double elements, seconds;
    const struct dl_resource_use *use;
};

static int unit_count(const struct program *p) { return 2 * (int)p->parts + 1; }

static struct unit unit_at(const struct program *p, enum dl_direction way, int index) {
    const struct dl_transformer_program *in = p->in;
    const struct dl_transformer_stage *stage = in->stage;
    const int last = unit_count(p) - 1, part = index == 0      ? DL_TRANSFORMER_BEFORE
                                               : index == last ? DL_TRANSFORMER_AFTER
                                                               : DL_TRANSFORMER_BODY;
    const bool fills = part == DL_TRANSFORMER_BODY && index % 2 == 0;
    const double times = stage->part_count[part] / (part == DL_TRANSFORMER_BODY ? p->parts : 1);
    struct unit out = {.seconds = times * stage->seconds[part][way],
                       .use = in->uses != NULL ? &in->uses->of[part][way] : NULL};
    if (fills)
        out.seconds =
            ((double)in->mapping->split.pp - 1) * dl_transformer_pass_s(stage, way) / p->parts;
    else
        out.elements = times * in->mapping->unit_elements[part];
    return out;
}

static double elements_of(const struct program *p) {
    double sum = 0;
    for (int i = 0; i < unit_count(p); i++) sum += unit_at(p, DL_FORWARDS, i).elements;
    return sum;
}

static void compute_units(struct program *p, enum dl_direction way) {
    for (int i = 0; i < unit_count(p); i++) {
        const struct unit u = unit_at(p, way, way == DL_FORWARDS ? i : unit_count(p) - 1 - i);
        if (u.seconds > 0) compute_as(p, u.seconds, u.use);
    }
}

/* A forward pass that waits for each bucket of parameters where these begin. */
static void forward_with_buckets(struct program *p) {
    const double buckets = p->in->mapping->buckets, all = elements_of(p), each = all / buckets;
    const struct dl_instant from = now(p);
    const int first = p->run.count;
    double at = 0;
    int awaited = 0;
    for (int i = 0; i < (int)buckets; i++) send(p, ROOT_GATHER, from, 1 / buckets);
    for (int i = 0; i < unit_count(p); i++) {
        const struct unit u = unit_at(p, DL_FORWARDS, i);
        double left = u.elements;
        while (left > 1e-9 * all && awaited < (int)buckets) {
            if (at >= awaited * each - 1e-9 * all) {
                const int task = first + awaited++;
                wait_for(p, (struct dl_instant){p->run.tasks[task].end_s, task});
                continue;
            }
            const double piece = fmin(left, awaited * each - at);
            compute_as(p, u.seconds * piece / u.elements, u.use);
            at += piece;
            left -= piece;
        }
        compute_as(p, u.elements > 0 ? u.seconds * left / u.elements : u.seconds, u.use);
        at += left;
    }
    if (!(all > 0)) join(p);
}

/* A backward pass, and its gradients, each bucket when it is complete. */
static void backward_with_buckets(struct program *p) {
    const double buckets = p->behind ? p->in->mapping->buckets : 1, all = elements_of(p);
    double at = 0;
    int sent = 0;
    for (int i = unit_count(p) - 1; i >= 0; i--) {
        const struct unit u = unit_at(p, DL_BACKWARDS, i);
        double done = 0; /* of the unit */
        while (u.elements > 0 && sent + 1 < (int)buckets &&
               at + u.elements >= (sent + 1) * all / buckets) {
            const double share = ((sent + 1) * all / buckets - at) / u.elements;
            send(p, ROOT_REDUCE, compute_as(p, (share - done) * u.seconds, u.use), 1 / buckets);
            done = share;
            sent++;
        }
        if (done < 1) compute_as(p, (1 - done) * u.seconds, u.use);
        at += u.elements;
    }
    send(p, ROOT_REDUCE, now(p), 1 - sent / buckets);
    join(p);
}

/* The same with no wait but for the last piece, `last_frac` of all. */
static void backward_in_pieces(struct program *p, double last_frac) {
    send(p, ROOT_REDUCE, now(p), 1 - last_frac);
    compute_units(p, DL_BACKWARDS);
    send(p, ROOT_REDUCE, now(p), last_frac);
    join(p);
}

static void reduce_behind(struct program *p) {
    if (!p->fluid)
        backward_with_buckets(p);
    else
        backward_in_pieces(p, p->in->mapping->bound ? 0 : 1 / p->in->mapping->buckets);
}

/* Stage 3 gathers a layer while the one before it computes, unless the plan says otherwise. */
static bool prefetches(const struct program *p) {
    return p->in->tf->input.settings.overlap_param_gather != DL_SWITCH_OFF;
}

static void gather_layers(struct program *p) {
    const struct dl_transformer_stage *stage = p->in->stage;
    const double layers = stage->part_count[DL_TRANSFORMER_BODY];
    const struct dl_instant begin = now(p), root = send(p, ROOT_GATHER, begin, 1);
    if (p->fluid) {
        send(p, UNIT_GATHER, begin, stage->part_count[DL_TRANSFORMER_BODY]);
        compute_units(p, DL_FORWARDS);
        join(p);
        return;
    }
    wait_for(p, root);
    struct dl_instant gathered = send(p, UNIT_GATHER, now(p), fmin(layers, 1));
    compute(p, DL_TRANSFORMER_BEFORE, DL_FORWARDS, stage->part_count[DL_TRANSFORMER_BEFORE]);
    for (double left = layers; left > 0; left--) {
        wait_for(p, gathered);
        if (left > 1 && prefetches(p)) gathered = send(p, UNIT_GATHER, now(p), fmin(left - 1, 1));
        compute(p, DL_TRANSFORMER_BODY, DL_FORWARDS, fmin(left, 1));
        if (left > 1 && !prefetches(p)) gathered = send(p, UNIT_GATHER, now(p), fmin(left - 1, 1));
    }
    compute(p, DL_TRANSFORMER_AFTER, DL_FORWARDS, stage->part_count[DL_TRANSFORMER_AFTER]);
}

static void reduce_layers(struct program *p) {
    const struct dl_transformer_stage *stage = p->in->stage;
    const double layers = stage->part_count[DL_TRANSFORMER_BODY];
    const struct dl_instant begin = now(p);
    if (p->fluid) {
        send(p, UNIT_GATHER, begin, fmax(0, layers - 1));
        send(p, UNIT_REDUCE, begin, layers);
        send(p, UNIT_ACROSS, begin, layers);
        send(p, ROOT_REDUCE, begin, 1);
        compute_units(p, DL_BACKWARDS);
        join(p);
        return;
    }
    struct dl_instant gathered =
        compute(p, DL_TRANSFORMER_AFTER, DL_BACKWARDS, stage->part_count[DL_TRANSFORMER_AFTER]);
    for (double left = layers; left > 0; left--) {
        const double times = fmin(left, 1);
        wait_for(p, gathered);
        if (left > 1 && prefetches(p)) gathered = send(p, UNIT_GATHER, now(p), fmin(left - 1, 1));
        const struct dl_instant end = compute(p, DL_TRANSFORMER_BODY, DL_BACKWARDS, times);
        if (left > 1 && !prefetches(p)) gathered = send(p, UNIT_GATHER, end, fmin(left - 1, 1));
        send(p, UNIT_REDUCE, end, times);
        if (p->messages[UNIT_ACROSS].duration_s > 0) send(p, UNIT_ACROSS, end, times);
    }
    compute(p, DL_TRANSFORMER_BEFORE, DL_BACKWARDS, stage->part_count[DL_TRANSFORMER_BEFORE]);
    send(p, ROOT_REDUCE, now(p), 1);
    join(p);
}

/* One micro-batch both ways, where each synchronizes. */
static void run_pass(struct program *p, enum dl_direction way) {
    const int shard = p->in->mapping->shard;
    if (shard == 3 && way == DL_FORWARDS)
        gather_layers(p);
    else if (shard == 3)
        reduce_layers(p);
    else if (way == DL_BACKWARDS)
        reduce_behind(p);
    else
        compute_units(p, way);
}

static bool synchronizes_each(const struct dl_transformer_program *in) {
    return in->mapping->replicas > 1 && dl_transformer_sums_each(in->tf, in->mapping, in->choice);
}

void dl_transformer_run_passes(const struct dl_transformer_program *in,
                               struct dl_transformer_stage *stage) {
    struct program p;
    stage->exposed_s[DL_FORWARDS] = stage->exposed_s[DL_BACKWARDS] = 0;
    if (!synchronizes_each(in)) return;
    begin(&p, in, 1);
    run_pass(&p, DL_FORWARDS);
    stage->exposed_s[DL_FORWARDS] = p.exposed.s + slowdown_s(&p);
    run_pass(&p, DL_BACKWARDS);
    stage->exposed_s[DL_BACKWARDS] = p.exposed.s + slowdown_s(&p) - stage->exposed_s[DL_FORWARDS];
    finish(&p);
}

/* Passes that a micro-batch takes with those of others between its parts. */
static double window_of(const struct program *p) {
    return (1 + (p->parts - 1) * (double)p->in->mapping->split.pp) / p->parts;
}

/* What the tasks leave of an iteration. */
struct rest {
    double seconds;
    struct dl_resource_use use;
};

static void add_rest(const struct dl_transformer_program *in, enum dl_direction way, double times,
                     struct rest *out) {
    out->seconds += times * dl_transformer_pass_s(in->stage, way);
    for (int p = 0; p < DL_TRANSFORMER_PARTS && in->uses != NULL; p++)
        dl_resource_share(&in->uses->of[p][way],
                          times * in->stage->part_count[p] * in->stage->seconds[p][way],
                          DL_ON_ARITHMETIC, &out->use);
}

/* But for rounding errors. */
static void compute_rest(struct program *p, const struct rest *rest) {
    const double pass_s = dl_transformer_pass_s(p->in->stage, DL_BACKWARDS);
    if (rest->seconds > 1e-9 * pass_s) compute_as(p, rest->seconds, &rest->use);
}

/* F-FW-IDEAL: sums and the parameters that they update move behind the backward pass and the next
 * forward pass; what comes before the layers is ready last and wanted first. */
static void run_bound(struct program *p) {
    const double last = p->in->mapping->last_frac;
    const bool gathers = p->in->mapping->shard == 1;
    send(p, ROOT_REDUCE, now(p), 1 - last);
    if (gathers) send(p, ROOT_GATHER, now(p), 1 - last);
    compute_units(p, DL_BACKWARDS);
    compute_units(p, DL_FORWARDS);
    send(p, ROOT_REDUCE, now(p), last);
    if (gathers) send(p, ROOT_GATHER, now(p), last);
    join(p);
}

/* Parameters after the update. */
static void gather_behind(struct program *p) {
    const struct dl_transformer *tf = p->in->tf;
    const struct dl_transformer_mapping *mapping = p->in->mapping;
    const bool overlaps = mapping->bound || (tf->framework->transformer.overlaps_gather &&
                                             !tf->input.blocking_launches),
               behind = p->behind;
    const double first = mapping->bound ? 0 : 1 / mapping->buckets;
    p->behind = overlaps;
    if (!overlaps) {
        send(p, ROOT_GATHER, now(p), 1);
        compute_units(p, DL_FORWARDS);
    } else if (mapping->bound || p->in->least) {
        wait_for(p, send(p, ROOT_GATHER, now(p), first));
        send(p, ROOT_GATHER, now(p), 1 - first);
        compute_units(p, DL_FORWARDS);
        join(p);
    } else {
        forward_with_buckets(p);
    }
    p->behind = behind;
}

/* Micro-batches that synchronize, but the first one, which has tasks of its own. */
static void repeat(const struct dl_transformer_program *in, struct rest *rest,
                   struct dl_transformer_run *out) {
    const double more = in->choice->micro_batches - 1;
    struct dl_resource_use path = {{0}};
    struct program p;
    if (!(more > 0)) return;
    begin(&p, in, 1);
    run_pass(&p, DL_FORWARDS);
    run_pass(&p, DL_BACKWARDS);
    rest->seconds += more * now(&p).s;
    if (in->uses != NULL) dl_run_path(&p.run, now(&p).task, now(&p).s, false, &path);
    dl_resource_add(&rest->use, &path, more);
    out->exposed.s += more * p.exposed.s;
    out->exposed.error_s += more * p.exposed.error_s;
    out->slowdown_s += more * slowdown_s(&p);
    finish(&p);
}

/* The first micro-batch, with parameters after the update, and the others. */
static void run_synchronizing(struct program *p, struct rest *rest,
                              struct dl_transformer_run *out) {
    const bool gathers = p->in->mapping->shard == 2;
    const double passes = window_of(p);
    if (gathers) { /* passes of other micro-batches between its parts */
        gather_behind(p);
        add_rest(p->in, DL_FORWARDS, 1 - passes, rest);
    }
    p->parts = 1;
    if (!gathers) run_pass(p, DL_FORWARDS);
    run_pass(p, DL_BACKWARDS);
    repeat(p->in, rest, out);
    compute_rest(p, rest);
}

/* Sums after the last micro-batch, parameters before the first. */
static void run_once(struct program *p, struct rest *rest) {
    const struct dl_transformer_mapping *mapping = p->in->mapping;
    const double left = p->in->choice->micro_batches - window_of(p);
    const bool alone = mapping->replicas <= 1;
    add_rest(p->in, DL_FORWARDS, left, rest);
    add_rest(p->in, DL_BACKWARDS, left, rest);
    if (mapping->bound && !alone) {
        compute_rest(p, rest);
        run_bound(p);
        return;
    }
    if (mapping->shard > 0 && !alone)
        gather_behind(p);
    else
        compute_units(p, DL_FORWARDS);
    compute_rest(p, rest);
    if (alone)
        compute_units(p, DL_BACKWARDS);
    else
        reduce_behind(p);
}

/* The part and direction whose seconds the task has; false: other micro-batches. */
static bool find_part(const struct dl_transformer_uses *uses, const void *of,
                      struct dl_transformer_span *out) {
    for (int i = 0; i < DL_TRANSFORMER_PARTS * DL_DIRECTIONS; i++) {
        const int part = i / DL_DIRECTIONS, way = i % DL_DIRECTIONS;
        if (of != &uses->of[part][way]) continue;
        out->part = part;
        out->way = (enum dl_direction)way;
        return true;
    }
    return false;
}

static void keep_spans(const struct program *p, struct dl_transformer_run *out) {
    const struct dl_transformer_program *in = p->in;
    out->spans = dl_arena_alloc(in->arena, (size_t)p->run.count, sizeof *out->spans);
    for (int i = 0; i < p->run.count; i++) {
        const struct dl_task *task = &p->run.tasks[i];
        const double seconds = task->end_s - task->start_s;
        struct dl_transformer_span *span = &out->spans[out->span_count++];
        *span = (struct dl_transformer_span){
            .critical = task->critical, .start_s = task->start_s, .end_s = task->end_s};
        span->is_message = task->kind == DL_TASK_MESSAGE;
        if (span->is_message) {
            span->message = *(const struct dl_message *)task->of;
            span->message.bytes *= seconds > 0 ? seconds / span->message.duration_s : 0;
        } else {
            span->rest = !find_part(in->uses, task->of, span);
        }
    }
}

void dl_transformer_run_iteration(const struct dl_transformer_program *in,
                                  struct dl_transformer_run *out) {
    const struct dl_transformer_choice *choice = in->choice;
    struct rest rest = {0};
    struct program p;
    *out = (struct dl_transformer_run){0};
    begin(&p, in, dl_schedules[choice->schedule]->in_groups ? (double)choice->virtual_stages : 1);
    if (synchronizes_each(in))
        run_synchronizing(&p, &rest, out);
    else
        run_once(&p, &rest);
    out->exposed.s += p.exposed.s;
    out->exposed.error_s += p.exposed.error_s;
    out->slowdown_s += slowdown_s(&p);
    if (in->uses != NULL) dl_run_path(&p.run, now(&p).task, now(&p).s, false, &out->path);
    if (in->arena != NULL) keep_spans(&p, out);
    finish(&p);
}
