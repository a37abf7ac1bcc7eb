/* where.c - choosing rows of tables by the values of their columns. */
#include "predict/options/where.h"

#include <string.h>

#include "model/core/text.h"

bool dl_filter_listed(const char *list, const char *text) {
    if (strcmp(list, text) == 0) return true; /* first: a name may hold commas */
    const size_t length = strlen(text);
    for (const char *part = list; length > 0; part++) {
        const size_t part_length = strcspn(part, ",");
        if (part_length == length && strncmp(part, text, length) == 0) return true;
        part += part_length;
        if (*part == 0) return false;
    }
    return false;
}

const char *dl_filter_cell(const struct dl_csv *csv, int row, const char *column) {
    const int c = dl_csv_column(csv, column);
    const char *text = c < 0 ? "" : csv->rows[row][c];
    /* its meaning in compare */
    return text[0] == 0 && strcmp(column, "precision") == 0 ? "fp32" : text;
}

int dl_filter_values(const struct dl_csv *csvs, int count, const char *column, bool empty,
                     const char **out, int most) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        for (int r = 0; r < csvs[i].row_count; r++) {
            const char *text = dl_filter_cell(&csvs[i], r, column);
            if (empty || text[0] != 0) dl_text_place(out, &found, most, text);
        }
    }
    return found;
}

bool dl_filters_pass(const struct dl_filters *filters, const struct dl_csv *csv, int row) {
    for (int i = 0; i < filters->count; i++) {
        const struct dl_filter *f = &filters->list[i];
        const char *text = dl_filter_cell(csv, row, f->column);
        if (f->part ? strstr(text, f->value) == NULL : !dl_filter_listed(f->value, text))
            return false;
    }
    return true;
}

enum dl_code dl_filters_read(const struct dl_options *options, struct dl_arena *arena,
                             struct dl_filters *out, struct dl_err *err) {
    for (int i = 0; i < options->given_count; i++) {
        const char *name = options->given[i].option->name, *value = options->given[i].value;
        if (strcmp(name, "where") != 0) continue;
        const char *equals = strpbrk(value, "=~");
        if (equals == NULL || equals == value) {
            return dl_fail(err, DL_ERR_USAGE,
                           "--where: expected COLUMN=VALUE or COLUMN~TEXT, got \"%s\"", value);
        }
        const char *column = dl_arena_strndup(arena, value, (size_t)(equals - value));
        out->list[out->count++] = (struct dl_filter){name, column, equals + 1, *equals == '~'};
    }
    return DL_OK;
}

enum dl_code dl_filters_check(const struct dl_filters *filters, const struct dl_csv *csvs,
                              int count, struct dl_err *err) {
    for (int f = 0; f < filters->count; f++) {
        bool found = false;
        for (int i = 0; i < count; i++)
            found = found || dl_csv_column(&csvs[i], filters->list[f].column) >= 0;
        if (found) continue;
        const char *names[65], *near;
        int n = 0;
        for (; n < csvs[0].column_count && n < 64; n++) names[n] = csvs[0].header[n];
        names[n] = NULL;
        near = dl_suggest(filters->list[f].column, names);
        return dl_fail(err, DL_ERR_USAGE, "--%s: no file has a column '%s'%s%s%s",
                       filters->list[f].option, filters->list[f].column,
                       near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
    }
    return DL_OK;
}

void dl_filters_apply(const struct dl_filters *filters, const struct dl_csv *csv,
                      struct dl_arena *arena, struct dl_csv *out) {
    const char *const **rows = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *rows);
    int *lines = dl_arena_alloc(arena, (size_t)csv->row_count, sizeof *lines);
    *out = *csv;
    out->row_count = 0;
    for (int r = 0; r < csv->row_count; r++) {
        if (!dl_filters_pass(filters, csv, r)) continue;
        rows[out->row_count] = csv->rows[r];
        lines[out->row_count++] = csv->row_lines[r];
    }
    out->rows = rows;
    out->row_lines = lines;
}
