/* st_mlsl.c - MLSL's hybrid on CPUs. */
#include "model/strategy.h"

const struct dl_strategy dl_st_mlsl_hybrid = {
    .name = "mlsl-hybrid",
    .summary = "model parallel inside a node, data parallel across nodes, on CPUs",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
};
