/* api_catalog.c - lists of the data folders and schemas of files. */
#include <string.h>

#include "serve/run_command.h"

static void run_words(const struct dl_service *service, const char *command, const char *word,
                      const struct dl_request *request, struct dl_arena *arena,
                      struct dl_answer *out) {
    struct dl_words words = {.count = 0};
    struct dl_ran ran = {.code = DL_OK};
    ran.code = dl_words_add(&words, dl_arena_strdup(arena, word), &ran.err);
    if (ran.code == DL_OK)
        ran.code = dl_words_add(&words, dl_arena_strdup(arena, "--json"), &ran.err);
    if (ran.code == DL_OK)
        dl_run_command(service, dl_service_command(service, command), &words, request, arena, &ran);
    dl_answer_ran(&ran, DL_MEDIA_JSON, arena, out);
}

/* /v1/systems is `dlmodel list systems --json`. */
void dl_answer_list(const struct dl_service *service, const struct dl_request *request,
                    struct dl_arena *arena, struct dl_answer *out) {
    run_words(service, "list", strrchr(request->route->path, '/') + 1, request, arena, out);
}

void dl_answer_schema(const struct dl_service *service, const struct dl_request *request,
                      struct dl_arena *arena, struct dl_answer *out) {
    if (request->path_rest[0] == '-') {
        dl_answer_problem(404, "expected the name of a schema", NULL, 0, 0, arena, out);
        return;
    }
    run_words(service, "schema", request->path_rest, request, arena, out);
    if (out->status == 400) /* an unknown name is an unknown resource here */
        dl_answer_problem(404, "no such schema; see dlmodel schema --help", NULL, 0, 0, arena, out);
}
