/* robust_fit.c - see robust_fit.h. */
#include "model/statistics/robust_fit.h"

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/linear.h"

enum { MAX_STEPS = 30 };
#define SMALLEST 1e-3
#define REFRESH 0.2
#define FIRST_RADIUS 0.7

/* Room for one step; the vectors in one piece. */
struct work {
    double *gradient, *step, *next, *radius, *derived_at, *residuals;
    gsl_matrix *normal, *reduced;
    gsl_vector *right, *solution;
    bool *fixed;
};

static void free_work(struct work *w) {
    if (w->normal != NULL) gsl_matrix_free(w->normal);
    if (w->reduced != NULL) gsl_matrix_free(w->reduced);
    if (w->right != NULL) gsl_vector_free(w->right);
    if (w->solution != NULL) gsl_vector_free(w->solution);
    free(w->gradient);
    free(w->fixed);
}

static bool make_work(const struct dl_robust_problem *p, struct work *w) {
    const size_t k = p->parameter_count;
    *w = (struct work){.gradient = calloc(5 * k + p->row_count + 1, sizeof(double)),
                       .fixed = calloc(k + 1, sizeof(bool)),
                       .normal = gsl_matrix_alloc(k, k),
                       .reduced = gsl_matrix_alloc(k, k),
                       .right = gsl_vector_alloc(k),
                       .solution = gsl_vector_alloc(k)};
    if (w->gradient == NULL || w->fixed == NULL || w->normal == NULL || w->reduced == NULL ||
        w->right == NULL || w->solution == NULL)
        return false;
    w->step = w->gradient + k;
    w->next = w->step + k;
    w->radius = w->next + k;
    w->derived_at = w->radius + k;
    w->residuals = w->derived_at + k;
    return true;
}

static double loss(const struct dl_robust_problem *p, size_t row, double residual) {
    if (!(p->weights[row] > 0) || isnan(residual)) return 0;
    const double t = fabs(residual) / p->loss_scale;
    return p->weights[row] * (t <= 1 ? t * t : 2 * t - 1);
}

static double prior_loss(const struct dl_robust_problem *p, size_t parameter, double x) {
    const double t = (x - p->prior[parameter]) / p->prior_sigma[parameter];
    return t * t;
}

double dl_robust_objective(const struct dl_robust_problem *p, const double *x, const double *r) {
    double sum = 0;
    for (size_t i = 0; i < p->row_count; i++) sum += loss(p, i, r[i]);
    for (size_t j = 0; j < p->parameter_count; j++) sum += prior_loss(p, j, x[j]);
    return sum;
}

/* Half of the objective's gradient, and Gauss and Newton's matrix. */
static void make_normal(const struct dl_robust_problem *p, const double *x, const double *r,
                        const double *jacobian, struct work *w) {
    const size_t k = p->parameter_count;
    gsl_matrix_set_zero(w->normal);
    memset(w->gradient, 0, k * sizeof *w->gradient);
    for (size_t i = 0; i < p->row_count; i++) {
        if (!(p->weights[i] > 0) || isnan(r[i])) continue;
        const double t = fabs(r[i]) / p->loss_scale, s2 = p->loss_scale * p->loss_scale,
                     weight = p->weights[i] / (s2 * fmax(1, t)), *row = jacobian + i * k;
        for (size_t a = 0; a < k; a++) {
            if (row[a] == 0 || isnan(row[a])) continue; /* most constants concern few rows */
            w->gradient[a] += weight * row[a] * r[i];
            for (size_t b = 0; b < k; b++) {
                if (isnan(row[b])) continue;
                *gsl_matrix_ptr(w->normal, a, b) += weight * row[a] * row[b];
            }
        }
    }
    for (size_t a = 0; a < k; a++) {
        const double prior = 1 / (p->prior_sigma[a] * p->prior_sigma[a]);
        w->gradient[a] += prior * (x[a] - p->prior[a]);
        *gsl_matrix_ptr(w->normal, a, a) += prior;
    }
}

/* The step, with parameters held at the bounds of their range or trust region that they would
 * leave: solve, hold, solve again. */
