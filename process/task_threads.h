/* task_threads.h - tasks on several threads: each thread takes the next task from a counter. */
#ifndef DL_PROCESS_TASK_THREADS_H
#define DL_PROCESS_TASK_THREADS_H

#include <stdint.h>

#include "model/core/status.h"

enum { DL_MAX_THREADS = 256 };

/* One task, on a thread with a number from 0: the caller's own. */
typedef enum dl_code dl_thread_task(void *context, int thread, int64_t task, struct dl_err *err);

/* Runs the tasks from 0 to count - 1 on at most `threads` threads (1 to DL_MAX_THREADS); fewer work
 * too. A task that fails keeps the others from starting. Returns the code of the first thread, by
 * number, whose task failed. */
enum dl_code dl_threads_run(int threads, int64_t count, dl_thread_task *task, void *context,
                            struct dl_err *err);

#endif
