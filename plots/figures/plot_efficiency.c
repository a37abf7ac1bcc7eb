/* plot_efficiency.c - scaling efficiency against devices: throughput per device over that of the
 * smallest run of its group, measured over measured and predicted over predicted. Made from the
 * table of plot_scaling.c. The interval is that of the ratio: the variance of log throughput
 * that the smallest run shares is common to both and cancels. */
#include <math.h>
#include <string.h>

#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "label", "", DL_COLUMN_STRING, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"measured_efficiency", "measured", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"predicted_efficiency", "predicted", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"predicted_low_efficiency", "low", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"predicted_high_efficiency", "high", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"id", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
};
/* the last two: where scaling has its id and nodes */
enum {
    GROUP,
    LABEL,
    DEVICES,
    MEASURED,
    PREDICTED,
    LOW,
    HIGH,
    ID,
    NODES,
    SCALING_ID = 8,
    SCALING_NODES
};

/* Half of the 80 % interval of log throughput in a row; 0: none. */
static double half_log(const union dl_cell *c) {
    const double half = 0.5 * log(c[HIGH].number / c[LOW].number);
    return half > 0 ? half : 0;
}

/* The same of the smallest run of a group. */
static double base_half_log(const struct dl_table *t, int64_t group) {
    int64_t fewest = INT64_MAX;
    double half = 0;
    for (int i = 0; i < t->row_count; i++) {
        const union dl_cell *c = dl_table_cells(t, i);
        if (c[GROUP].integer != group || !dl_known(c[PREDICTED].number) ||
            c[DEVICES].integer >= fewest)
            continue;
        fewest = c[DEVICES].integer;
        half = half_log(c);
    }
    return half;
}

/* Value per device of the smallest run of a group that has one; NAN: none. */
static double base_of(const struct dl_table *t, int64_t group, int column) {
    int64_t fewest = INT64_MAX;
    double base = NAN;
    for (int i = 0; i < t->row_count; i++) {
        const union dl_cell *c = dl_table_cells(t, i);
        if (c[GROUP].integer != group || !dl_known(c[column].number) ||
            c[DEVICES].integer >= fewest)
            continue;
        fewest = c[DEVICES].integer;
        base = c[column].number / (double)fewest;
    }
    return base;
}

enum dl_code dl_plot_efficiency(struct dl_context *context, const struct dl_options *options,
                                struct dl_figure *out, struct dl_err *err) {
    DL_TRY(dl_plot_scaling(context, options, out, err));
    out->parameters[1].number = 1;
    out->title = dl_arena_printf(context->arena, "Scaling efficiency%s",
                                 out->title + strlen(dl_plot_throughput));
    const struct dl_table from = out->table;
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < from.row_count; i++) {
        const union dl_cell *c = dl_table_cells(&from, i);
        union dl_cell *cells = dl_table_row(&out->table);
        const double devices = (double)c[DEVICES].integer;
        const double measured = base_of(&from, c[GROUP].integer, MEASURED),
                     predicted = base_of(&from, c[GROUP].integer, PREDICTED);
        cells[GROUP] = c[GROUP];
        cells[LABEL] = c[LABEL];
        cells[DEVICES] = c[DEVICES];
        cells[MEASURED].number = c[MEASURED].number / devices / measured;
        const double common = base_half_log(&from, c[GROUP].integer), own = half_log(c);
        const double half = sqrt(fmax(0, own * own - common * common));
        cells[PREDICTED].number = c[PREDICTED].number / devices / predicted;
        cells[LOW].number = cells[PREDICTED].number * exp(-half);
        cells[HIGH].number = cells[PREDICTED].number * exp(half);
        cells[ID] = c[SCALING_ID];
        cells[NODES] = c[SCALING_NODES];
    }
    out->curves.over = 0;
    out->curves.y_scale = 0.01;
    out->curves.y_name = "scaling efficiency (%)";
    return DL_OK;
}
