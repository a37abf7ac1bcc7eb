/* json_load.c - from a document to a struct, by its field table.
 * Checks each member alone; the owner of the struct checks conditions between members.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/core/json_node.h"

/* Missing keys: the fault of the first one, and the paths of the others. */
struct missing {
    struct dl_err first;
    int count;
    size_t length;
    char others[400];
};

struct load {
    const struct dl_json *doc;
    struct dl_arena *arena;
    struct dl_err *err;
    struct missing *missing;
};

static enum dl_code load_object(const struct load *l, const struct dl_json_node *node,
                                const struct dl_schema *schema, const struct dl_json_path *path,
                                char *out);

static enum dl_code fault(const struct load *l, size_t place, const struct dl_json_path *path,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

static enum dl_code fault(const struct load *l, size_t place, const struct dl_json_path *path,
                          const char *format, ...) {
    char key[192], message[700];
    va_list arguments;
    int line, col;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dl_json_path_text(path, key, sizeof key);
    dl_json_position(l->doc->text, l->doc->length, place, &line, &col);
    return dl_fail_at(l->err, l->doc->name, line, col, key, "%s", message);
}

/* Notes a missing key; the load goes on, so that one error names all. */
static void add_missing(const struct load *l, size_t place, const struct dl_json_path *path,
                        const char *what) {
    struct missing *m = l->missing;
    char key[192];

    if (m->count++ == 0) {
        const struct load first = {l->doc, l->arena, &m->first, m};
        (void)fault(&first, place, path, "required, missing: %s", what);
        return;
    }
    dl_json_path_text(path, key, sizeof key);
    const int more = snprintf(m->others + m->length, sizeof m->others - m->length, "%s%s",
                              m->length > 0 ? ", " : "", key);
    if (m->length + (size_t)more < sizeof m->others)
        m->length += (size_t)more;
    else
        m->others[m->length] = '\0'; /* no part of a key */
}

/* The value as the message's "got ...", long strings cut between characters. */
static void got_text(const struct dl_json_node *node, char *out, size_t out_size) {
    char number[DL_NUMBER_TEXT];
    size_t length = 0;

    switch (node->kind) {
    case DL_JSON_NULL:
        snprintf(out, out_size, "null (leave the key out when the value is unknown)");
        break;
    case DL_JSON_BOOL: snprintf(out, out_size, "%s", node->boolean ? "true" : "false"); break;
    case DL_JSON_ARRAY: snprintf(out, out_size, "an array"); break;
    case DL_JSON_OBJECT: snprintf(out, out_size, "an object"); break;
    case DL_JSON_NUMBER:
        dl_number_short(node->number, number);
        snprintf(out, out_size, "%s", number);
        break;
    case DL_JSON_STRING:
        while (length < 60 && node->string[length] != '\0') {
            size_t bytes = dl_utf8_bytes(node->string + length, strlen(node->string + length));

            length += bytes > 0 ? bytes : 1;
        }
        snprintf(out, out_size, "\"%.*s%s\"", (int)length, node->string,
                 node->string[length] != '\0' ? "..." : "");
        break;
    }
}

static enum dl_code wrong_value(const struct load *l, const struct dl_json_node *node,
                                const struct dl_field *field, const struct dl_json_path *path) {
    char expected[400], got[160];

    dl_field_expected(field, expected, sizeof expected);
    got_text(node, got, sizeof got);
    return fault(l, node->place, path, "expected %s, got %s", expected, got);
}

/* Text of a number or string, or a boolean where the field takes one. */
static enum dl_code expr_text(const struct load *l, const struct dl_json_node *node,
                              const struct dl_field *field, const struct dl_json_path *path,
                              const char **out) {
    char number[DL_NUMBER_TEXT];

    if (node->kind == DL_JSON_STRING &&
        (node->string[0] != '\0' || field->type == DL_FIELD_STRINGS)) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an element of a list made for all
         * children */
        *out = dl_arena_strdup(l->arena, node->string);
    } else if (node->kind == DL_JSON_BOOL && field->or_bool) {
        *out = node->boolean ? "true" : "false";
    } else if (node->kind == DL_JSON_NUMBER && field->type != DL_FIELD_STRINGS) {
        dl_number_text(node->number, number);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the same */
        *out = dl_arena_strdup(l->arena, number);
    } else {
        return wrong_value(l, node, field, path);
    }
    return DL_OK;
}

