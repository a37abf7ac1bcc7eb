/* server.h - the front end: one thread that waits for sockets, workers and the clock. */
#ifndef DL_SERVE_SERVER_H
#define DL_SERVE_SERVER_H

#include "serve/mhd.h"
#include <stdint.h>

#include "serve/client_limits.h"
#include "serve/pool.h"
#include "serve/tokens.h"

enum { DL_TIME_BUCKETS = 12, DL_STATUS_CLASSES = 6 };
extern const double dl_time_bounds_s[DL_TIME_BUCKETS];

struct dl_route_counts {
    uint64_t requests[DL_STATUS_CLASSES]; /* by the first digit of the status */
    uint64_t times[DL_TIME_BUCKETS + 1];
    double time_s; /* sum */
};

struct dl_connection; /* an open one, http.c */

struct dl_server {
    const struct dl_service *service;
    const struct dl_serve_config *config;
    struct MHD_Daemon *daemon;
    struct dl_pool *pool;
    struct dl_limits limits;
    const char *tokens[DL_MAX_TOKENS];
    struct dl_arena token_arena; /* memory of the tokens; a reload replaces both */
    int token_count;
    struct dl_documents documents; /* a reload replaces them */
    struct dl_connection *connections;
    int connection_count;
    size_t body_bytes; /* of all requests in progress */
    bool stopping;
    double started_s;
    struct dl_route_counts *routes; /* one per row of dl_routes, and one for other paths */
};

/* MHD's callbacks, http.c */
void dl_http_started(void *server, struct MHD_Connection *connection, void **slot,
                     enum MHD_ConnectionNotificationCode code);
enum MHD_Result dl_http_request(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_bytes, void **slot);
void dl_http_completed(void *server, struct MHD_Connection *connection, void **slot,
                       enum MHD_RequestTerminationCode code);
/* Closes connections beyond their deadline and sends keep-alive comments to streams. */
void dl_http_tick(struct dl_server *server, double now_s);

/* Cancels the job of a connection and resumes it; returns the next connection. */
struct dl_connection *dl_http_abandon(struct dl_connection *connection);

/* The text of /metrics; malloc'ed, NULL: out of memory. */
char *dl_metrics_text(const struct dl_server *server, size_t *bytes);

#endif
