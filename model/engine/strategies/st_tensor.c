/* st_tensor.c - tensor parallelism and its products with data, pipeline and expert parallelism:
 * matrices of each transformer layer split (transformer.h).
 */
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer.h"

const struct dl_strategy dl_st_tensor = {
    .name = "tensor",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .summary = "matrices of each transformer layer are split over the devices",
    .axes = DL_AXIS_TP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};

const struct dl_strategy dl_st_data_tensor = {
    .name = "data+tensor",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .summary = "tensor inside a node, data across nodes; sequences split too with --cp",
    .axes = DL_AXIS_DP | DL_AXIS_TP | DL_AXIS_SP,
    .inside = DL_AXIS_TP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};

const struct dl_strategy dl_st_3d = {
    .name = "3d",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .summary = "data, tensor and pipeline together; sequences split too with --cp",
    .axes = DL_AXIS_DP | DL_AXIS_TP | DL_AXIS_PP | DL_AXIS_SP,
    .inside = DL_AXIS_TP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};

const struct dl_strategy dl_st_expert = {
    .name = "expert",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .summary = "experts of a mixture spread over the devices",
    .axes = DL_AXIS_DP | DL_AXIS_TP | DL_AXIS_PP | DL_AXIS_SP | DL_AXIS_EP,
    .inside = DL_AXIS_EP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};
