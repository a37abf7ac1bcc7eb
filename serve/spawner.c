/* spawner.c - the process that forks workers. It has one thread, handles no requests and reads only
 * commands of the front end. */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "serve/worker.h"

enum { ORDER_SPAWN, ORDER_KILL, MAX_WORKERS = 512 };
struct order {
    int what;
    pid_t pid;
};

static void nothing(int number) { (void)number; }

/* The kernel kills this process when its parent exits. */
static void end_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
}

static void default_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the front end handles ^C and finishes running requests */
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes the descriptors inherited from the front end. */
static void close_others(int kept) {
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++) {
        if (fd != kept) close(fd);
    }
}

static bool send_worker(int fd, int worker, pid_t pid) {
    struct iovec bytes = {&pid, sizeof pid};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (worker >= 0) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof worker);
        memcpy(CMSG_DATA(header), &worker, sizeof worker);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof pid;
}

static bool spawn(const struct dl_service *service, int fd, pid_t *children, int *count) {
    int pair[2];
    const pid_t parent = getpid();
    if (*count == MAX_WORKERS || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return send_worker(fd, -1, -1);
    const pid_t pid = fork();
    if (pid == 0) {
        end_with_parent(parent);
        default_signals();
        close(fd);
        close(pair[0]);
        dl_worker_run(service, pair[1]);
    }
    close(pair[1]);
    const bool sent = send_worker(fd, pid > 0 ? pair[0] : -1, pid);
    close(pair[0]);
    if (pid > 0) children[(*count)++] = pid;
    return sent;
}

static void reap(pid_t *children, int *count) {
    for (int i = 0; i < *count; i++) {
        if (waitpid(children[i], NULL, WNOHANG) == 0) continue;
        children[i--] = children[--*count];
    }
}

static _Noreturn void run(const struct dl_service *service, int fd) {
    pid_t children[MAX_WORKERS];
    int count = 0;
    sigset_t blocked, waiting;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = nothing}, NULL);
    sigprocmask(SIG_BLOCK, &blocked, &waiting);
    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        struct order order;
        const int ready = ppoll(&in, 1, NULL, &waiting);
        reap(children, &count);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0 || recv(fd, &order, sizeof order, 0) != (ssize_t)sizeof order) break;
        if (order.what == ORDER_SPAWN && !spawn(service, fd, children, &count)) break;
        for (int i = 0; order.what == ORDER_KILL && i < count; i++) {
            if (children[i] == order.pid) kill(order.pid, SIGKILL);
        }
    }
    /* A worker exits when the front end has closed its socket. */
    while (count > 0) {
        ppoll(NULL, 0, NULL, &waiting);
        reap(children, &count);
    }
    _exit(0);
}

enum dl_code dl_spawner_start(const struct dl_service *service, struct dl_spawner *out,
                              struct dl_err *err) {
    int pair[2];
    const pid_t parent = getpid();
    *out = (struct dl_spawner){-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return dl_fail(err, DL_ERR_SYSTEM, "no socket: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        end_with_parent(parent);
        default_signals();
        close_others(pair[1]);
        run(service, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return dl_fail(err, DL_ERR_SYSTEM, "no process: %s", strerror(errno));
    }
    *out = (struct dl_spawner){pid, pair[0]};
    return DL_OK;
}

int dl_spawner_worker(const struct dl_spawner *spawner, pid_t *pid) {
    const struct order order = {ORDER_SPAWN, 0};
    struct iovec bytes = {pid, sizeof *pid};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    if (send(spawner->fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order) return -1;
    ssize_t got;
    do got = recvmsg(spawner->fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header == NULL || header->cmsg_type != SCM_RIGHTS) return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

void dl_spawner_kill(const struct dl_spawner *spawner, pid_t pid) {
    const struct order order = {ORDER_KILL, pid};
    (void)!send(spawner->fd, &order, sizeof order, MSG_NOSIGNAL);
}

void dl_spawner_reap(struct dl_spawner *spawner) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (ended == spawner->pid) spawner->pid = -1;
    }
}

void dl_spawner_stop(struct dl_spawner *spawner) {
    if (spawner->fd >= 0) close(spawner->fd);
    *spawner = (struct dl_spawner){-1, -1};
}

void dl_spawner_end(struct dl_spawner *spawner) {
    enum { TRIES = 100 };
    const struct timespec each = {.tv_nsec = 10 * 1000 * 1000};
    const pid_t pid = spawner->pid;
    dl_spawner_stop(spawner);
    for (int i = 0; pid > 0 && i < TRIES && waitpid(pid, NULL, WNOHANG) == 0; i++)
        nanosleep(&each, NULL);
    if (pid > 0) kill(pid, SIGKILL); /* its workers die with it */
    if (pid > 0) waitpid(pid, NULL, 0);
}
