/* probe_nccl.h - dlmodel-probe-nccl: one process for each GPU, on one node or several.
 *
 * How the processes come to be: `--spawn N` makes N of them on this node, one a GPU. Started by
 * mpirun or srun with one process a node and --spawn, they are N on each node; started with one
 * process a GPU and without it, they are those. How they meet: rank 0 listens on a TCP port, the
 * others connect. Where it listens they learn from the process that spawned them, through MPI, or,
 * without MPI, from what Slurm puts into the environment.
 */
#ifndef DL_CALIBRATE_PROBES_NCCL_PROBE_NCCL_H
#define DL_CALIBRATE_PROBES_NCCL_PROBE_NCCL_H

#include "calibrate/probes/gpu/probe_gpu.h"

enum { DL_HOST_BYTES = 1025 }; /* of a name, as getaddrinfo counts */

struct dl_meeting {
    int rank, ranks;
    int local, per_node; /* rank inside the node; ranks of each node */
    int listener;        /* rank 0: the socket on which it waits for the others; -1: none */
    char host[DL_HOST_BYTES];
    int port;
};

/* Who this process is, from environment or MPI. spawn > 0: it is that of a node, counts as one rank
 * here, and calls dl_meeting_spawn next. DL_ERR_BACKEND: neither a launcher nor --spawn. */
enum dl_code dl_meeting_find(int spawn, struct dl_meeting *out, struct dl_err *err);
/* Run this program once for each of the node's ranks, with these arguments; their exit status. Says
 * which rank failed. */
int dl_meeting_spawn(const struct dl_meeting *node, int spawn, char **argv);
void dl_meeting_end(void); /* of MPI, if it was used */

/* Connections between rank 0 and each other. */
enum dl_code dl_meet(const struct dl_meeting *meeting, struct dl_err *err);
/* Which ranks take part in an exchange: the first `per_node` of each of the first `nodes` nodes. */
struct dl_members {
    int nodes, per_node;
};
bool dl_is_member(const struct dl_meeting *meeting, const struct dl_members *members, int rank);
/* The largest (or the sum) of all members' values, in all members. DL_ERR_BACKEND names the rank
 * that is gone. */
enum dl_code dl_meet_max(const struct dl_members *members, double *value, struct dl_err *err);
enum dl_code dl_meet_sum(const struct dl_members *members, double *value, struct dl_err *err);
/* From rank 0 to all members. */
enum dl_code dl_meet_tell(const struct dl_members *members, void *bytes, size_t size,
                          struct dl_err *err);
/* How long a rank may stay silent, or a collective take: 40 s, or DLMODEL_PATIENCE_S. */
double dl_meet_patience_s(void);
/* `what` has not ended within the patience: called by every rank that waits for it; rank 0 names
 * the one that does not. Always DL_ERR_BACKEND. */
enum dl_code dl_meet_blame(const struct dl_members *members, const char *what, struct dl_err *err);
/* Has another process ended? Asks the connections without waiting; DL_ERR_BACKEND names it. */
enum dl_code dl_meet_alive(struct dl_err *err);

extern struct dl_meeting dl_meeting; /* of this process */

#endif
