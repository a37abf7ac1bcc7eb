/* diagnose.h - the diagnosis of a prediction, for every strategy: its bottleneck (F-BOUND), its
 * 80 % interval (F-INTERVAL), its warnings. */
#ifndef DL_MODEL_ENGINE_DIAGNOSE_H
#define DL_MODEL_ENGINE_DIAGNOSE_H

#include "model/engine/compose.h"

enum dl_bottleneck dl_resource_bottleneck(enum dl_resource resource);
/* Of a composed prediction whose memory is known; F-BOUND. */
void dl_diagnose_bottleneck(const struct dl_evidence *evidence, struct dl_prediction *prediction);
/* residual_sigma_log: of the framework; F-INTERVAL. */
void dl_diagnose_interval(const struct dl_evidence *evidence, double residual_sigma_log,
                          struct dl_prediction *prediction);

struct dl_diagnosis {
    const struct dl_system *system;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_evidence *evidence;
    double parts;               /* devices that share the samples of one replica; 0: one */
    bool messages_extrapolated; /* outside what the links were measured for */
    /* why the scaling efficiency may exceed 1, as a clause; NULL: it cannot */
    const char *superlinear;
    const char *unknown_memory; /* what is absent from the device's file; NULL: nothing */
    const char *advice; /* advice for a plan that does not fit; NULL: the largest batch that fits */
    bool brief;         /* without warnings */
    struct dl_arena *arena;
};

/* Bottleneck, interval, warnings and the extrapolated flag of a composed prediction. */
void dl_diagnose(const struct dl_diagnosis *diagnosis, struct dl_prediction *prediction);

#endif
