/* Recorded results (recorded.h: a regression net, no oracle) of every field of every schema: what
 * its table says, and what a document is told whose value is just below, at or just above a bound,
 * of another type, missing, twice there or misspelt, in a file and by --set. Nothing is listed
 * here: documents are generated from the schemas, so a new field is in the net when it exists.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/csv_field.h"
#include "model/core/json.h"
#include "model/search/campaign/campaign_file.h"
#include "model/network/coll_match.h"
#include "model/framework/framework.h"
#include "model/framework/layer_times.h"
#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_model.h"
#include "model/machine/system.h"
#include "model/engine/interval.h"
#include "model/workload/workload.h"
#include "tests/check.h"
#include "tests/recorded.h"

static const struct dl_schema *const schemas[] = {
    &dl_system_schema,           &dl_device_schema,     &dl_framework_schema,
    &dl_workload_schema,         &dl_campaign_schema,   &dl_interval_schema,
    &dl_kernel_model_set_schema, &dl_raw_sample_schema, &dl_layer_times_schema};
/* Of tables: no document has them. */
static const struct dl_schema *const tables[] = {&dl_coll_row_schema, &dl_kernel_row_schema};
enum {
    SCHEMAS = sizeof schemas / sizeof schemas[0],
    TABLES = sizeof tables / sizeof tables[0],
    TEXT_BYTES = 1 << 17,
    DEEPEST = 8
};

/* What is wrong with the one field that a document is about. */
enum fault {
    SOUND,
    AT_MIN,
    AT_MAX,
    BELOW,
    ABOVE,
    FRACTION,
    OTHER_TYPE,
    IS_NULL,
    MISSING,
    MISSPELT,
    TWICE,
    FAULTS
};
static const char *const fault_names[FAULTS] = {
    "sound",      "at the least", "at the most", "below the least", "above the most", "a fraction",
    "other type", "null",         "missing",     "misspelt",        "twice"};

static bool is_ranged(const struct dl_field *f) {
    return (f->type == DL_FIELD_NUMBER || f->type == DL_FIELD_INTEGER ||
            f->type == DL_FIELD_NUMBERS) &&
           !(f->min == 0 && f->max == 0);
}

/* The number that stands for the fault; the next one outside a bound is one step of a double away,
 * or one whole. */
static double number_for(const struct dl_field *f, enum fault fault) {
    const bool whole = f->type == DL_FIELD_INTEGER;
    const double sound = !is_ranged(f) ? 1 : isfinite(f->max) ? f->max : f->min;
    switch (fault) {
    case AT_MIN: return f->min;
    case AT_MAX: return f->max;
    case BELOW: return whole ? f->min - 1 : nextafter(f->min, (double)-INFINITY);
    case ABOVE: return whole ? f->max + 1 : nextafter(f->max, (double)INFINITY);
    case FRACTION: return fmin(sound, 1e6) - 0.5;
    default: return sound;
    }
}

struct writer {
    char *text;
    size_t length;
    const struct dl_field *target; /* the field with the fault, at its first place */
    enum fault fault;
    bool done;
    const struct dl_schema *above[DEEPEST + 1];
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int wrote = vsnprintf(w->text + w->length, TEXT_BYTES - w->length, format, arguments);
    va_end(arguments);
    if (wrote < 0 || (size_t)wrote >= TEXT_BYTES - w->length) fail_msg("a document is too long");
    w->length += (size_t)wrote;
}

static void put_object(struct writer *w, const struct dl_schema *schema, int depth);

static void put_number(struct writer *w, double value) {
    char number[DL_NUMBER_TEXT];
    dl_number_text(value, number);
    put(w, "%s", number);
}

static void put_value(struct writer *w, const struct dl_field *f, enum fault fault, int depth) {
    if (fault == IS_NULL) {
        put(w, "null");
        return;
    }
    if (fault == OTHER_TYPE) {
        const bool takes_text = f->type == DL_FIELD_STRING || f->type == DL_FIELD_STRINGS ||
                                f->type == DL_FIELD_EXPR || f->type == DL_FIELD_EXPRS;
        put(w, takes_text ? "{}" : "\"text\"");
        return;
    }
    switch (f->type) {
    case DL_FIELD_NUMBER:
    case DL_FIELD_INTEGER: put_number(w, number_for(f, fault)); break;
    case DL_FIELD_NUMBERS:
        put(w, "["), put_number(w, number_for(f, SOUND)), put(w, ", ");
        put_number(w, number_for(f, fault)), put(w, "]");
        break;
    case DL_FIELD_BOOL: put(w, "true"); break;
    case DL_FIELD_STRING: put(w, "\"text\""); break;
    case DL_FIELD_CHOICE: put(w, "\"%s\"", f->choices[0]); break;
    case DL_FIELD_EXPR: put(w, "\"1\""); break;
    case DL_FIELD_EXPRS: put(w, "[1, \"2\"]"); break;
    case DL_FIELD_STRINGS: put(w, "[\"a\", \"b\"]"); break;
    case DL_FIELD_MAP: put(w, "{\"a\": 1, \"b\": \"text\", \"c\": true}"); break;
    case DL_FIELD_OBJECT: put_object(w, f->child, depth + 1); break;
    case DL_FIELD_LIST: put(w, "["), put_object(w, f->child, depth + 1), put(w, "]"); break;
    case DL_FIELD_END: break;
    }
}

