/* cal_launch.h - the nodes of an allocation, and the command line that starts one MPI rank on each.
 */
#ifndef DL_CALIBRATE_RUN_CAL_LAUNCH_H
#define DL_CALIBRATE_RUN_CAL_LAUNCH_H

#include "calibrate/run/cal_tools.h"

struct dl_cal_launch {
    const struct dl_cal_tools *tools;
    const char *launcher; /* --launcher; NULL: srun in a Slurm allocation, else mpirun */
    bool slurm, pmix;     /* slurm: srun starts the ranks; pmix: with --mpi=pmix */
    const char **hosts;   /* names; NULL: the launcher knows them */
    size_t host_count;    /* nodes that take part */
};

/* Finds the hosts: of --hostfile, else of the Slurm or PBS allocation, else none if --launcher is
 * given. DL_ERR_USAGE: no allocation, or fewer hosts than --nodes; DL_ERR_INPUT, DL_ERR_SYSTEM: the
 * file. */
enum dl_code dl_cal_launch_find(const struct dl_cal_choice *choice,
                                const struct dl_cal_tools *tools, struct dl_arena *arena,
                                struct dl_cal_launch *out, struct dl_err *err);

/* Whether single nodes can be excluded. */
bool dl_cal_launch_chooses(const struct dl_cal_launch *launch);

/* Arguments that start one rank on each of `count` hosts (hosts NULL: the launcher knows them), to
 * be followed by the program and its arguments, for which `room` entries are free. */
const char **dl_cal_launch_words(const struct dl_cal_launch *launch, const char *const *hosts,
                                 size_t count, size_t room, struct dl_arena *arena,
                                 size_t *word_count);

/* The same for `ranks` ranks of this node. tcp: over the loopback interface instead of shared
 * memory (Open MPI). */
const char **dl_cal_local_words(const struct dl_cal_tools *tools, int64_t ranks, bool tcp,
                                size_t room, struct dl_arena *arena, size_t *word_count);

#endif
