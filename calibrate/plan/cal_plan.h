/* cal_plan.h - the points that calibrate measures: probe, shape and time of each. Pure: no
 * clock, no I/O. */
#ifndef DL_CALIBRATE_PLAN_CAL_PLAN_H
#define DL_CALIBRATE_PLAN_CAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"

/* Programs that measure: built when their libraries are there. */
enum dl_cal_program {
    DL_CAL_PROGRAM_CPU,
    DL_CAL_PROGRAM_MPI,
    DL_CAL_PROGRAM_CUDA,
    DL_CAL_PROGRAM_CUDNN,
    DL_CAL_PROGRAM_NCCL,
    DL_CAL_PROGRAMS
};
extern const char *const dl_cal_program_names[]; /* files, in that order */

/* The child process that measures a point: a program and its launcher. Children run in this order.
 */
enum dl_cal_child {
    DL_CAL_CPU,
    DL_CAL_GPU,
    DL_CAL_CUDNN,
    DL_CAL_SHM,
    DL_CAL_TCP,
    DL_CAL_NCCL,
    DL_CAL_NET,
    DL_CAL_NCCL_NET,
    DL_CAL_CHILDREN
};
enum dl_cal_start {
    DL_CAL_START_PLAIN, /* one process */
    DL_CAL_START_LOCAL, /* the ranks of this node, by mpirun */
    DL_CAL_START_HOSTS, /* one rank on each node, by the launcher */
};
struct dl_cal_child_row {
    const char *name; /* transport: the pass of its points, except for DL_CAL_CPU */
    enum dl_cal_program program;
    enum dl_cal_start start;
    double start_s; /* time to start it */
};
extern const struct dl_cal_child_row dl_cal_children[]; /* by enum dl_cal_child */

struct dl_cal_probe {
    const char *name, *summary;
    enum dl_cal_program program;
};
enum { DL_CAL_PROBES_MAX = 48 };
/* ended by name NULL; at most DL_CAL_PROBES_MAX */
extern const struct dl_cal_probe dl_cal_probes[];

struct dl_cal_point {
    const char *probe, *shape, *pass; /* pass of an MPI probe: "shm", "tcp" or "net" */
    enum dl_cal_child child;
    double share_s; /* of the budget */
};

struct dl_workload;

/* The user's choice; the journal keeps it for --resume. */
struct dl_cal_choice {
    bool quick;
    double budget_s;
    const char *only; /* "gemm,conv"; NULL: all */
    int64_t ranks;    /* of MPI on this node */
    const char *file_dir;
    int64_t nodes;                   /* 1: this node alone */
    const char *hostfile, *launcher; /* how to reach other nodes; NULL: by the allocation */
    /* cores of one device; number of such devices on this host. 0: all usable cores are one device
     */
    int64_t cores, devices;
    int64_t virtual_nodes; /* emulated by this host, one device each; 0: none */
    /* to measure on this node; 0: none. capability 70: compute capability 7.0 */
    int64_t gpus, capability;
    const char *workload_name; /* --workload; NULL: none */
    const struct dl_workload *workload;
};

struct dl_cal_plan {
    struct dl_cal_choice choice;
    struct dl_cal_point *points;
    size_t count;
    double expected_s; /* the shares, start-up and warm-up */
    uint64_t hash;     /* of points and choice */
};

/* Unknown names in choice->only: DL_ERR_USAGE with a suggestion. */
enum dl_code dl_cal_plan_make(const struct dl_cal_choice *choice, struct dl_arena *arena,
                              struct dl_cal_plan *out, struct dl_err *err);
bool dl_cal_chosen(const struct dl_cal_choice *choice, const char *probe);

/* Number at "key=" of a shape text "a=1 b=2"; NAN if absent. */
double dl_cal_shape_number(const char *shape, const char *key);

#endif
