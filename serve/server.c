/* server.c - the event loop: HTTP sockets, workers, signals, timer. libmicrohttpd runs inside it,
 * without threads. */
#include "serve/server.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "serve/address.h"
#include "serve/run_server.h"
#include "serve/tokens.h"
#include "process/child.h"

enum { TICK_MS = 250, END_S = 10, MAX_EVENTS = 64 };

/* Their addresses mark events of signals and of the timer. */
static const char signal_source, clock_source;

static enum dl_code start_daemon(struct dl_server *s, int fd, struct dl_err *err) {
    const struct dl_serve_config *c = s->config;
    s->daemon = dl_mhd.MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, dl_http_request, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)c->connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)c->connections_per_client,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_NOTIFY_CONNECTION,
        dl_http_started, s, MHD_OPTION_NOTIFY_COMPLETED, dl_http_completed, s, MHD_OPTION_END);
    return s->daemon != NULL ? DL_OK
                             : dl_fail(err, DL_ERR_SYSTEM, "the HTTP library could not be started");
}

static bool add(int epoll, int fd, void *pointer) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = pointer};
    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Signals and timer are file descriptors. */
static int signal_fd(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int timer_fd(void) {
    const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const struct timespec each = {.tv_nsec = TICK_MS * 1000000L};
    timerfd_settime(fd, 0, &(struct itimerspec){each, each}, NULL);
    return fd;
}

static void reload(struct dl_server *s) {
    struct dl_err err = {0};
    struct dl_arena arena = {0};
    const char *tokens[DL_MAX_TOKENS];
    int count = 0;
    struct dl_documents documents = {.count = 0}, before = s->documents;
    enum dl_code code = dl_tokens_read(s->config->token_file, &arena, tokens, &count, &err);
    if (code == DL_OK)
        code = dl_documents_read(s->service->context, s->config->site, &documents, &err);
    s->documents = documents; /* for the new workers */
    if (code == DL_OK) code = dl_pool_reload(s->pool, &err);
    if (code != DL_OK) { /* the old data stay in use */
        char text[2048];
        dl_err_text(&err, "dlmodel serve", text, sizeof text);
        dl_arena_free(&arena);
        dl_arena_free(&documents.arena);
        s->documents = before;
        fprintf(stderr, "dlmodel serve: not reloaded: %s\n", text);
        return;
    }
    dl_arena_free(&before.arena);
    dl_arena_free(&s->token_arena);
    s->token_arena = arena;
    memcpy(s->tokens, tokens, (size_t)count * sizeof *tokens);
    s->token_count = count;
    fprintf(stderr, "dlmodel serve: data and tokens read again\n");
}

static void take_signals(struct dl_server *s, int fd) {
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            reload(s);
        else
            s->stopping = true;
    }
}

/* Returns unused heap pages, which bodies and answers of varying size leave. */
static void return_memory(double now_s) {
    enum { EACH_S = 30 };
    static double next_s;
    if (now_s < next_s) return;
    next_s = now_s + EACH_S;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* The library may have pending work without a ready descriptor: connections just resumed. */
static int wait_ms(const struct dl_server *s) {
    MHD_UNSIGNED_LONG_LONG own_ms;
    if (dl_mhd.MHD_get_timeout(s->daemon, &own_ms) != MHD_YES || own_ms > TICK_MS) return TICK_MS;
    return (int)own_ms;
}

static void loop(struct dl_server *s, int epoll, int signals, int timer, int listening) {
    double end_s = 0;
    bool quiet = false;
    while (!s->stopping ||
           (dl_clock_s() < end_s && s->connection_count > 0 && !dl_pool_is_idle(s->pool)) ||
           end_s == 0) {
        struct epoll_event events[MAX_EVENTS];
        const int count = epoll_wait(epoll, events, MAX_EVENTS, wait_ms(s));
        const double now_s = dl_clock_s();
        if (count < 0 && errno != EINTR) break;
        for (int i = 0; i < count; i++) {
            void *who = events[i].data.ptr;
            uint64_t ticks;
            if (who == &signal_source) {
                take_signals(s, signals);
            } else if (who == &clock_source) {
                while (read(timer, &ticks, sizeof ticks) > 0) {
                }
                dl_pool_tick(s->pool, now_s);
                dl_http_tick(s, now_s);
                return_memory(now_s);
            } else if (who != s) {
                dl_pool_event(s->pool, who, events[i].events, now_s);
            }
        }
        dl_mhd.MHD_run(s->daemon);
        if (s->stopping && !quiet) {
            quiet = true;
            end_s = now_s + END_S;
            if (dl_mhd.MHD_quiesce_daemon(s->daemon) != MHD_INVALID_SOCKET) close(listening);
        }
    }
}

/* Suspended connections must be resumed before the daemon stops. */
static void finish(struct dl_server *s) {
    for (struct dl_connection *c = s->connections; c != NULL; c = dl_http_abandon(c)) {
    }
    dl_mhd.MHD_run(s->daemon);
    dl_mhd.MHD_stop_daemon(s->daemon);
    dl_pool_stop(s->pool);
}

static enum dl_code run(struct dl_server *s, int listening, struct dl_err *err) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC), signals = signal_fd(), timer = timer_fd();
    enum dl_code code = dl_pool_start(s->service, epoll, &s->pool, err);
    if (code == DL_OK) code = start_daemon(s, listening, err);
    if (code == DL_OK) {
        const union MHD_DaemonInfo *info =
            dl_mhd.MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        const bool good = info != NULL && add(epoll, info->epoll_fd, s) &&
                          add(epoll, signals, (void *)(uintptr_t)&signal_source) &&
                          add(epoll, timer, (void *)(uintptr_t)&clock_source);
        if (good)
            loop(s, epoll, signals, timer, listening);
        else
            code = dl_fail(err, DL_ERR_SYSTEM, "cannot wait for events: %s", strerror(errno));
        finish(s);
    } else {
        dl_pool_stop(s->pool);
    }
    close(epoll);
    close(signals);
    close(timer);
    return code;
}

enum dl_code dl_server_run(const struct dl_context *context, const struct dl_serve_config *config,
                           struct dl_err *err) {
    struct dl_server *s = dl_arena_alloc(context->arena, 1, sizeof *s);
    uint64_t key = 0;
    int listening;
    const struct dl_service service = {context, config, &s->documents};
    s->service = &service;
    s->config = config;
    s->started_s = dl_clock_s();
    s->routes = dl_arena_alloc(context->arena, (size_t)dl_route_count() + 1, sizeof *s->routes);
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return dl_fail(err, DL_ERR_SYSTEM, "no random numbers: %s", strerror(errno));
    dl_limits_init(&s->limits, config->requests_per_s, key);
    enum dl_code code =
        dl_tokens_read(config->token_file, &s->token_arena, s->tokens, &s->token_count, err);
    signal(SIGPIPE, SIG_IGN);
    if (code == DL_OK) code = dl_documents_read(context, config->site, &s->documents, err);
    if (code == DL_OK) code = dl_mhd_load(err);
    if (code == DL_OK) code = dl_address_listen(config->listen, &listening, err);
    if (code == DL_OK) {
        fprintf(stderr, "dlmodel serve: http://%s/ (^C stops)\n", config->listen);
        code = run(s, listening, err);
    }
    dl_arena_free(&s->token_arena);
    dl_arena_free(&s->documents.arena);
    return code;
}
