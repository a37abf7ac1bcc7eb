/* plot_axis.c - see plot_axis.h. */
#include "plots/figures/plot_axis.h"

#include <math.h>

#include "model/core/text.h"

void dl_plot_mark(struct dl_text *out, const char *mark, int number) {
    static const int colors[DL_SYMBOLS] = {25, 214, 22, 166, 117, 240}; /* of 256, as in plots/ */
    if (number < 0)
        dl_text_add(out, mark);
    else
        dl_text_printf(out, "\033[38;5;%dm%s\033[0m", colors[number % DL_SYMBOLS], mark);
}

double dl_plot_cell(const struct dl_table *t, int row, int column) {
    if (column < 0) return NAN;
    const union dl_cell *c = &dl_table_cells(t, row)[column];
    if (t->columns[column].type == DL_COLUMN_NUMBER) return c->number;
    return c->integer == DL_ABSENT ? NAN : (double)c->integer;
}

int64_t dl_plot_group(const struct dl_table *t, int row) { return dl_table_cells(t, row)->integer; }

bool dl_axis_shows(const struct dl_axis *axis, double value) {
    return isfinite(value) && (!axis->log || value > 0);
}

static double scaled(const struct dl_axis *axis, double value) {
    return axis->log ? log(value) : value;
}

void dl_axis_stretch(struct dl_axis *axis, double value) {
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

void dl_axis_widen(struct dl_axis *axis, double share) {
    const double low = scaled(axis, axis->low), high = scaled(axis, axis->high);
    const double room = high > low ? share * (high - low) : axis->log ? 0.3 : fabs(high) / 2 + 1;
    axis->low = axis->log ? exp(low - room) : low - room;
    axis->high = axis->log ? exp(high + room) : high + room;
    if (!axis->log && low >= 0 && low < high / 2) axis->low = 0;
}

void dl_axis_choose_ticks(struct dl_axis *axis) {
    static const double factors[] = {1, 2, 5};
    const double low = axis->low / axis->scale, high = axis->high / axis->scale;
    axis->tick_count = 0;
    if (axis->log) {
        const double decades = log10(high / low);
        const int used = decades > 3 ? 1 : 3,
                  step = decades > DL_AXIS_TICKS ? (int)(decades / 6) : 1;
        for (int k = (int)floor(log10(low)); pow(10, k) <= high; k += step) {
            for (int i = 0; i < used; i++) {
                const double at = factors[i] * pow(10, k);
                if (at >= low && at <= high && axis->tick_count < DL_AXIS_TICKS)
                    axis->values[axis->tick_count++] = at * axis->scale;
            }
        }
        if (axis->tick_count >= 2) return;
        axis->tick_count = 0;
    }
    const double rough = (high - low) / 8, power = pow(10, floor(log10(rough)));
    double step = 10 * power;
    for (int i = 2; i >= 0; i--) {
        if (factors[i] * power >= rough) step = factors[i] * power;
    }
    for (double at = ceil(low / step) * step; at <= high && axis->tick_count < DL_AXIS_TICKS;
         at += step)
        axis->values[axis->tick_count++] = (fabs(at) < step / 2 ? 0 : at) * axis->scale;
}

double dl_axis_along(const struct dl_axis *axis, double value) {
    const double low = scaled(axis, axis->low), high = scaled(axis, axis->high);
    return (scaled(axis, value) - low) / (high - low);
}

int dl_axis_clamp(int value, int most) { return value < 0 ? 0 : value > most ? most : value; }

const char *dl_axis_tick(const struct dl_axis *axis, int tick, struct dl_arena *arena) {
    return dl_arena_printf(arena, "%.4g", axis->values[tick] / axis->scale);
}
