/* cal_compare.h - the changes between two calibrations of a machine: rates, links, collectives,
 * versions. Pure. */
#ifndef DL_CALIBRATE_REPORT_CAL_COMPARE_H
#define DL_CALIBRATE_REPORT_CAL_COMPARE_H

#include "model/machine/system.h"
#include "model/core/table.h"

/* One row for each quantity or fact of either profile: before, now, change. A quantity has changed
 * when it differs by more than 3 %, samples when their intervals do not overlap either, a fact when
 * the texts differ. Samples are compared where both profiles have the shape; a row shows the median
 * change of a probe and pass. *changed_count: rows that changed. */
const char *dl_cal_compare(const struct dl_system *before, const struct dl_system *now,
                           enum dl_format format, struct dl_arena *arena, int *changed_count);

#endif
