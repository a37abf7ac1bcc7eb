/* launch.h - how a job starts a framework: `launch` of its data file with its defaults, or the
 * user's own command. */
#ifndef DL_SLURM_LAUNCH_H
#define DL_SLURM_LAUNCH_H

#include "model/catalog/command.h"
#include "model/framework/framework.h"

struct dl_launch {
    const char *framework;           /* its name; "custom": the user's command */
    const struct dl_framework *file; /* its data file; NULL: the user's command */
    const char *program;             /* file of slurm/frameworks; NULL: the user's command */
    const char *mode;                /* its --mode; NULL: none */
    enum dl_launch_tasks tasks;
    enum dl_launch_helpers helpers;
    bool mpi;                              /* srun --mpi=... */
    const char *strategy;                  /* of the runs */
    const char *backend_gpu, *backend_cpu; /* of the runs: library of gradient synchronization */
    const char **environment;              /* "NAME=VALUE" */
    int environment_count;
};

/* DL_ERR_USAGE: unknown framework, or one that no job can run. */
enum dl_code dl_launch_find(struct dl_context *context, const char *framework,
                            const struct dl_launch **out, struct dl_err *err);

/* Whether `--framework` asks for the user's own command. */
bool dl_launch_is_custom(const char *framework);

#endif
