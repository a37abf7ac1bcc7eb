/* generalize.h - errors that are never in-sample: for each group of runs (a source, framework,
 * device or system) all constants of data/constants.json are refitted without it, and it is
 * predicted with these. F-GENERALIZE */
#ifndef DL_FITS_GENERALIZE_H
#define DL_FITS_GENERALIZE_H

#include "predict/compare/constants.h"
#include "fits/fit_rows.h"

enum dl_leave_out { DL_LEAVE_SOURCE, DL_LEAVE_FRAMEWORK, DL_LEAVE_DEVICE, DL_LEAVE_SYSTEM };
extern const char *const dl_leave_out_names[]; /* "source","framework","device","system", NULL */

struct dl_generalized {
    const struct dl_fit_rows *rows;
    const struct dl_constants *constants;
    enum dl_leave_out by;
    const char **groups;
    size_t group_count;
    size_t *group_of;                    /* of each row */
    struct dl_fit_prediction *in_sample; /* of each row, with the constants of the files */
    /* in_sample from the smallest run of each group of runs (compare --anchor) */
    struct dl_fit_prediction *in_sample_anchored, *anchored;
    struct dl_fit_prediction *held_out; /* of each row, fitted without its group */
    /* [group * rows + row]: iteration, fitted without the group; NULL unless by source */
    double *without_s;
    double *all_values;  /* constants fitted to all rows */
    double *values;      /* [group * constants + constant]: without the group */
    double *sensitivity; /* [row * constants + constant]: d log(iteration) / d log(constant) */
};

struct dl_generalize_choice {
    enum dl_leave_out by;
    int threads;
    const char *const *only; /* groups; the others are not left out, nor predicted */
    int only_count;          /* 0: all groups */
};

/* Refits and predicts. */
enum dl_code dl_generalize(const struct dl_fit_rows *rows, const struct dl_constants *constants,
                           const struct dl_generalize_choice *choice, struct dl_arena *arena,
                           struct dl_generalized *out, struct dl_err *err);

/* The group of a row. */
const char *dl_fit_row_group(const struct dl_fit_row *row, enum dl_leave_out by);

#endif
