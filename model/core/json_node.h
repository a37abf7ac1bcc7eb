/* json_node.h - private to the json*.c files: the tree of a document and paths in it. Other code
 * uses json.h. */
#ifndef DL_MODEL_CORE_JSON_NODE_H
#define DL_MODEL_CORE_JSON_NODE_H

#include <stdint.h>

#include "model/core/json.h"

enum dl_json_kind {
    DL_JSON_NULL,
    DL_JSON_BOOL,
    DL_JSON_NUMBER,
    DL_JSON_STRING,
    DL_JSON_ARRAY,
    DL_JSON_OBJECT
};

#define DL_NO_PLACE UINT32_MAX /* a node created by an override */

/* Kept small: nodes are most of a document's memory, and new pages cost more time than parsing. */
struct dl_json_node {
    enum dl_json_kind kind;
    int child_count; /* ARRAY, OBJECT */
    const char *key; /* member's name; NULL for an element or the root */
    union {
        const char *string; /* STRING */
        double number;      /* NUMBER */
        bool boolean;       /* BOOL */
    };
    struct dl_json_node *child, *next;
    uint32_t place, key_place; /* offsets in the document's text, at most DL_JSON_BYTES */
};

struct dl_json {
    const char *name, *text;
    size_t length;
    struct dl_arena *arena;
    struct dl_json_node *root;
};

/* Path of a node, as a linked list on the stack of the code that walks the tree. */
struct dl_json_path {
    const struct dl_json_path *up; /* NULL for the root, which has no name */
    const char *key;               /* NULL: an element */
    int index;
};

/* Writes the path as "links[1].beta". */
void dl_json_path_text(const struct dl_json_path *path, char *out, size_t out_size);

/* Line and column (in bytes), from 1, of an offset; 0 and 0 for DL_NO_PLACE. */
void dl_json_position(const char *text, size_t length, size_t place, int *line, int *col);

struct dl_json_node *dl_json_member(const struct dl_json_node *object, const char *key,
                                    size_t key_length);

/* Parses the document's NUL-terminated text: one JSON value by RFC 8259, within the limits of
 * json.h. DL_ERR_INPUT has the position. */
enum dl_code dl_json_scan(struct dl_json *doc, struct dl_err *err);

/* DL_ERR_INPUT: the object has a key twice. */
enum dl_code dl_json_check_keys(const struct dl_json *doc, const struct dl_json_node *object,
                                const struct dl_json_path *path, struct dl_err *err);

/* The member with that key; NULL where `object` is NULL, no object, or has none. */
const struct dl_json_node *dl_json_get(const struct dl_json_node *object, const char *key);
/* The string of a node; NULL where it is NULL or no string. */
const char *dl_json_string_of(const struct dl_json_node *node);
/* The number of a node; NAN where it is NULL or no number. */
double dl_json_number_of(const struct dl_json_node *node);

/* Offset after the string, number or word at `at` of a valid text. */
size_t dl_json_skip_scalar(const char *text, size_t length, size_t at);

/* Bytes of the UTF-8 character at `text`, 0 when it is not valid there. */
size_t dl_utf8_bytes(const char *text, size_t length);

/* The field with that key or alias; with `loose` also without its unit suffix, keys before aliases.
 * NULL: none. *ambiguous: a second field that fits as well. */
const struct dl_field *dl_schema_field(const struct dl_schema *schema, const char *part,
                                       size_t length, bool loose,
                                       const struct dl_field **ambiguous);

/* The name under which the object holds the field: the alias where it holds that alone, else the
 * key. object may be NULL. */
const char *dl_field_key_in(const struct dl_json_node *object, const struct dl_field *field);

/* Index of the choice with that name or older name, -1: none. */
int dl_field_choice(const struct dl_field *field, const char *name);

/* Length of a key without its unit suffix; the whole length when it has none. */
size_t dl_key_stem(const char *key);

/* A number as messages show it: "1e15", "0.25". */
void dl_number_short(double value, char out[DL_NUMBER_TEXT]);

/* Whether the field's range allows the number. */
bool dl_field_in_range(const struct dl_field *field, double value);

#endif
