/* plot_predict.c - predictions for figures that are drawn without measurements. */
#include <string.h>

#include "plots/figures/plot.h"

const char *dl_plot_join(struct dl_arena *arena, const char *a, const char *b) {
    return dl_arena_printf(arena, "%s%s%s", a, a[0] != 0 && b[0] != 0 ? ", " : "", b);
}

const char *dl_plot_nodes(struct dl_arena *arena, const struct dl_plan *plan) {
    return dl_arena_printf(arena, "%lld node%s x %lld device%s", (long long)plan->nodes,
                           plan->nodes == 1 ? "" : "s", (long long)plan->devices_per_node,
                           plan->devices_per_node == 1 ? "" : "s");
}

static const char *devices_of(const struct dl_inputs *inputs, const struct dl_plan *plan,
                              struct dl_arena *arena) {
    if (inputs->node_count == 1) return dl_plot_nodes(arena, plan);
    return dl_arena_printf(arena, "%lld device%s per node", (long long)plan->devices_per_node,
                           plan->devices_per_node == 1 ? "" : "s");
}

const char *dl_plot_details(struct dl_arena *arena, const struct dl_inputs *inputs,
                            const struct dl_plan *plan, const char *more) {
    const char *devices = devices_of(inputs, plan, arena);
    const char *batch = dl_inputs_batch(inputs, plan, arena);
    const char *precision = dl_precision_names[plan->precision];
    return dl_plot_join(arena,
                        dl_arena_printf(arena, "%s, %s, %s%s, %s", inputs->system->name, devices,
                                        precision,
                                        strcmp(precision, "mixed") == 0 ? " precision" : "", batch),
                        more);
}

/* The same options without the kind and files. */
static struct dl_options input_options(const struct dl_options *options) {
    struct dl_options own = *options;
    own.positional_count = 0;
    return own;
}

enum { DL_MAX_SKIPPED = 64 };
struct skipped {
    const char *framework, *why;
};

/* The part of the reason for an omitted framework that follows its name. */
static const char *reason_of(struct dl_arena *arena, const char *framework,
                             const struct dl_err *why) {
    const size_t length = strlen(framework);
    const char *text = dl_arena_strdup(arena, why->message);
    if (strncmp(text, framework, length) != 0) return text;
    return text + length + strspn(text + length, ": ");
}

/* One line per reason. */
static void note_skipped(struct dl_context *context, const struct skipped *skipped, int count,
                         size_t node_counts) {
    for (int i = 0; i < count; i++) {
        const char *names = skipped[i].framework;
        bool listed = false;
        for (int k = 0; k < i && !listed; k++) listed = strcmp(skipped[k].why, skipped[i].why) == 0;
        for (int k = i + 1; k < count && !listed; k++) {
            if (strcmp(skipped[k].why, skipped[i].why) == 0)
                names = dl_arena_printf(context->arena, "%s, %s", names, skipped[k].framework);
        }
        if (!listed)
            context->note(context, "not shown%s: %s (%s)", node_counts > 1 ? " for all nodes" : "",
                          names, skipped[i].why);
    }
}

enum dl_code dl_plot_predict(struct dl_context *context, const struct dl_options *options,
                             const char *kind, struct dl_plot_predictions *out,
                             struct dl_err *err) {
    if (options->positional_count > 1) {
        return dl_fail(err, DL_ERR_USAGE, "plot %s draws predictions only; it takes no file \"%s\"",
                       kind, options->positional[1]);
    }
    const struct dl_options own = input_options(options);
    DL_TRY(dl_inputs_load(context, &own, &out->inputs, err));
    const struct dl_inputs *inputs = &out->inputs;
    out->rows = dl_arena_alloc(context->arena, (size_t)inputs->framework_count * inputs->node_count,
                               sizeof *out->rows);
    struct dl_err why = {0};
    struct skipped skipped[DL_MAX_SKIPPED];
    int skipped_count = 0;
    if (inputs->framework_count > DL_MAX_SKIPPED)
        return dl_fail(err, DL_ERR_USAGE, "more than %d frameworks", (int)DL_MAX_SKIPPED);
    for (int f = 0; f < inputs->framework_count; f++) {
        int without = 0;
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct dl_predicted_row *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = inputs->frameworks[f];
            const enum dl_code code = dl_inputs_predict(
                &(struct dl_inputs_case){inputs, row->framework, inputs->nodes[n], false},
                context->arena, &row->plan, &row->prediction, &inner);
            if (code == DL_OK) {
                out->count++;
                continue;
            }
            why = inner;
            if (code != DL_ERR_USAGE || (!inputs->framework_all && inputs->node_count == 1)) {
                *err = inner;
                return code;
            }
            without++;
        }
        if (without > 0)
            skipped[skipped_count++] =
                (struct skipped){inputs->frameworks[f]->name,
                                 reason_of(context->arena, inputs->frameworks[f]->name, &why)};
    }
    note_skipped(context, skipped, skipped_count, inputs->node_count);
    if (out->count == 0)
        return dl_fail(err, DL_ERR_USAGE, "no framework can run this, for instance: %s",
                       why.message);
    if (inputs->strict) {
        for (int i = 0; i < out->count; i++) {
            if (out->rows[i].prediction.extrapolated)
                return dl_fail(err, DL_ERR_RANGE, "a result is extrapolated (--strict)");
        }
    }
    return DL_OK;
}

enum dl_code dl_plot_predict_one(struct dl_context *context, const struct dl_options *options,
                                 const char *kind, struct dl_plot_one *out, struct dl_err *err) {
    struct dl_plot_predictions p = {.count = 0};
    DL_TRY(dl_plot_predict(context, options, kind, &p, err));
    const struct dl_framework *framework = p.rows[0].framework;
    for (int i = 0; p.inputs.framework_all && i < p.count; i++) { /* not named: as in explain */
        if (p.rows[i].framework->default_for == DL_DEFAULT_DATA_PARALLEL)
            framework = p.rows[i].framework;
    }
    if (p.inputs.node_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--nodes: plot %s shows one number of nodes", kind);
    out->inputs = p.inputs;
    out->framework = framework;
    DL_TRY(
        dl_inputs_predict(&(struct dl_inputs_case){&p.inputs, framework, p.inputs.nodes[0], true},
                          context->arena, &out->plan, &out->prediction, err));
    out->details = dl_plot_details(context->arena, &p.inputs, &out->plan, framework->name);
    return DL_OK;
}

void dl_plot_set(struct dl_figure *figure, int index, const char *name, double number) {
    figure->parameters[index] = (struct dl_plot_parameter){.name = name, .number = number};
}

void dl_plot_time_unit(double longest_s, struct dl_plot_parameter *two) {
    const bool seconds = longest_s >= 10, micro = longest_s < 1e-3;
    two[0] = (struct dl_plot_parameter){.name = "unit",
                                        .text = seconds ? "s"
                                                : micro ? "µs"
                                                        : "ms"};
    two[1] = (struct dl_plot_parameter){.name = "unit_s",
                                        .number = seconds ? 1
                                                  : micro ? 1e-6
                                                          : 1e-3};
}
