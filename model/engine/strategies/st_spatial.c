/* st_spatial.c - spatial: parts of each image on every device (F-SPATIAL), alone or with replicas
 * of the group. */
#include "model/engine/split_replica.h"

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err) {
    (void)system;
    return dl_split_replica_check(workload, framework, DL_SPLIT_SPATIAL, plan->sp, plan, err);
}

static enum dl_code predict(const struct dl_predict_request *request, struct dl_prediction *out,
                            struct dl_err *err) {
    return dl_split_replica_predict(request, DL_SPLIT_SPATIAL, request->plan->sp, out, err);
}

const struct dl_strategy dl_st_spatial = {
    .name = "spatial",
    .partitioning = DL_PARTITION_SPATIAL,
    .summary = "every device holds all filters and a part of each image; halos are exchanged",
    .axes = DL_AXIS_SP,
    .check = check,
    .predict = predict,
};

const struct dl_strategy dl_st_data_spatial = {
    .name = "data+spatial",
    .partitioning = DL_PARTITION_SPATIAL,
    .summary = "spatial inside a node, data across nodes",
    .axes = DL_AXIS_DP | DL_AXIS_SP,
    .inside = DL_AXIS_SP,
    .check = check,
    .predict = predict,
};
