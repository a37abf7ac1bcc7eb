/* json.h - JSON documents through field tables.
 *
 * One declaration of a struct's fields defines its loader, writer, range check and schema page.
 * Only json_scan.c includes cJSON. Absent optional members: numbers are NAN, integers DL_ABSENT,
 * strings NULL, lists empty, choices -1, booleans false, objects all-absent - or the field's
 * `fallback` where it has one. Unknown values have no silent default: code must test dl_known().
 *
 * Any object may carry a string member "comment", which is ignored. null is refused: an unknown
 * value is omitted. Code is in json.c (parse), json_scan.c, json_load.c, json_set.c, json_extend.c,
 * json_schema.c, json_text.c, json_writer.c. */
#ifndef DL_MODEL_CORE_JSON_H
#define DL_MODEL_CORE_JSON_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/core/units.h"

#define DL_ABSENT INT64_MIN /* an integer that the file does not give */
#define dl_known(number) (!isnan(number))

enum {
    DL_JSON_DEPTH = 64,       /* deepest nesting that is read or written */
    DL_JSON_BYTES = 64 << 20, /* largest file */
};

enum dl_field_type {
    DL_FIELD_END = 0,
    DL_FIELD_NUMBER,  /* double */
    DL_FIELD_INTEGER, /* int64_t, from a JSON number without fraction */
    DL_FIELD_BOOL,    /* bool */
    DL_FIELD_STRING,  /* const char * */
    DL_FIELD_CHOICE,  /* int: index into choices[] */
    DL_FIELD_EXPR,    /* const char *: a number or an expression, kept as text ("4*hidden") */
    DL_FIELD_OBJECT,  /* struct of `child`, embedded at offset */
    DL_FIELD_LIST,    /* T *, and count at count_offset (int): array of objects of `child` */
    DL_FIELD_NUMBERS, /* double *, and count (int): array of numbers */
    DL_FIELD_EXPRS, /* const char **, and count (int): array of EXPR; one alone is a list of one */
    DL_FIELD_STRINGS, /* const char **, and count (int); one string alone is a list of one */
    DL_FIELD_MAP,     /* struct dl_map_entry *, and count (int): object with any keys */
};

struct dl_map_entry {
    const char *key;
    const char *text; /* the value as text, always set */
    double number;    /* NAN when the value was a string; true is 1, false 0 */
};

struct dl_schema;

struct dl_field {
    const char *key;
    const char *alias; /* the key in the previous release: read and settable, never written or
                          listed; NULL: none. A file with both is refused. */
    enum dl_field_type type;
    size_t offset;       /* offsetof the member */
    size_t count_offset; /* offsetof the int count of a list, or the bool presence of an object. 0:
                            no presence flag, which therefore cannot be a struct's first member */
    const struct dl_schema *child;
    const char *const *choices;        /* NULL-terminated */
    const char *const *choice_aliases; /* older name of each choice or NULL; NULL: none */
    double min, max;   /* inclusive, also for each element of NUMBERS; both 0: any finite number */
    enum dl_unit unit; /* also how --set reads it */
    bool or_bool;      /* EXPR: true and false are read too, as the words */
    bool required;
    bool has_fallback;
    double fallback;  /* NUMBER, INTEGER, BOOL, CHOICE */
    const char *help; /* one line, for `dlmodel schema` and error messages */
};

/* A row of a field table: the key is the member's name; the rest are further members of dl_field.
 * DL_FIELD(struct link, latency_s, NUMBER, DL_RANGE(0, 1, DL_UNIT_S), .help = "one message") */
#define DL_FIELD(struct_, member_, type_, ...)                                                     \
    { .key = #member_, .type = DL_FIELD_##type_, .offset = offsetof(struct_, member_), __VA_ARGS__ }
/* The same of a member of a struct in it. */
#define DL_FIELD_IN(struct_, group_, member_, type_, ...)                                          \
    {                                                                                              \
        .key = #member_, .type = DL_FIELD_##type_, .offset = offsetof(struct_, group_.member_),    \
        __VA_ARGS__                                                                                \
    }
#define DL_RANGE(min_, max_, unit_) .min = (min_), .max = (max_), .unit = (unit_)

struct dl_schema {
    const char *name;  /* "dlmodel-system", or "link" for a nested one */
    const char *alias; /* top_level: its "format" in the previous release, still read; NULL: none */
    const char *summary;
    size_t size; /* sizeof the struct */
    const struct dl_field *fields;
    /* key and what replaces it, in turn, of fields that earlier releases had; NULL: none */
    const char *const *removed;
    /* Which further members a loaded object needs: false after the last rule i; *path NULL: the
     * rule is kept. `path` may have dots. NULL: none */
    bool (*needs)(const void *object, int i, const char **path, const char **why);
    bool top_level; /* has "format": name and "version": 1, checked by the loader */
};

struct dl_json; /* a parsed document with its text, name and positions */

/* A --set KEY=VALUE. `used` is set when a document took it. */
struct dl_override {
    /* dotted: "links.inter.bandwidth"; the unit suffix of the last part may be left out */
    const char *key;
    const char *value;
    bool used;
};

/* Parse `text` (need not be NUL-terminated). `name` is used in error messages. Refuses trailing
 * text, duplicate keys, nesting deeper than 64, NaN and infinities. */
enum dl_code dl_json_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_json **out, struct dl_err *err);

/* Reads and parses a file of at most 64 MiB. DL_ERR_INPUT with the file's name for a directory, or
 * an unreadable, empty or too large file. */
enum dl_code dl_json_read(const char *path, struct dl_arena *arena, struct dl_json **out,
                          struct dl_err *err);

/* Applies the overrides with a key that resolves in `schema` to the document and sets their
 * `used`. DL_ERR_USAGE names the key of a value that is out of range or of another unit. Members
 * of a MAP can be set too. */
