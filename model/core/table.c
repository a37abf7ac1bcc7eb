/* table.c - the three shapes of a table.
 * Text takes every character for one column wide.
 */
#include "model/core/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/figure.h"
#include "model/core/text.h"

void dl_table_init(struct dl_table *table, struct dl_arena *arena, const struct dl_column *columns,
                   int column_count) {
    *table = (struct dl_table){.columns = columns, .column_count = column_count, .arena = arena};
}

static union dl_cell absent_cell(enum dl_column_type type) {
    union dl_cell cell = {.string = NULL};

    if (type == DL_COLUMN_NUMBER) cell.number = (double)NAN;
    if (type == DL_COLUMN_INTEGER) cell.integer = DL_ABSENT;
    if (type == DL_COLUMN_BOOL) cell.boolean = false;
    return cell;
}

union dl_cell *dl_table_row(struct dl_table *table) {
    const size_t width = (size_t)table->column_count;
    union dl_cell *row;

    table->cells = dl_arena_grow(table->arena, table->cells, (size_t)table->row_count,
                                 width * sizeof *table->cells);
    row = table->cells + (size_t)table->row_count++ * width;
    for (size_t c = 0; c < width; c++) row[c] = absent_cell(table->columns[c].type);
    return row;
}

void dl_table_add_cells(struct dl_table *table, const union dl_cell *cells, size_t bytes) {
    const size_t room = (size_t)table->column_count * sizeof *cells;
    memcpy(dl_table_row(table), cells, bytes < room ? bytes : room);
}

union dl_cell *dl_table_cells(const struct dl_table *table, int row) {
    return &table->cells[(size_t)row * (size_t)table->column_count];
}

static const union dl_cell *cell_at(const struct dl_table *table, int row, int column) {
    return &dl_table_cells(table, row)[column];
}

/* The cell as text for people: in `out`, or the cell's own string. */
static const char *cell_text(const struct dl_column *column, const union dl_cell *cell, char *out) {
    const double scale = column->scale != 0 ? column->scale : 1;

    switch (column->type) {
    case DL_COLUMN_STRING: return cell->string != NULL ? cell->string : "-";
    case DL_COLUMN_NUMBER:
        if (isnan(cell->number)) return "-";
        dl_figure(cell->number / scale, column->digits > 0 ? column->digits : 3, out);
        return out;
    case DL_COLUMN_INTEGER:
        if (cell->integer == DL_ABSENT) return "-";
        if (scale != 1)
            dl_figure((double)cell->integer / scale, column->digits > 0 ? column->digits : 3, out);
        else
            dl_figure_whole(cell->integer, out);
        return out;
    case DL_COLUMN_BOOL: return cell->boolean ? "yes" : "no";
    }
    return "";
}

const char *dl_table_cell_text(const struct dl_table *table, int row, int column,
                               struct dl_arena *arena) {
    char buffer[DL_FIGURE_TEXT];

    return dl_arena_strdup(arena,
                           cell_text(&table->columns[column], cell_at(table, row, column), buffer));
}

