/* table_latex.c - a table as a tabular of LaTeX. */
#include <string.h>

#include "model/core/table.h"
#include "model/core/text.h"

/* Characters that LaTeX reads as commands; absent values as a dash. */
static void add_escaped(struct dl_text *t, const char *text) {
    static const struct {
        char plain;
        const char *latex;
    } rules[] = {{'\\', "\\textbackslash{}"},
                 {'~', "\\textasciitilde{}"},
                 {'^', "\\textasciicircum{}"},
                 {'<', "\\textless{}"},
                 {'>', "\\textgreater{}"},
                 {'&', "\\&"},
                 {'%', "\\%"},
                 {'$', "\\$"},
                 {'#', "\\#"},
                 {'_', "\\_"},
                 {'{', "\\{"},
                 {'}', "\\}"}};
    enum { RULES = sizeof rules / sizeof rules[0] };
    if (strcmp(text, "-") == 0) text = "--";
    for (; *text != 0; text++) {
        size_t i = 0;
        while (i < RULES && rules[i].plain != *text) i++;
        const bool control = (unsigned char)*text < 0x20 || *text == 0x7f;
        if (i < RULES)
            dl_text_add(t, rules[i].latex);
        else
            dl_text_add_bytes(t, control ? "?" : text, 1);
    }
}

enum { HEADINGS = -2, UNITS = -1 }; /* or the number of a row */

static void add_line(struct dl_text *t, const struct dl_table *table, int line) {
    bool first = true;
    for (int c = 0; c < table->column_count; c++) {
        const struct dl_column *column = &table->columns[c];
        if (column->heading == NULL) continue;
        const bool unit = column->unit != NULL && column->unit[0] != 0;
        if (!first) dl_text_add(t, " & ");
        first = false;
        if (line == HEADINGS)
            add_escaped(t, column->heading);
        else if (line >= 0)
            add_escaped(t, dl_table_cell_text(table, line, c, table->arena));
        else if (unit)
            add_escaped(t, dl_arena_printf(table->arena, "[%s]", column->unit));
    }
    dl_text_add(t, " \\\\\n");
}

const char *dl_table_latex(const struct dl_table *table) {
    struct dl_text t = {.arena = table->arena};
    bool any_unit = false;
    dl_text_add(&t, "% \\usepackage{booktabs}\n\\begin{tabular}{");
    for (int c = 0; c < table->column_count; c++) {
        const struct dl_column *column = &table->columns[c];
        if (column->heading == NULL) continue;
        const bool words = column->type == DL_COLUMN_STRING || column->type == DL_COLUMN_BOOL;
        any_unit = any_unit || (column->unit != NULL && column->unit[0] != 0);
        dl_text_add(&t, words ? "l" : "r");
    }
    dl_text_add(&t, "}\n\\toprule\n");
    add_line(&t, table, HEADINGS);
    /* a unit in brackets that begins a row would be read as the argument of the end of a row */
    if (any_unit) dl_text_add(&t, "{} ");
    if (any_unit) add_line(&t, table, UNITS);
    dl_text_add(&t, "\\midrule\n");
    for (int r = 0; r < table->row_count; r++) add_line(&t, table, r);
    dl_text_add(&t, "\\bottomrule\n\\end{tabular}\n");
    return dl_text_string(&t);
}
