/* plot_scaling.c - throughput against devices: measured runs as points, predictions with their
 * interval, and the line of linear scaling from the smallest run. Iteration times become
 * throughputs with the samples of an iteration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "label", "", DL_COLUMN_STRING, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"measured_samples_per_s", "measured", "1/s", DL_COLUMN_NUMBER, 0, 0},
    {"predicted_samples_per_s", "predicted", "1/s", DL_COLUMN_NUMBER, 0, 0},
    {"predicted_low_samples_per_s", "low", "1/s", DL_COLUMN_NUMBER, 0, 0},
    {"predicted_high_samples_per_s", "high", "1/s", DL_COLUMN_NUMBER, 0, 0},
    {"ideal_samples_per_s", "ideal", "1/s", DL_COLUMN_NUMBER, 0, 0},
    {"id", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
};
enum { GROUP, LABEL, DEVICES, MEASURED, PREDICTED, LOW, HIGH, IDEAL, ID, NODES };

const char dl_plot_throughput[] = "Throughput per device";

static int by_group_and_devices(const void *a, const void *b) {
    const struct dl_plot_point *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->devices != y->devices) return x->devices < y->devices ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* Samples per second and device of the smallest run: measured where it is, else predicted. */
static double per_device(const struct dl_plot_point *points, int count, int group) {
    const struct dl_plot_point *base = NULL;
    for (int i = 0; i < count; i++) {
        const struct dl_plot_point *p = &points[i];
        if (p->group != group || !(dl_known(p->measured) || dl_known(p->predicted))) continue;
        const bool first = base == NULL || p->devices < base->devices;
        if (first ||
            (p->devices == base->devices && !dl_known(base->measured) && dl_known(p->measured)))
            base = p;
    }
    if (base == NULL) return NAN;
    return (dl_known(base->measured) ? base->measured : base->predicted) / (double)base->devices;
}

void dl_plot_scaling_table(struct dl_table *table, struct dl_arena *arena) {
    dl_table_init(table, arena, columns, sizeof columns / sizeof columns[0]);
}

void dl_plot_scaling_curves(struct dl_figure *out, bool measured) {
    out->curves = (struct dl_plot_curves){.x = DEVICES,
                                          .curve = PREDICTED,
                                          .point = measured ? MEASURED : -1,
                                          .over = DEVICES,
                                          .log_x = true,
                                          .x_scale = 1,
                                          .y_scale = 1,
                                          .x_name = "devices",
                                          .y_name = "samples/s of one device",
                                          .point_note = ", measured"};
}

void dl_plot_scaling_add(struct dl_table *table, const struct dl_plot_point *point) {
    dl_table_add(table, {.integer = point->group}, {.string = point->label},
                 {.integer = point->devices}, {.number = point->measured},
                 {.number = point->predicted}, {.number = point->low}, {.number = point->high},
                 {.number = point->ideal_samples_per_s}, {.string = point->id},
                 {.integer = point->nodes});
}

static void fill(struct dl_context *context, struct dl_figure *figure, struct dl_plot_point *points,
                 int count) {
    qsort(points, (size_t)count, sizeof *points, by_group_and_devices);
    dl_plot_scaling_table(&figure->table, context->arena);
    for (int i = 0; i < count; i++) {
        points[i].label = figure->labels[points[i].group - 1];
        points[i].ideal_samples_per_s =
            per_device(points, count, points[i].group) * (double)points[i].devices;
        dl_plot_scaling_add(&figure->table, &points[i]);
    }
}

static bool same_key(const struct dl_plot_run *a, const struct dl_plot_run *b, int key) {
    if (key != DL_KEY_BATCH) return strcmp(a->keys[key], b->keys[key]) == 0;
    /* printed with rounding: equal within 1 % */
    const double x = atof(a->keys[key]), y = atof(b->keys[key]);
    return fabs(x - y) <= 0.01 * fmax(x, y);
}

static bool same_group(const struct dl_plot_run *a, const struct dl_plot_run *b) {
    for (int k = 0; k < DL_KEYS; k++) {
        if (!same_key(a, b, k)) return false;
    }
    return true;
}

/* Numbers the groups of the rows that can be drawn; returns how many. varies[k]: groups differ in
 * that key. */
static int number_groups(struct dl_plot_runs *runs, bool *varies) {
    int groups = 0;
    const struct dl_plot_run *first = NULL;
    memset(varies, 0, DL_KEYS * sizeof *varies);
    for (int i = 0; i < runs->count; i++) {
        struct dl_plot_run *run = &runs->rows[i];
        const struct dl_compared *c = run->compared;
        const bool throughput = strcmp(c->unit, "s") != 0;
        if (c->devices < 1 || !(c->measured > 0) ||
            (!throughput && !(c->samples_per_iteration > 0)))
            continue;
        if (first == NULL) first = run;
        for (int k = 0; k < i && run->group == 0; k++) {
            if (runs->rows[k].group > 0 && same_group(run, &runs->rows[k]))
                run->group = runs->rows[k].group;
        }
        if (run->group == 0) run->group = ++groups;
        for (int k = 0; k < DL_KEYS; k++) varies[k] = varies[k] || !same_key(first, run, k);
    }
    return groups;
}

