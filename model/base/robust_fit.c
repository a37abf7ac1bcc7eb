/* robust_fit.c - see robust_fit.h. */
#include "model/base/robust_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 12, MOST_TRIES = 8 };

/* Room for one step; all of it in one piece. */
struct work {
    double *gradient, *step, *next, *residuals;
    gsl_matrix *normal, *damped;
    gsl_vector *right, *solution;
    bool *fixed;
};

static void free_work(struct work *w) {
    if (w->normal != NULL) gsl_matrix_free(w->normal);
    if (w->damped != NULL) gsl_matrix_free(w->damped);
    if (w->right != NULL) gsl_vector_free(w->right);
    if (w->solution != NULL) gsl_vector_free(w->solution);
    free(w->gradient);
    free(w->fixed);
}

static bool make_work(const struct dl_robust_problem *p, struct work *w) {
    const size_t k = p->parameter_count;
    *w = (struct work){.gradient = calloc(3 * k + p->row_count + 1, sizeof(double)),
                       .fixed = calloc(k + 1, sizeof(bool)),
                       .normal = gsl_matrix_alloc(k, k),
                       .damped = gsl_matrix_alloc(k, k),
                       .right = gsl_vector_alloc(k),
                       .solution = gsl_vector_alloc(k)};
    if (w->gradient == NULL || w->fixed == NULL || w->normal == NULL || w->damped == NULL ||
        w->right == NULL || w->solution == NULL)
        return false;
    w->step = w->gradient + k;
    w->next = w->step + k;
    w->residuals = w->next + k;
    return true;
}

