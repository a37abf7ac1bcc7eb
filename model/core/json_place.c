/* json_place.c - position of a number in the text of a document, to change it and leave the rest of
 * the file as written. */
#include <string.h>

#include "model/core/json_node.h"
#include "model/core/text.h"

/* The element of an array whose member "name" has that text. */
static const struct dl_json_node *element(const struct dl_json_node *array, const char *part,
                                          size_t length) {
    for (const struct dl_json_node *e = array->child; e != NULL; e = e->next) {
        const struct dl_json_node *name =
            e->kind == DL_JSON_OBJECT ? dl_json_member(e, "name", 4) : NULL;
        if (name != NULL && name->kind == DL_JSON_STRING && strlen(name->string) == length &&
            memcmp(name->string, part, length) == 0)
            return e;
    }
    return NULL;
}

bool dl_json_number_at(const struct dl_json *doc, const char *const *parts, double *value,
                       size_t *begin, size_t *end) {
    const struct dl_json_node *node = doc->root;
    for (; *parts != NULL && node != NULL; parts++) {
        node = node->kind == DL_JSON_ARRAY ? element(node, *parts, strlen(*parts))
                                           : dl_json_member(node, *parts, strlen(*parts));
    }
    if (node == NULL || node->kind != DL_JSON_NUMBER || node->place == DL_NO_PLACE) return false;
    *value = node->number;
    *begin = node->place;
    *end = dl_json_skip_scalar(doc->text, doc->length, node->place);
    return true;
}

const char *dl_json_with_number(const struct dl_json *doc, const char *const *parts, double value,
                                struct dl_arena *arena) {
    char number[DL_NUMBER_TEXT];
    double old;
    size_t begin, end;
    if (!dl_json_number_at(doc, parts, &old, &begin, &end)) return NULL;
    dl_number_short(value, number);
    struct dl_text text = {.arena = arena};
    dl_text_add_bytes(&text, doc->text, begin);
    dl_text_add(&text, number);
    dl_text_add_bytes(&text, doc->text + end, doc->length - end);
    return dl_text_string(&text);
}
