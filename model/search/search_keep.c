/* search_keep.c - what a search keeps: the best plans by the objective, and the front of time and
 * memory. */
#include <math.h>
#include <string.h>

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
    "slower than what was found",
    "more parts than layers allow",
    NULL,
};

void dl_search_worker_clear(struct dl_search_worker *w) {
    w->best_count = w->front_count = 0;
    w->has_nearest = false;
    w->evaluated_count = w->feasible_count = 0;
    memset(w->rejected_count, 0, sizeof w->rejected_count);
}

static bool better(const struct dl_found *a, const struct dl_found *b) {
    if (a->score != b->score) return a->score < b->score;
    if (a->iteration_s != b->iteration_s) return a->iteration_s < b->iteration_s;
    if (a->memory_bytes != b->memory_bytes) return a->memory_bytes < b->memory_bytes;
    return a->order < b->order;
}

/* The same plan but for a mapping that changes nothing. */
static bool same_but_mapping(const struct dl_found *a, const struct dl_found *b) {
    return a->iteration_s == b->iteration_s && a->memory_bytes == b->memory_bytes &&
           a->strategy == b->strategy && a->shard == b->shard && a->split.tp == b->split.tp &&
           a->split.sp == b->split.sp && a->split.ep == b->split.ep && a->split.pp == b->split.pp &&
           a->split.dp == b->split.dp && a->split.nodes == b->split.nodes &&
           a->split.sequence_parallel == b->split.sequence_parallel &&
           a->micro_samples == b->micro_samples && a->choice.schedule == b->choice.schedule &&
           a->choice.virtual_stages == b->choice.virtual_stages &&
           a->choice.recompute == b->choice.recompute;
}

static void keep_best(int most, struct dl_search_worker *w, const struct dl_found *found) {
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

static int64_t devices_of(const struct dl_found *f) {
    return f->split.nodes * f->split.devices_per_node;
}

/* At least as good in time, memory and devices; of equals the first. */
static bool dominates(const struct dl_found *a, const struct dl_found *b) {
    if (a->iteration_s > b->iteration_s || a->memory_bytes > b->memory_bytes ||
        devices_of(a) > devices_of(b))
        return false;
    return a->iteration_s < b->iteration_s || a->memory_bytes < b->memory_bytes ||
           devices_of(a) < devices_of(b) || a->order < b->order;
}

void dl_search_keep_front(struct dl_search_worker *w, const struct dl_found *found) {
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

void dl_search_keep(const struct dl_search_request *request, struct dl_search_worker *worker,
                    const struct dl_found *found) {
    keep_best(request->keep, worker, found);
    if (request->front) dl_search_keep_front(worker, found);
}
