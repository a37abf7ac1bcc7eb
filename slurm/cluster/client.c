/* client.c - see the header. */
#include "slurm/cluster/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_BYTES = 256 << 20, LAST_WORDS = 4096 };

struct listener {
    char *out;
    size_t length, capacity;
    char words[LAST_WORDS];
    size_t word_length;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool grow(struct listener *l, size_t more) {
    if (l->length + more + 1 <= l->capacity) return true;
    const size_t capacity = 2 * (l->length + more) + 65536;
    char *grown = capacity > MAX_BYTES ? NULL : realloc(l->out, capacity);
    if (grown == NULL) return false;
    l->out = grown;
    l->capacity = capacity;
    return true;
}

/* Keeps the end of stderr, which has the cause. */
static void remember(struct listener *l, const char *text, size_t length) {
    if (length >= sizeof l->words) {
        text += length - (sizeof l->words - 1);
        length = sizeof l->words - 1;
    }
    if (l->word_length + length >= sizeof l->words) {
        const size_t drop = l->word_length + length - (sizeof l->words - 1);
        memmove(l->words, l->words + drop, l->word_length - drop);
        l->word_length -= drop;
    }
    memcpy(l->words + l->word_length, text, length);
    l->word_length += length;
    l->words[l->word_length] = 0;
}

static enum dl_code listen_to(const char *name, int out, int words, double limit_s,
                              struct listener *l, struct dl_err *err) {
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = words, .events = POLLIN}};
    const double end_s = now_s() + limit_s;
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        const int ready = poll(fds, 2, 200);
        if (ready < 0 && errno != EINTR)
            return dl_fail(err, DL_ERR_SYSTEM, "poll: %s", strerror(errno));
        if (now_s() > end_s)
            return dl_fail(err, DL_ERR_BACKEND, "%s did not end within %.0f s", name, limit_s);
        for (int i = 0; i < 2 && ready > 0; i++) {
            char buffer[65536];
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0)
                fds[i].fd = -1;
            else if (i == 1)
                remember(l, buffer, (size_t)got);
            else if (grow(l, (size_t)got)) {
                memcpy(l->out + l->length, buffer, (size_t)got);
                l->length += (size_t)got;
            } else
                return dl_fail(err, DL_ERR_SYSTEM, "%s: its output does not fit in memory", name);
        }
    }
    return DL_OK;
}

static const char *last_line(struct listener *l) {
    while (l->word_length > 0 &&
           (l->words[l->word_length - 1] == '\n' || l->words[l->word_length - 1] == ' '))
        l->words[--l->word_length] = 0;
    const char *newline = strrchr(l->words, '\n');
    return newline == NULL ? l->words : newline + 1;
}

static void become(const char *const *argv, int out, int words) {
    const int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(words, STDERR_FILENO) < 0)
        _exit(126);
    execvp(argv[0], (char *const *)(void *)(size_t)argv); /* exec does not write to them */
    _exit(127);
}

static enum dl_code finish(const char *name, pid_t pid, bool kill_it, struct listener *l,
                           struct dl_arena *arena, struct dl_client_result *result,
                           struct dl_err *err) {
    int status = 0;
    if (kill_it) kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (kill_it) return err != NULL ? err->code : DL_ERR_BACKEND;
    result->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (result->exit_status == 127 && l->length == 0 && l->word_length == 0) {
        return dl_fail(err, DL_ERR_BACKEND,
                       "%s is not in PATH: is this a login node of a Slurm cluster?", name);
    }
    result->out = dl_arena_strndup(arena, l->out != NULL ? l->out : "", l->length);
    result->words = dl_arena_strdup(arena, last_line(l));
    return DL_OK;
}

enum dl_code dl_client_run(const char *const *argv, double limit_s, struct dl_arena *arena,
                           struct dl_client_result *result, struct dl_err *err) {
    int out[2], words[2];
    struct listener l = {.length = 0};
    struct dl_err own = {0};
    *result = (struct dl_client_result){.exit_status = -1};
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
    const pid_t pid = fork();
    if (pid == 0) become(argv, out[1], words[1]);
    close(out[1]);
    close(words[1]);
    enum dl_code code =
        pid < 0 ? dl_fail(&own, DL_ERR_SYSTEM, "cannot start %s: %s", argv[0], strerror(errno))
                : listen_to(argv[0], out[0], words[0], limit_s, &l, &own);
    if (pid > 0) code = finish(argv[0], pid, code != DL_OK, &l, arena, result, &own);
    close(out[0]);
    close(words[0]);
    free(l.out);
    if (code != DL_OK && err != NULL) *err = own;
    return code;
}
