/* json.c - documents: one walk over the scanned text makes the tree with the position of each
 * value; cJSON decodes strings with escapes. The only file that includes cJSON. */
#include "model/base/json.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/decimal.h"
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

static enum dl_code convert(struct convert *c, const struct dl_json_path *path,
                            struct dl_json_node *node);

/* The string at `at`, which ends before `end`; the scan has accepted it. cJSON decodes escapes.
 * NULL: out of memory. */
static const char *decode_string(struct convert *c, size_t at, size_t end) {
    const char *text = c->doc->text + at;
    const size_t length = end - at;

    if (memchr(text, '\\', length) == NULL)
        return dl_arena_strndup(c->doc->arena, text + 1, length - 2);
    cJSON *item = cJSON_ParseWithLength(text, length);
    const char *string = item != NULL ? dl_arena_strdup(c->doc->arena, item->valuestring) : NULL;
    cJSON_Delete(item);
    return string;
}

static enum dl_code take_string(struct convert *c, const char **out) {
    const size_t end = dl_json_skip_scalar(c->doc->text, c->doc->length, c->at);

    *out = decode_string(c, c->at, end);
    c->at = end;
    return *out != NULL ? DL_OK : out_of_memory(c->err, c->doc->name);
}

static void skip_space(struct convert *c) {
    c->at = dl_json_skip_space(c->doc->text, c->doc->length, c->at);
}

/* An array of numbers alone, without a node for each. false: it is something else, or has a number
 * beyond doubles, or memory is exhausted; then nodes find that out. */
static bool pack_numbers(struct convert *c, struct dl_json_node *node) {
    const char *text = c->doc->text;
    size_t at = dl_json_skip_space(text, c->doc->length, c->at + 1), most = 1;
    double *numbers;
    int count = 0;

    if (text[at] != '-' && (text[at] < '0' || text[at] > '9')) return false;
    for (size_t i = at; text[i] != ']'; i++) most += text[i] == ',';
    numbers = dl_arena_alloc(c->doc->arena, most, sizeof *numbers);
    if (numbers == NULL) return false;
    for (;;) {
        const char *end;

        if (text[at] != '-' && (text[at] < '0' || text[at] > '9')) return false;
        numbers[count] = dl_decimal(text + at, &end);
        if (!isfinite(numbers[count++])) return false;
        at = dl_json_skip_space(text, c->doc->length, (size_t)(end - text));
        if (text[at] == ']') break;
        at = dl_json_skip_space(text, c->doc->length, at + 1);
    }
    node->numbers = numbers;
    node->child_count = count;
    c->at = at + 1;
    return true;
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

static enum dl_code convert_children(struct convert *c, const struct dl_json_path *path,
                                     struct dl_json_node *node) {
    struct dl_json_node **link = &node->child;

    c->at++; /* the opening bracket */
    for (skip_space(c); c->doc->text[c->at] != ']' && c->doc->text[c->at] != '}'; skip_space(c)) {
        struct dl_json_node *made = dl_arena_alloc(c->doc->arena, 1, sizeof *made);
        struct dl_json_path part = {path, NULL, node->child_count};

        if (made == NULL) return out_of_memory(c->err, c->doc->name);
        made->key_place = DL_NO_PLACE;
        if (c->doc->text[c->at] == ',') {
            c->at++;
            skip_space(c);
        }
        if (node->kind == DL_JSON_OBJECT) {
            made->key_place = c->at;
            DL_TRY(take_string(c, &made->key));
            skip_space(c);
            c->at++; /* the colon */
            skip_space(c);
            part.key = made->key;
        }
        DL_TRY(convert(c, &part, made));
        *link = made;
        link = &made->next;
        node->child_count++;
    }
    c->at++; /* the closing bracket */
    return node->kind == DL_JSON_OBJECT ? check_duplicates(c, node, path) : DL_OK;
}

static enum dl_code convert_number(struct convert *c, const struct dl_json_path *path,
                                   struct dl_json_node *node) {
    const char *end;

    node->kind = DL_JSON_NUMBER;
    node->number = dl_decimal(c->doc->text + c->at, &end);
    c->at = (size_t)(end - c->doc->text);
    if (isfinite(node->number)) return DL_OK;
    char key[192];
    int line, col;

    dl_json_path_text(path, key, sizeof key);
    dl_json_position(c->doc->text, c->doc->length, node->place, &line, &col);
    return dl_fail_at(c->err, c->doc->name, line, col, key,
                      "expected a number within the range of a double");
}

/* The value that begins here; the scan has accepted it. */
static enum dl_code convert(struct convert *c, const struct dl_json_path *path,
                            struct dl_json_node *node) {
    const char first = c->doc->text[c->at];

    node->place = c->at;
    switch (first) {
    case '{':
    case '[':
        node->kind = first == '{' ? DL_JSON_OBJECT : DL_JSON_ARRAY;
        if (first == '[' && c->doc->packed && pack_numbers(c, node)) return DL_OK;
        return convert_children(c, path, node);
    case '"': node->kind = DL_JSON_STRING; return take_string(c, &node->string);
    case 't':
    case 'f':
    case 'n':
        node->kind = first == 'n' ? DL_JSON_NULL : DL_JSON_BOOL;
        node->boolean = first == 't';
        c->at += first == 'f' ? 5 : 4;
        return DL_OK;
    default: return convert_number(c, path, node);
    }
}

/* `copied`: the text lives as long as the document, and ends with a NUL. */
static enum dl_code parse(const char *name, const char *text, size_t length, bool copied,
                          bool packed, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err) {
    const struct dl_json_path root_path = {NULL, NULL, 0};
    struct dl_json *doc;
    struct convert c;

    if (length > DL_JSON_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_JSON_BYTES);
    doc = dl_arena_alloc(arena, 1, sizeof *doc);
    c = (struct convert){.doc = doc, .err = err};
    DL_TRY(dl_json_scan(name, text, length, &c.at, err));
    if (doc == NULL) return out_of_memory(err, name);
    doc->arena = arena;
    doc->length = length;
    doc->packed = packed;
    doc->name = dl_arena_strdup(arena, name);
    doc->text = copied ? text : dl_arena_strndup(arena, text, length);
    doc->root = dl_arena_alloc(arena, 1, sizeof *doc->root);
    if (doc->name == NULL || doc->text == NULL || doc->root == NULL)
        return out_of_memory(err, name);
    doc->root->key_place = DL_NO_PLACE;
    skip_space(&c);
    DL_TRY(convert(&c, &root_path, doc->root));
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
