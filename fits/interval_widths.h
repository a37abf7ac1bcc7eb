/* interval_widths.h - ends of 80 % intervals from errors that no fit has seen. F-INTERVAL */
#ifndef DL_FITS_INTERVAL_WIDTHS_H
#define DL_FITS_INTERVAL_WIDTHS_H

#include <stddef.h>

#include "model/engine/interval.h"

struct dl_width_row {
    double error_log;    /* by how much the measurement lies beyond the prediction, at least 0 */
    double weight_ratio; /* 0: left out */
    double covariate[DL_WIDTHS];
};

/* Minimizes the mean of h + max(0, error - h) / tail over the rows, h^2 = sum of (width x
 * covariate)^2: the part `tail` of the measurements lies beyond h (Gneiting and Raftery 2007;
 * F-WIDTHS). A weak prior keeps widths that no row concerns at a usual value. DL_ERR_SYSTEM: out of
 * memory. */
enum dl_code dl_widths_fit(const struct dl_width_row *rows, size_t count, double tail,
                           struct dl_interval_widths *out, struct dl_err *err);

#endif
