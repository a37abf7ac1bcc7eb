/* cost.h - time of every layer of a workload on one device: forward, backward and optimizer update.
 */
#ifndef DL_MODEL_FRAMEWORK_COST_H
#define DL_MODEL_FRAMEWORK_COST_H

#include "model/framework/cost_memo.h"
#include "model/framework/framework.h"
#include "model/plan/plan.h"
#include "model/machine/system.h"
#include "model/workload/workload.h"

/* Device time of one pass of one layer and what bounds it. */
struct dl_pass_cost {
    double time_s;
    /* split by enum dl_limit: arithmetic, memory bandwidth, kernel latency */
    double by_limit_s[3];
    double launches;           /* kernels that the host queues */
    struct dl_host_count host; /* what the host runs beside them (F-HOST-COUNT) */
    double weights_s;          /* of time_s gradients of weights */
    double error_s;         /* sum of time x sigma_log: fully correlated bound of the uncertainty */
    double error_square_s2; /* sum of (time x sigma_log)^2: uncorrelated bound */
    bool extrapolated;
    const char *formula, *origin, *origin_device; /* of its longest kernel */
    double flop, bytes;
};

struct dl_layer_cost {
    struct dl_pass_cost forward, backward; /* backward: data and weights */
};

/* The period of an iteration of these layers without messages, as remembered: of the last one that
 * was asked for, with what it depends on besides. */
struct dl_quiet_period {
    double dispatch_s, gap_s, iteration_host_s;
    struct dl_host_cost host;
    bool checks_overflow, accumulates;
    double period_s; /* 0: none yet */
};

struct dl_cost {
    struct dl_layer_cost *layers; /* one per workload layer */
    struct dl_pass_cost update;   /* optimizer, all parameters */
    /* sum of gradients with those of earlier micro-batches, all parameters. F-ACCUMULATE */
    struct dl_pass_cost accumulation;
    struct dl_quiet_period *quiet; /* of a memo; NULL: these costs are of no memo */
};

struct dl_cost_request {
    const struct dl_device *device;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    double batch_samples; /* on the device */
};

/* Costs of a request. Pure. DL_ERR_USAGE when the device has no rate for the precision. */
enum dl_code dl_cost_compute(const struct dl_cost_request *request, struct dl_arena *arena,
                             struct dl_cost *out, struct dl_err *err);

/* The same into out->layers, room for all of them, zeroed. */
enum dl_code dl_cost_fill(const struct dl_cost_request *request, struct dl_arena *arena,
                          struct dl_cost *out, struct dl_err *err);

/* As dl_cost_compute, from the memo where the same was computed before; memo NULL: computes. The
 * layers are constant. */
enum dl_code dl_cost_recall(struct dl_cost_memo *memo, const struct dl_cost_request *request,
                            struct dl_arena *arena, struct dl_cost *out, struct dl_err *err);

/* Multiplies all times and their errors by `factor`. */
void dl_cost_scale(struct dl_pass_cost *cost, double factor);
/* Whether the framework fuses elementwise layers in this precision, and whether layer `index` is
 * one of them: then it runs inside the kernel before it. */
bool dl_cost_fuses(const struct dl_framework *framework, const struct dl_device *device,
                   enum dl_precision precision);
bool dl_cost_fused(const struct dl_workload *workload, int index);
/* What is left of an addition inside another kernel: forward it reads its other inputs; backward
 * the gradient, which all inputs share, is written for them. false: nothing, as of an activation.
 */
bool dl_cost_fused_rest(const struct dl_layer *layer, enum dl_pass pass, double batch,
                        struct dl_kernel *out);

/* Bytes the optimizer moves per parameter (reads and writes), by optimizer and precision.
 * F-UPDATE-BYTES. SGD 3, momentum 5, Adam 7 fp32 words (key `formulas` of data/SOURCES.md); + 2
 * bytes for the 16-bit copy in mixed precision; LAMB adds two passes for its norms. */
double dl_update_bytes_per_parameter(enum dl_optimizer optimizer, enum dl_precision precision);

#endif
