/* plot_mfu.c - which part of the devices' rate a model uses: MFU, and what recomputation adds to it
 * (HFU), one bar for each framework and number of nodes. F-MFU, F-HFU */

#include "model/engine/throughput.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "bar", "", DL_COLUMN_STRING, 0, 0},
    {"position", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"mfu_frac", "MFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"hfu_frac", "HFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"low_mfu_frac", "low", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"high_mfu_frac", "high", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"model_flop_per_s_per_device", "model", "TFLOP/s", DL_COLUMN_NUMBER, 1e12, 0},
    {"tokens_per_s_per_device", "tokens", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
};

static enum dl_code add_bar(struct dl_table *table, const struct dl_inputs *inputs,
                            const struct dl_predicted_row *r, const struct dl_plot_bar *bar,
                            struct dl_err *err) {
    const struct dl_prediction *p = &r->prediction;
    const struct dl_throughput t =
        dl_throughput_of(p->group_count == 0 ? inputs->system->device : NULL,
                         dl_inputs_workload(inputs, r->framework), &r->plan, p);
    if (!dl_known(t.mfu_frac))
        return dl_fail(err, DL_ERR_USAGE, "plot mfu: the devices' rate in %s is unknown",
                       dl_precision_names[r->plan.precision]);
    dl_table_add(table, {.integer = bar->group}, {.string = bar->label}, {.number = bar->index},
                 {.number = t.mfu_frac}, {.number = t.hfu_frac},
                 {.number = t.mfu_frac * p->iteration_s / p->iteration_high_s},
                 {.number = t.mfu_frac * p->iteration_s / p->iteration_low_s},
                 {.number = t.device_model_flop_per_s}, {.number = t.device_tokens_per_s},
                 {.string = r->framework->name}, {.integer = r->plan.nodes});
    return DL_OK;
}

enum dl_code dl_plot_mfu(struct dl_context *context, const struct dl_options *options,
                         struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    struct dl_plot_bar bars[DL_PLOT_BARS];
    DL_TRY(dl_plot_predict(context, options, "mfu", &p, err));
    DL_TRY(dl_plot_bars(context, &p, bars, out, err));
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < p.count; i++)
        DL_TRY(add_bar(&out->table, &p.inputs, &p.rows[i], &bars[i], err));
    out->title = dl_arena_printf(context->arena,
                                 "Predicted MFU of %s: its flop per second over the datasheet rate",
                                 p.inputs.workload->name);
    return DL_OK;
}
