/* spread_of_plans.h - how far the errors of the plans of one job lie apart. F-TIE */
#ifndef DL_FITS_SPREAD_OF_PLANS_H
#define DL_FITS_SPREAD_OF_PLANS_H

#include "fits/generalize.h"

/* F-TIE: standard deviation of the errors of plans around the mean error of their job, over jobs
 * with at least two; each group of rows (source) counts the same. 0: no such jobs. `errors` has one
 * of each row, NAN: none. DL_ERR_SYSTEM: out of memory. */
void dl_spread_of_plans(const struct dl_generalized *g, const double *errors,
                        struct dl_arena *arena, double *out);

#endif
