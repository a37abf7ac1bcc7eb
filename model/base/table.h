/* table.h - one set of rows, printed as aligned text, CSV or JSON from the same columns.
 *
 * A column is a key (JSON and CSV name, SI units in it), a heading and unit for people, and how a
 * value is shown to them (`scale` divides: 1e-3 shows seconds as ms). Text: heading line, unit
 * line, right-aligned numbers, left-aligned strings. CSV and JSON: SI values with 17 digits at
 * most; absent: empty or null.
 */
#ifndef DL_MODEL_BASE_TABLE_H
#define DL_MODEL_BASE_TABLE_H

#include <stdbool.h>
#include "model/base/arena.h"
#include "model/base/json.h"

enum dl_format { DL_FORMAT_TEXT, DL_FORMAT_CSV, DL_FORMAT_JSON };
enum dl_column_type { DL_COLUMN_STRING, DL_COLUMN_NUMBER, DL_COLUMN_INTEGER, DL_COLUMN_BOOL };

struct dl_column {
    /* "iteration_s", or "memory.total_bytes": a dot makes a nested object in JSON */
    const char *key;
    /* "iter"; NULL: not shown in text */
    const char *heading;
    /* "ms" */
    const char *unit;
    enum dl_column_type type;
    /* text shows value / scale; 0 means 1 */
    double scale;
    /* significant digits in text; 0 means 3 */
    int digits;
};

union dl_cell {
    const char *string; /* NULL: absent */
    double number;      /* NAN: absent */
    int64_t integer;    /* DL_ABSENT: absent */
    bool boolean;
};

struct dl_table {
    const struct dl_column *columns;
    int column_count, row_count, row_capacity;
    union dl_cell *cells; /* row-major */
    struct dl_arena *arena;
};

void dl_table_init(struct dl_table *table, struct dl_arena *arena, const struct dl_column *columns,
                   int column_count);
/* a new row of absent cells; NULL when out of memory */
union dl_cell *dl_table_row(struct dl_table *table);
char *dl_table_text(const struct dl_table *table); /* for people; NULL when out of memory */
char *dl_table_csv(const struct dl_table *table);
/* As text, CSV, or a JSON document: the array of its rows. NULL when out of memory. */
const char *dl_table_render(const struct dl_table *table, enum dl_format format);
/* What dl_table_text() shows in a cell, in the arena; NULL when out of memory. */
const char *dl_table_cell_text(const struct dl_table *table, int row, int column,
                               struct dl_arena *arena);
/* The rows as elements of the array that is open in the writer. */
void dl_table_json(const struct dl_table *table, struct dl_json_writer *writer);

#endif
