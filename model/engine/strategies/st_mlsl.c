/* st_mlsl.c - MLSL's hybrid on CPUs: the sockets (or NUMA domains) of a node share the filters of
 * each layer, nodes hold replicas.
 *
 * F-MLSL-ACTIVATION: what goes between two layers follows from how each is distributed (MLSL's five
 * cases). Layers here are all split over the same group, or not at all, which leaves three of them:
 * between two split layers the partial sums of an all-reduce are kept apart (reduce-scatter
 * forward, all-gather backward: case 1 and 3, the volume of a filter-parallel gather and
 * reduce-scatter), before a layer that is not split they are reduced in full (case 2), and a layer
 * that is not split hands its output to a split one without a message (all devices have it).
 * Source: key "mlsl-source".
 */
#include "model/engine/split_replica.h"

static enum dl_code check(const struct dl_system *system, const struct dl_workload *workload,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err) {
    if (system->device->kind != DL_DEVICE_CPU) {
        return dl_fail(err, DL_ERR_USAGE,
                       "strategy mlsl-hybrid is for CPU nodes; %s has GPUs: take data+filter",
                       system->name);
    }
    return dl_split_replica_check(workload, framework, DL_SPLIT_FILTER, plan->tp, plan, err);
}

static enum dl_code predict(const struct dl_predict_request *request, struct dl_prediction *out,
                            struct dl_err *err) {
    struct dl_framework framework = *request->framework;
    struct dl_predict_request own = *request;
    framework.activations.filter_backward = DL_FILTER_REDUCE_SCATTER;
    own.framework = &framework;
    return dl_split_replica_predict(&own, DL_SPLIT_FILTER, request->plan->tp, out, err);
}

const struct dl_strategy dl_st_mlsl_hybrid = {
    .name = "mlsl-hybrid",
    .partitioning = DL_PARTITION_MLSL,
    .summary = "model parallel inside a node, data parallel across nodes, on CPUs",
    .axes = DL_AXIS_DP | DL_AXIS_TP,
    .inside = DL_AXIS_TP,
    .check = check,
    .predict = predict,
};
