/* linear.c - see linear.h. GSL's default handler of faults would end the program, and setting
 * another one is a global that threads share: what it would complain about is tested here first. */
#include "model/statistics/linear.h"

#include <gsl/gsl_linalg.h>
#include <math.h>

/* Cholesky-Banachiewicz in the lower triangle, as gsl_linalg_cholesky_decomp1 leaves it. */
static bool factor(gsl_matrix *a) {
    const size_t n = a->size1;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double *row_i = gsl_matrix_ptr(a, i, 0), *row_j = gsl_matrix_ptr(a, j, 0);
            double sum = row_i[j];
            for (size_t k = 0; k < j; k++) sum -= row_i[k] * row_j[k];
            if (i == j && !(sum > 0)) return false;
            row_i[j] = i == j ? sqrt(sum) : sum / row_j[j];
        }
    }
    return true;
}

bool dl_cholesky_solve(gsl_matrix *matrix, const gsl_vector *right, gsl_vector *solution) {
    return factor(matrix) && gsl_linalg_cholesky_solve(matrix, right, solution) == 0;
}

bool dl_cholesky_invert(gsl_matrix *matrix) {
    return factor(matrix) && gsl_linalg_cholesky_invert(matrix) == 0;
}
