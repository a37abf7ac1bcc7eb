/* cal_compare.h - what changed between two calibrations of a machine: rates, links, collectives,
 * versions. Pure. */
#ifndef DL_CALIBRATE_REPORT_CAL_COMPARE_H
#define DL_CALIBRATE_REPORT_CAL_COMPARE_H

#include "model/hardware/system.h"
#include "model/base/table.h"

/* One row for each quantity or fact that either profile has: before, now, change. A quantity has
 * changed when the intervals of its samples say so and by more than 3 %; facts when the texts
 * differ. Samples are compared one by one where both have the shape; their rows are the probe's
 * median change. *changed_count: rows that changed. NULL: out of memory. */
const char *dl_cal_compare(const struct dl_system *before, const struct dl_system *now,
                           enum dl_format format, struct dl_arena *arena, int *changed_count);

#endif
