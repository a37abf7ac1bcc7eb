/* search.c - evaluates the plans of a transformer that search_list.c lists. See search.h. */
#include "model/search/search_internal.h"

#include <math.h>

#include "model/engine/strategies/strategy.h"
#include "model/framework/workspace.h"
#include "model/framework/capabilities.h"

/* Places in the enumeration of one combination of settings. */
#define VARIANT_ORDERS ((int64_t)1 << 50)

static int64_t costs_of(const struct dl_search *s) {
    return s->cost_count + dl_search_network_cost_count(s);
}
int64_t dl_search_cost_count(const struct dl_search *search) {
    int64_t count = 0;
    for (int i = 0; i < search->variant_count; i++) count += costs_of(search->variants[i]);
    return count;
}
int64_t dl_search_tasks(const struct dl_search *search) {
    int64_t count = 0;
    for (int i = 0; i < search->variant_count; i++) count += search->variants[i]->tasks.count;
    return count;
}

/* Activations of one layer with full recomputation: no plan with this micro-batch keeps less. */
static double least_kept_bytes(const struct dl_search *s, const struct dl_transformer_split *split,
                               double micro) {
    const double share = split->sequence_parallel ? (double)split->tp : 1;
    return micro * s->tf.tokens / (double)split->sp * s->tf.hidden *
           dl_precision_bytes(s->tf.precision) / share;
}

static enum dl_code make_cost(struct dl_search *s, int64_t index, struct dl_err *err) {
    if (index >= s->cost_count) return dl_search_network_make_cost(s, index - s->cost_count, err);
    struct dl_transformer_micro_batch *micro_batch = s->costs[s->wanted[index]];
    const struct dl_transformer_split split = micro_batch->split;
    const double micro = micro_batch->micro_samples;
    /* not where the capacity is unknown */
    if (!s->request.every && least_kept_bytes(s, &split, micro) > s->capacity_bytes) {
        micro_batch->micro_samples = 0; /* never needed */
        return DL_OK;
    }
    return dl_transformer_micro_batch_make(&s->tf, &split, micro, micro_batch, err);
}

enum dl_code dl_search_make_cost(struct dl_search *search, int64_t index, struct dl_err *err) {
    int i = 0;
    for (; index >= costs_of(search->variants[i]); i++) index -= costs_of(search->variants[i]);
    return make_cost(search->variants[i], index, err);
}

double dl_search_score(const struct dl_search_request *r, const struct dl_search_candidate *f) {
    const double devices = (double)(f->split.nodes * f->split.devices_per_node),
                 nodes = (double)f->split.nodes;
    switch (r->objective) {
    case DL_BY_MEMORY: return f->memory_bytes;
    case DL_BY_DEVICES: return devices;
    case DL_BY_ENERGY: return devices * r->device_w * f->iteration_s;
    case DL_BY_COST: return nodes * r->node_price_per_hour / 3600 * f->iteration_s;
    default: return f->iteration_s; /* the global batch is one: throughput is its inverse */
    }
}

bool dl_search_bounds_time(const struct dl_search *s) {
    const struct dl_search_request *r = &s->request;
    return !r->every && !r->front && r->objective != DL_BY_MEMORY && r->objective != DL_BY_DEVICES;
}

double dl_search_limit_s(const struct dl_search *s, const struct dl_search_worker *w,
                         const struct dl_transformer_split *split) {
    if (!dl_search_bounds_time(s)) return INFINITY;
    const struct dl_search_candidate second = {.split = *split, .iteration_s = 1};
    return dl_search_worst_score(&s->request, w) / dl_search_score(&s->request, &second);
}

/* A part in 10^9 more, so that sums in another order decide alike. */
bool dl_search_is_beyond(double least_s, double limit_s) { return least_s > limit_s * (1 + 1e-9); }

bool dl_search_tries_schedule(const struct dl_search_request *r, enum dl_schedule schedule) {
    if (!r->any_schedule) return schedule == r->fixed.schedule;
    return !dl_schedules[schedule]->asynchronous &&
           dl_framework_has_schedule(r->framework, schedule);
}

