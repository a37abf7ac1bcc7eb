/* spread_of_alternatives.h - how far the errors of the alternatives of one job lie apart. F-TIE */
#ifndef DL_FITS_SPREAD_OF_ALTERNATIVES_H
#define DL_FITS_SPREAD_OF_ALTERNATIVES_H

#include "fits/strangers.h"
#include "model/core/arena.h"

/* Errors of rows that no fit has seen. */
struct dl_alternative {
    const struct dl_fit_row *row;
    double error_log; /* log(measured / predicted); NAN: none */
};

/* F-TIE: standard deviation of the errors of alternatives (plans of one job, or frameworks that ran
 * it) around the mean error of their job, over jobs with at least two; each source counts the same.
 * 0: no such jobs. */
double dl_spread_of_alternatives(const struct dl_alternative *list, size_t count, bool frameworks,
                                 struct dl_arena *arena);

#endif
