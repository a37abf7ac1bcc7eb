/* cal_submit.h - `calibrate --submit`: the same calibration as a Slurm job. */
#ifndef DL_CALIBRATE_RUN_CAL_SUBMIT_H
#define DL_CALIBRATE_RUN_CAL_SUBMIT_H

#include "calibrate/plan/cal_plan.h"
#include "model/catalog/command.h"

/* Writes a job script from the other options, some of them bound in `choice`, submits it with
 * sbatch and prints the job id.
 * --dry-run: prints the script. DL_ERR_BACKEND: sbatch is missing or refuses the job. */
enum dl_code dl_cal_submit(struct dl_context *context, const struct dl_options *options,
                           const struct dl_cal_choice *choice, struct dl_err *err);

#endif
