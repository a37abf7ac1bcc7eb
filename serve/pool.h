/* pool.h - hands requests to worker processes and brings the answers back, without ever waiting:
 * the front end's loop calls it when a worker's socket or the clock has something to say. */
#ifndef DL_SERVE_POOL_H
#define DL_SERVE_POOL_H

#include <stdint.h>

#include "serve/serve.h"
#include "serve/worker.h"

enum dl_job_state { DL_JOB_NEW, DL_JOB_QUEUED, DL_JOB_RUNNING, DL_JOB_DONE };

/* One request on its way to a worker and back. Owned by the connection that it came from. */
struct dl_job {
    const struct dl_route *route;
    struct dl_frame head;
    char *bytes; /* rest of the path, query, body; grows as the body arrives */
    size_t count, capacity;
    bool streamed;
    enum dl_job_state state;
    double since_s; /* when it was queued */
    /* the answer */
    int status;
    enum dl_media media;
    int exit;
    char *answer;
    size_t answer_bytes;
    /* called with each progress message of a streamed job, and once at the end */
    void (*told)(struct dl_job *job, const char *progress);
    void *owner;
    struct dl_job *next;
    struct dl_worker_end *worker;
};

struct dl_pool_counts {
    int idle, busy, queued, restarted, timed_out, cancelled;
};

struct dl_pool;

/* epoll: where the workers' sockets are watched, with the pool's events told by their pointer. */
enum dl_code dl_pool_start(const struct dl_service *service, int epoll, struct dl_pool **out,
                           struct dl_err *err);
/* false: too many wait. */
bool dl_pool_submit(struct dl_pool *pool, struct dl_job *job, double now_s);
/* Forgets a job; told() is not called. Its worker ends a short one by itself, and is ended with a
 * long one. */
void dl_pool_cancel(struct dl_pool *pool, struct dl_job *job);
/* An event of epoll whose pointer is `end`. */
void dl_pool_event(struct dl_pool *pool, void *end, uint32_t events, double now_s);
/* Ends jobs that took too long, replaces workers that died. */
void dl_pool_tick(struct dl_pool *pool, double now_s);
/* New workers with data read again; the old ones end after what they do. */
enum dl_code dl_pool_reload(struct dl_pool *pool, struct dl_err *err);
struct dl_pool_counts dl_pool_counts(const struct dl_pool *pool);
bool dl_pool_is_idle(const struct dl_pool *pool);
void dl_pool_stop(struct dl_pool *pool);

#endif
