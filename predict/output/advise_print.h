/* advise_print.h - advice as a table with its best combination, and as JSON. */
#ifndef DL_PREDICT_OUTPUT_ADVISE_PRINT_H
#define DL_PREDICT_OUTPUT_ADVISE_PRINT_H

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
    const char *objective;
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

enum dl_code dl_advise_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_advise_report *report, enum dl_format format,
                             struct dl_err *err);

#endif
