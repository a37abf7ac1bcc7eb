/* prediction_internal.h - results of a replica or a pipeline for explain.c. Private to model/. */
#ifndef DL_MODEL_ENGINE_PREDICTION_INTERNAL_H
#define DL_MODEL_ENGINE_PREDICTION_INTERNAL_H

#include "model/engine/predict.h"
#include "model/engine/timeline.h"

struct dl_prediction_inputs {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_cost *cost;
    const struct dl_timeline *with_comm, *without_comm;
    struct dl_arena *arena;
};

/* Every term; only for explain and trace. */
void dl_explain_terms(const struct dl_prediction_inputs *parts, struct dl_prediction *prediction);

#endif
