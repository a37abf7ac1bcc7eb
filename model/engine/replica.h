/* replica.h - one copy of the network, on one device or split over a few, and the
 * synchronization of its gradients with the other copies: the common part of data parallelism
 * and every split within layers. */
#ifndef DL_MODEL_ENGINE_REPLICA_H
#define DL_MODEL_ENGINE_REPLICA_H

#include "model/framework/gradient_sync.h"
#include "model/engine/predict.h"
#include "model/engine/timeline.h"

struct dl_replica {
    const struct dl_predict_request *request;
    /* as one device computes it; the layers of the request, with shapes that may be smaller */
    const struct dl_workload *workload;
    /* for gradient synchronization: dp counts the devices that sum a gradient */
    struct dl_plan plan;
    double samples; /* through each device's kernels in an iteration */
    double parts;   /* devices that share these samples' work */
    /* a leader reads and scatters: seconds in addition to a device's own input */
    double input_extra_s;
    bool synchronizes; /* there are other replicas to synchronize gradients with */
    struct dl_layer_message *messages;
    int message_count;   /* in execution order */
    double least_wait_s; /* for those of them that nothing hides */
    double buffer_bytes; /* of memory, for these messages */
};

/* The library whose collectives a framework uses on this system; the plan's when it names one. */
enum dl_library dl_replica_library(const struct dl_system *system,
                                   const struct dl_framework *framework,
                                   const struct dl_plan *plan);

/* Whether a thread of the framework polls in MPI calls next to the computing threads: Horovod's
 * queries the other ranks in every cycle. */
bool dl_replica_polls(const struct dl_system *system, const struct dl_framework *framework,
                      const struct dl_plan *plan);

/* F-SLOWDOWN: slowdown of compute while a collective runs: the framework's, or the device's
 * where collectives' kernels occupy its few units. */
double dl_replica_slowdown_frac(const struct dl_system *system,
                                const struct dl_framework *framework, const struct dl_plan *plan);

/* Every device has its own copy: data parallelism. */
struct dl_replica dl_replica_of_device(const struct dl_predict_request *request);

/* F-SEARCH-BOUND: whether an iteration that takes at least `least_s` is longer than the request's
 * options allow; a part in 10^9 more, so that sums in another order decide alike. Never where
 * measured runs correct predictions: they may shorten them. */
bool dl_replica_is_beyond(const struct dl_predict_request *request, double least_s);

/* Costs, timeline, input and memory composed into a prediction. */
enum dl_code dl_replica_predict(const struct dl_replica *replica, struct dl_prediction *out,
                                struct dl_err *err);

#endif
