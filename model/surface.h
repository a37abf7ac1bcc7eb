/* surface.h - kernel time as a physical base times a fitted correction.
 * One surface per device, precision, operation and pass. Coefficients are written by the fit in
 * calibrate/fit_kernel.c from samples; evaluation is here.
 */
#ifndef DL_MODEL_SURFACE_H
#define DL_MODEL_SURFACE_H

#include "model/json.h"
#include "model/kernel.h"

struct dl_surface {
    int op;                    /* enum dl_op */
    int pass;                  /* enum dl_pass */
    int precision;             /* enum dl_precision */
    /* base: t = latency_s + max(flop / rate, bytes / bandwidth) */
    double latency_s;
    double rate_flop_per_s;        /* attained by large kernels */
    double bandwidth_bytes_per_s;  /* attained */
    /* correction: log(t / base) = coefficients . features(kernel), see surface.c; may be empty */
    double *coefficients; int coefficient_count;
    /* domain of the samples in the features' axes; outside it the correction fades and extrapolated is set */
    double *domain_low; int domain_low_count;
    double *domain_high; int domain_high_count;
    double sigma_log;          /* residual standard deviation, cross-validated */
    int64_t samples;           /* how many kernels it was fitted to */
    const char *source;
};

extern const struct dl_schema dl_surface_schema;

#endif
