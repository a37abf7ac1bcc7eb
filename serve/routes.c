/* routes.c - the table of routes. */
#include "serve/routes.h"

#include <string.h>

/* Commands of the program by the same name: the body has its options, the answer is what it prints
 * with --json. */
#define COMMAND(name, kind, summary)                                                               \
    { "POST", "/v1/" name, kind, false, name, summary, dl_answer_command }
#define GET(path, kind, open, answer, summary)                                                     \
    { "GET", path, kind, open, NULL, summary, answer }

const struct dl_route dl_routes[] = {
    COMMAND("predict", DL_ROUTE_LIGHT, "time, communication, memory and cost of an iteration"),
    COMMAND("explain", DL_ROUTE_LIGHT, "every term of one prediction"),
    COMMAND("search", DL_ROUTE_HEAVY, "the best plans on these devices"),
    COMMAND("compare", DL_ROUTE_HEAVY, "predicted against measured runs"),
    COMMAND("campaign", DL_ROUTE_HEAVY, "many trainings as tasks on a cluster"),
    COMMAND("advise", DL_ROUTE_HEAVY, "changes of a plan that save time on this machine"),
    COMMAND("match", DL_ROUTE_HEAVY, "which device for which framework and network"),
    {"POST", "/v1/import/", DL_ROUTE_HEAVY, false, "import",
     "a model, trace or configuration as an input of the other requests", dl_answer_import},
    {"POST", "/v1/script", DL_ROUTE_LIGHT, false, "slurm", "the Slurm job of a run",
     dl_answer_script},
    GET("/v1/systems", DL_ROUTE_LIGHT, false, dl_answer_list, "machines by name"),
    GET("/v1/devices", DL_ROUTE_LIGHT, false, dl_answer_list, "devices by name"),
    GET("/v1/workloads", DL_ROUTE_LIGHT, false, dl_answer_list, "networks by name"),
    GET("/v1/frameworks", DL_ROUTE_LIGHT, false, dl_answer_list, "frameworks by name"),
    GET("/v1/strategies", DL_ROUTE_LIGHT, false, dl_answer_list, "parallel strategies by name"),
    GET("/v1/schema/", DL_ROUTE_LIGHT, false, dl_answer_schema, "the fields of a file format"),
    GET("/v1/measured", DL_ROUTE_LIGHT, false, dl_answer_measured,
        "runs of --measured compared with their predictions, with likely causes of deviations"),
    GET("/v1/openapi.json", DL_ROUTE_LIGHT, true, dl_answer_openapi, "this interface"),
    GET("/form", DL_ROUTE_LIGHT, false, dl_answer_form, "the page without scripts"),
    GET("/", DL_ROUTE_STATIC, true, NULL, "the page"),
    GET("/page.js", DL_ROUTE_STATIC, true, NULL, "the page's program"),
    GET("/page.css", DL_ROUTE_STATIC, true, NULL, "the page's style"),
    GET("/healthz", DL_ROUTE_STATIC, true, NULL, "200 while the service can answer"),
    GET("/metrics", DL_ROUTE_STATIC, false, NULL, "counters in Prometheus's text format"),
    {.path = NULL},
};

int dl_route_count(void) { return (int)(sizeof dl_routes / sizeof dl_routes[0]) - 1; }

static const char *behind(const struct dl_route *route, const char *path) {
    const size_t length = strlen(route->path);
    if (strncmp(route->path, path, length) != 0) return NULL;
    const bool open_end = length > 1 && route->path[length - 1] == '/';
    return open_end || path[length] == '\0' ? path + length : NULL;
}

const struct dl_route *dl_route_find(const char *method, const char *path, const char **rest,
                                     const char **allowed) {
    bool get = false, post = false;
    *allowed = NULL;
    for (const struct dl_route *r = dl_routes; r->path != NULL; r++) {
        *rest = behind(r, path);
        if (*rest == NULL) continue;
        const bool is_get = strcmp(r->method, "GET") == 0,
                   head = strcmp(method, "HEAD") == 0 && is_get;
        if (head || strcmp(r->method, method) == 0) return r;
        get = get || is_get;
        post = post || !is_get;
    }
    if (get || post) *allowed = !post ? "GET, HEAD" : get ? "GET, HEAD, POST" : "POST";
    return NULL;
}
