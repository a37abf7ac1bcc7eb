/* plot_canvas.c - curves and points for a terminal: curves in braille dots (2 x 4 to a character),
 * points as symbols, axes around them; without gnuplot. Curves carry their names at their ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "plots/figures/plot_axis.h"

enum { MAX_COLUMNS = 240, MAX_ROWS = 60, LEFT = 10, NAME = 22 };
static const char *const symbols[DL_SYMBOLS] = {"●", "▲", "■", "◆", "▼", "○"};

struct canvas {
    int width, height; /* in characters */
    struct dl_axis x, y;
    unsigned char dots[MAX_ROWS][MAX_COLUMNS];
    signed char symbol[MAX_ROWS][MAX_COLUMNS]; /* -1: none */
    signed char group[MAX_ROWS][MAX_COLUMNS];
    int name_of[MAX_ROWS]; /* group whose name stands right of the row; 0: none */
};

/* The ordinate of a row, of the curve or of a point; NAN: none. */
static double ordinate(const struct dl_figure *f, int row, bool of_curve) {
    const struct dl_plot_curves *c = &f->curves;
    const double kind = dl_plot_cell(&f->table, row, c->kind);
    if (c->kind > 0 && kind != (of_curve ? c->curve_kind : c->point_kind)) return NAN;
    const double value = dl_plot_cell(&f->table, row, of_curve ? c->curve : c->point);
    return c->over > 0 ? value / dl_plot_cell(&f->table, row, c->over) : value;
}

/* Where every row has one of a few abscissas (numbers of devices), those are the ticks. */
static void ticks_of_rows(const struct dl_figure *f, struct dl_axis *axis) {
    double values[DL_AXIS_TICKS];
    int count = 0;
    for (int r = 0; r < f->table.row_count; r++) {
        const double x = dl_plot_cell(&f->table, r, f->curves.x);
        bool known = !dl_axis_shows(axis, x);
        for (int i = 0; i < count && !known; i++) known = values[i] == x;
        if (known) continue;
        if (count == DL_AXIS_TICKS) return;
        values[count++] = x;
    }
    dl_sort(values, (size_t)count);
    for (int i = 0; i < count; i++) axis->values[i] = values[i];
    axis->tick_count = count;
}

/* Characters count from the top left, dots too. */
static int column_of(const struct canvas *c, double x, int dots) {
    return dl_axis_clamp((int)(dl_axis_along(&c->x, x) * c->width * dots), c->width * dots - 1);
}
static int row_at(const struct canvas *c, double y, int dots) {
    return dl_axis_clamp((int)((1 - dl_axis_along(&c->y, y)) * c->height * dots),
                         c->height * dots - 1);
}

static void set_dot(struct canvas *c, int x, int y, int group) {
    static const unsigned char bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    c->dots[y / 4][x / 2] |= bits[y % 4][x % 2];
    c->group[y / 4][x / 2] = (signed char)group;
}

static void draw_line(struct canvas *c, const double *from, const double *to, int group) {
    const int x0 = column_of(c, from[0], 2), x1 = column_of(c, to[0], 2),
              y0 = row_at(c, from[1], 4), y1 = row_at(c, to[1], 4);
    const int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
    for (int i = 0; i <= steps; i++) {
        const double share = steps > 0 ? (double)i / steps : 0;
        set_dot(c, (int)lround(x0 + share * (x1 - x0)), (int)lround(y0 + share * (y1 - y0)), group);
    }
}

/* The name of a curve stands right of its end, or in the nearest free row. */
static void place_name(struct canvas *c, double y, int group) {
    const int row = row_at(c, y, 1);
    for (int away = 0; away < c->height; away++) {
        for (int side = -1; side <= 1; side += 2) {
            const int at = row + side * away;
            if (at < 0 || at >= c->height || c->name_of[at] != 0) continue;
            c->name_of[at] = group;
            return;
        }
    }
}

