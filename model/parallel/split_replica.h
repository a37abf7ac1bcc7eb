/* split_replica.h - what the devices of one replica tell each other inside the layers, when its
 * layers are split (split.h).
 *
 *   filter (F-FILTER):   every device has some filters: outputs are gathered after the layer,
 * gradients of the output summed before its backward pass, but for the last split layer, whose
 * gradient all devices know channel (F-CHANNEL): every device has some input channels: outputs are
 * summed after the layer, gradients of the input gathered after its backward pass, but for layers
 * that read the workload's input. Where a framework's sums end the graph (channel_detached) nothing
 * before the last summed convolution is trained spatial (F-SPATIAL): every device has a part of
 * each image: halos of the input go to the neighbours before a layer with a window (F-HALO),
 * those of the gradient back; where a layer cannot be split its input is gathered, and from there
 * on every device computes all Devices wait for these messages, but for halos where the framework
 * computes inner positions meanwhile. The devices of a replica are neighbours: they fill nodes
 * before replicas do.
 */
#ifndef DL_MODEL_PARALLEL_SPLIT_REPLICA_H
#define DL_MODEL_PARALLEL_SPLIT_REPLICA_H

#include "model/parallel/strategy.h"
#include "model/predict/replica.h"
#include "model/parallel/split.h"

/* Completes `replica` (request, plan, samples, parts set) with workload, messages, buffers and
 * input for the split. */
enum dl_code dl_split_replica_split(struct dl_replica *replica, const struct dl_split *split,
                                    struct dl_err *err);

/* A replica of `parts` devices for the plan of the request, split by `kind`; at least 2. */
enum dl_code dl_split_replica_replica(const struct dl_predict_request *request,
                                      enum dl_split_kind kind, int64_t parts,
                                      struct dl_replica *out, struct dl_err *err);

/* The whole prediction of a strategy that splits layers by `kind` over `parts` devices: one replica
 * of parts devices, dp of them. */
enum dl_code dl_split_replica_predict(const struct dl_predict_request *request,
                                      enum dl_split_kind kind, int64_t parts,
                                      struct dl_prediction *out, struct dl_err *err);

/* The same under ParaDL's assumptions (plan->assume), F-PARADL: data, filter and channel. */
enum dl_code dl_paradl_predict(const struct dl_predict_request *request, enum dl_split_kind kind,
                               int64_t parts, struct dl_prediction *out, struct dl_err *err);

/* Refuses more parts than the layers allow, with the layer and the nearest number that is possible.
 */
enum dl_code dl_split_replica_check(const struct dl_workload *workload,
                                    const struct dl_framework *framework, enum dl_split_kind kind,
                                    int64_t parts, const struct dl_plan *plan, struct dl_err *err);

#endif
