/* pool.c - two classes of workers, so that long requests never delay short ones; a queue for each.
 */
#include "serve/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLASSES = 2, MOST_QUEUED = 256, MOST_ENDS = 128, FORSAKEN_S = 1 };

/* The front end's end of a worker. */
struct dl_worker_end {
    struct dl_pool *pool;
    int fd; /* -1: to be replaced */
    pid_t pid;
    int class, generation;
    struct dl_job *job; /* NULL: idle, or forsaken */
    bool forsaken;      /* it computes what nobody waits for any more */
    double started_s;
    size_t sent;  /* bytes of the job's header and bytes */
    bool stalled; /* the socket was full: epoll tells when it is not */
    struct dl_frame in;
    size_t in_head; /* bytes of the answer's header that have come */
    char *in_bytes;
    size_t in_count;
};

struct dl_pool {
    const struct dl_service *service;
    struct dl_spawner spawner;
    int epoll, generation;
    struct dl_worker_end ends[MOST_ENDS];
    int end_count;
    struct {
        struct dl_job *first, *last;
        int count;
    } queues[CLASSES];
    struct dl_pool_counts counts;
};

static int class_of(const struct dl_job *job) { return job->route->kind == DL_ROUTE_HEAVY; }

static void forget_input(struct dl_worker_end *w) {
    free(w->in_bytes);
    w->in_bytes = NULL;
    w->in_head = w->in_count = 0;
}

static void drop(struct dl_worker_end *w) {
    if (w->fd >= 0) close(w->fd); /* leaves epoll; an idle worker ends by itself */
    w->fd = -1;
    w->forsaken = w->stalled = false;
    forget_input(w);
}

static bool revive(struct dl_worker_end *w) {
    w->fd = dl_spawner_worker(&w->pool->spawner, &w->pid);
    w->generation = w->pool->generation;
    if (w->fd < 0) return false;
    fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) | O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};
    return epoll_ctl(w->pool->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0;
}

static void watch(struct dl_worker_end *w, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = w};
    epoll_ctl(w->pool->epoll, EPOLL_CTL_MOD, w->fd, &event);
}

/* The answer that the service makes where no worker could. */
static void answer_for(struct dl_job *job, int status, const char *title, const char *detail) {
    char text[512];
    const int length = snprintf(text, sizeof text,
                                "{\n  \"type\": \"about:blank\",\n  \"title\": \"%s\",\n"
                                "  \"status\": %d,\n  \"detail\": \"%s\"\n}\n",
                                title, status, detail);
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
    job->told(job, NULL);
}

/* The worker died, or is made to, with its job undone. */
static void lose(struct dl_worker_end *w, int status, const char *title, const char *detail) {
    struct dl_job *job = w->job;
    w->job = NULL;
    dl_spawner_kill(&w->pool->spawner, w->pid);
    drop(w);
    w->pool->counts.restarted++;
    if (job == NULL) return;
    answer_for(job, status, title, detail);
    finish(job);
}

static void send_more(struct dl_worker_end *w) {
    const struct dl_job *job = w->job;
    while (w->sent < sizeof job->head + job->count) {
        const ssize_t done = dl_frame_send(w->fd, &job->head, job->bytes, w->sent);
        if (done < 0 && errno == EAGAIN) {
            watch(w, EPOLLIN | EPOLLOUT);
            w->stalled = true;
            return;
        }
        if (done <= 0) return; /* its end closes, which epoll tells */
        w->sent += (size_t)done;
    }
    if (w->stalled) watch(w, EPOLLIN);
    w->stalled = false;
}

static void start(struct dl_worker_end *w, struct dl_job *job, double now_s) {
    w->job = job;
    w->sent = 0;
    w->started_s = now_s;
    job->worker = w;
    job->state = DL_JOB_RUNNING;
    job->head.bytes = job->count;
    send_more(w);
}

static struct dl_worker_end *idle_of(struct dl_pool *pool, int class) {
    for (int i = 0; i < pool->end_count; i++) {
        struct dl_worker_end *w = &pool->ends[i];
        if (w->class == class && w->fd >= 0 && w->job == NULL && !w->forsaken) return w;
    }
    return NULL;
}

