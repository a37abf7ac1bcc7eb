/* compare_cause.h - why a run is slower than its prediction: the likeliest cause with its
 * evidence. */
#ifndef DL_PREDICT_COMPARE_COMPARE_CAUSE_H
#define DL_PREDICT_COMPARE_COMPARE_CAUSE_H

#include "model/engine/predict.h"
#include "model/plan/plan.h"

/* The figures of one run. Ratios are measured iteration / predicted iteration. */
struct dl_shortfall {
    const struct dl_prediction *prediction;
    const struct dl_plan *plan;
    double measured_s; /* iteration */
    /* of the same configuration on the fewest devices; NAN: this is it, or none */
    double base_ratio;
    int64_t base_devices;
    double node_ratio;  /* of the largest run inside one node; NAN: none, or this is it */
    double fewer_ratio; /* of the next smaller run; NAN: none */
};

/* NULL when the run is not slower than the prediction's interval, else a sentence in the arena: the
 * first of these that the figures support. Compute itself is slower (the run on the fewest devices
 * falls short as much); communication is not overlapped (compute plus all communication is what was
 * measured, within 7 %); the network is slower than in the system's file (by which factor); input
 * (in a node, the rate per node does not grow with devices); stragglers (short by less than 15 %
 * and more with more devices); unknown. */
const char *dl_compare_cause(const struct dl_shortfall *run, struct dl_arena *arena);

#endif
