/* csv.h - RFC 4180 tables: quoted fields hold commas, quotes and newlines; CRLF or LF; a header
 * row. */
#ifndef DL_MODEL_CORE_CSV_H
#define DL_MODEL_CORE_CSV_H

#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"

struct dl_csv {
    const char *name;            /* file name, for errors */
    int column_count, row_count; /* rows without the header */
    const char *const *header;
    const char *const *const *rows; /* rows[r][c], "" when empty; short rows are errors */
    const int *row_lines;           /* first line of each row in the file */
    const char *text;               /* the file, to locate cells; NULL when parsed from memory */
    size_t text_bytes;
    int text_line; /* line of the file at which `text` starts; 0: 1 */
    /* byte offsets of the rows in the file, to locate cells where `text` is NULL; NULL: unknown */
    const int64_t *row_offsets;
};

enum { DL_CSV_BYTES = 64 << 20 };       /* largest file read whole */
enum { DL_CSV_RECORD_BYTES = 1 << 20 }; /* longest record of a file read row by row */
/* Parse text, or a file. DL_ERR_INPUT names the line and column and what was expected. */
enum dl_code dl_csv_parse(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_csv *out, struct dl_err *err);
enum dl_code dl_csv_read(const char *path, struct dl_arena *arena, struct dl_csv *out,
                         struct dl_err *err);
/* Whole records of a file, from a line and byte offset on. */
struct dl_csv_records {
    const char *text;
    size_t length;
    int line;
    int64_t offset;
};
/* Parses more records of `table`. */
enum dl_code dl_csv_parse_rows(const struct dl_csv *table, const struct dl_csv_records *records,
                               struct dl_arena *arena, struct dl_csv *out, struct dl_err *err);

/* Index of the column with that name; -1: none. */
int dl_csv_column(const struct dl_csv *csv, const char *name);
/* The column of the table that a missing one may be misspelt as; NULL: none. */
const char *dl_csv_misspelt(const struct dl_csv *csv, const char *name);
/* Reports an error in a cell: DL_ERR_INPUT with its line, column and column name. */
enum dl_code dl_csv_fault(const struct dl_csv *csv, int row, int column, struct dl_err *err,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The cell as a number; NAN when empty. DL_ERR_INPUT with line and column name when it is not a
 * finite number. */
enum dl_code dl_csv_number(const struct dl_csv *csv, int row, int column, double *out,
                           struct dl_err *err);

#endif
