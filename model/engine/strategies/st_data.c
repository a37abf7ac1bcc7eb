/* st_data.c - data parallelism: every device is a replica of its own. */
#include "model/engine/split_replica.h"

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err) {
    (void)system, (void)workload, (void)framework;
    if (plan->sequence_parallel)
        return dl_fail(err, DL_ERR_USAGE, "--sequence-parallel: goes with tensor parallelism");
    const double micro = plan->micro_batch_samples;
    if (micro > 0 && fabs(plan->batch_per_device_samples / micro -
                          round(plan->batch_per_device_samples / micro)) > 1e-6) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--micro-batch %g: the batch of %g samples a device is not a multiple of it",
                       micro, plan->batch_per_device_samples);
    }
    return DL_OK;
}

static enum dl_code predict(const struct dl_predict_request *request, struct dl_prediction *out,
                            struct dl_err *err) {
    const struct dl_plan *plan = request->plan;
    if (plan->assume == DL_ASSUME_PARADL)
        return dl_paradl_predict(request, DL_SPLIT_FILTER, 1, out, err);
    const struct dl_replica replica = dl_replica_of_device(request);
    return dl_replica_predict(&replica, out, err);
}

const struct dl_strategy dl_st_data = {
    .name = "data",
    .partitioning = DL_PARTITION_DATA,
    .summary =
        "every device holds the whole network and a share of the batch; gradients are summed",
    .axes = DL_AXIS_DP,
    .check = check,
    .predict = predict,
};
