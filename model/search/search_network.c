/* search_network.c - plans of networks that are no stack of equal layers, convolutional ones above
 * all: data parallelism, parts of each image, of the filters, of the channels, consecutive layers,
 * and their products with data parallelism over p1 x p2 devices.
 *
 * The p2 devices that share a replica are neighbours: they fill a node (p2 at most its devices) or
 * span nodes. Data parallelism tries every micro-batch whose gradients add up; pipelines, by far
 * the most, every micro-batch, schedule and 2 to DL_SEARCH_VIRTUAL virtual stages. Both share the
 * costs of the layers at each size of micro-batch. A task is all pipelines with one size: those
 * that may be kept (F-SEARCH-BOUND) come from tables (search_pipes.h). Splits within layers share
 * nothing, each has shapes of its own. They and data parallelism are predicted (dl_predict), until
 * it is sure that they are not kept.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine/pipe.h"
#include "model/engine/pipeline.h"
#include "model/engine/schedule.h"
#include "model/engine/strategies/strategy.h"
#include "model/search/search_pipes.h"
#include "model/framework/capabilities.h"

/* Data parallelism comes first: it alone serves a stack that no framework splits. */
static const enum dl_partitioning ways[] = {DL_PARTITION_DATA, DL_PARTITION_SPATIAL,
                                            DL_PARTITION_FILTER, DL_PARTITION_CHANNEL,
                                            DL_PARTITION_STAGES};
enum { WAYS = sizeof ways / sizeof ways[0] };

bool dl_search_serves_network(const struct dl_strategy *strategy) {
    for (int i = 0; strategy != NULL && i < WAYS; i++) {
        if (strategy->partitioning == ways[i]) return true;
    }
    return false;
}

/* The strategy that splits one replica, or each of several, that way. */
static const struct dl_strategy *strategy_of(enum dl_partitioning way, bool replicas) {
    const struct dl_strategy *const *s = dl_strategies;
    for (; *s != NULL; s++) {
        const bool replicated = ((*s)->axes & DL_AXIS_DP) != 0;
        if ((*s)->partitioning == way && (way == DL_PARTITION_DATA || replicated == replicas))
            break;
    }
    return *s;
}

static struct dl_transformer_split split_of(const struct dl_search *s, enum dl_partitioning way,
                                            int64_t nodes, int64_t parts, int64_t replicas) {
    struct dl_transformer_split split = {.tp = 1,
                                         .sp = 1,
                                         .ep = 1,
                                         .pp = 1,
                                         .dp = replicas,
                                         .nodes = nodes,
                                         .devices_per_node = s->request.fixed.devices_per_node,
                                         .mapping = s->request.fixed.mapping};
    if (way == DL_PARTITION_SPATIAL) split.sp = parts;
    if (way == DL_PARTITION_FILTER || way == DL_PARTITION_CHANNEL) split.tp = parts;
    if (way == DL_PARTITION_STAGES) split.pp = parts;
    return split;
}

static bool as_given(const struct dl_plan *fixed, const struct dl_transformer_split *split) {
    return (fixed->tp <= 0 || fixed->tp == split->tp) &&
           (fixed->sp <= 0 || fixed->sp == split->sp) &&
           (fixed->pp <= 0 || fixed->pp == split->pp) &&
           (fixed->dp <= 0 || fixed->dp == split->dp) && fixed->ep <= 1;
}

