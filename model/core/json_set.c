/* json_set.c - changes of single members of a document: --set KEY=VALUE.
 * Does not remove members, and does not lengthen lists.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"

struct set {
    struct dl_json *doc; /* NULL: only check whether the key resolves */
    const char *key, *value;
    struct dl_err *err;
};

enum { UNRESOLVED = -1 }; /* in addition to the codes of enum dl_code */

static int set_member(const struct set *s, const struct dl_schema *schema,
                      struct dl_json_node *object, const char *rest, int depth);

static int refuse(const struct set *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(const struct set *s, const char *format, ...) {
    char message[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dl_fail(s->err, DL_ERR_USAGE, "%s", message);
    if (s->err != NULL)
        snprintf(s->err->key, sizeof s->err->key, "%.*s", (int)sizeof s->err->key - 1, s->key);
    return DL_ERR_USAGE;
}

static struct dl_json_node *append(const struct set *s, struct dl_json_node *parent,
                                   const char *key, size_t length, enum dl_json_kind kind) {
    struct dl_json_node *made = dl_arena_alloc(s->doc->arena, 1, sizeof *made),
                        **link = &parent->child;

    made->kind = kind;
    made->place = made->key_place = DL_NO_PLACE;
    if (key != NULL) {
        made->key = dl_arena_strndup(s->doc->arena, key, length);
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): &parent->child or a next is never NULL
     */
    while (*link != NULL) link = &(*link)->next;
    *link = made;
    parent->child_count++;
    return made;
}

/* The number, of the field's unit and in its range; message() names the key. */
static int parse_number(const struct set *s, const struct dl_field *field, const char *text,
                        double *out) {
    struct dl_err wrong = {.code = DL_OK};
    enum dl_unit unit = field->type == DL_FIELD_INTEGER && field->unit == DL_UNIT_NONE
                            ? DL_UNIT_COUNT
                            : field->unit;
    char expected[300], got[DL_NUMBER_TEXT];

    if (dl_units_parse(text, unit, out, &wrong) != DL_OK) return refuse(s, "%s", wrong.message);
    if (dl_field_in_range(field, *out) && (field->type != DL_FIELD_INTEGER || *out == floor(*out)))
        return DL_OK;
    dl_field_expected(field, expected, sizeof expected);
    dl_number_short(*out, got);
    return refuse(s, "expected %s, got %s", expected, got);
}

static int parse_bool(const struct set *s, const char *text, bool *out) {
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no",
                                                                                "off", "0"};

    for (int i = 0; i < 4; i++) {
        *out = strcmp(text, yes[i]) == 0;
        if (*out || strcmp(text, no[i]) == 0) return DL_OK;
    }
    return refuse(s, "expected true or false, got \"%.60s\"", text);
}

static int check_choice(const struct set *s, const struct dl_field *field) {
    char expected[400];
    const char *near;

    if (dl_field_choice(field, s->value) >= 0) return DL_OK;
    dl_field_expected(field, expected, sizeof expected);
    near = dl_suggest(s->value, field->choices);
    if (near != NULL)
        return refuse(s, "expected %s, got \"%.60s\"; did you mean %s?", expected, s->value, near);
    return refuse(s, "expected %s, got \"%.60s\"", expected, s->value);
}

/* Makes NUMBERS from "1,2,3". */
static int make_numbers(const struct set *s, const struct dl_field *field,
                        struct dl_json_node *out) {
    const char *text = s->value;

    out->kind = DL_JSON_ARRAY;
    for (;;) {
        size_t length = strcspn(text, ",");
        char item[64];
        double number;
        struct dl_json_node *made;

        if (length >= sizeof item)
            return refuse(s, "expected numbers separated by commas, got \"%.60s\"", s->value);
        memcpy(item, text, length);
        item[length] = '\0';
        int code = parse_number(s, field, item, &number);
        if (code != DL_OK) return code;
        made = append(s, out, NULL, 0, DL_JSON_NUMBER);
        made->number = number;
        if (text[length] == '\0') return DL_OK;
        text += length + 1;
    }
}

/* Makes STRINGS from "a,b,c". */
static void make_strings(const struct set *s, struct dl_json_node *out) {
    const char *text = s->value;

    out->kind = DL_JSON_ARRAY;
    for (;;) {
        const size_t length = strcspn(text, ",");
        struct dl_json_node *made = append(s, out, NULL, 0, DL_JSON_STRING);
        made->string = dl_arena_strndup(s->doc->arena, text, length);
        if (text[length] == '\0') return;
        text += length + 1;
    }
}

/* A map's value is a number or boolean if it reads as one; the rest are strings. */
static void make_free(const struct set *s, struct dl_json_node *out) {
    struct dl_err ignored;

    if (dl_units_parse(s->value, DL_UNIT_NONE, &out->number, &ignored) == DL_OK) {
        out->kind = DL_JSON_NUMBER;
    } else if (strcmp(s->value, "true") == 0 || strcmp(s->value, "false") == 0) {
        out->kind = DL_JSON_BOOL;
        out->boolean = s->value[0] == 't';
    } else {
        out->kind = DL_JSON_STRING;
    }
}

static int make_value(const struct set *s, const struct dl_field *field, struct dl_json_node *out) {
    int code = DL_OK;

    out->kind = DL_JSON_STRING;
    switch (field->type) {
    case DL_FIELD_NUMBER:
    case DL_FIELD_INTEGER:
        out->kind = DL_JSON_NUMBER;
        code = parse_number(s, field, s->value, &out->number);
        break;
    case DL_FIELD_BOOL:
        out->kind = DL_JSON_BOOL;
        code = parse_bool(s, s->value, &out->boolean);
        break;
    case DL_FIELD_CHOICE: code = check_choice(s, field); break;
    case DL_FIELD_NUMBERS: code = make_numbers(s, field, out); break;
    case DL_FIELD_MAP: make_free(s, out); break;
    case DL_FIELD_EXPR:
    case DL_FIELD_EXPRS:
        if (s->value[0] == '\0') code = refuse(s, "expected a number or an expression, got \"\"");
        break;
    case DL_FIELD_STRINGS: make_strings(s, out); break;
    case DL_FIELD_STRING:
    case DL_FIELD_OBJECT:
    case DL_FIELD_LIST:
    case DL_FIELD_END: break;
    }
    if (code == DL_OK && out->kind == DL_JSON_STRING)
        out->string = dl_arena_strdup(s->doc->arena, s->value);
    return code;
}

/* Sets the value under `key` of the object. */
static int put_value(const struct set *s, const struct dl_field *field, struct dl_json_node *object,
                     const char *key, size_t length) {
    struct dl_json_node made = {.place = DL_NO_PLACE, .key_place = DL_NO_PLACE}, *node;
    int code;

    if (s->doc == NULL) return DL_OK;
    code = make_value(s, field, &made);
    if (code != DL_OK) return code;
    node = dl_json_member(object, key, length);
    if (node == NULL) node = append(s, object, key, length, made.kind);
    made.key = node->key;
    made.next = node->next;
    *node = made;
    return DL_OK;
}

/* The element that a part "3" names; *rest moves past it. *element_out is NULL without a document.
 */
static int find_element(const struct set *s, const struct dl_json_node *list, const char **rest,
                        struct dl_json_node **element_out) {
    size_t length = strspn(*rest, "0123456789");
    struct dl_json_node *node;
    long index;

    *element_out = NULL;
    if (length == 0 || length > 9 || ((*rest)[length] != '.' && (*rest)[length] != '\0'))
        return UNRESOLVED;
    index = strtol(*rest, NULL, 10);
    *rest += length;
    if (s->doc == NULL) return DL_OK;
    if (list == NULL || list->kind != DL_JSON_ARRAY || index >= list->child_count)
        return refuse(s, "expected an element of a list of %d, counted from 0, got %ld",
                      list != NULL && list->kind == DL_JSON_ARRAY ? list->child_count : 0, index);
    for (node = list->child; index > 0; index--) node = node->next;
    *element_out = node;
    return DL_OK;
}

static int set_in_list(const struct set *s, const struct dl_field *field,
                       const struct dl_json_node *list, const char *rest, int depth) {
    struct dl_json_node *element;
    int code = find_element(s, list, &rest, &element);

    if (code != DL_OK) return code;
    if (field->type == DL_FIELD_NUMBERS) {
        double number;

        if (*rest != '\0') return UNRESOLVED;
        if (s->doc == NULL) return DL_OK;
        code = parse_number(s, field, s->value, &number);
        if (code != DL_OK) return code;
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): found, unless refused above */
        element->kind = DL_JSON_NUMBER;
        element->number = number;
        element->place = DL_NO_PLACE;
        return DL_OK;
    }
    if (*rest != '.') return UNRESOLVED;
    return set_member(s, field->child, element, rest + 1, depth + 1);
}

