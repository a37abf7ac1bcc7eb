/* coll_fit.h - alpha-beta pieces through measured samples of one collective (F-COLL-FIT).
 */
#ifndef DL_MODEL_NETWORK_COLL_FIT_H
#define DL_MODEL_NETWORK_COLL_FIT_H

#include "model/machine/system.h"

enum { DL_COLL_FIT_PIECES = 5, DL_COLL_FIT_SAMPLES = 128 };

/* Fits up to `most` pieces alpha + beta S to samples of ascending bytes. Each covers two samples or
 * more by least squares of relative errors with alpha, beta >= 0; dynamic programming places the
 * boundaries between samples. The Bayesian information criterion (Schwarz 1978) selects how many,
 * with an error floor of 1 % and fewer parameters than samples. Returns their number, 0 for fewer
 * than two samples. `out` ascends in max_bytes: boundaries lie halfway between two samples in log
 * bytes, the last is HUGE_VAL. Only the first DL_COLL_FIT_SAMPLES count. *error_frac_out: mean
 * |relative error| at the samples. */
int dl_coll_fit(const struct dl_coll_sample *samples, int sample_count, int most,
                struct dl_piece *out, double *error_frac_out);

/* Time of the pieces [s]. */
double dl_coll_fit_s(const struct dl_piece *pieces, int piece_count, double bytes);

#endif
