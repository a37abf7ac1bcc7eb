/* http_response.c - responses: common headers, problem details, files of the page, streams.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/hash.h"
#include "serve/http.h"
#include "serve/page_data.h"
#include "serve/run_command.h"
#include "process/child.h"

const char *dl_media_text(enum dl_media media) {
    static const char *const texts[] = {
        [DL_MEDIA_JSON] = "application/json",
        [DL_MEDIA_PROBLEM] = "application/problem+json",
        [DL_MEDIA_TEXT] = "text/plain; charset=utf-8",
        [DL_MEDIA_HTML] = "text/html; charset=utf-8",
        [DL_MEDIA_CSV] = "text/csv; charset=utf-8",
    };
    return texts[media];
}

static void add_headers(struct MHD_Response *response, const char *media, const char *etag) {
    static const char *const always[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
         "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    };
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        dl_mhd.MHD_add_response_header(response, always[i][0], always[i][1]);
    dl_mhd.MHD_add_response_header(response, "Content-Type", media);
    dl_mhd.MHD_add_response_header(response, "Cache-Control",
                                   etag != NULL ? "no-cache" : "no-store");
    if (etag != NULL) dl_mhd.MHD_add_response_header(response, "ETag", etag);
}

static enum MHD_Result queue(struct dl_http_request *r, int status, struct MHD_Response *response) {
    const enum MHD_Result done =
        dl_mhd.MHD_queue_response(r->connection->mhd, (unsigned)status, response);
    dl_mhd.MHD_destroy_response(response);
    r->answered = true;
    r->status = status;
    r->connection->deadline_s = dl_clock_s() + 60; /* for the client to read it */
    return done;
}

enum MHD_Result dl_http_send(struct dl_http_request *r, int status, const char *media,
                             char *owned_text, size_t bytes, const char *etag) {
    struct MHD_Response *response = dl_mhd.MHD_create_response_from_buffer(
        bytes, owned_text, owned_text == NULL ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(owned_text);
        return MHD_NO;
    }
    add_headers(response, media, etag);
    if (r->job.exit > 0) {
        char exit[16];
        snprintf(exit, sizeof exit, "%d", r->job.exit);
        dl_mhd.MHD_add_response_header(response, "Dlmodel-Exit", exit);
    }
    return queue(r, status, response);
}

enum MHD_Result dl_http_problem(struct dl_http_request *r, int status, const char *detail,
                                double retry_s) {
    char text[512], number[32];
    const int length = snprintf(text, sizeof text,
                                "{\n  \"type\": \"about:blank\",\n  \"title\": \"%s\",\n"
                                "  \"status\": %d,\n  \"detail\": \"%s\"\n}\n",
                                dl_status_title(status), status, detail);
    struct MHD_Response *response =
        dl_mhd.MHD_create_response_from_buffer((size_t)length, text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    add_headers(response, dl_media_text(DL_MEDIA_PROBLEM), NULL);
    if (status == 401) dl_mhd.MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 405) dl_mhd.MHD_add_response_header(response, "Allow", r->allowed);
    if (retry_s > 0) {
        snprintf(number, sizeof number, "%.0f", retry_s < 1 ? 1 : retry_s);
        dl_mhd.MHD_add_response_header(response, "Retry-After", number);
    }
    /* The rest of the body is not read. */
    if (!r->accepted) dl_mhd.MHD_add_response_header(response, "Connection", "close");
    return queue(r, status, response);
}

static enum MHD_Result send_file(struct dl_http_request *r, const struct dl_page_file *file) {
    char etag[32];
    const uint64_t hash =
        dl_hash_bytes(DL_HASH_START, file->begin, (size_t)(file->end - file->begin));
    snprintf(etag, sizeof etag, "\"%016llx\"", (unsigned long long)hash);
    const char *known =
        dl_mhd.MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, "If-None-Match");
    const bool same = known != NULL && strstr(known, etag) != NULL;
    struct MHD_Response *response = dl_mhd.MHD_create_response_from_buffer(
        same ? 0 : (size_t)(file->end - file->begin), (void *)(uintptr_t)file->begin,
        MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    add_headers(response, file->media, etag);
    return queue(r, same ? 304 : 200, response);
}

enum MHD_Result dl_http_static(struct dl_http_request *r) {
    for (const struct dl_page_file *f = dl_page_files; f->path != NULL; f++) {
        if (strcmp(f->path, r->route->path) == 0) return send_file(r, f);
    }
    if (strcmp(r->route->path, "/metrics") == 0) {
        size_t bytes;
        char *text = dl_metrics_text(r->server, &bytes);
        return dl_http_send(r, 200, "text/plain; version=0.0.4; charset=utf-8", text, bytes, NULL);
    }
    const struct dl_pool_counts pool = dl_pool_counts(r->server->pool);
    char *text = strdup(pool.idle + pool.busy > 0 ? "ok\n" : "no worker\n");
    return dl_http_send(r, pool.idle + pool.busy > 0 ? 200 : 503, dl_media_text(DL_MEDIA_TEXT),
                        text, text == NULL ? 0 : strlen(text), NULL);
}

static ssize_t read_events(void *request, uint64_t position, char *out, size_t most) {
    struct dl_http_request *r = request;
    (void)position;
    const size_t left = r->event_bytes - r->event_sent, count = left < most ? left : most;
    if (count == 0) {
        if (r->job.state == DL_JOB_DONE) return MHD_CONTENT_READER_END_OF_STREAM;
        r->suspended = true;
        dl_mhd.MHD_suspend_connection(r->connection->mhd);
        return 0;
    }
    memcpy(out, r->events + r->event_sent, count);
    r->event_sent += count;
    if (r->event_sent == r->event_bytes) r->event_sent = r->event_bytes = 0;
    return (ssize_t)count;
}

enum MHD_Result dl_http_stream(struct dl_http_request *r) {
    struct MHD_Response *response =
        dl_mhd.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_events, r, NULL);
    if (response == NULL) return MHD_NO;
    add_headers(response, "text/event-stream", NULL);
    dl_mhd.MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* nginx: no buffering */
    r->streaming = true;
    const enum MHD_Result done = queue(r, 200, response);
    r->connection->deadline_s = 0;
    return done;
}

static bool add_event_bytes(struct dl_http_request *r, const char *bytes, size_t count) {
    if (r->event_bytes + count > r->event_capacity) {
        const size_t capacity = 2 * (r->event_bytes + count) + 256;
        char *more = realloc(r->events, capacity);
        if (more == NULL) return false;
        r->events = more;
        r->event_capacity = capacity;
    }
    memcpy(r->events + r->event_bytes, bytes, count);
    r->event_bytes += count;
    return true;
}

void dl_http_event(struct dl_http_request *r, const char *name, const char *text) {
    char head[64];
    bool good = true;
    if (name != NULL) {
        snprintf(head, sizeof head, "event: %s\n", name);
        good = add_event_bytes(r, head, strlen(head));
    }
    for (const char *line = text; good && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        good = add_event_bytes(r, name != NULL ? "data: " : ": ", name != NULL ? 6 : 2) &&
               add_event_bytes(r, line, length) && add_event_bytes(r, "\n", 1);
        line += length + (line[length] == '\n');
    }
    if (good) add_event_bytes(r, "\n", 1);
    r->event_s = dl_clock_s();
    dl_http_resume(r);
}

void dl_http_resume(struct dl_http_request *r) {
    if (!r->suspended) return;
    r->suspended = false;
    dl_mhd.MHD_resume_connection(r->connection->mhd);
}
