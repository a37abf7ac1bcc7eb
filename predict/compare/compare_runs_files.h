/* compare_runs_files.h - the files that a run of a table names. */
#ifndef DL_PREDICT_COMPARE_RUNS_FILES_H
#define DL_PREDICT_COMPARE_RUNS_FILES_H

#include "predict/compare/compare_runs.h"

struct dl_loaded_file {
    const char *key;
    const void *object;
};

enum { DL_RUN_NEW_FILES = 6 }; /* objects that one row can add to the cache */

/* The number in a cell, within the column's range; NAN: the cell is empty. DL_ERR_INPUT names file,
 * line and column. */
enum dl_code dl_run_number(const struct dl_run_rows *r, int row, enum dl_run_column column,
                           double *out, struct dl_err *err);
/* Finds the run's system, framework with the constants of its release, and workload. What is not
 * described has the reason in run->why. */
enum dl_code dl_run_load_files(struct dl_run_rows *r, int row, struct dl_run_row *run,
                               struct dl_err *err);

#endif
