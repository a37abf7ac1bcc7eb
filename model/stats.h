/* stats.h - order statistics of samples. All functions are pure; NAN in gives NAN out. */
#ifndef DL_MODEL_STATS_H
#define DL_MODEL_STATS_H

#include <stdbool.h>
#include <stddef.h>

double dl_mean(const double *x, size_t n);
double dl_stddev(const double *x, size_t n);                        /* n - 1; NAN for n < 2 */
/* Quantile q in [0,1] of sorted x by linear interpolation (Hyndman-Fan type 7). */
double dl_quantile_sorted(const double *sorted, size_t n, double q);
double dl_median(const double *x, size_t n, double *scratch);       /* scratch: n doubles */
double dl_mad(const double *x, size_t n, double *scratch);          /* median absolute deviation, not scaled */
/* Distribution-free 95 % confidence interval of the median from order statistics (binomial); n >= 6, else
 * min and max. */
void dl_median_interval(const double *sorted, size_t n, double *low, double *high);
/* Modified z-score |x - median| / (1.4826 MAD) above 3.5 is an outlier (Iglewicz and Hoaglin 1993).
 * Marks outlier[i]; returns the count. */
size_t dl_outliers(const double *x, size_t n, bool *outlier, double *scratch);
void dl_sort(double *x, size_t n);
/* Phi^-1(p), p in (0,1): |error| < 1.2e-9 (Acklam's rational approximation with one Halley step). */
double dl_normal_quantile(double p);
/* E[max of k i.i.d. standard normal variables]; 0 for k = 1. F-STRAG. Tabulated to 8, Blom beyond. */
double dl_normal_expected_max(double k);

#endif
