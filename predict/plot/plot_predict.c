/* plot_predict.c - predictions for figures that are drawn without measurements. */
#include <stdio.h>
#include <string.h>

#include "model/base/name_hint.h"
#include "predict/plot/plot.h"
#include "predict/inputs/where.h"

const char *dl_plot_join(struct dl_arena *arena, const char *a, const char *b) {
    if (a == NULL || b == NULL) return NULL;
    return dl_arena_printf(arena, "%s%s%s", a, a[0] != 0 && b[0] != 0 ? ", " : "", b);
}

const char *dl_plot_title(struct dl_arena *arena, const struct dl_inputs *inputs,
                          const struct dl_plan *plan, const char *more) {
    return dl_plot_join(arena,
                        dl_arena_printf(arena, "%s, %s, %s, %s", inputs->workload->name,
                                        inputs->system->name, dl_precision_names[plan->precision],
                                        dl_inputs_batch(inputs, plan, arena)),
                        more);
}

/* The same options without the kind and files, and with one framework's name or `all`. */
static struct dl_options input_options(const struct dl_options *options, bool several) {
    struct dl_options own = *options;
    own.positional_count = 0;
    for (int i = 0; i < own.given_count; i++) {
        if (several && strcmp(own.given[i].option->name, "framework") == 0)
            own.given[i].value = "all";
    }
    return own;
}

/* The frameworks "a,b,c" among all, in the order of all. */
static enum dl_code keep_listed(struct dl_inputs *inputs, const char *list, struct dl_arena *arena,
                                struct dl_err *err) {
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
    for (const char *s = list;; s++) { /* which one? */
        const size_t length = strcspn(s, ",");
        char name[64];
        bool known = false;
        snprintf(name, sizeof name, "%.*s", length < 63 ? (int)length : 63, s);
        for (int i = 0; names[i] != NULL; i++) known = known || strcmp(names[i], name) == 0;
        if (!known) return dl_name_hint("framework", "frameworks", name, names, arena, err);
        s += length;
        if (*s == 0) break;
    }
    return dl_fail(err, DL_ERR_USAGE, "--framework: \"%s\" names one twice", list);
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
    if (text == NULL || strncmp(text, framework, length) != 0) return text == NULL ? "" : text;
    return text + length + strspn(text + length, ": ");
}

/* One line per reason. */
static void note_skipped(struct dl_context *context, const struct skipped *skipped, int count,
                         size_t node_counts) {
    for (int i = 0; i < count; i++) {
        const char *names = skipped[i].framework;
        bool listed = false;
        for (int k = 0; k < i && !listed; k++) listed = strcmp(skipped[k].why, skipped[i].why) == 0;
        for (int k = i + 1; k < count && !listed && names != NULL; k++) {
            if (strcmp(skipped[k].why, skipped[i].why) == 0)
                names = dl_arena_printf(context->arena, "%s, %s", names, skipped[k].framework);
        }
        if (!listed && names != NULL)
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
    const char *names = dl_option_text(options, "framework");
    const bool several = names != NULL && strchr(names, ',') != NULL;
    const struct dl_options own = input_options(options, several);
    DL_TRY(dl_inputs_load(context, &own, &out->inputs, err));
    if (several) DL_TRY(keep_listed(&out->inputs, names, context->arena, err));
    const struct dl_inputs *inputs = &out->inputs;
    out->rows = dl_arena_alloc(context->arena, (size_t)inputs->framework_count * inputs->node_count,
                               sizeof *out->rows);
    if (out->rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    struct dl_err why = {0};
    struct skipped skipped[DL_MAX_SKIPPED];
    int skipped_count = 0;
    if (inputs->framework_count > DL_MAX_SKIPPED)
        return dl_fail(err, DL_ERR_USAGE, "more than %d frameworks", (int)DL_MAX_SKIPPED);
    for (int f = 0; f < inputs->framework_count; f++) {
        int without = 0;
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct dl_plot_prediction *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = inputs->frameworks[f];
            const enum dl_code code =
                dl_inputs_predict(inputs, row->framework, inputs->nodes[n], false, context->arena,
                                  &row->plan, &row->prediction, &inner);
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
