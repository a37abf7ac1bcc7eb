/* ranking.c - see ranking.h. */
#include "model/statistics/ranking.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>

double dl_regret_frac(const double *predicted, const double *measured, size_t n) {
    double least = NAN, best = NAN, chosen = 0;
    int equal = 0;
    for (size_t i = 0; i < n; i++) {
        least = fmin(least, measured[i]);
        best = fmin(best, predicted[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (predicted[i] > best) continue;
        chosen += measured[i];
        equal++;
    }
    return equal > 0 ? chosen / equal / least - 1 : NAN;
}

double dl_rank_correlation(const double *predicted, const double *measured, size_t n,
                           double *scratch) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        low[0] = fmin(low[0], predicted[i]), high[0] = fmax(high[0], predicted[i]);
        low[1] = fmin(low[1], measured[i]), high[1] = fmax(high[1], measured[i]);
    }
    if (n < 2 || !(low[0] < high[0]) || !(low[1] < high[1])) return NAN;
    return gsl_stats_spearman(predicted, 1, measured, 1, n, scratch);
}