void dl_search_network_tasks(struct dl_search *s, int64_t nodes) {
    const struct dl_plan *fixed = &s->request.fixed;
    const int64_t devices = nodes * fixed->devices_per_node,
                  batch = (int64_t)fixed->global_batch_samples;
    struct dl_search_divisors ranks;
    if ((fixed->strategy != NULL && !dl_search_serves_network(fixed->strategy)) ||
        (devices > 1 && ((!s->request.any_shard && fixed->shard > 0) || fixed->shard_group > 0))) {
        return;
    }
    dl_search_list_divisors(devices, 0, &ranks);
    /* A framework that splits no stack replicates one, unless another strategy is asked for. */
    const bool replicates =
        fixed->strategy == NULL && fixed->pp <= 1 && dl_transformer_is_stack(s->request.workload);
    for (int w = 0; w < (replicates ? 1 : WAYS); w++) {
        const enum dl_partitioning way = ways[w];
        for (int i = 0; i < ranks.count; i++) {
            const int64_t parts = ranks.value[i], replicas = devices / parts;
            const struct dl_transformer_split split = split_of(s, way, nodes, parts, replicas);
            const struct dl_strategy *strategy = strategy_of(way, replicas > 1);
            if ((way == DL_PARTITION_DATA) != (parts == 1) || !as_given(fixed, &split)) continue;
            if (fixed->strategy != NULL && (way != fixed->strategy->partitioning ||
                                            (strategy->axes & ~fixed->strategy->axes) != 0))
                continue;
            if (batch % replicas != 0) {
                s->rejected_count[DL_NOT_BATCH]++;
                continue;
            }
            const struct dl_search_task task = {
                .split = split, .order = s->listed++, .strategy = strategy, .micro = -1};
            dl_search_add_task(s, way == DL_PARTITION_STAGES ? &s->pipelines : &s->tasks, &task);
        }
    }
}

/* One plan: refused, slower than what is kept, or evaluated. cost: of its layers; NULL: not known.
 */
static enum dl_code try_plan(const struct dl_search *s, const struct dl_search_candidate *wanted,
                             const struct dl_cost *cost, struct dl_search_worker *w,
                             struct dl_err *err) {
    struct dl_arena scratch = {0};
    struct dl_prediction p;
    struct dl_search_candidate found = *wanted;
    const struct dl_plan plan = dl_search_plan(s, &found);
    const double limit_s = dl_search_limit_s(s, w, &found.split);
    const struct dl_predict_options options = {
        .brief = true, .cost = cost, .limit_s = isinf(limit_s) ? 0 : limit_s};
    enum dl_code code = dl_predict(&(struct dl_predict_request){.system = s->request.system,
                                                                .workload = s->request.workload,
                                                                .framework = s->request.framework,
                                                                .plan = &plan,
                                                                .options = &options,
                                                                .arena = &scratch},
                                   &p, err);
    dl_arena_free(&scratch);
    if (code == DL_ERR_USAGE) { /* scaling limits: more parts than a layer has */
        w->rejected_count[DL_NOT_PARTS]++;
        return DL_OK;
    }
    if (code != DL_OK) return code;
    if (p.beyond_limit) {
        w->rejected_count[DL_NOT_FASTER]++;
        return DL_OK;
    }
    found.iteration_s = p.iteration_s;
    found.memory_bytes = p.memory.total_bytes;
    dl_search_consider(s, w, &found);
    return DL_OK;
}

/* Every micro-batch of a task, from the first order on. */
static struct dl_search_candidate first_of(const struct dl_search *s,
                                           const struct dl_search_task *task) {
    const struct dl_search_request *r = &s->request;
    struct dl_search_candidate found = {
        .split = task->split, .strategy = task->strategy, .order = task->order * 1000000};
    found.choice = (struct dl_transformer_choice){
        .micro_batches = 1,
        .schedule = r->fixed.schedule,
        .virtual_stages = 1,
        .recompute = r->fixed.recompute_open ? DL_RECOMPUTE_NONE : r->fixed.recompute};
    return found;
}

static bool takes(const struct dl_search *s, int64_t share, int micro) {
    const double given = s->request.fixed.micro_batch_samples;
    return share % s->batches.value[micro] == 0 &&
           (given <= 0 || (double)s->batches.value[micro] == given);
}

/* The plan with its schedule; false where it cannot be. checked: but for the schedule; NULL: it
 * cannot be with any. */
static bool scheduled(const struct dl_search *s, const struct dl_plan *checked,
                      const struct dl_search_candidate *found, struct dl_plan *out) {
    if (checked == NULL) return false;
    *out = *checked;
    out->schedule = found->choice.schedule;
    out->virtual_stages =
        dl_schedules[out->schedule]->most_parts > 1 ? found->choice.virtual_stages : 0;
    return out->strategy->check(s->request.system, s->request.workload, s->request.framework, out,
                                NULL) == DL_OK;
}

