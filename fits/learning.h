/* learning.h - errors of predictions after a few measured runs corrected them. */
#ifndef DL_FITS_LEARNING_H
#define DL_FITS_LEARNING_H

#include "fits/fit_rows.h"
#include "model/engine/interval.h"

/* Errors of runs after so many others of their system and framework were given. */
struct dl_learning {
    int given;       /* runs */
    int groups;      /* systems with a framework that have more runs than given */
    double mape_pct; /* of the rest, mean over groups; random runs given */
    double coverage_pct;
    double smallest_mape_pct; /* the same with the runs on the fewest devices given */
};
enum { DL_LEARNING_STEPS = 5 }; /* 0, 1, 2, 4, 8 */
/* With predictions of the rows and the model of their errors: those of the data files, or those of
 * rows that no fit had seen. */
enum dl_code dl_learning_curve(const struct dl_fit_rows *rows,
                               const struct dl_fit_prediction *predictions,
                               const struct dl_interval_model *model, struct dl_arena *arena,
                               struct dl_learning out[DL_LEARNING_STEPS], struct dl_err *err);

/* Sets model->update_ratio to that of 1, 1/2, 1/4, 1/8, 1/16 with which the mean error of the rest,
 * over all numbers of runs, given at random and as the smallest, is least. F-POSTERIOR */
enum dl_code dl_learning_choose(const struct dl_fit_rows *rows,
                                const struct dl_fit_prediction *predictions,
                                struct dl_interval_model *model, struct dl_arena *arena,
                                struct dl_err *err);

#endif
