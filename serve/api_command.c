/* api_command.c - commands over HTTP: options in the body; the answer equals the output of the
 * command line with --json, byte for byte. */
#include <string.h>

#include "serve/measured_runs.h"
#include "serve/run_command.h"

/* Whether the output is text: a framework's arguments or a job script. */
static bool wants_text(const struct dl_words *words) {
    for (int i = 0; i < words->count; i++) {
        if (strncmp(words->list[i], "--export=", 9) == 0) return true;
    }
    return false;
}

/* Adds the runs of --measured where the request has none. */
static enum dl_code add_measured(const struct dl_service *service, const struct dl_command *command,
                                 struct dl_arena *arena, struct dl_words *words,
                                 struct dl_err *err) {
    if (dl_request_option(command, "measured") == NULL) return DL_OK;
    for (int i = 0; i < words->count; i++) {
        if (strncmp(words->list[i], "--measured=", 11) == 0) return DL_OK;
    }
    const char *name;
    DL_TRY(dl_measured_attach(service, words, arena, &name, err));
    return name == NULL ? DL_OK
                        : dl_words_add(words, dl_arena_printf(arena, "--measured=%s", name), err);
}

static enum dl_code read_words(const struct dl_service *service, const struct dl_command *command,
                               const struct dl_request *request, struct dl_arena *arena,
                               struct dl_words *words, struct dl_err *err) {
    DL_TRY(dl_words_of_body(command, request->body, request->body_bytes, arena, words, err));
    DL_TRY(add_measured(service, command, arena, words, err));
    /* one core per request */
    if (strcmp(command->name, "search") == 0)
        DL_TRY(dl_words_add(words, dl_arena_strdup(arena, "--threads=1"), err));
    if (wants_text(words)) return DL_OK;
    return dl_words_add(words, dl_arena_strdup(arena, "--json"), err);
}

void dl_answer_command(const struct dl_service *service, const struct dl_request *request,
                       struct dl_arena *arena, struct dl_answer *out) {
    const struct dl_command *command = dl_service_command(service, request->route->command);
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran *ran = dl_arena_alloc(arena, 1, sizeof *ran);
    if (command == NULL) {
        dl_answer_problem(404, "this build has no such command", request->route->command, 0, 0,
                          arena, out);
        return;
    }
    ran->code = read_words(service, command, request, arena, words, &ran->err);
    const enum dl_media media = wants_text(words) ? DL_MEDIA_TEXT : DL_MEDIA_JSON;
    if (ran->code == DL_OK) dl_run_command(service, command, words, request, arena, ran);
    dl_answer_ran(ran, media, arena, out);
}
