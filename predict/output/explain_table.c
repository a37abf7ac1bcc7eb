/* explain_table.c - see the header. */
#include "predict/output/explain_table.h"

#include <math.h>
#include <string.h>

#include "predict/manual/wrap.h"

enum { NAME_WIDTH = 30, HEADING_LINES = 2 };

static const struct dl_column columns[] = {
    {"term", "term", "", DL_COLUMN_STRING, 0, 0},
    {"formula", "formula", "", DL_COLUMN_STRING, 0, 0},
    {"start_s", "at", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"value", "value", "", DL_COLUMN_STRING, 0, 0},
    {"sigma_log", "sigma", "", DL_COLUMN_NUMBER, 0, 2},
};

/* The end of a name is more informative than its middle: "...downsample.0 backward". */
static const char *short_name(struct dl_arena *arena, const char *name) {
    const size_t length = strlen(name);
    if (length <= NAME_WIDTH) return name;
    return dl_arena_printf(arena, "..%s", name + length - (NAME_WIDTH - 2));
}

static const char *value_text(struct dl_arena *arena, const union dl_cell *cells) {
    const double bytes = cells[DL_EXPLAIN_BYTES].number;
    const double value = dl_known(bytes) ? bytes / 1048576 : 1e3 * cells[DL_EXPLAIN_SECONDS].number;
    /* four significant digits, without a trailing point */
    const char *format = fabs(value) >= 1000 ? "%.0f %s" : "%#.4g %s";
    return dl_arena_printf(arena, format, value, dl_known(bytes) ? "MiB" : "ms");
}

static void fill(struct dl_table *out, const struct dl_table *terms) {
    for (int r = 0; r < terms->row_count; r++) {
        const union dl_cell *from = terms->cells + (size_t)r * (size_t)terms->column_count;
        union dl_cell *to = dl_table_row(out);
        to[0].string = short_name(terms->arena, from[DL_EXPLAIN_TERM].string);
        to[1].string = from[DL_EXPLAIN_FORMULA].string;
        to[2].number = from[DL_EXPLAIN_START].number;
        to[3].string = value_text(terms->arena, from);
        to[4].number = from[DL_EXPLAIN_SIGMA].number;
    }
}

static const char *inputs_text(const struct dl_table *terms, int row) {
    const union dl_cell *cells = terms->cells + (size_t)row * (size_t)terms->column_count;
    const char *inputs = cells[DL_EXPLAIN_INPUTS].string, *origin = cells[DL_EXPLAIN_ORIGIN].string;
    return origin == NULL ? inputs : dl_arena_printf(terms->arena, "%s [%s]", inputs, origin);
}

/* The lines of the narrow table, each followed by its inputs. */
static void add_lines(struct dl_text *out, const char *narrow, int width,
                      const struct dl_table *terms) {
    int line = 0;
    for (const char *at = narrow; *at != 0; line++) {
        const int length = (int)strcspn(at, "\n"), row = line - HEADING_LINES;
        dl_text_printf(out, "%.*s", length, at);
        if (line == 0) dl_text_printf(out, "%*s  inputs [origin]\n", width - length, "");
        if (line > 0 && row < 0) dl_text_add(out, "\n");
        if (row >= 0 && row < terms->row_count) {
            dl_text_printf(out, "%*s  ", width - length, "");
            dl_text_wrap(out, inputs_text(terms, row), width + 2, DL_EXPLAIN_WIDTH);
        }
        at += length + (at[length] != 0);
    }
}

const char *dl_explain_table_text(const struct dl_table *terms) {
    struct dl_text out = {.arena = terms->arena};
    struct dl_table table;
    int width = 0;
    dl_table_init(&table, terms->arena, columns, sizeof columns / sizeof columns[0]);
    fill(&table, terms);
    const char *narrow = dl_table_text(&table);
    for (const char *at = narrow; *at != 0;) {
        const int length = (int)strcspn(at, "\n");
        width = length > width ? length : width;
        at += length + (at[length] != 0);
    }
    add_lines(&out, narrow, width, terms);
    return dl_text_string(&out);
}
