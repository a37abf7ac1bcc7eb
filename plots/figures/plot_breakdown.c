/* plot_breakdown.c - where the time of an iteration goes, one bar for each framework and number of
 * nodes. The pieces are those of F-ITERATION and add up to the iteration.
 */
#include <math.h>

#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "bar", "", DL_COLUMN_STRING, 0, 0},
    {"position", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"forward_s", "forward", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"backward_s", "backward", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"update_s", "update", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"exposed_comm_s", "exposed", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"exposed_input_s", "input", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"overhead_s", "overhead", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"iteration_s", "iter", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"iteration_low_s", "low", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"iteration_high_s", "high", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
};
enum { GROUP, LABEL, POSITION, PIECES, ITERATION = 9, FRAMEWORK = 12, NODES };

static const char *const piece_names[] = {
    "forward", "backward", "update", "exposed communication", "exposed input", "overhead"};

static void add_bar(struct dl_table *table, const struct dl_predicted_row *r,
                    const struct dl_plot_bar *bar) {
    const struct dl_prediction *p = &r->prediction;
    const double values[] = {
        p->forward_s,      p->backward_s,      p->compute_s - p->forward_s - p->backward_s,
        p->exposed_comm_s, p->exposed_input_s, p->overhead_s + p->bubble_s,
        p->iteration_s,    p->iteration_low_s, p->iteration_high_s};
    union dl_cell *cells = dl_table_row(table);
    cells[GROUP].integer = bar->group;
    cells[LABEL].string = bar->label;
    cells[POSITION].number = bar->index;
    /* rounding below 0 */
    for (int i = 0; i < 9; i++) cells[PIECES + i].number = values[i] > 0 ? values[i] : 0;
    cells[FRAMEWORK].string = r->framework->name;
    cells[NODES].integer = r->plan.nodes;
}

enum dl_code dl_plot_breakdown(struct dl_context *context, const struct dl_options *options,
                               struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    struct dl_plot_bar bars[DL_PLOT_BARS];
    DL_TRY(dl_plot_predict(context, options, "breakdown", &p, err));
    DL_TRY(dl_plot_bars(context, &p, bars, out, err));
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    double longest_s = 0;
    for (int i = 0; i < p.count; i++) {
        add_bar(&out->table, &p.rows[i], &bars[i]);
        longest_s = fmax(longest_s, p.rows[i].prediction.iteration_high_s);
    }
    out->title = dl_arena_printf(context->arena, "Predicted time per iteration of %s, by part",
                                 p.inputs.workload->name);
    dl_plot_time_unit(longest_s, &out->parameters[2]);
    out->blocks = (struct dl_plot_blocks){.first = PIECES,
                                          .count = ITERATION - PIECES,
                                          .sum = ITERATION,
                                          .limit = -1,
                                          .names = piece_names,
                                          .unit_scale = out->parameters[3].number,
                                          .unit_name = out->parameters[2].text};
    return DL_OK;
}
