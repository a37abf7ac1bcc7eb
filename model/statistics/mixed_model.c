/* mixed_model.c - see mixed_model.h. */
#include "model/statistics/mixed_model.h"

#include <math.h>

#include "model/statistics/linear.h"

#define LEAST_VARIANCE 1e-8

struct work {
    gsl_matrix *inverse; /* of Henderson's matrix */
    gsl_vector *right, *solution;
    size_t first[DL_MIXED_EFFECTS]; /* column of the first level of each effect */
    size_t columns;
};

static double covariate(const struct dl_mixed_effect *e, size_t row) {
    return e->covariate != NULL ? e->covariate[row] : 1;
}

double dl_mixed_row_variance(const struct dl_mixed_model *m, size_t row) {
    double sum = m->row_variance;
    for (int p = 0; p < m->part_count; p++) {
        const double w = m->parts[p].covariate[row];
        sum += w * w * m->parts[p].variance;
    }
    return sum;
}

/* Z'Z / row variance + the inverse variances of the levels, and Z'y / row variance. */
static void make_equations(const struct dl_mixed_model *m, struct work *w) {
    gsl_matrix_set_zero(w->inverse);
    gsl_vector_set_zero(w->right);
    for (size_t i = 0; i < m->row_count; i++) {
        if (isnan(m->y[i])) continue;
        const double variance = dl_mixed_row_variance(m, i);
        for (int a = 0; a < m->effect_count; a++) {
            const struct dl_mixed_effect *ea = &m->effects[a];
            if (ea->level[i] < 0) continue;
            const size_t at = w->first[a] + (size_t)ea->level[i];
            const double z = covariate(ea, i) / variance;
            *gsl_vector_ptr(w->right, at) += z * m->y[i];
            for (int b = 0; b < m->effect_count; b++) {
                const struct dl_mixed_effect *eb = &m->effects[b];
                if (eb->level[i] < 0) continue;
                *gsl_matrix_ptr(w->inverse, at, w->first[b] + (size_t)eb->level[i]) +=
                    z * covariate(eb, i);
            }
        }
    }
    for (int e = 0; e < m->effect_count; e++) {
        for (size_t l = 0; l < m->effects[e].level_count; l++)
            *gsl_matrix_ptr(w->inverse, w->first[e] + l, w->first[e] + l) +=
                1 / m->effects[e].variance;
    }
}

static enum dl_code solve(const struct dl_mixed_model *m, struct work *w, struct dl_err *err) {
    make_equations(m, w);
    if (!dl_cholesky_invert(w->inverse))
        return dl_fail(err, DL_ERR_SYSTEM, "the equations of the effects are singular");
    for (size_t a = 0; a < w->columns; a++) {
        double sum = 0;
        for (size_t b = 0; b < w->columns; b++)
            sum += gsl_matrix_get(w->inverse, a, b) * gsl_vector_get(w->right, b);
        gsl_vector_set(w->solution, a, sum);
    }
    return DL_OK;
}

/* The variance that the effects' estimates leave to a row's sum of effects. */
static double row_uncertainty(const struct dl_mixed_model *m, const struct work *w, size_t row) {
    double sum = 0;
    for (int a = 0; a < m->effect_count; a++) {
        const struct dl_mixed_effect *ea = &m->effects[a];
        if (ea->level[row] < 0) continue;
        for (int b = 0; b < m->effect_count; b++) {
            const struct dl_mixed_effect *eb = &m->effects[b];
            if (eb->level[row] < 0) continue;
            sum += covariate(ea, row) * covariate(eb, row) *
                   gsl_matrix_get(w->inverse, w->first[a] + (size_t)ea->level[row],
                                  w->first[b] + (size_t)eb->level[row]);
        }
    }
    return sum;
}

static double row_mean(const struct dl_mixed_model *m, const struct work *w, size_t row) {
    double sum = 0;
    for (int e = 0; e < m->effect_count; e++) {
        const struct dl_mixed_effect *effect = &m->effects[e];
        if (effect->level[row] >= 0)
            sum += covariate(effect, row) *
                   gsl_vector_get(w->solution, w->first[e] + (size_t)effect->level[row]);
    }
    return sum;
}

/* The rows' variances: each part by its share in the expected squares over that in the variances.
 * With one part, their mean. */
static void maximize_rows(struct dl_mixed_model *m, const struct work *w) {
    double squares[DL_MIXED_PARTS + 1] = {0}, variances[DL_MIXED_PARTS + 1] = {0};
    for (size_t i = 0; i < m->row_count; i++) {
        if (isnan(m->y[i])) continue;
        const double left = m->y[i] - row_mean(m, w, i),
                     square = left * left + row_uncertainty(m, w, i),
                     variance = dl_mixed_row_variance(m, i);
        for (int p = 0; p <= m->part_count; p++) {
            const double z = p == m->part_count ? 1 : m->parts[p].covariate[i];
            squares[p] += z * z * square / (variance * variance);
            variances[p] += z * z / variance;
        }
    }
    for (int p = 0; p <= m->part_count; p++) {
        double *variance = p == m->part_count ? &m->row_variance : &m->parts[p].variance;
        if (variances[p] > 0)
            *variance = fmax(LEAST_VARIANCE, *variance * squares[p] / variances[p]);
    }
}

/* The variances that the expected squares of levels and rows give. */
static void maximize(struct dl_mixed_model *m, const struct work *w) {
    for (int e = 0; e < m->effect_count; e++) {
        struct dl_mixed_effect *effect = &m->effects[e];
        double sum = 0;
        for (size_t l = 0; l < effect->level_count; l++) {
            const size_t at = w->first[e] + l;
            const double u = gsl_vector_get(w->solution, at);
            sum += u * u + gsl_matrix_get(w->inverse, at, at);
        }
        if (effect->level_count > 0)
            effect->variance = fmax(LEAST_VARIANCE, sum / (double)effect->level_count);
    }
    maximize_rows(m, w);
}

static void keep(struct dl_mixed_model *m, const struct work *w) {
    for (int e = 0; e < m->effect_count; e++) {
        for (size_t l = 0; l < m->effects[e].level_count; l++) {
            const size_t at = w->first[e] + l;
            if (m->effects[e].mean != NULL) m->effects[e].mean[l] = gsl_vector_get(w->solution, at);
            if (m->effects[e].mean_variance != NULL)
                m->effects[e].mean_variance[l] = gsl_matrix_get(w->inverse, at, at);
        }
    }
}

enum dl_code dl_mixed_fit(struct dl_mixed_model *m, int steps, struct dl_err *err) {
    struct work w = {.columns = 0};
    for (int e = 0; e < m->effect_count; e++) {
        w.first[e] = w.columns;
        w.columns += m->effects[e].level_count;
    }
    if (w.columns == 0) return DL_OK;
    w.inverse = gsl_matrix_alloc(w.columns, w.columns);
    w.right = gsl_vector_alloc(w.columns);
    w.solution = gsl_vector_alloc(w.columns);
    enum dl_code code = DL_OK;
    if (w.inverse == NULL || w.right == NULL || w.solution == NULL)
        code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < steps && code == DL_OK; i++) {
        code = solve(m, &w, err);
        if (code == DL_OK) maximize(m, &w);
    }
    if (code == DL_OK) code = solve(m, &w, err);
    if (code == DL_OK) keep(m, &w);
    if (w.inverse != NULL) gsl_matrix_free(w.inverse);
    if (w.right != NULL) gsl_vector_free(w.right);
    if (w.solution != NULL) gsl_vector_free(w.solution);
    return code;
}
