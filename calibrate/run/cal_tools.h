/* cal_tools.h - finds the probe programs and launchers of this machine and queries their
 * capabilities. */
#ifndef DL_CALIBRATE_RUN_CAL_TOOLS_H
#define DL_CALIBRATE_RUN_CAL_TOOLS_H

#include "calibrate/run/cal_child.h"
#include "calibrate/run/cal_journal.h"

struct dl_cal_tools {
    const char *program[DL_CAL_PROGRAMS]; /* paths; NULL: not found */
    const char *mpirun, *srun;            /* paths; NULL: not found */
    /* mpirun is that of Open MPI, which can select transports */
    bool open_mpi;
    struct dl_cal_report probes[DL_CAL_PROBES_MAX]; /* in the order of dl_cal_probes */
    struct dl_cal_fact facts[128];
    int fact_count;
    int64_t hosts_left;   /* nodes that take part; 0: not surveyed yet, as many as planned */
    const char *no_hosts; /* why the network cannot be measured; NULL: it can */
};

/* Searches the directory of `program`, $DLMODEL_LIBEXEC and the installation; queries the probe
 * programs (--list) and mpirun (--version). A missing program is not an error: see `probes`. */
enum dl_code dl_cal_survey(const char *program, struct dl_arena *arena, struct dl_cal_tools *out,
                           struct dl_err *err);

/* Why a probe cannot run here, or NULL. */
const char *dl_cal_unavailable_probe(const struct dl_cal_tools *tools, const char *probe);

/* Numeric value of a fact from --list; NAN: none. */
double dl_cal_tool_fact(const struct dl_cal_tools *tools, const char *key);

/* Why a point cannot be measured here, or NULL. */
const char *dl_cal_unavailable(const struct dl_cal_tools *tools, const struct dl_cal_point *point);

#endif
