/* client.h - Slurm's own programs as children, without a shell: sbatch, squeue, sacct, scancel.
 */
#ifndef DL_SLURM_CLUSTER_CLIENT_H
#define DL_SLURM_CLUSTER_CLIENT_H

#include "model/base/arena.h"
#include "model/base/status.h"

struct dl_client_result {
    int exit_status;   /* -1: ended by a signal */
    char *out;         /* its standard output */
    const char *words; /* the last line of its standard error, "" when it said nothing */
};

/* Run argv[0] of $PATH to its end. DL_ERR_BACKEND: it is not there, or it gave no answer within
 * limit_s. A program that fails is DL_OK: see the result. */
enum dl_code dl_client_run(const char *const *argv, double limit_s, struct dl_arena *arena,
                           struct dl_client_result *out, struct dl_err *err);

#endif