/* Pipelines with one size of micro-batch that may be kept. */
struct candidate {
    struct dl_search_candidate found;
    struct dl_plan plan;
};
struct candidates {
    const struct dl_search *s;
    struct dl_search_worker *worker;
    struct dl_arena arena;
    struct candidate *items;
    int count;
};

static void add_candidate(struct candidates *c, const struct dl_search_candidate *found,
                          const struct dl_plan *plan) {
    c->items = dl_arena_grow(&c->arena, c->items, (size_t)c->count, sizeof *c->items);
    c->items[c->count++] = (struct candidate){*found, *plan};
}

/* Schedules of the search, with their virtual stages; room for SCHEDULES. Returns how many. */
enum { SCHEDULES = DL_SCHEDULES * DL_SEARCH_VIRTUAL };
static int list_schedules(const struct dl_search_request *r, struct dl_transformer_choice *out) {
    int count = 0;
    for (int i = 0; i < DL_SCHEDULES; i++) {
        const struct dl_schedule_row *row = dl_schedules[i];
        if (!dl_search_tries_schedule(r, (enum dl_schedule)i)) continue;
        for (int64_t v = row->least_parts; v <= row->most_parts && v <= DL_SEARCH_VIRTUAL; v++) {
            if (row->most_parts > 1 && r->fixed.virtual_stages > 0 && v != r->fixed.virtual_stages)
                continue;
            out[count++] = (struct dl_transformer_choice){.schedule = (enum dl_schedule)i,
                                                          .virtual_stages = v};
        }
    }
    return count;
}

/* F-SEARCH-BOUND: no pipeline takes less. Its slowest device computes at least the mean of all, and
 * (but for the bound) no less than the longest layer, for each micro-batch; the first and the last
 * one pass the others. */
static double pipeline_least_s(const struct dl_search_micro *micro, bool bound,
                               const struct dl_search_candidate *found) {
    const double batches = found->choice.micro_batches, stages = (double)found->split.pp,
                 longest_s = bound ? 0 : micro->longest_s,
                 busy_s = batches * fmax(micro->step_s / stages, longest_s);
    if (!dl_schedule_waits(found->choice.schedule)) return busy_s;
    return fmax(busy_s, dl_pipeline_least_of_any_s(micro->step_s, stages,
                                                   (double)found->choice.virtual_stages, batches));
}

/* Every schedule of one pipeline: refused, slower than what is kept, or a candidate. */
static enum dl_code list_pipeline(struct candidates *c, const struct dl_search_micro *micro,
                                  struct dl_search_candidate *found, struct dl_err *err) {
    const struct dl_search_request *r = &c->s->request;
    struct dl_transformer_choice schedules[SCHEDULES];
    const int count = list_schedules(r, schedules);
    const double limit_s = dl_search_limit_s(c->s, c->worker, &found->split);
    struct dl_plan plan, checked = dl_search_plan(c->s, found);
    checked.schedule = DL_1F1B, checked.virtual_stages = 0;
    const enum dl_code code =
        dl_plan_complete(r->system, r->workload, r->framework, &checked, NULL);
    if (code != DL_OK && code != DL_ERR_USAGE)
        return dl_plan_complete(r->system, r->workload, r->framework, &checked, err);
    for (int i = 0; i < count; i++) {
        found->choice.schedule = schedules[i].schedule;
        found->choice.virtual_stages = schedules[i].virtual_stages;
        found->order++;
        /* scaling limits: more parts than there are layers */
        if (!scheduled(c->s, code == DL_OK ? &checked : NULL, found, &plan))
            c->worker->rejected_count[DL_NOT_PARTS]++;
        else if (dl_search_is_beyond(
                     pipeline_least_s(micro, dl_framework_is_bound(r->framework), found), limit_s))
            c->worker->rejected_count[DL_NOT_FASTER]++;
        else
            add_candidate(c, found, &plan);
    }
    return DL_OK;
}

/* Of all micro-batches that an arrangement takes the ones before this one. */
static int64_t taken_before(const struct dl_search *s, int64_t share, int micro) {
    int64_t count = 0;
    for (int m = 0; m < micro; m++) count += takes(s, share, m);
    return count;
}