enum dl_code dl_json_set(struct dl_json *doc, const struct dl_schema *schema,
                         struct dl_override *overrides, int override_count, struct dl_err *err);

/* Whether dl_json_set could set a key. Dots separate the parts of a key. A part names a member by
 * its key or alias; the last part also without its unit suffix when only one member fits. Elements
 * of lists are numbers from 0 and must exist ("rates.0.peak"). All that follows a MAP is one key.
 * Missing objects are created. NUMBERS take "1,2,3" or one element ("domain_low.1"). The caller
 * reports a key that no document took, with dl_suggest() over dl_json_keys(). */
bool dl_json_key_known(const struct dl_schema *schema, const char *key);

/* All keys that can be set, with N for an element and KEY for any key of a map, each also without
 * its unit suffix; NULL-terminated. NULL when out of memory. */
const char *const *dl_json_keys(const struct dl_schema *schema, struct dl_arena *arena);

/* Adds the members of `base` that the document lacks, also inside objects, without those of the top
 * level that `without` names (NULL-terminated). Numbers keep the base's "source", as entries of
 * "sources", in an object with numbers of its own. Faults in what was added have no position. */
void dl_json_extend(struct dl_json *doc, const struct dl_json *base, const char *const *without);
/* Removes a member of the top level. */
void dl_json_remove(struct dl_json *doc, const char *key);

/* Calls `visit` for each field, depth first in order of declaration. `path` is its place in a file
 * ("rates[].peak_flop_per_s") and is valid during the call. A schema inside itself is visited once.
 */
typedef void dl_schema_visitor(void *context, const char *path, const struct dl_field *field,
                               int depth);
void dl_schema_visit(const struct dl_schema *schema, dl_schema_visitor *visit, void *context);

/* Writes what a field takes: "a number in [1, 1e15] byte/s", "one of a, b, c". */
void dl_field_expected(const struct dl_field *field, char *out, size_t out_size);

/* "number", "integer", "object", ... */
const char *dl_field_type_name(enum dl_field_type type);

/* Sets *out (of schema->size bytes) from the document. DL_ERR_INPUT, FILE:LINE:COL: error: KEY:
 * what was expected, for unknown keys (with a suggestion), missing ones, wrong types, values out of
 * range. */
enum dl_code dl_json_load(const struct dl_json *doc, const struct dl_schema *schema,
                          struct dl_arena *arena, void *out, struct dl_err *err);

/* DL_ERR_INPUT names every member that a loaded object needs by its schema's `needs`; dl_json_load
 * names them only together with required ones, which what-ifs cannot complete. */
enum dl_code dl_json_needs(const struct dl_json *doc, const struct dl_schema *schema,
                           const void *object, struct dl_err *err);

/* Reports a fault at `path` ("layers[3].kernel") of a loaded document, for checks between fields.
 * DL_ERR_INPUT. */
enum dl_code dl_json_fail(const struct dl_json *doc, const char *path, struct dl_err *err,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The number at `parts` (NULL-terminated names of members; of an array, the "name" of the element)
 * and the bytes of the text that hold it. false: there is none. */
bool dl_json_number_at(const struct dl_json *doc, const char *const *parts, double *value,
                       size_t *begin, size_t *end);
/* The document's text with that number replaced, to the digits that messages show. NULL: there is
 * no such number, or memory is exhausted. */
const char *dl_json_with_number(const struct dl_json *doc, const char *const *parts, double value,
                                struct dl_arena *arena);

bool dl_json_has(const struct dl_json *doc, const char *key); /* a member of the top level */
/* A string at the top level; NULL if absent. */
const char *dl_json_string(const struct dl_json *doc, const char *key);
const char *dl_json_name(const struct dl_json *doc); /* the file's name */

/* Text of an object, indented by two spaces, keys in schema order, absent members left out, numbers
 * with enough digits to read back the same double, a newline at the end. NULL when out of memory.
 * Never writes NaN or infinity. Loading the text gives the same object again. */
char *dl_json_text(const struct dl_schema *schema, const void *object, struct dl_arena *arena);
/* The same in one line, with its newline. */
char *dl_json_line(const struct dl_schema *schema, const void *object, struct dl_arena *arena);

/* Shortest of %.15g, %.16g, %.17g that reads back as the same double; "null" for NaN and
 * infinities. */
enum { DL_NUMBER_TEXT = 32 }; /* bytes that are enough for it */
void dl_number_text(double value, char out[DL_NUMBER_TEXT]);

/* A streaming writer for results that have no schema (commands' --json). It takes care of commas
 * and quoting. */
struct dl_json_writer {
    struct dl_arena *arena;
    char *text; /* NUL-terminated, grows; no newline at the end */
    size_t length, capacity;
    int depth;
    bool need_comma, compact;
    char closers[DL_JSON_DEPTH + 1]; /* ']' or '}' of each open level; the last stays 0 */
};
void dl_jw_init(struct dl_json_writer *w, struct dl_arena *arena, bool compact);
/* key NULL: array element or top level */
void dl_jw_object(struct dl_json_writer *w, const char *key);
void dl_jw_array(struct dl_json_writer *w, const char *key);
void dl_jw_end(struct dl_json_writer *w);
void dl_jw_number(struct dl_json_writer *w, const char *key, double value); /* NaN, inf: null */
void dl_jw_integer(struct dl_json_writer *w, const char *key, int64_t value);
void dl_jw_bool(struct dl_json_writer *w, const char *key, bool value);
void dl_jw_string(struct dl_json_writer *w, const char *key, const char *value); /* NULL: null */
/* Ends all open levels; the document with a newline. */
char *dl_jw_text(struct dl_json_writer *w);

#endif
