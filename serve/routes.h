/* routes.h - the service's routes: one row per route, one function per answer. */
#ifndef DL_SERVE_ROUTES_H
#define DL_SERVE_ROUTES_H

#include "model/catalog/command.h"
#include "serve/documents.h"
#include "serve/frame.h"

enum dl_route_kind {
    DL_ROUTE_LIGHT,  /* takes about a millisecond */
    DL_ROUTE_HEAVY,  /* may take seconds: separate workers; can be streamed and cancelled */
    DL_ROUTE_STATIC, /* answered by the front end: files of the page, health, metrics */
};

/* A request as a worker receives it. */
struct dl_request {
    const struct dl_route *route;
    const char *path_rest; /* the path after the route's: "system" of /v1/schema/system */
    const char *query;     /* "a=b&c=d", percent-encoded */
    const char *body;      /* NUL-terminated */
    size_t body_bytes;
    void (*progress)(void *target, const char *text); /* NULL: not streamed */
    void *progress_target;
};

struct dl_answer {
    int status; /* HTTP */
    enum dl_media media;
    enum dl_code exit; /* exit status of the command line */
    const char *text;  /* in the arena */
    size_t bytes;
};

/* Inputs of every answer: the program's context with the data folders, settings, the user's
 * files. */
struct dl_service {
    const struct dl_context *context;
    const struct dl_serve_config *config;
    const struct dl_documents *documents;
};

/* Fills *out; never fails: errors are answers. */
typedef void dl_answer_fn(const struct dl_service *service, const struct dl_request *request,
                          struct dl_arena *arena, struct dl_answer *out);

struct dl_route {
    const char *method, *path; /* a path that ends in '/' is a prefix */
    enum dl_route_kind kind;
    bool open;           /* needs no token */
    const char *command; /* command of the program; NULL: none */
    const char *summary;
    dl_answer_fn *answer; /* NULL: DL_ROUTE_STATIC */
};

extern const struct dl_route dl_routes[]; /* ended by path NULL */
int dl_route_count(void);

/* The row for a method and path; NULL: none. *rest: the path after the row's. *allowed: the methods
 * of the path where it does not have this one; else NULL. */
const struct dl_route *dl_route_find(const char *method, const char *path, const char **rest,
                                     const char **allowed);

/* Answers of the api_*.c files and form.c. */
dl_answer_fn dl_answer_command, dl_answer_list, dl_answer_schema, dl_answer_import,
    dl_answer_script, dl_answer_openapi, dl_answer_form, dl_answer_measured;

/* JSON Schema of the body of a command's requests, as a member `key`. */
void dl_write_body_schema(struct dl_json_writer *w, const char *key, const struct dl_route *route,
                          const struct dl_command *command, struct dl_arena *arena);

/* For the OpenAPI document: file kinds of /v1/import/, NULL-terminated, and options of
 * /v1/script. */
extern const char *const dl_import_kinds[];
bool dl_script_takes(const char *option);

#endif
