/* fit_kernel.h - from measured kernel times to surfaces (model/hardware/kernel_model.h). Formula id
 * F-KERNEL-MODEL.
 *
 * Pure functions of their arguments: the same samples give the same surface, bit for bit on one
 * machine and to 1e-6 across machines. Not modelled here: how the samples were measured
 * (calibrate's probes), outliers (clean them first).
 */
#ifndef DL_CALIBRATE_FITS_FIT_KERNEL_H
#define DL_CALIBRATE_FITS_FIT_KERNEL_H

#include <stddef.h>

#include "model/base/arena.h"
#include "model/hardware/device.h"
#include "model/hardware/kernel.h"
#include "model/base/status.h"
#include "model/hardware/kernel_model.h"

struct dl_kernel_sample {
    /* with op and pass, from dl_kernel_gemm, dl_kernel_conv or dl_kernel_stream */
    struct dl_kernel kernel;
    enum dl_precision precision;
    double time_s; /* > 0; the median of repeated calls */
};

struct dl_fit_quality {
    size_t samples; /* that were used */
    /* 0: too few samples for cross-validation; the errors are then in-sample */
    size_t folds;
    /* |predicted - measured| / measured, as fractions, of shapes left out */
    double median_ape, p90_ape, max_ape;
    double bias; /* median of (predicted - measured) / measured */
    /* yardstick: one attained fraction of peak for all kernels */
    double one_factor_median_ape, one_factor_p90_ape;
    /* fewer than DL_FIT_SURFACE_MIN_SAMPLES: no correction was fitted */
    bool base_only;
};

enum { DL_FIT_SURFACE_MIN_SAMPLES = 12 };

/* Fit one surface to those of `samples` that have this op, pass and precision; the others are
 * ignored. `device` gives unit_count, memory bandwidth, l2 and latency where known (its surfaces
 * are not read). With fewer than DL_FIT_SURFACE_MIN_SAMPLES only the base is fitted; with no sample
 * at all: DL_ERR_INPUT. `out` points into `arena`. quality may be NULL (skips the cross-validation;
 * sigma_log is then in-sample). */
enum dl_code dl_fit_surface(const struct dl_kernel_sample *samples, size_t n,
                            const struct dl_device *device, enum dl_op op, enum dl_pass pass,
                            enum dl_precision precision, struct dl_arena *arena,
                            struct dl_kernel_model *out, struct dl_fit_quality *quality,
                            struct dl_err *err);

/* The same for samples that calibrate took on the CPU that `device` is: priors of CPU libraries,
 * and the rate of the samples' best in place of the device's peak. */
enum dl_code dl_fit_surface_cpu(const struct dl_kernel_sample *samples, size_t n,
                                const struct dl_device *device, enum dl_op op, enum dl_pass pass,
                                enum dl_precision precision, struct dl_arena *arena,
                                struct dl_kernel_model *out, struct dl_fit_quality *quality,
                                struct dl_err *err);

/* k-fold cross-validation by shape (all samples of one shape are left out together; shapes are
 * dealt to folds in a fixed shuffled order). predicted_s[i] (may be NULL) is the prediction of
 * sample i by the fit that did not see it, NAN for samples of another op, pass or precision. */
enum dl_code dl_fit_cross_validate(const struct dl_kernel_sample *samples, size_t n,
                                   const struct dl_device *device, enum dl_op op, enum dl_pass pass,
                                   enum dl_precision precision, size_t folds,
                                   struct dl_fit_quality *quality, double *predicted_s,
                                   struct dl_err *err);

/* Samples of one device file (dl_kernel_match_device names it from the table's column device) in a
 * kernel CSV; device NULL: every row. Rows without a time or a size are left out. *library_out: the
 * column library of the last sample, or NULL. */
enum dl_code dl_fit_read_samples(const char *csv_path, const char *device, struct dl_arena *arena,
                                 struct dl_kernel_sample **samples_out, size_t *n_out,
                                 const char **library_out, struct dl_err *err);

struct dl_fit_report_row {
    enum dl_op op;
    enum dl_pass pass;
    enum dl_precision precision;
    struct dl_fit_quality quality;
};

/* Everything for one device: read the CSVs, fit every (op, pass, precision) that has samples,
 * cross-validate. `set` and `rows` point into `arena`; write the file's text with
 * dl_json_text(&dl_kernel_model_set_schema, set, arena). */
enum dl_code dl_fit_kernel_files(const char *const *csv_paths, size_t csv_count,
                                 const struct dl_device *device, struct dl_arena *arena,
                                 struct dl_kernel_model_set *set, struct dl_fit_report_row **rows,
                                 size_t *row_count, struct dl_err *err);

#endif
