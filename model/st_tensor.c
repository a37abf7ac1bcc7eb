/* st_tensor.c - tensor and its products: matrices of each transformer layer split. */
#include "model/strategy.h"

const struct dl_strategy dl_st_tensor = {
    .name = "tensor",
    .summary = "matrices of each transformer layer are split over the devices",
    .axes = DL_AXIS_TP,
};

const struct dl_strategy dl_st_data_tensor = {
    .name = "data+tensor",
    .summary = "tensor inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
};

const struct dl_strategy dl_st_3d = {
    .name = "3d",
    .summary = "data, tensor and pipeline together",
    .axes = DL_AXIS_DP | DL_AXIS_TP | DL_AXIS_PP,
    .inside = DL_AXIS_TP,
};

const struct dl_strategy dl_st_expert = {
    .name = "expert",
    .summary = "experts of a mixture spread over the devices",
    .axes = DL_AXIS_DP | DL_AXIS_TP | DL_AXIS_PP | DL_AXIS_EP,
    .inside = DL_AXIS_EP,
};
