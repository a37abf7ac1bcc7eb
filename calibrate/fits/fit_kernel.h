/* fit_kernel.h - fits kernel-time models to measured kernel times
 * (model/machine/kernel_model.h). F-KERNEL-MODEL.
 *
 * Pure functions: the same samples give the same model, bit for bit on one machine and within
 * 1e-6 across machines. Not modelled: how the samples were measured (see the probes), outliers
 * (remove them first). */
#ifndef DL_CALIBRATE_FITS_FIT_KERNEL_H
#define DL_CALIBRATE_FITS_FIT_KERNEL_H

#include <stddef.h>

#include "model/core/arena.h"
#include "model/machine/device.h"
#include "model/machine/kernel.h"
#include "model/core/status.h"
#include "model/machine/kernel_model.h"

struct dl_kernel_sample {
    /* with op and pass, from dl_kernel_gemm, dl_kernel_conv or dl_kernel_stream */
    struct dl_kernel kernel;
    enum dl_precision precision;
    double time_s; /* > 0; the median of repeated calls */
    bool by_call;  /* timed call by call from the host */
    bool of_many;  /* from a table of many sources, not of one probe's or benchmark's shapes */
};

struct dl_fit_quality {
    size_t samples; /* number of samples used */
    /* 0: too few samples to cross-validate; the errors are in-sample */
    size_t folds;
    /* |predicted - measured| / measured of the held-out shapes */
    double median_ape, p90_ape, max_ape;
    double bias; /* median of (predicted - measured) / measured */
    /* baseline: one attained fraction of peak for all kernels */
    double one_factor_median_ape, one_factor_p90_ape;
    /* fewer than DL_FIT_MIN_SAMPLES: no correction was fitted */
    bool base_only;
};

enum { DL_FIT_MIN_SAMPLES = 12 };

/* What a model is fitted to: the samples with this op, pass and precision. */
struct dl_fit_kernel_job {
    const struct dl_kernel_sample *samples;
    size_t count;
    /* provides unit_count, memory bandwidth, L2 size and latency where known; its kernel-time
     * models are not read */
    const struct dl_device *device;
    enum dl_op op;
    enum dl_pass pass;
    enum dl_precision precision;
    /* calibrate's samples of a CPU: priors of CPU libraries, and the best rate of the samples
     * instead of a peak */
    bool own_cpu;
};

/* With fewer than DL_FIT_MIN_SAMPLES only the base is fitted; DL_ERR_INPUT: no sample. `out` points
 * into `arena`. quality NULL skips the cross-validation; sigma_log is then in-sample. */
enum dl_code dl_fit_kernel_model(const struct dl_fit_kernel_job *job, struct dl_arena *arena,
                                 struct dl_kernel_model *out, struct dl_fit_quality *quality,
                                 struct dl_err *err);

struct dl_kernel_samples {
    struct dl_kernel_sample *rows;
    size_t count;
    const char *library; /* of the last row with a library, or NULL */
};

/* Reads the samples of one device from a kernel CSV (dl_kernel_match_device maps the column
 * `device` to device files). Skips rows without a time or a size. */
enum dl_code dl_fit_read_samples(const char *csv_path, const struct dl_device *device,
                                 struct dl_arena *arena, struct dl_kernel_samples *out,
                                 struct dl_err *err);

struct dl_fit_report_row {
    enum dl_op op;
    enum dl_pass pass;
    enum dl_precision precision;
    enum dl_work work;
    enum dl_variant
        variant; /* of streams: PLAIN, ENGINE; of convolutions: PLAIN, DEPTHWISE, VOLUME */
    struct dl_fit_quality quality;
};

struct dl_fit_report {
    struct dl_kernel_model_set set;
    struct dl_fit_report_row *rows; /* one a model of the set */
};

/* Reads the CSVs, then fits and cross-validates every (op, pass, precision) of one device that has
 * samples. `out` points into `arena`; dl_json_text(&dl_kernel_model_set_schema, &out->set, arena)
 * gives the text of the file. */
enum dl_code dl_fit_kernel_files(const char *const *csv_paths, size_t csv_count,
                                 const struct dl_device *device, struct dl_arena *arena,
                                 struct dl_fit_report *out, struct dl_err *err);

#endif
