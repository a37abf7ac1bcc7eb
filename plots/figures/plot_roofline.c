/* plot_roofline.c - the layers of a workload on the roofline of their device: attained rate against
 * flop per byte. A point below the roof loses to tiles, waves, latency or the algorithm; a
 * convolution above it saves flop (Winograd, FFT).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/framework/cost.h"
#include "plots/figures/plot.h"

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
    {"kind", "kind", "", DL_COLUMN_STRING, 0, 0},
    {"kind_rank", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"marker_share", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
};
enum {
    GROUP,
    LABEL,
    LAYER,
    INTENSITY,
    RATE,
    ROOF,
    TIME,
    SHARE,
    LIMIT,
    KIND,
    KIND_RANK,
    MARKER_SHARE,
    OWN_KINDS = 6, /* kinds with their own symbol; the others share one */
    MAX_KINDS = 64
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

/* "conv 3x3": what distinguishes layers on a roofline. */
static const char *kind_of(const struct dl_layer *layer, struct dl_arena *arena) {
    const char *name = layer->kind->name;
    if (strncmp(name, "conv", 4) != 0) return name;
    const char *text = layer->groups > 1 ? dl_arena_printf(arena, "grouped %s", name) : name;
    for (int d = DL_DIMS - layer->in.dims; d < DL_DIMS; d++)
        text = dl_arena_printf(arena, "%s%s%.0f", text, d == DL_DIMS - layer->in.dims ? " " : "x",
                               layer->window.kernel[d]);
    return text;
}

static void add_pass(struct dl_table *table, int group, const char *label,
                     const struct dl_layer *layer, const struct dl_pass_cost *c,
                     const struct roof *roof) {
    if (!(c->flop > 0 && c->bytes > 0 && c->time_s > 0)) return;
    union dl_cell *cells = dl_table_row(table);
    const double intensity = c->flop / c->bytes;
    const double values[] = {intensity, c->flop / c->time_s,
                             fmin(roof->peak_flop_per_s, intensity * roof->bandwidth_bytes_per_s),
                             c->time_s, c->time_s / roof->all_s};
    cells[GROUP].integer = group;
    cells[LABEL].string = label;
    cells[LAYER].string = layer->name;
    for (int i = 0; i < 5; i++) cells[INTENSITY + i].number = values[i];
    cells[LIMIT].string = limit_of(c);
    cells[KIND].string = kind_of(layer, table->arena);
    cells[MARKER_SHARE].number = values[4];
}

struct kind {
    const char *name;
    double share;
};

static int by_share(const void *a, const void *b) {
    const struct kind *x = a, *y = b;
    if (x->share < y->share || x->share > y->share) return x->share > y->share ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Numbers the kinds of layers from 1 by their share of the time; names and shares
 * of those with their own symbol, and of the others together, become the notes. */
static void rank_kinds(struct dl_figure *out, struct dl_arena *arena) {
    struct kind kinds[MAX_KINDS];
    int count = 0;
    for (int r = 0; r < out->table.row_count; r++) {
        const union dl_cell *c = dl_table_cells(&out->table, r);
        int k = 0;
        while (k < count && strcmp(kinds[k].name, c[KIND].string) != 0) k++;
        if (k == MAX_KINDS) k--; /* more share the last place; they are small in any case */
        if (k == count) kinds[count++] = (struct kind){c[KIND].string, 0};
        kinds[k].share += c[SHARE].number;
    }
    qsort(kinds, (size_t)count, sizeof *kinds, by_share);
    double others = 0;
    for (int r = 0; r < out->table.row_count; r++) {
        union dl_cell *c = dl_table_cells(&out->table, r);
        int k = 0;
        while (k < count && k < OWN_KINDS && strcmp(kinds[k].name, c[KIND].string) != 0) k++;
        c[KIND_RANK].integer = k + 1;
        if (k == OWN_KINDS) others += c[SHARE].number;
    }
    const int shown = count < OWN_KINDS ? count : OWN_KINDS;
    for (int k = 0; k <= shown; k++) {
        const char *name = k < shown ? kinds[k].name : "others";
        const double share = k < shown ? kinds[k].share : others;
        out->notes[k] = k < shown || count > shown
                            ? dl_arena_printf(arena, "%s: %.2g %%", name, 100 * share)
                            : "";
    }
}

static bool near(double a, double b) { return fabs(a - b) <= 0.02 * fmax(fabs(a), fabs(b)); }

/* Layers of one kind and pass in the same place get one marker, with their time together. */
static void merge_markers(const struct dl_table *table) {
    for (int r = 0; r < table->row_count; r++) {
        union dl_cell *c = dl_table_cells(table, r);
        for (int k = 0; k < r; k++) {
            union dl_cell *other = dl_table_cells(table, k);
            if (other[GROUP].integer != c[GROUP].integer || !dl_known(other[MARKER_SHARE].number) ||
                strcmp(other[KIND].string, c[KIND].string) != 0 ||
                !near(other[INTENSITY].number, c[INTENSITY].number) ||
                !near(other[RATE].number, c[RATE].number))
                continue;
            other[MARKER_SHARE].number += c[SHARE].number;
            c[MARKER_SHARE].number = NAN;
            break;
        }
    }
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
        const union dl_cell *c = dl_table_cells(table, r);
        count += c[RATE].number > 1.001 * c[ROOF].number;
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
    DL_TRY(dl_cost_compute(&(struct dl_cost_request){device, workload, p.rows[0].framework, plan,
                                                     plan->batch_per_device_samples},
                           context->arena, &cost, err));
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
            add_pass(&out->table, group, out->labels[group - 1], &workload->layers[i], c, &roof);
        }
    }
    if (out->table.row_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "no layer of %s computes anything", workload->name);
    out->group_count = 2;
    rank_kinds(out, context->arena);
    merge_markers(&out->table);
    const int above = above_the_roof(&out->table);
    out->title = dl_arena_printf(context->arena,
                                 "%s on %s, predicted: %.0f %% of the time is limited by memory%s",
                                 workload->name, device->name, 100 * bandwidth_share,
                                 above == 0 ? "" : "; above the roof: Winograd, FFT");
    out->subtitle = dl_plot_details(context->arena, &p.inputs, plan, p.rows[0].framework->name);
    dl_plot_set(out, 0, "peak_flop_per_s", roof.peak_flop_per_s);
    dl_plot_set(out, 1, "bandwidth_bytes_per_s", roof.bandwidth_bytes_per_s);
    dl_plot_set(out, 2, "above", above);
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
    return DL_OK;
}
