/* fuzz_json_differ.c - libFuzzer entry: the program's JSON loader against jansson, which was
 * written apart from it. Both take the same texts, but for limits that the program sets on purpose,
 * and read the same values from them. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

static void demand(bool truth) {
    if (!truth) abort();
}

static void same(const struct dl_json_node *ours, const json_t *theirs) {
    size_t index = 0;
    switch (ours->kind) {
    case DL_JSON_NULL: demand(json_is_null(theirs)); break;
    case DL_JSON_BOOL:
        demand(json_is_boolean(theirs) && ours->boolean == json_is_true(theirs));
        break;
    case DL_JSON_NUMBER:
        demand(json_is_real(theirs) && ours->number == json_real_value(theirs));
        break;
    case DL_JSON_STRING:
        demand(json_is_string(theirs) && strlen(ours->string) == json_string_length(theirs) &&
               strcmp(ours->string, json_string_value(theirs)) == 0);
        break;
    case DL_JSON_ARRAY:
        demand(json_is_array(theirs) && (size_t)ours->child_count == json_array_size(theirs));
        for (const struct dl_json_node *c = ours->child; c != NULL; c = c->next)
            same(c, json_array_get(theirs, index++));
        break;
    case DL_JSON_OBJECT:
        demand(json_is_object(theirs) && (size_t)ours->child_count == json_object_size(theirs));
        for (const struct dl_json_node *c = ours->child; c != NULL; c = c->next) {
            const json_t *member = json_object_get(theirs, c->key);
            demand(member != NULL);
            same(c, member);
        }
        break;
    }
}

/* What the program refuses on purpose, and jansson takes. */
static bool is_limit(const struct dl_err *err) {
    static const char *const limits[] = {"nesting of at most", "no \\u0000 in a string",
                                         "a number of at most 60"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (strstr(err->message, limits[i]) != NULL) return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc = NULL;
    const char *text = (const char *)data;
    json_error_t error;
    if (memchr(text, 0, size) != NULL)
        return 0; /* outside of strings jansson takes it for the end */
    const enum dl_code code = dl_json_parse("input", text, size, &arena, &doc, &err);
    const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    json_t *theirs = json_loadb(text + mark, size - mark,
                                JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL |
                                    JSON_DECODE_INT_AS_REAL,
                                &error);
    if (code == DL_OK) {
        demand(theirs != NULL);
        same(doc->root, theirs);
    } else {
        demand(theirs == NULL || is_limit(&err));
    }
    json_decref(theirs);
    dl_arena_free(&arena);
    return 0;
}
