/* client.h - Slurm's own programs: sbatch, squeue, sacct, scancel. */
#ifndef DL_SLURM_CLUSTER_CLIENT_H
#define DL_SLURM_CLUSTER_CLIENT_H

#include "model/core/arena.h"
#include "model/core/status.h"

/* Runs argv[0] from $PATH to its end; *out: its standard output. DL_ERR_BACKEND: it is missing, has
 * not ended within two minutes, or failed: the message is the last line of its standard error. */
enum dl_code dl_client_run(const char *const *argv, struct dl_arena *arena, char **out,
                           struct dl_err *err);

#endif
