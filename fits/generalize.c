/* generalize.c - see generalize.h. Rows of one source weigh together as much as those of any other.
 */
#include "fits/generalize.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/robust_fit.h"

#define LOSS_SCALE 0.05 /* errors above 5 % count by their size, not their square */
#define PRIOR_SIGMA 3.0 /* of half a range: its ends cost 1/9 of one source that errs by 5 % */
#define FEW_ROWS 4.0
#define NOTHING 1e-3
#define STEP 0.03 /* of log(constant), for derivatives */
enum { MAX_THREADS = 64 };

const char *const dl_leave_out_names[] = {"source", "framework", "device", "system", NULL};

const char *dl_fit_row_group(const struct dl_fit_row *row, enum dl_leave_out by) {
    const char *names[] = {row->source, row->framework, row->device, row->system};
    return names[by] != NULL ? names[by] : "";
}

/* What all fits share; read only while threads run. */
struct shared {
    const struct dl_fit_rows *rows;
    const struct dl_constants *constants;
    const char **keys;
    double *weights, *low, *high, *prior, *prior_sigma;
    double *base_x, *base_residuals, *jacobian;
    double *known_x, *known_residuals; /* of rows that no constant has moved */
    const struct dl_generalize_choice *choice;
    struct dl_generalized *out;
    bool *concerned; /* [constant * rows + row]: whether the row depends on the constant */
    atomic_size_t next;
    size_t end;
    enum dl_code (*task)(struct shared *shared, size_t task, struct dl_err *err);
};

static size_t row_count(const struct shared *s) { return s->rows->count; }
static size_t parameter_count(const struct shared *s) { return (size_t)s->constants->count; }

static double log_ratio(const struct dl_fit_row *row, const struct dl_fit_prediction *p) {
    return log(p->iteration_s / row->measured_s);
}

/* Residuals at x of the rows that are wanted; others stay. */
static enum dl_code residuals_of(const struct shared *s, const double *x, const bool *wanted,
                                 struct dl_fit_prediction *predictions, double *residuals,
                                 struct dl_err *err) {
    const size_t n = row_count(s), k = parameter_count(s);
    double *values = calloc(k + 1, sizeof *values);
    if (values == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t j = 0; j < k; j++) values[j] = exp(x[j]);
    const enum dl_code code = dl_fit_rows_predict(
        s->rows, &(struct dl_fit_values){s->keys, values, (int)k}, wanted, predictions, err);
    for (size_t i = 0; i < n && code == DL_OK; i++) {
        if (wanted == NULL || wanted[i])
            residuals[i] = log_ratio(&s->rows->rows[i], &predictions[i]);
    }
    free(values);
    return code;
}

/* One fit's own room. */
struct evaluation {
    const struct shared *shared;
    struct dl_fit_prediction *predictions;
    bool *wanted;
};

static bool make_evaluation(const struct shared *s, struct evaluation *out) {
    *out = (struct evaluation){
        .shared = s,
        .predictions = calloc(row_count(s) + 1, sizeof *out->predictions),
        .wanted = calloc(row_count(s) + 1, sizeof *out->wanted),
    };
    return out->predictions != NULL && out->wanted != NULL;
}

static void free_evaluation(struct evaluation *e) {
    free(e->predictions);
    free(e->wanted);
}

/* Rows that depend on a constant which is not where it was for the known residuals. */
static enum dl_code evaluate(void *context, const double *x, double *residuals,
                             struct dl_err *err) {
    const struct evaluation *e = context;
    const struct shared *s = e->shared;
    const size_t n = row_count(s);
    bool any = false;
    memset(e->wanted, 0, n * sizeof *e->wanted);
    memcpy(residuals, s->known_residuals, n * sizeof *residuals);
    for (size_t j = 0; j < parameter_count(s); j++) {
        if (fabs(x[j] - s->known_x[j]) < 1e-12) continue;
        any = true;
        for (size_t i = 0; i < n; i++) e->wanted[i] = e->wanted[i] || s->concerned[j * n + i];
    }
    return any ? residuals_of(s, x, e->wanted, e->predictions, residuals, err) : DL_OK;
}

