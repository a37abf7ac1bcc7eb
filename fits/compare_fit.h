/* compare_fit.h - fits constants of frameworks, devices or systems to tables of runs. */
#ifndef DL_FITS_COMPARE_FIT_H
#define DL_FITS_COMPARE_FIT_H

#include "predict/compare/compare.h"

enum { DL_FIT_KEYS = 8 };

struct dl_fit_value {
    const char *key;
    double start_value, value;
};

struct dl_fit {
    struct dl_fit_value values[DL_FIT_KEYS];
    int count;
    /* mean absolute error, macro-averaged over sources */
    double error_before_pct, error_after_pct;
    int rows;
};

struct dl_fit_tables {
    const struct dl_data *data;
    const struct dl_csv *csvs;
    int count;
    bool anchor; /* as compare --anchor */
};

/* F-FIT-RUNS: the values (each above 0) of keys as --set takes them that minimize the mean over
 * sources of the mean of |log(predicted / measured)|, smoothed below 1 %; by Nelder-Mead over
 * log(value) from each start. `fit` has keys and starts. data's overrides have room for `count`
 * more. DL_ERR_USAGE for a key that no row takes, DL_ERR_INPUT when no row can be predicted. */
enum dl_code dl_compare_fit(const struct dl_fit_tables *tables, struct dl_fit *fit,
                            struct dl_err *err);
/* Mean absolute error by source in % of the tables with the fit's values set. */
enum dl_code dl_compare_fit_error(const struct dl_fit_tables *tables, const struct dl_fit *fit,
                                  double *error_pct, int *rows, struct dl_err *err);

struct dl_context;
struct dl_options;
/* Reads --fit, --leave-out and prints the fits. */
enum dl_code dl_compare_fit_run(struct dl_context *context, const struct dl_options *options,
                                const struct dl_data *data, const struct dl_csv *csvs, int count,
                                struct dl_err *err);

#endif
