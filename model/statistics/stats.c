/* stats.c - order statistics, and the two functions of the normal distribution that the models
 * need. Assumes independent samples; says nothing about drift or autocorrelation.
 */
#include "model/statistics/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;

    if (isnan(left) || isnan(right)) return !!isnan(left) - !!isnan(right);
    return (left > right) - (left < right);
}

void dl_sort(double *x, size_t n) {
    if (n > 1) qsort(x, n, sizeof *x, compare);
}

double dl_mean(const double *x, size_t n) {
    /* Neumaier's sum: samples of 1 us count even next to one of 1000 s */
    double sum = 0, lost = 0;

    if (n == 0) return (double)NAN;
    for (size_t i = 0; i < n; i++) {
        double total = sum + x[i];

        if (isfinite(total))
            lost += fabs(sum) >= fabs(x[i]) ? (sum - total) + x[i] : (x[i] - total) + sum;
        sum = total;
    }
    return (sum + lost) / (double)n;
}

/* Type 7: position (n - 1) q between the order statistics. */
double dl_quantile_sorted(const double *sorted, size_t n, double q) {
    double position, fraction;
    size_t below;

    if (n == 0 || isnan(q) || isnan(sorted[n - 1])) return (double)NAN; /* NAN sorts last */
    if (q <= 0) return sorted[0];
    if (q >= 1) return sorted[n - 1];
    position = q * (double)(n - 1);
    below = (size_t)position;
    fraction = position - (double)below;
    if (below + 1 >= n || fraction == 0) return sorted[below];
    return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

double dl_median(const double *x, size_t n, double *scratch) {
    if (n == 0) return (double)NAN;
    memcpy(scratch, x, n * sizeof *x);
    dl_sort(scratch, n);
    return dl_quantile_sorted(scratch, n, 0.5);
}

double dl_mad(const double *x, size_t n, double *scratch) {
    double median = dl_median(x, n, scratch);

    for (size_t i = 0; i < n; i++) scratch[i] = fabs(x[i] - median);
    dl_sort(scratch, n);
    return dl_quantile_sorted(scratch, n, 0.5);
}

/* The number of samples below the median is binomial (n, 1/2). The interval [x_(l), x_(n+1-l)]
 * misses it with probability 2 P(B <= l - 1); l is the largest rank for which that is at most 5 %.
 */
static size_t interval_rank(size_t n) {
    enum { EXACT_UP_TO = 2000 };
    double log_term = -(double)n * log(2.0), sum = 0;
    size_t rank = 1;

    if (n > EXACT_UP_TO)
        return (size_t)floor((double)n / 2 - 1.959963984540054 * sqrt((double)n) / 2);
    for (size_t i = 0; i < n / 2; i++) { /* term i is C(n, i) / 2^n */
        sum += exp(log_term);
        if (sum > 0.025) break;
        rank = i + 1;
        log_term += log((double)(n - i) / (double)(i + 1));
    }
    return rank;
}

void dl_median_interval(const double *sorted, size_t n, double *low, double *high) {
    size_t rank = n >= 6 ? interval_rank(n) : 1;

    if (n == 0 || isnan(sorted[n - 1])) {
        *low = *high = (double)NAN;
        return;
    }
    *low = sorted[rank - 1];
    *high = sorted[n - rank];
}

size_t dl_repeats_wanted(const double *sorted, size_t n, double width_frac) {
    enum { FEWEST = 6 };
    double low, high;
    if (n < FEWEST) return FEWEST;
    dl_median_interval(sorted, n, &low, &high);
    const double width = (high - low) / dl_quantile_sorted(sorted, n, 0.5) / width_frac;
    if (width <= 1) return n;
    return (size_t)fmin(2 * (double)n, ceil((double)n * width * width));
}

size_t dl_warmup_samples(const double *x, size_t n, double *scratch) {
    enum { FEWEST = 12, ROW = 5 };
    double low, high;
    if (n < FEWEST) return 0;
    const size_t half = n / 2, rest = n - half;
    memcpy(scratch, x + half, rest * sizeof *x);
    dl_sort(scratch, rest);
    dl_median_interval(scratch, rest, &low, &high);
    const double least = scratch[0], most = scratch[rest - 1];
    for (size_t i = 0; i < half; i++) {
        double row[ROW], sorted[ROW];
        if (!(x[i] >= 0.99 * least && x[i] <= 1.01 * most)) continue;
        memcpy(row, x + i, sizeof row);
        const double median = dl_median(row, ROW, sorted);
        if (median >= 0.99 * low && median <= 1.01 * high) return i;
    }
    return half;
}

size_t dl_outliers(const double *x, size_t n, bool *outlier, double *scratch) {
    /* 1.4826 MAD estimates sigma of a normal distribution; where more than half of the samples are
     * equal MAD is 0, and 1.2533 (mean absolute deviation) takes its place (Iglewicz and Hoaglin
     * 1993). */
    double sigma = 1.4826 * dl_mad(x, n, scratch), median;
    size_t count = 0;

    memset(outlier, 0, n * sizeof *outlier);
    if (isnan(sigma)) return 0;
    median = dl_median(x, n, scratch);
    if (sigma == 0) {
        for (size_t i = 0; i < n; i++) scratch[i] = fabs(x[i] - median);
        sigma = 1.2533 * dl_mean(scratch, n);
    }
    for (size_t i = 0; i < n; i++) {
        outlier[i] = fabs(x[i] - median) > 3.5 * sigma;
        count += outlier[i];
    }
    return count;
}

double dl_drift_frac(const double *x, size_t n, double *scratch) {
    size_t half = n / 2;
    double *later = scratch + half, low[2], high[2];

    if (n < 12) return (double)NAN;
    memcpy(scratch, x, n * sizeof *x);
    dl_sort(scratch, half);
    dl_sort(later, n - half);
    dl_median_interval(scratch, half, &low[0], &high[0]);
    dl_median_interval(later, n - half, &low[1], &high[1]);
    if (!(low[1] > high[0] || high[1] < low[0])) return (double)NAN;
    return dl_quantile_sorted(later, n - half, 0.5) / dl_quantile_sorted(scratch, half, 0.5) - 1;
}

/* F-STRAGGLER. e_k for k = 2^0 .. 2^30: numerical integration of E = int_0^inf (1 - Phi^k) -
 * int_-inf^0 Phi^k (Simpson's rule, step 0.005 over [-12, 12], error below 1e-11). */
static const double expected_max[] = {
    0,
    0.564189583548,
    1.029375373004,
    1.423600306045,
    1.765991393055,
    2.069668827929,
    2.343733465079,
    2.594597368599,
    2.826863278939,
    3.043903161204,
    3.248239601375,
    3.441799099064,
    3.626082177769,
    3.802279218908,
    3.971350570281,
    4.134082868917,
    4.291129315896,
    4.443038965336,
    4.590278377500,
    4.733247881390,
    4.872293972501,
    5.007718897272,
    5.139788159478,
    5.268736470086,
    5.394772515764,
    5.518082819637,
    5.638834896452,
    5.757179853365,
    5.873254550819,
    5.987183411082,
    6.099079942193,
};
enum { EXPECTED_MAX = sizeof expected_max / sizeof expected_max[0], POINTS = 6 };

double dl_normal_expected_max(double k) {
    double t, sum = 0;
    int first;

    if (isnan(k) || k < 1) return (double)NAN;
    if (k >= 1073741824.0) return expected_max[EXPECTED_MAX - 1];
    /* e_k is smooth in log2 k: a polynomial through the six nearest octaves is within 3e-4 of it
     * for k in (1, 1.1), 1e-5 from k = 1.5 on. */
    t = log2(k);
    first = (int)t - POINTS / 2 + 1;
    if (first < 0) first = 0;
    if (first > EXPECTED_MAX - POINTS) first = EXPECTED_MAX - POINTS;
    for (int i = first; i < first + POINTS; i++) {
        double weight = expected_max[i];

        for (int j = first; j < first + POINTS; j++)
            if (i != j) weight *= (t - j) / (i - j);
        sum += weight;
    }
    return sum;
}

/* P(at least `rank` of `count` values are below), each with probability exp(log_below): the sum
 * over how many are not. */
static double at_least(double rank, double count, double log_below, double above) {
    double log_term = count * log_below, sum = exp(log_term);

    for (double j = 0; j < count - rank; j++) {
        log_term += log((count - j) / (j + 1)) + log(above) - log_below;
        sum += exp(log_term);
    }
    return sum;
}

double dl_normal_expected_order(double rank, double count, double size) {
    const double limit = 12, step = 1.0 / 64;
    double sum = 0;

    if (!(rank >= 1) || !(rank <= count) || !(size >= 1)) return (double)NAN;
    /* E[X] = int_0^inf (1 - G) - int_-inf^0 G */
    for (int i = (int)(-limit / step); i <= (int)(limit / step); i++) {
        double x = i * step, log_below = size * log(0.5 * erfc(-x / sqrt(2.0)));
        double above = -expm1(log_below),
               below = above > 0 ? at_least(rank, count, log_below, above) : 1;

        if (i <= 0) sum -= (i == 0 ? 0.5 : 1) * below * step;
        if (i >= 0) sum += (i == 0 ? 0.5 : 1) * (1 - below) * step;
    }
    return sum;
}
