/* plot_timeline.c - the course of one iteration: computation on the device, concurrent
 * communication on the network, and the parts of the iteration (F-ITERATION) as a sum. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "lane", "", DL_COLUMN_STRING, 0, 0},
    {"start_s", "start", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"end_s", "end", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"kind", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"what", "what", "", DL_COLUMN_STRING, 0, 0},
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
};
static const char *const lanes[] = {"device", "network", "sum", NULL};
static const char *const kinds[] = {"forward",
                                    "backward",
                                    "update",
                                    "communication",
                                    "exposed communication",
                                    "exposed input",
                                    "overhead",
                                    "other micro-batches",
                                    NULL};
enum { DEVICE, NETWORK, SUM };
enum { FORWARD, BACKWARD, UPDATE, COMMUNICATION, EXPOSED, INPUT, OVERHEAD, OTHERS, KINDS };

static void add(struct dl_table *table, int lane, int kind, const char *name, double start_s,
                double length_s) {
    if (!(length_s > 0)) return;
    dl_table_add(table, {.integer = lane + 1}, {.string = lanes[lane]}, {.number = start_s},
                 {.number = start_s + length_s}, {.integer = kind + 1}, {.string = kinds[kind]},
                 {.string = name});
}

static int kind_of(const char *group) {
    for (int k = 0; kinds[k] != NULL; k++) {
        if (strcmp(kinds[k], group) == 0) return k;
    }
    return OVERHEAD;
}

static bool in_lane(const struct dl_term *t, const char *lane) {
    return t->lane != NULL && strcmp(t->lane, lane) == 0 && dl_known(t->start_s);
}

/* What the network does between two times of an iteration while the device has nothing to do: the
 * device waits. */
static void add_wait(struct dl_table *table, const struct dl_prediction *p, double from_s,
                     double to_s) {
    const double least_s = 1e-3 * p->iteration_s; /* shorter gaps are those between launches */
    double start_s = NAN, end_s = NAN;
    for (int i = 0; i < p->course.task_count; i++) {
        const struct dl_term *t = &p->course.tasks[i];
        if (!in_lane(t, "communication")) continue;
        const double a = fmax(from_s, t->start_s),
                     b = fmin(fmin(to_s, p->iteration_s), t->start_s + t->value);
        if (!(b > a)) continue;
        if (end_s >= a - least_s) {
            end_s = fmax(end_s, b);
            continue;
        }
        if (end_s - start_s > least_s)
            add(table, DEVICE, EXPOSED, "waits", start_s, end_s - start_s);
        start_s = a, end_s = b;
    }
    if (end_s - start_s > least_s) add(table, DEVICE, EXPOSED, "waits", start_s, end_s - start_s);
}

/* Terms of one lane, in their order; returns the end of the last in *end_s. On the device also the
 * stretches in which it waits for the network. */
static void add_lane(struct dl_table *table, const struct dl_prediction *p, const char *lane,
                     int row, double *end_s) {
    for (int i = 0; i < p->course.task_count; i++) {
        const struct dl_term *t = &p->course.tasks[i];
        if (!in_lane(t, lane)) continue;
        if (row == DEVICE && *end_s > 0) add_wait(table, p, *end_s, t->start_s);
        add(table, row, kind_of(t->group), t->name, t->start_s, t->value);
        *end_s = fmax(*end_s, t->start_s + t->value);
    }
}

/* The rest of the device's lane: waiting for what the network does last, then overhead, of which
 * the model knows the length but not the place. */
static void finish_device(struct dl_table *table, const struct dl_prediction *p, double device_s,
                          double network_s) {
    if (network_s > device_s && device_s > 0) add_wait(table, p, device_s, network_s);
    const double length_s =
        fmin(p->overhead_s + p->bubble_s, p->iteration_s - fmax(device_s, network_s));
    add(table, DEVICE, OVERHEAD, "overhead", p->iteration_s - length_s, length_s);
}

/* The parts that add up to the iteration: lengths alone, in the order of a step that overlaps. */
static void add_sum(struct dl_table *table, const struct dl_prediction *p) {
    const struct {
        int kind;
        const char *name;
        double length_s;
    } parts[] = {
        {FORWARD, "forward", p->forward_s},
        {BACKWARD, "backward", p->backward_s},
        {INPUT, "exposed input", p->exposed_input_s},
        {EXPOSED, "exposed communication", p->exposed_comm_s},
        {UPDATE, "update", p->compute_s - p->forward_s - p->backward_s},
        {OVERHEAD, "overhead", p->overhead_s + p->bubble_s},
    };
    double at_s = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        add(table, SUM, parts[i].kind, parts[i].name, at_s, parts[i].length_s);
        at_s += fmax(0, parts[i].length_s);
    }
}

