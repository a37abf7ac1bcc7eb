/* stats.h - order statistics of samples. All functions are pure; NAN in gives NAN out. */
#ifndef DL_MODEL_STATISTICS_STATS_H
#define DL_MODEL_STATISTICS_STATS_H

#include <stdbool.h>
#include <stddef.h>

double dl_mean(const double *x, size_t n);
/* Quantile q in [0,1] of sorted x by linear interpolation (Hyndman-Fan type 7). */
double dl_quantile_sorted(const double *sorted, size_t n, double q);
double dl_median(const double *x, size_t n, double *scratch); /* scratch: n doubles */
/* median absolute deviation, not scaled */
double dl_mad(const double *x, size_t n, double *scratch);
/* Distribution-free 95 % confidence interval of the median from order statistics (binomial); n >=
 * 6, else min and max. */
void dl_median_interval(const double *sorted, size_t n, double *low, double *high);
/* F-REPEATS: number of samples for which the 95 % interval of the median is at most width_frac of
 * the median, estimated from n sorted ones: 6 for n < 6; n if it is already; else n (width /
 * width_frac)^2, since the interval shrinks with the square root of n, and at most 2 n. width_frac
 * > 0, sorted[0] > 0. */
size_t dl_repeats_wanted(const double *sorted, size_t n, double width_frac);
/* F-WARMUP: number of leading warm-up samples: those before the first sample that lies in the range
 * of the second half and starts five samples whose median lies in the 95 % interval of the second
 * half's median, both widened by 1 % on either side; at most n / 2, 0 for n < 12. scratch: n
 * doubles. */
size_t dl_warmup_samples(const double *x, size_t n, double *scratch);
/* Marks outlier[i] and returns their number: modified z-score |x - median| / (1.4826 MAD) above 3.5
 * (Iglewicz and Hoaglin 1993). Where the MAD is 0, 1.2533 times the mean absolute deviation
 * replaces it. A NAN in x: no outliers. */
size_t dl_outliers(const double *x, size_t n, bool *outlier, double *scratch);
/* Drift of samples in time order: median of the second half / of the first - 1 if the 95 %
 * intervals of the two medians do not overlap, else NAN; NAN for n < 12. scratch: n doubles. */
double dl_drift_frac(const double *x, size_t n, double *scratch);
void dl_sort(double *x, size_t n); /* ascending, NAN last */
/* F-STRAGGLER: E[max of k i.i.d. standard normal variables] for real k >= 1; 0 for k = 1, NAN
 * below. From numerically integrated values at powers of two, interpolated in log2 k (relative
 * error < 3e-4); does not grow beyond 2^30. */
double dl_normal_expected_max(double k);
/* F-BACKUP: E[the rank-th smallest of `count` values, each the largest of `size` i.i.d. standard
 * normal variables]; rank = count: dl_normal_expected_max(count x size) within 1e-3. By the
 * trapezoid rule over the binomial sum, error below 1e-6. NAN unless 1 <= rank <= count and size
 * >= 1. */
double dl_normal_expected_order(double rank, double count, double size);

#endif
