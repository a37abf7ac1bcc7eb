/* st_spatial.c - spatial: parts of each image on every device. */
#include "model/strategy.h"

const struct dl_strategy dl_st_spatial = {
    .name = "spatial",
    .summary = "every device holds all filters and a part of each image; halos are exchanged",
    .axes = DL_AXIS_SP,
};

const struct dl_strategy dl_st_data_spatial = {
    .name = "data+spatial",
    .summary = "spatial inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_SP,
    .inside = DL_AXIS_SP,
};