static enum dl_code load_choice(const struct load *l, const struct dl_json_node *node,
                                const struct dl_field *field, const struct dl_json_path *path,
                                int *out) {
    char expected[400];
    const char *near;

    if (node->kind != DL_JSON_STRING) return wrong_value(l, node, field, path);
    *out = dl_field_choice(field, node->string);
    if (*out >= 0) return DL_OK;
    near = dl_suggest(node->string, field->choices);
    if (near == NULL) return wrong_value(l, node, field, path);
    dl_field_expected(field, expected, sizeof expected);
    return fault(l, node->place, path, "expected %s, got \"%.60s\"; did you mean %s?", expected,
                 node->string, near);
}

static enum dl_code load_numbers(const struct load *l, const struct dl_json_node *node,
                                 const struct dl_field *field, const struct dl_json_path *path,
                                 char *out) {
    double *numbers = NULL;
    int count = 0;

    if (node->kind != DL_JSON_ARRAY) return wrong_value(l, node, field, path);
    if (node->child_count > 0)
        numbers = dl_arena_alloc(l->arena, (size_t)node->child_count, sizeof *numbers);
    for (const struct dl_json_node *child = node->child; child != NULL; child = child->next) {
        const struct dl_json_path part = {path, NULL, count};
        struct dl_field element = *field;

        element.type = DL_FIELD_NUMBER; /* so that the message speaks of one number */
        if (child->kind != DL_JSON_NUMBER || !dl_field_in_range(field, child->number))
            return wrong_value(l, child, &element, &part);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): child_count counts the children */
        numbers[count++] = child->number;
    }
    memcpy(out + field->offset, &numbers, sizeof numbers);
    memcpy(out + field->count_offset, &count, sizeof count);
    return DL_OK;
}

/* EXPRS and STRINGS: an array, or one alone. */
static enum dl_code load_texts(const struct load *l, const struct dl_json_node *node,
                               const struct dl_field *field, const struct dl_json_path *path,
                               char *out) {
    const bool many = node->kind == DL_JSON_ARRAY;
    const char **texts = NULL;
    int count = many ? node->child_count : 1, i = 0;

    if (count > 0) texts = dl_arena_alloc(l->arena, (size_t)count, sizeof *texts);
    if (many) {
        for (const struct dl_json_node *child = node->child; child != NULL;
             child = child->next, i++) {
            const struct dl_json_path part = {path, NULL, i};

            DL_TRY(expr_text(l, child, field, &part, &texts[i]));
        }
    } else {
        DL_TRY(expr_text(l, node, field, path, &texts[0]));
    }
    memcpy(out + field->offset, &texts, sizeof texts);
    memcpy(out + field->count_offset, &count, sizeof count);
    return DL_OK;
}

static enum dl_code load_list(const struct load *l, const struct dl_json_node *node,
                              const struct dl_field *field, const struct dl_json_path *path,
                              char *out) {
    char *objects = NULL;
    int count = 0;

    if (node->kind != DL_JSON_ARRAY) return wrong_value(l, node, field, path);
    if (node->child_count > 0)
        objects = dl_arena_alloc(l->arena, (size_t)node->child_count, field->child->size);
    for (const struct dl_json_node *child = node->child; child != NULL; child = child->next) {
        const struct dl_json_path part = {path, NULL, count};

        DL_TRY(load_object(l, child, field->child, &part,
                           objects + (size_t)count * field->child->size));
        count++;
    }
    memcpy(out + field->offset, &objects, sizeof objects);
    memcpy(out + field->count_offset, &count, sizeof count);
    return DL_OK;
}

