/* linear.h - small dense symmetric systems by GSL; errors return false instead of calling GSL's
 * handler. */
#ifndef DL_MODEL_STATISTICS_LINEAR_H
#define DL_MODEL_STATISTICS_LINEAR_H

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>
#include <stdbool.h>

/* solution = matrix^-1 right; the matrix is replaced by its Cholesky factor. false: it is not
 * positive definite. */
bool dl_cholesky_solve(gsl_matrix *matrix, const gsl_vector *right, gsl_vector *solution);
/* Replaces the matrix by its inverse. false: it is not positive definite. */
bool dl_cholesky_invert(gsl_matrix *matrix);

#endif
