/* csv.c - RFC 4180, strictly: malformed text is refused with its position, never guessed. Commas
 * are the only separator; there are no comments. Empty lines between records are skipped. */
#include "model/core/csv.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"

enum { MAX_COLUMNS = 4096 };

/* Fields are decoded one after the other into `decoded`, one byte larger than the text: decoding
 * never lengthens, and the NUL behind a field takes the place of its comma or line end. */
struct reader {
    const char *name, *text;
    size_t length, at, line_start;
    int line;
    char *decoded;
    size_t decoded_length;
    struct dl_err *err;
};

static enum dl_code fault(const struct reader *r, const char *column, const char *expected) {
    return dl_fail_at(r->err, r->name, r->line, (int)(r->at - r->line_start) + 1, column,
                      "expected %s", expected);
}

static bool at_line_end(const struct reader *r) {
    return r->at >= r->length || r->text[r->at] == '\n' ||
           (r->text[r->at] == '\r' && (r->at + 1 == r->length || r->text[r->at + 1] == '\n'));
}

static void next_line(struct reader *r) {
    while (r->at < r->length && r->text[r->at++] != '\n') continue;
    r->line++;
    r->line_start = r->at;
}

static enum dl_code read_quoted(struct reader *r) {
    const struct reader opening = *r;

    r->at++;
    for (;;) {
        char c;

        if (r->at >= r->length)
            return fault(&opening, NULL, "a closing quote for the field that starts here");
        c = r->text[r->at];
        if (c == '"' && (r->at + 1 >= r->length || r->text[r->at + 1] != '"')) break;
        if (c == '"') r->at++;
        if (c == '\0') return fault(r, NULL, "text, got a zero byte");
        r->decoded[r->decoded_length++] = c;
        r->at++;
        if (c == '\n') {
            r->line++;
            r->line_start = r->at;
        }
    }
    r->at++;
    if (!at_line_end(r) && r->text[r->at] != ',')
        return fault(r, NULL, "a comma or the end of the line after a quoted field");
    return DL_OK;
}

static enum dl_code read_plain(struct reader *r) {
    while (!at_line_end(r) && r->text[r->at] != ',') {
        char c = r->text[r->at];

        if (c == '"')
            return fault(
                r, NULL,
                "no quote inside a field that starts without one (double it and quote the field)");
        if (c == '\r') return fault(r, NULL, "a line feed after a carriage return");
        if (c == '\0') return fault(r, NULL, "text, got a zero byte");
        r->decoded[r->decoded_length++] = c;
        r->at++;
    }
    return DL_OK;
}

/* A field up to its comma or line end, NUL-terminated in `decoded`. */
static enum dl_code read_field(struct reader *r, const char **out) {
    *out = r->decoded + r->decoded_length;
    if (r->at < r->length && r->text[r->at] == '"')
        DL_TRY(read_quoted(r));
    else
        DL_TRY(read_plain(r));
    r->decoded[r->decoded_length++] = '\0';
    return DL_OK;
}

/* Upper bounds for the number of fields in the first record and of records in the file. */
static void count_bounds(const struct reader *r, size_t *columns, size_t *lines) {
    bool first = true, quoted = false;

    *columns = *lines = 1;
    for (size_t i = r->at; i < r->length; i++) {
        if (r->text[i] == '"')
            quoted = !quoted;
        else if (r->text[i] == '\n')
            ++*lines;
        else if (r->text[i] == ',' && first)
            ++*columns;
        if (r->text[i] == '\n' && !quoted) first = false;
    }
}

static enum dl_code read_header(struct reader *r, const char **header, size_t capacity,
                                int *count_out) {
    int count = 0;

    for (;;) {
        DL_TRY(read_field(r, &header[count]));
        count++;
        if (at_line_end(r)) break;
        if ((size_t)count == capacity) return fault(r, NULL, "at most 4096 columns");
        r->at++;
    }
    /* After empty lines a byte order mark would be part of the first name until the table is
     * written. */
    if (strncmp(header[0], "\xef\xbb\xbf", 3) == 0 || strncmp(header[0], "\xff\xfe", 2) == 0 ||
        strncmp(header[0], "\xfe\xff", 2) == 0)
        return dl_fail_at(r->err, r->name, r->line, 1, NULL,
                          "expected a byte order mark only as the first bytes of the file");
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (header[i][0] != '\0' && strcmp(header[i], header[j]) == 0)
                return dl_fail_at(r->err, r->name, r->line, 1, header[i],
                                  "expected each column once in the header");
    next_line(r);
    *count_out = count;
    return DL_OK;
}

