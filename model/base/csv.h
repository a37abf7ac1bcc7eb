/* csv.h - RFC 4180 tables: quoted fields hold commas, quotes and newlines; CRLF or LF; a header
 * row. */
#ifndef DL_MODEL_BASE_CSV_H
#define DL_MODEL_BASE_CSV_H

#include "model/base/arena.h"
#include "model/base/status.h"

struct dl_csv {
    /* file name, for errors */
    const char *name;
    /* rows without the header */
    int column_count, row_count;
    const char *const *header;
    /* rows[r][c], "" when empty; short rows are errors */
    const char *const *const *rows;
    /* line of the file where each row starts */
    const int *row_lines;
    /* the file, to find the place of a cell again; NULL when parsed from memory */
    const char *text;
    size_t text_bytes;
};

enum dl_code dl_csv_parse(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_csv *out, struct dl_err *err);
enum dl_code dl_csv_read(const char *path, struct dl_arena *arena, struct dl_csv *out,
                         struct dl_err *err);

int dl_csv_column(const struct dl_csv *csv, const char *name); /* -1 when there is none */
/* The file is wrong in this cell: DL_ERR_INPUT with the cell's line, column and name. */
enum dl_code dl_csv_fault(const struct dl_csv *csv, int row, int column, struct dl_err *err,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Cell as a number; empty gives NAN. A cell that is no finite number: error with its line and
 * column name. */
enum dl_code dl_csv_number(const struct dl_csv *csv, int row, int column, double *out,
                           struct dl_err *err);

#endif
