/* compare_cause.h - why a run is slower than its prediction: the causes that the figures allow,
 * each with its probability, its evidence and a test. */
#ifndef DL_PREDICT_COMPARE_COMPARE_CAUSE_H
#define DL_PREDICT_COMPARE_COMPARE_CAUSE_H

#include "model/engine/predict.h"
#include "model/plan/plan.h"

struct dl_cause {
    const char *name; /* "kernels", "network", "unknown", ... */
    const char *text; /* the evidence */
    const char *test; /* what would tell it from the others; NULL for "unknown" */
    double probability_frac;
    double factor;          /* on the named time, which would explain the run; NAN: none */
    const char *bottleneck; /* of the run if this is the cause; NULL: unknown */
};
enum { DL_MOST_CAUSES = 10 };
struct dl_causes {
    struct dl_cause list[DL_MOST_CAUSES]; /* the likeliest first */
    int count;
};

/* Another run of the same configuration on fewer devices. */
struct dl_other_run {
    const struct dl_prediction *prediction;
    const struct dl_plan *plan;
    double ratio; /* measured / predicted iteration */
};
enum { DL_MOST_OTHER_RUNS = 3 };

/* The figures of one run. */
struct dl_shortfall {
    const struct dl_prediction *prediction;
    const struct dl_plan *plan;
    double measured_s; /* iteration */
    /* of the same configuration on the fewest devices: measured / predicted iteration; NAN: this is
     * it, or none. An anchored run has the anchor, with 1 and without a prediction. */
    double base_ratio;
    int64_t base_devices;
    const struct dl_prediction *base; /* NULL: not known */
    /* the largest inside one node and the next smaller one; not the base */
    struct dl_other_run others[DL_MOST_OTHER_RUNS];
    int other_count;
    bool real_input;         /* samples come from storage, not from memory */
    const char *benchmark;   /* measures the communication library alone; NULL: not known */
    const char *host_remark; /* evidence that the host was slower than in its profile; NULL: none */
};

/* F-CAUSE. NULL when the run is not slower than the interval of measured set-ups. The arena holds
 * the texts. */
const struct dl_causes *dl_compare_causes(const struct dl_shortfall *run, struct dl_arena *arena);

/* Hypotheses with their weights (prior times likelihood of what was measured), for dl_causes_rank.
 */
struct dl_cause_weight {
    struct dl_cause cause;
    double weight_ratio; /* relative to the other weights */
};
/* Sorts by weight and keeps those of 3 % and more; the first, in any case. */
const struct dl_causes *dl_causes_rank(struct dl_cause_weight *list, int count,
                                       struct dl_arena *arena);
/* Densities of the logarithm of measured / expected: of noise about a hypothesis without a free
 * factor, and of a slowdown that no known cause explains. */
double dl_cause_noise(double log_ratio, double sigma_log);
double dl_cause_excess(double log_factor, double scale_log, double most);

/* "cause (72 %); or cause (20 %). Test: ..." */
const char *dl_causes_text(const struct dl_causes *causes, struct dl_arena *arena);

#endif
