/* plot_match.c - samples per second and per joule of each network on each system, with intervals:
 * with the best framework there, or with each of a few that --framework names. */

#include "predict/inputs/match.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"line", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"label", "system", "", DL_COLUMN_STRING, 0, 0},
    {"rate", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"rate_low", "low", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"rate_high", "high", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule", "samples", "1/J", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule_low", "low", "1/J", DL_COLUMN_NUMBER, 0, 4},
    {"per_joule_high", "high", "1/J", DL_COLUMN_NUMBER, 0, 4},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
};

/* One point of network w: its line is that of the system, a little lower for each network. */
static void add(const struct dl_match *m, struct dl_table *table, int w, int line,
                const char *label, const struct dl_match_row *r) {
    dl_table_add(table, {.integer = w + 1},
                 {.number = line + 0.6 * ((w + 0.5) / m->workload_count - 0.5)}, {.string = label},
                 {.number = r->samples_per_s}, {.number = r->low_samples_per_s},
                 {.number = r->high_samples_per_s}, {.number = r->samples_per_j},
                 {.number = r->low_samples_per_j}, {.number = r->high_samples_per_j},
                 {.string = r->framework});
}

enum dl_code dl_plot_match(struct dl_context *context, const struct dl_options *options,
                           struct dl_figure *out, struct dl_err *err) {
    struct dl_match *m = dl_arena_alloc(context->arena, 1, sizeof *m);
    struct dl_options own = *options;
    if (options->positional_count > 1)
        return dl_fail(err, DL_ERR_USAGE, "plot match takes no files");
    own.positional_count = 0;
    DL_TRY(dl_match_run(context, &own, m, err));
    if (m->workload_count > DL_PLOT_CURVES)
        return dl_fail(err, DL_ERR_USAGE, "plot match shows at most %d --workloads",
                       DL_PLOT_CURVES);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int w = 0; w < m->workload_count; w++) {
        out->labels[w] = m->workloads[w];
        for (int s = 0; s < m->system_count; s++) {
            const struct dl_match_row *best =
                dl_match_best(m, m->workloads[w], m->systems[s], false);
            if (best != NULL) add(m, &out->table, w, s + 1, m->systems[s], best);
        }
    }
    if (out->table.row_count == 0) return dl_fail(err, DL_ERR_NO, "no combination fits in memory");
    out->group_count = m->workload_count;
    out->title = dl_arena_printf(context->arena, "Machines compared: %lld %s", (long long)m->nodes,
                                 m->nodes == 1 ? "node" : "nodes");
    out->subtitle = "the fastest framework on each; bars: 80 % intervals; right is better";
    dl_plot_set(out, 0, "systems", m->system_count);
    out->width = 980;
    return DL_OK;
}
