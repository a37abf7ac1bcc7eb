/* interval_ends.h - ends of intervals from runs that no fit has seen: those of data/runs as their
 * source is left out of the constants, and those of other sources as they were first compared.
 * F-INTERVAL, F-STRANGER */
#ifndef DL_FITS_INTERVAL_ENDS_H
#define DL_FITS_INTERVAL_ENDS_H

#include "fits/generalize.h"
#include "fits/strangers.h"

/* The widths of *out; and intervals of the rows of each group from what the others say, into
 * held_out and anchored of *g and predictions of *strangers, those around the prediction of first
 * sight. */
enum dl_code dl_interval_ends_fit(struct dl_generalized *g, struct dl_strangers *strangers,
                                  struct dl_arena *arena, struct dl_interval_model *out,
                                  struct dl_err *err);

#endif
