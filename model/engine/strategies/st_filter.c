/* st_filter.c - filter and channel: parts of each layer's weights on every device (F-FILTER,
 * F-CHANNEL), alone or with replicas of the group. */
#include "model/engine/split_replica.h"

static enum dl_code check_filter(const struct dl_system *system, const struct dl_workload *workload,
                                 const struct dl_framework *framework, const struct dl_plan *plan,
                                 struct dl_err *err) {
    (void)system;
    return dl_split_replica_check(workload, framework, DL_SPLIT_FILTER, plan->tp, plan, err);
}

static enum dl_code check_channel(const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *plan,
                                  struct dl_err *err) {
    (void)system;
    return dl_split_replica_check(workload, framework, DL_SPLIT_CHANNEL, plan->tp, plan, err);
}

static enum dl_code predict_filter(const struct dl_predict_request *request,
                                   struct dl_prediction *out, struct dl_err *err) {
    return dl_split_replica_predict(request, DL_SPLIT_FILTER, request->plan->tp, out, err);
}

static enum dl_code predict_channel(const struct dl_predict_request *request,
                                    struct dl_prediction *out, struct dl_err *err) {
    return dl_split_replica_predict(request, DL_SPLIT_CHANNEL, request->plan->tp, out, err);
}

const struct dl_strategy dl_st_filter = {
    .name = "filter",
    .partitioning = DL_PARTITION_FILTER,
    .summary = "every device computes some of each layer's filters; activations are gathered",
    .axes = DL_AXIS_TP,
    .check = check_filter,
    .predict = predict_filter,
};

const struct dl_strategy dl_st_channel = {
    .name = "channel",
    .partitioning = DL_PARTITION_CHANNEL,
    .summary = "every device holds some input channels of each layer; activations are summed",
    .axes = DL_AXIS_TP,
    .check = check_channel,
    .predict = predict_channel,
};

const struct dl_strategy dl_st_data_filter = {
    .name = "data+filter",
    .partitioning = DL_PARTITION_FILTER,
    .summary = "filter inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
    .check = check_filter,
    .predict = predict_filter,
};

const struct dl_strategy dl_st_data_channel = {
    .name = "data+channel",
    .partitioning = DL_PARTITION_CHANNEL,
    .summary = "channel inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
    .check = check_channel,
    .predict = predict_channel,
};
