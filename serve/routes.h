/* routes.h - what the service answers: one row a route, one function an answer. */
#ifndef DL_SERVE_ROUTES_H
#define DL_SERVE_ROUTES_H

#include "model/catalog/command.h"
#include "serve/documents.h"
#include "serve/frame.h"

enum dl_route_kind {
    DL_ROUTE_LIGHT,  /* answered in about a millisecond by any worker */
    DL_ROUTE_HEAVY,  /* may take seconds: its own workers, can be streamed and cancelled */
    DL_ROUTE_STATIC, /* by the front end: a file of the page, health, metrics */
};

/* One request as a worker sees it. */
struct dl_request {
    const struct dl_route *route;
    const char *path_rest; /* behind the route's path: "system" of /v1/schema/system */
    const char *query;     /* "a=b&c=d", decoded by whoever needs it */
    const char *body;      /* NUL-terminated */
    size_t body_bytes;
    void (*progress)(void *target, const char *text); /* NULL: not streamed */
    void *progress_target;
};

struct dl_answer {
    int status; /* HTTP */
    enum dl_media media;
    enum dl_code exit; /* what the command line would exit with */
    const char *text;  /* in the arena */
    size_t bytes;
};

/* What a worker has: the program's context, with the data folders. */
struct dl_service {
    const struct dl_context *context;
    const struct dl_serve_config *config;
    const struct dl_documents *documents;
};

/* Fills *out; never fails: an error is an answer too. */
typedef void dl_answer_fn(const struct dl_service *service, const struct dl_request *request,
                          struct dl_arena *arena, struct dl_answer *out);

struct dl_route {
    const char *method, *path; /* a path that ends in '/' also takes what follows */
    enum dl_route_kind kind;
    bool open;           /* without a token, where tokens are asked for */
    bool form;           /* takes application/x-www-form-urlencoded, else JSON */
    const char *command; /* of the program; NULL: none */
    const char *summary;
    dl_answer_fn *answer; /* NULL: DL_ROUTE_STATIC */
};

extern const struct dl_route dl_routes[]; /* ended by path NULL */
int dl_route_count(void);

/* The row for a method and path; NULL: none. *rest: behind the path. *allowed: NULL, or the methods
 * that the path has where this is none of them. */
const struct dl_route *dl_route_find(const char *method, const char *path, const char **rest,
                                     const char **allowed);

/* Answers of the api_*.c files and form.c. */
dl_answer_fn dl_answer_command, dl_answer_list, dl_answer_schema, dl_answer_import,
    dl_answer_script, dl_answer_openapi, dl_answer_form, dl_answer_measured;

/* For the description of the interface: kinds of files that /v1/import/ takes, ended by NULL, and
 * whether /v1/script takes an option. */
extern const char *const dl_import_kinds[];
bool dl_script_takes(const char *option);

#endif
