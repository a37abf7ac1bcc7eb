/* fit_parts.h - the steps of a kernel-time fit, shared by the files fit_*.c of this folder only. */
#ifndef DL_CALIBRATE_FITS_FIT_PARTS_H
#define DL_CALIBRATE_FITS_FIT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrate/fits/fit_kernel.h"

/* Samples of one operation, pass and precision, ready to fit. */
struct dl_fit_set {
    enum dl_op op;
    enum dl_pass pass;
    const struct dl_kernel_model_shape *shapes;
    const double *log_times;
    size_t count;
    /* datasheet; NAN: unknown, the samples' best is used */
    double peak_flop_per_s, peak_bytes_per_s;
    double latency_s;        /* expected shortest kernel; NAN: unknown */
    double channel_multiple; /* of convolutions on matrix units; 1: none */
    /* convolutions of a GPU without matrix units: its library's algorithms
     * (model/hardware/kernel_model.h) */
    bool by_algorithm;
    bool own_cpu; /* measured on this CPU by calibrate: other priors */
};

/* `value` rounded to `digits` significant decimal digits, so that files are short and the same on
 * all machines. */
double dl_fit_round(double value, int digits);

/* Nonlinear least squares of log(time) for the base's parameters, with log-normal priors (so that
 * any number of samples from 1 up gives sane numbers) and a soft-L1 loss. Writes the base members
 * of *surface. */
enum dl_code dl_fit_base(const struct dl_fit_set *set, struct dl_kernel_model *surface,
                         struct dl_err *err);

/* Gaussian process on residuals[i] = log(time / base): length scales, signal and noise by maximum a
 * posteriori likelihood. Writes offset, lengths, points, weights and domain of *surface. */
enum dl_code dl_fit_process(const struct dl_fit_set *set, const double *residuals,
                            struct dl_arena *arena, struct dl_kernel_model *surface,
                            struct dl_err *err);

#endif
