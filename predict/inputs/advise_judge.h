/* advise_judge.h - the model as judge of advice: predicts a plan with changed options exactly as
 * `dlmodel predict` does with the command that is printed. */
#ifndef DL_PREDICT_INPUTS_ADVISE_JUDGE_H
#define DL_PREDICT_INPUTS_ADVISE_JUDGE_H

#include "model/search/advise/advise.h"
#include "predict/inputs/inputs.h"

struct dl_verdict {
    bool possible;                   /* the plan can run; else why not */
    const char *why;                 /* in the process's arena */
    struct dl_prediction prediction; /* its numbers; texts and terms are gone */
    double samples;                  /* of an iteration, all devices */
    enum dl_precision precision;
    int64_t nodes, devices;
    double price_per_node_hour;    /* NAN: unknown */
    double job_w, power_sigma_log; /* NAN: unknown */
    const char *device, *release;  /* in the process's arena */
};

/* The options with those of a change in place of what they replace: the same option, the same key
 * of --set, the other way to give a batch. DL_ERR_USAGE: too many. */
enum dl_code dl_advise_options(struct dl_arena *arena, const struct dl_options *options,
                               const struct dl_advise_change *change, struct dl_options *out,
                               struct dl_err *err);

/* Predicts the options, on a rewritten network where text is one. DL_OK with possible = false when
 * the plan cannot run. */
enum dl_code dl_advise_judge(struct dl_context *context, const struct dl_options *options,
                             const char *workload_text, struct dl_verdict *out, struct dl_err *err);

/* The state from which items propose; everything in the arena. */
enum dl_code dl_advise_state_of(struct dl_context *context, const struct dl_options *options,
                                struct dl_advise_state *out, struct dl_err *err);

#endif