/* A schema inside itself is left out there. */
static bool is_open(const struct writer *w, const struct dl_field *f, int depth) {
    if (f->type != DL_FIELD_OBJECT && f->type != DL_FIELD_LIST) return true;
    for (int i = 0; i <= depth; i++)
        if (w->above[i] == f->child) return false;
    return depth < DEEPEST;
}

static bool holds(const struct dl_schema *schema, const struct dl_field *target, int depth) {
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (f == target ||
            (f->child != NULL && depth < DEEPEST && holds(f->child, target, depth + 1)))
            return true;
    return false;
}

/* A document about one field has that, what it is in, and what must be there. */
static bool is_wanted(const struct writer *w, const struct dl_field *f) {
    return w->target == NULL || f == w->target || f->required ||
           (f->child != NULL && !w->done && holds(f->child, w->target, 0));
}

static void put_member(struct writer *w, const struct dl_field *f, int depth, bool *first) {
    const bool here = f == w->target && !w->done;
    const enum fault fault = here ? w->fault : SOUND;
    if (here) w->done = true;
    if (fault == MISSING) return;
    for (int i = 0; i < (fault == TWICE ? 2 : 1); i++) {
        put(w, "%s\n%*s\"%s%s\": ", *first ? "" : ",", depth + 1, "", f->key,
            fault == MISSPELT ? "x" : "");
        put_value(w, f, fault, depth);
        *first = false;
    }
}

static void put_object(struct writer *w, const struct dl_schema *schema, int depth) {
    bool first = true;
    w->above[depth] = schema;
    put(w, "{");
    if (schema->top_level)
        put(w, "\n%*s\"format\": \"%s\",\n%*s\"version\": 1", depth + 1, "", schema->name,
            depth + 1, ""),
            first = false;
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (is_open(w, f, depth) && is_wanted(w, f)) put_member(w, f, depth, &first);
    put(w, "\n%*s}", depth, "");
}

/* What the loader says of the document, or what it read, written again. */
static void record_document(const struct dl_schema *schema, const struct dl_field *target,
                            enum fault fault, struct dl_arena *arena) {
    static char text[TEXT_BYTES];
    struct writer w = {.text = text, .target = target, .fault = fault};
    struct dl_err err = {0};
    struct dl_json *doc;
    put_object(&w, schema, 0);
    void *out = dl_arena_alloc(arena, 1, schema->size);
    assert_non_null(out);
    if (dl_json_parse("FILE", text, w.length, arena, &doc, &err) != DL_OK ||
        dl_json_load(doc, schema, arena, out, &err) != DL_OK)
        recorded_error(fault_names[fault], &err);
    else
        recorded_text(fault_names[fault], dl_json_text(schema, out, arena));
}

/* --set of the same values. */
static void record_set(const struct dl_schema *schema, const char *path, const struct dl_field *f,
                       const char *value, const char *name, struct dl_arena *arena) {
    static char text[TEXT_BYTES];
    struct writer w = {.text = text, .target = f};
    struct dl_err err = {0};
    struct dl_json *doc;
    char key[512];
    size_t length = 0;
    for (const char *c = path; *c != '\0' && length + 4 < sizeof key; c++) {
        if (*c == '[')
            length += (size_t)snprintf(key + length, 4, ".0");
        else if (*c != ']')
            key[length++] = *c;
    }
    key[length] = '\0';
    if (f->type == DL_FIELD_MAP) snprintf(key + length, sizeof key - length, ".new");
    put_object(&w, schema, 0);
    void *out = dl_arena_alloc(arena, 1, schema->size);
    struct dl_override override = {.key = key, .value = value};
    if (dl_json_parse("FILE", text, w.length, arena, &doc, &err) != DL_OK)
        fail_msg("%s", err.message);
    if (dl_json_set(doc, schema, &override, 1, &err) != DL_OK ||
        dl_json_load(doc, schema, arena, out, &err) != DL_OK)
        recorded_error(name, &err);
    else
        recorded_text(name, dl_json_text(schema, out, arena));
    recorded_number("used", override.used);
}

