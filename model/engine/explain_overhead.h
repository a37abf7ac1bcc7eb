/* explain_overhead.h - the terms of overhead: launch gaps, host time, a late host and the wait for
 * the slowest device, each with its inputs. Shared by all explanations.
 */
#ifndef DL_MODEL_ENGINE_EXPLAIN_OVERHEAD_H
#define DL_MODEL_ENGINE_EXPLAIN_OVERHEAD_H

#include "model/engine/predict.h"

enum { DL_OVERHEAD_TERMS = 4 };

/* The inputs of an iteration's overhead. */
struct dl_overhead_inputs {
    const struct dl_system *system;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    double kernel_count; /* of one micro-batch and the update */
    struct dl_host_count host;
    double operation_count; /* of the host that it issues like kernels */
    double micro_batches;   /* that repeat them */
    double host_count;      /* how many times the framework's fixed host time counts */
};

/* Fills out[DL_OVERHEAD_TERMS] with the parts that are not zero; they add up to
 * prediction->overhead_s. Returns how many. */
int dl_explain_overhead(const struct dl_overhead_inputs *inputs,
                        const struct dl_prediction *prediction, struct dl_arena *arena,
                        struct dl_term *out);

#endif
