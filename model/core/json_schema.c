/* json_schema.c - information from a schema without a document: its fields, keys and ranges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"

/* Longest first, so that "_bytes_per_s" is not cut to "_bytes_per". */
static const char *const suffixes[] = {
    "_samples_per_s",
    "_bytes_per_s",
    "_flop_per_s",
    "_s_per_byte",
    "_samples",
    "_elements",
    "_bytes",
    "_count",
    "_flop",
    "_frac",
    "_pct",
    "_hz",
    "_s",
    "_w",
    "_j",
    NULL,
};

size_t dl_key_stem(const char *key) {
    size_t length = strlen(key);

    for (int i = 0; suffixes[i] != NULL; i++) {
        size_t cut = strlen(suffixes[i]);

        if (length > cut && strcmp(key + length - cut, suffixes[i]) == 0) return length - cut;
    }
    return length;
}

static bool is_part(const char *name, size_t name_length, const char *part, size_t length) {
    return name_length == length && memcmp(name, part, length) == 0;
}

const struct dl_field *dl_schema_field(const struct dl_schema *schema, const char *part,
                                       size_t length, bool loose,
                                       const struct dl_field **ambiguous) {
    const struct dl_field *found = NULL, *by_alias = NULL;

    *ambiguous = NULL;
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (is_part(f->key, strlen(f->key), part, length) ||
            (f->alias != NULL && is_part(f->alias, strlen(f->alias), part, length)))
            return f;
    if (!loose) return NULL;
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        if (f->alias != NULL && is_part(f->alias, dl_key_stem(f->alias), part, length))
            by_alias = f;
        if (!is_part(f->key, dl_key_stem(f->key), part, length)) continue;
        if (found != NULL) *ambiguous = f;
        found = found != NULL ? found : f;
    }
    return found != NULL ? found : by_alias;
}

const char *dl_field_key_in(const struct dl_json_node *object, const struct dl_field *field) {
    if (object != NULL && field->alias != NULL &&
        dl_json_member(object, field->key, strlen(field->key)) == NULL &&
        dl_json_member(object, field->alias, strlen(field->alias)) != NULL)
        return field->alias;
    return field->key;
}

int dl_field_choice(const struct dl_field *field, const char *name) {
    for (int i = 0; field->choices[i] != NULL; i++) {
        const char *older = field->choice_aliases != NULL ? field->choice_aliases[i] : NULL;

        if (strcmp(field->choices[i], name) == 0) return i;
        if (older != NULL && strcmp(older, name) == 0) return i;
    }
    return -1;
}

bool dl_field_in_range(const struct dl_field *field, double value) {
    if (field->min == 0 && field->max == 0) return true;
    return value >= field->min && value <= field->max;
}

void dl_number_short(double value, char out[DL_NUMBER_TEXT]) {
    char *e, *digits;

    snprintf(out, DL_NUMBER_TEXT, "%.6g", value);
    if (isfinite(value) && strtod(out, NULL) != value) dl_number_text(value, out);
    e = strchr(out, 'e');
    if (e == NULL) return;
    digits = e[1] == '-' ? e + 2 : e + 1; /* "1e+15" reads better as "1e15", "1e-07" as "1e-7" */
    e = digits + (*digits == '+');
    while (*e == '0' && e[1] != '\0') e++;
    memmove(digits, e, strlen(e) + 1);
}

static void choices_text(const char *const *choices, char *out, size_t out_size) {
    size_t length = (size_t)snprintf(out, out_size, "one of");

    for (int i = 0; choices != NULL && choices[i] != NULL && length < out_size; i++)
        length += (size_t)snprintf(out + length, out_size - length, "%s %s", i > 0 ? "," : "",
                                   choices[i]);
}

static void range_text(const struct dl_field *field, const char *noun, char *out, size_t out_size) {
    char min[DL_NUMBER_TEXT], max[DL_NUMBER_TEXT];
    const char *unit = dl_unit_name(field->unit), *space = unit[0] != '\0' ? " " : "";

    dl_number_short(field->min, min);
    dl_number_short(field->max, max);
    if ((field->min == 0 && field->max == 0) || (isinf(field->min) && isinf(field->max)))
        snprintf(out, out_size, "%s%s%s", noun, space, unit);
    else if (isinf(field->max))
        snprintf(out, out_size, "%s of at least %s%s%s", noun, min, space, unit);
    else if (isinf(field->min))
        snprintf(out, out_size, "%s of at most %s%s%s", noun, max, space, unit);
    else
        snprintf(out, out_size, "%s in [%s, %s]%s%s", noun, min, max, space, unit);
}

