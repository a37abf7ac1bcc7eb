/* timeline.h - one iteration of data-parallel training as tasks on lanes (run.h): the host that
 * issues kernels, the device that runs them, the network, and the halos of layers. A behaviour
 * (model/framework/gradient_sync.h) adds the messages. Iterations follow each other until their
 * period is constant. */
#ifndef DL_MODEL_ENGINE_TIMELINE_H
#define DL_MODEL_ENGINE_TIMELINE_H

#include "model/engine/resource.h"
#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"

/* One message inside a replica that its devices wait for. */
struct dl_layer_message {
    struct dl_message message; /* start_s: filled by the timeline */
    int layer;                 /* index in the workload */
    bool backward;             /* before the layer's backward pass, else after its forward pass */
    /* Of that pass, what can be computed while the message travels; above 0 it travels from the
     * start of the pass on, and the rest of the pass waits for it. */
    double hidden_frac;
};

struct dl_timeline_request {
    const struct dl_cost *cost;
    const struct dl_framework_behaviour *behaviour; /* NULL: no communication */
    /* gradients' ready_s are filled by the timeline */
    struct dl_gradient_sync_request sync;
    struct dl_gradient *gradients; /* writable view of sync.gradients */
    double dispatch_s;             /* host time to issue one kernel */
    struct dl_host_cost host;      /* of what it runs beside them */
    double gap_s;                  /* device idle between two kernels */
    double iteration_host_s;       /* fixed host time of an iteration */
    double gradient_host_s;        /* host time to issue the exchange of one gradient tensor */
    bool checks_overflow; /* the host issues the update once it has read the gradients' state */
    bool accumulates; /* a micro-batch before the last: its gradients are summed, nothing updates */
    double slowdown_frac; /* F-SLOWDOWN: of what kernels run on, messages hold this */
    /* Inside the layers (model/engine/split_replica.h), in execution order: device and host wait
     * for them. */
    struct dl_layer_message *layer_messages;
    int layer_message_count;
};

struct dl_timeline {
    double period_s; /* of the steady state */
    /* network lane: sum of the durations of messages and of the copies around them */
    double comm_s;
    double comm_latency_s;
    double stall_s; /* device idle because the host is late, and fixed host time */
    double slowdown_s;
    double overlap_s; /* of communication with forward and backward */
    /* per layer, of the last simulated iteration, since it began */
    double *forward_start_s, *backward_start_s;
    double backward_end_s, update_start_s;
    struct dl_gradient_sync sync; /* of the last iteration: messages with start and end */
    struct dl_resource_use path;  /* F-CRITICAL-PATH: of period_s */
};

/* DL_ERR_* from the behaviour. Deterministic. */
enum dl_code dl_timeline_run(struct dl_timeline_request *request, struct dl_timeline *out,
                             struct dl_err *err);

#endif
