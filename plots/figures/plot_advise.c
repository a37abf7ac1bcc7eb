/* plot_advise.c - what each change brings on this machine: gain with its interval, by what the
 * change does to the mathematics, and the combination of changes. */

#include "predict/inputs/adviser.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"line", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "change", "", DL_COLUMN_STRING, 0, 0},
    {"gain_frac", "gain", "%", DL_COLUMN_NUMBER, 0.01, 4},
    {"gain_low_frac", "low", "%", DL_COLUMN_NUMBER, 0.01, 4},
    {"gain_high_frac", "high", "%", DL_COLUMN_NUMBER, 0.01, 4},
};
enum { MAX_LINES = 16 };

static void add(struct dl_table *table, int group, int line, const char *label,
                const struct dl_gain *gain) {
    dl_table_add(table, {.integer = group}, {.integer = line}, {.string = label},
                 {.number = gain->ratio - 1}, {.number = gain->low - 1},
                 {.number = gain->high - 1});
}

/* The best change of each item that helps, or rescues a plan that does not fit. */
static bool is_shown(const struct dl_advise_report *r, int row) {
    const struct dl_advised *a = &r->rows[row];
    return dl_advised_is_first(r, row) && a->verdict.possible && a->verdict.prediction.fits &&
           (a->gain.ratio >= 1 + r->least_gain_frac || !r->base.prediction.fits);
}

/* Rows of one group must be consecutive: by effect, best first; lines count over all groups. */
static enum dl_code fill(struct dl_context *context, const struct dl_advise_report *r,
                         struct dl_figure *out, struct dl_err *err) {
    int lines[DL_ADVISED] = {0}, shown = 0;
    for (int i = 0; i < r->count && shown < MAX_LINES; i++)
        if (is_shown(r, i)) lines[i] = ++shown;
    static const char *const names[] = {"exact", "equal up to rounding", "changes the training"};
    for (int effect = DL_EFFECT_EXACT; effect <= DL_EFFECT_MODEL; effect++) {
        bool named = false;
        for (int i = 0; i < r->count; i++) {
            if (lines[i] == 0 || (int)r->rows[i].change.item->effect != effect) continue;
            if (!named) out->labels[out->group_count++] = names[effect];
            named = true;
            add(&out->table, out->group_count, lines[i], r->rows[i].change.text, &r->rows[i].gain);
        }
    }
    if (r->step_count > 0) {
        out->labels[out->group_count++] = "best combination";
        add(&out->table, out->group_count, ++shown, "together", &r->gain);
    }
    if (shown == 0)
        return dl_fail(err, DL_ERR_NO, "no change gains %.3g %% or more", 100 * r->least_gain_frac);
    dl_plot_set(out, 0, "changes", shown);
    out->width = 1000;
    out->height = 180 + 34 * shown;
    out->title = dl_arena_printf(
        context->arena, "%s with %s on %s: %.4g samples/s", r->inputs->workload->name,
        r->framework->name, r->inputs->system->name, r->base.prediction.throughput_samples_per_s);
    out->subtitle = "what each change gains; bars: 80 % intervals";
    return DL_OK;
}

enum dl_code dl_plot_advise(struct dl_context *context, const struct dl_options *options,
                            struct dl_figure *out, struct dl_err *err) {
    struct dl_advise_report *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    struct dl_options own = *options;
    if (options->positional_count > 1)
        return dl_fail(err, DL_ERR_USAGE, "plot advise takes no files");
    own.positional_count = 0;
    *r = (struct dl_advise_report){.allowed = DL_EFFECT_ROUNDING, .least_gain_frac = 0.005};
    DL_TRY(dl_adviser_run(context, &own, r, err));
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof *columns);
    return fill(context, r, out, err);
}
