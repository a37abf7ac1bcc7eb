/* plot_strips.c - values of groups for a terminal: a line for each group, a symbol for each value;
 * without gnuplot. */
#include <math.h>
#include <string.h>

#include "plots/figures/plot_axis.h"
#include "model/core/text.h"

enum { MAX_COLUMNS = 240, MAX_NAME = 44 };

/* One line for each group, with its rows' values along it. */
static void put_strip(const struct dl_figure *f, int group, const struct dl_axis *axis, int width,
                      bool color, struct dl_text *out) {
    const char *cells[MAX_COLUMNS] = {NULL};
    int kinds[MAX_COLUMNS] = {0};
    if (axis->low <= 0 && axis->high >= 0)
        cells[dl_axis_clamp((int)(dl_axis_along(axis, 0) * width), width - 1)] = "│";
    for (int k = 0; f->strips[k].symbol != NULL; k++) {
        for (int r = 0; r < f->table.row_count; r++) {
            const double value = dl_plot_cell(&f->table, r, f->strips[k].column);
            if (dl_plot_group(&f->table, r) != group || !isfinite(value)) continue;
            const int at = dl_axis_clamp((int)(dl_axis_along(axis, value) * width), width - 1);
            cells[at] = f->strips[k].symbol;
            kinds[at] = k + 1;
        }
    }
    for (int i = 0; i < width; i++) {
        dl_plot_mark(out, cells[i] == NULL ? " " : cells[i], color ? kinds[i] - 1 : -1);
    }
    dl_text_add(out, "\n");
}

const char *dl_plot_strips_text(const struct dl_figure *figure, int columns, bool color,
                                struct dl_arena *arena) {
    struct dl_text out = {.arena = arena};
    struct dl_axis axis = {INFINITY, -INFINITY, 1, false, {0}, 0};
    int margin = 0;
    for (int g = 0; g < figure->group_count; g++) {
        const int length = (int)strlen(dl_plot_label(arena, figure->labels[g], MAX_NAME));
        margin = length > margin ? length : margin;
    }
    for (int k = 0; figure->strips[k].symbol != NULL; k++) {
        for (int r = 0; r < figure->table.row_count; r++) {
            const double value = dl_plot_cell(&figure->table, r, figure->strips[k].column);
            if (isfinite(value)) dl_axis_stretch(&axis, value);
        }
    }
    if (axis.low > axis.high) axis.low = axis.high = 0;
    dl_axis_widen(&axis, 0.02);
    dl_axis_choose_ticks(&axis);
    const int width = (columns < MAX_COLUMNS ? columns : MAX_COLUMNS) - margin - 4;
    dl_plot_heading(&out, figure, columns);
    for (int g = 1; g <= figure->group_count; g++) {
        dl_text_printf(&out, " %*s ", margin,
                       dl_plot_label(arena, figure->labels[g - 1], MAX_NAME));
        put_strip(figure, g, &axis, width, color, &out);
    }
    int end = -margin - 2;
    for (int i = 0; i < axis.tick_count; i++) {
        const char *text = dl_axis_tick(&axis, i, arena);
        const int from =
            (int)(dl_axis_along(&axis, axis.values[i]) * width) - (int)strlen(text) / 2;
        if (from <= end) continue;
        dl_text_printf(&out, "%*s%s", from - end, "", text);
        end = from + (int)strlen(text);
    }
    dl_text_printf(&out, "\n %*s %s\n\n", margin, "", figure->strip_axis);
    for (int k = 0; figure->strips[k].symbol != NULL; k++) {
        dl_plot_mark(&out, dl_arena_printf(arena, " %s", figure->strips[k].symbol), color ? k : -1);
        dl_text_printf(&out, " %s  ", figure->strips[k].name);
    }
    dl_text_add(&out, "\n");
    return dl_text_string(&out);
}
