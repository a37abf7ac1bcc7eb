/* mcp.c - see mcp.h. */
#include "serve/mcp.h"

#include <string.h>

#include "model/core/json_node.h"
#include "model/core/text.h"
#include "serve/run_command.h"

/* Error codes of JSON-RPC 2.0. */
enum {
    MCP_NOT_JSON = -32700,
    MCP_NO_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_BAD_PARAMETERS = -32602
};

/* Revisions of the protocol that this program speaks, the latest first. They differ in what is not
 * used here. */
static const char *const revisions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
                                        NULL};

static const char instructions[] =
    "dlmodel predicts the time, memory, communication and cost of training deep networks on "
    "clusters. Call list for the names of systems, workloads and frameworks, predict for one plan "
    "on one or more node counts, search for the best plan on a machine, match for the best "
    "machine, explain for every term of a prediction. Values may carry units (\"25GB/s\").";

/* A tool is the POST route of its name; `list` stands for all routes that list names. */
static const char *const tools[] = {"predict", "search", "explain", "match", "list", NULL};

struct message {
    const struct dl_service *service;
    struct dl_arena *arena;
    const struct dl_json *doc;
    const struct dl_json_node *parameters; /* NULL: none */
    const char *id;                        /* as JSON; NULL: a notification */
};

static const char *reply(const struct message *m, const char *key, const struct dl_json_writer *w) {
    return dl_arena_printf(m->arena, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":%s}",
                           m->id != NULL ? m->id : "null", key, w->text);
}