struct combination {
    const struct dl_search *s;
    const struct dl_search_task *task;
    struct dl_search_worker *w;
    int64_t order;
    struct dl_search_divisors virtual_stages; /* that interleaving can cut a stage into */
};

/* Numbers of virtual stages (2 or more) that a stage of the task can have. */
static void list_virtual_stages(struct combination *c) {
    const struct dl_search_request *r = &c->s->request;
    const int64_t pp = c->task->split.pp, given = r->fixed.virtual_stages;
    const bool interleaves = r->any_schedule || dl_schedules[r->fixed.schedule]->most_parts > 1;
    c->virtual_stages.count = 0;
    if (pp == 1 || !interleaves) return;
    for (int64_t v = 2; (double)(v - 1) * (double)pp < c->s->tf.stack; v++) {
        if (given > 0 && v != given) continue;
        if (!dl_transformer_takes_stages(&c->s->tf, pp, v)) continue;
        if (c->virtual_stages.count < DL_SEARCH_DIVISORS)
            c->virtual_stages.value[c->virtual_stages.count++] = v;
    }
}

static bool fits(const struct dl_search *s, double memory_bytes) {
    return !dl_known(s->capacity_bytes) || memory_bytes <= s->capacity_bytes;
}

void dl_search_consider(const struct dl_search *s, struct dl_search_worker *w,
                        struct dl_search_candidate *found) {
    const struct dl_search_request *r = &s->request;
    w->evaluated_count++;
    found->variant = s->variant;
    found->order += s->variant * VARIANT_ORDERS;
    found->fits = fits(s, found->memory_bytes);
    if (!found->fits) {
        w->rejected_count[DL_NOT_MEMORY]++;
        if (!w->has_nearest || found->memory_bytes < w->nearest.memory_bytes) w->nearest = *found;
        w->has_nearest = true;
        return;
    }
    if (r->iteration_limit_s > 0 && found->iteration_s > r->iteration_limit_s) {
        w->rejected_count[DL_NOT_DEADLINE]++;
        return;
    }
    w->feasible_count++;
    found->score = dl_search_score(r, found);
    dl_search_keep(r, w, found);
}

static void try_plan(struct combination *c, const struct dl_transformer_mapping *mapping,
                     const struct dl_transformer_micro_batch *micro_batch,
                     const struct dl_collective_time *boundary,
                     const struct dl_transformer_choice *choice) {
    struct dl_transformer_result result;
    const double limit_s = dl_search_limit_s(c->s, c->w, &mapping->split);
    c->order++;
    dl_transformer_least(&c->s->tf, mapping, micro_batch, boundary, choice, &result);
    const bool may_be_kept = fits(c->s, result.memory.total_bytes);
    if (!dl_transformer_fits_host(&c->s->tf, mapping, micro_batch, choice)) {
        c->w->rejected_count[DL_NOT_HOST]++;
        return;
    }
    if (may_be_kept && dl_search_is_beyond(result.iteration.iteration_s, limit_s)) {
        c->w->rejected_count[DL_NOT_FASTER]++;
        return;
    }
    if ((mapping->split.pp > 1 || mapping->replicas > 1) && may_be_kept)
        dl_transformer_evaluate(&c->s->tf, mapping, micro_batch, boundary, choice, &result);
    struct dl_search_candidate found = {.split = mapping->split,
                                        .choice = *choice,
                                        .micro_samples = micro_batch->micro_samples,
                                        .shard = mapping->asked_shard,
                                        .iteration_s = result.iteration.iteration_s,
                                        .memory_bytes = result.memory.total_bytes,
                                        .order = c->task->order * 1000000 + c->order};
    found.split.sequence_parallel = micro_batch->split.sequence_parallel;
    dl_search_consider(c->s, c->w, &found);
}

