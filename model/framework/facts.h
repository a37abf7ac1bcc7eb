/* facts.h - the kernel facts of a framework in the precision of a plan. F-KERNEL-FACTS
 */
#ifndef DL_MODEL_FRAMEWORK_FACTS_H
#define DL_MODEL_FRAMEWORK_FACTS_H

#include "model/framework/framework.h"
#include "model/machine/device.h"
#include "model/plan/plan.h"
#include "model/workload/kernel_facts.h"

/* Kernels of attention: the plan's choice (`chosen`); without one (DL_ATTENTION_OPEN) those of the
 * framework, where FlashAttention becomes composed attention on devices and in precisions that it
 * does not run in (flash-attention). DL_ATTENTION_OPEN: the layer decides. */
enum dl_attention_kernel dl_framework_attention(const struct dl_framework *framework,
                                                const struct dl_device *device,
                                                enum dl_precision precision,
                                                enum dl_attention_kernel chosen);

/* Facts of a framework that layers need to list their kernels. `chosen`: see above. */
struct dl_kernel_facts dl_framework_facts(const struct dl_framework *framework,
                                          const struct dl_device *device,
                                          enum dl_precision precision,
                                          enum dl_attention_kernel chosen);

/* Kernels after compilation: elementwise chains, biases and casts join the kernels around them,
 * reductions end a kernel, convolutions in 16 bit compute channels-last. Only where the framework
 * has that compiler. F-KERNEL-FACTS */
void dl_facts_compile(struct dl_kernel_facts *facts, const struct dl_framework *framework,
                      enum dl_compiler compiler);

/* Both for a plan. */
struct dl_kernel_facts dl_plan_facts(const struct dl_framework *framework,
                                     const struct dl_device *device, const struct dl_plan *plan);

/* Resets facts that do not hold on the device: without matrix units, convolutions in 16 bit compute
 * in any layout; before compute capability 6.0, cuDNN's persistent batch norm is the spatial one.
 */
void dl_facts_on_device(struct dl_kernel_facts *facts, const struct dl_device *device);

/* What a framework runs per parameter in a micro-batch that ends without an update: its gradients
 * are added to those of the micro-batches before, and where weights are kept in fp32 both are cast.
 * `row` NULL: one kernel that reads both and writes one. F-ACCUMULATE */
struct dl_optimizer_cost dl_accumulation_cost(const struct dl_optimizer_row *row,
                                              enum dl_precision precision,
                                              enum dl_mixed_policy policy);

/* Further bytes per parameter in mixed precision: casts of weights and gradients, loss scaling. */
double dl_mixed_update_bytes(enum dl_mixed_policy policy);

#endif
