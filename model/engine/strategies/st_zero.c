/* st_zero.c - ZeRO: data parallelism with sharded states. */
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer.h"

const struct dl_strategy dl_st_zero1 = {
    .name = "zero1",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .shard = 1,
    .summary = "data parallel with sharded optimizer state",
    .axes = DL_AXIS_DP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};

const struct dl_strategy dl_st_zero2 = {
    .name = "zero2",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .shard = 2,
    .summary = "data parallel with sharded optimizer state and gradients",
    .axes = DL_AXIS_DP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};

const struct dl_strategy dl_st_zero3 = {
    .name = "zero3",
    .partitioning = DL_PARTITION_TRANSFORMER,
    .shard = 3,
    .summary = "data parallel with sharded optimizer state, gradients and weights",
    .axes = DL_AXIS_DP,
    .check = dl_transformer_check,
    .predict = dl_transformer_predict,
};
