/* sandbox.h - restricts a worker process before its first request: it can compute, read files of
 * the data folders and use its socket. */
#ifndef DL_SERVE_SANDBOX_H
#define DL_SERVE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct dl_sandbox {
    const char *const *folders; /* readable, with everything below */
    int folder_count;
    size_t memory_bytes; /* address space; 0: no limit (sanitizers need terabytes) */
};

/* Restrictions in force; Landlock and seccomp depend on the kernel. */
struct dl_sandbox_state {
    bool limits, landlock, seccomp;
};

/* Limits on memory, files and processes; Landlock: only the folders, only for reading; seccomp: a
 * list of system calls; any other call, and opening for writing, fails with EPERM. */
struct dl_sandbox_state dl_sandbox_enter(const struct dl_sandbox *sandbox);

#endif
