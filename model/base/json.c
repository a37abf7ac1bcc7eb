/* json.c - documents: reading them, and finding places in them. */
#include "model/base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json_node.h"

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

/* text: in the arena, with a 0 byte behind it. */
static enum dl_code parse_own(const char *name, const char *text, size_t length,
                              struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    struct dl_json *doc = dl_arena_alloc(arena, 1, sizeof *doc);

    if (doc == NULL || text == NULL) return out_of_memory(err, name);
    *doc = (struct dl_json){.arena = arena,
                            .length = length,
                            .text = text,
                            .name = dl_arena_strdup(arena, name),
                            .root = dl_arena_alloc(arena, 1, sizeof *doc->root)};
    if (doc->name == NULL || doc->root == NULL) return out_of_memory(err, name);
    DL_TRY(dl_json_scan(doc, err));
    *out = doc;
    return DL_OK;
}

enum dl_code dl_json_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    if (length > DL_JSON_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_JSON_BYTES);
    return parse_own(name, dl_arena_strndup(arena, text, length), length, arena, out, err);
}

enum dl_code dl_json_read(const char *path, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    char *text;
    size_t length;

    DL_TRY(dl_file_read(path, DL_JSON_BYTES, arena, &text, &length, err));
    return parse_own(path, text, length, arena, out, err);
}

const char *dl_json_name(const struct dl_json *doc) { return doc->name; }

uint64_t dl_fnv1a(const char *text, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u; /* offset basis and prime of 64 bits */

    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

uint64_t dl_json_hash(const struct dl_json *doc) { return dl_fnv1a(doc->text, doc->length); }

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