static void record_table_row(const struct dl_field *f) {
    char expected[600];
    uint32_t words = recorded_hash(recorded_hash(0, f->help), f->alias);
    dl_field_expected(f, expected, sizeof expected);
    recorded_text("expected", expected);
    recorded_text_hash("help, former name", words, f->help);
    if (f->child != NULL) recorded_text("what it holds", f->child->summary);
    recorded_text("type", dl_field_type_name(f->type));
    recorded_text("unit", dl_unit_name(f->unit));
    recorded_number("required, or_bool", 1 + f->required + 2 * f->or_bool);
    recorded_number("fallback", f->has_fallback ? f->fallback : (double)NAN);
    for (int i = 0; f->choices != NULL && f->choices[i] != NULL; i++)
        recorded_text("choice", f->choice_aliases != NULL ? f->choice_aliases[i] : f->choices[i]);
}

static bool applies(const struct dl_field *f, enum fault fault) {
    if (fault == FRACTION) return f->type == DL_FIELD_INTEGER;
    if (fault == SOUND || (fault >= AT_MIN && fault <= ABOVE && !is_ranged(f))) return false;
    if ((fault == AT_MIN || fault == BELOW) && !isfinite(f->min)) return false;
    return (fault != AT_MAX && fault != ABOVE) || isfinite(f->max);
}

static void visit(void *context, const char *path, const struct dl_field *f, int depth) {
    const struct dl_schema *schema = context;
    struct dl_arena arena = {0};
    char title[500], number[DL_NUMBER_TEXT];
    (void)depth;
    snprintf(title, sizeof title, "%s: %s", schema->name, path);
    recorded_case(title);
    record_table_row(f);
    for (int fault = AT_MIN; fault < FAULTS; fault++)
        if (applies(f, (enum fault)fault)) record_document(schema, f, (enum fault)fault, &arena);
    if (f->type != DL_FIELD_OBJECT && f->type != DL_FIELD_LIST) {
        for (int fault = AT_MIN; fault <= FRACTION; fault++) {
            if (!applies(f, (enum fault)fault)) continue;
            dl_number_text(number_for(f, (enum fault)fault), number);
            record_set(schema, path, f, number, fault_names[fault], &arena);
        }
        record_set(schema, path, f, "true", "set to true", &arena);
        record_set(schema, path, f, "", "set to nothing", &arena);
        record_set(schema, path, f, f->type == DL_FIELD_NUMBERS ? "1,1,1" : "texts",
                   "set to a text", &arena);
    }
    recorded_end_case();
    dl_arena_free(&arena);
}

static void fields(void **state) {
    (void)state;
    recorded_open("fields");
    for (int s = 0; s < SCHEMAS; s++) {
        struct dl_arena arena = {0};
        char title[200];
        snprintf(title, sizeof title, "%s as a whole", schemas[s]->name);
        recorded_case(title);
        recorded_text("summary", schemas[s]->summary);
        recorded_text("former name", schemas[s]->alias);
        for (const char *const *gone = schemas[s]->removed; gone != NULL && *gone != NULL; gone++)
            recorded_text("removed", *gone);
        record_document(schemas[s], NULL, SOUND, &arena);
        recorded_end_case();
        dl_arena_free(&arena);
        dl_schema_visit(schemas[s], visit, (void *)(uintptr_t)schemas[s]);
    }
    recorded_close();
}

/* A table of one column, with the same values as cells. */
static void record_cells(const struct dl_field *f, struct dl_arena *arena) {
    static const char *const cells[] = {"text", "", "0", "1", "-1", "1.5", "1e400", "nan", "0x10"};
    char text[600], number[DL_NUMBER_TEXT];
    struct dl_csv csv;
    struct dl_err err = {0};
    int at = snprintf(text, sizeof text, "%s,z\n", f->key), count = 0;
    for (int fault = AT_MIN; fault <= FRACTION; fault++) {
        if (!applies(f, (enum fault)fault)) continue;
        dl_number_text(number_for(f, (enum fault)fault), number);
        at += snprintf(text + at, sizeof text - (size_t)at, "%s,1\n", number), count++;
    }
    for (int i = 0; i < 9; i++, count++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s,1\n", cells[i]);
    for (int i = 0; f->choices != NULL && f->choices[i] != NULL; i++, count++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s,1\n", f->choices[i]);
    if (dl_csv_parse("FILE", text, (size_t)at, arena, &csv, &err) != DL_OK)
        fail_msg("%s", err.message);
    for (int row = 0; row < count; row++) {
        double value = 0;
        err = (struct dl_err){0};
        if (dl_csv_field(&csv, row, 0, f, &value, &err) == DL_OK)
            recorded_number("cell", value);
        else
            recorded_error("cell refused", &err);
    }
}

static void columns(void **state) {
    (void)state;
    recorded_open("columns");
    for (int t = 0; t < TABLES; t++) {
        for (const struct dl_field *f = tables[t]->fields; f->type != DL_FIELD_END; f++) {
            struct dl_arena arena = {0};
            char title[200];
            snprintf(title, sizeof title, "%s: %s", tables[t]->name, f->key);
            recorded_case(title);
            record_table_row(f);
            record_cells(f, &arena);
            recorded_end_case();
            dl_arena_free(&arena);
        }
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields), cmocka_unit_test(columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
