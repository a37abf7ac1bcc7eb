/* plot_memory.c - what fills the memory of a device: of one plan over time
 * (plot_memory_course.c), of several a bar for each framework and number of nodes, against its
 * capacity. The parts are those of struct dl_memory; the rest of the total is lost to the
 * allocator. */
#include <math.h>

#include "model/engine/memory.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "bar", "", DL_COLUMN_STRING, 0, 0},
    {"position", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"weights_bytes", "weights", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"gradients_bytes", "gradients", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"optimizer_bytes", "optimizer", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"activations_bytes", "activations", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"workspace_bytes", "workspace", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"buffers_bytes", "buffers", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"context_and_lost_bytes", "context", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"total_bytes", "total", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"capacity_bytes", "capacity", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
};
enum { PARTS = 3, FRAMEWORK = 12, NODES };

static const char *const part_names[] = {"weights",
                                         "gradients",
                                         "optimizer",
                                         "activations",
                                         "workspace",
                                         "communication buffers",
                                         "context, fragmentation"};

static void add_bar(struct dl_table *table, const struct dl_predicted_row *r,
                    const struct dl_plot_bar *bar) {
    const struct dl_memory *m = &r->prediction.memory;
    const double before = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                          m->activations_bytes + m->workspace_bytes + m->buffers_bytes;
    const double values[] = {m->weights_bytes,
                             m->gradients_bytes,
                             m->optimizer_bytes,
                             m->activations_bytes,
                             m->workspace_bytes,
                             m->buffers_bytes,
                             fmax(0, m->total_bytes - before),
                             m->total_bytes,
                             m->capacity_bytes};
    union dl_cell *cells = dl_table_row(table);
    cells[0].integer = bar->group;
    cells[1].string = bar->label;
    cells[2].number = bar->index;
    for (int i = 0; i < 9; i++) cells[PARTS + i].number = values[i];
    cells[FRAMEWORK].string = r->framework->name;
    cells[NODES].integer = r->plan.nodes;
}

enum dl_code dl_plot_memory(struct dl_context *context, const struct dl_options *options,
                            struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    struct dl_plot_bar bars[DL_PLOT_BARS];
    DL_TRY(dl_plot_predict(context, options, "memory", &p, err));
    if (p.count == 1) {
        struct dl_plot_one one;
        DL_TRY(dl_plot_predict_one(context, options, "memory", &one, err));
        if (dl_plot_memory_course(context->arena, &one, out)) return DL_OK;
    }
    DL_TRY(dl_plot_bars(context, &p, bars, out, err));
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    double most_bytes = 0, capacity_bytes = NAN;
    for (int i = 0; i < p.count; i++) {
        add_bar(&out->table, &p.rows[i], &bars[i]);
        out->notes[i] = bars[i].label;
        most_bytes = fmax(most_bytes, p.rows[i].prediction.memory.total_bytes);
        capacity_bytes = p.rows[i].prediction.memory.capacity_bytes;
    }
    const double unit_bytes = dl_plot_memory_unit(
        out, "unit", fmax(most_bytes, dl_known(capacity_bytes) ? capacity_bytes : 0),
        &p.rows[0].plan, capacity_bytes);
    out->title = dl_arena_printf(context->arena, "Predicted memory per device of %s, by part%s",
                                 p.inputs.workload->name,
                                 dl_known(capacity_bytes) ? ", and its capacity" : "");
    out->blocks = (struct dl_plot_blocks){.first = PARTS,
                                          .count = 7,
                                          .sum = PARTS + 7,
                                          .limit = dl_known(capacity_bytes) ? PARTS + 8 : -1,
                                          .limit_name = "capacity",
                                          .names = part_names,
                                          .unit_scale = unit_bytes,
                                          .unit_name = out->parameters[2].text};
    return DL_OK;
}