/* The derivatives by one constant of the rows that it concerns. */
static enum dl_code derive(void *context, const double *x, const double *residuals, size_t constant,
                           double *jacobian, struct dl_err *err) {
    const struct evaluation *e = context;
    const struct shared *s = e->shared;
    const size_t n = row_count(s), k = parameter_count(s);
    double *at = calloc(k + n + 1, sizeof *at), *moved = at == NULL ? NULL : at + k;
    if (at == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    memcpy(at, x, k * sizeof *at);
    memcpy(moved, residuals, n * sizeof *moved);
    const double step = x[constant] + STEP <= s->high[constant] ? STEP : -STEP;
    at[constant] += step;
    const bool *wanted = s->concerned + constant * n;
    const enum dl_code code = residuals_of(s, at, wanted, e->predictions, moved, err);
    for (size_t i = 0; i < n && code == DL_OK; i++) {
        const double slope = (moved[i] - residuals[i]) / step;
        jacobian[i * k + constant] = !wanted[i] || isnan(slope) ? 0 : slope;
    }
    free(at);
    return code;
}

struct thread {
    struct shared *shared;
    enum dl_code code;
    struct dl_err err;
};

static enum dl_code run_tasks(void *state, struct dl_err *err) {
    struct shared *s = state;
    for (;;) {
        const size_t task = atomic_fetch_add(&s->next, 1);
        if (task >= s->end) return DL_OK;
        DL_TRY(s->task(s, task, err));
    }
}

static void *work(void *argument) {
    struct thread *t = argument;
    t->code = dl_guarded(run_tasks, t->shared, &t->err);
    return NULL;
}

/* Runs task(0) to task(count - 1), several at a time. */
static enum dl_code in_threads(struct shared *s, size_t count, int threads,
                               enum dl_code (*task)(struct shared *, size_t, struct dl_err *),
                               struct dl_err *err) {
    struct thread *state = calloc(MAX_THREADS, sizeof *state);
    pthread_t ids[MAX_THREADS];
    int started = 1;
    if (state == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    s->task = task;
    s->end = count;
    atomic_store(&s->next, 0);
    for (int i = 0; i < MAX_THREADS; i++) state[i].shared = s;
    for (; started < threads && started < MAX_THREADS; started++) {
        if (pthread_create(&ids[started], NULL, work, &state[started]) != 0) break;
    }
    work(&state[0]);
    for (int i = 1; i < started; i++) pthread_join(ids[i], NULL);
    enum dl_code code = DL_OK;
    for (int i = 0; i < started && code == DL_OK; i++) {
        code = state[i].code;
        if (code != DL_OK) *err = state[i].err;
    }
    free(state);
    return code;
}

/* Which rows depend on a constant, and how, at the start. */
static enum dl_code find_concerned(struct shared *s, size_t constant, struct dl_err *err) {
    struct evaluation e;
    const size_t n = row_count(s), k = parameter_count(s);
    bool *concerned = s->concerned + constant * n;
    enum dl_code code = DL_OK;
    if (!make_evaluation(s, &e)) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < n; i++) concerned[i] = true;
    if (code == DL_OK) code = derive(&e, s->base_x, s->base_residuals, constant, s->jacobian, err);
    for (size_t i = 0; i < n && code == DL_OK; i++)
        concerned[i] = fabs(s->jacobian[i * k + constant]) > 1e-9;
    free_evaluation(&e);
    return code;
}

static struct dl_robust_problem problem_of(const struct shared *s, const double *weights,
                                           struct evaluation *evaluation) {
    return (struct dl_robust_problem){
        .row_count = row_count(s),
        .parameter_count = parameter_count(s),
        .weights = weights,
        .loss_scale = LOSS_SCALE,
        .low = s->low,
        .high = s->high,
        .prior = s->prior,
        .prior_sigma = s->prior_sigma,
        .residuals = evaluate,
        .derivatives = derive,
        .context = evaluation,
        .smallest = 2e-3,
    };
}

/* One fit from the constants of the files, so that nothing of the other fits is in it. `x` holds
 * parameters, then residuals, then derivatives. */
static enum dl_code fit_from_files(const struct shared *s, const double *weights,
                                   struct evaluation *e, double *x, struct dl_err *err) {
    const size_t n = row_count(s), k = parameter_count(s);
    double *jacobian = x + k + n;
    const struct dl_robust_problem problem = problem_of(s, weights, e);
    struct dl_robust_fit fit = {.x = x, .residuals = x + k};
    memcpy(x, s->base_x, k * sizeof *x);
    memcpy(x + k, s->base_residuals, n * sizeof *x);
    memcpy(jacobian, s->jacobian, n * k * sizeof *jacobian);
    return dl_robust_fit(&problem, jacobian, &fit, err);
}

/* All rows, and what every fit shares: residuals and derivatives with the constants of the files.
 */
static enum dl_code fit_all(struct shared *s, int threads, struct dl_err *err) {
    const size_t n = row_count(s), k = parameter_count(s);
    struct evaluation e;
    DL_TRY(residuals_of(s, s->base_x, NULL, s->out->in_sample, s->base_residuals, err));
    DL_TRY(dl_fit_rows_anchored(s->rows, NULL, NULL, s->out->in_sample_anchored, err));
    memcpy(s->known_x, s->base_x, k * sizeof *s->known_x);
    memcpy(s->known_residuals, s->base_residuals, n * sizeof *s->known_residuals);
    DL_TRY(in_threads(s, k, threads, find_concerned, err));
    memcpy(s->out->sensitivity, s->jacobian, n * k * sizeof *s->jacobian);
    enum dl_code code = DL_OK;
    double *x = calloc(k + n + n * k + 1, sizeof *x);
    if (!make_evaluation(s, &e) || x == NULL) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (code == DL_OK) code = fit_from_files(s, s->weights, &e, x, err);
    for (size_t j = 0; j < k && code == DL_OK; j++) s->out->all_values[j] = exp(x[j]);
    free_evaluation(&e);
    free(x);
    return code;
}

/* Predictions with the constants fitted without a group: of the group, and the others' times. */
static enum dl_code predict_without(struct shared *s, size_t group, struct evaluation *e,
                                    struct dl_err *err) {
    struct dl_generalized *g = s->out;
    const size_t n = row_count(s), k = parameter_count(s);
    const struct dl_fit_values values = {s->keys, g->values + group * k, (int)k};
    for (size_t i = 0; i < n; i++) {
        e->predictions[i].iteration_s = NAN;
        e->wanted[i] = g->group_of[i] == group;
    }
    DL_TRY(dl_fit_rows_predict(s->rows, &values, g->without_s != NULL ? NULL : e->wanted,
                               e->predictions, err));
    for (size_t i = 0; i < n; i++) {
        if (g->without_s != NULL) g->without_s[group * n + i] = e->predictions[i].iteration_s;
        if (e->wanted[i]) g->held_out[i] = e->predictions[i];
    }
    DL_TRY(dl_fit_rows_anchored(s->rows, &values, e->wanted, e->predictions, err));
    for (size_t i = 0; i < n; i++)
        if (e->wanted[i]) g->anchored[i] = e->predictions[i];
    return DL_OK;
}

/* Without one group, which is then predicted. */
static enum dl_code fit_without(struct shared *s, size_t group, struct dl_err *err) {
    struct dl_generalized *g = s->out;
    const size_t n = row_count(s), k = parameter_count(s);
    bool wanted = s->choice->only_count == 0;
    for (int i = 0; i < s->choice->only_count; i++)
        wanted = wanted || strcmp(s->choice->only[i], g->groups[group]) == 0;
    if (!wanted) return DL_OK;
    double *weights = calloc(2 * n + k + n * k + 1, sizeof *weights), *x = weights + n;
    struct evaluation e;
    const bool room = make_evaluation(s, &e);
    enum dl_code code = DL_OK;
    if (weights == NULL || !room) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (code == DL_OK) {
        for (size_t i = 0; i < n; i++) weights[i] = g->group_of[i] == group ? 0 : s->weights[i];
        code = fit_from_files(s, weights, &e, x, err);
        for (size_t j = 0; j < k; j++) g->values[group * k + j] = exp(x[j]);
    }
    if (code == DL_OK) code = predict_without(s, group, &e, err);
    free(weights);
    free_evaluation(&e);
    return code;
}

/* A source of n rows weighs n / (n + 4): large ones alike, one row a fifth of that. */
static void weigh(const struct shared *s, double *weights) {
    const struct dl_fit_row *rows = s->rows->rows;
    for (size_t i = 0; i < row_count(s); i++) {
        size_t same = 0;
        for (size_t k = 0; k < row_count(s); k++)
            same += dl_known(rows[k].measured_s) && strcmp(rows[k].source, rows[i].source) == 0;
        weights[i] = dl_known(rows[i].measured_s) ? 1 / ((double)same + FEW_ROWS) : 0;
    }
}

static void find_groups(struct dl_generalized *g, struct dl_arena *arena) {
    const size_t n = g->rows->count;
    g->groups = dl_arena_alloc(arena, n + 1, sizeof *g->groups);
    g->group_of = dl_arena_alloc(arena, n + 1, sizeof *g->group_of);
    for (size_t i = 0; i < n; i++) {
        const char *name = dl_fit_row_group(&g->rows->rows[i], g->by);
        size_t k = 0;
        while (k < g->group_count && strcmp(g->groups[k], name) != 0) k++;
        if (k == g->group_count) g->groups[g->group_count++] = name;
        g->group_of[i] = k;
    }
}

static void prepare(struct shared *s, struct dl_arena *arena) {
    const size_t n = row_count(s), k = parameter_count(s);
    struct dl_generalized *g = s->out;
    double *room = dl_arena_alloc(arena, 3 * n + 6 * k + n * k + 1, sizeof *room);
    s->keys = dl_arena_alloc(arena, k + 1, sizeof *s->keys);
    s->concerned = dl_arena_alloc(arena, n * k + 1, sizeof *s->concerned);
    g->in_sample = dl_arena_alloc(arena, n + 1, sizeof *g->in_sample);
    g->anchored = dl_arena_alloc(arena, n + 1, sizeof *g->anchored);
    g->in_sample_anchored = dl_arena_alloc(arena, n + 1, sizeof *g->in_sample_anchored);
    g->held_out = dl_arena_alloc(arena, n + 1, sizeof *g->held_out);
    g->all_values = dl_arena_alloc(arena, k + 1, sizeof *g->all_values);
    g->values = dl_arena_alloc(arena, g->group_count * k + 1, sizeof *g->values);
    if (g->by == DL_LEAVE_SOURCE)
        g->without_s = dl_arena_alloc(arena, g->group_count * n + 1, sizeof *g->without_s);
    g->sensitivity = dl_arena_alloc(arena, n * k + 1, sizeof *g->sensitivity);
    s->weights = room;
    s->base_residuals = s->weights + n;
    s->low = s->base_residuals + n;
    s->high = s->low + k;
    s->prior = s->high + k;
    s->prior_sigma = s->prior + k;
    s->base_x = s->prior_sigma + k;
    s->known_x = s->base_x + k;
    s->known_residuals = s->known_x + k;
    s->jacobian = s->known_residuals + n;
    weigh(s, s->weights);
    for (size_t i = 0; i < n; i++) {
        g->in_sample[i] = g->held_out[i] = g->anchored[i] = g->in_sample_anchored[i] =
            (struct dl_fit_prediction){
                .iteration_s = NAN, .low_s = NAN, .high_s = NAN, .model_sigma_log = NAN};
        s->base_residuals[i] = NAN;
    }
    for (size_t j = 0; j < k; j++) {
        const struct dl_constant *c = &s->constants->list[j];
        s->keys[j] = c->key;
        s->low[j] = log(fmax(c->low, NOTHING * c->high)); /* a range from 0 has no logarithm */
        s->high[j] = log(c->high);
        s->prior[j] = (s->low[j] + s->high[j]) / 2;
        s->prior_sigma[j] = PRIOR_SIGMA * (s->high[j] - s->low[j]) / 2;
        s->base_x[j] = fmax(s->low[j], log(c->value));
    }
}

enum dl_code dl_generalize(const struct dl_fit_rows *rows, const struct dl_constants *constants,
                           const struct dl_generalize_choice *choice, struct dl_arena *arena,
                           struct dl_generalized *out, struct dl_err *err) {
    *out = (struct dl_generalized){.rows = rows, .constants = constants, .by = choice->by};
    struct shared s = {.rows = rows, .constants = constants, .choice = choice, .out = out};
    find_groups(out, arena);
    prepare(&s, arena);
    DL_TRY(fit_all(&s, choice->threads, err));
    return in_threads(&s, out->group_count, choice->threads, fit_without, err);
}
