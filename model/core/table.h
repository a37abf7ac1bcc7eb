/* table.h - rows printed as aligned text, CSV or JSON from the same columns.
 *
 * A column has a key (its name in JSON and CSV, with the SI unit), a heading and unit for text, and
 * a scale for text (1e-3 shows seconds as ms). Text: a heading line, a unit line, numbers
 * right-aligned, strings left-aligned. CSV and JSON: SI values with at most 17 digits; absent
 * values are empty or null. */
#ifndef DL_MODEL_CORE_TABLE_H
#define DL_MODEL_CORE_TABLE_H

#include <stdbool.h>
#include "model/core/arena.h"
#include "model/core/json.h"

enum dl_format { DL_FORMAT_TEXT, DL_FORMAT_CSV, DL_FORMAT_JSON, DL_FORMAT_LATEX };
enum dl_column_type { DL_COLUMN_STRING, DL_COLUMN_NUMBER, DL_COLUMN_INTEGER, DL_COLUMN_BOOL };

struct dl_column {
    const char *key; /* "iteration_s"; "memory.total_bytes": a dot nests objects in JSON; NULL: text
                        alone shows the column */
    const char *heading; /* "iter"; NULL: not shown in text */
    const char *unit;    /* "ms" */
    enum dl_column_type type;
    double scale; /* text shows value / scale; 0 means 1 */
    int digits;   /* significant digits in text; 0 means 3 */
};

union dl_cell {
    const char *string; /* NULL: absent */
    double number;      /* NAN: absent */
    int64_t integer;    /* DL_ABSENT: absent */
    bool boolean;
};

struct dl_table {
    const struct dl_column *columns;
    int column_count, row_count;
    union dl_cell *cells; /* row-major */
    struct dl_arena *arena;
};

void dl_table_init(struct dl_table *table, struct dl_arena *arena, const struct dl_column *columns,
                   int column_count);
/* The cells of a row. */
union dl_cell *dl_table_cells(const struct dl_table *table, int row);
/* Appends a row of absent cells. */
union dl_cell *dl_table_row(struct dl_table *table);
/* Appends a row that begins with these cells; cells beyond the last column are dropped:
 * dl_table_add(&table, {.string = id}, {.number = time_s}) */
void dl_table_add_cells(struct dl_table *table, const union dl_cell *cells, size_t bytes);
#define dl_table_add(table, ...)                                                                   \
    dl_table_add_cells(table, (const union dl_cell[]){__VA_ARGS__},                                \
                       sizeof((const union dl_cell[]){__VA_ARGS__}))
char *dl_table_text(const struct dl_table *table); /* for people */
char *dl_table_csv(const struct dl_table *table);
/* A tabular of LaTeX with the columns of text; package booktabs. */
const char *dl_table_latex(const struct dl_table *table);
/* The same in parts, for more rows than memory holds: `head` with the first one. */
char *dl_table_csv_part(const struct dl_table *table, bool head);
/* Text in parts needs the widths of all rows before the first part. {0} is a valid start. */
struct dl_table_layout {
    size_t *widths; /* 0: not shown */
    bool any_unit;
};
/* Widens the layout for the rows of a part. */
void dl_table_measure(const struct dl_table *part, struct dl_arena *arena,
                      struct dl_table_layout *layout);
/* Narrows the column with this heading, to no less than `least` (3 or more) characters, until a
 * line has at most DL_TEXT_COLUMNS: cells that are longer are cut and end in "...". */
enum { DL_TEXT_COLUMNS = 100 };
void dl_table_narrow(const struct dl_table *part, struct dl_table_layout *layout,
                     const char *heading, size_t least);
char *dl_table_text_part(const struct dl_table *part, const struct dl_table_layout *layout,
                         bool head);
/* As text, CSV, LaTeX, or a JSON document: the array of its rows. */
const char *dl_table_render(const struct dl_table *table, enum dl_format format);
/* The text of a cell in dl_table_text(), in the arena. */
const char *dl_table_cell_text(const struct dl_table *table, int row, int column,
                               struct dl_arena *arena);
/* Writes the rows as elements of the writer's open array. */
void dl_table_json(const struct dl_table *table, struct dl_json_writer *writer);

#endif
