/* adviser.h - all advice for one plan, and its best combination. The model judges each change
 * (advise_judge.h); commands, figures and pages show the same numbers. */
#ifndef DL_PREDICT_INPUTS_ADVISER_H
#define DL_PREDICT_INPUTS_ADVISER_H

#include "predict/inputs/advise_judge.h"

struct dl_advised { /* one change and what it brings */
    struct dl_advise_change change;
    struct dl_verdict verdict;
    struct dl_gain gain; /* over the plan before it */
    const char *command; /* predict with it */
};

enum { DL_ADVISED = 256, DL_ADVISE_STEPS = 16 };

struct dl_advise_report {
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    bool by_energy;                /* samples per joule, else per second */
    enum dl_advise_effect allowed; /* in the combination */
    double least_gain_frac;
    struct dl_verdict base;
    struct dl_advised *rows; /* the best change of each item first; by gain */
    int count;
    struct dl_advised steps[DL_ADVISE_STEPS]; /* the combination, in order */
    int step_count;
    struct dl_gain gain; /* of the combination over the base */
    const char *command; /* of it */
};

/* Fills the report for the plan of the options: by_energy, allowed and least_gain_frac are given.
 * DL_ERR_USAGE: not one plan, or one that cannot run. */
enum dl_code dl_adviser_run(struct dl_context *context, const struct dl_options *options,
                            struct dl_advise_report *report, struct dl_err *err);

/* The first change of an item that rewrites the network. DL_ERR_NO: nothing changes, or the new
 * network cannot run. */
enum dl_code dl_adviser_rewrite(struct dl_context *context, const struct dl_options *options,
                                const char *item, struct dl_advise_report *report,
                                struct dl_advised *out, struct dl_err *err);

/* Whether no better row has the same item: the rest are other values of one setting. */
bool dl_advised_is_first(const struct dl_advise_report *report, int row);

#endif
