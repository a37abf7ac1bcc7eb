/* worker.c - the loop of a worker process. */
#include "serve/worker.h"

#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "model/catalog/store.h"
#include "serve/run_command.h"
#include "serve/sandbox.h"
#include "serve/serve.h"

static void send_progress(void *target, const char *text) {
    const struct dl_frame frame = {.kind = DL_FRAME_PROGRESS, .bytes = strlen(text)};
    if (!dl_frame_write(*(const int *)target, &frame, text)) _exit(0); /* the front end has gone */
}

/* Remaining seconds of the request; 0: no request. */
static volatile sig_atomic_t left_s;

static void count_down(int number) {
    (void)number;
    if (left_s > 0 && --left_s == 0) _exit(1);
}

/* The front end kills workers beyond their limit; without it, a worker exits on its own. */
static void limit_time(double time_s) {
    left_s = time_s > 0 ? (sig_atomic_t)fmin(time_s, 1e6) + 2 : 0;
}

static void start_clock(void) {
    const struct itimerval each = {{1, 0}, {1, 0}};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count_down, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
}

/* The payload is the rest of the path, a NUL, the query, a NUL, the body. */
struct job {
    const struct dl_service *service;
    const struct dl_frame *frame;
    char *bytes;
    int fd;
    struct dl_arena arena;
    struct dl_answer answer;
};

static enum dl_code answer(void *state, struct dl_err *err) {
    struct job *job = state;
    const struct dl_service *service = job->service;
    const struct dl_frame *frame = job->frame;
    char *bytes = job->bytes;
    struct dl_arena *arena = &job->arena;
    struct dl_answer *out = &job->answer;
    (void)err;
    struct dl_request request = {.path_rest = bytes};
    if (frame->route >= (uint32_t)dl_route_count() || frame->query > frame->bytes) {
        dl_answer_problem(500, "a damaged request inside the service", NULL, 0, 0, arena, out);
        return DL_OK;
    }
    request.route = &dl_routes[frame->route];
    request.query = bytes + strlen(bytes) + 1;
    request.body = bytes + frame->query;
    request.body_bytes = (size_t)(frame->bytes - frame->query);
    if (frame->status != 0) { /* streamed */
        request.progress = send_progress;
        request.progress_target = &job->fd;
    }
    limit_time(request.route->kind == DL_ROUTE_HEAVY ? service->config->long_s
                                                     : service->config->short_s);
    request.route->answer(service, &request, arena, out);
    return DL_OK;
}

_Noreturn void dl_worker_run(const struct dl_service *given, int fd) {
    struct dl_context context = *given->context;
    const struct dl_service own = {&context, given->config, given->documents}, *service = &own;
    const char *folders[12];
    struct dl_sandbox sandbox = {.folders = folders,
                                 .memory_bytes = (size_t)service->config->memory_bytes};
    const struct dl_data *data = &service->context->data;
    for (int i = 0; i < data->directory_count && sandbox.folder_count < 8; i++)
        folders[sandbox.folder_count++] = data->directories[i];
    for (int i = 0; i < service->context->script_root_count && sandbox.folder_count < 10; i++)
        folders[sandbox.folder_count++] = service->context->script_roots[i];
    if (service->config->measured != NULL)
        folders[sandbox.folder_count++] = service->config->measured;
    dl_documents_apply(service->documents, &context);
    context.data.store = dl_store_open(); /* NULL: each request reads its files */
    setlocale(LC_ALL, "C");
    start_clock();
    dl_sandbox_enter(&sandbox);
    for (;;) {
        struct dl_frame frame;
        char *bytes;
        if (!dl_frame_read(fd, &frame, &bytes)) _exit(0);
        struct job job = {service, &frame, bytes, fd, {0}, {0}};
        struct dl_err err = {0};
        if (dl_guarded(answer, &job, &err) != DL_OK)
            dl_answer_text(500, DL_MEDIA_PROBLEM, NULL, &job.answer);
        limit_time(0);
        const struct dl_answer out = job.answer;
        const struct dl_frame reply = {.kind = DL_FRAME_ANSWER,
                                       .status = (uint32_t)out.status,
                                       .media = (uint32_t)out.media,
                                       .exit = (uint32_t)out.exit,
                                       .bytes = out.bytes};
        if (!dl_frame_write(fd, &reply, out.text)) _exit(0);
        free(bytes);
        dl_arena_free(&job.arena);
    }
}
