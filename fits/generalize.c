/* generalize.c - see generalize.h. Rows of one source weigh together as much as those of any other.
 */
#include "fits/generalize.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "model/statistics/robust_fit.h"
#include "process/task_threads.h"

#define LOSS_SCALE 0.05 /* errors above 5 % count by their size, not their square */
#define PRIOR_SIGMA 3.0 /* of half a range: its ends cost 1/9 of one source that errs by 5 % */
#define FEW_ROWS 4.0
#define NOTHING 1e-3
#define STEP 0.03 /* of log(constant), for derivatives */

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
};

static size_t row_count(const struct shared *s) { return s->rows->count; }
static size_t parameter_count(const struct shared *s) { return (size_t)s->constants->count; }

static double log_ratio(const struct dl_fit_row *row, const struct dl_fit_prediction *p) {
    return log(p->iteration_s / row->measured_s);
}

/* One fit's own room. */
struct evaluation {
    const struct shared *shared;
    struct dl_fit_prediction *predictions;
    bool *wanted;
    double *values, *x, *residuals;
};

static struct evaluation evaluation_in(const struct shared *s, struct dl_arena *arena) {
    const size_t n = row_count(s), k = parameter_count(s);
    double *room = dl_arena_alloc(arena, 2 * k + n, sizeof *room);
    return (struct evaluation){s,
                               dl_arena_alloc(arena, n, sizeof(struct dl_fit_prediction)),
                               dl_arena_alloc(arena, n, sizeof(bool)),
                               room,
                               room + k,
                               room + 2 * k};
}

/* Residuals at x of the rows that are wanted; others stay. */
static enum dl_code residuals_of(const struct evaluation *e, const double *x, const bool *wanted,
                                 double *residuals, struct dl_err *err) {
    const struct shared *s = e->shared;
    const size_t n = row_count(s), k = parameter_count(s);
    for (size_t j = 0; j < k; j++) e->values[j] = exp(x[j]);
    DL_TRY(dl_fit_rows_predict(s->rows, &(struct dl_fit_values){s->keys, e->values, (int)k}, wanted,
                               e->predictions, err));
    for (size_t i = 0; i < n; i++) {
        if (wanted == NULL || wanted[i])
            residuals[i] = log_ratio(&s->rows->rows[i], &e->predictions[i]);
    }
    return DL_OK;
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
    return any ? residuals_of(e, x, e->wanted, residuals, err) : DL_OK;
}

/* The derivatives by one constant of the rows that it concerns. */
static enum dl_code derive(void *context, const double *x, const double *residuals, size_t constant,
                           double *jacobian, struct dl_err *err) {
    const struct evaluation *e = context;
    const struct shared *s = e->shared;
    const size_t n = row_count(s), k = parameter_count(s);
    memcpy(e->x, x, k * sizeof *x);
    memcpy(e->residuals, residuals, n * sizeof *residuals);
    const double step = x[constant] + STEP <= s->high[constant] ? STEP : -STEP;
    e->x[constant] += step;
    const bool *wanted = s->concerned + constant * n;
    DL_TRY(residuals_of(e, e->x, wanted, e->residuals, err));
    for (size_t i = 0; i < n; i++) {
        const double slope = (e->residuals[i] - residuals[i]) / step;
        jacobian[i * k + constant] = !wanted[i] || isnan(slope) ? 0 : slope;
    }
    return DL_OK;
}

