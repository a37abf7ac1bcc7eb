/* api_import.c - POST /v1/import/KIND: a model, configuration or trace as an input of later
 * requests. The body is the file; the query has options of `dlmodel import`. */
#include <string.h>

#include "serve/run_command.h"

/* Kinds whose file fits into memory, unlike a trace; auto: recognized by its content. */
const char *const dl_import_kinds[] = {
    "onnx",      "config",     "nccl-tests", "osu",     "log",    "megatron", "nemo", "torchtitan",
    "deepspeed", "accelerate", "composer",   "maxtext", "launch", "auto",     NULL};

static bool is_kind(const char *name) {
    for (int i = 0; dl_import_kinds[i] != NULL; i++) {
        if (strcmp(dl_import_kinds[i], name) == 0) return true;
    }
    return false;
}

static enum dl_code read_words(const struct dl_command *command, const struct dl_request *request,
                               struct dl_arena *arena, struct dl_words *words, struct dl_err *err) {
    const char *name = NULL;
    if (strcmp(request->path_rest, "auto") != 0)
        DL_TRY(dl_words_add(words, dl_arena_strdup(arena, request->path_rest), err));
    DL_TRY(dl_words_attach(words, "upload", request->body, request->body_bytes, arena, &name, err));
    DL_TRY(dl_words_add(words, dl_arena_strdup(arena, name), err));
    return dl_words_of_form(command, request->query, arena, words, err);
}

void dl_answer_import(const struct dl_service *service, const struct dl_request *request,
                      struct dl_arena *arena, struct dl_answer *out) {
    const struct dl_command *command = dl_service_command(service, "import");
    struct dl_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_ran *ran = dl_arena_alloc(arena, 1, sizeof *ran);
    if (!is_kind(request->path_rest)) {
        const char *all = dl_import_kinds[0];
        for (int i = 1; dl_import_kinds[i] != NULL; i++)
            all = dl_arena_printf(arena, "%s, %s", all, dl_import_kinds[i]);
        dl_answer_problem(404, dl_arena_printf(arena, "expected one of %s", all), NULL, 0, 0, arena,
                          out);
        return;
    }
    ran->code = read_words(command, request, arena, words, &ran->err);
    if (ran->code == DL_OK) dl_run_command(service, command, words, request, arena, ran);
    const bool json = ran->text != NULL && (ran->text[0] == '{' || ran->text[0] == '[');
    dl_answer_ran(ran, json ? DL_MEDIA_JSON : DL_MEDIA_TEXT, arena, out);
}