double dl_robust_objective(const struct dl_robust_problem *p, const double *x, const double *r) {
    double sum = 0;
    for (size_t i = 0; i < p->row_count; i++) {
        if (!(p->weights[i] > 0) || isnan(r[i])) continue;
        const double t = fabs(r[i]) / p->loss_scale;
        sum += p->weights[i] * (t <= 1 ? t * t : 2 * t - 1);
    }
    for (size_t j = 0; j < p->parameter_count; j++) {
        const double t = (x[j] - p->prior[j]) / p->prior_sigma[j];
        sum += t * t;
    }
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

/* The damped step with parameters held at bounds that it would leave: solve, hold, solve again. */
static enum dl_code solve(const struct dl_robust_problem *p, const double *x, double damping,
                          struct work *w, struct dl_err *err) {
    const size_t k = p->parameter_count;
    memset(w->fixed, 0, k * sizeof *w->fixed);
    memset(w->step, 0, k * sizeof *w->step);
    for (size_t round = 0; round <= k; round++) {
        bool changed = false;
        gsl_matrix_memcpy(w->damped, w->normal);
        for (size_t a = 0; a < k; a++) {
            double right = -w->gradient[a];
            for (size_t b = 0; b < k; b++)
                if (w->fixed[b]) right -= gsl_matrix_get(w->normal, a, b) * w->step[b];
            gsl_vector_set(w->right, a, w->fixed[a] ? w->step[a] : right);
        }
        for (size_t a = 0; a < k; a++) {
            *gsl_matrix_ptr(w->damped, a, a) *= 1 + damping;
            for (size_t b = 0; b < k && w->fixed[a]; b++) {
                gsl_matrix_set(w->damped, a, b, a == b ? 1 : 0);
                gsl_matrix_set(w->damped, b, a, a == b ? 1 : 0);
            }
        }
        /* A prior on every parameter makes the matrix positive definite. */
        if (gsl_linalg_cholesky_decomp1(w->damped) != 0)
            return dl_fail(err, DL_ERR_SYSTEM, "the fit's matrix is singular");
        gsl_linalg_cholesky_solve(w->damped, w->right, w->solution);
        for (size_t a = 0; a < k; a++) {
            if (w->fixed[a]) continue;
            const double to = x[a] + gsl_vector_get(w->solution, a);
            const double kept = fmin(fmax(to, p->low[a]), p->high[a]);
            w->step[a] = kept - x[a];
            if (to < p->low[a] || to > p->high[a]) w->fixed[a] = changed = true;
        }
        if (!changed) break;
    }
    return DL_OK;
}

/* Broyden 1965: the smallest change of the Jacobian that explains the step. */
static void update(const struct dl_robust_problem *p, const double *before, const double *after,
                   const double *step, double *jacobian) {
    const size_t k = p->parameter_count;
    double length2 = 0;
    for (size_t j = 0; j < k; j++) length2 += step[j] * step[j];
    if (!(length2 > 0)) return;
    for (size_t i = 0; i < p->row_count; i++) {
        double *row = jacobian + i * k, missing = after[i] - before[i], own2 = 0;
        for (size_t j = 0; j < k; j++) {
            if (row[j] == 0) continue;
            missing -= row[j] * step[j];
            own2 += step[j] * step[j];
        }
        if (isnan(missing) || !(own2 > 0)) continue;
        for (size_t j = 0; j < k; j++)
            if (row[j] != 0) row[j] += missing * step[j] / own2;
    }
}

static double largest(const double *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* One accepted step; *done when there is none, or it is small. */
static enum dl_code advance(const struct dl_robust_problem *p, double *jacobian,
                            struct dl_robust_fit *fit, double *damping, struct work *w, bool *done,
                            struct dl_err *err) {
    const size_t k = p->parameter_count;
    make_normal(p, fit->x, fit->residuals, jacobian, w);
    for (int attempt = 0; attempt < MOST_TRIES; attempt++) {
        DL_TRY(solve(p, fit->x, *damping, w, err));
        for (size_t j = 0; j < k; j++) w->next[j] = fit->x[j] + w->step[j];
        *done = largest(w->step, k) < (p->smallest > 0 ? p->smallest : 1e-3);
        if (*done) return DL_OK;
        DL_TRY(p->residuals(p->context, w->next, w->residuals, err));
        const double objective = dl_robust_objective(p, w->next, w->residuals);
        update(p, fit->residuals, w->residuals, w->step, jacobian);
        if (objective <= fit->objective) {
            memcpy(fit->x, w->next, k * sizeof *fit->x);
            memcpy(fit->residuals, w->residuals, p->row_count * sizeof *fit->residuals);
            *done = fit->objective - objective < 1e-6 * fit->objective;
            fit->objective = objective;
            *damping = *damping > 1e-3 ? *damping / 5 : 0;
            return DL_OK;
        }
        *damping = *damping > 0 ? *damping * 5 : 0.05;
        make_normal(p, fit->x, fit->residuals, jacobian, w);
    }
    *done = true;
    return DL_OK;
}

enum dl_code dl_robust_fit(const struct dl_robust_problem *p, double *jacobian,
                           struct dl_robust_fit *fit, struct dl_err *err) {
    struct work w;
    double damping = 0;
    bool done = p->parameter_count == 0;
    enum dl_code code = DL_OK;
    const int most = p->most_steps > 0 ? p->most_steps : MOST_STEPS;
    if (!make_work(p, &w)) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (code == DL_OK) code = p->residuals(p->context, fit->x, fit->residuals, err);
    if (code == DL_OK) fit->objective = dl_robust_objective(p, fit->x, fit->residuals);
    for (fit->steps = 0; code == DL_OK && !done && fit->steps < most; fit->steps++)
        code = advance(p, jacobian, fit, &damping, &w, &done, err);
    free_work(&w);
    return code;
}

enum dl_code dl_robust_jacobian(const struct dl_robust_problem *p, const double *x,
                                const double *residuals, double step, double *jacobian,
                                struct dl_err *err) {
    const size_t k = p->parameter_count, n = p->row_count;
    double *at = calloc(k + n + 1, sizeof *at);
    enum dl_code code = at == NULL ? dl_fail(err, DL_ERR_SYSTEM, "out of memory") : DL_OK;
    for (size_t j = 0; code == DL_OK && j < k; j++) {
        double *moved = at + k;
        memcpy(at, x, k * sizeof *at);
        at[j] += x[j] + step <= p->high[j] ? step : -step;
        code = p->residuals(p->context, at, moved, err);
        for (size_t i = 0; code == DL_OK && i < n; i++) {
            const double slope = (moved[i] - residuals[i]) / (at[j] - x[j]);
            jacobian[i * k + j] = isnan(slope) ? 0 : slope;
        }
    }
    free(at);
    return code;
}
