/* pool.h - dispatches requests to worker processes and collects their answers without blocking: the
 * front end's loop calls it for events of worker sockets and timer ticks. */
#ifndef DL_SERVE_POOL_H
#define DL_SERVE_POOL_H

#include <stdint.h>
#include <sys/queue.h>

#include "serve/serve.h"
#include "serve/worker.h"

enum dl_job_state { DL_JOB_NEW, DL_JOB_QUEUED, DL_JOB_RUNNING, DL_JOB_DONE };

/* One request from dispatch to answer. Its connection owns it. */
struct dl_job {
    const struct dl_route *route;
    struct dl_frame head;
    char *bytes; /* rest of the path, query, body; grows as the body arrives */
    size_t count, capacity;
    bool streamed;
    enum dl_job_state state;
    double since_s; /* when it was submitted */
    /* the answer */
    int status;
    enum dl_media media;
    int exit;
    char *answer;
    size_t answer_bytes;
    /* called with each progress message of a streamed job, and with NULL at the end */
    void (*notify)(struct dl_job *job, const char *progress);
    void *owner;
    TAILQ_ENTRY(dl_job) queue;
    struct dl_worker_slot *worker;
};

struct dl_pool_counts {
    int idle, busy, queued, restarted, timed_out, cancelled;
};

struct dl_pool;

/* epoll: instance that watches the workers' sockets; data.ptr of their events is for
 * dl_pool_event. */
enum dl_code dl_pool_start(const struct dl_service *service, int epoll, struct dl_pool **out,
                           struct dl_err *err);
/* false: the queue is full. */
bool dl_pool_submit(struct dl_pool *pool, struct dl_job *job, double now_s);
/* Cancels a job; notify() is not called. The worker of a short job finishes it, that of a long one
 * is killed. */
void dl_pool_cancel(struct dl_pool *pool, struct dl_job *job);
/* Handles an epoll event whose data.ptr is `end`. */
void dl_pool_event(struct dl_pool *pool, void *end, uint32_t events, double now_s);
/* Ends jobs beyond their time limit and replaces dead workers. */
void dl_pool_tick(struct dl_pool *pool, double now_s);
/* Starts workers that read the data again; the old ones finish their jobs. */
enum dl_code dl_pool_reload(struct dl_pool *pool, struct dl_err *err);
struct dl_pool_counts dl_pool_counts(const struct dl_pool *pool);
bool dl_pool_is_idle(const struct dl_pool *pool);
void dl_pool_stop(struct dl_pool *pool);

#endif