static enum dl_code load_map(const struct load *l, const struct dl_json_node *node,
                             const struct dl_field *field, const struct dl_json_path *path,
                             char *out) {
    struct dl_map_entry *entries = NULL;
    char number[DL_NUMBER_TEXT];
    int count = 0;

    if (node->kind != DL_JSON_OBJECT) return wrong_value(l, node, field, path);
    if (node->child_count > 0)
        entries = dl_arena_alloc(l->arena, (size_t)node->child_count, sizeof *entries);
    for (const struct dl_json_node *child = node->child; child != NULL; child = child->next) {
        const struct dl_json_path part = {path, child->key, 0};
        struct dl_map_entry *entry = &entries[count++];
        char got[160];

        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): child_count counts the children */
        entry->number = (double)NAN;
        entry->key = dl_arena_strdup(l->arena, child->key);
        if (child->kind == DL_JSON_NUMBER) {
            dl_number_text(child->number, number);
            entry->number = child->number;
            entry->text = dl_arena_strdup(l->arena, number);
        } else if (child->kind == DL_JSON_BOOL) {
            entry->number = child->boolean ? 1 : 0;
            entry->text = dl_arena_strdup(l->arena, child->boolean ? "true" : "false");
        } else if (child->kind == DL_JSON_STRING) {
            entry->text = dl_arena_strdup(l->arena, child->string);
        } else {
            got_text(child, got, sizeof got);
            return fault(l, child->place, &part,
                         "expected a number, a string, true or false, got %s", got);
        }
    }
    memcpy(out + field->offset, &entries, sizeof entries);
    memcpy(out + field->count_offset, &count, sizeof count);
    return DL_OK;
}

static enum dl_code load_integer(const struct load *l, const struct dl_json_node *node,
                                 const struct dl_field *field, const struct dl_json_path *path,
                                 char *out) {
    int64_t value;

    /* Beyond 2^53 the text's digits are lost in a double. */
    if (node->kind != DL_JSON_NUMBER || node->number != floor(node->number) ||
        fabs(node->number) > 9007199254740992.0 || !dl_field_in_range(field, node->number))
        return wrong_value(l, node, field, path);
    value = (int64_t)node->number;
    memcpy(out + field->offset, &value, sizeof value);
    return DL_OK;
}

static enum dl_code load_field(const struct load *l, const struct dl_json_node *node,
                               const struct dl_field *field, const struct dl_json_path *path,
                               char *out) {
    const char *text;
    int choice = -1;

    switch (field->type) {
    case DL_FIELD_NUMBER:
        if (node->kind != DL_JSON_NUMBER || !dl_field_in_range(field, node->number))
            return wrong_value(l, node, field, path);
        memcpy(out + field->offset, &node->number, sizeof node->number);
        return DL_OK;
    case DL_FIELD_INTEGER: return load_integer(l, node, field, path, out);
    case DL_FIELD_BOOL:
        if (node->kind != DL_JSON_BOOL) return wrong_value(l, node, field, path);
        memcpy(out + field->offset, &node->boolean, sizeof node->boolean);
        return DL_OK;
    case DL_FIELD_STRING:
        if (node->kind != DL_JSON_STRING) return wrong_value(l, node, field, path);
        text = dl_arena_strdup(l->arena, node->string);
        memcpy(out + field->offset, &text, sizeof text);
        return DL_OK;
    case DL_FIELD_CHOICE:
        DL_TRY(load_choice(l, node, field, path, &choice));
        memcpy(out + field->offset, &choice, sizeof choice);
        return DL_OK;
    case DL_FIELD_EXPR:
        DL_TRY(expr_text(l, node, field, path, &text));
        memcpy(out + field->offset, &text, sizeof text);
        return DL_OK;
    case DL_FIELD_OBJECT:
        DL_TRY(load_object(l, node, field->child, path, out + field->offset));
        if (field->count_offset != 0)
            memcpy(out + field->count_offset, &(bool){true}, sizeof(bool));
        return DL_OK;
    case DL_FIELD_LIST: return load_list(l, node, field, path, out);
    case DL_FIELD_NUMBERS: return load_numbers(l, node, field, path, out);
    case DL_FIELD_EXPRS:
    case DL_FIELD_STRINGS: return load_texts(l, node, field, path, out);
    case DL_FIELD_MAP: return load_map(l, node, field, path, out);
    case DL_FIELD_END: break;
    }
    return DL_OK;
}

