/* search_threads.c - threads take costs and then tasks from a counter; each keeps its results,
 * which are merged at the end. The outcome does not depend on the distribution of work: between
 * equal plans, the place in the enumeration decides. */
#include "predict/output/search_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 256 };

struct shared {
    const struct dl_search_run *run;
    atomic_llong next;
    atomic_bool stop; /* cancelled */
    int64_t end;
    bool costs; /* else tasks */
    double start_s;
};

struct thread {
    struct shared *shared;
    struct dl_search_worker *worker;
    pthread_t id;
    int number;
    enum dl_code code;
    struct dl_err err;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum dl_code run_tasks(void *argument, struct dl_err *err) {
    const struct thread *thread = argument;
    struct shared *shared = thread->shared;
    const struct dl_search_run *run = shared->run;
    double said_s = shared->start_s;
    for (;;) {
        const int64_t i = atomic_fetch_add(&shared->next, 1);
        if (i >= shared->end || atomic_load(&shared->stop)) return DL_OK;
        DL_TRY(shared->costs ? dl_search_make_cost(run->search, i, err)
                             : dl_search_run_task(run->search, i, thread->worker, err));
        if (thread->number != 0 || run->progress == NULL) continue;
        const double time_s = now_s();
        if (time_s - said_s < 0.5) continue;
        said_s = time_s;
        if (run->progress(run->context, (double)i / (double)shared->end,
                          time_s - shared->start_s) == 0)
            continue;
        return dl_fail(err, DL_ERR_CANCELLED, "stopped by the caller");
    }
}

static void *work(void *argument) {
    struct thread *thread = argument;
    thread->code = dl_guarded(run_tasks, thread, &thread->err);
    if (thread->code != DL_OK) atomic_store(&thread->shared->stop, true);
    return NULL;
}

static enum dl_code run_all(struct thread *threads, int count, struct dl_err *err) {
    int started = 1;
    for (; started < count; started++) {
        /* fewer threads work too */
        if (pthread_create(&threads[started].id, NULL, work, &threads[started]) != 0) break;
    }
    work(&threads[0]);
    for (int i = 1; i < started; i++) pthread_join(threads[i].id, NULL);
    for (int i = 0; i < count; i++) {
        if (threads[i].code == DL_OK) continue;
        *err = threads[i].err;
        return threads[i].code;
    }
    return DL_OK;
}

enum dl_code dl_search_run(const struct dl_search_run *run, struct dl_search_worker *out,
                           double *elapsed_s_out, struct dl_err *err) {
    const int count = run->threads < 1             ? 1
                      : run->threads > MAX_THREADS ? MAX_THREADS
                                                   : run->threads;
    struct thread *threads = calloc((size_t)count, sizeof *threads);
    struct dl_search_worker *workers = calloc((size_t)count, sizeof *workers);
    struct shared shared = {.run = run, .start_s = now_s()};
    enum dl_code code = DL_OK;
    if (threads == NULL || workers == NULL) code = dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int phase = 0; phase < 2 && code == DL_OK; phase++) {
        shared.costs = phase == 0;
        shared.end =
            shared.costs ? dl_search_cost_count(run->search) : dl_search_tasks(run->search);
        atomic_store(&shared.next, 0);
        for (int i = 0; i < count; i++)
            threads[i] = (struct thread){.shared = &shared, .worker = &workers[i], .number = i};
        code = run_all(threads, count, err);
    }
    if (code == DL_OK) {
        memset(out, 0, sizeof *out);
        for (int i = 0; i < count; i++) dl_search_merge(run->search, out, &workers[i]);
        dl_search_rejected(run->search, out);
        *elapsed_s_out = now_s() - shared.start_s;
    }
    free(threads);
    free(workers);
    return code;
}
