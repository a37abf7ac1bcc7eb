/* probe_cpu_stream.c - probe "stream": aggregate memory bandwidth of all cores of the process, with
 * arrays far larger than the cache. Shape "bytes=" (of one array), pass "copy" (b = a; 2 arrays
 * move) or "triad" (a = b + s c; 3 arrays). As in STREAM (McCalpin 1995), bytes exclude the
 * write-allocate fetch before a store. Each call takes the next of several sets of arrays, so that
 * nothing stays in the cache. */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256, SETS = 2, ARRAYS = 3 };

struct stream;
struct worker {
    struct stream *stream;
    pthread_t thread;
    size_t begin, end;
};

struct stream {
    float *arrays[SETS][ARRAYS];
    size_t count;
    bool triad, stop;
    long calls;
    int threads, set;
    pthread_mutex_t starting; /* held until all threads have started, or one has not: stop */
    pthread_barrier_t start, done;
    struct worker workers[MAX_THREADS];
};

static const float SCALE = 0.4f;

static const char *unavailable(void) { return NULL; }

static void move(const struct stream *s, int set, size_t begin, size_t end) {
    float *restrict a = s->arrays[set][0];
    const float *restrict b = s->arrays[set][1];
    const float *restrict c = s->arrays[set][2];
    if (!s->triad) {
        memcpy(a + begin, b + begin, (end - begin) * sizeof *a);
        return;
    }
    for (size_t i = begin; i < end; i++) a[i] = b[i] + SCALE * c[i];
}

static void work(const struct worker *w) {
    for (long i = 0; i < w->stream->calls; i++)
        move(w->stream, (w->stream->set + (int)(i % SETS)) % SETS, w->begin, w->end);
}

/* First touch by the thread that uses the part, so that its pages are local. */
static void fill(const struct worker *w) {
    for (int set = 0; set < SETS; set++) {
        for (int j = 0; j < ARRAYS; j++) {
            dl_fill_random(w->stream->arrays[set][j] + w->begin, w->end - w->begin,
                           w->begin + (size_t)(set * ARRAYS + j));
        }
    }
}

static void *serve(void *argument) {
    const struct worker *w = argument;
    pthread_mutex_lock(&w->stream->starting);
    pthread_mutex_unlock(&w->stream->starting);
    if (w->stream->stop) return NULL;
    fill(w);
    pthread_barrier_wait(&w->stream->done);
    for (;;) {
        pthread_barrier_wait(&w->stream->start);
        if (w->stream->stop) return NULL;
        work(w);
        pthread_barrier_wait(&w->stream->done);
    }
}

static void stream_close(void *state) {
    struct stream *s = state;
    if (s->threads > 0) {
        s->stop = true;
        pthread_barrier_wait(&s->start);
        for (int i = 1; i < s->threads; i++) pthread_join(s->workers[i].thread, NULL);
        pthread_barrier_destroy(&s->start);
        pthread_barrier_destroy(&s->done);
    }
    for (int set = 0; set < SETS; set++) {
        for (int j = 0; j < ARRAYS; j++) free(s->arrays[set][j]);
    }
}

static enum dl_code stream_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct stream *s = state;
    s->count = (size_t)dl_point_number(point, "bytes", 0) / sizeof(float);
    s->triad = strcmp(point->pass, "triad") == 0;
    for (int set = 0; set < SETS; set++) {
        for (int j = 0; j < ARRAYS; j++) {
            s->arrays[set][j] = malloc(s->count * sizeof(float));
            if (s->arrays[set][j] == NULL)
                return dl_fail(err, DL_ERR_SYSTEM, "out of memory for arrays %s", point->shape);
        }
    }
    cpu_set_t allowed;
    const long cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                           ? CPU_COUNT(&allowed)
                           : sysconf(_SC_NPROCESSORS_ONLN);
    const int wanted = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int)cores;
    int started = 1;
    pthread_mutex_init(&s->starting, NULL);
    pthread_mutex_lock(&s->starting);
    pthread_barrier_init(&s->start, NULL, (unsigned)wanted);
    pthread_barrier_init(&s->done, NULL, (unsigned)wanted);
    for (int i = 0; i < wanted && !s->stop; i++) {
        struct worker *w = &s->workers[i];
        *w = (struct worker){.stream = s,
                             .begin = s->count * (size_t)i / (size_t)wanted,
                             .end = s->count * (size_t)(i + 1) / (size_t)wanted};
        if (i == 0) continue;
        s->stop = pthread_create(&w->thread, NULL, serve, w) != 0;
        if (!s->stop) started++;
    }
    pthread_mutex_unlock(&s->starting);
    if (s->stop) {
        for (int i = 1; i < started; i++) pthread_join(s->workers[i].thread, NULL);
        return dl_fail(err, DL_ERR_BACKEND, "cannot start thread %d of %d", started + 1, wanted);
    }
    s->threads = wanted;
    dl_spread_threads();
    fill(&s->workers[0]);
    pthread_barrier_wait(&s->done);
    return DL_OK;
}

static double stream_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    struct stream *s = state;
    s->calls = calls;
    pthread_barrier_wait(&s->start);
    const double start = dl_now_s();
    work(&s->workers[0]);
    pthread_barrier_wait(&s->done);
    const double elapsed = dl_now_s() - start;
    s->set = (s->set + (int)(calls % SETS)) % SETS;
    return elapsed;
}

static enum dl_code stream_verify(void *state, struct dl_err *err) {
    const struct stream *s = state;
    const int last = (s->set + SETS - 1) % SETS;
    uint64_t random = 99;
    for (int t = 0; t < 64; t++) {
        const size_t i = dl_random_next(&random) % s->count;
        const float got = s->arrays[last][0][i];
        const float expected =
            s->arrays[last][1][i] + (s->triad ? SCALE * s->arrays[last][2][i] : 0.0f);
        const float error = got > expected ? got - expected : expected - got;
        if (!(error <= 1e-6f))
            return dl_fail(err, DL_ERR_BACKEND, "wrong element %zu: %g, expected %g", i,
                           (double)got, (double)expected);
    }
    return DL_OK;
}

const struct dl_probe dl_probe_stream =
    DL_PROBE("stream", "memory bandwidth", 1e-3, unavailable, struct stream, stream_open,
             stream_run, .verify = stream_verify, .close = stream_close);