static enum dl_code list_pipelines(struct candidates *c, int micro, struct dl_err *err) {
    const struct dl_search *s = c->s;
    struct dl_transformer_choice schedules[SCHEDULES];
    const int64_t each = 1 + list_schedules(&s->request, schedules);
    for (int64_t i = 0; i < s->pipelines.count; i++) {
        const struct dl_search_task *task = &s->pipelines.items[i];
        const int64_t share = (int64_t)s->request.fixed.global_batch_samples / task->split.dp;
        if (!takes(s, share, micro)) continue;
        struct dl_search_candidate found = first_of(s, task);
        const int64_t micro_batches = share / s->batches.value[micro]; /* divides */
        found.order += each * taken_before(s, share, micro) + 1;
        found.micro_samples = (double)s->batches.value[micro];
        found.choice.micro_batches = (double)micro_batches;
        DL_TRY(list_pipeline(c, &s->micros[micro], &found, err));
    }
    return DL_OK;
}

static enum dl_code try_pipelines(struct candidates *c, int micro, struct dl_err *err) {
    struct dl_search_pipes *pipes;
    DL_TRY(list_pipelines(c, micro, err));
    if (c->count == 0) return DL_OK;
    DL_TRY(dl_search_pipes_new(c->s, micro, &c->arena, &pipes, err));
    for (int i = 0; i < c->count; i++) dl_search_pipes_want(pipes, &c->items[i].plan);
    dl_search_pipes_make(pipes);
    for (int i = 0; i < c->count; i++) {
        struct dl_search_candidate *found = &c->items[i].found;
        const double limit_s = dl_search_limit_s(c->s, c->worker, &found->split);
        DL_TRY(dl_search_pipes_evaluate(pipes, &c->items[i].plan, limit_s, &found->iteration_s,
                                        &found->memory_bytes, err));
        if (dl_search_is_beyond(found->iteration_s, limit_s))
            c->worker->rejected_count[DL_NOT_FASTER]++;
        else
            dl_search_consider(c->s, c->worker, found);
    }
    return DL_OK;
}

/* All pipelines with one size of micro-batch. */
static enum dl_code run_pipelines(const struct dl_search *s, int micro, struct dl_search_worker *w,
                                  struct dl_err *err) {
    struct candidates c = {.s = s, .worker = w};
    const enum dl_code code = try_pipelines(&c, micro, err);
    dl_arena_free(&c.arena);
    return code;
}

/* What is shared before splits within layers, which share nothing; of each the most devices first,
 * which mostly are the fastest: found early, they let the others be left out. What is found does
 * not depend on it. */
static int promising_first(const void *a, const void *b) {
    const struct dl_search_task *one = a, *two = b;
    const int64_t first[] = {one->strategy != NULL &&
                                 dl_partitions_layers(one->strategy->partitioning),
                             one->micro, -one->split.nodes, one->order},
                  second[] = {two->strategy != NULL &&
                                  dl_partitions_layers(two->strategy->partitioning),
                              two->micro, -two->split.nodes, two->order};
    for (int i = 0; i < 4; i++)
        if (first[i] != second[i]) return first[i] > second[i] ? 1 : -1;
    return 0;
}

static void sort(struct dl_search_tasks *tasks) {
    if (tasks->count > 0)
        qsort(tasks->items, (size_t)tasks->count, sizeof *tasks->items, promising_first);
}

/* Whether an arrangement in the list takes a micro-batch. */
static bool any_takes(const struct dl_search *s, const struct dl_search_tasks *tasks,
                      enum dl_partitioning way, int micro) {
    for (int64_t i = 0; i < tasks->count; i++) {
        const struct dl_search_task *task = &tasks->items[i];
        if (task->strategy == NULL || task->strategy->partitioning != way) continue;
        const int64_t share = (int64_t)s->request.fixed.global_batch_samples / task->split.dp;
        if (takes(s, share, micro)) return true;
    }
    return false;
}

