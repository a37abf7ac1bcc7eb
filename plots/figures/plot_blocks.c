/* plot_blocks.c - bars and Gantt charts for a terminal, drawn with Unicode blocks; without gnuplot.
 * Parts differ by colour, or without colours by the density of the block. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "plots/figures/plot.h"

enum { GLYPHS = 7, MAX_WIDTH = 240 };
static const char *const dense[GLYPHS] = {"█", "▓", "▒", "░", "▞", "▪", "·"};
static const int colors[GLYPHS] = {25, 117, 22, 214, 166, 250, 240}; /* of 256, as in plots/ */

bool dl_plot_blocks_wanted(const struct dl_figure *figure) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    if (figure->blocks.count == 0 && figure->curves.x_name == NULL && figure->strips == NULL)
        return false;
    for (int i = 0; i < 3; i++) { /* the first that is set decides, as in setlocale */
        const char *value = getenv(variables[i]);
        if (value == NULL || value[0] == 0) continue;
        return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL;
    }
    return false;
}

static void put_part(struct dl_text *out, int part, bool color) {
    const int p = part % GLYPHS;
    if (color)
        dl_text_printf(out, "\033[38;5;%dm█\033[0m", colors[p]);
    else
        dl_text_add(out, dense[p]);
}

/* Cells of a line; part -1: none. `mark`: a cell with a rule in it; -1: none. */
static void put_cells(struct dl_text *out, const int *cells, int width, int mark, bool color) {
    for (int i = 0; i < width; i++) {
        if (cells[i] >= 0)
            put_part(out, cells[i], color);
        else
            dl_text_add(out, i == mark ? "│" : " ");
    }
}

void dl_plot_heading(struct dl_text *out, const struct dl_figure *figure, int columns) {
    const size_t most = (size_t)columns - 2;
    dl_text_printf(out, " %s\n %s\n\n", dl_plot_label(out->arena, figure->title, most),
                   dl_plot_label(out->arena, figure->subtitle, most));
}

const char *dl_plot_label(struct dl_arena *arena, const char *text, size_t most) {
    if (text == NULL) return "";
    char *copy = dl_arena_strndup(arena, text, strnlen(text, most));
    dl_text_printable(copy, "");
    return copy;
}

static int place(double value, double most, int width) {
    const double at = most > 0 ? value / most * width : 0;
    return at < 0 ? 0 : at > width ? width : (int)lround(at);
}

static int longest_of(const char *const *texts, int count) {
    int longest = 0;
    for (int i = 0; i < count; i++) {
        const int length = texts[i] == NULL ? 0 : (int)strlen(texts[i]);
        longest = length > longest ? length : longest;
    }
    return longest < 28 ? longest : 28;
}

static double number_of(const struct dl_figure *f, int row, int column) {
    const double value = column >= 0 ? dl_table_cells(&f->table, row)[column].number : NAN;
    return dl_known(value) ? value : 0;
}

/* One line for each bar: its label, its parts, its sum. */
static void put_bars(const struct dl_figure *f, int width, bool color, struct dl_text *out) {
    const struct dl_plot_blocks *b = &f->blocks;
    const char *labels[DL_PLOT_BARS] = {NULL};
    double most = 0;
    const int rows = f->table.row_count < DL_PLOT_BARS ? f->table.row_count : DL_PLOT_BARS;
    for (int r = 0; r < rows; r++) {
        labels[r] = dl_table_cells(&f->table, r)[1].string;
        most = fmax(most, fmax(number_of(f, r, b->sum), number_of(f, r, b->limit)));
    }
    const int margin = longest_of(labels, rows);
    width -= margin + 14;
    for (int r = 0; r < rows; r++) {
        int cells[MAX_WIDTH], at = 0;
        double sum = 0;
        for (int i = 0; i < MAX_WIDTH; i++) cells[i] = -1;
        for (int p = 0; p < b->count; p++) {
            sum += number_of(f, r, b->first + p);
            for (const int end = place(sum, most, width); at < end; at++) cells[at] = p;
        }
        const int mark = b->limit >= 0 ? place(number_of(f, r, b->limit), most, width) - 1 : -1;
        dl_text_printf(out, " %*s ", margin, dl_plot_label(out->arena, labels[r], (size_t)margin));
        put_cells(out, cells, width, mark, color);
        dl_text_printf(out, " %.4g %s\n", number_of(f, r, b->sum) / b->unit_scale, b->unit_name);
    }
    if (b->limit >= 0)
        dl_text_printf(out, " │ %.4g %s: %s\n", number_of(f, 0, b->limit) / b->unit_scale,
                       b->unit_name, b->limit_name);
}

/* One line for each lane: what it does when. */
static void put_lanes(const struct dl_figure *f, int width, bool color, struct dl_text *out) {
    const struct dl_plot_blocks *b = &f->blocks;
    const int margin = longest_of(f->labels, f->group_count);
    double most = 0;
    for (int r = 0; r < f->table.row_count; r++) most = fmax(most, number_of(f, r, b->first + 1));
    width -= margin + 3;
    for (int g = 1; g <= f->group_count; g++) {
        int cells[MAX_WIDTH];
        for (int i = 0; i < MAX_WIDTH; i++) cells[i] = -1;
        for (int r = 0; r < f->table.row_count; r++) {
            const union dl_cell *c = dl_table_cells(&f->table, r);
            if (c[0].integer != g) continue;
            const int from = place(c[b->first].number, most, width),
                      to = place(c[b->first + 1].number, most, width);
            for (int i = from; i < to; i++) cells[i] = (int)c[b->first + 2].integer - 1;
        }
        dl_text_printf(out, " %*s ", margin,
                       dl_plot_label(out->arena, f->labels[g - 1], (size_t)margin));
        put_cells(out, cells, width, -1, color);
        dl_text_add(out, "\n");
    }
    dl_text_printf(out, " %*s 0%*.4g %s\n", margin, "", width - 1, most / b->unit_scale,
                   b->unit_name);
}

const char *dl_plot_blocks_text(const struct dl_figure *figure, int columns, bool color,
                                struct dl_arena *arena) {
    const struct dl_plot_blocks *b = &figure->blocks;
    struct dl_text out = {.arena = arena};
    const int width = columns < MAX_WIDTH ? columns : MAX_WIDTH;
    dl_plot_heading(&out, figure, columns);
    (b->lanes ? put_lanes : put_bars)(figure, width, color, &out);
    dl_text_add(&out, "\n");
    for (int p = 0; p < b->count; p++) {
        dl_text_add(&out, p % 4 == 0 ? (p > 0 ? "\n " : " ") : "   ");
        put_part(&out, p, color);
        dl_text_printf(&out, " %s", b->names[p]);
    }
    dl_text_add(&out, "\n");
    return dl_text_string(&out);
}
