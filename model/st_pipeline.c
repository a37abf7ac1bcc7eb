/* st_pipeline.c - pipeline: consecutive layers on every device. */
#include "model/strategy.h"

const struct dl_strategy dl_st_pipeline = {
    .name = "pipeline",
    .summary = "every device holds some consecutive layers; micro-batches flow through",
    .axes = DL_AXIS_PP,
};

const struct dl_strategy dl_st_data_pipeline = {
    .name = "data+pipeline",
    .summary = "pipeline inside a group, data across groups",
    .axes = DL_AXIS_DP | DL_AXIS_PP,
    .inside = DL_AXIS_PP,
};