/* Whether so many micro-batches on stages that are placed so can run in that schedule. */
static bool takes_schedule(const struct combination *c,
                           const struct dl_transformer_mapping *mapping, double micro_batches,
                           enum dl_schedule schedule) {
    const struct dl_schedule_row *row = dl_schedules[schedule];
    const double pp = (double)mapping->split.pp;
    const int64_t given = c->s->request.fixed.virtual_stages;
    if (pp > 1 && row->placing != mapping->split.placing) return false;
    if (row->in_groups && fmod(micro_batches, pp) != 0) return false;
    if (row->refuses != NULL && row->refuses(pp, micro_batches) != NULL) return false;
    if (row->most_parts == 1 || row->most_parts > row->least_parts) return true;
    return pp > 1 && (given <= 0 || given == row->most_parts) &&
           dl_transformer_takes_schedule(&c->s->tf, mapping->split.pp, schedule, row->most_parts);
}

/* Schedules of one arrangement, micro-batch, shard and recomputation. `only` counts instead of
 * trying. */
static int64_t each_schedule(struct combination *c, const struct dl_transformer_mapping *mapping,
                             const struct dl_transformer_micro_batch *micro_batch,
                             const struct dl_collective_time *boundary,
                             struct dl_transformer_choice choice, bool only) {
    const struct dl_search_request *r = &c->s->request;
    const int64_t pp = mapping->split.pp;
    int64_t count = 0;
    for (int i = 0; i < DL_SCHEDULES; i++) {
        const struct dl_schedule_row *row = dl_schedules[i];
        const enum dl_schedule schedule = (enum dl_schedule)i;
        const bool alone = pp == 1 && r->any_schedule; /* then they are the same */
        if (alone ? schedule != DL_1F1B : !dl_search_tries_schedule(r, schedule)) continue;
        if (!takes_schedule(c, mapping, choice.micro_batches, schedule)) continue;
        choice.schedule = schedule;
        const bool any_parts = row->most_parts > row->least_parts;
        for (int v = 0; v < (any_parts ? c->virtual_stages.count : 1); v++) {
            choice.virtual_stages = any_parts ? c->virtual_stages.value[v] : row->most_parts;
            count++;
            if (!only) try_plan(c, mapping, micro_batch, boundary, &choice);
        }
    }
    return count;
}

static int64_t each_recompute(struct combination *c, const struct dl_transformer_mapping *mapping,
                              const struct dl_transformer_micro_batch *micro_batch,
                              const struct dl_collective_time *boundary, double micro_batches,
                              bool only) {
    int64_t count = 0;
    for (int recompute = 0; recompute < DL_TRANSFORMER_RECOMPUTES; recompute++) {
        if (!c->s->request.fixed.recompute_open && recompute != (int)c->s->request.fixed.recompute)
            continue;
        if ((c->s->tf.is_generic_stack || dl_plan_excludes_full(&c->s->request.fixed)) &&
            recompute == DL_RECOMPUTE_FULL)
            continue;
        const double *kept_bytes = micro_batch->kept_bytes[DL_TRANSFORMER_BODY];
        if (c->s->tf.is_generic_stack && recompute == DL_RECOMPUTE_SELECTIVE &&
            kept_bytes[DL_RECOMPUTE_SELECTIVE] == kept_bytes[DL_RECOMPUTE_NONE] &&
            c->s->request.fixed.recompute_open)
            continue; /* nothing to recompute */
        const struct dl_transformer_choice choice = {.micro_batches = micro_batches,
                                                     .recompute = (enum dl_recompute)recompute};
        count += each_schedule(c, mapping, micro_batch, boundary, choice, only);
    }
    return count;
}

/* F-SEARCH-BOUND: no plan with this mapping (or micro-batch) needs less. */
static bool states_fit(const struct dl_search *s, const struct dl_transformer_mapping *mapping) {
    if (s->request.every) return true;
    for (int i = 0; i < 2; i++) {
        const struct dl_memory *m = &mapping->states[i];
        const double sum = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                           m->workspace_bytes + m->buffers_bytes + m->context_bytes;
        if (sum / (1 - dl_fragmentation_frac(s->request.framework)) > s->capacity_bytes)
            return false;
    }
    return true;
}

