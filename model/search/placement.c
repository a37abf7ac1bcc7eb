/* placement.c - see placement.h. */
#include "model/search/placement.h"

#include <math.h>
#include <string.h>

#include "model/engine/energy.h"

const char *const dl_placement_objectives[] = {"time", "energy", "cost", NULL};

/* ---- one job ---- */

static double score_of(const struct dl_subset *s, enum dl_placement_objective objective) {
    if (objective == DL_PLACE_ENERGY) return s->sample_energy_j;
    return objective == DL_PLACE_COST ? s->cost_per_sample : 1 / s->samples_per_s;
}

/* The next count of nodes after n: all of them, or 0, 1, 2, 4, ..., most. */
static int64_t after(int64_t n, int64_t most, bool every) {
    if (every || n == 0) return n + 1;
    return n < most && 2 * n > most ? most : 2 * n;
}

double dl_placement_price_per_s(const struct dl_heterogeneous_job *job) {
    const char *currency = NULL;
    double sum = 0;
    for (int i = 0; i < job->group_count; i++) {
        const struct dl_system *system = job->groups[i].system;
        if (job->groups[i].nodes == 0) continue;
        const char *own = dl_currency_of(system, NULL);
        if (own == NULL || (currency != NULL && strcmp(own, currency) != 0)) return NAN;
        currency = own;
        sum += (double)job->groups[i].nodes * dl_price_of(system, NULL) / 3600;
    }
    return sum;
}

static enum dl_code predict_subset(const struct dl_heterogeneous_question *question,
                                   struct dl_subset *s, struct dl_arena *arena,
                                   struct dl_err *err) {
    const struct dl_heterogeneous_job *all = question->job;
    struct dl_heterogeneous_question own = *question;
    struct dl_heterogeneous_group groups[DL_MIXED_GROUPS];
    struct dl_heterogeneous_job job = {.groups = groups, .balanced = s->balanced};
    struct dl_plan completed;
    struct dl_prediction p;
    for (int i = 0; i < all->group_count; i++) {
        if (s->nodes[i] == 0) continue;
        groups[job.group_count++] =
            (struct dl_heterogeneous_group){.system = all->groups[i].system, .nodes = s->nodes[i]};
    }
    own.job = &job;
    DL_TRY(dl_heterogeneous_predict(&own, false, arena, &completed, &p, err));
    double power_w = 0;
    for (int i = 0; i < p.group_count; i++) power_w += p.groups[i].power_w;
    s->fits = p.fits;
    s->iteration_s = p.iteration_s;
    s->samples_per_s = p.throughput_samples_per_s;
    s->low_samples_per_s = s->samples_per_s * p.iteration_s / p.iteration_high_s;
    s->high_samples_per_s = s->samples_per_s * p.iteration_s / p.iteration_low_s;
    s->sample_energy_j = power_w / s->samples_per_s;
    s->cost_per_sample = dl_placement_price_per_s(&job) / s->samples_per_s;
    return DL_OK;
}

static void insert(struct dl_subset *list, int count, const struct dl_subset *s,
                   enum dl_placement_objective objective) {
    int at = count;
    for (; at > 0; at--) {
        const struct dl_subset *before = &list[at - 1];
        if (before->fits && !s->fits) break;
        if (before->fits == s->fits && !(score_of(s, objective) < score_of(before, objective)))
            break;
        list[at] = *before;
    }
    list[at] = *s;
}

/* The next choice; false after the last one. */
static bool advance(const struct dl_heterogeneous_job *all, int64_t *nodes, bool every) {
    for (int i = 0; i < all->group_count; i++) {
        const int64_t next = after(nodes[i], all->groups[i].nodes, every);
        if (next <= all->groups[i].nodes) {
            nodes[i] = next;
            return true;
        }
        nodes[i] = 0;
    }
    return false;
}

