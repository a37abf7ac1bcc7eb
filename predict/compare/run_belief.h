/* run_belief.h - whether a measured run can be what its row says, and what its row may mean
 * instead: a unit, a count, a disturbed machine. */
#ifndef DL_PREDICT_COMPARE_RUN_BELIEF_H
#define DL_PREDICT_COMPARE_RUN_BELIEF_H

#include "predict/compare/compare_runs.h"

/* Why a run with this measured / predicted iteration cannot be what its row says, with what is
 * suspicious: faster than the device's peak (F-MFU; convolutions by Winograd may be 2.25 times as
 * fast), or DL_BEYOND_BELIEF times off. NULL: it can. */
const char *dl_run_beyond_belief(const struct dl_run_row *run, const struct dl_prediction *p,
                                 double ratio, struct dl_arena *arena);

/* What explains a run that takes `ratio` times its prediction where the other runs of its table
 * take `rest_ratio` times theirs. Never NULL. */
const char *dl_run_suspicion(const struct dl_run_row *run, const struct dl_prediction *p,
                             double ratio, double rest_ratio, struct dl_arena *arena);

#endif
