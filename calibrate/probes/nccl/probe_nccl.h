/* probe_nccl.h - dlmodel-probe-nccl: one process per GPU, on one node or several.
 *
 * `--spawn N` starts N processes on this node, one per GPU. mpirun or srun starts either one
 * process per node with --spawn, or one per GPU without it. Rendezvous: rank 0 listens on a TCP
 * port, and the others connect. They learn its address from the process that spawned them, through
 * MPI, or from the Slurm environment. */
#ifndef DL_CALIBRATE_PROBES_NCCL_PROBE_NCCL_H
#define DL_CALIBRATE_PROBES_NCCL_PROBE_NCCL_H

#include "calibrate/probes/gpu/probe_gpu.h"

enum { DL_HOST_BYTES = 1025 }; /* longest host name of getaddrinfo, with NUL */

struct dl_meeting {
    int rank, ranks;
    int local, per_node; /* rank inside the node; ranks of each node */
    int listener;        /* rank 0: its listening socket; -1: none */
    char host[DL_HOST_BYTES];
    int port;
};

/* Rank and address, from the environment or MPI. spawn > 0: this process stands for a node, counts
 * as one rank, and calls dl_meeting_spawn next. DL_ERR_BACKEND: neither a launcher nor --spawn. */
enum dl_code dl_meeting_find(int spawn, struct dl_meeting *out, struct dl_err *err);
/* Runs this program once for each rank of the node with these arguments; returns their exit status
 * and reports which rank failed. */
int dl_meeting_spawn(const struct dl_meeting *node, int spawn, char **argv);
void dl_meeting_end(void); /* finalizes MPI, if it was used */

/* Connects rank 0 with every other rank. */
enum dl_code dl_meet(const struct dl_meeting *meeting, struct dl_err *err);
/* The ranks that take part in a point: the first `per_node` of each of the first `nodes` nodes. */
struct dl_members {
    int nodes, per_node;
};
bool dl_is_member(const struct dl_meeting *meeting, const struct dl_members *members, int rank);
/* Maximum (or sum) of the values of all members, returned to all. DL_ERR_BACKEND names a rank that
 * exited. */
enum dl_code dl_meet_max(const struct dl_members *members, double *value, struct dl_err *err);
enum dl_code dl_meet_sum(const struct dl_members *members, double *value, struct dl_err *err);
/* From rank 0 to all members. */
enum dl_code dl_meet_tell(const struct dl_members *members, void *bytes, size_t size,
                          struct dl_err *err);
/* Time-out of a silent rank or a collective: 40 s, or DLMODEL_PATIENCE_S. */
double dl_meet_patience_s(void);
/* Called by every rank that waits for `what` beyond the time-out; rank 0 names the rank that does
 * not wait. Always DL_ERR_BACKEND. */
enum dl_code dl_meet_blame(const struct dl_members *members, const char *what, struct dl_err *err);
/* Polls the connections: DL_ERR_BACKEND names a rank that exited. */
enum dl_code dl_meet_alive(struct dl_err *err);

extern struct dl_meeting dl_meeting; /* of this process */

#endif
