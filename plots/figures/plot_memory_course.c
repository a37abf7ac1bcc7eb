/* plot_memory_course.c - the memory of a device over one iteration (F-MEM-COURSE), of each stage of
 * a pipeline: states and all else that stays, and activations above them. */
#include <math.h>

#include "model/engine/memory.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "stage", "", DL_COLUMN_STRING, 0, 0},
    {"time_s", "time", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"weights_bytes", "weights", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"gradients_bytes", "gradients", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"optimizer_bytes", "optimizer", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"fixed_bytes", "other fixed", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"activations_bytes", "activations", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"total_bytes", "total", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"capacity_bytes", "capacity", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
};
enum { TIME = 2, WEIGHTS, TOTAL = 8, CAPACITY };

static void add_curve(struct dl_figure *out, int group, const struct dl_memory_curve *curve) {
    const struct dl_memory *m = &curve->parts;
    const double states_bytes = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes,
                 stays_bytes = curve->points[0].bytes;
    for (int i = 0; i < curve->count; i++) {
        const double bytes = curve->points[i].bytes,
                     values[] = {m->weights_bytes,    m->gradients_bytes,
                                 m->optimizer_bytes,  stays_bytes - states_bytes,
                                 bytes - stays_bytes, bytes,
                                 m->capacity_bytes};
        if (i > 0 && i + 1 < curve->count && curve->points[i - 1].bytes == bytes &&
            curve->points[i + 1].bytes == bytes)
            continue;
        union dl_cell *cells = dl_table_row(&out->table);
        cells[0].integer = group + 1;
        cells[1].string = out->labels[group];
        cells[TIME].number = curve->points[i].s;
        for (int k = WEIGHTS; k <= CAPACITY; k++) cells[k].number = values[k - WEIGHTS];
    }
}

double dl_plot_memory_unit(struct dl_figure *out, const char *unit_name, double most_bytes,
                           const struct dl_plan *plan, double capacity_bytes) {
    const bool small = most_bytes < 2e9;
    const double unit_bytes = small ? 1048576 : 1073741824;
    out->parameters[2] =
        (struct dl_plot_parameter){.name = unit_name, .text = small ? "MiB" : "GiB"};
    dl_plot_set(out, 3, "unit_bytes", unit_bytes);
    dl_plot_set(out, 4, "capacity_bytes", dl_known(capacity_bytes) ? capacity_bytes : 0);
    dl_plot_set(out, 5, "master",
                dl_memory_weight_bytes(plan->precision, plan->master_weights) > 4);
    return unit_bytes;
}

static void name(struct dl_arena *arena, const struct dl_plot_one *p, struct dl_figure *out) {
    const struct dl_course *course = &p->prediction.course;
    const double capacity_bytes = p->prediction.memory.capacity_bytes;
    const double unit_bytes = dl_plot_memory_unit(
        out, "bytes_unit", p->prediction.memory.total_bytes, &p->plan, capacity_bytes);
    const char *unit = out->parameters[2].text;
    for (int s = 0; s < course->memory_count; s++) {
        const struct dl_memory *m = &course->memory[s].parts;
        out->labels[s] =
            course->memory_count == 1 ? "device" : dl_arena_printf(arena, "stage %d", s + 1);
        out->notes[s] = dl_arena_printf(arena, "%.3g %s", m->total_bytes / unit_bytes, unit);
    }
    out->group_count = course->memory_count;
    out->title = dl_arena_printf(
        arena, "Predicted memory of %s over one iteration: at most %.3g %s%s",
        p->inputs.workload->name, p->prediction.memory.total_bytes / unit_bytes, unit,
        dl_known(capacity_bytes)
            ? dl_arena_printf(arena, " of %.3g %s", capacity_bytes / unit_bytes, unit)
            : "");
    out->subtitle = course->left_out_micro_batches == 0
                        ? p->details
                        : dl_plot_join(arena, p->details,
                                       dl_arena_printf(arena, "%d equal micro-batches left out",
                                                       course->left_out_micro_batches));
}

bool dl_plot_memory_course(struct dl_arena *arena, const struct dl_plot_one *p,
                           struct dl_figure *out) {
    const struct dl_course *course = &p->prediction.course;
    const int stages = course->memory_count;
    double end_s = 0;
    if (stages == 0 || stages > DL_PLOT_GROUPS) return false;
    out->script = "memory_course";
    dl_table_init(&out->table, arena, columns, sizeof columns / sizeof columns[0]);
    name(arena, p, out);
    for (int s = 0; s < stages; s++) {
        add_curve(out, s, &course->memory[s]);
        end_s = fmax(end_s, course->memory[s].points[course->memory[s].count - 1].s);
    }
    dl_plot_time_unit(end_s, out->parameters);
    if (stages > 1) out->height = 190 + 50 * (stages < 8 ? 8 : stages);
    out->curves = (struct dl_plot_curves){
        .x = TIME,
        .curve = TOTAL,
        .point = -1,
        .x_scale = out->parameters[1].number,
        .y_scale = out->parameters[3].number,
        .x_name = dl_arena_printf(arena, "time (%s)", out->parameters[0].text),
        .y_name = dl_arena_printf(arena, "memory per device (%s)", out->parameters[2].text)};
    return true;
}
