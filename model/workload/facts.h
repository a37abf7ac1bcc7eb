/* facts.h - what a framework runs for a layer: discrete facts that decide which kernels a layer
 * emits, how many passes over memory they make and in which type. A framework file states them
 * (model/framework); layers read them and nothing else of the framework.
 */
#ifndef DL_MODEL_WORKLOAD_FACTS_H
#define DL_MODEL_WORKLOAD_FACTS_H

#include "model/hardware/kernel.h"

struct dl_kernel_facts {
    enum dl_precision precision;        /* of the plan */
    enum dl_attention_kernel attention; /* kernels of attention; DL_ATTENTION_OPEN: the layer's */
};

/* No framework: each operation is one fused kernel in the precision of the plan. */
static inline struct dl_kernel_facts dl_kernel_facts_plain(enum dl_precision precision) {
    return (struct dl_kernel_facts){.precision = precision};
}

#endif
