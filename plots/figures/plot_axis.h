/* plot_axis.h - axes of figures that a terminal shows with Unicode: range, ticks, places. */
#ifndef DL_PLOTS_FIGURES_PLOT_AXIS_H
#define DL_PLOTS_FIGURES_PLOT_AXIS_H

#include "plots/figures/plot.h"

enum { DL_AXIS_TICKS = 12, DL_SYMBOLS = 6 };
/* A mark in the colour of the group or kind, from 0; below 0: without. */
void dl_plot_mark(struct dl_text *out, const char *mark, int number);

struct dl_axis {
    double low, high, scale; /* in units of the table; the text shows value / scale */
    bool log;
    double values[DL_AXIS_TICKS];
    int tick_count;
};

/* A cell of a table as a number; NAN: empty, or no such column (below 0). */
double dl_plot_cell(const struct dl_table *table, int row, int column);
int64_t dl_plot_group(const struct dl_table *table, int row);

/* Whether the axis can show a value: finite, above 0 on a logarithmic one. */
bool dl_axis_shows(const struct dl_axis *axis, double value);
/* Includes a value; an axis begins with low INFINITY and high -INFINITY. */
void dl_axis_stretch(struct dl_axis *axis, double value);
/* Makes room of a share of the range at both ends; a linear axis that begins near zero begins
 * there. */
void dl_axis_widen(struct dl_axis *axis, double share);
/* Ticks at 1, 2 and 5 times powers of ten: all of them within a logarithmic axis of at most three
 * decades, of a longer one the powers, of a linear axis multiples of one step. */
void dl_axis_choose_ticks(struct dl_axis *axis);
/* Place of a value, 0 to 1 between the ends of the axis. */
double dl_axis_along(const struct dl_axis *axis, double value);
int dl_axis_clamp(int value, int most);
/* Number of a tick in the unit of the axis; never NULL. */
const char *dl_axis_tick(const struct dl_axis *axis, int tick, struct dl_arena *arena);

#endif
