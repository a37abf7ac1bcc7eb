/* ranking.h - quality of decisions made by predictions. */
#ifndef DL_MODEL_STATISTICS_RANKING_H
#define DL_MODEL_STATISTICS_RANKING_H

#include <stddef.h>

/* F-REGRET: of n alternatives with predicted and measured costs, measured cost of the one that is
 * predicted to be cheapest / the least measured cost - 1; the mean of those that are predicted
 * equal. NAN for n = 0. */
double dl_regret_frac(const double *predicted, const double *measured, size_t n);

/* Spearman's rank correlation, equal values with their mean rank; scratch: 2 n doubles. NAN for n <
 * 2 and where all values of one side are equal. */
double dl_rank_correlation(const double *predicted, const double *measured, size_t n,
                           double *scratch);

#endif
