/* sandbox.c - resource limits, Landlock and seccomp through system calls, without a library. */
#define _GNU_SOURCE /* syscall(), O_PATH */
#include "serve/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static bool limit(int which, rlim_t value) {
    return setrlimit((__rlimit_resource_t)which, &(struct rlimit){value, value}) == 0;
}

static bool enter_limits(const struct dl_sandbox *s) {
    bool done = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 64);
    if (s->memory_bytes > 0) done = limit(RLIMIT_AS, (rlim_t)s->memory_bytes) && done;
    return done;
}

static bool allow_folder(int rules, const char *folder) {
    struct landlock_path_beneath_attr beneath = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
                                                                   LANDLOCK_ACCESS_FS_READ_DIR,
                                                 .parent_fd = open(folder, O_PATH | O_CLOEXEC)};
    if (beneath.parent_fd < 0) return false;
    const long done =
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    close(beneath.parent_fd);
    return done == 0;
}

static bool enter_landlock(const struct dl_sandbox *s) {
    const struct landlock_ruleset_attr all = {.handled_access_fs =
                                                  (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0) return false;
    /* A folder that cannot be opened stays inaccessible. */
    for (int i = 0; i < s->folder_count; i++) (void)allow_folder(rules, s->folders[i]);
    const bool done = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return done;
}

#ifdef THIS_ARCHITECTURE
#define FIELD(name) ((uint32_t)offsetof(struct seccomp_data, name))
#define LOAD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(name))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
/* two instructions: skip the return unless the number matches */
#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)

static const struct sock_filter calls[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCHITECTURE, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(readv),
    ALLOW(write), /* standard error */
    ALLOW(recvfrom),
    ALLOW(recvmsg),
    ALLOW(sendto),
    ALLOW(sendmsg),
    ALLOW(close),
    ALLOW(fstat),
    ALLOW(newfstatat),
#ifdef SYS_stat
    ALLOW(stat),
    ALLOW(lstat),
    ALLOW(access),
    ALLOW(readlink),
#endif
    ALLOW(statx),
    ALLOW(faccessat),
    ALLOW(faccessat2),
    ALLOW(readlinkat),
    ALLOW(lseek),
    ALLOW(getdents64),
    ALLOW(mmap),
    ALLOW(mremap),
    ALLOW(munmap),
    ALLOW(mprotect),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(fcntl),
    ALLOW(futex),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW(getcwd),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(tgkill), /* abort() */
    ALLOW(clock_gettime),
    ALLOW(getrandom),
    ALLOW(getrusage),
    ALLOW(setitimer),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(exit),
    ALLOW(exit_group),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_openat, 0, 3),
    LOAD(args[2]), /* the flags, in the lower half on little-endian machines */
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 1, 0),
    RETURN(SECCOMP_RET_ALLOW),
    RETURN(REFUSE),
};

static bool enter_seccomp(void) {
    const struct sock_fprog program = {.len = (unsigned short)(sizeof calls / sizeof calls[0]),
                                       .filter = (struct sock_filter *)(uintptr_t)calls};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool enter_seccomp(void) { return false; }
#endif

struct dl_sandbox_state dl_sandbox_enter(const struct dl_sandbox *sandbox) {
    struct dl_sandbox_state state = {.limits = enter_limits(sandbox)};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return state;
    state.landlock = enter_landlock(sandbox);
    state.seccomp = enter_seccomp();
    return state;
}
