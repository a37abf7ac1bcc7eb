/* pipeline.h - consecutive layers on every device, micro-batches flowing through: balance
 * of stages. When their passes run: schedule.h.
 */
#ifndef DL_MODEL_ENGINE_PIPELINE_H
#define DL_MODEL_ENGINE_PIPELINE_H

#include "model/workload/workload.h"

/* F-PIPE-BALANCE: first[0..stages] with stage s = layers [first[s], first[s+1]), every stage at
 * least one layer, such that the largest sum of costs is least; among those the one that dynamic
 * programming finds first: the last stages as short as can be. Returns that sum; NAN when there are
 * fewer layers than stages. `work`: DL_PIPELINE_WORK() doubles. */
#define DL_PIPELINE_WORK(layers, stages) ((2 * (size_t)(stages) + 3) * ((size_t)(layers) + 1))
double dl_pipeline_balance(const double *cost, int layers, int stages, int *first, double *work);

/* The same in two steps, for several numbers of stages up to `most`: `work` filled for all, then
 * the cuts of one. */
void dl_pipeline_balances(const double *cost, int layers, int most, double *work);
void dl_pipeline_cut(const double *work, int layers, int most, int stages, int *first);

/* For every cut 0..layers: elements of one sample that cross from layers [0, cut) to the rest:
 * outputs that are still needed, each once. */
void dl_pipeline_cuts(const struct dl_workload *workload, double *elements);

#endif
