/* canonical.h - one form for each plan, however it was spelled. `data`, `data+tensor --tp 1`,
 * `pipeline --pp 1`, `zero1` on one device and `--micro-batch` of the whole batch are one plan:
 * which model serves it follows from what the plan, the workload and the framework are.
 *
 *   transformer.h    layers split as Megatron does, states sharded, and everything else on a stack
 *                    of equal layers with frameworks that can do so: their curves over tp, pp and
 *                    zero begin where they end
 *   split_replica.h  images, filters or channels split over at least two devices
 *   pipe.h           at least two stages
 *   replica.h        the rest: every device holds a copy of its own
 */
#ifndef DL_MODEL_ENGINE_CANONICAL_H
#define DL_MODEL_ENGINE_CANONICAL_H

#include "model/engine/strategies/strategy.h"

/* The canonical form of a complete plan; equal plans have equal forms. */
struct dl_plan dl_plan_canonical(const struct dl_workload *workload,
                                 const struct dl_framework *framework, const struct dl_plan *plan);

/* Whether plans of this framework on this workload are those of transformer.h also where they split
 * nothing. */
bool dl_plan_stacks(const struct dl_workload *workload, const struct dl_framework *framework);

#endif
