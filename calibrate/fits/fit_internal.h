/* fit_internal.h - the steps of a kernel-time fit, private to fit_*.c of this folder. */
#ifndef DL_CALIBRATE_FITS_FIT_INTERNAL_H
#define DL_CALIBRATE_FITS_FIT_INTERNAL_H

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
    /* datasheet rates; NAN: unknown, use the best sample */
    double peak_flop_per_s, peak_bytes_per_s;
    double latency_s;        /* expected shortest kernel; NAN: unknown */
    double channel_multiple; /* of convolutions on matrix units; 1: none */
    /* convolutions of a GPU without matrix units: by the algorithms of its library
     * (model/machine/kernel_model.h) */
    bool by_algorithm;
    bool no_correction; /* the base alone */
    /* from many machines, releases and timers, so that some samples contradict others */
    bool of_many;
    bool own_cpu; /* calibrate's own samples of a CPU: other priors */
};

enum { DL_FIT_MANY = 200 }; /* samples */

/* Candidate features of the distance (fit_forms.c). */
struct dl_fit_form {
    enum dl_op op;
    unsigned passes;                           /* bits of enum dl_pass */
    int units;                                 /* of the device, in this precision */
    int distance;                              /* DL_DISTANCE_* */
    size_t least_samples;                      /* minimum number of samples */
    const char *features[DL_FEATURES_MAX + 1]; /* as in dl_kernel_model_features */
};
extern const struct dl_fit_form dl_fit_forms[];
extern const int dl_fit_form_count;
/* Whether a form applies to these samples. */
bool dl_fit_form_applies(const struct dl_fit_form *form, const struct dl_fit_set *set);

/* `value` rounded to `digits` significant digits, so that files are short and identical on all
 * machines. */
double dl_fit_round(double value, int digits);

/* Nonlinear least squares of log(time) for the parameters of the base, with log-normal priors (one
 * sample suffices for a sane fit) and a soft-L1 loss. Writes the base members of *model. */
enum dl_code dl_fit_base(const struct dl_fit_set *set, struct dl_kernel_model *model,
                         struct dl_err *err);

/* The level of residuals[i] = log(time / base): their mean; for streams of many timers the median,
 * because the fastest can take a third of others' time for the same bytes. scratch: one double per
 * sample. */
double dl_fit_level(const struct dl_fit_set *set, const double *residuals, double *scratch);

/* Gaussian process on residuals[i] = log(time / base): length scales, signal and noise by maximum a
 * posteriori. Writes offset, lengths, points, weights and domain of *model. */
enum dl_code dl_fit_process(const struct dl_fit_set *set, const double *residuals,
                            struct dl_arena *arena, struct dl_kernel_model *model,
                            struct dl_err *err);

#endif
