/* worker.h - the processes that compute. The front end speaks HTTP and parses nothing else; a
 * worker parses and computes, in a sandbox, and is replaced when it dies or takes too long. */
#ifndef DL_SERVE_WORKER_H
#define DL_SERVE_WORKER_H

#include <sys/types.h>

#include "serve/routes.h"

/* A process that holds the loaded data and makes workers as copies of itself: a worker starts in a
 * millisecond and shares that memory. */
struct dl_spawner {
    pid_t pid;
    int fd; /* -1: none */
};

/* DL_ERR_SYSTEM: no process. To be called while this process has one thread. */
enum dl_code dl_spawner_start(const struct dl_service *service, struct dl_spawner *out,
                              struct dl_err *err);
/* A new worker's socket, -1: none could be made. */
int dl_spawner_worker(const struct dl_spawner *spawner, pid_t *pid);
/* Ends a worker at once, whatever it does. */
void dl_spawner_kill(const struct dl_spawner *spawner, pid_t pid);
/* Takes leave of spawners that have ended; the pid of this one is -1 when it is among them. */
void dl_spawner_reap(struct dl_spawner *spawner);
/* The spawner ends; its workers end when their sockets close. */
void dl_spawner_stop(struct dl_spawner *spawner);
/* The same, and waits for it, at most a second. */
void dl_spawner_end(struct dl_spawner *spawner);

/* Answers requests from the socket until it closes; never returns. */
_Noreturn void dl_worker_run(const struct dl_service *service, int fd);

#endif
