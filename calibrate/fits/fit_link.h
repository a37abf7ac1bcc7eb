/* fit_link.h - fits alpha and beta to measured message times (Hockney 1994: t = alpha + beta
 * bytes). F-LINK-FIT.
 *
 * Relative least squares (residuals are divided by the fitted time, so that 8 bytes count as
 * much as 64 MiB), with the covariance of both parameters. Where one line does not fit (eager to
 * rendezvous, cache to memory), up to DL_LINK_PIECES segments, their number by the Bayesian
 * information criterion (Schwarz 1978). Not modelled: contention, jitter. */
#ifndef DL_CALIBRATE_FITS_FIT_LINK_H
#define DL_CALIBRATE_FITS_FIT_LINK_H

#include <stddef.h>

#include "model/core/arena.h"
#include "model/machine/link.h"
#include "model/core/status.h"

enum { DL_LINK_PIECES = 4, DL_LINK_PIECE_SAMPLES = 3, DL_LINK_SAMPLES_MAX = 512 };

struct dl_link_sample {
    double bytes, time_s;
}; /* bytes >= 0, time_s > 0 */

struct dl_link_line {
    double alpha_s, beta_s_per_byte;                  /* both >= 0 */
    double alpha_variance, beta_variance, covariance; /* NAN with fewer than 3 samples */
    /* standard deviation of the relative residuals; NAN likewise */
    double sigma_frac;
    size_t samples;
};

/* One line through n >= 2 samples of at least two sizes; DL_ERR_INPUT otherwise. A falling line
 * becomes a flat one. */
enum dl_code dl_fit_line(const struct dl_link_sample *samples, size_t n, struct dl_link_line *out,
                         struct dl_err *err);

/* Half width of the interval of alpha or beta that holds it with `probability` (Student's t, n -
 * 2). */
double dl_line_alpha_half(const struct dl_link_line *line, double probability);
double dl_line_beta_half(const struct dl_link_line *line, double probability);

/* Up to DL_LINK_PIECES lines over samples of ascending bytes, each of at least
 * DL_LINK_PIECE_SAMPLES samples; fewer than 2 sizes: DL_ERR_INPUT. pieces[i].max_bytes is the size
 * of its last sample. lines[] (may be NULL) has room for DL_LINK_PIECES. */
enum dl_code dl_fit_pieces(const struct dl_link_sample *samples, size_t n,
                           struct dl_piece pieces[DL_LINK_PIECES], struct dl_link_line *lines,
                           int *count, struct dl_err *err);

#endif
