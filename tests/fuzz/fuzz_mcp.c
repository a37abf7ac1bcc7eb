/* fuzz_mcp.c - libFuzzer entry for messages of the Model Context Protocol. The commands behind its
 * tools compute nothing: what is tried is the protocol. A reply is one line of JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json.h"
#include "serve/mcp.h"
#include "serve/serve.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(",:{}[] \n\"")

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    return context->output(options, "{}", err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct dl_option *const tables[] = {dl_output_options, NULL};
    static const struct dl_command predict = {.name = "predict", .options = tables, .run = run},
                                   list = {.name = "list", .options = tables, .run = run};
    static const struct dl_command *const commands[] = {&predict, &list, NULL};
    const struct dl_context context = {.program = "", .commands = commands};
    const struct dl_serve_config config = {.listen = NULL};
    const struct dl_documents documents = {.count = 0};
    const struct dl_service service = {&context, &config, &documents};
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    const char *text = dl_arena_strndup(&arena, (const char *)data, size);
    const char *reply = text == NULL ? NULL : dl_mcp_reply(&service, text, size, &arena);
    struct dl_json *doc;
    if (reply != NULL && strchr(reply, '\n') != NULL) abort();
    if (reply != NULL && dl_json_parse("reply", reply, strlen(reply), &arena, &doc, &err) != DL_OK)
        abort();
    dl_arena_free(&arena);
    return 0;
}
