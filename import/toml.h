/* toml.h - a strict reader of the part of TOML 1.0 that training configurations use: tables
 * ([a], [a.b]), bare and quoted keys, dotted keys, strings on one line, integers, floats, booleans,
 * arrays of these. Multi-line strings, dates, inline tables and arrays of tables are errors that
 * name their place. A key that is given twice is an error. Evaluates nothing. */
#ifndef DL_IMPORT_TOML_H
#define DL_IMPORT_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

enum dl_toml_type { DL_TOML_STRING, DL_TOML_NUMBER, DL_TOML_BOOL, DL_TOML_ARRAY };

struct dl_toml_entry {
    const char *path; /* "training.seq_len" */
    enum dl_toml_type type;
    const char *text; /* of a string its value, of an array its elements' texts, one a line */
    double number;    /* of a number; 1 or 0 of a boolean; elements of an array */
    int line, col;
};

enum { DL_TOML_ENTRIES = 1024, DL_TOML_PATH = 256 };

struct dl_toml {
    const char *name; /* of the file, for messages */
    struct dl_toml_entry *entries;
    int count;
};

/* DL_ERR_INPUT with line and column. Everything in `out` lies in the arena. */
enum dl_code dl_toml_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_toml *out, struct dl_err *err);
/* The entry of that path; NULL: none. */
const struct dl_toml_entry *dl_toml_find(const struct dl_toml *toml, const char *path);

#endif