/* `after` follows the dot after the field's name. */
static int set_below(const struct set *s, const struct dl_field *field, struct dl_json_node *object,
                     const char *after, int depth) {
    const char *key = dl_field_key_in(object, field);
    struct dl_json_node *node = object != NULL ? dl_json_member(object, key, strlen(key)) : NULL;
    const bool makes = field->type == DL_FIELD_OBJECT || field->type == DL_FIELD_MAP;

    if (*after == '\0') return UNRESOLVED;
    if (s->doc != NULL && node == NULL && makes) {
        node = append(s, object, key, strlen(key), DL_JSON_OBJECT);
    }
    /* dl_json_load will refuse the file */
    if (makes && node != NULL && node->kind != DL_JSON_OBJECT) return DL_OK;
    switch (field->type) {
    case DL_FIELD_OBJECT: return set_member(s, field->child, node, after, depth + 1);
    case DL_FIELD_MAP: return put_value(s, field, node, after, strlen(after));
    case DL_FIELD_LIST:
    case DL_FIELD_NUMBERS: return set_in_list(s, field, node, after, depth);
    default: return UNRESOLVED;
    }
}

static int set_member(const struct set *s, const struct dl_schema *schema,
                      struct dl_json_node *object, const char *rest, int depth) {
    size_t length = strcspn(rest, ".");
    const bool last = rest[length] == '\0';
    const struct dl_field *ambiguous,
        *field = dl_schema_field(schema, rest, length, last, &ambiguous);
    const char *key;

    if (field == NULL || depth > DL_JSON_DEPTH) return UNRESOLVED;
    /* dl_json_load will refuse the file */
    if (object != NULL && object->kind != DL_JSON_OBJECT) return DL_OK;
    if (!last) return set_below(s, field, object, rest + length + 1, depth);
    if (s->doc == NULL) return DL_OK;
    if (ambiguous != NULL) return refuse(s, "expected %s or %s", field->key, ambiguous->key);
    if (field->type == DL_FIELD_OBJECT || field->type == DL_FIELD_LIST ||
        field->type == DL_FIELD_MAP)
        return refuse(s, "expected the key of one value, got that of %s: add %s",
                      dl_field_type_name(field->type),
                      field->type == DL_FIELD_LIST ? "an element and its member (.0.KEY)"
                                                   : "a member (.KEY)");
    key = dl_field_key_in(object, field);
    return put_value(s, field, object, key, strlen(key));
}

