/* plot_roofline.c - the layers of a workload on the roofline of their device: attained rate against
 * flop per byte. A point below the roof loses to tiles, waves, latency or the algorithm; a
 * convolution above it saves flop (Winograd, FFT).
 */
#include <math.h>

#include "model/framework/cost.h"
#include "predict/plot/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "pass", "", DL_COLUMN_STRING, 0, 0},
    {"layer", "layer", "", DL_COLUMN_STRING, 0, 0},
    {"flop_per_byte", "flop/B", "", DL_COLUMN_NUMBER, 0, 4},
    {"flop_per_s", "rate", "TFLOP/s", DL_COLUMN_NUMBER, 1e12, 4},
    {"roof_flop_per_s", "roof", "TFLOP/s", DL_COLUMN_NUMBER, 1e12, 4},
    {"time_s", "time", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"share", "share", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"limit", "limit", "", DL_COLUMN_STRING, 0, 0},
};

struct roof {
    double peak_flop_per_s, bandwidth_bytes_per_s, all_s;
};

static const char *limit_of(const struct dl_pass_cost *c) {
    static const char *const names[] = {"compute", "memory-bandwidth", "latency"};
    int most = 0;
    for (int i = 1; i < 3; i++) {
        if (c->by_limit_s[i] > c->by_limit_s[most]) most = i;
    }
    return names[most];
}

static enum dl_code add_pass(struct dl_table *table, int group, const char *label,
                             const char *layer, const struct dl_pass_cost *c,
                             const struct roof *roof, struct dl_err *err) {
    if (!(c->flop > 0 && c->bytes > 0 && c->time_s > 0)) return DL_OK;
    union dl_cell *cells = dl_table_row(table);
    if (cells == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const double intensity = c->flop / c->bytes;
    const double values[] = {intensity, c->flop / c->time_s,
                             fmin(roof->peak_flop_per_s, intensity * roof->bandwidth_bytes_per_s),
                             c->time_s, c->time_s / roof->all_s};
    cells[0].integer = group;
    cells[1].string = label;
    cells[2].string = layer;
    for (int i = 0; i < 5; i++) cells[3 + i].number = values[i];
    cells[8].string = limit_of(c);
    return DL_OK;
}

static double share_of_bandwidth(const struct dl_cost *cost, const struct dl_workload *workload,
                                 double *all_s) {
    double bound_s = cost->update.by_limit_s[DL_LIMIT_MEMORY];
    *all_s = cost->update.time_s;
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer_cost *l = &cost->layers[i];
        *all_s += l->forward.time_s + l->backward.time_s;
        bound_s += l->forward.by_limit_s[DL_LIMIT_MEMORY] + l->backward.by_limit_s[DL_LIMIT_MEMORY];
    }
    return bound_s / *all_s;
}

static int above_the_roof(const struct dl_table *table) {
    int count = 0;
    for (int r = 0; r < table->row_count; r++) {
        const union dl_cell *c = &table->cells[(size_t)r * (size_t)table->column_count];
        count += c[4].number > 1.001 * c[5].number;
    }
    return count;
}

enum dl_code dl_plot_roofline(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    struct dl_cost cost;
    struct roof roof;
    DL_TRY(dl_plot_predict(context, options, "roofline", &p, err));
    const struct dl_plan *plan = &p.rows[0].plan;
    const struct dl_workload *workload = p.inputs.workload;
    const struct dl_device *device = p.inputs.system->device;
    DL_TRY(dl_cost_compute(device, workload, p.rows[0].framework, plan,
                           plan->batch_per_device_samples, context->arena, &cost, err));
    roof.peak_flop_per_s = dl_device_peak(device, plan->precision);
    roof.bandwidth_bytes_per_s = device->memory_bandwidth_bytes_per_s;
    const double bandwidth_share = share_of_bandwidth(&cost, workload, &roof.all_s);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    out->labels[0] = "forward";
    out->labels[1] = "backward";
    for (int group = 1; group <= 2; group++) {
        for (int i = 0; i < workload->layer_count; i++) {
            const struct dl_pass_cost *c =
                group == 1 ? &cost.layers[i].forward : &cost.layers[i].backward;
            DL_TRY(add_pass(&out->table, group, out->labels[group - 1], workload->layers[i].name, c,
                            &roof, err));
        }
    }
    if (out->table.row_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "no layer of %s computes anything", workload->name);
    out->group_count = 2;
    out->title = dl_plot_title(context->arena, &p.inputs, plan, p.rows[0].framework->name);
    const int above = above_the_roof(&out->table);
    out->subtitle = dl_arena_printf(
        context->arena, "%s: %.0f %% of the time is limited by memory%s", device->name,
        100 * bandwidth_share, above == 0 ? "" : "; above the roof: Winograd, FFT");
    out->parameters[0] =
        (struct dl_plot_parameter){.name = "peak_flop_per_s", .number = roof.peak_flop_per_s};
    out->parameters[1] = (struct dl_plot_parameter){.name = "bandwidth_bytes_per_s",
                                                    .number = roof.bandwidth_bytes_per_s};
    out->parameters[2] = (struct dl_plot_parameter){.name = "above", .number = above};
    out->curves =
        (struct dl_plot_curves){.x = 3,
                                .curve = 5,
                                .curve_name = "roof",
                                .point = 4,
                                .log_x = true,
                                .log_y = true,
                                .x_scale = 1,
                                .y_scale = 1e12,
                                .x_name = "arithmetic intensity (flop per byte of memory traffic)",
                                .y_name = "TFLOP/s"};
    return out->title == NULL || out->subtitle == NULL
               ? dl_fail(err, DL_ERR_SYSTEM, "out of memory")
               : DL_OK;
}