static enum dl_code read_row(struct reader *r, const char *const *header, int columns,
                             const char **row) {
    const int line = r->line;

    for (int c = 0; c < columns; c++) {
        DL_TRY(read_field(r, &row[c]));
        if (c + 1 < columns && at_line_end(r))
            return dl_fail_at(r->err, r->name, r->line, (int)(r->at - r->line_start) + 1,
                              header[c + 1], "expected %d fields as in the header, got %d", columns,
                              c + 1);
        if (c + 1 == columns && !at_line_end(r))
            return dl_fail_at(
                r->err, r->name, r->line, (int)(r->at - r->line_start) + 1, NULL,
                "expected %d fields as in the header, got more in the record of line %d", columns,
                line);
        if (c + 1 < columns) r->at++;
    }
    next_line(r);
    return DL_OK;
}

static bool skip_empty_line(struct reader *r) {
    if (r->at >= r->length || !at_line_end(r)) return false;
    next_line(r);
    return true;
}

/* The records up to the end of the text. offsets: where each starts; NULL: not wanted. */
static enum dl_code read_rows(struct reader *r, struct dl_arena *arena, struct dl_csv *csv,
                              const char *const **rows, int *lines, int64_t *offsets) {
    for (;;) {
        const char **row;

        while (skip_empty_line(r)) continue;
        if (r->at >= r->length) return DL_OK;
        row = dl_arena_alloc(arena, (size_t)csv->column_count, sizeof *row);
        lines[csv->row_count] = r->line;
        if (offsets != NULL) offsets[csv->row_count] = (int64_t)r->at;
        DL_TRY(read_row(r, csv->header, csv->column_count, row));
        rows[csv->row_count++] = row;
    }
}

static enum dl_code read_all(struct reader *r, struct dl_arena *arena, struct dl_csv *csv) {
    size_t column_bound, line_bound;
    const char **header, *const **rows;
    int *lines;

    while (skip_empty_line(r)) continue;
    if (r->at >= r->length)
        return dl_fail_at(r->err, r->name, 0, 0, NULL, "expected a header row, got an empty file");
    count_bounds(r, &column_bound, &line_bound);
    if (column_bound > MAX_COLUMNS) column_bound = MAX_COLUMNS;
    header = dl_arena_alloc(arena, column_bound, sizeof *header);
    rows = dl_arena_alloc(arena, line_bound, sizeof *rows);
    lines = dl_arena_alloc(arena, line_bound, sizeof *lines);
    r->decoded = dl_arena_alloc(arena, r->length + 1, 1);
    DL_TRY(read_header(r, header, column_bound, &csv->column_count));
    csv->header = header;
    if (csv->column_count == 1 && strpbrk(header[0], ";\t") != NULL)
        return dl_fail_at(r->err, r->name, 1, 1, NULL,
                          "expected fields separated by commas, got %s",
                          strchr(header[0], ';') != NULL ? "semicolons" : "tabs");
    csv->rows = rows;
    csv->row_lines = lines;
    return read_rows(r, arena, csv, rows, lines, NULL);
}

enum dl_code dl_csv_parse_rows(const struct dl_csv *table, const struct dl_csv_records *records,
                               struct dl_arena *arena, struct dl_csv *out, struct dl_err *err) {
    const char *text = records->text;
    const size_t length = records->length;
    struct reader r = {
        .name = table->name, .text = text, .length = length, .line = records->line, .err = err};
    size_t lines_bound = 1;
    for (const char *at = text; (at = memchr(at, '\n', length - (size_t)(at - text))) != NULL; at++)
        lines_bound++;
    const char *const **rows = dl_arena_alloc(arena, lines_bound, sizeof *rows);
    int *lines = dl_arena_alloc(arena, lines_bound, sizeof *lines);
    int64_t *offsets = dl_arena_alloc(arena, lines_bound, sizeof *offsets);
    r.decoded = dl_arena_alloc(arena, length + 1, 1);
    *out = (struct dl_csv){.name = table->name,
                           .header = table->header,
                           .column_count = table->column_count,
                           .rows = rows,
                           .row_lines = lines,
                           .row_offsets = offsets,
                           .text = text,
                           .text_bytes = length,
                           .text_line = records->line};
    DL_TRY(read_rows(&r, arena, out, rows, lines, offsets));
    for (int i = 0; i < out->row_count; i++) offsets[i] += records->offset;
    return DL_OK;
}

