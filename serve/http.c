/* http.c - libmicrohttpd's callbacks: connections and requests. */
#include "serve/http.h"
#include "process/child.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Time limits for receiving a head and a body, and for an idle connection. */
enum { HEAD_S = 10, BODY_S = 60, IDLE_S = 30, MAX_BODIES = 512 << 20, MAX_ARGUMENTS = 256 };

static void client_text(const struct sockaddr *address, char *out, size_t out_size) {
    const void *bytes = address->sa_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    out[0] = '\0';
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
        inet_ntop(address->sa_family, bytes, out, (socklen_t)out_size);
}

void dl_http_started(void *server, struct MHD_Connection *connection, void **slot,
                     enum MHD_ConnectionNotificationCode code) {
    struct dl_server *s = server;
    struct dl_connection *c = *slot;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = calloc(1, sizeof *c);
        *slot = c;
        if (c == NULL) return;
        const union MHD_ConnectionInfo *info =
            dl_mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        c->mhd = connection;
        if (info != NULL) client_text(info->client_addr, c->client, sizeof c->client);
        c->deadline_s = dl_clock_s() + HEAD_S;
        c->next = s->connections;
        if (c->next != NULL) c->next->before = c;
        s->connections = c;
        s->connection_count++;
    } else if (c != NULL) {
        if (c->next != NULL) c->next->before = c->before;
        *(c->before != NULL ? &c->before->next : &s->connections) = c->next;
        s->connection_count--;
        free(c);
        *slot = NULL;
    }
}

static struct dl_connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        dl_mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static void notify(struct dl_job *job, const char *progress) {
    struct dl_http_request *r = job->owner;
    if (!r->streaming) {
        if (progress == NULL) dl_http_resume(r);
        return;
    }
    if (progress != NULL) {
        dl_http_event(r, "progress", progress);
        return;
    }
    dl_http_event(r, job->status == 200 ? "answer" : "problem",
                  job->answer == NULL ? "" : job->answer);
}

static bool add_bytes(struct dl_http_request *r, const char *bytes, size_t count) {
    struct dl_job *job = &r->job;
    if (job->count + count > job->capacity) {
        const size_t capacity = 2 * (job->count + count) + 256;
        char *more = realloc(job->bytes, capacity);
        if (more == NULL) return false;
        job->bytes = more;
        job->capacity = capacity;
    }
    if (count > 0) memcpy(job->bytes + job->count, bytes, count);
    job->count += count;
    r->server->body_bytes += count;
    return true;
}

/* Re-encodes the query, which the library has decoded. */
struct query {
    struct dl_http_request *request;
    bool good;
    int count;
};

static bool add_encoded(struct dl_http_request *r, const char *text) {
    static const char digits[] = "0123456789ABCDEF";
    for (const char *c = text; *c != '\0'; c++) {
        const unsigned char u = (unsigned char)*c;
        const char hex[3] = {'%', digits[u >> 4], digits[u & 15]};
        const bool plain = (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
                           (u >= '0' && u <= '9') || strchr("-_.,:", u) != NULL;
        if (!add_bytes(r, plain ? c : hex, plain ? 1 : 3)) return false;
    }
    return true;
}

static enum MHD_Result add_argument(void *target, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    struct query *q = target;
    (void)kind;
    q->good = q->good && (q->count++ == 0 || add_bytes(q->request, "&", 1)) &&
              add_encoded(q->request, key) && add_bytes(q->request, "=", 1) &&
              add_encoded(q->request, value == NULL ? "" : value);
    q->good = q->good && q->count <= MAX_ARGUMENTS; /* refused, not truncated */
    return q->good ? MHD_YES : MHD_NO;
}

/* Starts the job's bytes with the rest of the path and the query; the body follows. */
static bool begin_job(struct dl_http_request *r, const char *rest) {
    struct query q = {.request = r, .good = true};
    const char *accept =
        dl_mhd.MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, "Accept");
    if (!add_bytes(r, rest, strlen(rest) + 1)) return false;
    dl_mhd.MHD_get_connection_values(r->connection->mhd, MHD_GET_ARGUMENT_KIND, add_argument, &q);
    if (!q.good || !add_bytes(r, "", 1)) return false;
    r->prefix = r->job.count;
    r->job.route = r->route;
    r->job.owner = r;
    r->job.notify = notify;
    r->job.streamed = r->route->kind == DL_ROUTE_HEAVY && accept != NULL &&
                      strstr(accept, "text/event-stream") != NULL;
    r->job.head = (struct dl_frame){.kind = DL_FRAME_REQUEST,
                                    .route = (uint32_t)(r->route - dl_routes),
                                    .status = r->job.streamed,
                                    .query = (uint32_t)r->prefix};
    return true;
}

