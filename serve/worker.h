/* worker.h - worker processes. The front end handles HTTP only; a worker parses and computes in a
 * sandbox, and is replaced when it dies or exceeds its time limit. */
#ifndef DL_SERVE_WORKER_H
#define DL_SERVE_WORKER_H

#include <sys/types.h>

#include "serve/routes.h"

/* A process that forks workers: a worker starts in a millisecond. */
struct dl_spawner {
    pid_t pid;
    int fd; /* -1: none */
};

/* DL_ERR_SYSTEM: no process. Call it while this process has one thread. */
enum dl_code dl_spawner_start(const struct dl_service *service, struct dl_spawner *out,
                              struct dl_err *err);
/* Socket of a new worker; -1: failure. */
int dl_spawner_worker(const struct dl_spawner *spawner, pid_t *pid);
/* Kills a worker. */
void dl_spawner_kill(const struct dl_spawner *spawner, pid_t pid);
/* Reaps exited spawners; sets spawner->pid to -1 if this one is among them. */
void dl_spawner_reap(struct dl_spawner *spawner);
/* Makes the spawner exit; its workers exit when their sockets close. */
void dl_spawner_stop(struct dl_spawner *spawner);
/* The same, and waits for at most a second. */
void dl_spawner_end(struct dl_spawner *spawner);

/* Answers requests from the socket until it closes. */
_Noreturn void dl_worker_run(const struct dl_service *service, int fd);

#endif
