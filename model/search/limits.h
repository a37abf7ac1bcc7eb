/* limits.h - which limits a plan runs into, what each costs, how the iteration reacts to each
 * resource, and the first change that pays.
 */
#ifndef DL_MODEL_SEARCH_LIMITS_H
#define DL_MODEL_SEARCH_LIMITS_H

#include "model/engine/predict.h"

enum { DL_MAX_LIMITS = 24 };

struct dl_limit_active {
    const char *name, *category; /* of the limit; its kind, e.g. "communication" */
    const char *detail;
    double cost_s, cost_bytes; /* NAN: not this kind */
};

/* F-ELASTICITY: d log T / d log resource, by a central difference of 1 %. Negative: more of it
 * makes the iteration shorter (latency: positive). */
struct dl_elasticity {
    const char *resource;
    double value;
};

/* a change, of the plan or the machine, and the iteration with it */
struct dl_change {
    const char *text;
    double iteration_s;
    bool fits, of_plan;
};

struct dl_limits {
    /* seconds first, largest first */
    struct dl_limit_active active[DL_MAX_LIMITS];
    int active_count;
    struct dl_elasticity elasticity[DL_MAX_LIMITS];
    int elasticity_count;
    struct dl_change changes[DL_MAX_LIMITS];
    int change_count; /* best first */
};

/* What 10 % more of a resource (of a latency: a tenth less) saves of the iteration. F-SAVING */
struct dl_saving {
    const char *resource;
    double saved_frac;
    unsigned relieves; /* bits 1 << enum dl_bottleneck; bottlenecks that are no resource: all set */
};
/* Of a request and its predicted iteration. The most effective first; at most DL_MAX_LIMITS.
 * *count_out: how many. With the memo of that prediction kernels are timed for two resources alone,
 * and for none where the memo knows them. */
enum dl_code dl_gains_of(const struct dl_predict_request *request, double iteration_s,
                         struct dl_saving *out, int *count_out, struct dl_err *err);

enum dl_code dl_limits_of(const struct dl_predict_request *request, struct dl_limits *out,
                          struct dl_err *err);

#endif
