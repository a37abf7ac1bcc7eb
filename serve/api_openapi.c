/* api_openapi.c - GET /v1/openapi.json: the interface, generated from the tables of routes and
 * options. */
#include <string.h>

#include "serve/run_command.h"
#include "serve/serve.h"

static const char *with_underscores(const char *name, struct dl_arena *arena) {
    char *copy = dl_arena_strdup(arena, name);
    for (char *c = copy; c != NULL && *c != '\0'; c++) *c = *c == '-' ? '_' : *c;
    return copy;
}

static void add_type(struct dl_json_writer *w, const char *type) {
    dl_jw_object(w, NULL);
    dl_jw_string(w, "type", type);
    dl_jw_end(w);
}

/* A number may be text with a unit, text may be a list, a document may replace a file. */
static void add_kinds(struct dl_json_writer *w, const struct dl_option *o) {
    dl_jw_array(w, "anyOf");
    add_type(w, "string");
    add_type(w, "number");
    if (dl_option_takes_list(o)) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "type", "array");
        dl_jw_integer(w, "minItems", 1);
        dl_jw_object(w, "items");
        dl_jw_array(w, "type");
        dl_jw_string(w, NULL, "string");
        dl_jw_string(w, NULL, "number");
        dl_jw_end(w);
        dl_jw_end(w);
        dl_jw_end(w);
    }
    if (dl_option_takes_document(o) || strcmp(o->name, "set") == 0) add_type(w, "object");
    dl_jw_end(w);
}

static void add_option(struct dl_json_writer *w, const struct dl_option *o,
                       struct dl_arena *arena) {
    dl_jw_object(w, with_underscores(o->name, arena));
    dl_jw_string(w, "description", o->help);
    if (o->argument == NULL) {
        dl_jw_string(w, "type", "boolean");
    } else if (!dl_option_takes_list(o) && o->value->choices != NULL) {
        dl_jw_string(w, "type", "string");
        dl_jw_array(w, "enum");
        for (int i = 0; o->value->choices[i] != NULL; i++)
            dl_jw_string(w, NULL, o->value->choices[i]);
        if (o->value->word != NULL) dl_jw_string(w, NULL, o->value->word);
        dl_jw_end(w);
    } else {
        add_kinds(w, o);
    }
    dl_jw_end(w);
}

static bool seen_before(const struct dl_command *command, int table,
                        const struct dl_option *option) {
    for (int t = 0; t <= table; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL && o != option; o++) {
            if (strcmp(o->name, option->name) == 0) return true;
        }
    }
    return false;
}

void dl_write_body_schema(struct dl_json_writer *w, const char *key, const struct dl_route *route,
                          const struct dl_command *command, struct dl_arena *arena) {
    const bool script = route->answer == dl_answer_script;
    dl_jw_object(w, key);
    dl_jw_string(w, "type", "object");
    dl_jw_object(w, "properties");
    for (int t = 0; command->options[t] != NULL; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL; o++) {
            if (dl_request_option(command, o->name) == o && !seen_before(command, t, o) &&
                (!script || dl_script_takes(o->name)))
                add_option(w, o, arena);
        }
    }
    if (strcmp(command->name, "compare") == 0) {
        dl_jw_object(w, "files");
        dl_jw_string(w, "description", "tables: a list of {\"name\": ..., \"text\": ...}");
        dl_jw_string(w, "type", "array");
        dl_jw_object(w, "items");
        dl_jw_string(w, "type", "object");
        dl_jw_end(w);
        dl_jw_end(w);
    }
    dl_jw_end(w);
    dl_jw_bool(w, "additionalProperties", false);
    dl_jw_end(w);
}

static void add_options(struct dl_json_writer *w, const struct dl_route *route,
                        const struct dl_command *command, struct dl_arena *arena) {
    dl_jw_object(w, "requestBody");
    dl_jw_object(w, "content");
    dl_jw_object(w, "application/json");
    dl_write_body_schema(w, "schema", route, command, arena);
    for (int i = 0; i < 3; i++) dl_jw_end(w);
}

/* kind: type of the JSON value; NULL: not JSON. */
static void add_response(struct dl_json_writer *w, const char *status, const char *description,
                         const char *media, const char *kind) {
    dl_jw_object(w, status);
    dl_jw_string(w, "description", description);
    dl_jw_object(w, "content");
    dl_jw_object(w, media);
    dl_jw_object(w, "schema");
    if (kind != NULL) dl_jw_string(w, "type", kind);
    for (int i = 0; i < 4; i++) dl_jw_end(w);
}