enum dl_code dl_subsets(const struct dl_heterogeneous_question *question,
                        enum dl_placement_objective objective, struct dl_arena *arena,
                        struct dl_subset **out, int *count, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = question->job;
    struct dl_err refusal = {.code = DL_OK};
    double choices = 1;
    struct dl_subset s = {.nodes = {0}};
    struct dl_subset *list = dl_arena_alloc(arena, 2 * DL_SUBSETS, sizeof *list);
    for (int i = 0; i < all->group_count; i++) choices *= (double)all->groups[i].nodes + 1;
    *count = 0;
    while (advance(all, s.nodes, choices <= DL_SUBSETS)) {
        int kinds = 0;
        for (int i = 0; i < all->group_count; i++) kinds += s.nodes[i] > 0;
        for (int balanced = 0; balanced < (kinds > 1 ? 2 : 1); balanced++) {
            s.balanced = balanced == 1;
            const enum dl_code code = predict_subset(question, &s, arena, &refusal);
            if (code == DL_ERR_SYSTEM) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
            if (code != DL_OK) continue;
            if (!dl_known(score_of(&s, objective)))
                return dl_fail(err, DL_ERR_USAGE,
                               "--objective %s: no %s of every kind of node is "
                               "known",
                               dl_placement_objectives[objective],
                               objective == DL_PLACE_COST ? "price in one currency" : "power");
            if (*count == 2 * DL_SUBSETS)
                return dl_fail(err, DL_ERR_USAGE, "more than %d choices of nodes", DL_SUBSETS);
            insert(list, (*count)++, &s, objective);
        }
    }
    if (*count == 0) return dl_fail(err, DL_ERR_USAGE, "%s", refusal.message);
    *out = list;
    return DL_OK;
}

/* ---- several jobs ---- */

struct cell { /* the best way to place the first jobs with these nodes in use */
    double value;
    int kind;
    int64_t nodes;
};

static double value_of(const struct dl_job_times *t, enum dl_placement_objective objective) {
    if (objective == DL_PLACE_ENERGY) return t->energy_j;
    return objective == DL_PLACE_COST ? t->cost : t->time_s;
}

/* Places job j after every state of the jobs before it. */
static void extend(const struct dl_placement_request *r, int job, int64_t states,
                   const int64_t *stride, const struct cell *before, struct cell *now) {
    for (int64_t s = 0; s < states; s++) now[s] = (struct cell){.value = INFINITY};
    for (int64_t s = 0; s < states; s++) {
        if (!isfinite(before[s].value)) continue;
        for (int k = 0; k < r->kinds; k++) {
            const int64_t used = s / stride[k] % (r->nodes[k] + 1);
            for (int64_t n = 1; used + n <= r->nodes[k]; n++) {
                const struct dl_job_times *t = r->times(r->data, job, k, n);
                const double own = t == NULL ? NAN : value_of(t, r->objective);
                if (!dl_known(own)) continue;
                const double value = r->objective == DL_PLACE_TIME ? fmax(before[s].value, own)
                                                                   : before[s].value + own;
                struct cell *to = &now[s + n * stride[k]];
                if (value < to->value) *to = (struct cell){value, k, n};
            }
        }
    }
}

enum dl_code dl_placement_of(const struct dl_placement_request *r, struct dl_arena *arena,
                             struct dl_placement *out, struct dl_err *err) {
    int64_t stride[DL_MIXED_GROUPS], states = 1;
    for (int k = 0; k < r->kinds; k++) {
        stride[k] = states;
        states *= r->nodes[k] + 1;
        if (states > DL_PLACED_STATES)
            return dl_fail(err, DL_ERR_USAGE,
                           "too many nodes to place jobs exactly: at most %d "
                           "combinations of nodes in use",
                           DL_PLACED_STATES);
    }
    if (r->jobs < 1 || r->jobs > DL_PLACED_JOBS)
        return dl_fail(err, DL_ERR_USAGE, "expected 1 to %d jobs, got %d", DL_PLACED_JOBS, r->jobs);
    struct cell *cells = dl_arena_alloc(arena, (size_t)(states * (r->jobs + 1)), sizeof *cells);
    for (int64_t s = 0; s < states; s++) cells[s] = (struct cell){.value = s == 0 ? 0 : INFINITY};
    for (int j = 0; j < r->jobs; j++)
        extend(r, j, states, stride, cells + j * states, cells + (j + 1) * states);
    int64_t best = -1;
    const struct cell *last = cells + r->jobs * states;
    for (int64_t s = 0; s < states; s++) /* of equals the one with the fewest nodes of late kinds */
        if (isfinite(last[s].value) && (best < 0 || last[s].value < last[best].value)) best = s;
    if (best < 0) return dl_fail(err, DL_ERR_NO, "the jobs do not fit on these nodes together");
    *out = (struct dl_placement){.time_s = 0};
    for (int j = r->jobs - 1; j >= 0; j--) {
        const struct cell *c = &cells[(j + 1) * states + best];
        const struct dl_job_times *t = r->times(r->data, j, c->kind, c->nodes);
        out->kind[j] = c->kind;
        out->nodes[j] = c->nodes;
        out->time_s = fmax(out->time_s, t->time_s);
        out->energy_j += t->energy_j;
        out->cost += t->cost;
        best -= c->nodes * stride[c->kind];
    }
    return DL_OK;
}
