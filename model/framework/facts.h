/* facts.h - the kernel facts of a framework in the precision of a plan. F-KERNEL-FACTS
 */
#ifndef DL_MODEL_FRAMEWORK_FACTS_H
#define DL_MODEL_FRAMEWORK_FACTS_H

#include "model/framework/framework.h"
#include "model/workload/facts.h"

/* What layers need to know of a framework to list their kernels. `attention`: the plan's choice;
 * DL_ATTENTION_OPEN: the framework's. */
struct dl_kernel_facts dl_framework_facts(const struct dl_framework *framework,
                                          enum dl_precision precision,
                                          enum dl_attention_kernel attention);

#endif
