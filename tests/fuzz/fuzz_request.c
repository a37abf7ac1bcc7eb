/* fuzz_request.c - libFuzzer entry for what a client of `dlmodel serve` sends: the body of a
 * request or the query of a form, by the option tables of a real command. The first byte chooses;
 * the rest is the text. What is accepted names no path. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/body.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(",:{}[] \n&=%")

extern const struct dl_command dl_cmd_predict, dl_cmd_search, dl_cmd_compare, dl_cmd_import;
static const struct dl_command *const commands[] = {&dl_cmd_predict, &dl_cmd_search,
                                                    &dl_cmd_compare, &dl_cmd_import};

/* The value is a quantity or a setting, or the name of a document sent along, or it is no path. */
static void judge(const struct dl_command *command, const struct dl_words *words,
                  const char *word) {
    char name[64];
    const char *value = strchr(word, '=');
    if (strncmp(word, "--", 2) != 0) return; /* of "files" */
    const size_t length = value == NULL ? strlen(word + 2) : (size_t)(value - word) - 2;
    if (length >= sizeof name) abort();
    memcpy(name, word + 2, length);
    name[length] = '\0';
    const struct dl_option *option = dl_request_option(command, name);
    if (option == NULL) abort();
    if (value == NULL || strcmp(name, "set") == 0) return;
    if (option->value != NULL && option->value->kind == DL_VALUE_NUMBER) return;
    for (int i = 0; i < words->attached_count; i++)
        if (strcmp(words->attached[i].name, value + 1) == 0) return;
    if (strchr(value, '/') != NULL || value[1] == '.') abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_err err = {.code = DL_OK};
    struct dl_arena arena = {0};
    if (size == 0) return 0;
    char *text = dl_arena_strndup(&arena, (const char *)data + 1, size - 1);
    struct dl_words *words = dl_arena_alloc(&arena, 1, sizeof *words);
    if (text == NULL || words == NULL) return 0;
    const struct dl_command *command = commands[data[0] / 2 % 4];
    const enum dl_code code = data[0] % 2 == 0
                                  ? dl_words_of_body(command, text, size - 1, &arena, words, &err)
                                  : dl_words_of_form(command, text, &arena, words, &err);
    if (code != DL_OK && err.message[0] == '\0') abort();
    if (words->count > DL_MAX_WORDS || words->attached_count > DL_MAX_ATTACHED) abort();
    for (int i = 0; code == DL_OK && i < words->count; i++) judge(command, words, words->list[i]);
    dl_arena_free(&arena);
    return 0;
}
