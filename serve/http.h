/* http.h - shared by the http*.c files: connections, requests, responses. */
#ifndef DL_SERVE_HTTP_H
#define DL_SERVE_HTTP_H

#include "serve/server.h"

/* An open connection; closed when it misses its deadline. */
struct dl_connection {
    struct dl_connection *next, *before;
    struct MHD_Connection *mhd;
    char client[64];
    double deadline_s; /* 0: none */
    struct dl_http_request *request;
};

struct dl_http_request {
    struct dl_server *server;
    struct dl_connection *connection;
    const struct dl_route *route; /* NULL: no match */
    const char *allowed; /* methods of the path where it does not have this one; else NULL */
    bool accepted;       /* the head is accepted; the body follows */
    bool suspended, submitted, answered, streaming;
    double ready_s; /* when its last byte arrived */
    size_t prefix;  /* bytes of the job before the body */
    struct dl_job job;
    int status; /* of the response */
    /* of a stream */
    char *events;
    size_t event_bytes, event_sent, event_capacity;
    double event_s; /* time of the last event */
};

enum MHD_Result dl_http_send(struct dl_http_request *r, int status, const char *media,
                             char *owned_text, size_t bytes, const char *etag);
enum MHD_Result dl_http_problem(struct dl_http_request *r, int status, const char *detail,
                                double retry_s);
enum MHD_Result dl_http_static(struct dl_http_request *r);
enum MHD_Result dl_http_stream(struct dl_http_request *r);
/* Sends an event of a stream, one data line per line of text. */
void dl_http_event(struct dl_http_request *r, const char *name, const char *text);
void dl_http_resume(struct dl_http_request *r);
const char *dl_media_text(enum dl_media media);
/* 0: the head is valid and r->route is set; else the HTTP status, with the reason in *detail. */
int dl_http_check(struct dl_http_request *r, const char *url, const char *method, const char **rest,
                  const char **detail, double *retry_s);

#endif
