/* run_json.c - a JSON object as arguments: members of objects joined by dots, elements of a list
 * one a line. */
#include <string.h>

#include "import/run/imported_run.h"
#include "model/core/json_node.h"

struct reader {
    const struct dl_json *document;
    struct dl_arguments *out;
    struct dl_err *err;
};

/* A scalar as text; NULL: a null, or what is "auto" for a later program to fill in. */
static const char *text_of(struct dl_arena *arena, const struct dl_json_node *n) {
    char number[DL_NUMBER_TEXT];
    switch (n->kind) {
    case DL_JSON_BOOL: return n->boolean ? "true" : "false";
    case DL_JSON_STRING: return strcmp(n->string, "auto") == 0 ? NULL : n->string;
    case DL_JSON_NUMBER: dl_number_text(n->number, number); return dl_arena_strdup(arena, number);
    default: return NULL;
    }
}

static enum dl_code add(struct reader *r, const char *path, const struct dl_json_node *n,
                        int depth) {
    struct dl_arena *arena = r->out->arena;
    struct dl_text list = {.arena = arena};
    int line = 1, col = 1, number = 0;
    if (n->place != DL_NO_PLACE)
        dl_json_position(r->document->text, r->document->length, n->place, &line, &col);
    if (depth > 32) return dl_fail_at(r->err, r->out->path, line, col, path, "deeper than is read");
    if (n->kind != DL_JSON_OBJECT && n->kind != DL_JSON_ARRAY) {
        const char *text = text_of(arena, n);
        return text == NULL ? DL_OK : dl_arguments_add(r->out, path, text, line, r->err);
    }
    for (const struct dl_json_node *e = n->child; e != NULL; e = e->next, number++) {
        const char *text = n->kind == DL_JSON_ARRAY ? text_of(arena, e) : NULL;
        if (text != NULL) {
            dl_text_printf(&list, "%s\n", text);
            continue;
        }
        const char *key = e->key != NULL ? e->key : dl_arena_printf(arena, "%d", number);
        DL_TRY(add(r, dl_arena_printf(arena, "%s%s%s", path, path[0] != '\0' ? "." : "", key), e,
                   depth + 1));
    }
    return n->kind == DL_JSON_OBJECT || path[0] == '\0'
               ? DL_OK
               : dl_arguments_add(r->out, path, dl_text_string(&list), line, r->err);
}

enum dl_code dl_run_add_json(const char *name, const char *text, size_t length,
                             struct dl_arguments *out, struct dl_err *err) {
    struct dl_json *document;
    DL_TRY(dl_json_parse(name, text, length, out->arena, &document, err));
    struct reader r = {.document = document, .out = out, .err = err};
    return add(&r, "", document->root, 0);
}

enum dl_code dl_run_read_json(const struct dl_run_source *source, struct dl_run *run) {
    return dl_run_add_json(source->path, source->text, source->length, &run->arguments, run->err);
}
