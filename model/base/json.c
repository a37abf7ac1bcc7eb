/* json.c - documents: cJSON decodes the text, a parallel walk over the scanned text assigns each
 * value its position. The only file that includes cJSON; cJSON's tree lives only during
 * dl_json_parse. */
#include "model/base/json.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/hash.h"
#include "model/base/json_node.h"

enum { FEW_MEMBERS = 16 };

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

struct convert {
    struct dl_json *doc;
    size_t at;
    struct dl_err *err;
};

static enum dl_code out_of_memory(struct dl_err *err, const char *name) {
    return dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", name);
}

static int by_key(const void *a, const void *b) {
    const struct dl_json_node *const *left = a, *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static enum dl_code duplicate(struct convert *c, const struct dl_json_node *a,
                              const struct dl_json_node *b, const struct dl_json_path *path) {
    const struct dl_json_node *second = a->key_place > b->key_place ? a : b;
    const struct dl_json_path part = {path, second->key, 0};
    char key[192];
    int line, col;

    dl_json_path_text(&part, key, sizeof key);
    dl_json_position(c->doc->text, c->doc->length, second->key_place, &line, &col);
    return dl_fail_at(c->err, c->doc->name, line, col, key,
                      "expected each key once in an object, got it twice");
}

static enum dl_code check_duplicates(struct convert *c, const struct dl_json_node *object,
                                     const struct dl_json_path *path) {
    size_t count = (size_t)object->child_count, i = 0;
    const struct dl_json_node **sorted;
    enum dl_code code = DL_OK;

    if (count <= FEW_MEMBERS) {
        for (const struct dl_json_node *a = object->child; a != NULL; a = a->next)
            for (const struct dl_json_node *b = a->next; b != NULL; b = b->next)
                if (strcmp(a->key, b->key) == 0) return duplicate(c, a, b, path);
        return DL_OK;
    }
    sorted =
        malloc(count * sizeof *sorted); /* a file may have a million keys: avoid quadratic time */
    if (sorted == NULL) return out_of_memory(c->err, c->doc->name);
    for (const struct dl_json_node *node = object->child; node != NULL; node = node->next)
        sorted[i++] = node;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (i = 1; i < count && code == DL_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            code = duplicate(c, sorted[i - 1], sorted[i], path);
    free(sorted);
    return code;
}

static enum dl_code convert(struct convert *c, const cJSON *item, const struct dl_json_path *path,
                            struct dl_json_node *node);

/* Steps over the brackets, commas and keys that the text is known to have. */
static enum dl_code convert_children(struct convert *c, const cJSON *item,
                                     const struct dl_json_path *path, struct dl_json_node *node) {
    const char *text = c->doc->text;
    const size_t length = c->doc->length;
    struct dl_json_node **link = &node->child;

    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        struct dl_json_node *made = dl_arena_alloc(c->doc->arena, 1, sizeof *made);
        struct dl_json_path part = {path, NULL, node->child_count};

        if (made == NULL) return out_of_memory(c->err, c->doc->name);
        made->key_place = DL_NO_PLACE;
        c->at = dl_json_skip_space(text, length, c->at + 1); /* behind '{', '[' or ',' */
        if (node->kind == DL_JSON_OBJECT) {
            made->key_place = c->at;
            made->key = dl_arena_strdup(c->doc->arena, child->string);
            if (made->key == NULL) return out_of_memory(c->err, c->doc->name);
            c->at = dl_json_skip_space(text, length, dl_json_skip_scalar(text, length, c->at)) + 1;
            part.key = made->key;
        }
        DL_TRY(convert(c, child, &part, made));
        c->at = dl_json_skip_space(text, length, c->at);
        *link = made;
        link = &made->next;
        node->child_count++;
    }
    if (node->child_count == 0) c->at = dl_json_skip_space(text, length, c->at + 1);
    c->at++; /* the closing bracket */
    return node->kind == DL_JSON_OBJECT ? check_duplicates(c, node, path) : DL_OK;
}

static enum dl_code convert(struct convert *c, const cJSON *item, const struct dl_json_path *path,
                            struct dl_json_node *node) {
    c->at = dl_json_skip_space(c->doc->text, c->doc->length, c->at);
    node->place = c->at;
    if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
        node->kind = cJSON_IsObject(item) ? DL_JSON_OBJECT : DL_JSON_ARRAY;
        return convert_children(c, item, path, node);
    }
    c->at = dl_json_skip_scalar(c->doc->text, c->doc->length, c->at);
    if (cJSON_IsNumber(item)) {
        node->kind = DL_JSON_NUMBER;
        node->number = item->valuedouble;
        if (!isfinite(node->number)) {
            char key[192];
            int line, col;

            dl_json_path_text(path, key, sizeof key);
            dl_json_position(c->doc->text, c->doc->length, node->place, &line, &col);
            return dl_fail_at(c->err, c->doc->name, line, col, key,
                              "expected a number within the range of a double");
        }
    } else if (cJSON_IsString(item)) {
        node->kind = DL_JSON_STRING;
        node->string = dl_arena_strdup(c->doc->arena, item->valuestring);
        if (node->string == NULL) return out_of_memory(c->err, c->doc->name);
    } else if (cJSON_IsBool(item)) {
        node->kind = DL_JSON_BOOL;
        node->boolean = cJSON_IsTrue(item);
    } else {
        node->kind = DL_JSON_NULL;
    }
    return DL_OK;
}

enum dl_code dl_json_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_json **out, struct dl_err *err) {
    const struct dl_json_path root_path = {NULL, NULL, 0};
    struct dl_json *doc;
    struct convert c;
    cJSON *tree;
    enum dl_code code;

    if (length > DL_JSON_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_JSON_BYTES);
    doc = dl_arena_alloc(arena, 1, sizeof *doc);
    c = (struct convert){.doc = doc, .err = err};
    DL_TRY(dl_json_scan(name, text, length, &c.at, err));
    if (doc == NULL) return out_of_memory(err, name);
    doc->arena = arena;
    doc->length = length;
    doc->name = dl_arena_strdup(arena, name);
    doc->text = dl_arena_strndup(arena, text, length);
    doc->root = dl_arena_alloc(arena, 1, sizeof *doc->root);
    if (doc->name == NULL || doc->text == NULL || doc->root == NULL)
        return out_of_memory(err, name);
    doc->root->key_place = DL_NO_PLACE;
    /* The scan has accepted the text, so a refusal can only be a lack of memory. */
    tree = cJSON_ParseWithLengthOpts(text + c.at, length - c.at, NULL, false);
    if (tree == NULL) return out_of_memory(err, name);
    code = convert(&c, tree, &root_path, doc->root);
    cJSON_Delete(tree);
    if (code == DL_OK) *out = doc;
    return code;
}

enum dl_code dl_json_read(const char *path, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    char *text;
    size_t length;

    DL_TRY(dl_file_read(path, DL_JSON_BYTES, arena, &text, &length, err));
    return dl_json_parse(path, text, length, arena, out, err);
}

const char *dl_json_name(const struct dl_json *doc) { return doc->name; }

uint64_t dl_json_hash(const struct dl_json *doc) {
    return dl_hash_bytes(DL_HASH_START, doc->text, doc->length);
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