/* Absent values, or fallbacks. The memory is zeroed, so pointers, counts and flags are in order. */
static void set_absent(const struct dl_schema *schema, char *out) {
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        double number = f->has_fallback ? f->fallback : (double)NAN;
        /* a number's fallback need not fit into an integer */
        const bool whole = f->has_fallback && fabs(f->fallback) < 2147483647.0;
        int64_t integer = whole ? (int64_t)f->fallback : DL_ABSENT;
        int choice = whole ? (int)f->fallback : -1;
        bool boolean = f->has_fallback && f->fallback != 0;

        if (f->type == DL_FIELD_NUMBER)
            memcpy(out + f->offset, &number, sizeof number);
        else if (f->type == DL_FIELD_INTEGER)
            memcpy(out + f->offset, &integer, sizeof integer);
        else if (f->type == DL_FIELD_CHOICE)
            memcpy(out + f->offset, &choice, sizeof choice);
        else if (f->type == DL_FIELD_BOOL)
            memcpy(out + f->offset, &boolean, sizeof boolean);
        else if (f->type == DL_FIELD_OBJECT)
            set_absent(f->child, out + f->offset);
    }
}

static bool is_format(const struct dl_schema *schema, const char *name) {
    return strcmp(name, schema->name) == 0 ||
           (schema->alias != NULL && strcmp(name, schema->alias) == 0);
}

/* "format" and "version" of a file. */
static enum dl_code check_format(const struct load *l, const struct dl_json_node *node,
                                 const struct dl_schema *schema, const struct dl_json_path *path) {
    const struct dl_json_path format_path = {path, "format", 0},
                              version_path = {path, "version", 0};
    const struct dl_json_node *format = dl_json_member(node, "format", 6);
    const struct dl_json_node *version = dl_json_member(node, "version", 7);
    char got[160];

    if (format == NULL) {
        snprintf(got, sizeof got, "expected \"%s\"", schema->name);
        add_missing(l, node->place, &format_path, got);
    } else if (format->kind != DL_JSON_STRING || !is_format(schema, format->string)) {
        got_text(format, got, sizeof got);
        return fault(l, format->place, &format_path, "expected \"%s\", got %s", schema->name, got);
    }
    if (version == NULL) {
        add_missing(l, node->place, &version_path, "expected 1");
        return DL_OK;
    }
    if (version->kind == DL_JSON_NUMBER && version->number == 1) return DL_OK;
    got_text(version, got, sizeof got);
    return fault(l, version->place, &version_path, "expected 1, got %s", got);
}

