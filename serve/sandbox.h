/* sandbox.h - what a worker process gives up before it reads the first request: it can compute,
 * read files of the data folders and answer on its socket, and nothing else. */
#ifndef DL_SERVE_SANDBOX_H
#define DL_SERVE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct dl_sandbox {
    const char *const *folders; /* may be read, with all below them */
    int folder_count;
    size_t memory_bytes; /* address space; 0: no limit (sanitizers need terabytes) */
};

/* What the kernel granted. A kernel without Landlock or seccomp leaves out that part. */
struct dl_sandbox_state {
    bool limits, landlock, seccomp;
};

/* Limits on memory, files and processes; Landlock: only the folders, only for reading; seccomp: the
 * system calls of a computation, where a call that is not in the list fails with EPERM, and opening
 * for writing too. */
struct dl_sandbox_state dl_sandbox_enter(const struct dl_sandbox *sandbox);

#endif
