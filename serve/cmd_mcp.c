/* cmd_mcp.c - the command line of the Model Context Protocol: messages on standard input, one a
 * line, replies on standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "serve/mcp.h"
#include "serve/serve.h"

static const struct dl_option mcp_options[] = {
    {"help", 'h', NULL, "Output", "show this help", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {mcp_options, NULL};
static const char *const examples[] = {
    "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | dlmodel mcp",
    "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
    "\"predict\",\"arguments\":{\"workload\":\"llama3_8b\",\"system\":\"dgx-h100\"}}}' | "
    "dlmodel mcp",
    NULL,
};

/* A line that grows; `long` where its rest was passed over. */
struct line {
    char *text;
    size_t length, capacity;
    bool too_long;
};

/* false: the end of the input. */
static bool read_line(FILE *in, struct line *line) {
    int c;
    line->length = 0;
    line->too_long = false;
    while ((c = getc(in)) != EOF && c != '\n') {
        if (line->length + 1 >= line->capacity) {
            const size_t larger = line->capacity > 0 ? 2 * line->capacity : 4096;
            char *more =
                larger > 2 * (size_t)DL_MCP_MESSAGE_BYTES ? NULL : realloc(line->text, larger);
            if (more == NULL) {
                line->too_long = true;
                continue;
            }
            line->text = more;
            line->capacity = larger;
        }
        line->text[line->length++] = (char)c;
    }
    line->too_long = line->too_long || line->length > DL_MCP_MESSAGE_BYTES;
    return c != EOF || line->length > 0;
}

static bool is_blank(const struct line *line) {
    for (size_t i = 0; i < line->length; i++)
        if (line->text[i] != ' ' && line->text[i] != '\t' && line->text[i] != '\r') return false;
    return true;
}

struct turn {
    const struct dl_service *service;
    const struct line *line;
    struct dl_arena arena;
    const char *reply;
};

static enum dl_code answer(void *state, struct dl_err *err) {
    struct turn *turn = state;
    (void)err;
    turn->reply = turn->line->too_long ? dl_mcp_too_long(&turn->arena)
                                       : dl_mcp_reply(turn->service, turn->line->text,
                                                      turn->line->length, &turn->arena);
    if (turn->reply != NULL) turn->reply = dl_arena_printf(&turn->arena, "%s\n", turn->reply);
    return DL_OK;
}

/* Messages until the end of the input; a message that needs more memory than there is ends it. */
static enum dl_code converse(const struct dl_context *context, const struct dl_options *options,
                             const struct dl_service *service, struct dl_err *err) {
    struct line line = {.capacity = 0};
    enum dl_code code = DL_OK;
    while (code == DL_OK && read_line(stdin, &line)) {
        if (is_blank(&line)) continue;
        struct turn turn = {service, &line, {0}, NULL};
        code = dl_guarded(answer, &turn, err);
        if (code == DL_OK && turn.reply != NULL) code = context->output(options, turn.reply, err);
        dl_arena_free(&turn.arena);
    }
    free(line.text);
    return code;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    if (options->positional_count > 0)
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[0]);
    struct dl_context own = *context;
    struct dl_documents documents;
    const struct dl_serve_config config = {.listen = NULL};
    DL_TRY(dl_documents_read(context, NULL, &documents, err));
    dl_documents_apply(&documents, &own);
    const struct dl_service service = {&own, &config, &documents};
    const enum dl_code code = converse(context, options, &service, err);
    dl_arena_free(&documents.arena);
    return code;
}

const struct dl_command dl_cmd_mcp = {
    .name = "mcp",
    .summary = "answer coding agents over the Model Context Protocol",
    .usage = "",
    .purpose =
        "Answers messages of the Model Context Protocol (JSON-RPC 2.0, one a line) on standard "
        "input until its end. Its tools are predict, search, explain, match and list; their "
        "arguments are the options of the command line (names with '_' for '-'), and a result's "
        "text is what the command prints with --json. A request names data of this installation "
        "or contains its own documents ({\"name\": ..., \"text\": ...}); it opens no other file. "
        "Messages are answered one after another. To register it with an agent, give it the "
        "command 'dlmodel mcp'.",
    .examples = examples,
    .options = tables,
    .run = run,
};
