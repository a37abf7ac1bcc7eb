/* what_if_note.c - see what_if_note.h. */
#include "predict/output/what_if_note.h"

#include <math.h>
#include <string.h>

#include "model/machine/what_if.h"
#include "predict/output/checkpoint_inputs.h"
#include "predict/output/predicted.h"
#include "predict/output/rows.h"

struct asker {
    struct dl_context *context;
    const struct dl_options *options;
    const struct dl_inputs *with;
    struct dl_inputs without; /* one --set */
};

struct answer {
    enum dl_code code;
    struct dl_plan plan;
    struct dl_prediction prediction;
    const char *text; /* its printed output */
};

static void ask(struct asker *a, const struct dl_inputs *inputs,
                const struct dl_framework *framework, int64_t nodes, struct answer *out) {
    struct dl_err refusal = {.code = DL_OK};
    struct dl_arena *arena = a->context->arena;
    *out = (struct answer){.text = ""};
    out->code = dl_inputs_predict(&(struct dl_inputs_case){inputs, framework, nodes, false}, arena,
                                  &out->plan, &out->prediction, &refusal);
    if (out->code != DL_OK) return;
    const struct dl_prediction_row row = dl_row_of(inputs, framework, &out->plan, &out->prediction);
    struct dl_table table;
    const char *checkpoint = "";
    dl_rows_init(&table, arena, &(struct dl_rows_style){0});
    dl_rows_add(&table, &row, &(struct dl_rows_style){0});
    if (dl_checkpoint_text(a->context, a->options, &row, &checkpoint, &refusal) != DL_OK)
        checkpoint = refusal.message;
    const char *csv = dl_table_csv(&table);
    out->text = dl_arena_printf(arena, "%s%s", csv, checkpoint);
}

static bool differ(double a, double b) {
    return dl_known(a) != dl_known(b) || (dl_known(a) && fabs(a - b) > 1e-12 * fabs(b));
}

static bool differs(const struct answer *a, const struct answer *b) {
    const struct dl_prediction *p = &a->prediction, *q = &b->prediction;
    if (a->code != b->code) return true;
    if (a->code != DL_OK) return false;
    if (differ(p->iteration_s, q->iteration_s) ||
        differ(p->memory.total_bytes, q->memory.total_bytes) ||
        differ(p->memory.capacity_bytes, q->memory.capacity_bytes) ||
        p->warning_count != q->warning_count || strcmp(a->text, b->text) != 0)
        return true;
    for (int i = 0; i < p->warning_count; i++)
        if (strcmp(p->warnings[i], q->warnings[i]) != 0) return true;
    return false;
}

/* Whether any prediction differs; *bound: what limits the last one. */
static void any_differs(struct asker *a, const struct dl_framework *one, bool *out,
                        const char **bound) {
    *out = false;
    for (int f = 0; f < a->with->framework_count && !*out; f++) {
        const struct dl_framework *framework = a->with->frameworks[f];
        if (one != NULL && framework != one) continue;
        for (size_t n = 0; n < a->with->node_count && !*out; n++) {
            struct answer with, without;
            ask(a, a->with, framework, a->with->nodes[n], &with);
            ask(a, &a->without, framework, a->with->nodes[n], &without);
            *out = differs(&with, &without);
            if (with.code == DL_OK) *bound = dl_bottleneck_names[with.prediction.bottleneck];
        }
    }
}

/* The key without the prefix of its document. */
static const char *member_of(const char *key) {
    static const char *const prefixes[] = {"system.", "device."};
    for (int i = 0; i < 2; i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0) return key + strlen(prefixes[i]);
    return key;
}

static void say(struct asker *a, const char *key, const char *bound) {
    const char *reason = dl_what_if_reason(member_of(key));
    if (reason != NULL)
        a->context->note(a->context, "warning: --set %s changes nothing: %s", key, reason);
    else
        a->context->note(a->context,
                         "warning: --set %s changes nothing here: with this plan nothing depends "
                         "on it, or another limit dominates (bottleneck: %s); 'dlmodel explain' "
                         "shows every term",
                         key, bound);
}

enum dl_code dl_what_if_note(struct dl_context *context, const struct dl_options *options,
                             const struct dl_inputs *inputs, const struct dl_framework *framework,
                             struct dl_err *err) {
    struct dl_data data;
    if (inputs->system->as_measured == NULL || inputs->heterogeneous != NULL) return DL_OK;
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    struct dl_override *all = data.overrides;
    const int count = data.override_count;
    for (int k = 0; k < count; k++) {
        struct asker a = {context, options, inputs, *inputs};
        const struct dl_system *alone;
        const char *bound = "none";
        bool acts;
        data.overrides = &all[k], data.override_count = 1;
        struct dl_err incomplete = {.code = DL_OK}; /* a member that the file lacks */
        if (dl_data_system(&data, inputs->words.system, context->arena, &alone, &incomplete) !=
                DL_OK ||
            alone->as_measured == NULL) /* of another document */
            continue;
        struct dl_override rest[DL_MAX_REPEATS];
        int rest_count = 0;
        for (int i = 0; i < count; i++)
            if (i != k) rest[rest_count++] = all[i];
        data.overrides = rest, data.override_count = rest_count;
        if (dl_data_system(&data, inputs->words.system, context->arena, &a.without.system,
                           &incomplete) != DL_OK)
            continue;
        any_differs(&a, framework, &acts, &bound);
        if (!acts) say(&a, all[k].key, bound);
    }
    return DL_OK;
}
