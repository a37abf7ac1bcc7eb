/* task_threads.c - see task_threads.h. */
#include "process/task_threads.h"

#include <pthread.h>
#include <stdatomic.h>

#include "model/core/arena.h"

struct shared {
    dl_thread_task *task;
    void *context;
    int64_t count;
    atomic_llong next;
};

struct thread {
    struct shared *shared;
    pthread_t id;
    int number;
    enum dl_code code;
    struct dl_err err;
};

static enum dl_code run_tasks(void *argument, struct dl_err *err) {
    const struct thread *thread = argument;
    struct shared *shared = thread->shared;
    for (;;) {
        const int64_t task = atomic_fetch_add(&shared->next, 1);
        if (task >= shared->count) return DL_OK;
        DL_TRY(shared->task(shared->context, thread->number, task, err));
    }
}

static void *work(void *argument) {
    struct thread *thread = argument;
    thread->code = dl_guarded(run_tasks, thread, &thread->err);
    if (thread->code != DL_OK) atomic_store(&thread->shared->next, thread->shared->count);
    return NULL;
}

enum dl_code dl_threads_run(int threads, int64_t count, dl_thread_task *task, void *context,
                            struct dl_err *err) {
    struct shared shared = {.task = task, .context = context, .count = count};
    const int wanted = threads < DL_MAX_THREADS ? threads : DL_MAX_THREADS;
    struct dl_arena scratch = {0};
    struct thread *all = dl_arena_alloc(&scratch, (size_t)wanted, sizeof *all);
    int started = 1;
    enum dl_code code = DL_OK;
    for (int i = 0; i < wanted; i++) all[i] = (struct thread){.shared = &shared, .number = i};
    for (; started < wanted; started++) {
        if (pthread_create(&all[started].id, NULL, work, &all[started]) != 0) break;
    }
    work(&all[0]);
    for (int i = 1; i < started; i++) pthread_join(all[i].id, NULL);
    for (int i = 0; i < started && code == DL_OK; i++) {
        code = all[i].code;
        if (code != DL_OK) *err = all[i].err;
    }
    dl_arena_free(&scratch);
    return code;
}
