/* prediction_parts.h - what predict.c hands to the files that judge and explain its result. Private
 * to the model. */
#ifndef DL_MODEL_PREDICT_PREDICTION_PARTS_H
#define DL_MODEL_PREDICT_PREDICTION_PARTS_H

#include "model/predict/predict.h"
#include "model/framework/timeline.h"

struct dl_parts {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_cost *cost;
    const struct dl_timeline *with_comm, *without_comm;
    struct dl_arena *arena;
};

/* Bottleneck and its share of the iteration; F-BOUND. */
void dl_diagnose_bottleneck(const struct dl_parts *parts, struct dl_prediction *prediction);
/* 80 % interval of the iteration; F-INTERVAL. */
void dl_diagnose_interval(const struct dl_parts *parts, struct dl_prediction *prediction);
/* Warnings and the extrapolated flag. */
enum dl_code dl_diagnose_warnings(const struct dl_parts *parts, const char *unknown_memory,
                                  struct dl_prediction *prediction, struct dl_err *err);
/* Every term; only for explain and trace. */
enum dl_code dl_explain_terms(const struct dl_parts *parts, struct dl_prediction *prediction,
                              struct dl_err *err);

#endif