static enum dl_code solve(const struct dl_robust_problem *p, const double *x, struct work *w,
                          struct dl_err *err) {
    const size_t k = p->parameter_count;
    memset(w->fixed, 0, k * sizeof *w->fixed);
    memset(w->step, 0, k * sizeof *w->step);
    for (bool changed = true; changed;) {
        changed = false;
        gsl_matrix_memcpy(w->reduced, w->normal);
        for (size_t a = 0; a < k; a++) {
            double right = -w->gradient[a];
            for (size_t b = 0; b < k; b++)
                if (w->fixed[b]) right -= gsl_matrix_get(w->normal, a, b) * w->step[b];
            gsl_vector_set(w->right, a, w->fixed[a] ? w->step[a] : right);
            for (size_t b = 0; b < k && w->fixed[a]; b++) {
                gsl_matrix_set(w->reduced, a, b, a == b ? 1 : 0);
                gsl_matrix_set(w->reduced, b, a, a == b ? 1 : 0);
            }
        }
        /* A prior on every parameter makes the matrix positive definite. */
        if (!dl_cholesky_solve(w->reduced, w->right, w->solution))
            return dl_fail(err, DL_ERR_SYSTEM, "the fit's matrix is not positive definite");
        for (size_t a = 0; a < k; a++) {
            if (w->fixed[a]) continue;
            const double step = gsl_vector_get(w->solution, a);
            const double least = fmax(p->low[a] - x[a], -w->radius[a]),
                         most = fmin(p->high[a] - x[a], w->radius[a]);
            w->step[a] = fmin(fmax(step, least), most);
            if (step < least || step > most) w->fixed[a] = changed = true;
        }
    }
    return DL_OK;
}

/* After a step that made the sum larger: a shorter one for the parameters whose own rows got worse;
 * for all where none did. */
static void shorten(const struct dl_robust_problem *p, const double *jacobian,
                    const struct dl_robust_fit *fit, struct work *w) {
    const size_t k = p->parameter_count;
    bool any = false;
    for (int round = 0; round < 2 && !any; round++) {
        for (size_t j = 0; j < k; j++) {
            double change = prior_loss(p, j, w->next[j]) - prior_loss(p, j, fit->x[j]);
            for (size_t i = 0; i < p->row_count; i++) {
                if (jacobian[i * k + j] != 0)
                    change += loss(p, i, w->residuals[i]) - loss(p, i, fit->residuals[i]);
            }
            if (w->step[j] == 0 || (round == 0 && change <= 0)) continue;
            w->radius[j] = fabs(w->step[j]) / 3;
            any = true;
        }
    }
}

static enum dl_code derive(const struct dl_robust_problem *p, const struct dl_robust_fit *fit,
                           double *jacobian, struct work *w, struct dl_err *err) {
    const double far = p->refresh > 0 ? p->refresh : REFRESH;
    for (size_t j = 0; j < p->parameter_count; j++) {
        if (fabs(fit->x[j] - w->derived_at[j]) < far) continue;
        DL_TRY(p->derivatives(p->context, fit->x, fit->residuals, j, jacobian, err));
        w->derived_at[j] = fit->x[j];
    }
    return DL_OK;
}

/* One step, taken or shortened; *done when no parameter moves any more. */
static enum dl_code advance(const struct dl_robust_problem *p, double *jacobian,
                            struct dl_robust_fit *fit, struct work *w, bool *done,
                            struct dl_err *err) {
    const size_t k = p->parameter_count;
    const double smallest = p->smallest > 0 ? p->smallest : SMALLEST;
    DL_TRY(derive(p, fit, jacobian, w, err));
    make_normal(p, fit->x, fit->residuals, jacobian, w);
    DL_TRY(solve(p, fit->x, w, err));
    *done = true;
    for (size_t j = 0; j < k; j++) {
        if (fabs(w->step[j]) < smallest) w->step[j] = 0;
        w->next[j] = fit->x[j] + w->step[j];
        *done = *done && w->step[j] == 0;
    }
    if (*done) return DL_OK;
    DL_TRY(p->residuals(p->context, w->next, w->residuals, err));
    const double objective = dl_robust_objective(p, w->next, w->residuals);
    if (!(objective <= fit->objective)) {
        shorten(p, jacobian, fit, w);
        return DL_OK;
    }
    for (size_t j = 0; j < k; j++) {
        if (fabs(w->step[j]) > 0.99 * w->radius[j]) w->radius[j] *= 2;
    }
    *done = fit->objective - objective < 1e-5 * fit->objective;
    memcpy(fit->x, w->next, k * sizeof *fit->x);
    memcpy(fit->residuals, w->residuals, p->row_count * sizeof *fit->residuals);
    fit->objective = objective;
    return DL_OK;
}

enum dl_code dl_robust_fit(const struct dl_robust_problem *p, double *jacobian,
                           struct dl_robust_fit *fit, struct dl_err *err) {
    struct work w = {.gradient = NULL};
    bool done = p->parameter_count == 0;
    enum dl_code code = DL_OK;
    const int most = p->most_steps > 0 ? p->most_steps : MAX_STEPS;
    if (!done && !make_work(p, &w)) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t j = 0; j < p->parameter_count && code == DL_OK; j++) {
        w.radius[j] = FIRST_RADIUS;
        w.derived_at[j] = fit->x[j];
    }
    if (code == DL_OK) code = p->residuals(p->context, fit->x, fit->residuals, err);
    if (code == DL_OK) fit->objective = dl_robust_objective(p, fit->x, fit->residuals);
    for (fit->steps = 0; code == DL_OK && !done && fit->steps < most; fit->steps++)
        code = advance(p, jacobian, fit, &w, &done, err);
    free_work(&w);
    return code;
}
