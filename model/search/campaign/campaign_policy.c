/* campaign_policy.c - which trials run when: grid and random search, successive halving, hyperband,
 * ASHA, median stopping. */
#include <math.h>

#include "model/search/campaign/campaign_internal.h"

const char *const dl_campaign_order_names[] = {"fifo", "longest-first", NULL};

/* splitmix64 */
double dl_campaign_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static bool before(const struct dl_heap_entry *a, const struct dl_heap_entry *b) {
    return a->key < b->key || (!(b->key < a->key) && a->order < b->order);
}

void dl_heap_add(struct dl_heap *heap, double key, int id) {
    if (heap->count == heap->capacity) {
        const int capacity = heap->capacity == 0 ? 64 : 2 * heap->capacity;
        struct dl_heap_entry *grown = dl_arena_alloc(heap->arena, (size_t)capacity, sizeof *grown);
        for (int i = 0; i < heap->count; i++) grown[i] = heap->entries[i];
        heap->entries = grown;
        heap->capacity = capacity;
    }
    const struct dl_heap_entry entry = {key, heap->inserted++, id};
    int at = heap->count++;
    for (; at > 0 && before(&entry, &heap->entries[(at - 1) / 2]); at = (at - 1) / 2)
        heap->entries[at] = heap->entries[(at - 1) / 2];
    heap->entries[at] = entry;
}

struct dl_heap_entry dl_heap_take(struct dl_heap *heap) {
    const struct dl_heap_entry first = heap->entries[0], last = heap->entries[--heap->count];
    int at = 0;
    for (int child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && before(&heap->entries[child + 1], &heap->entries[child]))
            child++;
        if (!before(&heap->entries[child], &last)) break;
        heap->entries[at] = heap->entries[child];
        at = child;
    }
    if (heap->count > 0) heap->entries[at] = last;
    return first;
}

double dl_campaign_rung_frac(const struct dl_campaign *campaign, int rung) {
    return pow(campaign->reduction, (double)(rung - (campaign->rungs - 1)));
}

static void add_piece(struct dl_campaign_state *s, int trial, int rung, double frac, bool resumed) {
    s->ready = dl_arena_grow(s->arena, s->ready, (size_t)s->ready_count, sizeof *s->ready);
    s->ready[s->ready_count++] =
        (struct dl_campaign_piece){.trial = trial,
                                   .rung = rung,
                                   .train_s = s->campaign->trial_s[trial] * frac,
                                   .resumed = resumed};
}

/* The training between the rung before and this one. */
static void add_rung(struct dl_campaign_state *s, int trial, int rung) {
    const bool first = rung == s->first_rung[trial];
    const double frac = dl_campaign_rung_frac(s->campaign, rung) -
                        (first ? 0 : dl_campaign_rung_frac(s->campaign, rung - 1));
    add_piece(s, trial, rung, frac, !first);
}

/* A random permutation (Fisher and Yates): ranks of trials. */
static int *draw_ranks(const struct dl_campaign *c, struct dl_arena *arena) {
    int *rank = dl_arena_alloc(arena, (size_t)c->trial_count, sizeof *rank);
    uint64_t seed = c->seed;
    for (int i = 0; i < c->trial_count; i++) rank[i] = i;
    for (int i = c->trial_count - 1; i > 0; i--) {
        const int other = (int)(dl_campaign_random(&seed) * (double)(i + 1)), held = rank[i];
        rank[i] = rank[other];
        rank[other] = held;
    }
    return rank;
}

/* Trials of hyperband's bracket that begins at `rung`. */
static int bracket_trials(int rungs, double reduction, int rung) {
    const double left = (double)(rungs - 1 - rung);
    return (int)ceil((double)rungs / (left + 1) * pow(reduction, left) - 1e-9);
}

/* Deals trials to brackets, bracket after bracket, round after round. */
static int deal(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    int brackets = 0;
    for (int trial = 0; trial < c->trial_count;) {
        const int rung = brackets % c->rungs;
        s->bracket_first[brackets] = trial;
        const int size = bracket_trials(c->rungs, c->reduction, rung);
        for (int i = 0; i < size && trial < c->trial_count; i++, trial++) {
            s->first_rung[trial] = rung;
            s->bracket[trial] = brackets;
        }
        brackets++;
    }
    s->bracket_first[brackets] = c->trial_count;
    return brackets;
}

static int at(const struct dl_campaign_state *s, int bracket, int rung) {
    return bracket * s->campaign->rungs + rung;
}

/* A synchronous rung: how many trials take part in it, from those of the rung before. */
static int go_on(const struct dl_campaign *c, int members) {
    const int next = (int)floor((double)members / c->reduction + 1e-9);
    return next > 0 ? next : 1;
}

static void begin_rungs(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    s->bracket_first =
        dl_arena_alloc(s->arena, (size_t)c->trial_count + 2, sizeof *s->bracket_first);
    s->bracket_first[1] = c->trial_count;
    s->bracket_count = c->policy == DL_CAMPAIGN_HYPERBAND ? deal(s) : 1;
    const size_t cells = (size_t)s->bracket_count * (size_t)c->rungs;
    s->open = dl_arena_alloc(s->arena, cells, sizeof *s->open);
    s->members = dl_arena_alloc(s->arena, cells, sizeof *s->members);
    for (int i = 0; i < c->trial_count; i++) {
        s->members[at(s, s->bracket[i], s->first_rung[i])]++;
        s->open[at(s, s->bracket[i], s->first_rung[i])]++;
        add_rung(s, i, s->first_rung[i]);
    }
}