static enum dl_code unknown_key(const struct load *l, const struct dl_json_node *node,
                                const struct dl_schema *schema, const struct dl_json_path *path) {
    const char **names;
    const char *near;
    size_t count = 0;

    for (const char *const *gone = schema->removed; gone != NULL && *gone != NULL; gone += 2) {
        if (strcmp(node->key, gone[0]) == 0)
            return fault(l, node->key_place, path, "no longer a key of %s: %s", schema->name,
                         gone[1]);
    }
    while (schema->fields[count].type != DL_FIELD_END) count++;
    names = dl_arena_alloc(l->arena, count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = schema->fields[i].key;
    near = dl_suggest(node->key, names);
    if (near != NULL) return fault(l, node->key_place, path, "unknown key; did you mean %s?", near);
    return fault(l, node->key_place, path, "unknown key in %s", schema->name);
}

/* The field of a member. Files have most members in the order of the fields: *next is where the
 * search begins, then what follows the field. NULL: there is none. */
static const struct dl_field *field_of(const struct dl_schema *schema, const char *key,
                                       const struct dl_field **next) {
    const struct dl_field *unused, *field = *next;

    while (field->type != DL_FIELD_END && (field->key[0] != key[0] || strcmp(field->key, key) != 0))
        field++;
    if (field->type == DL_FIELD_END)
        field = dl_schema_field(schema, key, strlen(key), false, &unused);
    if (field != NULL) *next = field + 1;
    return field;
}

static enum dl_code load_object(const struct load *l, const struct dl_json_node *node,
                                const struct dl_schema *schema, const struct dl_json_path *path,
                                char *out) {
    /* A file's object may also stand inside another (a device in a system), there with or without
     * its format. */
    const bool has_format =
        schema->top_level && (path->up == NULL || dl_json_member(node, "format", 6) != NULL);
    const struct dl_field *next = schema->fields;
    char got[160];

    if (node->kind != DL_JSON_OBJECT) {
        got_text(node, got, sizeof got);
        return fault(l, node->place, path, "expected an object (%s), got %s", schema->name, got);
    }
    if (has_format) DL_TRY(check_format(l, node, schema, path));
    set_absent(schema, out);
    for (const struct dl_json_node *member = node->child; member != NULL; member = member->next) {
        const struct dl_json_path part = {path, member->key, 0};
        const struct dl_field *field = field_of(schema, member->key, &next);

        if (field != NULL) {
            if (field->alias != NULL && strcmp(dl_field_key_in(node, field), member->key) != 0)
                return fault(l, member->key_place, &part,
                             "the former name of %s, which the file also has; remove one",
                             field->key);
            DL_TRY(load_field(l, member, field, &part, out));
        } else if (strcmp(member->key, "comment") == 0) {
            if (member->kind != DL_JSON_STRING)
                return fault(l, member->place, &part, "expected a string");
        } else if (!has_format ||
                   (strcmp(member->key, "format") != 0 && strcmp(member->key, "version") != 0)) {
            return unknown_key(l, member, schema, &part);
        }
    }
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        if (!f->required) continue;
        const struct dl_json_path part = {path, f->key, 0};
        const char *key = dl_field_key_in(node, f);

        if (dl_json_member(node, key, strlen(key)) == NULL)
            add_missing(l, node->place, &part, f->help != NULL ? f->help : "");
    }
    return DL_OK;
}

static void add_needs(const struct load *l, const struct dl_schema *schema, const void *object) {
    const struct dl_json_path root = {NULL, NULL, 0};
    const char *path, *why;

    for (int i = 0; schema->needs(object, i, &path, &why); i++) {
        const struct dl_json_path part = {&root, path, 0};
        if (path != NULL) add_missing(l, l->doc->root->place, &part, why);
    }
}

static enum dl_code fail_missing(const struct missing *m, struct dl_err *err) {
    if (err == NULL) return m->first.code;
    *err = m->first;
    const size_t length = strlen(err->message);
    if (m->length > 0)
        snprintf(err->message + length, sizeof err->message - length, "; also missing: %s",
                 m->others);
    return err->code;
}

enum dl_code dl_json_needs(const struct dl_json *doc, const struct dl_schema *schema,
                           const void *object, struct dl_err *err) {
    struct missing missing = {.count = 0};
    const struct load l = {doc, doc->arena, err, &missing};

    add_needs(&l, schema, object);
    return missing.count > 0 ? fail_missing(&missing, err) : DL_OK;
}

enum dl_code dl_json_load(const struct dl_json *doc, const struct dl_schema *schema,
                          struct dl_arena *arena, void *out, struct dl_err *err) {
    struct missing missing = {.count = 0};
    const struct load l = {doc, arena, err, &missing};
    const struct dl_json_path root = {NULL, NULL, 0};
    char *made = dl_arena_alloc(arena, 1, schema->size);
    DL_TRY(load_object(&l, doc->root, schema, &root, made));
    if (missing.count > 0) {
        if (schema->needs != NULL) add_needs(&l, schema, made);
        return fail_missing(&missing, err);
    }
    memcpy(out, made, schema->size);
    return DL_OK;
}
