/* default_plan.h - the plan that somebody who knows the framework would start with. */
#ifndef DL_PREDICT_INPUTS_DEFAULT_PLAN_H
#define DL_PREDICT_INPUTS_DEFAULT_PLAN_H

#include "predict/inputs/inputs.h"

/* Fills what the user left open in `plan`, whose nodes are set, of a transformer on a framework
 * that splits or shards it (F-DEFAULT-PLAN). Split (Megatron and its kin): tensor, pipeline and
 * expert ranks, micro-batch, schedule and recomputation of the fastest plan that fills at most 90 %
 * of a device's memory, else of the fastest that fits. Sharded (ZeRO, FSDP): micro-batch and
 * recomputation, where `tried`, the whole batch at once, does not fit. To be asked with `tried`
 * NULL before the first prediction, and with it afterwards. `plan` stays as it is where an axis, a
 * strategy, a micro-batch or a ZeRO stage is given, or nothing fits. DL_ERR_SYSTEM: out of memory.
 */
enum dl_code dl_default_plan(const struct dl_inputs *inputs, const struct dl_framework *framework,
                             const struct dl_prediction *tried, struct dl_plan *plan, bool *changed,
                             struct dl_err *err);

#endif
