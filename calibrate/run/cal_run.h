/* cal_run.h - running a plan through the probe programs into a journal. */
#ifndef DL_CALIBRATE_RUN_CAL_RUN_H
#define DL_CALIBRATE_RUN_CAL_RUN_H

#include "calibrate/run/cal_nodes.h"

/* Measures the points missing from the journal.
 * DL_ERR_SYSTEM: interrupted, or the journal cannot be written; DL_ERR_BACKEND: a probe crashed, or
 * the other nodes are unreachable. The journal keeps finished samples. */
struct dl_cal_job {
    const struct dl_cal_plan *plan;
    struct dl_cal_tools *tools;
    struct dl_cal_launch *launch; /* the other nodes; NULL: this node alone */
    struct dl_cal_journal *journal;
    const struct dl_cal_progress *progress;
};
enum dl_code dl_cal_measure(const struct dl_cal_job *job, struct dl_arena *arena,
                            struct dl_err *err);

#endif
