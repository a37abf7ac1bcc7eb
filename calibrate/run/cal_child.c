/* cal_child.c - see the header. */
#include "calibrate/run/cal_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calibrate/run/cal_host.h"

static volatile sig_atomic_t interrupted; /* set by a signal handler: must be global */
static struct sigaction old_int, old_term;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

void dl_cal_signals_begin(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
}

void dl_cal_signals_end(void) {
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
}

bool dl_cal_interrupted(void) { return interrupted != 0; }

const char *dl_cal_find_program(const char *name, struct dl_arena *arena) {
    const char *path = getenv("PATH");
    while (path != NULL && *path != 0) {
        const size_t length = strcspn(path, ":");
        const char *full = dl_arena_printf(arena, "%.*s/%s", (int)length, path, name);
        if (length > 0 && full != NULL && access(full, X_OK) == 0) return full;
        path += length;
        if (*path == ':') path++;
    }
    return NULL;
}

/* Where the system allows it (root), so that other processes preempt the probe less often. Where
 * the kernel schedules by session (autogroup), only the value of the group counts against other
 * sessions. */
static void raise_priority(void) {
    setpriority(PRIO_PROCESS, 0, -20);
    const int group = open("/proc/self/autogroup", O_WRONLY);
    if (group < 0) return;
    if (write(group, "-20", 3) < 0) errno = 0; /* then the priority stays normal */
    close(group);
}

/* Only async-signal-safe calls after fork. setsid also makes a process group. The priority is set
 * before exec, so that threads of libraries inherit it. getppid detects that the parent died
 * between fork and prctl. */
static void become(char *const *argv, pid_t parent, int out, int err_out) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    raise_priority();
    const int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err_out, STDERR_FILENO) < 0)
        _exit(127);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execv(argv[0], argv);
    static const char words[] = "cannot execute the program\n";
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(126);
    _exit(127);
}

struct reader {
    char line[8192];
    size_t length;
    bool too_long;
};

static enum dl_code take(struct reader *r, const char *text, size_t length, dl_cal_on_line *on_line,
                         void *context, struct dl_err *err) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\n') {
            if (r->length < sizeof r->line)
                r->line[r->length++] = text[i];
            else
                r->too_long = true;
            continue;
        }
        if (!r->too_long && r->length > 0) DL_TRY(on_line(context, r->line, r->length, err));
        r->length = 0;
        r->too_long = false;
    }
    return DL_OK;
}

static void remember(struct dl_cal_ending *ending, const char *text, size_t length) {
    const size_t room = sizeof ending->last_words - 1, have = strlen(ending->last_words);
    if (length > room) {
        text += length - room;
        length = room;
    }
    const size_t keep = have + length > room ? room - length : have;
    memmove(ending->last_words, ending->last_words + have - keep, keep);
    memcpy(ending->last_words + keep, text, length);
    ending->last_words[keep + length] = 0;
}

/* Until both pipes are closed. */
static enum dl_code listen_to(const int pipes[2], double silence_s, dl_cal_on_line *on_line,
                              void *context, struct dl_cal_ending *ending, struct dl_err *err) {
    struct pollfd fds[2] = {{.fd = pipes[0], .events = POLLIN}, {.fd = pipes[1], .events = POLLIN}};
    struct reader reader = {.length = 0};
    double heard_s = dl_cal_now_s();
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        const int ready = poll(fds, 2, 200);
        if (dl_cal_interrupted()) return dl_fail(err, DL_ERR_SYSTEM, "interrupted");
        if (ready < 0 && errno != EINTR)
            return dl_fail(err, DL_ERR_SYSTEM, "poll: %s", strerror(errno));
        if (dl_cal_now_s() - heard_s > silence_s)
            return dl_fail(err, DL_ERR_BACKEND, "no output for %.0f s", silence_s);
        for (int i = 0; i < 2 && ready > 0; i++) {
            char buffer[4096];
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0)
                fds[i].fd = -1;
            else if (i == 1)
                remember(ending, buffer, (size_t)got);
            else {
                heard_s = dl_cal_now_s();
                DL_TRY(take(&reader, buffer, (size_t)got, on_line, context, err));
            }
        }
    }
    return DL_OK;
}

/* SIGTERM lets mpirun terminate its ranks, which have separate groups; SIGKILL follows for a
 * child that ignores it. */
static int end_child(pid_t pid, bool kill_it) {
    int status = 0;
    if (kill_it) {
        if (kill(-pid, SIGTERM) != 0)
            kill(pid, SIGTERM); /* the child may not have created its group yet */
        for (int i = 0; i < 30; i++) {
            if (waitpid(pid, &status, WNOHANG) == pid) return status;
            const struct timespec pause = {.tv_nsec = 100000000};
            nanosleep(&pause, NULL);
        }
        if (kill(-pid, SIGKILL) != 0) kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

enum dl_code dl_cal_child_run(char *const *argv, double silence_s, dl_cal_on_line *on_line,
                              void *context, struct dl_cal_ending *ending, struct dl_err *err) {
    int out[2], words[2];
    *ending = (struct dl_cal_ending){.exit_status = -1};
    if (pipe(out) != 0) return dl_fail(err, DL_ERR_SYSTEM, "pipe: %s", strerror(errno));
    if (pipe(words) != 0) {
        close(out[0]);
        close(out[1]);
        return dl_fail(err, DL_ERR_SYSTEM, "pipe: %s", strerror(errno));
    }
    for (int i = 0; i < 2; i++) {
        fcntl(out[i], F_SETFD, FD_CLOEXEC);
        fcntl(words[i], F_SETFD, FD_CLOEXEC);
    }
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(argv, parent, out[1], words[1]);
    close(out[1]);
    close(words[1]);
    enum dl_code code = DL_OK;
    if (pid < 0) {
        code = dl_fail(err, DL_ERR_SYSTEM, "cannot start %s: %s", argv[0], strerror(errno));
    } else {
        code = listen_to((const int[]){out[0], words[0]}, silence_s, on_line, context, ending, err);
        const int status = end_child(pid, code != DL_OK);
        if (WIFEXITED(status))
            ending->exit_status = WEXITSTATUS(status);
        else if (WIFSIGNALED(status))
            ending->signal = WTERMSIG(status);
    }
    close(out[0]);
    close(words[0]);
    return code;
}
