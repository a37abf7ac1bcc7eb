/* plot_predict.c - predictions for figures that are drawn without measurements. */
#include "predict/plot.h"
#include "predict/where.h"

#include <string.h>

const char *dl_plot_join(struct dl_arena *arena, const char *a, const char *b) {
    if (a == NULL || b == NULL) return NULL;
    return dl_arena_printf(arena, "%s%s%s", a, a[0] != 0 && b[0] != 0 ? ", " : "", b);
}

/* The same options without the kind and files, and with one framework's name or `all`. */
static struct dl_options input_options(const struct dl_options *options, bool several) {
    struct dl_options own = *options;
    own.positional_count = 0;
    for (int i = 0; i < own.given_count; i++) {
        if (several && strcmp(own.given[i].option->name, "framework") == 0) own.given[i].value = "all";
    }
    return own;
}

/* Those of "a,b,c" among all frameworks, in that of all. */
static enum dl_code keep_listed(struct dl_inputs *inputs, const char *list, struct dl_err *err) {
    const char *names[65];
    int kept = 0, asked = 1;
    for (int i = 0; i < inputs->framework_count; i++) names[i] = inputs->frameworks[i]->name;
    names[inputs->framework_count] = NULL;
    for (const char *s = list; *s != 0; s++) asked += *s == ',';
    for (int i = 0; i < inputs->framework_count; i++) {
        if (dl_filter_listed(list, names[i])) inputs->frameworks[kept++] = inputs->frameworks[i];
    }
    inputs->framework_count = kept;
    if (kept == asked) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--framework: not all of \"%s\" are frameworks (or one is given twice); see 'dlmodel list "
                   "frameworks'", list);
}

enum dl_code dl_plot_predict(struct dl_context *context, const struct dl_options *options, const char *kind,
                             struct dl_plot_predictions *out, struct dl_err *err) {
    if (options->positional_count > 1) {
        return dl_fail(err, DL_ERR_USAGE, "plot %s draws predictions only; it takes no file \"%s\"", kind, options->positional[1]);
    }
    const char *names = dl_option_text(options, "framework");
    const bool several = names != NULL && strchr(names, ',') != NULL;
    const struct dl_options own = input_options(options, several);
    DL_TRY(dl_inputs_load(context, &own, &out->inputs, err));
    if (several) DL_TRY(keep_listed(&out->inputs, names, err));
    const struct dl_inputs *inputs = &out->inputs;
    out->rows = dl_arena_alloc(context->arena, (size_t)inputs->framework_count * inputs->node_count, sizeof *out->rows);
    if (out->rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    struct dl_err why = {0};
    for (int f = 0; f < inputs->framework_count; f++) {
        int without = 0;
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct dl_plot_prediction *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = inputs->frameworks[f];
            const enum dl_code code = dl_inputs_predict(inputs, row->framework, inputs->nodes[n], false, context->arena, &row->plan,
                                                        &row->prediction, &inner);
            if (code == DL_OK) {
                out->count++;
                continue;
            }
            why = inner;
            if (code != DL_ERR_USAGE || !inputs->framework_all) {
                *err = inner;
                return code;
            }
            without++;
        }
        if (without > 0) context->note(context, "not shown for all nodes: %s (%s)", inputs->frameworks[f]->name, why.message);
    }
    if (out->count == 0) return dl_fail(err, DL_ERR_USAGE, "no framework can run this, for instance: %s", why.message);
    if (inputs->strict) {
        for (int i = 0; i < out->count; i++) {
            if (out->rows[i].prediction.extrapolated) return dl_fail(err, DL_ERR_RANGE, "a result is extrapolated (--strict)");
        }
    }
    return DL_OK;
}