static int by_abscissa(const void *a, const void *b) {
    const double *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

static void draw_curves(const struct dl_figure *f, struct canvas *c, struct dl_arena *arena) {
    double(*at)[2] = dl_arena_alloc(arena, (size_t)f->table.row_count + 1, sizeof *at);
    for (int g = 1; g <= f->group_count; g++) {
        int count = 0;
        for (int r = 0; r < f->table.row_count; r++) {
            at[count][0] = dl_plot_cell(&f->table, r, f->curves.x);
            at[count][1] = ordinate(f, r, true);
            count += dl_plot_group(&f->table, r) == g && dl_axis_shows(&c->x, at[count][0]) &&
                     dl_axis_shows(&c->y, at[count][1]);
        }
        qsort(at, (size_t)count, sizeof *at, by_abscissa);
        for (int i = 0; i < count; i++) draw_line(c, at[i > 0 ? i - 1 : 0], at[i], g);
        if (count > 0 && (g == 1 || f->curves.curve_name == NULL))
            place_name(c, at[count - 1][1], g);
    }
}

static void draw_points(const struct dl_figure *f, struct canvas *c) {
    for (int r = 0; r < f->table.row_count; r++) {
        const int64_t g = dl_plot_group(&f->table, r);
        const double x = dl_plot_cell(&f->table, r, f->curves.x), y = ordinate(f, r, false);
        if (g < 1 || !dl_axis_shows(&c->x, x) || !dl_axis_shows(&c->y, y)) continue;
        const int row = row_at(c, y, 1), column = column_of(c, x, 1);
        c->symbol[row][column] = (signed char)((g - 1) % DL_SYMBOLS);
        c->group[row][column] = (signed char)g;
    }
}

static void put_cell(const struct canvas *c, int row, int column, bool color, struct dl_text *out) {
    const int symbol = c->symbol[row][column], dots = c->dots[row][column];
    if (symbol < 0 && dots == 0) {
        dl_text_add(out, " ");
        return;
    }
    const int group = c->group[row][column];
    const char braille[] = {(char)0xE2, (char)(0xA0 | dots >> 6), (char)(0x80 | (dots & 0x3F)), 0};
    /* else U+2800 and the dots as UTF-8 */
    dl_plot_mark(out, symbol >= 0 ? symbols[symbol] : braille, color ? group - 1 : -1);
}

static void put_rows(const struct dl_figure *f, const struct canvas *c, bool color,
                     struct dl_text *out) {
    for (int row = 0; row < c->height; row++) {
        const char *tick = NULL;
        for (int i = 0; i < c->y.tick_count; i++) {
            if (row_at(c, c->y.values[i], 1) == row) tick = dl_axis_tick(&c->y, i, out->arena);
        }
        dl_text_printf(out, "%*s %s", LEFT - 2, tick == NULL ? "" : tick, tick == NULL ? "│" : "┤");
        for (int column = 0; column < c->width; column++) put_cell(c, row, column, color, out);
        const int named = c->name_of[row];
        if (named > 0)
            dl_text_printf(out, " %s",
                           f->curves.curve_name != NULL
                               ? f->curves.curve_name
                               : dl_plot_label(out->arena, f->labels[named - 1], NAME - 1));
        dl_text_add(out, "\n");
    }
}

/* The axis with its ticks, and below it as many of their numbers as there is room for. */
static void put_abscissa(const struct dl_figure *f, const struct canvas *c, struct dl_text *out) {
    bool at[MAX_COLUMNS] = {false};
    for (int i = 0; i < c->x.tick_count; i++) at[column_of(c, c->x.values[i], 1)] = true;
    dl_text_printf(out, "%*s└", LEFT - 1, "");
    for (int i = 0; i < c->width; i++) dl_text_add(out, at[i] ? "┬" : "─");
    dl_text_add(out, "\n");
    int end = 0;
    for (int i = 0; i < c->x.tick_count; i++) {
        const char *text = dl_axis_tick(&c->x, i, out->arena);
        const int length = (int)strlen(text),
                  from = LEFT + column_of(c, c->x.values[i], 1) - length / 2;
        if (from <= end && end > 0) continue;
        dl_text_printf(out, "%*s%s", from - end, "", text);
        end = from + length;
    }
    dl_text_printf(out, "\n%*s%s; vertical: %s\n", LEFT, "", f->curves.x_name, f->curves.y_name);
}

/* What the symbols are: the groups, or with a curve for each what its points are. */
static void put_legend(const struct dl_figure *f, bool color, struct dl_text *out) {
    if (f->curves.point < 0) return;
    for (int g = 0; g < f->group_count; g++) {
        dl_text_add(out, g % 3 == 0 ? "\n " : "   ");
        dl_plot_mark(out, symbols[g % DL_SYMBOLS], color ? g : -1);
        dl_text_printf(out, " %s%s", dl_plot_label(out->arena, f->labels[g], 2 * NAME),
                       f->curves.curve_name == NULL && f->curves.curve >= 0 ? f->curves.point_note
                                                                            : "");
    }
    dl_text_add(out, "\n");
}

const char *dl_plot_canvas_text(const struct dl_figure *figure, int columns, int lines, bool color,
                                struct dl_arena *arena) {
    const struct dl_plot_curves *p = &figure->curves;
    struct dl_text out = {.arena = arena};
    struct canvas *c = dl_arena_alloc(arena, 1, sizeof *c);
    const int right = p->curve >= 0 ? NAME : 2;
    c->width = (columns < MAX_COLUMNS ? columns : MAX_COLUMNS) - LEFT - right;
    c->height = (lines < MAX_ROWS ? lines : MAX_ROWS) - 8;
    memset(c->symbol, -1, sizeof c->symbol);
    c->x = (struct dl_axis){INFINITY, -INFINITY, p->x_scale, p->log_x, {0}, 0};
    c->y = (struct dl_axis){INFINITY, -INFINITY, p->y_scale, p->log_y, {0}, 0};
    for (int r = 0; r < figure->table.row_count; r++) {
        const double x = dl_plot_cell(&figure->table, r, p->x);
        for (int of_curve = 0; of_curve < 2; of_curve++) {
            const double y = ordinate(figure, r, of_curve);
            if (!dl_axis_shows(&c->x, x) || !dl_axis_shows(&c->y, y)) continue;
            dl_axis_stretch(&c->x, x);
            dl_axis_stretch(&c->y, y);
        }
    }
    dl_plot_heading(&out, figure, columns);
    if (c->x.low > c->x.high) {
        dl_text_add(&out, " nothing to draw\n");
        return dl_text_string(&out);
    }
    dl_axis_widen(&c->x, 0.03);
    dl_axis_widen(&c->y, 0.08);
    dl_axis_choose_ticks(&c->x);
    dl_axis_choose_ticks(&c->y);
    if (p->log_x) ticks_of_rows(figure, &c->x);
    draw_curves(figure, c, arena);
    draw_points(figure, c);
    put_rows(figure, c, color, &out);
    put_abscissa(figure, c, &out);
    put_legend(figure, color, &out);
    return dl_text_string(&out);
}
