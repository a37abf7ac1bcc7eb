/* search_threads.c - each thread keeps its results, which are merged at the end. The outcome does
 * not depend on the distribution of work: between equal plans, the place in the enumeration
 * decides. */
#include "predict/output/search_threads.h"

#include <string.h>
#include <time.h>

#include "process/task_threads.h"

struct shared {
    const struct dl_search_run *run;
    struct dl_search_worker *workers;
    bool costs; /* else tasks */
    int64_t end;
    double start_s, said_s; /* said: by the first thread */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum dl_code run_task(void *context, int thread, int64_t i, struct dl_err *err) {
    struct shared *shared = context;
    const struct dl_search_run *run = shared->run;
    DL_TRY(shared->costs ? dl_search_make_cost(run->search, i, err)
                         : dl_search_run_task(run->search, i, &shared->workers[thread], err));
    if (thread != 0 || run->progress == NULL) return DL_OK;
    const double time_s = now_s();
    if (time_s - shared->said_s < 0.5) return DL_OK;
    shared->said_s = time_s;
    if (run->progress(run->context, (double)i / (double)shared->end, time_s - shared->start_s) == 0)
        return DL_OK;
    return dl_fail(err, DL_ERR_CANCELLED, "stopped by the caller");
}

enum dl_code dl_search_run(const struct dl_search_run *run, struct dl_search_worker *out,
                           double *elapsed_s_out, struct dl_err *err) {
    const int count = run->threads < 1                ? 1
                      : run->threads > DL_MAX_THREADS ? DL_MAX_THREADS
                                                      : run->threads;
    struct dl_arena scratch = {0};
    struct shared shared = {.run = run,
                            .workers =
                                dl_arena_alloc(&scratch, (size_t)count, sizeof *shared.workers),
                            .start_s = now_s()};
    enum dl_code code = DL_OK;
    for (int phase = 0; phase < 2 && code == DL_OK; phase++) {
        shared.costs = phase == 0;
        shared.end =
            shared.costs ? dl_search_cost_count(run->search) : dl_search_tasks(run->search);
        shared.said_s = shared.start_s;
        code = dl_threads_run(count, shared.end, run_task, &shared, err);
    }
    if (code == DL_OK) {
        memset(out, 0, sizeof *out);
        for (int i = 0; i < count; i++) dl_search_merge(run->search, out, &shared.workers[i]);
        dl_search_rejected(run->search, out);
        *elapsed_s_out = now_s() - shared.start_s;
    }
    dl_arena_free(&scratch);
    return code;
}
