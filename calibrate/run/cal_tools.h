/* cal_tools.h - finding the probe programs and launchers of this machine, and asking what they can
 * do. */
#ifndef DL_CALIBRATE_RUN_CAL_TOOLS_H
#define DL_CALIBRATE_RUN_CAL_TOOLS_H

#include "calibrate/run/cal_child.h"
#include "calibrate/run/cal_journal.h"

struct dl_cal_tools {
    const char *program[DL_CAL_PROGRAMS]; /* paths; NULL: not found */
    const char *mpirun, *srun;            /* paths; NULL: not found */
    /* mpirun is Open MPI's: transports can be chosen */
    bool open_mpi;
    struct dl_cal_report probes[DL_CAL_PROBES_MAX]; /* in the order of dl_cal_probes */
    struct dl_cal_fact facts[128];
    int fact_count;
    int64_t hosts_left;   /* nodes that take part; 0: not asked yet, as many as the plan says */
    const char *no_hosts; /* why nothing can be measured over the network; NULL: it can */
};

/* Looks beside `program`, in $DLMODEL_LIBEXEC, where it was installed; asks the programs for their
 * lists, mpirun for its version. What is missing is not an error: it is in `probes`. */
enum dl_code dl_cal_survey(const char *program, struct dl_arena *arena, struct dl_cal_tools *out,
                           struct dl_err *err);

/* Why a probe cannot run here, or NULL. */
const char *dl_cal_unavailable_probe(const struct dl_cal_tools *tools, const char *probe);

/* Number of a fact that a program's list gave; NAN: none. */
double dl_cal_tool_fact(const struct dl_cal_tools *tools, const char *key);

/* Why a point cannot be measured here, or NULL. */
const char *dl_cal_unavailable(const struct dl_cal_tools *tools, const struct dl_cal_point *point);

#endif
