/* child.c - see the header. */
#define _XOPEN_SOURCE 700 /* putenv */
#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 256 << 20 };

/* ---- signals ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[3];
static volatile sig_atomic_t caught; /* set by a signal handler: must be global */

static void note_signal(int number) { caught = number; }

void dl_signals_begin(void) {
    const struct sigaction mine = {.sa_handler = note_signal};
    caught = 0;
    for (int i = 0; i < 3; i++) {
        sigaction(signals[i], &mine, &before[i]);
        if (signals[i] == SIGHUP && before[i].sa_handler == SIG_IGN)
            sigaction(SIGHUP, &before[i], NULL);
    }
}

void dl_signals_end(void) {
    for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], NULL);
}

int dl_signal_caught(void) { return caught; }

/* ---- output ---- */

enum dl_code dl_child_collect(void *context, const char *bytes, size_t length, struct dl_err *err) {
    struct dl_child_text *text = context;
    if (text->length + length + 1 > text->capacity) {
        text->capacity = 2 * (text->length + length) + 65536;
        if (text->capacity > MOST_BYTES)
            return dl_fail(err, DL_ERR_SYSTEM, "the output of a program does not fit in memory");
        char *grown = dl_arena_alloc(text->arena, text->capacity, 1);
        if (text->length > 0) memcpy(grown, text->bytes, text->length);
        text->bytes = grown;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    return DL_OK;
}

static void remember(struct dl_child_ending *ending, const char *text, size_t length) {
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

/* ---- the process ---- */

static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(126);
}

/* Only what a signal handler may call, but for putenv: no other thread runs where variables are
 * added. setsid also makes a process group. getppid detects that the parent died between fork and
 * prctl. */
static _Noreturn void become(const struct dl_child *child, pid_t parent, int out, int words) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(126);
    if (child->prepare != NULL) child->prepare();
    const int in = child->input_fd > 0 ? child->input_fd : open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    for (const char *const *v = child->variables; v != NULL && *v != NULL; v++)
        if (putenv((char *)(uintptr_t)*v) != 0) _exit(126);
    execvp(child->argv[0], (char *const *)(uintptr_t)child->argv); /* exec does not write to them */
    const int status = errno == ENOENT ? 127 : 126;
    say("cannot execute ");
    say(child->argv[0]);
    say("\n");
    _exit(status);
}

double dl_clock_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct run {
    const struct dl_child *child;
    struct dl_child_ending *ending;
    pid_t pid;
    bool ended;
    int status;
    double start_s, heard_s;
};

static bool must_end(struct run *r) {
    const double now = dl_clock_s();
    r->ending->cut = caught != 0 ? DL_CHILD_INTERRUPTED
                     : r->child->limit_s > 0 && now - r->start_s > r->child->limit_s ? DL_CHILD_LATE
                     : r->child->silence_s > 0 && now - r->heard_s > r->child->silence_s
                         ? DL_CHILD_SILENT
                         : DL_CHILD_WHOLE;
    return r->ending->cut != DL_CHILD_WHOLE;
}

/* Until both pipes are closed. */
static enum dl_code listen_to(struct run *r, int out, int words, struct dl_err *err) {
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = words, .events = POLLIN}};
    while ((fds[0].fd >= 0 || fds[1].fd >= 0) && !must_end(r)) {
        const int ready = poll(fds, 2, 200);
        if (ready < 0 && errno != EINTR)
            return dl_fail(err, DL_ERR_SYSTEM, "poll: %s", strerror(errno));
        for (int i = 0; i < 2 && ready > 0; i++) {
            char buffer[65536];
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0)
                fds[i].fd = -1;
            else if (i == 1)
                remember(r->ending, buffer, (size_t)got);
            else {
                r->heard_s = dl_clock_s();
                DL_TRY(r->child->output(r->child->context, buffer, (size_t)got, err));
            }
        }
    }
    return DL_OK;
}

static bool has_ended(struct run *r) {
    const pid_t got = r->ended ? r->pid : waitpid(r->pid, &r->status, WNOHANG);
    r->ended = got == r->pid || (got < 0 && errno != EINTR);
    return r->ended;
}

static void pause_shortly(void) {
    const struct timespec turn = {.tv_nsec = 2000000};
    nanosleep(&turn, NULL);
}

/* The child may not have made its group yet. */
static void end_by(const struct run *r, int number) {
    if (kill(-r->pid, number) != 0 && !r->ended) kill(r->pid, number);
}

/* SIGTERM lets mpirun end its ranks, which have groups of their own. */
static void end(struct run *r) {
    const double until_s = dl_clock_s() + r->child->grace_s;
    if (r->child->grace_s > 0) end_by(r, SIGTERM);
    while (!has_ended(r) && dl_clock_s() < until_s) pause_shortly();
    end_by(r, SIGKILL);
}

static enum dl_code follow(struct run *r, int out, int words, struct dl_err *err) {
    const enum dl_code code = out < 0 ? DL_OK : listen_to(r, out, words, err);
    while (code == DL_OK && r->ending->cut == DL_CHILD_WHOLE &&
           (!has_ended(r) || (r->child->group && kill(-r->pid, 0) == 0)) && !must_end(r))
        pause_shortly();
    if (code != DL_OK || r->ending->cut != DL_CHILD_WHOLE) end(r);
    while (!r->ended && waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(r->status))
        r->ending->exit_status = WEXITSTATUS(r->status);
    else
        r->ending->signal = WTERMSIG(r->status);
    return code;
}

static enum dl_code make_pipe(int ends[2], struct dl_err *err) {
    if (pipe(ends) != 0) return dl_fail(err, DL_ERR_SYSTEM, "pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return DL_OK;
}

static void close_both(const int ends[2]) {
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0) close(ends[i]);
}

enum dl_code dl_child_run(const struct dl_child *child, struct dl_child_ending *ending,
                          struct dl_err *err) {
    int out[2] = {-1, -1}, words[2] = {-1, -1};
    *ending = (struct dl_child_ending){.exit_status = -1};
    enum dl_code code = child->output == NULL ? DL_OK : make_pipe(out, err);
    if (code == DL_OK && child->output != NULL) code = make_pipe(words, err);
    if (code == DL_OK) {
        const pid_t parent = getpid(), pid = fork();
        if (pid == 0)
            become(child, parent, child->output != NULL ? out[1] : STDERR_FILENO,
                   child->output != NULL ? words[1] : STDERR_FILENO);
        const double start_s = dl_clock_s();
        struct run r = {
            .child = child, .ending = ending, .pid = pid, .start_s = start_s, .heard_s = start_s};
        if (pid < 0)
            code =
                dl_fail(err, DL_ERR_SYSTEM, "cannot start %s: %s", child->argv[0], strerror(errno));
        /* the ends of the child, or its end is never seen */
        if (out[1] >= 0) close(out[1]);
        if (words[1] >= 0) close(words[1]);
        out[1] = words[1] = -1;
        if (code == DL_OK) code = follow(&r, out[0], words[0], err);
    }
    close_both(out);
    close_both(words);
    return code;
}