static void begin_asha(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    const size_t rungs = (size_t)c->rungs;
    s->done = dl_arena_alloc(s->arena, rungs, sizeof *s->done);
    s->waiting = dl_arena_alloc(s->arena, rungs, sizeof *s->waiting);
    s->promoted =
        dl_arena_alloc(s->arena, rungs * ((size_t)c->trial_count + 1), sizeof *s->promoted);
    for (size_t i = 0; i < rungs; i++) s->waiting[i].arena = s->arena;
}

/* Each trial runs to the check that stops it. */
static void begin_median(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    for (int i = 0; i < c->trial_count; i++) {
        double alive = (double)c->trial_count;
        int check = 0;
        for (; check < c->check_count; check++) {
            alive = ceil(alive * c->survive_frac[check] - 1e-9);
            if ((double)s->rank[i] >= alive) break;
        }
        add_piece(s, i, check, (double)(check + 1) / (double)(c->check_count + 1), false);
    }
}

void dl_campaign_begin(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    s->rank = draw_ranks(c, s->arena);
    s->first_rung = dl_arena_alloc(s->arena, (size_t)c->trial_count, sizeof *s->first_rung);
    s->bracket = dl_arena_alloc(s->arena, (size_t)c->trial_count, sizeof *s->bracket);
    switch (c->policy) {
    case DL_CAMPAIGN_ASHA: {
        begin_asha(s);
        return;
    }
    case DL_CAMPAIGN_HALVING:
    case DL_CAMPAIGN_HYPERBAND: {
        begin_rungs(s);
        return;
    }
    case DL_CAMPAIGN_MEDIAN_STOP: begin_median(s); return;
    default: break;
    }
    for (int i = 0; i < c->trial_count; i++) add_piece(s, i, 0, 1, false);
}

/* The rung of a bracket is complete: the best of its members go on. */
static void complete(struct dl_campaign_state *s, int bracket, int rung) {
    const struct dl_campaign *c = s->campaign;
    const int members = s->members[at(s, bracket, rung)];
    if (rung + 1 >= c->rungs) return;
    /* ranks stay, so the best of the bracket are the best of its members */
    struct dl_heap best = {.arena = s->arena};
    for (int i = s->bracket_first[bracket]; i < s->bracket_first[bracket + 1]; i++)
        dl_heap_add(&best, (double)s->rank[i], i);
    const int next = go_on(c, members);
    s->members[at(s, bracket, rung + 1)] = s->open[at(s, bracket, rung + 1)] = next;
    for (int i = 0; i < next && best.count > 0; i++) add_rung(s, dl_heap_take(&best).id, rung + 1);
}

static int promoted_before(const struct dl_campaign_state *s, int rung, int rank) {
    const int *tree = s->promoted + (size_t)rung * ((size_t)s->campaign->trial_count + 1);
    int sum = 0;
    for (int i = rank; i > 0; i -= i & -i) sum += tree[i];
    return sum;
}

static void mark_promoted(struct dl_campaign_state *s, int rung, int rank) {
    const int size = s->campaign->trial_count;
    int *tree = s->promoted + (size_t)rung * ((size_t)size + 1);
    for (int i = rank + 1; i <= size; i += i & -i) tree[i]++;
}

void dl_campaign_ended(struct dl_campaign_state *s, const struct dl_campaign_piece *piece) {
    const struct dl_campaign *c = s->campaign;
    if (c->policy == DL_CAMPAIGN_ASHA) {
        s->done[piece->rung]++;
        if (piece->rung + 1 < c->rungs)
            dl_heap_add(&s->waiting[piece->rung], (double)s->rank[piece->trial], piece->trial);
    }
    if (c->policy != DL_CAMPAIGN_HALVING && c->policy != DL_CAMPAIGN_HYPERBAND) return;
    const int bracket = s->bracket[piece->trial];
    if (--s->open[at(s, bracket, piece->rung)] == 0) complete(s, bracket, piece->rung);
}

void dl_campaign_idle(struct dl_campaign_state *s) {
    const struct dl_campaign *c = s->campaign;
    if (c->policy != DL_CAMPAIGN_ASHA) return;
    for (int rung = c->rungs - 2; rung >= 0; rung--) {
        struct dl_heap *waiting = &s->waiting[rung];
        const int most = (int)floor((double)s->done[rung] / c->reduction + 1e-9);
        if (waiting->count == 0) continue;
        const int rank = (int)waiting->entries[0].key;
        /* better ones than the best that waits were promoted before it */
        if (promoted_before(s, rung, rank) >= most) continue;
        mark_promoted(s, rung, rank);
        add_rung(s, dl_heap_take(waiting).id, rung + 1);
        return;
    }
    if (s->next_trial < c->trial_count) add_rung(s, s->next_trial++, 0);
}
