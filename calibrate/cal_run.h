/* cal_run.h - finding the probe programs, asking what they can do, and running a plan through them into a journal. */
#ifndef DL_CALIBRATE_CAL_RUN_H
#define DL_CALIBRATE_CAL_RUN_H

#include "calibrate/cal_child.h"
#include "calibrate/cal_journal.h"

enum { DL_CAL_PROBES_MAX = 16 };

struct dl_cal_tools {
    const char *cpu, *mpi, *mpirun;                 /* paths; NULL: not found */
    bool open_mpi;                                  /* transports can be chosen */
    struct dl_cal_report probes[DL_CAL_PROBES_MAX]; /* in the order of dl_cal_probes */
    struct dl_cal_fact facts[16];
    int fact_count;
};

/* Looks beside `program`, in $DLMODEL_LIBEXEC, where it was installed; runs dlmodel-probe-cpu --list and mpirun --version.
 * What is missing is not an error: it is in `probes`. */
enum dl_code dl_cal_survey(const char *program, struct dl_arena *arena, struct dl_cal_tools *out, struct dl_err *err);

/* Why a point cannot be measured here, or NULL. */
const char *dl_cal_unavailable(const struct dl_cal_tools *tools, const struct dl_cal_point *point);

struct dl_cal_progress {
    void *context;
    void (*sample)(void *context, const struct dl_raw_sample *sample, size_t done, size_t all);
    void (*warn)(void *context, const char *text);
};

/* Measure the points that the journal does not have. DL_ERR_SYSTEM: interrupted, or the journal cannot be written;
 * DL_ERR_BACKEND: a probe crashed. The journal keeps what is finished. */
enum dl_code dl_cal_measure(const struct dl_cal_plan *plan, const struct dl_cal_tools *tools, struct dl_cal_journal *journal,
                            const struct dl_cal_progress *progress, struct dl_arena *arena, struct dl_err *err);

#endif
