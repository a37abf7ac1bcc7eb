/* pool.c - two classes of workers with a queue each, so that long requests never delay short ones.
 */
#include "serve/pool.h"
#include "serve/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLASSES = 2, MAX_QUEUED = 256, MAX_WORKERS = 128, ABANDONED_S = 1 };

/* A worker process as the front end sees it. */
struct dl_worker_slot {
    struct dl_pool *pool;
    int fd; /* -1: to be restarted */
    pid_t pid;
    int class, generation;
    struct dl_job *job; /* NULL: idle or abandoned */
    bool abandoned;     /* it computes a cancelled job */
    double started_s;
    size_t sent;  /* bytes sent of header and payload */
    bool stalled; /* the socket buffer was full: waiting for EPOLLOUT */
    struct dl_frame in;
    size_t in_head; /* bytes received of the answer's header */
    char *in_bytes;
    size_t in_count;
};

struct dl_pool {
    const struct dl_service *service;
    struct dl_spawner spawner;
    int epoll, generation;
    struct dl_worker_slot workers[MAX_WORKERS];
    int worker_count;
    TAILQ_HEAD(, dl_job) queues[CLASSES];
    int queued[CLASSES];
    struct dl_pool_counts counts;
};

static int class_of(const struct dl_job *job) { return job->route->kind == DL_ROUTE_HEAVY; }

static void forget_input(struct dl_worker_slot *w) {
    free(w->in_bytes);
    w->in_bytes = NULL;
    w->in_head = w->in_count = 0;
}

static void drop(struct dl_worker_slot *w) {
    if (w->fd >= 0) close(w->fd); /* removes it from epoll; an idle worker then exits */
    w->fd = -1;
    w->abandoned = w->stalled = false;
    forget_input(w);
}

static bool revive(struct dl_worker_slot *w) {
    w->fd = dl_spawner_worker(&w->pool->spawner, &w->pid);
    w->generation = w->pool->generation;
    if (w->fd < 0) return false;
    fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) | O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};
    return epoll_ctl(w->pool->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0;
}

static void watch(struct dl_worker_slot *w, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = w};
    epoll_ctl(w->pool->epoll, EPOLL_CTL_MOD, w->fd, &event);
}

/* The answer to a job that no worker answered. */
static void answer_for(struct dl_job *job, int status, const char *detail) {
    char text[512];
    const int length = snprintf(text, sizeof text,
                                "{\n  \"type\": \"about:blank\",\n  \"title\": \"%s\",\n"
                                "  \"status\": %d,\n  \"detail\": \"%s\"\n}\n",
                                dl_status_title(status), status, detail);
    free(job->answer);
    job->answer = malloc((size_t)length + 1);
    if (job->answer != NULL) memcpy(job->answer, text, (size_t)length + 1);
    job->answer_bytes = job->answer == NULL ? 0 : (size_t)length;
    job->status = status;
    job->media = DL_MEDIA_PROBLEM;
    job->exit = DL_ERR_SYSTEM;
}

static void finish(struct dl_job *job) {
    job->state = DL_JOB_DONE;
    job->worker = NULL;
    job->notify(job, NULL);
}

/* Kills the worker, unless it is dead, and answers its unfinished job. */
static void lose(struct dl_worker_slot *w, int status, const char *detail) {
    struct dl_job *job = w->job;
    w->job = NULL;
    dl_spawner_kill(&w->pool->spawner, w->pid);
    drop(w);
    w->pool->counts.restarted++;
    if (job == NULL) return;
    answer_for(job, status, detail);
    finish(job);
}

static void send_more(struct dl_worker_slot *w) {
    const struct dl_job *job = w->job;
    while (w->sent < sizeof job->head + job->count) {
        const ssize_t done = dl_frame_send(w->fd, &job->head, job->bytes, w->sent);
        if (done < 0 && errno == EAGAIN) {
            watch(w, EPOLLIN | EPOLLOUT);
            w->stalled = true;
            return;
        }
        if (done <= 0) return; /* the worker closed its socket: epoll reports it */
        w->sent += (size_t)done;
    }
    if (w->stalled) watch(w, EPOLLIN);
    w->stalled = false;
}

