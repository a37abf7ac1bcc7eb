/* coll_fit.h - alpha-beta pieces through measured samples of one collective (F-COLL-FIT).
 */
#ifndef DL_MODEL_COLLECTIVE_COLL_FIT_H
#define DL_MODEL_COLLECTIVE_COLL_FIT_H

#include "model/hardware/system.h"

enum { DL_COLL_FIT_PIECES = 5, DL_COLL_FIT_SAMPLES = 128 };

/* Up to `most` pieces alpha + beta S, each through two samples or more by least squares of relative
 * errors, alpha and beta not negative; borders between samples by dynamic programming; as many as
 * the Bayesian information criterion (Schwarz 1978) wants, with an error floor of 1 %, and fewer
 * parameters than samples. Returns how many, 0 without two samples; `out` has max_bytes ascending,
 * the border half way between two samples in log bytes, the last HUGE_VAL. Only the first
 * DL_COLL_FIT_SAMPLES count. *error_frac_out: mean |error| at the samples. */
int dl_coll_fit(const struct dl_coll_sample *samples, int sample_count, int most,
                struct dl_piece *out, double *error_frac_out);

/* Time of the pieces [s]. */
double dl_coll_fit_s(const struct dl_piece *pieces, int piece_count, double bytes);

#endif