static const char *fault(const struct message *m, int code, const char *text) {
    struct dl_json_writer w;
    dl_jw_init(&w, m->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_integer(&w, "code", code);
    dl_jw_string(&w, "message", text);
    dl_jw_end(&w);
    return reply(m, "error", &w);
}

static const char *initialize(const struct message *m) {
    const char *wanted = dl_json_string_of(dl_json_get(m->parameters, "protocolVersion")),
               *spoken = revisions[0];
    for (int i = 0; wanted != NULL && revisions[i] != NULL; i++)
        if (strcmp(revisions[i], wanted) == 0) spoken = revisions[i];
    struct dl_json_writer w;
    dl_jw_init(&w, m->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "protocolVersion", spoken);
    dl_jw_object(&w, "capabilities");
    dl_jw_object(&w, "tools");
    dl_jw_end(&w);
    dl_jw_end(&w);
    dl_jw_object(&w, "serverInfo");
    dl_jw_string(&w, "name", "dlmodel");
    dl_jw_string(&w, "version", dl_version_text + strlen("dlmodel "));
    dl_jw_end(&w);
    dl_jw_string(&w, "instructions", instructions);
    dl_jw_end(&w);
    return reply(m, "result", &w);
}

static bool is_list(const char *tool) { return strcmp(tool, "list") == 0; }

/* The route of a command; with `kind`, of a list. NULL: none. */
static const struct dl_route *route_of(const char *tool, const char *kind) {
    for (const struct dl_route *r = dl_routes; r->path != NULL; r++) {
        if (kind == NULL && r->command != NULL && strcmp(r->command, tool) == 0) return r;
        if (kind != NULL && r->answer == dl_answer_list &&
            strcmp(r->path + strlen("/v1/"), kind) == 0)
            return r;
    }
    return NULL;
}

static void add_kinds(struct dl_json_writer *w) {
    dl_jw_object(w, "inputSchema");
    dl_jw_string(w, "type", "object");
    dl_jw_object(w, "properties");
    dl_jw_object(w, "kind");
    dl_jw_string(w, "type", "string");
    dl_jw_array(w, "enum");
    for (const struct dl_route *r = dl_routes; r->path != NULL; r++)
        if (r->answer == dl_answer_list) dl_jw_string(w, NULL, r->path + strlen("/v1/"));
    dl_jw_end(w);
    dl_jw_end(w);
    dl_jw_end(w);
    dl_jw_array(w, "required");
    dl_jw_string(w, NULL, "kind");
    dl_jw_end(w);
    dl_jw_bool(w, "additionalProperties", false);
    dl_jw_end(w);
}

static const char *list_tools(const struct message *m) {
    struct dl_json_writer w;
    dl_jw_init(&w, m->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_array(&w, "tools");
    for (int i = 0; tools[i] != NULL; i++) {
        const struct dl_command *command = dl_service_command(m->service, tools[i]);
        if (command == NULL) continue;
        dl_jw_object(&w, NULL);
        dl_jw_string(&w, "name", tools[i]);
        dl_jw_string(&w, "title", command->summary);
        dl_jw_string(&w, "description", command->purpose);
        if (is_list(tools[i]))
            add_kinds(&w);
        else
            dl_write_body_schema(&w, "inputSchema", route_of(tools[i], NULL), command, m->arena);
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    dl_jw_end(&w);
    return reply(m, "result", &w);
}

static const char *call_tool(const struct message *m) {
    const char *name = dl_json_string_of(dl_json_get(m->parameters, "name"));
    const struct dl_json_node *arguments = dl_json_get(m->parameters, "arguments");
    struct dl_request request = {.path_rest = "", .query = "", .body = ""};
    bool known = false;
    for (int i = 0; tools[i] != NULL && name != NULL; i++)
        known = known || (strcmp(tools[i], name) == 0 && dl_service_command(m->service, name));
    if (!known)
        return fault(m, MCP_BAD_PARAMETERS,
                     name == NULL
                         ? "params.name: expected the name of a tool"
                         : dl_arena_printf(m->arena, "params.name: no tool \"%.60s\"", name));
    if (arguments != NULL && arguments->kind != DL_JSON_OBJECT)
        return fault(m, MCP_BAD_PARAMETERS, "params.arguments: expected an object");
    if (is_list(name)) {
        const char *kind = dl_json_string_of(dl_json_get(arguments, "kind"));
        request.route = kind == NULL ? NULL : route_of(name, kind);
    } else {
        request.route = route_of(name, NULL);
        if (arguments != NULL)
            request.body = dl_body_value(m->doc, arguments, m->arena, &request.body_bytes);
    }
    struct dl_answer answer;
    if (request.route == NULL)
        dl_answer_problem(400, "expected one of the kinds that tools/list names", "kind", 0, 0,
                          m->arena, &answer);
    else
        request.route->answer(m->service, &request, m->arena, &answer);
    struct dl_json_writer w;
    dl_jw_init(&w, m->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_array(&w, "content");
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "type", "text");
    dl_jw_string(&w, "text", answer.text);
    dl_jw_end(&w);
    dl_jw_end(&w);
    dl_jw_bool(&w, "isError", answer.status != 200);
    dl_jw_end(&w);
    return reply(m, "result", &w);
}

static const char *pong(const struct message *m) {
    struct dl_json_writer w;
    dl_jw_init(&w, m->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_end(&w);
    return reply(m, "result", &w);
}

static const struct {
    const char *name;
    const char *(*reply)(const struct message *m);
} methods[] = {
    {"initialize", initialize}, {"ping", pong}, {"tools/list", list_tools},
    {"tools/call", call_tool},  {NULL, NULL},
};

/* One message; NULL: no reply. */
static const char *handle(const struct dl_service *service, const struct dl_json *doc,
                          const struct dl_json_node *node, struct dl_arena *arena) {
    struct message m = {.service = service, .arena = arena, .doc = doc};
    const struct dl_json_node *id = dl_json_get(node, "id");
    const char *version = dl_json_string_of(dl_json_get(node, "jsonrpc")),
               *method = dl_json_string_of(dl_json_get(node, "method"));
    size_t bytes;
    if (id != NULL && (id->kind == DL_JSON_STRING || id->kind == DL_JSON_NUMBER))
        m.id = dl_body_value(doc, id, arena, &bytes);
    if (version == NULL || strcmp(version, "2.0") != 0)
        return fault(&m, MCP_NO_REQUEST, "jsonrpc: expected \"2.0\"");
    if (id != NULL && m.id == NULL)
        return fault(&m, MCP_NO_REQUEST, "id: expected text or a number");
    /* the reply to a request, and this program sends none */
    if (method == NULL &&
        (dl_json_get(node, "result") != NULL || dl_json_get(node, "error") != NULL))
        return NULL;
    if (method == NULL) return fault(&m, MCP_NO_REQUEST, "method: expected text");
    if (m.id == NULL) return NULL; /* a notification: initialized, cancelled, ... */
    m.parameters = dl_json_get(node, "params");
    if (m.parameters != NULL && m.parameters->kind != DL_JSON_OBJECT)
        return fault(&m, MCP_BAD_PARAMETERS, "params: expected an object");
    for (int i = 0; methods[i].name != NULL; i++)
        if (strcmp(methods[i].name, method) == 0) return methods[i].reply(&m);
    return fault(&m, MCP_NO_METHOD, dl_arena_printf(arena, "no method \"%.60s\"", method));
}

const char *dl_mcp_reply(const struct dl_service *service, const char *message, size_t bytes,
                         struct dl_arena *arena) {
    struct dl_json *doc;
    struct dl_err err;
    const struct message none = {.arena = arena};
    if (dl_json_parse("message", message, bytes, arena, &doc, &err) != DL_OK)
        return fault(&none, MCP_NOT_JSON,
                     dl_arena_printf(arena, "%d:%d: %s", err.line, err.col, err.message));
    if (doc->root->kind != DL_JSON_ARRAY) return handle(service, doc, doc->root, arena);
    if (doc->root->child_count == 0)
        return fault(&none, MCP_NO_REQUEST, "expected a message, got an empty list");
    struct dl_text all = {.arena = arena};
    for (const struct dl_json_node *n = doc->root->child; n != NULL; n = n->next) {
        const char *one = handle(service, doc, n, arena);
        if (one != NULL) dl_text_printf(&all, "%s%s", all.length > 0 ? "," : "[", one);
    }
    if (all.length == 0) return NULL;
    dl_text_add(&all, "]");
    return dl_text_string(&all);
}

const char *dl_mcp_too_long(struct dl_arena *arena) {
    const struct message none = {.arena = arena};
    return fault(&none, MCP_NO_REQUEST, "expected a message of at most 32 MiB");
}
