/* search_keep.c - what a search keeps: the best plans by the objective, and the front of time and
 * memory. */
#include <math.h>
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "model/search/search.h"

const char *const dl_objective_names[] = {"time",   "throughput", "memory", "devices",
                                          "energy", "cost",       NULL};
const char *const dl_rejection_names[] = {
    "tensor ranks do not divide the heads",
    "stages do not divide the layers",
    "sequence ranks do not divide the tokens",
    "data ranks do not divide the batch",
    "does not fit in memory",
    "misses the deadline",
    "slower than a plan already found",
    "more parts than layers allow",
    "does not fit in the host's memory",
    NULL,
};

void dl_search_worker_clear(struct dl_search_worker *w) {
    w->best_count = w->front_count = w->simple_count = 0;
    w->has_nearest = false;
    w->evaluated_count = w->feasible_count = 0;
    memset(w->rejected_count, 0, sizeof w->rejected_count);
}

static bool better(const struct dl_search_candidate *a, const struct dl_search_candidate *b) {
    if (a->score != b->score) return a->score < b->score;
    if (a->iteration_s != b->iteration_s) return a->iteration_s < b->iteration_s;
    if (a->memory_bytes != b->memory_bytes) return a->memory_bytes < b->memory_bytes;
    return a->order < b->order;
}

/* The same plan but for a mapping that changes nothing. */
static bool same_but_mapping(const struct dl_search_candidate *a,
                             const struct dl_search_candidate *b) {
    return a->iteration_s == b->iteration_s && a->memory_bytes == b->memory_bytes &&
           a->strategy == b->strategy && a->shard == b->shard && a->variant == b->variant &&
           a->split.tp == b->split.tp && a->split.sp == b->split.sp && a->split.ep == b->split.ep &&
           a->split.pp == b->split.pp && a->split.dp == b->split.dp &&
           a->split.nodes == b->split.nodes &&
           a->split.sequence_parallel == b->split.sequence_parallel &&
           a->micro_samples == b->micro_samples && a->choice.schedule == b->choice.schedule &&
           a->choice.virtual_stages == b->choice.virtual_stages &&
           a->choice.recompute == b->choice.recompute;
}

static void keep_best(int most, struct dl_search_worker *w,
                      const struct dl_search_candidate *found) {
    if (w->best_count == most && !better(found, &w->best[most - 1])) return;
    for (int i = 0; i < w->best_count; i++) {
        if (!same_but_mapping(found, &w->best[i])) continue;
        if (found->order < w->best[i].order) w->best[i] = *found;
        return;
    }
    int at = w->best_count < most ? w->best_count++ : most - 1;
    for (; at > 0 && better(found, &w->best[at - 1]); at--) w->best[at] = w->best[at - 1];
    w->best[at] = *found;
}

static int64_t devices_of(const struct dl_search_candidate *f) {
    return f->split.nodes * f->split.devices_per_node;
}

/* At least as good in time, memory and devices; of equals the first. */
static bool dominates(const struct dl_search_candidate *a, const struct dl_search_candidate *b) {
    if (a->iteration_s > b->iteration_s || a->memory_bytes > b->memory_bytes ||
        devices_of(a) > devices_of(b))
        return false;
    return a->iteration_s < b->iteration_s || a->memory_bytes < b->memory_bytes ||
           devices_of(a) < devices_of(b) || a->order < b->order;
}

void dl_search_keep_front(struct dl_search_worker *w, const struct dl_search_candidate *found) {
    int kept = 0;
    for (int i = 0; i < w->front_count; i++) {
        if (dominates(&w->front[i], found)) return;
    }
    for (int i = 0; i < w->front_count; i++) {
        if (!dominates(found, &w->front[i])) w->front[kept++] = w->front[i];
    }
    w->front_count = kept;
    if (kept == DL_SEARCH_FRONT) return;
    int at = w->front_count++; /* as they are enumerated, in whatever order they were tried */
    for (; at > 0 && w->front[at - 1].order > found->order; at--) w->front[at] = w->front[at - 1];
    w->front[at] = *found;
}

/* Objectives that are the time of an iteration, or proportional to it on the same nodes. */
static bool follows_time(const struct dl_search_request *r) {
    return r->objective != DL_BY_MEMORY && r->objective != DL_BY_DEVICES;
}

/* F-DEFAULT-PLAN: what a plan has beyond plain data parallelism. Each property outranks all that
 * follow. */
