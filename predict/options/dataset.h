/* dataset.h - datasets.csv of the data folders: size of a sample on disk and time to decode it. */
#ifndef DL_PREDICT_OPTIONS_DATASET_H
#define DL_PREDICT_OPTIONS_DATASET_H

#include "model/catalog/data.h"
#include "model/plan/plan.h"
#include "model/workload/workload.h"

/* Fills the plan's input members for --dataset NAME: "synthetic" (made on the host, nothing is
 * read), or a row of datasets.csv. DL_ERR_USAGE with a suggestion for an unknown name, DL_ERR_INPUT
 * for a broken table. */
enum dl_code dl_dataset_apply(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              struct dl_plan *plan, struct dl_err *err);

/* The same for real input without --dataset: a row of datasets.csv that has the name of the
 * workload's usual dataset. *found: there is one; without it the plan stays as it is. */
enum dl_code dl_dataset_usual(const struct dl_data *data, const struct dl_workload *workload,
                              struct dl_arena *arena, struct dl_plan *plan, bool *found,
                              struct dl_err *err);

#endif
