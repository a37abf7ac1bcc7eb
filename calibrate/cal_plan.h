/* cal_plan.h - what calibrate will measure: which probe, which shapes, how long each. Pure: no clock, no I/O. */
#ifndef DL_CALIBRATE_CAL_PLAN_H
#define DL_CALIBRATE_CAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/status.h"

/* Which child process measures a probe. */
enum dl_cal_child { DL_CAL_CPU, DL_CAL_SHM, DL_CAL_TCP, DL_CAL_CHILDREN };

struct dl_cal_probe {
    const char *name, *summary;
    bool mpi;
};
extern const struct dl_cal_probe dl_cal_probes[]; /* ended by name NULL */

struct dl_cal_point {
    const char *probe, *shape, *pass; /* pass of an MPI probe: "shm" or "tcp" */
    enum dl_cal_child child;
    double share_s; /* of the budget */
};

/* What the user chose; kept in the journal, so that --resume goes on with the same. */
struct dl_cal_choice {
    bool quick;
    double budget_s;
    const char *only; /* "gemm,conv"; NULL: all */
    int64_t ranks;
    const char *file_dir;
};

struct dl_cal_plan {
    struct dl_cal_choice choice;
    struct dl_cal_point *points;
    size_t count;
    double expected_s; /* the shares, and what starting and warming up takes */
    uint64_t hash;     /* of points and choice */
};

/* Unknown names in choice->only: DL_ERR_USAGE with a suggestion. */
enum dl_code dl_cal_plan_make(const struct dl_cal_choice *choice, struct dl_arena *arena, struct dl_cal_plan *out,
                              struct dl_err *err);
bool dl_cal_chosen(const struct dl_cal_choice *choice, const char *probe);

/* Number at "key=" of a shape text "a=1 b=2"; NAN when it is not there. */
double dl_cal_shape_number(const char *shape, const char *key);

#endif
