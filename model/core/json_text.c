/* json_text.c - from a struct to a document's text, by its field table.
 */
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"

static void write_members(struct dl_json_writer *w, const struct dl_schema *schema,
                          const char *object);

static int count_of(const struct dl_field *field, const char *object) {
    int count;

    memcpy(&count, object + field->count_offset, sizeof count);
    return count;
}

static const void *pointer_of(const struct dl_field *field, const char *object) {
    const void *pointer;

    memcpy(&pointer, object + field->offset, sizeof pointer);
    return pointer;
}

static double number_of(const struct dl_field *field, const char *object) {
    double number;

    memcpy(&number, object + field->offset, sizeof number);
    return number;
}

static int64_t integer_of(const struct dl_field *field, const char *object) {
    int64_t integer;

    memcpy(&integer, object + field->offset, sizeof integer);
    return integer;
}

static int choice_of(const struct dl_field *field, const char *object) {
    int choice, count = 0;

    memcpy(&choice, object + field->offset, sizeof choice);
    while (field->choices[count] != NULL) count++;
    return choice >= 0 && choice < count ? choice : -1;
}

static bool bool_of(size_t offset, const char *object) {
    bool boolean;

    memcpy(&boolean, object + offset, sizeof boolean);
    return boolean;
}

static bool any_present(const struct dl_schema *schema, const char *object);

/* Whether the member has a value that a file must hold for it to be read back. */
static bool is_present(const struct dl_field *field, const char *object) {
    switch (field->type) {
    case DL_FIELD_NUMBER: return isfinite(number_of(field, object));
    case DL_FIELD_INTEGER: return integer_of(field, object) != DL_ABSENT;
    case DL_FIELD_BOOL:
        return field->required || field->has_fallback || bool_of(field->offset, object);
    case DL_FIELD_STRING:
    case DL_FIELD_EXPR: return pointer_of(field, object) != NULL;
    case DL_FIELD_CHOICE: return choice_of(field, object) >= 0;
    case DL_FIELD_OBJECT:
        if (field->required) return true;
        return field->count_offset != 0 ? bool_of(field->count_offset, object)
                                        : any_present(field->child, object + field->offset);
    case DL_FIELD_LIST:
    case DL_FIELD_NUMBERS:
    case DL_FIELD_EXPRS:
    case DL_FIELD_STRINGS:
    case DL_FIELD_MAP: return field->required || count_of(field, object) > 0;
    case DL_FIELD_END: break;
    }
    return false;
}

static bool any_present(const struct dl_schema *schema, const char *object) {
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (is_present(f, object)) return true;
    return false;
}

/* A plain number when that reads back as the same text, else a string. */
static void write_expr(struct dl_json_writer *w, const char *key, const char *text) {
    char number[DL_NUMBER_TEXT], *end;
    double value = strtod(text, &end);

    dl_number_text(value, number);
    if (*end == '\0' && end != text && strcmp(number, text) == 0)
        dl_jw_number(w, key, value);
    else
        dl_jw_string(w, key, text);
}

static void write_map(struct dl_json_writer *w, const struct dl_field *field, const char *object) {
    const struct dl_map_entry *entries = pointer_of(field, object);

    dl_jw_object(w, field->key);
    for (int i = 0; i < count_of(field, object); i++) {
        const struct dl_map_entry *entry = &entries[i];

        if (!isfinite(entry->number))
            dl_jw_string(w, entry->key, entry->text);
        else if (entry->text != NULL &&
                 (strcmp(entry->text, "true") == 0 || strcmp(entry->text, "false") == 0))
            dl_jw_bool(w, entry->key, entry->number != 0);
        else
            dl_jw_number(w, entry->key, entry->number);
    }
    dl_jw_end(w);
}

/* Arrays of scalars on one line: samples are many. */
static void write_array(struct dl_json_writer *w, const struct dl_field *field,
                        const char *object) {
    const void *values = pointer_of(field, object);
    const bool compact = w->compact;

    dl_jw_array(w, field->key);
    w->compact = true;
    for (int i = 0; i < count_of(field, object); i++) {
        if (field->type == DL_FIELD_NUMBERS)
            dl_jw_number(w, NULL, ((const double *)values)[i]);
        else if (field->type == DL_FIELD_EXPRS)
            write_expr(w, NULL, ((const char *const *)values)[i]);
        else
            dl_jw_string(w, NULL, ((const char *const *)values)[i]);
    }
    dl_jw_end(w);
    w->compact = compact;
}

static void write_field(struct dl_json_writer *w, const struct dl_field *field,
                        const char *object) {
    const char *objects;

    switch (field->type) {
    case DL_FIELD_NUMBER: dl_jw_number(w, field->key, number_of(field, object)); break;
    case DL_FIELD_INTEGER: dl_jw_integer(w, field->key, integer_of(field, object)); break;
    case DL_FIELD_BOOL: dl_jw_bool(w, field->key, bool_of(field->offset, object)); break;
    case DL_FIELD_STRING: dl_jw_string(w, field->key, pointer_of(field, object)); break;
    case DL_FIELD_CHOICE:
        dl_jw_string(w, field->key, field->choices[choice_of(field, object)]);
        break;
    case DL_FIELD_EXPR: write_expr(w, field->key, pointer_of(field, object)); break;
    case DL_FIELD_OBJECT:
        dl_jw_object(w, field->key);
        write_members(w, field->child, object + field->offset);
        dl_jw_end(w);
        break;
    case DL_FIELD_LIST:
        objects = pointer_of(field, object);
        dl_jw_array(w, field->key);
        for (int i = 0; i < count_of(field, object); i++) {
            dl_jw_object(w, NULL);
            write_members(w, field->child, objects + (size_t)i * field->child->size);
            dl_jw_end(w);
        }
        dl_jw_end(w);
        break;
    case DL_FIELD_NUMBERS:
    case DL_FIELD_EXPRS:
    case DL_FIELD_STRINGS: write_array(w, field, object); break;
    case DL_FIELD_MAP: write_map(w, field, object); break;
    case DL_FIELD_END: break;
    }
}

static void write_members(struct dl_json_writer *w, const struct dl_schema *schema,
                          const char *object) {
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (is_present(f, object)) write_field(w, f, object);
}

static char *text_of(const struct dl_schema *schema, const void *object, bool compact,
                     struct dl_arena *arena) {
    struct dl_json_writer w;

    dl_jw_init(&w, arena, compact);
    dl_jw_object(&w, NULL);
    if (schema->top_level) {
        dl_jw_string(&w, "format", schema->name);
        dl_jw_integer(&w, "version", 1);
    }
    write_members(&w, schema, object);
    return dl_jw_text(&w);
}

char *dl_json_text(const struct dl_schema *schema, const void *object, struct dl_arena *arena) {
    return text_of(schema, object, false, arena);
}

char *dl_json_line(const struct dl_schema *schema, const void *object, struct dl_arena *arena) {
    return text_of(schema, object, true, arena);
}
