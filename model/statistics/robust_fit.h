/* robust_fit.h - robust fit of a few parameters to many measurements with outliers: bounded
 * nonlinear least squares with Huber's loss and a weak normal prior. F-ROBUST-FIT
 *
 *   minimize  sum_i w_i H(r_i(x) / s) + sum_j ((x_j - m_j) / p_j)^2,  low_j <= x_j <= high_j
 *   H(t) = t^2 up to 1, 2 |t| - 1 above
 *
 * by Gauss-Newton steps of iteratively reweighted residuals (Holland and Welsch 1977) with a trust
 * region for each parameter: most parameters affect few rows, so a step too long for one does not
 * delay the others. The caller computes residuals and derivatives. */
#ifndef DL_MODEL_STATISTICS_ROBUST_FIT_H
#define DL_MODEL_STATISTICS_ROBUST_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/status.h"

struct dl_robust_problem {
    size_t row_count, parameter_count;
    const double *weights;    /* of rows; 0: ignored */
    double loss_scale;        /* s: residual above which influence is bounded */
    const double *low, *high; /* bounds of the parameters */
    const double *prior, *prior_sigma;
    /* Residuals at x; NAN: the row is ignored. */
    enum dl_code (*residuals)(void *context, const double *x, double *residuals,
                              struct dl_err *err);
    /* Derivatives of all residuals by one parameter, into jacobian[row * parameter_count +
     * parameter]; called again after the parameter has moved. */
    enum dl_code (*derivatives)(void *context, const double *x, const double *residuals,
                                size_t parameter, double *jacobian, struct dl_err *err);
    void *context;
    int most_steps;  /* 0: 30 */
    double smallest; /* change of a parameter that counts as converged; 0: 1e-3 */
    double refresh;  /* change after which its derivatives are computed again; 0: 0.2 */
};

struct dl_robust_fit {
    double *x;         /* in: the start; out: the solution */
    double *residuals; /* of the solution */
    double objective;
    int steps;
};

/* `jacobian` (row_count x parameter_count, row by row) holds the derivatives at the start and,
 * afterwards, the updated ones. DL_ERR_SYSTEM: memory; else the callbacks' error. */
enum dl_code dl_robust_fit(const struct dl_robust_problem *problem, double *jacobian,
                           struct dl_robust_fit *fit, struct dl_err *err);

/* The objective of given residuals. */
double dl_robust_objective(const struct dl_robust_problem *problem, const double *x,
                           const double *residuals);

#endif