static enum MHD_Result begin(struct dl_server *s, struct MHD_Connection *connection,
                             const char *url, const char *method, void **slot) {
    struct dl_connection *c = connection_of(connection);
    struct dl_http_request *r = c == NULL ? NULL : calloc(1, sizeof *r);
    const char *rest = "", *detail = "";
    double retry_s = 0;
    if (r == NULL) return MHD_NO;
    *slot = r;
    r->server = s;
    r->connection = c;
    c->request = r;
    c->deadline_s = dl_clock_s() + BODY_S;
    const int status = dl_http_check(r, url, method, &rest, &detail, &retry_s);
    if (status != 0 || r->route == NULL) return dl_http_problem(r, status, detail, retry_s);
    if (s->body_bytes > MAX_BODIES)
        return dl_http_problem(r, 503, "too many large requests at once", 5);
    if (r->route->kind != DL_ROUTE_STATIC && !begin_job(r, rest))
        return dl_http_problem(r, 400, "expected a shorter query", 0);
    r->accepted = true;
    return MHD_YES;
}

static enum MHD_Result submit(struct dl_http_request *r) {
    r->ready_s = dl_clock_s();
    r->connection->deadline_s = 0; /* the pool has its own */
    r->submitted = true;
    if (!r->job.streamed) {
        r->suspended = true;
        dl_mhd.MHD_suspend_connection(r->connection->mhd);
    }
    if (!dl_pool_submit(r->server->pool, &r->job, r->ready_s)) {
        r->submitted = false;
        dl_http_resume(r);
        return dl_http_problem(r, 503, "too many requests wait", 1);
    }
    return r->job.streamed ? dl_http_stream(r) : MHD_YES;
}

enum MHD_Result dl_http_request(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_bytes, void **slot) {
    struct dl_http_request *r = *slot;
    (void)version;
    if (r == NULL) return begin(server, connection, url, method, slot);
    if (*upload_bytes > 0) {
        const size_t count = *upload_bytes;
        *upload_bytes = 0;
        if (r->answered) return MHD_YES; /* the rest of the body after an early answer is dropped */
        if (r->route->kind == DL_ROUTE_STATIC) return MHD_YES;
        if ((double)(r->job.count + count) > r->server->config->body_bytes + 65536)
            return MHD_NO; /* larger than its Content-Length, or chunked and too large: close */
        return add_bytes(r, upload, count) ? MHD_YES : MHD_NO;
    }
    if (r->answered) return MHD_YES;
    if (r->route->kind == DL_ROUTE_STATIC) {
        r->ready_s = dl_clock_s();
        return dl_http_static(r);
    }
    if (!r->submitted) return submit(r);
    if (r->job.state != DL_JOB_DONE) return MHD_YES;
    char *text = r->job.answer;
    r->job.answer = NULL;
    return dl_http_send(r, r->job.status, dl_media_text(r->job.media), text, r->job.answer_bytes,
                        NULL);
}

static void count_request(struct dl_server *s, const struct dl_http_request *r) {
    const int row = r->route != NULL ? (int)(r->route - dl_routes) : dl_route_count();
    struct dl_route_counts *c = &s->routes[row];
    const int class = r->status / 100;
    const double time_s = r->ready_s > 0 ? dl_clock_s() - r->ready_s : 0;
    int bucket = 0;
    if (class > 0 && class < DL_STATUS_CLASSES) c->requests[class]++;
    while (bucket < DL_TIME_BUCKETS && time_s > dl_time_bounds_s[bucket]) bucket++;
    c->times[bucket]++;
    c->time_s += time_s;
    if (s->config->log)
        fprintf(stderr, "%s %s %d %.1f ms\n", r->route != NULL ? r->route->method : "-",
                r->route != NULL ? r->route->path : "-", r->status, 1e3 * time_s);
}

void dl_http_completed(void *server, struct MHD_Connection *connection, void **slot,
                       enum MHD_RequestTerminationCode code) {
    struct dl_http_request *r = *slot;
    struct dl_server *s = server;
    (void)connection;
    (void)code;
    if (r == NULL) return;
    if (r->submitted && r->job.state != DL_JOB_DONE) dl_pool_cancel(s->pool, &r->job);
    count_request(s, r);
    s->body_bytes -= r->job.count;
    r->connection->request = NULL;
    r->connection->deadline_s = dl_clock_s() + IDLE_S;
    free(r->job.bytes);
    free(r->job.answer);
    free(r->events);
    free(r);
    *slot = NULL;
}

void dl_http_tick(struct dl_server *server, double now_s) {
    enum { SIGN_OF_LIFE_S = 2 };
    for (struct dl_connection *c = server->connections, *next; c != NULL; c = next) {
        struct dl_http_request *r = c->request;
        next = c->next;
        if (r != NULL && r->streaming && now_s - r->event_s > SIGN_OF_LIFE_S)
            dl_http_event(r, NULL, "working"); /* detects a client that has gone */
        if (c->deadline_s == 0 || now_s < c->deadline_s) continue;
        const union MHD_ConnectionInfo *info =
            dl_mhd.MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info != NULL) shutdown(info->connect_fd, SHUT_RDWR);
        c->deadline_s = 0;
    }
}

struct dl_connection *dl_http_abandon(struct dl_connection *connection) {
    struct dl_http_request *r = connection->request;
    if (r != NULL && r->submitted && r->job.state != DL_JOB_DONE) {
        dl_pool_cancel(r->server->pool, &r->job);
        r->job.status = 503;
    }
    if (r != NULL) dl_http_resume(r);
    return connection->next;
}
