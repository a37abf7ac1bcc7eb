/* plot_checkpoint.c - the share of time that checkpoints and failures take, against the interval
 * between checkpoints: one curve for each format (F-CKPT-TIME), with the best interval marked. */
#include <math.h>

#include "predict/output/checkpoint_inputs.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"interval_s", "interval", "min", DL_COLUMN_NUMBER, 60, 4},
    {"lost_frac", "lost", "%", DL_COLUMN_NUMBER, 0.01, 4},
    {"best", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"format", "format", "", DL_COLUMN_STRING, 0, 0},
};
enum { POINTS = 61 };

static void add_point(struct dl_table *table, int group, const char *name,
                      const struct dl_checkpoint *c, bool best) {
    dl_table_add(table, {.integer = group}, {.number = c->interval_s},
                 {.number = 1 - c->goodput_frac}, {.integer = best}, {.string = name});
}

static const char *name_of(const struct dl_checkpoint_way *way) {
    return way->format == NULL ? "checkpoint" : way->format->name;
}

/* From a tenth to ten times the best interval; those with which the job does not get through are
 * left out. */
static enum dl_code add_curve(const struct dl_inputs *inputs, const struct dl_predicted_row *r,
                              struct dl_checkpoint_way way, int group, struct dl_table *table,
                              struct dl_err *err) {
    const char *name = name_of(&way);
    struct dl_checkpoint best, c;
    way.interval_s = 0;
    DL_TRY(dl_checkpoint_plan(inputs->system, dl_inputs_workload(inputs, r->framework), &r->plan,
                              &r->prediction, &way, &best, err));
    for (int i = 0; i < POINTS; i++) {
        struct dl_err inner = {0};
        way.interval_s = best.interval_s * pow(10, 2.0 * i / (POINTS - 1) - 1);
        const enum dl_code code =
            dl_checkpoint_plan(inputs->system, dl_inputs_workload(inputs, r->framework), &r->plan,
                               &r->prediction, &way, &c, &inner);
        if (code == DL_OK) add_point(table, group, name, &c, false);
        if (i == POINTS / 2) add_point(table, group, name, &best, true);
    }
    return DL_OK;
}

enum dl_code dl_plot_checkpoint(struct dl_context *context, const struct dl_options *options,
                                struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    const char *names[DL_CHECKPOINT_FORMATS];
    int count;
    DL_TRY(dl_plot_predict(context, options, "checkpoint", &p, err));
    DL_TRY(dl_checkpoint_formats_asked(context, options, names, &count, err));
    if (p.count != 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot checkpoint shows one plan: give one --framework and one number of "
                       "--nodes");
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        struct dl_checkpoint_way way;
        DL_TRY(dl_checkpoint_way_read(context, options, p.rows[0].framework, names[i], &way, err));
        out->labels[i] = name_of(&way);
        DL_TRY(add_curve(&p.inputs, &p.rows[0], way, i + 1, &out->table, err));
    }
    out->group_count = count;
    out->title =
        dl_arena_printf(context->arena, "Time that checkpoints, failures and restarts of %s take",
                        p.inputs.workload->name);
    out->subtitle = dl_plot_details(context->arena, &p.inputs, &p.rows[0].plan, "");
    out->curves = (struct dl_plot_curves){.x = 1,
                                          .curve = 2,
                                          .point = 2,
                                          .kind = 3,
                                          .point_note = ", best interval",
                                          .curve_kind = 0,
                                          .point_kind = 1,
                                          .log_x = true,
                                          .log_y = true,
                                          .x_scale = 60,
                                          .y_scale = 0.01,
                                          .x_name = "interval between checkpoints (min)",
                                          .y_name = "time lost to checkpoints and failures (%)"};
    return DL_OK;
}
