/* plan_defaults.h - a plan that the user left open: batch, optimizer; its precision depends on
 * the framework (dl_default_precision in capabilities.h). Predictions, job scripts and run tables
 * use these defaults. */
#ifndef DL_MODEL_PLAN_PLAN_DEFAULTS_H
#define DL_MODEL_PLAN_PLAN_DEFAULTS_H

#include "model/machine/system.h"
#include "model/plan/plan.h"
#include "model/workload/workload.h"

/* `workload` NULL: an unknown network of images.
 * Default samples per device: 32 for images on a GPU, 8 for sequences on a GPU, a quarter of
 * either on a CPU socket. An arbitrary choice, printed with every result. */
double dl_default_batch(bool cpu, const struct dl_workload *workload);

/* The optimizer that a network is usually trained with: Adam for transformers, else momentum. */
enum dl_optimizer dl_default_optimizer(const struct dl_workload *workload);

#endif
