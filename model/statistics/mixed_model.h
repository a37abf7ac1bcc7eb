/* mixed_model.h - linear mixed model: splits the variance of many measurements into random effects
 * (source, framework, device, ...) and a residual of each row. F-MIXED
 *
 *   y_i = sum_e z_ei u_e[level_e(i)] + r_i,  u_e ~ N(0, variance_e),
 *   r_i ~ N(0, row_variance + sum_p w_pi^2 variance_p)
 *
 * Estimated by EM on Henderson's equations (Searle, Casella and McCulloch 1992, chapter 8);
 * residual variances by scoring. */
#ifndef DL_MODEL_STATISTICS_MIXED_MODEL_H
#define DL_MODEL_STATISTICS_MIXED_MODEL_H

#include <stddef.h>

#include "model/core/status.h"

enum { DL_MIXED_EFFECTS = 8, DL_MIXED_PARTS = 8 };

struct dl_mixed_effect {
    size_t level_count;
    const int *level;        /* level of each row; -1: the effect does not apply */
    const double *covariate; /* z of each row; NULL: 1 */
    double variance;         /* in: a start above 0, or what is known */
    double *mean;            /* out: of each level; NULL: not wanted */
    double *mean_variance;   /* out: posterior variance of each level; NULL: not wanted */
};

/* A component of the residual variance that grows with a covariate of the row. */
struct dl_mixed_part {
    const double *covariate; /* w of each row */
    double variance;         /* in: a start above 0, or what is known */
};

struct dl_mixed_model {
    size_t row_count;
    const double *y; /* NAN: the row is ignored */
    struct dl_mixed_effect effects[DL_MIXED_EFFECTS];
    int effect_count;
    double row_variance; /* in: a start above 0, or what is known */
    struct dl_mixed_part parts[DL_MIXED_PARTS];
    int part_count;
};

/* Runs `steps` steps of EM; 0: estimates the levels with the given variances. DL_ERR_SYSTEM:
 * memory. */
enum dl_code dl_mixed_fit(struct dl_mixed_model *model, int steps, struct dl_err *err);

/* The residual variance of a row, all components. */
double dl_mixed_row_variance(const struct dl_mixed_model *model, size_t row);

#endif
