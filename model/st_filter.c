/* st_filter.c - filter and channel: parts of each layer's weights on every device. */
#include "model/strategy.h"

const struct dl_strategy dl_st_filter = {
    .name = "filter",
    .summary = "every device computes some of each layer's filters; activations are gathered",
    .axes = DL_AXIS_TP,
};

const struct dl_strategy dl_st_channel = {
    .name = "channel",
    .summary = "every device holds some input channels of each layer; activations are summed",
    .axes = DL_AXIS_TP,
};

const struct dl_strategy dl_st_data_filter = {
    .name = "data+filter",
    .summary = "filter inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
};

const struct dl_strategy dl_st_data_channel = {
    .name = "data+channel",
    .summary = "channel inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
};