static size_t width_of(const char *text) {
    size_t width = 0;

    for (; *text != '\0'; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* A text that is wider is cut, and ends in "...". */
static void put_padded(struct dl_text *t, const char *text, size_t width, bool left) {
    static const char cut[] = "...";
    const size_t have = width_of(text), kept = have > width ? width - (sizeof cut - 1) : have;

    for (size_t i = have; i < width && !left; i++) dl_text_add_bytes(t, " ", 1);
    for (size_t seen = 0; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        seen += (c & 0xc0) != 0x80;
        if (seen > kept) break;
        dl_text_add_bytes(t, c < 0x20 || c == 0x7f ? "?" : text, 1);
    }
    if (kept < have) dl_text_add(t, cut);
    for (size_t i = have; i < width && left; i++) dl_text_add_bytes(t, " ", 1);
}

/* Spaces before a line's end are of no use to anyone. */
static void end_line(struct dl_text *t) {
    while (t->length > 0 && t->bytes[t->length - 1] == ' ') t->length--;
    dl_text_add_bytes(t, "\n", 1);
}

static void unit_text(const struct dl_column *column, char *out, size_t out_size) {
    if (column->unit == NULL || column->unit[0] == '\0')
        out[0] = '\0';
    else
        snprintf(out, out_size, "[%s]", column->unit);
}

/* 0 for a column that text does not show. */
static size_t column_width(const struct dl_table *table, int c, bool *any_unit) {
    const struct dl_column *column = &table->columns[c];
    char buffer[DL_FIGURE_TEXT];
    size_t width, have;

    if (column->heading == NULL) return 0;
    width = width_of(column->heading);
    unit_text(column, buffer, sizeof buffer);
    have = width_of(buffer);
    if (have > 0) *any_unit = true;
    if (have > width) width = have;
    for (int r = 0; r < table->row_count; r++) {
        have = width_of(cell_text(column, cell_at(table, r, c), buffer));
        if (have > width) width = have;
    }
    return width > 0 ? width : 1;
}

enum line { HEADINGS = -2, UNITS = -1 }; /* or the number of a row */

static void put_line(struct dl_text *t, const struct dl_table *table, const size_t *widths,
                     int line) {
    const char *gap = " ";

    for (int c = 0; c < table->column_count; c++) {
        const struct dl_column *column = &table->columns[c];
        char buffer[DL_FIGURE_TEXT];
        const char *text = buffer;

        if (widths[c] == 0) continue;
        if (line == HEADINGS)
            text = column->heading;
        else if (line == UNITS)
            unit_text(column, buffer, sizeof buffer);
        else
            text = cell_text(column, cell_at(table, line, c), buffer);
        dl_text_add(t, gap);
        put_padded(t, text, widths[c],
                   column->type == DL_COLUMN_STRING || column->type == DL_COLUMN_BOOL);
        gap = "  ";
    }
    end_line(t);
}

void dl_table_measure(const struct dl_table *part, struct dl_arena *arena,
                      struct dl_table_layout *layout) {
    const size_t columns = (size_t)part->column_count;

    if (layout->widths == NULL)
        layout->widths = dl_arena_alloc(arena, columns, sizeof *layout->widths);
    for (int c = 0; c < part->column_count; c++) {
        const size_t width = column_width(part, c, &layout->any_unit);
        if (width > layout->widths[c]) layout->widths[c] = width;
    }
}

void dl_table_narrow(const struct dl_table *part, struct dl_table_layout *layout,
                     const char *heading, size_t least) {
    size_t line = 0, *width = NULL;
    for (int c = 0; c < part->column_count; c++) {
        if (layout->widths[c] == 0) continue;
        line += layout->widths[c] + (line == 0 ? 1 : 2);
        if (strcmp(part->columns[c].heading, heading) == 0) width = &layout->widths[c];
    }
    if (width == NULL || line <= DL_TEXT_COLUMNS || *width <= least) return;
    const size_t excess = line - DL_TEXT_COLUMNS;
    *width = *width > least + excess ? *width - excess : least;
}

char *dl_table_text_part(const struct dl_table *part, const struct dl_table_layout *layout,
                         bool head) {
    struct dl_text t = {.arena = part->arena};

    if (head) put_line(&t, part, layout->widths, HEADINGS);
    if (head && layout->any_unit) put_line(&t, part, layout->widths, UNITS);
    for (int r = 0; r < part->row_count; r++) put_line(&t, part, layout->widths, r);
    return t.bytes != NULL ? t.bytes : dl_arena_strdup(part->arena, "");
}

char *dl_table_text(const struct dl_table *table) {
    struct dl_table_layout layout = {0};

    dl_table_measure(table, table->arena, &layout);
    return dl_table_text_part(table, &layout, true);
}

/* A spreadsheet runs a cell that begins so as a formula ("-1+A1" too); a number it does not. */
static bool is_formula(const char *text) {
    char *end;

    if (text[0] == '=' || text[0] == '@') return true;
    if ((text[0] != '+' && text[0] != '-') || text[1] == '\0') return false;
    (void)strtod(text, &end);
    return *end != '\0';
}

/* A formula is preceded by an apostrophe, which spreadsheets take as the mark of text. */
static void put_csv_string(struct dl_text *t, const char *string) {
    const bool plain = strpbrk(string, ",\"\r\n") == NULL;

    if (is_formula(string)) dl_text_add_bytes(t, plain ? "'" : "\"'", plain ? 1 : 2);
    if (plain) {
        dl_text_add(t, string);
        return;
    }
    if (!is_formula(string)) dl_text_add_bytes(t, "\"", 1);
    for (; *string != '\0'; string++)
        dl_text_add_bytes(t, *string == '"' ? "\"\"" : string, *string == '"' ? 2 : 1);
    dl_text_add_bytes(t, "\"", 1);
}

static void put_csv_cell(struct dl_text *t, enum dl_column_type type, const union dl_cell *cell) {
    char number[DL_NUMBER_TEXT];

    switch (type) {
    case DL_COLUMN_STRING:
        if (cell->string != NULL) put_csv_string(t, cell->string);
        break;
    case DL_COLUMN_NUMBER:
        if (!isfinite(cell->number)) break;
        dl_number_text(cell->number, number);
        dl_text_add(t, number);
        break;
    case DL_COLUMN_INTEGER:
        if (cell->integer == DL_ABSENT) break;
        snprintf(number, sizeof number, "%" PRId64, cell->integer);
        dl_text_add(t, number);
        break;
    case DL_COLUMN_BOOL: dl_text_add(t, cell->boolean ? "true" : "false"); break;
    }
}

char *dl_table_csv_part(const struct dl_table *table, bool head) {
    struct dl_text t = {.arena = table->arena};

    for (int r = head ? -1 : 0; r < table->row_count; r++) {
        for (int c = 0, written = 0; c < table->column_count; c++) {
            if (table->columns[c].key == NULL) continue;
            if (written++ > 0) dl_text_add_bytes(&t, ",", 1);
            if (r < 0)
                put_csv_string(&t, table->columns[c].key);
            else
                put_csv_cell(&t, table->columns[c].type, cell_at(table, r, c));
        }
        dl_text_add_bytes(&t, "\n", 1);
    }
    return t.bytes != NULL ? t.bytes : dl_arena_strdup(table->arena, "");
}

char *dl_table_csv(const struct dl_table *table) { return dl_table_csv_part(table, true); }

static void json_cell(struct dl_json_writer *writer, const char *key, enum dl_column_type type,
                      const union dl_cell *cell) {
    switch (type) {
    case DL_COLUMN_STRING: dl_jw_string(writer, key, cell->string); break;
    case DL_COLUMN_NUMBER: dl_jw_number(writer, key, cell->number); break;
    case DL_COLUMN_INTEGER:
        if (cell->integer == DL_ABSENT)
            dl_jw_string(writer, key, NULL);
        else
            dl_jw_integer(writer, key, cell->integer);
        break;
    case DL_COLUMN_BOOL: dl_jw_bool(writer, key, cell->boolean); break;
    }
}

static bool same_group(const char *a, const char *b, size_t length) {
    return length == 0 || (b != NULL && strncmp(a, b, length) == 0);
}

/* The columns whose keys start with the first `prefix` bytes of column `first`'s key, as members of
 * the open object. */
static void json_members(const struct dl_table *table, int row, struct dl_json_writer *writer,
                         int first, size_t prefix) {
    const char *group = table->columns[first].key;

    for (int c = first; c < table->column_count; c++) {
        const char *key = table->columns[c].key, *dot;
        size_t group_length;
        bool done = false;

        if (key == NULL || !same_group(group, key, prefix)) continue;
        dot = strchr(key + prefix, '.');
        if (dot == NULL) {
            json_cell(writer, key + prefix, table->columns[c].type, cell_at(table, row, c));
            continue;
        }
        group_length = (size_t)(dot - key) + 1;
        for (int before = first; before < c && !done; before++)
            done = same_group(key, table->columns[before].key, group_length);
        if (done) continue;
        char *name = dl_arena_strndup(table->arena, key + prefix, group_length - 1 - prefix);
        dl_jw_object(writer, name);
        json_members(table, row, writer, c, group_length);
        dl_jw_end(writer);
    }
}

void dl_table_json(const struct dl_table *table, struct dl_json_writer *writer) {
    for (int r = 0; r < table->row_count; r++) {
        dl_jw_object(writer, NULL);
        if (table->column_count > 0) json_members(table, r, writer, 0, 0);
        dl_jw_end(writer);
    }
}

const char *dl_table_render(const struct dl_table *table, enum dl_format format) {
    if (format == DL_FORMAT_TEXT) return dl_table_text(table);
    if (format == DL_FORMAT_CSV) return dl_table_csv(table);
    if (format == DL_FORMAT_LATEX) return dl_table_latex(table);
    struct dl_json_writer w;
    dl_jw_init(&w, table->arena, false);
    dl_jw_array(&w, NULL);
    dl_table_json(table, &w);
    return dl_jw_text(&w);
}
