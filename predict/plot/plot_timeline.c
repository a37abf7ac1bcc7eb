/* plot_timeline.c - the course of one iteration: computation on the device, concurrent
 * communication on the network, and the resulting parts of the iteration (F-ITERATION). */
#include <math.h>
#include <string.h>

#include "predict/plot/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "lane", "", DL_COLUMN_STRING, 0, 0},
    {"start_s", "start", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"end_s", "end", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"kind", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"what", "what", "", DL_COLUMN_STRING, 0, 0},
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
};
static const char *const lanes[] = {"device", "network", "parts", NULL};
static const char *const kinds[] = {"forward",       "backward", "update", "communication",
                                    "exposed input", "overhead", NULL};
enum { DEVICE, NETWORK, PARTS };
enum { FORWARD, BACKWARD, UPDATE, COMMUNICATION, INPUT, OVERHEAD };

static enum dl_code add(struct dl_table *table, int lane, int kind, const char *name,
                        double start_s, double length_s, struct dl_err *err) {
    if (!(length_s > 0)) return DL_OK;
    union dl_cell *c = dl_table_row(table);
    if (c == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    c[0].integer = lane + 1;
    c[1].string = lanes[lane];
    c[2].number = start_s;
    c[3].number = start_s + length_s;
    c[4].integer = kind + 1;
    c[5].string = kinds[kind];
    c[6].string = name;
    return DL_OK;
}

static int kind_of(const char *group) {
    for (int k = 0; kinds[k] != NULL; k++) {
        if (strcmp(kinds[k], group) == 0) return k;
    }
    return OVERHEAD;
}

/* Terms of one lane, in their order; returns the end of the last in *end_s. */
static enum dl_code add_lane(struct dl_table *table, const struct dl_prediction *p,
                             const char *lane, int row, double *end_s, struct dl_err *err) {
    for (int i = 0; i < p->term_count; i++) {
        const struct dl_term *t = &p->terms[i];
        if (t->lane == NULL || strcmp(t->lane, lane) != 0 || !dl_known(t->start_s)) continue;
        DL_TRY(add(table, row, kind_of(t->group), t->name, t->start_s, t->value, err));
        *end_s = fmax(*end_s, t->start_s + t->value);
    }
    return DL_OK;
}

static enum dl_code add_parts(struct dl_table *table, const struct dl_prediction *p,
                              struct dl_err *err) {
    const struct {
        int kind;
        const char *name;
        double length_s;
    } parts[] = {
        {FORWARD, "forward", p->forward_s},
        {BACKWARD, "backward", p->backward_s},
        {UPDATE, "update", p->compute_s - p->forward_s - p->backward_s},
        {COMMUNICATION, "exposed communication", p->exposed_comm_s},
        {INPUT, "exposed input", p->exposed_input_s},
        {OVERHEAD, "overhead", p->overhead_s + p->bubble_s},
    };
    double at_s = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        DL_TRY(add(table, PARTS, parts[i].kind, parts[i].name, at_s, parts[i].length_s, err));
        at_s += fmax(0, parts[i].length_s);
    }
    return DL_OK;
}

enum dl_code dl_plot_timeline(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_one *p = dl_arena_alloc(context->arena, 1, sizeof *p);
    double device_s = 0, network_s = 0;
    if (p == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(dl_plot_predict_one(context, options, "timeline", p, err));
    const struct dl_prediction *one = &p->prediction;
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    DL_TRY(add_lane(&out->table, one, "compute", DEVICE, &device_s, err));
    DL_TRY(add_lane(&out->table, one, "communication", NETWORK, &network_s, err));
    if (device_s <= 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "this strategy has no timeline of single layers; plot %s shows its parts",
                       one->stage_times != NULL ? "pipeline" : "breakdown");
    }
    DL_TRY(add_parts(&out->table, one, err));
    for (int i = 0; lanes[i] != NULL; i++) out->labels[out->group_count++] = lanes[i];
    out->title = p->title;
    out->subtitle = dl_arena_printf(
        context->arena, "one iteration, predicted: %.4g ms; %.0f %% of the communication is hidden",
        1e3 * one->iteration_s,
        one->comm_s > 0 ? 100 * (1 - one->exposed_comm_s / one->comm_s) : 0);
    dl_plot_time_unit(fmax(one->iteration_s, fmax(device_s, network_s)), out->parameters);
    out->blocks = (struct dl_plot_blocks){.lanes = true,
                                          .first = 2,
                                          .count = OVERHEAD + 1,
                                          .names = kinds,
                                          .unit_scale = out->parameters[1].number,
                                          .unit_name = out->parameters[0].text};
    out->parameters[2] =
        (struct dl_plot_parameter){.name = "iteration_s", .number = one->iteration_s};
    return out->subtitle == NULL ? dl_fail(err, DL_ERR_SYSTEM, "out of memory") : DL_OK;
}