static void start(struct dl_worker_slot *w, struct dl_job *job, double now_s) {
    w->job = job;
    w->sent = 0;
    w->started_s = now_s;
    job->worker = w;
    job->state = DL_JOB_RUNNING;
    job->head.bytes = job->count;
    send_more(w);
}

static struct dl_worker_slot *idle_of(struct dl_pool *pool, int class) {
    for (int i = 0; i < pool->worker_count; i++) {
        struct dl_worker_slot *w = &pool->workers[i];
        if (w->class == class && w->fd >= 0 && w->job == NULL && !w->abandoned) return w;
    }
    return NULL;
}

static void unqueue(struct dl_pool *pool, struct dl_job *job) {
    TAILQ_REMOVE(&pool->queues[class_of(job)], job, queue);
    pool->queued[class_of(job)]--;
}

static void feed(struct dl_pool *pool, int class, double now_s) {
    struct dl_worker_slot *w;
    while (pool->queued[class] > 0 && (w = idle_of(pool, class)) != NULL) {
        struct dl_job *job = TAILQ_FIRST(&pool->queues[class]);
        unqueue(pool, job);
        start(w, job, now_s);
    }
}

enum dl_code dl_pool_start(const struct dl_service *service, int epoll, struct dl_pool **out,
                           struct dl_err *err) {
    struct dl_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    pool->service = service;
    pool->epoll = epoll;
    const int64_t each[CLASSES] = {service->config->workers, service->config->searches};
    const enum dl_code code = dl_spawner_start(service, &pool->spawner, err);
    for (int class = 0; class < CLASSES; class ++) TAILQ_INIT(&pool->queues[class]);
    for (int class = 0; class < CLASSES && code == DL_OK; class ++) {
        for (int64_t i = 0; i < each[class] && pool->worker_count < MAX_WORKERS; i++) {
            struct dl_worker_slot *w = &pool->workers[pool->worker_count++];
            *w = (struct dl_worker_slot){.pool = pool, .fd = -1, .class = class};
            revive(w);
        }
    }
    *out = pool;
    return code;
}

bool dl_pool_submit(struct dl_pool *pool, struct dl_job *job, double now_s) {
    const int class = class_of(job);
    job->since_s = now_s;
    struct dl_worker_slot *w = pool->queued[class] == 0 ? idle_of(pool, class) : NULL;
    if (w != NULL) {
        start(w, job, now_s);
        return true;
    }
    if (pool->queued[class] == MAX_QUEUED) return false;
    job->state = DL_JOB_QUEUED;
    TAILQ_INSERT_TAIL(&pool->queues[class], job, queue);
    pool->queued[class]++;
    return true;
}

/* A short request ends sooner than a new worker reads its data: let it finish. */
static void abandon(struct dl_worker_slot *w) {
    const struct dl_job *job = w->job;
    w->job = NULL;
    w->abandoned = w->class == 0 && w->sent == sizeof job->head + job->count;
    if (w->abandoned) return;
    dl_spawner_kill(&w->pool->spawner, w->pid);
    drop(w);
}

void dl_pool_cancel(struct dl_pool *pool, struct dl_job *job) {
    if (job->state == DL_JOB_QUEUED) unqueue(pool, job);
    if (job->state == DL_JOB_RUNNING) {
        abandon(job->worker);
        pool->counts.cancelled++;
    }
    job->state = DL_JOB_DONE;
}

static void take_frame(struct dl_worker_slot *w, double now_s) {
    struct dl_job *job = w->job;
    struct dl_pool *pool = w->pool;
    if (job != NULL && w->in.kind == DL_FRAME_PROGRESS) {
        job->notify(job, w->in_bytes);
        forget_input(w);
        return;
    }
    if (job != NULL) {
        job->status = (int)w->in.status;
        job->media = (enum dl_media)w->in.media;
        job->exit = (int)w->in.exit;
        job->answer = w->in_bytes;
        job->answer_bytes = w->in_count;
        w->in_bytes = NULL;
    }
    forget_input(w);
    w->job = NULL;
    w->abandoned = false;
    if (w->generation != pool->generation) drop(w); /* restarted at the next tick */
    if (job != NULL) finish(job);
    feed(pool, w->class, now_s);
}