/* Which rows depend on a constant, and how, at the start. */
static enum dl_code find_concerned(void *context, int thread, int64_t task, struct dl_err *err) {
    (void)thread;
    struct shared *s = context;
    struct dl_arena scratch = {0};
    struct evaluation e = evaluation_in(s, &scratch);
    const size_t n = row_count(s), k = parameter_count(s), constant = (size_t)task;
    bool *concerned = s->concerned + constant * n;
    for (size_t i = 0; i < n; i++) concerned[i] = true;
    const enum dl_code code = derive(&e, s->base_x, s->base_residuals, constant, s->jacobian, err);
    for (size_t i = 0; i < n && code == DL_OK; i++)
        concerned[i] = fabs(s->jacobian[i * k + constant]) > 1e-9;
    dl_arena_free(&scratch);
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

/* One fit from the constants of the files, so that nothing of the other fits is in it: its
 * constants. */
static enum dl_code fit_from_files(const double *weights, struct evaluation *e,
                                   struct dl_arena *scratch, double *values, struct dl_err *err) {
    const struct shared *s = e->shared;
    const size_t n = row_count(s), k = parameter_count(s);
    double *x = dl_arena_alloc(scratch, k + n + n * k, sizeof *x), *jacobian = x + k + n;
    const struct dl_robust_problem problem = problem_of(s, weights, e);
    struct dl_robust_fit fit = {.x = x, .residuals = x + k};
    memcpy(x, s->base_x, k * sizeof *x);
    memcpy(x + k, s->base_residuals, n * sizeof *x);
    memcpy(jacobian, s->jacobian, n * k * sizeof *jacobian);
    DL_TRY(dl_robust_fit(&problem, jacobian, &fit, err));
    for (size_t j = 0; j < k; j++) values[j] = exp(x[j]);
    return DL_OK;
}

/* All rows, and what every fit shares: residuals and derivatives with the constants of the files.
 */
static enum dl_code fit_all(struct shared *s, int threads, struct dl_arena *arena,
                            struct dl_err *err) {
    const size_t n = row_count(s), k = parameter_count(s);
    struct evaluation e = evaluation_in(s, arena), start = e;
    start.predictions = s->out->in_sample;
    DL_TRY(residuals_of(&start, s->base_x, NULL, s->base_residuals, err));
    DL_TRY(dl_fit_rows_anchored(s->rows, NULL, NULL, s->out->in_sample_anchored, err));
    memcpy(s->known_x, s->base_x, k * sizeof *s->known_x);
    memcpy(s->known_residuals, s->base_residuals, n * sizeof *s->known_residuals);
    DL_TRY(dl_threads_run(threads, (int64_t)k, find_concerned, s, err));
    memcpy(s->out->sensitivity, s->jacobian, n * k * sizeof *s->jacobian);
    return fit_from_files(s->weights, &e, arena, s->out->all_values, err);
}

/* Predictions with the constants fitted without a group: of the group, and the others' times. */
static enum dl_code predict_without(size_t group, struct evaluation *e, struct dl_err *err) {
    const struct shared *s = e->shared;
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
static enum dl_code fit_without(void *context, int thread, int64_t task, struct dl_err *err) {
    (void)thread;
    struct shared *s = context;
    struct dl_generalized *g = s->out;
    const size_t n = row_count(s), k = parameter_count(s), group = (size_t)task;
    bool wanted = s->choice->only_count == 0;
    for (int i = 0; i < s->choice->only_count; i++)
        wanted = wanted || strcmp(s->choice->only[i], g->groups[group]) == 0;
    if (!wanted) return DL_OK;
    struct dl_arena scratch = {0};
    struct evaluation e = evaluation_in(s, &scratch);
    double *weights = dl_arena_alloc(&scratch, n, sizeof *weights);
    for (size_t i = 0; i < n; i++) weights[i] = g->group_of[i] == group ? 0 : s->weights[i];
    enum dl_code code = fit_from_files(weights, &e, &scratch, g->values + group * k, err);
    if (code == DL_OK) code = predict_without(group, &e, err);
    dl_arena_free(&scratch);
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
    int count = 0;
    g->groups = dl_arena_alloc(arena, n + 1, sizeof *g->groups);
    g->group_of = dl_arena_alloc(arena, n + 1, sizeof *g->group_of);
    for (size_t i = 0; i < n; i++) {
        const char *name = dl_fit_row_group(&g->rows->rows[i], g->by);
        g->group_of[i] = (size_t)dl_text_place(g->groups, &count, INT_MAX, name);
    }
    g->group_count = (size_t)count;
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
    DL_TRY(fit_all(&s, choice->threads, arena, err));
    return dl_threads_run(choice->threads, (int64_t)out->group_count, fit_without, &s, err);
}