static void feed(struct dl_pool *pool, int class, double now_s) {
    while (pool->queues[class].first != NULL) {
        struct dl_worker_end *w = idle_of(pool, class);
        if (w == NULL) return;
        struct dl_job *job = pool->queues[class].first;
        pool->queues[class].first = job->next;
        if (job->next == NULL) pool->queues[class].last = NULL;
        pool->queues[class].count--;
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
    for (int class = 0; class < CLASSES && code == DL_OK; class ++) {
        for (int64_t i = 0; i < each[class] && pool->end_count < MOST_ENDS; i++) {
            struct dl_worker_end *w = &pool->ends[pool->end_count++];
            *w = (struct dl_worker_end){.pool = pool, .fd = -1, .class = class};
            revive(w);
        }
    }
    *out = pool;
    return code;
}

bool dl_pool_submit(struct dl_pool *pool, struct dl_job *job, double now_s) {
    const int class = class_of(job);
    job->since_s = now_s;
    job->next = NULL;
    struct dl_worker_end *w = pool->queues[class].first == NULL ? idle_of(pool, class) : NULL;
    if (w != NULL) {
        start(w, job, now_s);
        return true;
    }
    if (pool->queues[class].count == MOST_QUEUED) return false;
    job->state = DL_JOB_QUEUED;
    if (pool->queues[class].last != NULL)
        pool->queues[class].last->next = job;
    else
        pool->queues[class].first = job;
    pool->queues[class].last = job;
    pool->queues[class].count++;
    return true;
}

static void unqueue(struct dl_pool *pool, struct dl_job *job) {
    const int class = class_of(job);
    struct dl_job *before = NULL;
    for (struct dl_job *j = pool->queues[class].first; j != NULL; before = j, j = j->next) {
        if (j != job) continue;
        if (before == NULL)
            pool->queues[class].first = j->next;
        else
            before->next = j->next;
        if (pool->queues[class].last == j) pool->queues[class].last = before;
        pool->queues[class].count--;
        return;
    }
}

/* A short request is over sooner than a new worker has read its data: it may end by itself. */
static void forsake(struct dl_worker_end *w) {
    const struct dl_job *job = w->job;
    w->job = NULL;
    w->forsaken = w->class == 0 && w->sent == sizeof job->head + job->count;
    if (w->forsaken) return;
    dl_spawner_kill(&w->pool->spawner, w->pid);
    drop(w);
}

void dl_pool_cancel(struct dl_pool *pool, struct dl_job *job) {
    if (job->state == DL_JOB_QUEUED) unqueue(pool, job);
    if (job->state == DL_JOB_RUNNING) {
        forsake(job->worker);
        pool->counts.cancelled++;
    }
    job->state = DL_JOB_DONE;
}

static void take_frame(struct dl_worker_end *w, double now_s) {
    struct dl_job *job = w->job;
    struct dl_pool *pool = w->pool;
    if (job != NULL && w->in.kind == DL_FRAME_PROGRESS) {
        job->told(job, w->in_bytes);
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
    w->forsaken = false;
    if (w->generation != pool->generation) drop(w); /* replaced at the next tick */
    if (job != NULL) finish(job);
    feed(pool, w->class, now_s);
}

/* Reads what there is of one frame (epoll tells of more); false: the worker has gone. */
static bool receive(struct dl_worker_end *w, double now_s) {
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
            if (w->in.bytes > DL_FRAME_MOST_BYTES) return false;
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
    struct dl_worker_end *w = end;
    if (w->fd < 0) return; /* dropped by an event before this one */
    if ((events & EPOLLOUT) != 0 && w->job != NULL) send_more(w);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !receive(w, now_s)) {
        lose(w, 500, "Internal Server Error",
             "the worker that computed this ended: out of memory, or a fault of the program");
        if (!revive(w)) drop(w);
        feed(pool, w->class, now_s);
    }
}

void dl_pool_tick(struct dl_pool *pool, double now_s) {
    const struct dl_serve_config *c = pool->service->config;
    struct dl_err ignored = {0}; /* tried again at the next tick */
    dl_spawner_reap(&pool->spawner);
    if (pool->spawner.pid < 0) { /* it was killed, and its workers with it */
        dl_spawner_stop(&pool->spawner);
        dl_spawner_start(pool->service, &pool->spawner, &ignored);
    }
    for (int i = 0; i < pool->end_count; i++) {
        struct dl_worker_end *w = &pool->ends[i];
        const double most_s = w->class == 0 ? c->short_s : c->long_s, took_s = now_s - w->started_s;
        if (w->job != NULL && took_s > most_s) {
            pool->counts.timed_out++;
            lose(w, 504, "Gateway Timeout", "the request took longer than the service allows");
        } else if (w->forsaken && took_s > FORSAKEN_S) {
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
    for (int i = 0; i < pool->end_count; i++) {
        if (pool->ends[i].job == NULL) drop(&pool->ends[i]); /* one forsaken ends by itself */
    }
    return DL_OK;
}

struct dl_pool_counts dl_pool_counts(const struct dl_pool *pool) {
    struct dl_pool_counts counts = pool->counts;
    for (int i = 0; i < pool->end_count; i++) {
        if (pool->ends[i].job != NULL || pool->ends[i].forsaken)
            counts.busy++;
        else if (pool->ends[i].fd >= 0)
            counts.idle++;
    }
    for (int class = 0; class < CLASSES; class ++) counts.queued += pool->queues[class].count;
    return counts;
}

bool dl_pool_is_idle(const struct dl_pool *pool) {
    const struct dl_pool_counts counts = dl_pool_counts(pool);
    return counts.busy == 0 && counts.queued == 0;
}

void dl_pool_stop(struct dl_pool *pool) {
    if (pool == NULL) return;
    for (int i = 0; i < pool->end_count; i++) drop(&pool->ends[i]);
    dl_spawner_end(&pool->spawner);
    free(pool);
}
