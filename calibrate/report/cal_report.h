/* cal_report.h - what calibrate prints. */
#ifndef DL_CALIBRATE_REPORT_CAL_REPORT_H
#define DL_CALIBRATE_REPORT_CAL_REPORT_H

#include "calibrate/profile/cal_profile.h"
#include "calibrate/run/cal_run.h"
#include "model/core/table.h"

const char *dl_cal_probe_list(const struct dl_cal_tools *tools, enum dl_format format,
                              struct dl_arena *arena);
/* The points with their shares, and the expected time of those missing from the journal. */
const char *dl_cal_plan_text(const struct dl_cal_plan *plan, const struct dl_cal_tools *tools,
                             const struct dl_cal_journal *journal, enum dl_format format,
                             struct dl_arena *arena);
const char *dl_cal_samples_csv(const struct dl_system *profile, struct dl_arena *arena);
const char *dl_cal_summary(const struct dl_system *profile, const char *path, double elapsed_s,
                           struct dl_arena *arena);

#endif