void dl_search_network_share(struct dl_search *s) {
    const size_t layers = (size_t)s->request.workload->layer_count;
    s->micros = dl_arena_alloc(s->arena, (size_t)s->batches.count, sizeof *s->micros);
    s->cut_elements = dl_arena_alloc(s->arena, layers + 1, sizeof *s->cut_elements);
    for (int m = 0; m < s->batches.count; m++) {
        struct dl_search_micro *micro = &s->micros[m];
        const bool pipelines = any_takes(s, &s->pipelines, DL_PARTITION_STAGES, m);
        micro->wanted = pipelines || any_takes(s, &s->tasks, DL_PARTITION_DATA, m);
        if (!micro->wanted) continue;
        micro->cost.layers = dl_arena_alloc(s->arena, layers, sizeof *micro->cost.layers);
        const struct dl_search_task task = {.strategy = strategy_of(DL_PARTITION_STAGES, true),
                                            .micro = m};
        if (pipelines) dl_search_add_task(s, &s->tasks, &task);
    }
    if (s->pipelines.count > 0) dl_pipeline_cuts(s->request.workload, s->cut_elements);
    sort(&s->pipelines);
    sort(&s->tasks);
}

int64_t dl_search_network_cost_count(const struct dl_search *s) {
    return s->micros != NULL ? s->batches.count : 0;
}

struct dl_plan dl_search_micro_plan(const struct dl_search *s, double micro_samples) {
    struct dl_plan plan = s->request.fixed;
    plan.micro_batch_samples = micro_samples;
    if (plan.recompute_open) plan.recompute = DL_RECOMPUTE_NONE;
    return plan;
}

enum dl_code dl_search_network_make_cost(struct dl_search *s, int64_t micro, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    struct dl_search_micro *own = &s->micros[micro];
    const double samples = (double)s->batches.value[micro];
    const struct dl_plan plan = dl_search_micro_plan(s, samples);
    const struct dl_predict_request request = {
        .system = r->system, .workload = r->workload, .framework = r->framework, .plan = &plan};
    struct dl_arena scratch = {0};
    const int layers = r->workload->layer_count;
    if (!own->wanted) return DL_OK;
    const enum dl_code code = dl_cost_fill(
        &(struct dl_cost_request){r->system->device, r->workload, r->framework, &plan, samples},
        &scratch, &own->cost, err);
    dl_arena_free(&scratch);
    if (code != DL_OK) return code;
    own->step_s = dl_pipe_step_s(&request, &own->cost, 0, layers);
    for (int i = 0; i < layers; i++)
        own->longest_s = fmax(own->longest_s, dl_pipe_step_s(&request, &own->cost, i, i + 1));
    return DL_OK;
}

static enum dl_code run_data(const struct dl_search *s, const struct dl_search_task *task,
                             struct dl_search_worker *w, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    const int64_t share = (int64_t)r->fixed.global_batch_samples / task->split.dp;
    const bool open = r->fixed.recompute_open && dl_known(r->workload->transformer_layers);
    struct dl_search_candidate found = first_of(s, task);
    for (int m = 0; m < s->batches.count; m++) {
        const int64_t b = s->batches.value[m];
        if (!takes(s, share, m)) continue;
        found.micro_samples = b == share ? 0 : (double)b; /* the batch of a device at once */
        const int64_t micro_batches = share / b;          /* divides */
        found.choice.micro_batches = (double)micro_batches;
        for (int mode = DL_RECOMPUTE_NONE; mode <= (open ? DL_RECOMPUTE_FULL : 0); mode++) {
            found.order++;
            if (open) found.choice.recompute = (enum dl_recompute)mode;
            const bool shared = !open || mode == DL_RECOMPUTE_NONE;
            DL_TRY(try_plan(s, &found, shared ? &s->micros[m].cost : NULL, w, err));
        }
    }
    return DL_OK;
}

enum dl_code dl_search_network_run(const struct dl_search *s, const struct dl_search_task *task,
                                   struct dl_search_worker *w, struct dl_err *err) {
    if (task->micro >= 0) return run_pipelines(s, task->micro, w, err);
    if (task->strategy->partitioning == DL_PARTITION_DATA) return run_data(s, task, w, err);
    struct dl_search_candidate found = first_of(s, task);
    found.order++;
    return s->request.fixed.micro_batch_samples > 0 ? DL_OK : try_plan(s, &found, NULL, w, err);
}