/* The value of a key as text for a title or legend. */
static const char *key_text(struct dl_arena *arena, const struct dl_plot_run *run, int key) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): rows have their keys */
    const char *text = run->keys[key];
    if (text[0] == 0) return key == DL_KEY_BACKEND ? "default back-end" : "";
    if (key == DL_KEY_BATCH) return dl_arena_printf(arena, "%s samples per device", text);
    if (key == DL_KEY_STRATEGY) return dl_arena_printf(arena, "%s parallel", text);
    return text;
}

/* Keys that all groups share are in the title, the others in the legend. */
static void name_groups(struct dl_context *context, const struct dl_plot_runs *runs,
                        const bool *varies, struct dl_figure *figure) {
    struct dl_arena *arena = context->arena;
    const struct dl_plot_run *first = NULL;
    for (int i = 0; i < runs->count; i++) {
        const struct dl_plot_run *run = &runs->rows[i];
        if (run->group == 0) continue;
        if (first == NULL) first = run;
        const char **label = &figure->labels[run->group - 1];
        if (*label != NULL) continue;
        *label = "";
        for (int k = 0; k < DL_KEYS; k++) {
            if (varies[k]) *label = dl_plot_join(arena, *label, key_text(arena, run, k));
        }
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a first run */
    const char *shared = "",
               *source = varies[DL_KEY_SOURCE] ? "several sources" : first->keys[DL_KEY_SOURCE];
    for (int k = DL_KEY_SYSTEM; k < DL_KEY_SOURCE; k++) {
        if (varies[k] || (k == DL_KEY_BACKEND && first->keys[k][0] == 0)) continue;
        shared = dl_plot_join(arena, shared, key_text(arena, first, k));
    }
    for (int g = 0; g < figure->group_count; g++) {
        if (figure->labels[g] != NULL && figure->labels[g][0] == 0)
            figure->labels[g] = first->keys[DL_KEY_FRAMEWORK];
    }
    const char *workload =
        varies[DL_KEY_WORKLOAD] ? "several workloads" : first->keys[DL_KEY_WORKLOAD];
    figure->title =
        dl_arena_printf(arena, "%s of %s, measured by: %s", dl_plot_throughput, workload, source);
    figure->subtitle = shared;
}

/* The first values of a key among the drawn runs; returns how many, *more: there are others. */
static int values_of(const struct dl_plot_runs *runs, int key, const char **values, int most,
                     bool *more) {
    int count = 0;
    *more = false;
    for (int i = 0; i < runs->count; i++) {
        const char *value = runs->rows[i].keys[key];
        if (runs->rows[i].group == 0 || value[0] == 0) continue;
        *more = dl_text_place(values, &count, most, value) < 0;
        if (*more) break;
    }
    return count;
}

/* "--workload (vgg16, alexnet, ...)": the option that narrows by this key, and what it may be. */
static void add_choice(struct dl_text *text, int key, const char *const *values, int count,
                       bool more) {
    const bool direct = key == DL_KEY_WORKLOAD || key == DL_KEY_SYSTEM || key == DL_KEY_FRAMEWORK ||
                        key == DL_KEY_PRECISION;
    if (text->length > 0) dl_text_add(text, ", ");
    dl_text_printf(text, direct ? "--%s (" : "--where %s=... (", dl_plot_keys[key]);
    for (int v = 0; v < count; v++) dl_text_printf(text, "%s%.30s", v > 0 ? ", " : "", values[v]);
    dl_text_add(text, more ? ", ...)" : ")");
}

/* Names the keys in which the remaining groups differ, with their values. */
static enum dl_code too_many(const struct dl_plot_runs *runs, int groups, const bool *varies,
                             struct dl_arena *arena, struct dl_err *err) {
    enum { SHOWN = 4, LONG = 400 };
    struct dl_text text = {.arena = arena};
    for (int k = 0; k < DL_KEYS && text.length < LONG; k++) {
        const char *values[SHOWN];
        bool more;
        if (!varies[k]) continue;
        const int count = values_of(runs, k, values, SHOWN, &more);
        if (count > 0) add_choice(&text, k, values, count, more);
    }
    const char *choices = dl_text_string(&text);
    return dl_fail(err, DL_ERR_USAGE,
                   "%d groups of runs match and a figure holds %d; narrow with %s", groups,
                   (int)DL_PLOT_CURVES, choices);
}

/* Iterations become throughputs: the two ends of the interval change places. */
static struct dl_plot_point point_of(const struct dl_plot_run *run) {
    const struct dl_compared *c = run->compared;
    const bool time = strcmp(c->unit, "s") == 0;
    const double samples = c->samples_per_iteration;
    return (struct dl_plot_point){
        .group = run->group,
        .devices = c->devices,
        .nodes = run->nodes,
        .id = c->id,
        .measured = time ? samples / c->measured : c->measured,
        .predicted = time ? samples / c->predicted : c->predicted,
        .low = time ? samples / c->high : c->low,
        .high = time ? samples / c->low : c->high,
    };
}

static enum dl_code from_files(struct dl_context *context, const struct dl_options *options,
                               struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_runs runs = {0};
    bool varies[DL_KEYS];
    DL_TRY(dl_plot_runs_read(context, options, true, &runs, err));
    const int groups = number_groups(&runs, varies);
    if (groups == 0) {
        const char *why = runs.rows[0].compared->why;
        return dl_fail(err, DL_ERR_USAGE, "nothing to draw: %s",
                       why != NULL ? why : "no row has a measured value");
    }
    if (groups > DL_PLOT_CURVES) return too_many(&runs, groups, varies, context->arena, err);
    out->group_count = groups;
    name_groups(context, &runs, varies, out);
    struct dl_plot_point *points =
        dl_arena_alloc(context->arena, (size_t)runs.count, sizeof *points);
    int count = 0, unpredicted = 0;
    const char *why = NULL;
    for (int i = 0; i < runs.count; i++) {
        const struct dl_compared *c = runs.rows[i].compared;
        if (c->skipped) {
            unpredicted++;
            why = why == NULL ? c->why : why;
        }
        if (runs.rows[i].group == 0) continue;
        points[count++] = point_of(&runs.rows[i]);
    }
    if (unpredicted > 0)
        context->note(context, "%d of %d rows are not predicted, for instance: %s", unpredicted,
                      runs.count, why);
    fill(context, out, points, count);
    return DL_OK;
}

static int by_throughput(const void *a, const void *b) {
    const struct dl_predicted_row *const *x = a, *const *y = b;
    const double s = (*x)->prediction.throughput_samples_per_s,
                 t = (*y)->prediction.throughput_samples_per_s;
    return s > t ? -1 : s < t;
}

/* The fastest frameworks at the largest number of nodes, at most as many as a figure holds;
 * returns how many. `ideal` is not a real choice and is excluded unless it was requested by
 * name. */
static int fastest(struct dl_context *context, const struct dl_plot_predictions *p,
                   const struct dl_predicted_row **chosen) {
    const struct dl_predicted_row *last[64] = {NULL};
    int count = 0;
    for (int i = 0; i < p->count && count < 64; i++) {
        if (i + 1 < p->count && p->rows[i + 1].framework == p->rows[i].framework) continue;
        if (p->inputs.framework_count > 1 && dl_framework_is_bound(p->rows[i].framework)) continue;
        last[count++] = &p->rows[i];
    }
    qsort(last, (size_t)count, sizeof *last, by_throughput);
    const int shown = count < DL_PLOT_CURVES ? count : DL_PLOT_CURVES;
    for (int i = 0; i < shown; i++) chosen[i] = last[i];
    if (shown < count) {
        context->note(context,
                      "the %d fastest of %d frameworks are drawn; --framework a,b,c chooses others",
                      shown, count);
    }
    return shown;
}

static enum dl_code predicted_only(struct dl_context *context, const struct dl_options *options,
                                   struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    DL_TRY(dl_plot_predict(context, options, "scaling", &p, err));
    const struct dl_predicted_row *chosen[DL_PLOT_CURVES];
    struct dl_plot_point *points = dl_arena_alloc(context->arena, (size_t)p.count, sizeof *points);
    int count = 0;
    out->group_count = fastest(context, &p, chosen);
    for (int g = 0; g < out->group_count; g++) {
        out->labels[g] = chosen[g]->framework->name;
        for (int i = 0; i < p.count; i++) {
            const struct dl_predicted_row *r = &p.rows[i];
            if (r->framework != chosen[g]->framework) continue;
            const double samples = r->plan.global_batch_samples;
            points[count++] = (struct dl_plot_point){
                .group = g + 1,
                .devices = r->plan.nodes * r->plan.devices_per_node,
                .nodes = r->plan.nodes,
                .id = "",
                .measured = NAN,
                .predicted = r->prediction.throughput_samples_per_s,
                .low = samples / r->prediction.iteration_high_s,
                .high = samples / r->prediction.iteration_low_s,
            };
        }
    }
    const struct dl_plan *plan = &p.rows[0].plan;
    out->title = dl_arena_printf(context->arena, "%s of %s, predicted", dl_plot_throughput,
                                 p.inputs.workload->name);
    out->subtitle = dl_plot_details(context->arena, &p.inputs, plan,
                                    out->group_count == 1 ? out->labels[0] : "");
    fill(context, out, points, count);
    return DL_OK;
}

enum dl_code dl_plot_scaling(struct dl_context *context, const struct dl_options *options,
                             struct dl_figure *out, struct dl_err *err) {
    const bool files = options->positional_count > 1;
    dl_plot_set(out, 0, "measured", files);
    dl_plot_set(out, 1, "share", 0);
    dl_plot_scaling_curves(out, files);
    return files ? from_files(context, options, out, err)
                 : predicted_only(context, options, out, err);
}
