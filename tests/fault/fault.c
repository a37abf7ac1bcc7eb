/* fault.c - a library to preload that makes one call of dlmodel fail, or every one from some call
 * on.
 *
 * FAULT_CALL: malloc (also calloc, realloc), open (for writing), write, fsync, close, rename, fork
 * (also posix_spawn), exec. FAULT_AT N: the Nth of these calls fails; FAULT_FROM N: the Nth and all
 * later ones. FAULT_SHORT 1: a write takes half first. FAULT_LOG FILE: the name of every call is
 * appended to FILE, and nothing fails. In other programs than dlmodel nothing is done.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static const char *wanted;
static long at, from, seen;
static int log_fd = -1, ready, cut;

__attribute__((constructor)) static void begin(void) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 8) return;
    path[length] = 0;
    if (strcmp(path + length - 8, "/dlmodel") != 0) return;
    const char *call = getenv("FAULT_CALL"), *n = getenv("FAULT_AT"), *later = getenv("FAULT_FROM"),
               *log = getenv("FAULT_LOG");
    cut = getenv("FAULT_SHORT") != NULL;
    at = n != NULL ? atol(n) : 0;
    from = later != NULL ? atol(later) : 0;
    if (log != NULL)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                              0644);
    wanted = call;
    ready = 1;
}

/* This call is one that shall fail. */
static int fails(const char *call) {
    if (!ready) return 0;
    if (log_fd >= 0) {
        char line[16];
        const size_t length = strlen(call);
        memcpy(line, call, length);
        line[length] = '\n';
        (void)!syscall(SYS_write, log_fd, line, length + 1);
        return 0;
    }
    if (wanted == NULL || strcmp(wanted, call) != 0) return 0;
    seen++;
    return seen == at || (from > 0 && seen >= from);
}

static int refuse(int reason) {
    errno = reason;
    return -1;
}

#define REAL(name) (__typeof__(&name))dlsym(RTLD_NEXT, #name)

void *malloc(size_t size) {
    if (!fails("malloc")) return __libc_malloc(size);
    errno = ENOMEM;
    return NULL;
}

void *calloc(size_t count, size_t size) {
    if (!fails("malloc")) return __libc_calloc(count, size);
    errno = ENOMEM;
    return NULL;
}

void *realloc(void *old, size_t size) {
    if (!fails("malloc")) return __libc_realloc(old, size);
    errno = ENOMEM;
    return NULL;
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    if ((flags & O_ACCMODE) != O_RDONLY && fails("open")) return refuse(EMFILE);
    return (REAL(open))(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static int halved;
    if (fails("write")) {
        if (!cut || halved || count < 2) return refuse(ENOSPC);
        halved = 1;
        seen--; /* the rest of it fails */
        return syscall(SYS_write, fd, bytes, count / 2);
    }
    return (ssize_t)syscall(SYS_write, fd, bytes, count);
}

int fsync(int fd) { return fails("fsync") ? refuse(EIO) : (REAL(fsync))(fd); }

int close(int fd) {
    const int result = (int)syscall(SYS_close, fd);
    return fails("close") ? refuse(EIO) : result;
}

int rename(const char *old, const char *new) {
    return fails("rename") ? refuse(EIO) : (REAL(rename))(old, new);
}

pid_t fork(void) { return fails("fork") ? refuse(EAGAIN) : (REAL(fork))(); }

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    return fails("fork") ? EAGAIN
                         : (REAL(posix_spawnp))(pid, file, actions, attributes, argv, envp);
}

int execv(const char *path, char *const argv[]) {
    return fails("exec") ? refuse(EACCES) : (REAL(execv))(path, argv);
}

int execvp(const char *file, char *const argv[]) {
    return fails("exec") ? refuse(EACCES) : (REAL(execvp))(file, argv);
}
