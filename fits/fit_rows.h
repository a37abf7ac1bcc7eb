/* fit_rows.h - all rows of tables of runs, to be predicted again and again with other constants. */
#ifndef DL_FITS_FIT_ROWS_H
#define DL_FITS_FIT_ROWS_H

#include "model/engine/interval.h"
#include "predict/compare/compare.h"

/* Properties of a row that do not depend on the constants. */
struct dl_fit_row {
    const char *id, *source, *system, *framework, *version, *release, *device, *workload;
    const char *kernels, *architecture; /* of the device: dl_interval_case */
    double parameters;                  /* trainable ones of the network; 0: not known */
    const char *layers;                 /* dl_workload_layers of it */
    enum dl_precision precision;
    int64_t devices;
    bool throughput;      /* was measured, else an iteration */
    bool release_assumed; /* the table names no release, or an unknown one */
    double samples;       /* of an iteration of all devices; 0: unknown */
    struct dl_decision_keys decision;
    double measured_s; /* of an iteration; NAN: not predictable */
    int csv, csv_row;  /* where it stands */
};

struct dl_fit_rows {
    const struct dl_data *data;
    const struct dl_csv *csvs;
    int csv_count;
    struct dl_fit_row *rows;
    size_t count;
    struct dl_arena *arena;
};

/* One prediction of a row, in seconds of an iteration. */
struct dl_fit_prediction {
    double iteration_s;     /* NAN: none */
    double low_s, high_s;   /* its interval; NAN: none */
    double overhead_frac;   /* host, bubble and waits / iteration */
    double waits_frac;      /* F-PACED */
    double exposed_frac;    /* exposed communication / iteration */
    double model_sigma_log; /* of kernels and collectives together */
};

/* What the interval of a prediction depends on. */
struct dl_interval_case dl_fit_case(const struct dl_fit_row *row,
                                    const struct dl_fit_prediction *prediction);

/* Reads the tables. DL_ERR_USAGE where one is not a table of runs. */
enum dl_code dl_fit_rows_read(const struct dl_data *data, const struct dl_csv *csvs, int csv_count,
                              struct dl_arena *arena, struct dl_fit_rows *out, struct dl_err *err);

struct dl_fit_values { /* overrides of a prediction */
    const char *const *keys;
    const double *values;
    int count;
};

/* Predicts the rows for which `wanted` (NULL: all) is true, with the values set (NULL: none);
 * `out` of other rows stays as it is. Safe in several threads: `rows` is not changed. */
enum dl_code dl_fit_rows_predict(const struct dl_fit_rows *rows, const struct dl_fit_values *values,
                                 const bool *wanted, struct dl_fit_prediction *out,
                                 struct dl_err *err);

/* The same with compute corrected by the smallest run of each group of rows that differ in devices
 * alone, which is not predicted itself (compare --anchor). */
enum dl_code dl_fit_rows_anchored(const struct dl_fit_rows *rows,
                                  const struct dl_fit_values *values, const bool *wanted,
                                  struct dl_fit_prediction *out, struct dl_err *err);

#endif