void dl_field_expected(const struct dl_field *field, char *out, size_t out_size) {
    char element[160];

    if (out_size == 0) return;
    switch (field->type) {
    case DL_FIELD_NUMBER: range_text(field, "a number", out, out_size); break;
    case DL_FIELD_INTEGER: range_text(field, "a whole number", out, out_size); break;
    case DL_FIELD_BOOL: snprintf(out, out_size, "true or false"); break;
    case DL_FIELD_STRING: snprintf(out, out_size, "a string"); break;
    case DL_FIELD_CHOICE: choices_text(field->choices, out, out_size); break;
    case DL_FIELD_EXPR: snprintf(out, out_size, "a number or an expression in a string"); break;
    case DL_FIELD_OBJECT: snprintf(out, out_size, "an object"); break;
    case DL_FIELD_LIST: snprintf(out, out_size, "an array of objects"); break;
    case DL_FIELD_NUMBERS:
        range_text(field, "numbers", element, sizeof element);
        snprintf(out, out_size, "an array of %s", element);
        break;
    case DL_FIELD_EXPRS:
        snprintf(out, out_size, "a number, an expression in a string, or an array of these");
        break;
    case DL_FIELD_STRINGS: snprintf(out, out_size, "a string or an array of strings"); break;
    case DL_FIELD_MAP: snprintf(out, out_size, "an object of numbers, strings and booleans"); break;
    case DL_FIELD_END: out[0] = '\0'; break;
    }
}

const char *dl_field_type_name(enum dl_field_type type) {
    switch (type) {
    case DL_FIELD_NUMBER: return "number";
    case DL_FIELD_INTEGER: return "integer";
    case DL_FIELD_BOOL: return "boolean";
    case DL_FIELD_STRING: return "string";
    case DL_FIELD_CHOICE: return "choice";
    case DL_FIELD_EXPR: return "expression";
    case DL_FIELD_OBJECT: return "object";
    case DL_FIELD_LIST: return "array of objects";
    case DL_FIELD_NUMBERS: return "array of numbers";
    case DL_FIELD_EXPRS: return "array of expressions";
    case DL_FIELD_STRINGS: return "array of strings";
    case DL_FIELD_MAP: return "map";
    case DL_FIELD_END: break;
    }
    return "";
}

/* The schemas from the root to here: one that is met again is not entered. */
struct walk {
    dl_schema_visitor *visit;
    void *context;
    const struct dl_schema *above[DL_JSON_DEPTH];
    char path[512];
};

static void walk_schema(struct walk *w, const struct dl_schema *schema, size_t path_length,
                        int depth) {
    for (int i = 0; i < depth; i++)
        if (w->above[i] == schema) return;
    if (depth >= DL_JSON_DEPTH) return;
    w->above[depth] = schema;
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        int wrote =
            snprintf(w->path + path_length, sizeof w->path - path_length, "%s%s%s",
                     path_length > 0 ? "." : "", f->key, f->type == DL_FIELD_LIST ? "[]" : "");

        if (wrote < 0 || (size_t)wrote >= sizeof w->path - path_length) continue;
        w->visit(w->context, w->path, f, depth);
        if ((f->type == DL_FIELD_OBJECT || f->type == DL_FIELD_LIST) && f->child != NULL)
            walk_schema(w, f->child, path_length + (size_t)wrote, depth + 1);
        w->path[path_length] = '\0';
    }
}

void dl_schema_visit(const struct dl_schema *schema, dl_schema_visitor *visit, void *context) {
    struct walk w = {.visit = visit, .context = context};

    walk_schema(&w, schema, 0, 0);
}

struct keys {
    struct dl_arena *arena;
    const char **names; /* NULL while counting */
    size_t count;
};

static void add_key(struct keys *keys, const char *path, const struct dl_field *field, size_t cut) {
    size_t length = strlen(path) - cut, at = 0;
    char *name;

    keys->count++;
    if (keys->names == NULL) return;
    name = dl_arena_alloc(keys->arena, length + 8, 1); /* each "[]" becomes ".N" */
    for (size_t i = 0; i < length; i++)
        name[at++] = path[i] == '[' ? '.' : path[i] == ']' ? 'N' : path[i];
    if (field->type == DL_FIELD_MAP) memcpy(name + at, ".KEY", sizeof ".KEY");
    keys->names[keys->count - 1] = name;
}

static void visit_key(void *context, const char *path, const struct dl_field *field, int depth) {
    size_t key_length = strlen(field->key), stem = dl_key_stem(field->key);

    (void)depth;
    if (field->type == DL_FIELD_OBJECT || field->type == DL_FIELD_LIST) return;
    add_key(context, path, field, 0);
    if (stem < key_length && field->type != DL_FIELD_MAP)
        add_key(context, path, field, key_length - stem);
}

const char *const *dl_json_keys(const struct dl_schema *schema, struct dl_arena *arena) {
    struct keys keys = {.arena = arena};

    dl_schema_visit(schema, visit_key, &keys);
    keys.names = dl_arena_alloc(arena, keys.count + 1, sizeof *keys.names);
    keys.count = 0;
    dl_schema_visit(schema, visit_key, &keys);
    return keys.names;
}
