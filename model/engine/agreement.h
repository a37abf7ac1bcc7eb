/* agreement.h - which measured runs of one's own to believe. One run that disagrees with all others
 * must not move them: it is left out. Runs that disagree without one to blame widen the interval.
 * F-AGREEMENT */
#ifndef DL_MODEL_ENGINE_AGREEMENT_H
#define DL_MODEL_ENGINE_AGREEMENT_H

#include "model/engine/interval.h"

/* A run this many times off is no measurement: a unit, a batch or a count is wrong. Chosen. */
#define DL_BEYOND_BELIEF 20.0

struct dl_agreement {
    /* of the runs that are kept; both with the widened spread */
    const struct dl_posterior *posterior;
    const struct dl_interval_model *intervals;
    double widened_ratio;    /* of the spread, at least 1 */
    size_t used;             /* runs that are kept */
    const bool *left_out;    /* of each run */
    const double *rest_log;  /* log(measured / predicted) that the other kept runs expect */
    const double *off_ratio; /* how many standard deviations of that expectation it is off */
};

/* F-AGREEMENT: each run against the posterior of all others. The one farthest off is left out while
 * it is more than 4 standard deviations away, and less than half of the runs are left out. The
 * spread grows by the scale of a t distribution with 4 degrees of freedom before any run, where
 * that is above 1. In the arena; count 0: posterior NULL. DL_ERR_SYSTEM as dl_posterior_make. */
enum dl_code dl_runs_agree(const struct dl_interval_model *model,
                           const struct dl_measured_run *runs, size_t count, struct dl_arena *arena,
                           struct dl_agreement *out, struct dl_err *err);

#endif
