/* fuzz_json.c - libFuzzer entry for documents: parse, --set, load, write, read again.
 * Input: at most four lines "KEY=VALUE" without '{', then the document. What was loaded must be
 * written and read back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json.h"
#include "tests/rich_schema.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

enum { MAX_OVERRIDES = 4 };

/* Takes the overrides off the front of the text. */
static int take_overrides(struct dl_arena *arena, const char **text, size_t *length,
                          struct dl_override *overrides) {
    int count = 0;

    while (count < MAX_OVERRIDES) {
        const char *end = memchr(*text, '\n', *length), *equals;
        size_t line;

        if (end == NULL) break;
        line = (size_t)(end - *text);
        equals = memchr(*text, '=', line);
        if (equals == NULL || memchr(*text, '{', line) != NULL) break;
        overrides[count].key = dl_arena_strndup(arena, *text, (size_t)(equals - *text));
        overrides[count].value = dl_arena_strndup(arena, equals + 1, (size_t)(end - equals) - 1);
        overrides[count].used = false;
        if (overrides[count].key == NULL || overrides[count].value == NULL) break;
        count++;
        *text = end + 1;
        *length -= line + 1;
    }
    return count;
}

/* Only a lack of memory excuses a failure here. */
static void check_written(const struct rich *rich, struct dl_arena *arena) {
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    struct rich again;
    char *text = dl_json_text(&rich_schema, rich, arena), *text_again;
    enum dl_code code;

    if (text == NULL) return;
    code = dl_json_parse("written", text, strlen(text), arena, &doc, &err);
    if (code == DL_OK) code = dl_json_load(doc, &rich_schema, arena, &again, &err);
    if (code == DL_ERR_SYSTEM) return;
    if (code != DL_OK) abort();
    text_again = dl_json_text(&rich_schema, &again, arena);
    if (text_again != NULL && strcmp(text, text_again) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_override overrides[MAX_OVERRIDES];
    const char *text = (const char *)data;
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc = NULL;
    struct rich rich;
    char message[1600];
    int count;

    if (size == 0) return 0;
    count = take_overrides(&arena, &text, &size, overrides);
    if (dl_json_parse("input", text, size, &arena, &doc, &err) == DL_OK &&
        dl_json_set(doc, &rich_schema, overrides, count, &err) == DL_OK &&
        dl_json_load(doc, &rich_schema, &arena, &rich, &err) == DL_OK) {
        check_written(&rich, &arena);
    } else {
        if (err.code == DL_OK || err.message[0] == '\0') abort(); /* a failure says why */
        dl_err_text(&err, "fuzz", message, sizeof message);
        for (const char *c = message; *c != '\0'; c++)
            if ((unsigned char)*c < 0x20) abort();
        if (doc != NULL)
            dl_json_fail(doc, count > 0 ? overrides[0].key : "items[0].name", &err, "x");
    }
    dl_arena_free(&arena);
    return 0;
}
