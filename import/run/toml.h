/* toml.h - a strict reader of the part of TOML 1.0 that training configurations use: tables
 * ([a], [a.b]), bare and quoted keys, dotted keys, strings on one line, integers, floats, booleans,
 * arrays of these. Multi-line strings, dates, inline tables and arrays of tables are errors that
 * name their place. A key that is given twice is an error. Evaluates nothing. */
#ifndef DL_IMPORT_RUN_TOML_H
#define DL_IMPORT_RUN_TOML_H

#include "import/run/arguments.h"

/* Adds the keys as "training.seq_len", elements of an array one a line. DL_ERR_INPUT with line and
 * column. */
enum dl_code dl_toml_read(const char *text, size_t length, struct dl_arguments *out,
                          struct dl_err *err);

#endif
