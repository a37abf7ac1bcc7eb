/* fit.h - from measured message times to alpha and beta. Pure functions.
 *
 * F-FIT-HOCKNEY: t = alpha + beta n (Hockney 1994, Parallel Computing 20(3)), by least squares of the relative error: a
 * sample of 1 us counts as much as one of 1 s. The weights 1/t are those of the fitted line (iterated), not of the
 * measured times, which would pull the line down.
 * F-FIT-PIECES: up to DL_FIT_PIECES_MAX lines over ranges of n where one does not fit (a change of protocol or algorithm,
 * the end of a cache): the best break points by dynamic programming, their number by the Bayesian information criterion
 * (Schwarz 1978).
 * Not modelled: jumps inside a piece; times that depend on more than the size.
 */
#ifndef DL_CALIBRATE_FIT_H
#define DL_CALIBRATE_FIT_H

#include <stddef.h>

#include "model/arena.h"
#include "model/link.h"
#include "model/status.h"

enum { DL_FIT_PIECES_MAX = 4 };

struct dl_fit_point {
    double bytes, time_s;
};

struct dl_hockney_fit {
    double alpha_s, beta_s_per_byte;
    double alpha_variance, covariance, beta_variance; /* s^2, s^2/byte, s^2/byte^2; NAN with fewer than 3 samples */
    double alpha_half_width_s, beta_half_width;       /* of the 95 % intervals (Student); NAN likewise */
    double relative_sigma;                            /* standard deviation of t / line - 1; NAN likewise */
    double min_bytes, max_bytes;                      /* of the samples */
    size_t samples;
};

/* One line through samples[0..n) in any order. With samples of one size only: alpha is their mean, beta 0. A slope below
 * 0 becomes 0, then a constant is fitted; a constant below 0 becomes 0, then a slope alone (its variances are then 0).
 * DL_ERR_INPUT: no sample, or a size below 0 or a time of 0 or below, or one that is not finite. */
enum dl_code dl_fit_hockney(const struct dl_fit_point *samples, size_t n, struct dl_hockney_fit *out, struct dl_err *err);

/* At most `most` pieces (1 to DL_FIT_PIECES_MAX), ascending in size, of at least 3 different sizes each. Only the first
 * piece keeps alpha at 0 or above: a steep piece after a flat one may cross 0 below its range. fits[i].max_bytes is the
 * end of piece i: where it meets the next line, if that lies between their samples, else midway (geometric mean); the
 * largest size for the last one. Errors as above. */
enum dl_code dl_fit_pieces(const struct dl_fit_point *samples, size_t n, size_t most,
                           struct dl_hockney_fit fits[DL_FIT_PIECES_MAX], size_t *count_out, struct dl_err *err);

/* The same as the pieces of a link or a measured collective. `out` points into `arena`. */
enum dl_code dl_fit_to_pieces(const struct dl_hockney_fit *fits, size_t count, struct dl_arena *arena,
                              struct dl_piece **out, struct dl_err *err);

#endif
