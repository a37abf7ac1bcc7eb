/* json.c - documents: json_scan.c makes the tree, with the position of each value. */
#include "model/core/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/json_node.h"

enum { FEW_MEMBERS = 64 };

void dl_json_path_text(const struct dl_json_path *path, char *out, size_t out_size) {
    const struct dl_json_path *parts[DL_JSON_DEPTH + 2] = {NULL};
    size_t count = 0, length = 0;

    out[0] = '\0';
    for (; path != NULL && path->up != NULL && count < sizeof parts / sizeof parts[0];
         path = path->up)
        parts[count++] = path;
    while (count-- > 0 && length < out_size) {
        const struct dl_json_path *part = parts[count];
        int wrote = part->key == NULL
                        ? snprintf(out + length, out_size - length, "[%d]", part->index)
                        : snprintf(out + length, out_size - length, "%s%s", length > 0 ? "." : "",
                                   part->key);

        if (wrote < 0) break;
        length += (size_t)wrote;
    }
}

struct dl_json_node *dl_json_member(const struct dl_json_node *object, const char *key,
                                    size_t key_length) {
    if (object->kind != DL_JSON_OBJECT) return NULL;
    for (struct dl_json_node *node = object->child; node != NULL; node = node->next)
        if (strncmp(node->key, key, key_length) == 0 && node->key[key_length] == '\0') return node;
    return NULL;
}

const struct dl_json_node *dl_json_get(const struct dl_json_node *object, const char *key) {
    return object != NULL ? dl_json_member(object, key, strlen(key)) : NULL;
}

const char *dl_json_string_of(const struct dl_json_node *node) {
    return node != NULL && node->kind == DL_JSON_STRING ? node->string : NULL;
}

double dl_json_number_of(const struct dl_json_node *node) {
    return node != NULL && node->kind == DL_JSON_NUMBER ? node->number : NAN;
}

static int by_key(const void *a, const void *b) {
    const struct dl_json_node *const *left = a, *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static enum dl_code duplicate(const struct dl_json *doc, const struct dl_json_node *a,
                              const struct dl_json_node *b, const struct dl_json_path *path,
                              struct dl_err *err) {
    const struct dl_json_node *second = a->key_place > b->key_place ? a : b;
    const struct dl_json_path part = {path, second->key, 0};
    char key[192];
    int line, col;

    dl_json_path_text(&part, key, sizeof key);
    dl_json_position(doc->text, doc->length, second->key_place, &line, &col);
    return dl_fail_at(err, doc->name, line, col, key,
                      "expected each key once in an object, got it twice");
}

enum dl_code dl_json_check_keys(const struct dl_json *doc, const struct dl_json_node *object,
                                const struct dl_json_path *path, struct dl_err *err) {
    const size_t count = (size_t)object->child_count;
    const struct dl_json_node *few[FEW_MEMBERS], **sorted = few;
    enum dl_code code = DL_OK;
    size_t i = 0;

    if (count < 2) return DL_OK;
    if (count > FEW_MEMBERS) sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL) return dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", doc->name);
    for (const struct dl_json_node *node = object->child; node != NULL; node = node->next)
        sorted[i++] = node;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (i = 1; i < count && code == DL_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            code = duplicate(doc, sorted[i - 1], sorted[i], path, err);
    if (sorted != few) free(sorted);
    return code;
}

/* The text lives as long as the document, and ends with a NUL. */
static enum dl_code parse(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_json **out, struct dl_err *err) {
    if (length > DL_JSON_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_JSON_BYTES);
    struct dl_json *doc = dl_arena_alloc(arena, 1, sizeof *doc);
    doc->arena = arena;
    doc->length = length;
    doc->name = dl_arena_strdup(arena, name);
    doc->text = text;
    DL_TRY(dl_json_scan(doc, err));
    *out = doc;
    return DL_OK;
}

enum dl_code dl_json_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    const bool fits = length <= DL_JSON_BYTES; /* else it is refused, and not copied */
    return parse(name, fits ? dl_arena_strndup(arena, text, length) : text, length, arena, out,
                 err);
}

enum dl_code dl_json_read(const char *path, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    char *text;
    size_t length;

    DL_TRY(dl_file_read(path, DL_JSON_BYTES, arena, &text, &length, err));
    return parse(path, text, length, arena, out, err);
}

const char *dl_json_name(const struct dl_json *doc) { return doc->name; }

bool dl_json_has(const struct dl_json *doc, const char *key) {
    return dl_json_member(doc->root, key, strlen(key)) != NULL;
}

const char *dl_json_string(const struct dl_json *doc, const char *key) {
    const struct dl_json_node *node =
        doc->root->kind == DL_JSON_OBJECT ? dl_json_member(doc->root, key, strlen(key)) : NULL;
    return node != NULL && node->kind == DL_JSON_STRING ? node->string : NULL;
}

/* The node that a path "layers[3].kernel" (or "layers.3.kernel") leads to, or the last one on the
 * way. */
static const struct dl_json_node *locate(const struct dl_json_node *node, const char *path) {
    while (*path != '\0') {
        size_t length = strcspn(path, ".[]");
        const struct dl_json_node *next = NULL;

        if (length == 0) {
            path++;
            continue;
        }
        if (node->kind == DL_JSON_OBJECT) {
            next = dl_json_member(node, path, length);
            /* keys of maps may have dots */
            if (next == NULL) next = dl_json_member(node, path, strlen(path));
        } else if (node->kind == DL_JSON_ARRAY && strspn(path, "0123456789") == length) {
            long index = strtol(path, NULL, 10);

            for (next = node->child; next != NULL && index > 0; index--) next = next->next;
        }
        if (next == NULL) break;
        node = next;
        path += length;
    }
    return node;
}

enum dl_code dl_json_fail(const struct dl_json *doc, const char *path, struct dl_err *err,
                          const char *format, ...) {
    char message[512];
    va_list arguments;
    const struct dl_json_node *node = locate(doc->root, path != NULL ? path : "");
    int line, col;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dl_json_position(doc->text, doc->length, node->place, &line, &col);
    return dl_fail_at(err, doc->name, line, col, path, "%s", message);
}