enum dl_code dl_csv_parse(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_csv *out, struct dl_err *err) {
    struct dl_csv csv = {.name = dl_arena_strdup(arena, name)};
    struct reader r = {.name = name, .text = text, .length = length, .line = 1, .err = err};

    if (length > DL_CSV_BYTES)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a file of at most %d bytes",
                          DL_CSV_BYTES);
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return dl_fail_at(err, name, 1, 1, NULL,
                          "expected UTF-8 text, got UTF-16: save the file as UTF-8");
    /* byte order mark */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at = r.line_start = 3;
    DL_TRY(read_all(&r, arena, &csv));
    *out = csv;
    return DL_OK;
}

enum dl_code dl_csv_read(const char *path, struct dl_arena *arena, struct dl_csv *out,
                         struct dl_err *err) {
    char *text;
    size_t length;

    DL_TRY(dl_file_read(path, DL_CSV_BYTES, arena, &text, &length, err));
    DL_TRY(dl_csv_parse(path, text, length, arena, out, err));
    out->text = text;
    out->text_bytes = length;
    return DL_OK;
}

int dl_csv_column(const struct dl_csv *csv, const char *name) {
    for (int c = 0; c < csv->column_count; c++)
        if (strcmp(csv->header[c], name) == 0) return c;
    return -1;
}

const char *dl_csv_misspelt(const struct dl_csv *csv, const char *name) {
    for (int c = 0; c < csv->column_count; c++) {
        const char *const only[] = {name, NULL};
        if (dl_suggest(csv->header[c], only) != NULL) return csv->header[c];
    }
    return NULL;
}

/* Line and column (from 1) of a cell in text that begins with that line of the file. The file was
 * read before, so it is well formed: quotes only open and close fields. */
static void find_in_text(const char *text, size_t length, int line, int column, int *line_out,
                         int *column_out) {
    size_t at = 0, line_start = 0;
    int commas = 0;
    bool quoted = false;

    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) line_start = 3;
    for (; at < length && (line < *line_out || commas < column); at++) {
        if (line >= *line_out && text[at] == '"') quoted = !quoted;
        if (line >= *line_out && text[at] == ',' && !quoted) commas++;
        if (text[at] != '\n') continue;
        line++;
        line_start = at + 1;
    }
    if (at < line_start) at = line_start;
    *line_out = line;
    *column_out = (int)(at - line_start) + 1;
}

static void find_cell(const struct dl_csv *csv, int row, int column, int *line_out,
                      int *column_out) {
    *line_out = csv->row_lines[row];
    *column_out = 1;
    if (csv->text != NULL) {
        find_in_text(csv->text, csv->text_bytes, csv->text_line > 0 ? csv->text_line : 1, column,
                     line_out, column_out);
    } else if (csv->row_offsets != NULL) { /* only for a fault: read its record again */
        struct dl_arena arena = {0};
        char *text = dl_arena_alloc(&arena, DL_CSV_RECORD_BYTES, 1);
        const size_t length =
            dl_file_part(csv->name, csv->row_offsets[row], text, DL_CSV_RECORD_BYTES);
        if (length > 0)
            find_in_text(text, length, csv->row_lines[row], column, line_out, column_out);
        dl_arena_free(&arena);
    }
}

enum dl_code dl_csv_fault(const struct dl_csv *csv, int row, int column, struct dl_err *err,
                          const char *format, ...) {
    char message[512];
    int line, at;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    find_cell(csv, row, column, &line, &at);
    return dl_fail_at(err, csv->name, line, at, csv->header[column], "%s", message);
}

enum dl_code dl_csv_number(const struct dl_csv *csv, int row, int column, double *out,
                           struct dl_err *err) {
    const char *cell;
    char *end;
    double value;

    if (row < 0 || row >= csv->row_count || column < 0 || column >= csv->column_count)
        return dl_fail_at(err, csv->name, 0, 0, NULL,
                          "expected a cell of the table, got row %d, column %d", row, column);
    cell = csv->rows[row][column];
    if (cell[0] == '\0') {
        *out = (double)NAN;
        return DL_OK;
    }
    /* strtod alone would also take hex floats, "inf", "nan" and leading space. */
    value = strtod(cell, &end);
    if (strspn(cell, "+-.0123456789eE") != strlen(cell) || *end != '\0' || !isfinite(value))
        return dl_csv_fault(csv, row, column, err, "expected a number, got \"%.60s\"%s", cell,
                            strchr(cell, ',') != NULL ? " (a decimal point, not a comma)" : "");
    *out = value;
    return DL_OK;
}
