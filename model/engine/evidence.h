/* evidence.h - the parts of an iteration, before it is composed (compose.h) and diagnosed
 * (diagnose.h): plain seconds, whatever strategy computed them. */
#ifndef DL_MODEL_ENGINE_EVIDENCE_H
#define DL_MODEL_ENGINE_EVIDENCE_H

#include "model/framework/cost.h"
#include "model/engine/resource.h"
#include "model/framework/gradient_sync.h"

/* Seconds of one iteration on the slowest device, from the strategy's own model. */
struct dl_evidence {
    /* kernels; backward_s with the slowdown while a collective runs */
    double forward_s, backward_s, update_s;
    double comm_s;         /* all communication */
    double exposed_comm_s; /* the part that computation does not hide */
    double bubble_s;       /* of a pipeline */
    double host_s;         /* device idle: launch gaps, a late host, fixed host time */
    double host_bound_s;   /* F-PACED: what follows the host's pace; 0: host_s */
    double straggler_frac; /* straggler wait / compute: dl_straggler_frac() */
    double load_s,
        feed_s; /* loading that prefetch can hide; host-to-device copy before each step */
    bool prefetches;
    /* for the diagnosis. Kernels by enum dl_limit, and the spread of their times */
    double by_limit_s[3], error_s, error_square_s2;
    double outside_s;            /* of forward and backward: kernels outside the device's samples */
    struct dl_resource_use comm; /* exposed communication by cause: only the ratios count */
    double comm_error_s;         /* spread of the exposed communication */
    /* F-CRITICAL-PATH: of all that is above but the input and the wait for the slowest device */
    struct dl_resource_use path;
};

/* The path of parts that follow each other: kernels by their limits, exposed communication by its
 * causes, the host, other stages. */
void dl_evidence_serial_path(struct dl_evidence *evidence);

/* Kernels by limit, their spread and what lies outside the samples, from the layers of one
 * micro-batch and the update. */
void dl_evidence_of_cost(const struct dl_cost *cost, int layer_count, double micro_batches,
                         struct dl_evidence *out);

/* Causes and spread of the exposed communication, which is set, from all messages. servers: the
 * links of parameter servers set the pace. */
void dl_evidence_of_messages(const struct dl_message *messages, int count, bool servers,
                             struct dl_evidence *out);

#endif
