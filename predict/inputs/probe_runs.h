/* probe_runs.h - which runs of one's own, shorter and smaller than the planned one, would narrow
 * its prediction most. F-POSTERIOR: how far runs narrow a prediction does not depend on what they
 * will measure. */
#ifndef DL_PREDICT_INPUTS_PROBE_RUNS_H
#define DL_PREDICT_INPUTS_PROBE_RUNS_H

#include "model/engine/interval.h"
#include "predict/inputs/inputs.h"

enum { DL_PROBE_MOST = 3, DL_PROBE_WARMUP = 10, DL_PROBE_STEPS = 50 };

struct dl_probe_run {
    struct dl_plan plan;
    double iteration_s;   /* predicted */
    double duration_s;    /* slow end of the prediction, with start, warm-up and steps */
    double device_time_s; /* duration times devices */
    double alone_ratio;   /* end of the interval / prediction after this run alone */
    struct dl_measured_run as_measured; /* with nothing new to say */
};

struct dl_probe_choice {
    struct dl_plan plan; /* of the planned run */
    struct dl_prediction prediction;
    double before_ratio, after_ratio; /* end of the 80 % interval / prediction */
    double best_ratio;                /* after the set that narrows most */
    struct dl_probe_run runs[DL_PROBE_MOST];
    int count; /* 0: no smaller run would narrow it */
    struct dl_probe_run *candidates;
    int candidate_count;
};

/* Of all sets of at most DL_PROBE_MOST runs on half of the nodes or less, with the planned batch
 * per device, its half or its quarter: the cheapest in device time that narrows the interval by at
 * least 90 % of what the best one does. For the first framework. DL_ERR_USAGE: several node
 * counts, no intervals, --measured. */
enum dl_code dl_probe_choose(struct dl_context *context, const struct dl_inputs *inputs,
                             struct dl_probe_choice *out, struct dl_err *err);

#endif
