/* client.h - Slurm's own programs as children, without a shell: sbatch, squeue, sacct, scancel.
 */
#ifndef DL_SLURM_CLUSTER_CLIENT_H
#define DL_SLURM_CLUSTER_CLIENT_H

#include "model/core/arena.h"
#include "model/core/status.h"

struct dl_client_result {
    int exit_status;   /* -1: ended by a signal */
    char *out;         /* its standard output */
    const char *words; /* the last line of its standard error, or "" */
};

/* Runs argv[0] from $PATH to its end. DL_ERR_BACKEND: it is missing, or has not ended within
 * limit_s. DL_OK also for a program that fails: see the result. */
enum dl_code dl_client_run(const char *const *argv, double limit_s, struct dl_arena *arena,
                           struct dl_client_result *out, struct dl_err *err);

#endif