static bool may_be_faster(const struct dl_search *s, const struct dl_transformer_mapping *mapping,
                          const struct dl_transformer_micro_batch *micro_batch,
                          double micro_batches, const struct dl_search_worker *w) {
    const struct dl_search_request *r = &s->request;
    const bool by_time = r->objective == DL_BY_TIME || r->objective == DL_BY_THROUGHPUT;
    if (r->every || r->front || !by_time) return true;
    const double each_s = micro_batch->forward[DL_TRANSFORMER_BODY].step_s +
                          micro_batch->backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].step_s;
    return micro_batches * mapping->stage_layers * each_s + mapping->update_s <
           dl_search_worst_score(r, w);
}

static bool tries_shard(const struct dl_search *s, const struct dl_transformer_split *split,
                        int shard) {
    const struct dl_search_request *r = &s->request;
    const int64_t group = r->fixed.shard_group, ranks = split->dp * split->ep * split->sp;
    if (shard != 3 && (r->fixed.offload.what >> DL_OFFLOAD_WEIGHTS & 1) != 0) return false;
    if (ranks == 1) return shard == 0 && !s->by_network; /* nothing to share: dl_plan_canonical */
    if (group > 0 && (shard == 0 || split->ep > 1 || split->dp * split->sp % group != 0))
        return false;
    if (shard == 0 && split->sp > 1 && r->fixed.sp <= 1 &&
        r->framework->capabilities.context_shards)
        return false;
    if (!r->any_shard) return shard == (int)r->fixed.shard;
    if (split->pp > 1 && shard > 1 && r->framework->capabilities.pipeline_zero1) return false;
    return (shard > 0 || !s->by_network) && dl_framework_has_zero(r->framework, shard);
}

struct sharding { /* a task's rank mappings by ZeRO stage */
    struct dl_transformer_mapping mappings[4];
    bool tries[4], fits[4];
};

static enum dl_code make_mappings(const struct dl_search *s, const struct dl_search_task *task,
                                  struct sharding *out, struct dl_err *err) {
    for (int shard = 0; shard <= 3; shard++) {
        out->tries[shard] = tries_shard(s, &task->split, shard);
        if (!out->tries[shard]) continue;
        DL_TRY(
            dl_transformer_mapping_make(&s->tf, &task->split, shard, &out->mappings[shard], err));
        out->fits[shard] = states_fit(s, &out->mappings[shard]);
    }
    return DL_OK;
}

/* All plans with one micro-batch, in every sharding that may fit and be faster. */
static enum dl_code run_cost(struct combination *c, const struct sharding *sharding,
                             const struct dl_transformer_micro_batch *micro_batch,
                             double micro_batches, struct dl_err *err) {
    struct dl_collective_time boundary = {0};
    bool timed = false;
    for (int shard = 0; shard <= 3; shard++) {
        const struct dl_transformer_mapping *mapping = &sharding->mappings[shard];
        if (!sharding->tries[shard]) continue;
        const bool small = sharding->fits[shard] && micro_batch->micro_samples > 0,
                   fast = small && may_be_faster(c->s, mapping, micro_batch, micro_batches, c->w);
        if (!small || !fast) {
            const int64_t skipped =
                each_recompute(c, mapping, micro_batch, &boundary, micro_batches, true);
            c->w->rejected_count[small ? DL_NOT_FASTER : DL_NOT_MEMORY] += skipped;
            c->order += skipped;
            continue;
        }
        struct dl_transformer_micro_batch some = *micro_batch;
        dl_transformer_overlap_experts(&c->s->tf, micro_batches, &some);
        dl_transformer_recompute_some(
            dl_plan_recomputed_frac(&c->s->request.fixed, mapping->stage_layers), &some);
        dl_transformer_offload_activations(&c->s->tf, &mapping->split, &some);
        if (!timed)
            DL_TRY(dl_transformer_boundary(&c->s->tf, mapping, micro_batch, &boundary, err));
        timed = true;
        each_recompute(c, mapping, &some, &boundary, micro_batches, false);
    }
    return DL_OK;
}

