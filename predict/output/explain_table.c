/* explain_table.c - see the header. */
#include "predict/output/explain_table.h"

#include <math.h>
#include <string.h>

#include "predict/manual/wrap.h"

#define HIDDEN(member, key) DL_HIDDEN(struct dl_explained, member, key, NULL)
const struct dl_list_column dl_explain_columns[DL_EXPLAIN_COLUMNS] = {
    HIDDEN(term.name, "term"),       HIDDEN(term.group, "group"),
    HIDDEN(term.formula, "formula"), HIDDEN(term.inputs, "inputs"),
    HIDDEN(term.start_s, "start_s"), HIDDEN(seconds, "value_s"),
    HIDDEN(bytes, "value_bytes"),    HIDDEN(term.sigma_log, "sigma_log"),
    HIDDEN(term.origin, "origin"),   HIDDEN(term.limit, "limit"),
};

enum { NAME_WIDTH = 30, HEADING_LINES = 2 };

/* What people see of a term. */
struct narrow {
    const char *term, *formula, *value;
    double start_s, sigma_log;
};
#define SHOWN(member, heading, unit, scale, digits)                                                \
    DL_SHOWN(struct narrow, member, heading, heading, unit, scale, digits, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(term, "term", "", 0, 0),       SHOWN(formula, "formula", "", 0, 0),
    SHOWN(start_s, "at", "ms", 1e-3, 4), SHOWN(value, "value", "", 0, 0),
    SHOWN(sigma_log, "sigma", "", 0, 2),
};

const char *dl_explain_short_name(struct dl_arena *arena, const char *name) {
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
        const struct narrow row = {
            .term = dl_explain_short_name(terms->arena, from[DL_EXPLAIN_TERM].string),
            .formula = from[DL_EXPLAIN_FORMULA].string,
            .value = value_text(terms->arena, from),
            .start_s = from[DL_EXPLAIN_START].number,
            .sigma_log = from[DL_EXPLAIN_SIGMA].number};
        dl_list_add(out, columns, &row);
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
    dl_list_table(&table, terms->arena, DL_LIST(columns), 0);
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
