/* interval_widths.h - ends of 80 % intervals from errors that no fit has seen. F-INTERVAL */
#ifndef DL_FITS_INTERVAL_WIDTHS_H
#define DL_FITS_INTERVAL_WIDTHS_H

#include <stddef.h>

#include "model/engine/interval.h"

struct dl_width_row {
    double error_log;    /* abs(log(measured / predicted)) */
    double weight_ratio; /* 0: left out */
    double covariate[DL_WIDTHS];
};

/* Minimizes the mean interval score, 2 h + 10 max(0, error - h), over the rows (Gneiting and
 * Raftery 2007, with a coverage of 80 %; F-WIDTHS), h^2 = sum of (width x covariate)^2. A weak
 * prior keeps widths that no row concerns at a usual value. DL_ERR_SYSTEM: out of memory. */
enum dl_code dl_widths_fit(const struct dl_width_row *rows, size_t count,
                           struct dl_interval_widths *out, struct dl_err *err);

/* The same of one width, the others as they are in *widths. */
enum dl_code dl_width_fit(const struct dl_width_row *rows, size_t count, int width,
                          struct dl_interval_widths *widths, struct dl_err *err);

#endif
