/* run_rates.h - what the collectives that a run measured itself say of the run. */
#ifndef DL_PREDICT_COMPARE_RUN_RATES_H
#define DL_PREDICT_COMPARE_RUN_RATES_H

#include "predict/compare/compare_runs.h"

/* Sets run->why where the links inside a node had less than half of their usual rate. */
enum dl_code dl_run_links(const struct dl_run_rows *r, int row, struct dl_run_row *run,
                          struct dl_err *err);

/* dl_run_version(), with "checks=True" or "checks=False" where pp_fix selects the release and the
 * run measured an all-gather of all ranks on several nodes. */
enum dl_code dl_run_checked_version(const struct dl_run_rows *r, int row,
                                    const struct dl_run_row *run, const char **out,
                                    struct dl_err *err);

#endif
