/* plot_heterogeneous.c - the output of `search --heterogeneous --csv`: samples per second and per
 * joule of each choice of nodes, stages or parts, grouped by the kinds of nodes that it takes. */
#include "model/core/text.h"
#include "plots/figures/choices.h"
#include "plots/figures/plot.h"

enum { SHOWN = 20 };
static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"line", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"label", "nodes", "", DL_COLUMN_STRING, 0, 0},
    {"rate", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"rate_low", "low", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"rate_high", "high", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule", "samples", "1/J", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule_low", "low", "1/J", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule_high", "high", "1/J", DL_COLUMN_NUMBER, 0, 4},
};

/* The group of the same kinds of nodes, a new one if there is none; the last one takes all others
 * when groups run out. */
static int group_of(struct dl_figure *out, const char *kinds) {
    const int place = dl_text_place(out->labels, &out->group_count, DL_PLOT_CURVES, kinds);
    if (place >= 0) return place + 1;
    out->labels[DL_PLOT_CURVES - 1] = "others";
    return DL_PLOT_CURVES;
}

static void add(struct dl_table *table, const struct dl_choice *choice, int group, int line) {
    const double per_j = 1 / choice->sample_energy_j;
    dl_table_add(table, {.integer = group}, {.number = line}, {.string = choice->label},
                 {.number = choice->samples_per_s}, {.number = choice->low_samples_per_s},
                 {.number = choice->high_samples_per_s}, {.number = per_j}, {.number = per_j},
                 {.number = per_j});
}

enum dl_code dl_plot_heterogeneous(struct dl_context *context, const struct dl_options *options,
                                   struct dl_figure *out, struct dl_err *err) {
    struct dl_choice *list;
    struct dl_csv csv;
    int count;
    if (options->positional_count != 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot heterogeneous takes one file that 'dlmodel search --heterogeneous ... "
                       "--csv -o FILE' wrote");
    DL_TRY(dl_csv_read(options->positional[1], context->arena, &csv, err));
    DL_TRY(dl_choices_read(&csv, context->arena, &list, &count, err));
    const int shown = count < SHOWN ? count : SHOWN;
    int groups[SHOWN];
    for (int i = 0; i < shown; i++) groups[i] = group_of(out, list[i].kinds);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int g = 1; g <= out->group_count; g++)
        for (int i = 0; i < shown; i++)
            if (groups[i] == g) add(&out->table, &list[i], g, i + 1);
    out->title = "Which nodes the job takes";
    out->subtitle = shown < count
                        ? dl_arena_printf(context->arena,
                                          "the first %d of %d choices, the best one on top; bars: "
                                          "80 %% intervals; right is better",
                                          shown, count)
                        : "the best choice on top; bars: 80 % intervals; right is better";
    dl_plot_set(out, 0, "systems", shown);
    out->width = 980;
    out->height = 260 + 26 * shown;
    return DL_OK;
}