static const char *media_of(const struct dl_route *r) {
    if (r->answer == dl_answer_script) return "text/plain";
    if (strstr(r->path, "/v1/") != NULL) return "application/json";
    if (strcmp(r->path, "/metrics") == 0 || strcmp(r->path, "/healthz") == 0) return "text/plain";
    if (strstr(r->path, ".js") != NULL) return "text/javascript";
    return strstr(r->path, ".css") != NULL ? "text/css" : "text/html";
}

static void add_rest_of_path(struct dl_json_writer *w, const struct dl_route *r) {
    if (strlen(r->path) < 2 || r->path[strlen(r->path) - 1] != '/') return;
    dl_jw_array(w, "parameters");
    dl_jw_object(w, NULL);
    dl_jw_string(w, "name", "kind");
    dl_jw_string(w, "in", "path");
    dl_jw_bool(w, "required", true);
    dl_jw_object(w, "schema");
    dl_jw_string(w, "type", "string");
    if (r->answer == dl_answer_import) {
        dl_jw_array(w, "enum");
        for (int i = 0; dl_import_kinds[i] != NULL; i++) dl_jw_string(w, NULL, dl_import_kinds[i]);
        dl_jw_end(w);
    }
    dl_jw_end(w);
    dl_jw_end(w);
    dl_jw_end(w);
}

static void add_route(struct dl_json_writer *w, const struct dl_service *service,
                      const struct dl_route *r, struct dl_arena *arena) {
    const bool rest = strlen(r->path) > 1 && r->path[strlen(r->path) - 1] == '/';
    const struct dl_command *command =
        r->command == NULL ? NULL : dl_service_command(service, r->command);
    dl_jw_object(w, rest ? dl_arena_printf(arena, "%s{kind}", r->path) : r->path);
    dl_jw_object(w, strcmp(r->method, "GET") == 0 ? "get" : "post");
    dl_jw_string(w, "summary", r->summary);
    add_rest_of_path(w, r);
    if (r->open && service->config->token_file != NULL) {
        dl_jw_array(w, "security");
        dl_jw_end(w);
    }
    if (command != NULL && !rest) {
        add_options(w, r, command, arena);
    } else if (command != NULL) {
        dl_jw_object(w, "requestBody");
        dl_jw_object(w, "content");
        dl_jw_object(w, "application/octet-stream");
        dl_jw_object(w, "schema");
        for (int i = 0; i < 4; i++) dl_jw_end(w);
    }
    dl_jw_object(w, "responses");
    const char *media = media_of(r);
    const bool json = strstr(media, "json") != NULL, list = r->answer == dl_answer_list;
    add_response(w, "200", json ? "as dlmodel prints it with --json" : r->summary, media,
                 list   ? "array"
                 : json ? "object"
                        : NULL);
    add_response(w, "default", "what was expected, with the key", "application/problem+json",
                 "object");
    for (int i = 0; i < 3; i++) dl_jw_end(w);
}

static void add_security(struct dl_json_writer *w) {
    dl_jw_object(w, "components");
    dl_jw_object(w, "securitySchemes");
    dl_jw_object(w, "token");
    dl_jw_string(w, "type", "http");
    dl_jw_string(w, "scheme", "bearer");
    for (int i = 0; i < 3; i++) dl_jw_end(w);
    dl_jw_array(w, "security");
    dl_jw_object(w, NULL);
    dl_jw_array(w, "token");
    for (int i = 0; i < 3; i++) dl_jw_end(w);
}

void dl_answer_openapi(const struct dl_service *service, const struct dl_request *request,
                       struct dl_arena *arena, struct dl_answer *out) {
    struct dl_json_writer w;
    (void)request;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "openapi", "3.1.0");
    dl_jw_object(&w, "info");
    dl_jw_string(&w, "title", "dlmodel");
    dl_jw_string(&w, "version", "1");
    dl_jw_string(&w, "description",
                 "How the training of a deep network scales on a cluster, predicted. Options and "
                 "answers are those of the commands of the same name.");
    dl_jw_end(&w);
    dl_jw_object(&w, "paths");
    for (const struct dl_route *r = dl_routes; r->path != NULL; r++) {
        if (r->command == NULL || dl_service_command(service, r->command) != NULL)
            add_route(&w, service, r, arena);
    }
    dl_jw_end(&w);
    if (service->config->token_file != NULL) add_security(&w);
    dl_answer_text(200, DL_MEDIA_JSON, dl_jw_text(&w), out);
}