/* Reads the available bytes of one frame; false: the worker has exited. */
static bool receive(struct dl_worker_slot *w, double now_s) {
    for (;;) {
        const bool head = w->in_head < sizeof w->in;
        char *to = head ? (char *)&w->in + w->in_head : w->in_bytes + w->in_count;
        const size_t want = head ? sizeof w->in - w->in_head : (size_t)w->in.bytes - w->in_count;
        const ssize_t got = want == 0 ? 0 : recv(w->fd, to, want, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN;
        if (got == 0 && want > 0) return false;
        if (head)
            w->in_head += (size_t)got;
        else
            w->in_count += (size_t)got;
        if (w->in_head < sizeof w->in) continue;
        if (w->in_bytes == NULL) {
            if (w->in.bytes > DL_FRAME_MAX_BYTES) return false;
            w->in_bytes = malloc((size_t)w->in.bytes + 1);
            if (w->in_bytes == NULL) return false;
            w->in_bytes[w->in.bytes] = '\0';
        }
        if (w->in_count < w->in.bytes) continue;
        take_frame(w, now_s);
        return true;
    }
}

void dl_pool_event(struct dl_pool *pool, void *end, uint32_t events, double now_s) {
    struct dl_worker_slot *w = end;
    if (w->fd < 0) return; /* dropped by an earlier event */
    if ((events & EPOLLOUT) != 0 && w->job != NULL) send_more(w);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !receive(w, now_s)) {
        lose(w, 500,
             "the worker that computed this ended: out of memory, or a fault of the program");
        if (!revive(w)) drop(w);
        feed(pool, w->class, now_s);
    }
}

void dl_pool_tick(struct dl_pool *pool, double now_s) {
    const struct dl_serve_config *c = pool->service->config;
    struct dl_err ignored = {0}; /* retried at the next tick */
    dl_spawner_reap(&pool->spawner);
    if (pool->spawner.pid < 0) { /* killed together with its workers */
        dl_spawner_stop(&pool->spawner);
        dl_spawner_start(pool->service, &pool->spawner, &ignored);
    }
    for (int i = 0; i < pool->worker_count; i++) {
        struct dl_worker_slot *w = &pool->workers[i];
        const double limit_s = w->class == 0 ? c->short_s : c->long_s,
                     took_s = now_s - w->started_s;
        if (w->job != NULL && took_s > limit_s) {
            pool->counts.timed_out++;
            lose(w, 504, "the request took longer than the service allows");
        } else if (w->abandoned && took_s > ABANDONED_S) {
            dl_spawner_kill(&pool->spawner, w->pid);
            drop(w);
        }
        if (w->fd < 0 && !revive(w)) drop(w);
    }
    for (int class = 0; class < CLASSES; class ++) feed(pool, class, now_s);
}

enum dl_code dl_pool_reload(struct dl_pool *pool, struct dl_err *err) {
    struct dl_spawner next;
    DL_TRY(dl_spawner_start(pool->service, &next, err));
    dl_spawner_stop(&pool->spawner); /* reaped by a tick, once its workers have answered */
    pool->spawner = next;
    pool->generation++;
    for (int i = 0; i < pool->worker_count; i++) {
        if (pool->workers[i].job == NULL)
            drop(&pool->workers[i]); /* an abandoned one exits on its own */
    }
    return DL_OK;
}

struct dl_pool_counts dl_pool_counts(const struct dl_pool *pool) {
    struct dl_pool_counts counts = pool->counts;
    for (int i = 0; i < pool->worker_count; i++) {
        if (pool->workers[i].job != NULL || pool->workers[i].abandoned)
            counts.busy++;
        else if (pool->workers[i].fd >= 0)
            counts.idle++;
    }
    for (int class = 0; class < CLASSES; class ++) counts.queued += pool->queued[class];
    return counts;
}

bool dl_pool_is_idle(const struct dl_pool *pool) {
    const struct dl_pool_counts counts = dl_pool_counts(pool);
    return counts.busy == 0 && counts.queued == 0;
}

void dl_pool_stop(struct dl_pool *pool) {
    if (pool == NULL) return;
    for (int i = 0; i < pool->worker_count; i++) drop(&pool->workers[i]);
    dl_spawner_end(&pool->spawner);
    free(pool);
}
