/* interval_fit.h - intervals of predictions from the errors of runs that were in no fit. F-INTERVAL
 */
#ifndef DL_FITS_INTERVAL_FIT_H
#define DL_FITS_INTERVAL_FIT_H

#include "model/engine/interval.h"
#include "fits/generalize.h"
#include "fits/strangers.h"

/* The model of all rows' errors; and for each group that was left out, intervals of its rows from
 * the model of the other groups' errors, into held_out and anchored,
 * and of first sights into predictions of *strangers. */
enum dl_code dl_interval_fit(struct dl_generalized *g, struct dl_strangers *strangers,
                             struct dl_arena *arena, struct dl_interval_model *out,
                             struct dl_err *err);

/* As a file of data/. */
enum dl_code dl_interval_write(const struct dl_interval_model *model, const char *path,
                               struct dl_arena *arena, struct dl_err *err);

#endif
