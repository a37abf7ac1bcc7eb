/* plot_bars.c - bars of predictions: their positions and labels, and the title of the figure. */
#include "plots/figures/plot.h"

static const char *label_of(struct dl_arena *arena, const struct dl_predicted_row *r,
                            bool same_nodes, bool one) {
    if (same_nodes) return r->framework->name;
    const long long nodes = (long long)r->plan.nodes;
    return one ? dl_arena_printf(arena, "%lld", nodes)
               : dl_arena_printf(arena, "%s, %lld", r->framework->name, nodes);
}

enum dl_code dl_plot_bars(struct dl_context *context, const struct dl_plot_predictions *p,
                          struct dl_plot_bar *bars, struct dl_figure *out, struct dl_err *err) {
    if (p->count > DL_PLOT_BARS) {
        return dl_fail(err, DL_ERR_USAGE,
                       "%d bars and a figure holds %d; give fewer --nodes or --framework a,b,c",
                       p->count, (int)DL_PLOT_BARS);
    }
    struct dl_arena *arena = context->arena;
    const bool one = p->rows[0].framework == p->rows[p->count - 1].framework;
    const bool same_nodes = !one && p->inputs.node_count == 1;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *r = &p->rows[i];
        if (i == 0 || r->framework != p->rows[i - 1].framework)
            out->labels[out->group_count++] = r->framework->name;
        bars[i] = (struct dl_plot_bar){out->group_count, label_of(arena, r, same_nodes, one),
                                       i + 1 + (same_nodes ? 0 : 0.5 * (out->group_count - 1))};
    }
    const struct dl_plan *plan = &p->rows[0].plan;
    out->subtitle = dl_plot_details(arena, &p->inputs, plan, one ? out->labels[0] : "");
    out->parameters[0] = (struct dl_plot_parameter){.name = "xtitle",
                                                    .text = one          ? "nodes"
                                                            : same_nodes ? ""
                                                                         : "framework, nodes"};
    dl_plot_set(out, 1, "slanted", one ? 0 : 1);
    if (!one) out->height = 640; /* room for slanted labels */
    return DL_OK;
}