static int64_t complexity_of(const struct dl_search_request *r,
                             const struct dl_search_candidate *f) {
    const struct dl_transformer_split *split = &f->split;
    const struct dl_strategy *own =
        r->framework->strategy != NULL ? dl_strategy_find(r->framework->strategy) : NULL;
    const double capacity_bytes =
        r->memory_bytes > 0 ? r->memory_bytes : r->system->device->memory_bytes;
    const struct {
        int64_t value, values;
    } properties[] = {
        {f->memory_bytes > DL_TIGHT_FRAC * capacity_bytes, 2},
        {f->variant > 0, 2},
        {(int64_t)dl_schedule_parts(f->choice.schedule, (double)f->choice.virtual_stages), 1024},
        {(split->tp > 1) + (split->pp > 1) + (split->sp > 1) + (split->ep > 1), 5},
        {own != NULL && f->shard == own->shard ? 0 : f->shard, 4},
        {f->choice.recompute, DL_TRANSFORMER_RECOMPUTES},
        {split->pp > 1 ? f->choice.schedule : DL_1F1B, DL_SCHEDULES},
        {split->mapping, 2},
        {split->sequence_parallel, 2},
    };
    int64_t complexity = 0;
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
        complexity = complexity * properties[i].values + properties[i].value;
    return complexity;
}

/* At least as simple and as good; of equals the first. */
static bool outdoes(const struct dl_search_candidate *a, const struct dl_search_candidate *b) {
    if (a->complexity > b->complexity || a->score > b->score) return false;
    return a->complexity < b->complexity || a->score < b->score || a->order <= b->order;
}

static void keep_simple(const struct dl_search_request *r, struct dl_search_worker *w,
                        const struct dl_search_candidate *found) {
    const double most = w->best[0].score * (1 + DL_SIMPLER_FRAC);
    struct dl_search_candidate added = *found;
    int kept = 0;
    if (!follows_time(r) || !(found->score <= most)) return;
    added.complexity = complexity_of(r, found);
    for (int i = 0; i < w->simple_count; i++) {
        if (outdoes(&w->simple[i], &added)) return;
    }
    for (int i = 0; i < w->simple_count; i++) {
        if (w->simple[i].score <= most && !outdoes(&added, &w->simple[i]))
            w->simple[kept++] = w->simple[i];
    }
    if (kept == DL_SEARCH_SIMPLE) kept--; /* the least simple */
    int at = kept;
    for (; at > 0 && w->simple[at - 1].complexity > added.complexity; at--)
        w->simple[at] = w->simple[at - 1];
    w->simple[at] = added;
    w->simple_count = kept + 1;
}

const struct dl_search_candidate *dl_search_choice(const struct dl_search_worker *w) {
    const double most = w->best[0].score * (1 + DL_SIMPLER_FRAC);
    for (int i = 0; i < w->simple_count; i++) {
        if (w->simple[i].score <= most) return &w->simple[i];
    }
    return &w->best[0];
}

int dl_search_ranking(const struct dl_search_request *r, const struct dl_search_worker *w,
                      struct dl_search_candidate *out) {
    int count = 0;
    if (w->best_count == 0) return 0;
    const struct dl_search_candidate *choice = dl_search_choice(w);
    out[count++] = *choice;
    for (int i = 0; i < w->best_count; i++) {
        if (w->best[i].order != choice->order) out[count++] = w->best[i];
    }
    if (count > r->keep) count = r->keep;
    for (int i = 0; i < w->simple_count && r->shard_count > 1; i++) {
        bool listed = false;
        for (int k = 0; k < count; k++) listed = listed || out[k].order == w->simple[i].order;
        if (!listed) out[count++] = w->simple[i];
    }
    return count;
}

double dl_search_worst_score(const struct dl_search_request *r, const struct dl_search_worker *w) {
    if (w->best_count < r->keep) return INFINITY;
    const double worst = w->best[w->best_count - 1].score;
    return follows_time(r) ? fmax(worst, w->best[0].score * (1 + DL_SIMPLER_FRAC)) : worst;
}

void dl_search_keep(const struct dl_search_request *request, struct dl_search_worker *worker,
                    const struct dl_search_candidate *found) {
    keep_best(request->keep, worker, found);
    keep_simple(request, worker, found);
    if (request->front) dl_search_keep_front(worker, found);
}