/* "411.1 MB, 99.4 ms" of the longest message, at its middle in *middle_s, or "". */
static const char *longest_message(const struct dl_prediction *p, struct dl_arena *arena,
                                   double *middle_s) {
    const struct dl_term *longest = NULL;
    for (int i = 0; i < p->course.task_count; i++) {
        const struct dl_term *t = &p->course.tasks[i];
        if (in_lane(t, "communication") && (longest == NULL || t->value > longest->value))
            longest = t;
    }
    *middle_s = longest == NULL ? 0 : longest->start_s + longest->value / 2;
    if (longest == NULL) return "";
    const char *size = longest->inputs == NULL ? NULL : strstr(longest->inputs, "S=");
    double number;
    char unit[8] = "";
    if (size == NULL || sscanf(size, "S=%lf %7[A-Za-z]", &number, unit) != 2)
        return dl_arena_printf(arena, "%.3g ms", 1e3 * longest->value);
    return dl_arena_printf(arena, "%.4g %s, %.3g ms", number, unit, 1e3 * longest->value);
}

/* The hidden part of the communication that is drawn. */
static double hidden_frac(const struct dl_prediction *p) {
    double drawn_s = 0;
    for (int i = 0; i < p->course.task_count; i++) {
        if (in_lane(&p->course.tasks[i], "communication")) drawn_s += p->course.tasks[i].value;
    }
    const double all_s = drawn_s > 0 ? drawn_s : p->comm_s;
    return all_s > 0 ? fmax(0, 1 - p->exposed_comm_s / all_s) : 0;
}

static enum dl_code name(struct dl_context *context, const struct dl_plot_one *p,
                         struct dl_figure *out, struct dl_err *err) {
    (void)err;
    struct dl_arena *arena = context->arena;
    const struct dl_prediction *one = &p->prediction;
    static const char *const notes[] = {"a box: one layer", "a box: one message", "of the parts"};
    double middle_s;
    out->title = dl_arena_printf(
        arena, "One iteration of %s, predicted: %.4g ms; %.0f %% of the communication is hidden",
        p->inputs.workload->name, 1e3 * one->iteration_s, 100 * hidden_frac(one));
    out->subtitle = p->details;
    for (int i = 0; lanes[i] != NULL; i++) {
        out->notes[i] = notes[i];
        out->labels[out->group_count++] = lanes[i];
    }
    const char *longest = longest_message(one, arena, &middle_s);
    out->parameters[3] = (struct dl_plot_parameter){.name = "longest", .text = longest};
    dl_plot_set(out, 4, "longest_s", middle_s);
    return DL_OK;
}

enum dl_code dl_plot_timeline(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_one *p = dl_arena_alloc(context->arena, 1, sizeof *p);
    double device_s = 0, network_s = 0;
    DL_TRY(dl_plot_predict_one(context, options, "timeline", p, err));
    const struct dl_prediction *one = &p->prediction;
    if (one->course.memory_count > 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot timeline shows one device; a pipeline: plot pipeline");
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    add_lane(&out->table, one, "compute", DEVICE, &device_s);
    for (int i = 0; i < one->course.task_count; i++) {
        const struct dl_term *t = &one->course.tasks[i];
        if (in_lane(t, "communication")) network_s = fmax(network_s, t->start_s + t->value);
    }
    if (device_s <= 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "this strategy has no timeline of single layers; plot breakdown shows its "
                       "parts");
    }
    finish_device(&out->table, one, device_s, network_s);
    add_lane(&out->table, one, "communication", NETWORK, &network_s);
    add_sum(&out->table, one);
    DL_TRY(name(context, p, out, err));
    dl_plot_time_unit(fmax(one->iteration_s, fmax(device_s, network_s)), out->parameters);
    out->blocks = (struct dl_plot_blocks){.lanes = true,
                                          .first = 2,
                                          .count = KINDS,
                                          .names = kinds,
                                          .unit_scale = out->parameters[1].number,
                                          .unit_name = out->parameters[0].text};
    dl_plot_set(out, 2, "iteration_s", one->iteration_s);
    return DL_OK;
}
