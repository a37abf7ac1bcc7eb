/* plot_strategies.c - compares strategies of one framework: throughput against devices, one
 * curve each. Strategies that cannot run are named in a message with the reason. Drawn by
 * plots/scaling.gp. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "plots/figures/plot.h"
#include "predict/options/where.h"

enum { MOST = 24 };

struct curve { /* one strategy */
    const struct dl_strategy *strategy;
    struct dl_plan plans[DL_MAX_LIST];
    struct dl_prediction predictions[DL_MAX_LIST];
    bool good[DL_MAX_LIST];
    int count, last; /* predictions; index of the one on most nodes */
};

static int by_reach(const void *a, const void *b) { /* most nodes first, then fastest */
    const struct curve *const *x = a, *const *y = b;
    const struct dl_plan *p = &(*x)->plans[(*x)->last], *q = &(*y)->plans[(*y)->last];
    if (p->nodes != q->nodes) return p->nodes > q->nodes ? -1 : 1;
    const double s = (*x)->predictions[(*x)->last].throughput_samples_per_s,
                 t = (*y)->predictions[(*y)->last].throughput_samples_per_s;
    return s > t ? -1 : s < t;
}

static enum dl_code predict_all(struct dl_context *context, const struct dl_inputs *inputs,
                                const struct dl_framework *framework, struct curve *curve,
                                struct dl_err *err) {
    struct dl_inputs own = *inputs;
    struct dl_err why = {0};
    own.plan.strategy = curve->strategy;
    for (size_t n = 0; n < inputs->node_count; n++) {
        struct dl_err inner = {0};
        const enum dl_code code =
            dl_inputs_predict(&(struct dl_inputs_case){&own, framework, inputs->nodes[n], false},
                              context->arena, &curve->plans[n], &curve->predictions[n], &inner);
        curve->good[n] = code == DL_OK;
        if (code == DL_OK)
            curve->last = (int)n, curve->count++;
        else if (code == DL_ERR_USAGE)
            why = inner;
        else {
            *err = inner;
            return code;
        }
    }
    if (curve->count == 0)
        context->note(context, "not shown: %s (%s)", curve->strategy->name, why.message);
    return DL_OK;
}

/* One row per strategy and number of nodes, in the columns of plot_scaling.c. */
static void fill(struct dl_context *context, const struct dl_inputs *inputs, struct curve **chosen,
                 struct dl_figure *out) {
    dl_plot_scaling_table(&out->table, context->arena);
    for (int g = 0; g < out->group_count; g++) {
        const struct curve *curve = chosen[g];
        double base = NAN;
        out->labels[g] = curve->strategy->name;
        for (size_t n = 0; n < inputs->node_count; n++) {
            const struct dl_plan *plan = &curve->plans[n];
            const struct dl_prediction *p = &curve->predictions[n];
            if (!curve->good[n]) continue;
            const int64_t devices = plan->nodes * plan->devices_per_node;
            if (!dl_known(base)) base = p->throughput_samples_per_s / (double)devices;
            const struct dl_plot_point point = {
                .group = g + 1,
                .label = out->labels[g],
                .devices = devices,
                .nodes = plan->nodes,
                .measured = NAN,
                .predicted = p->throughput_samples_per_s,
                .low = plan->global_batch_samples / p->iteration_high_s,
                .high = plan->global_batch_samples / p->iteration_low_s,
                .ideal_samples_per_s = base * (double)devices,
                .id = p->fits ? "" : "does not fit",
            };
            dl_plot_scaling_add(&out->table, &point);
        }
    }
}

/* The given framework, else `ideal`, which supports all. */
static enum dl_code choose_framework(const struct dl_inputs *inputs,
                                     const struct dl_framework **out, struct dl_err *err) {
    *out = inputs->frameworks[0];
    for (int i = 0; inputs->framework_all && i < inputs->framework_count; i++) {
        if (dl_framework_is_bound(inputs->frameworks[i])) *out = inputs->frameworks[i];
    }
    if (!inputs->framework_all && inputs->framework_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--framework: plot strategies takes one framework");
    return DL_OK;
}

enum dl_code dl_plot_strategies(struct dl_context *context, const struct dl_options *options,
                                struct dl_figure *out, struct dl_err *err) {
    const char *names = dl_option_text(options, "strategy");
    struct dl_inputs inputs;
    const struct dl_framework *framework;
    struct curve *curves = dl_arena_alloc(context->arena, MOST, sizeof *curves), *chosen[MOST];
    struct dl_options own = dl_options_without(options, "strategy"); /* a list of names here */
    int count = 0;
    if (options->positional_count > 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "plot strategies draws predictions only; it takes no file \"%s\"",
                       options->positional[1]);
    }
    own.positional_count = 0;
    DL_TRY(dl_inputs_load(context, &own, &inputs, err));
    DL_TRY(choose_framework(&inputs, &framework, err));
    for (int s = 0; dl_strategies[s] != NULL && count < MOST; s++) {
        if (names != NULL && strcmp(names, "all") != 0 &&
            !dl_filter_listed(names, dl_strategies[s]->name))
            continue;
        curves[count].strategy = dl_strategies[s];
        DL_TRY(predict_all(context, &inputs, framework, &curves[count], err));
        if (curves[count].count == 0) continue;
        chosen[count] = &curves[count];
        count++;
    }
    if (count == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "no strategy of \"%s\" can run this; see 'dlmodel list strategies'",
                       names != NULL ? names : "all");
    qsort(chosen, (size_t)count, sizeof *chosen, by_reach);
    out->group_count = count < DL_PLOT_CURVES ? count : DL_PLOT_CURVES;
    if (out->group_count < count)
        context->note(context, "%d of %d strategies are drawn; --strategy a,b,c chooses others",
                      out->group_count, count);
    fill(context, &inputs, chosen, out);
    const struct dl_plan *plan = &chosen[0]->plans[chosen[0]->last];
    const char *name =
        dl_framework_is_bound(framework)
            ? dl_arena_printf(context->arena, "%s (a bound: no overhead)", framework->name)
            : framework->name;
    out->title = dl_arena_printf(context->arena, "Throughput per device of %s by strategy",
                                 inputs.workload->name);
    out->subtitle = dl_plot_details(context->arena, &inputs, plan, name);
    dl_plot_set(out, 0, "measured", 0);
    dl_plot_set(out, 1, "share", 0);
    dl_plot_scaling_curves(out, false);
    if (out->group_count > 3) out->height = 600; /* two rows of panels */
    return DL_OK;
}
