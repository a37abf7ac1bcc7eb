/* split_replica.h - messages between the devices of one replica whose layers are split (split.h).
 *
 *   filter (F-FILTER)    Each device holds some filters: outputs are gathered after the layer,
 *                        gradients of the output are summed before its backward pass, except in the
 *                        last split layer, whose gradient all devices know.
 *   channel (F-CHANNEL)  Each device holds some input channels: outputs are summed after the layer,
 *                        gradients of the input are gathered after its backward pass, except in
 *                        layers that read the workload's input. Where a framework's sums end the
 *                        graph (channel_detached), nothing before the last summed convolution is
 *                        trained.
 *   spatial (F-SPATIAL)  Each device holds a part of each image: before a layer with a window the
 *                        halos of the input go to the neighbours (F-HALO), in the backward pass
 *                        those of the gradient return. Before a layer that cannot be split the
 *                        input is gathered, and every device computes all layers from there on.
 *
 * Devices wait for these messages, except for halos where the framework computes inner positions
 * meanwhile. The devices of a replica are neighbours: replicas fill a node before they span nodes.
 */
#ifndef DL_MODEL_ENGINE_SPLIT_REPLICA_H
#define DL_MODEL_ENGINE_SPLIT_REPLICA_H

#include "model/engine/strategies/strategy.h"
#include "model/engine/replica.h"
#include "model/engine/split.h"

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
