/* capabilities.h - what a release of a framework has. Plans with other settings are predicted as
 * what-ifs with a remark; search and advice never propose them, exports refuse them. */
#ifndef DL_MODEL_FRAMEWORK_CAPABILITIES_H
#define DL_MODEL_FRAMEWORK_CAPABILITIES_H

#include "model/framework/framework.h"
#include "model/machine/device.h"
#include "model/plan/plan.h"

/* An absent list restricts nothing, except that a framework that does not shard has ZeRO stage 0
 * alone. Absent `context_parallel` is unknown. */
bool dl_framework_has_zero(const struct dl_framework *framework, int stage);
/* Without a list: the usual ones of dl_schedules. */
bool dl_framework_has_schedule(const struct dl_framework *framework, enum dl_schedule schedule);
bool dl_framework_has_precision(const struct dl_framework *framework, enum dl_precision precision);

/* The precision of a plan that leaves it open: bf16 where the device has a rate for it (NVIDIA's
 * from A100 on) and one of the `count` frameworks trains in it, else fp32. */
enum dl_precision dl_default_precision(const struct dl_device *device,
                                       const struct dl_framework *const *frameworks, int count);

/* Whether a complete plan with states of `zero_stage` needs something that the release lacks or is
 * not known to have: *out is the predicate for the first such thing ("has no ZeRO stage 1"). */
enum { DL_LACKS_TEXT = 64 };
bool dl_framework_lacks(const struct dl_framework *framework, const struct dl_plan *plan,
                        int zero_stage, char out[DL_LACKS_TEXT]);

/* DL_ERR_INPUT: `schedules` or `precisions` have a name that no option takes. */
enum dl_code dl_framework_capabilities_check(const struct dl_framework *framework,
                                             const struct dl_json *doc, struct dl_err *err);

#endif
