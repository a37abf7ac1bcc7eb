/* launch.h - the launch ritual of each framework as one row of a table: program, tasks, helpers,
 * environment.
 */
#ifndef DL_SLURM_LAUNCH_H
#define DL_SLURM_LAUNCH_H

#include <stdbool.h>

enum dl_launch_tasks {
    DL_TASKS_DEVICE, /* one task a device */
    DL_TASKS_NODE,   /* one task a node; it drives all its devices */
    DL_TASKS_ONE,    /* one task on one node */
};

enum dl_launch_helpers {
    DL_HELPERS_NONE,
    DL_HELPERS_PS,      /* TensorFlow: one parameter server a node, beside the workers */
    DL_HELPERS_KVSTORE, /* MXNet: one scheduler, one server a node */
};

struct dl_launch {
    const char *framework; /* name of the contract; "custom" */
    const char *program;   /* file of slurm/frameworks; NULL: the user's command */
    const char *mode;      /* its --mode */
    enum dl_launch_tasks tasks;
    enum dl_launch_helpers helpers;
    bool mpi;                              /* srun --mpi=... */
    const char *strategy;                  /* column of the runs */
    const char *backend_gpu, *backend_cpu; /* column of the runs: what moves gradients */
    const char *const *environment;        /* "NAME=VALUE", NULL-terminated */
};

extern const struct dl_launch dl_launches[]; /* ended by framework NULL */
const struct dl_launch *dl_launch_find(const char *framework);
extern const char *const dl_launch_names[]; /* for suggestions, NULL-terminated */

#endif