/* The command line may hold any bytes; a document may not. */
static bool is_utf8(const char *text) {
    size_t length = strlen(text);

    while (length > 0) {
        size_t bytes = dl_utf8_bytes(text, length);

        if (bytes == 0) return false;
        text += bytes;
        length -= bytes;
    }
    return true;
}

bool dl_json_key_known(const struct dl_schema *schema, const char *key) {
    const struct set s = {.key = key};

    return set_member(&s, schema, NULL, key, 0) == DL_OK;
}

enum dl_code dl_json_set(struct dl_json *doc, const struct dl_schema *schema,
                         struct dl_override *overrides, int override_count, struct dl_err *err) {
    for (int i = 0; i < override_count; i++) {
        const struct set s = {doc, overrides[i].key, overrides[i].value, err};
        int code;

        /* First without the document, so that a key that does not resolve leaves nothing behind. */
        if (!dl_json_key_known(schema, s.key)) continue;
        if (!is_utf8(s.key) || !is_utf8(s.value))
            return (enum dl_code)refuse(&s, "expected UTF-8 text");
        code = set_member(&s, schema, doc->root, s.key, 0);
        if (code == UNRESOLVED) continue;
        if (code != DL_OK) return (enum dl_code)code;
        overrides[i].used = true;
    }
    return DL_OK;
}