static enum dl_code run_task(const struct dl_search *s, int64_t index, struct dl_search_worker *w,
                             struct dl_err *err) {
    const struct dl_search_task *task = &s->tasks.items[index];
    struct combination c = {.s = s, .task = task, .w = w};
    if (!dl_search_mine(s, index)) return DL_OK;
    if (task->strategy != NULL) return dl_search_network_run(s, task, w, err);
    struct sharding sharding;
    list_virtual_stages(&c);
    DL_TRY(make_mappings(s, task, &sharding, err));
    const double share =
        s->request.fixed.global_batch_samples / (double)(task->split.dp * task->split.ep);
    for (int m = 0; m < s->batches.count; m++) {
        if (!dl_search_takes(s, task, m)) continue;
        for (int on = 0; on < 2; on++) {
            if (!dl_search_sequence_allowed(s, &task->split, on)) continue;
            DL_TRY(run_cost(&c, &sharding, s->costs[dl_search_cost_key(s, task, m, on)],
                            share / (double)s->batches.value[m], err));
        }
    }
    return DL_OK;
}

enum dl_code dl_search_run_task(const struct dl_search *search, int64_t index,
                                struct dl_search_worker *worker, struct dl_err *err) {
    int i = 0;
    for (; index >= search->variants[i]->tasks.count; i++)
        index -= search->variants[i]->tasks.count;
    return run_task(search->variants[i], index, worker, err);
}

void dl_search_merge(const struct dl_search *s, struct dl_search_worker *into,
                     const struct dl_search_worker *from) {
    struct dl_search_request request = s->request;
    request.front = false;
    for (int i = 0; i < from->best_count; i++) dl_search_keep(&request, into, &from->best[i]);
    for (int i = 0; i < from->simple_count; i++) dl_search_keep(&request, into, &from->simple[i]);
    if (s->request.front) {
        for (int i = 0; i < from->front_count; i++) dl_search_keep_front(into, &from->front[i]);
    }
    if (from->has_nearest &&
        (!into->has_nearest || from->nearest.memory_bytes < into->nearest.memory_bytes)) {
        into->nearest = from->nearest;
        into->has_nearest = true;
    }
    into->evaluated_count += from->evaluated_count;
    into->feasible_count += from->feasible_count;
    for (int i = 0; i < DL_REJECTIONS; i++) into->rejected_count[i] += from->rejected_count[i];
}

void dl_search_rejected(const struct dl_search *s, struct dl_search_worker *into) {
    for (int v = 0; v < s->variant_count; v++)
        for (int i = 0; i < DL_REJECTIONS; i++)
            into->rejected_count[i] += s->variants[v]->rejected_count[i];
}

const struct dl_framework *dl_search_framework(const struct dl_search *search,
                                               const struct dl_search_candidate *found) {
    return search->variants[found->variant]->request.framework;
}

struct dl_plan dl_search_plan(const struct dl_search *s, const struct dl_search_candidate *f) {
    static const char *const sharded[] = {NULL, "zero1", "zero2", "zero3"};
    struct dl_plan plan = s->variants[f->variant]->request.fixed;
    const bool data_only = f->split.tp * f->split.pp * f->split.sp * f->split.ep == 1;
    plan.strategy = f->strategy != NULL
                        ? f->strategy
                        : dl_strategy_find(f->split.ep > 1             ? "expert"
                                           : data_only && f->shard > 0 ? sharded[f->shard]
                                                                       : "3d");
    plan.nodes = f->split.nodes;
    plan.devices_per_node = f->split.devices_per_node;
    plan.dp = f->split.dp, plan.tp = f->split.tp, plan.pp = f->split.pp, plan.sp = f->split.sp,
    plan.ep = f->split.ep;
    if (plan.experts.imbalance_ratio > (double)plan.ep)
        plan.experts.imbalance_ratio = (double)plan.ep;
    plan.micro_batch_samples = f->micro_samples;
    plan.batch_per_device_samples = 0;
    plan.sequence_parallel = f->split.sequence_parallel;
    plan.mapping = f->split.mapping;
    plan.schedule = f->choice.schedule;
    plan.virtual_stages =
        dl_schedules[f->choice.schedule]->most_parts > 1 ? f->choice.virtual_stages : 0;
    plan.recompute = f->choice.recompute;
    plan.recompute_open = false;
    plan.shard = data_only ? 0 : f->shard;
    return plan;
}
