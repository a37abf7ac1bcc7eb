/* json.c - documents: json_scan.c makes the tree with the position of each value; cJSON decodes
 * strings with escapes. The only file that includes cJSON. */
#include "model/core/json.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/hash.h"
#include "model/core/json_node.h"

enum { FEW_MEMBERS = 16, MANY_MEMBERS = 64 };

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

static enum dl_code out_of_memory(struct dl_err *err, const char *name) {
    return dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", name);
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

/* Whether all keys differ; false also where the table is too small to decide. */
static bool keys_differ(const struct dl_json_node *object) {
    enum { SLOTS = 2 * MANY_MEMBERS };
    const char *slots[SLOTS];

    if (object->child_count < 2) return true;
    if (object->child_count > MANY_MEMBERS) return false;
    memset(slots, 0, sizeof slots);
    for (const struct dl_json_node *node = object->child; node != NULL; node = node->next) {
        unsigned at = 0;
        for (const char *c = node->key; *c != '\0'; c++) at = 33 * at + (unsigned char)*c;
        for (at = (at ^ at >> 7) % SLOTS; slots[at] != NULL; at = (at + 1) % SLOTS)
            if (strcmp(slots[at], node->key) == 0) return false;
        slots[at] = node->key;
    }
    return true;
}

enum dl_code dl_json_check_keys(const struct dl_json *doc, const struct dl_json_node *object,
                                const struct dl_json_path *path, struct dl_err *err) {
    size_t count = (size_t)object->child_count, i = 0;
    const struct dl_json_node **sorted;
    enum dl_code code = DL_OK;

    if (keys_differ(object)) return DL_OK;
    if (count <= FEW_MEMBERS) {
        for (const struct dl_json_node *a = object->child; a != NULL; a = a->next)
            for (const struct dl_json_node *b = a->next; b != NULL; b = b->next)
                if (strcmp(a->key, b->key) == 0) return duplicate(doc, a, b, path, err);
        return DL_OK;
    }
    sorted =
        malloc(count * sizeof *sorted); /* a file may have a million keys: avoid quadratic time */
    if (sorted == NULL) return out_of_memory(err, doc->name);
    for (const struct dl_json_node *node = object->child; node != NULL; node = node->next)
        sorted[i++] = node;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (i = 1; i < count && code == DL_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            code = duplicate(doc, sorted[i - 1], sorted[i], path, err);
    free(sorted);
    return code;
}

const char *dl_json_decode(const struct dl_json *doc, const char *text, size_t length) {
    cJSON *item = cJSON_ParseWithLength(text, length);
    const char *string = item != NULL ? dl_arena_strdup(doc->arena, item->valuestring) : NULL;
    cJSON_Delete(item);
    return string;
}

size_t dl_json_element_place(const struct dl_json *doc, const struct dl_json_node *array,
                             int index) {
    size_t at = dl_json_skip_space(doc->text, doc->length, array->place + 1);

    while (index-- > 0) {
        at = dl_json_skip_space(doc->text, doc->length,
                                dl_json_skip_scalar(doc->text, doc->length, at));
        at = dl_json_skip_space(doc->text, doc->length, at + 1); /* behind the comma */
    }
    return at;
}

/* `copied`: the text lives as long as the document, and ends with a NUL. */
static enum dl_code parse(const char *name, const char *text, size_t length, bool copied,
                          bool packed, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    struct dl_json *doc;

    if (length > DL_JSON_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_JSON_BYTES);
    doc = dl_arena_alloc(arena, 1, sizeof *doc);
    doc->arena = arena;
    doc->length = length;
    doc->packed = packed;
    doc->name = dl_arena_strdup(arena, name);
    doc->text = copied ? text : dl_arena_strndup(arena, text, length);
    DL_TRY(dl_json_scan(doc, err));
    *out = doc;
    return DL_OK;
}

enum dl_code dl_json_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    return parse(name, text, length, false, false, arena, out, err);
}

static enum dl_code read(const char *path, bool packed, struct dl_arena *arena,
                         struct dl_json **out, struct dl_err *err) {
    char *text;
    size_t length;

    DL_TRY(dl_file_read(path, DL_JSON_BYTES, arena, &text, &length, err));
    return parse(path, text, length, true, packed, arena, out, err);
}

enum dl_code dl_json_read(const char *path, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    return read(path, false, arena, out, err);
}

enum dl_code dl_json_read_packed(const char *path, struct dl_arena *arena, struct dl_json **out,
                                 struct dl_err *err) {
    return read(path, true, arena, out, err);
}

const char *dl_json_name(const struct dl_json *doc) { return doc->name; }

bool dl_json_has(const struct dl_json *doc, const char *key) {
    return dl_json_member(doc->root, key, strlen(key)) != NULL;
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
