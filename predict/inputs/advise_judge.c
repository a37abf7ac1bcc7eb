/* advise_judge.c - see advise_judge.h. */
#include "predict/inputs/advise_judge.h"

#include <string.h>

static const struct dl_option *option_named(const struct dl_options *options, const char *name) {
    for (int t = 0; options->tables[t] != NULL; t++) {
        for (const struct dl_option *o = options->tables[t]; o->name != NULL; o++) {
            if (strcmp(o->name, name) == 0) return o;
        }
    }
    return NULL;
}

/* Whether a given option gives way to the new one. */
static bool gives_way(const struct dl_given *given, const char *name, const char *value) {
    const char *own = given->option->name;
    if (strcmp(name, "set") == 0) {
        const size_t key = strcspn(value, "=") + 1;
        return strcmp(own, "set") == 0 && strncmp(given->value, value, key) == 0;
    }
    if (strcmp(own, name) == 0) return true;
    return strcmp(name, "batch-per-device") == 0 && strcmp(own, "global-batch") == 0;
}

enum dl_code dl_advise_options(struct dl_arena *arena, const struct dl_options *options,
                               const struct dl_advise_change *change, struct dl_options *out,
                               struct dl_err *err) {
    struct dl_options merged = *options;
    for (int i = 0; i < change->option_count; i++) {
        const struct dl_advise_option *o = &change->options[i];
        const struct dl_option *row = option_named(options, o->name);
        int kept = 0;
        for (int g = 0; g < merged.given_count; g++)
            if (!gives_way(&merged.given[g], o->name, o->value))
                merged.given[kept++] = merged.given[g];
        if (row == NULL || kept == DL_MAX_REPEATS)
            return dl_fail(err, DL_ERR_USAGE, "--%s: too many options", o->name);
        const char *value = dl_arena_strdup(arena, o->value);
        merged.given[kept] = (struct dl_given){row, value};
        merged.given_count = kept + 1;
    }
    *out = merged;
    return DL_OK;
}

static enum dl_code build_workload(struct dl_context *context, const char *text,
                                   const struct dl_workload **out, struct dl_err *err) {
    struct dl_json *doc;
    struct dl_workload *workload = dl_arena_alloc(context->arena, 1, sizeof *workload);
    DL_TRY(dl_json_parse("rewritten network", text, strlen(text), context->arena, &doc, err));
    const struct dl_json *docs[1] = {doc};
    *out = workload;
    return dl_workload_build(docs, 1, NULL, 0, context->arena, workload, err);
}

static enum dl_code load(struct dl_context *context, const struct dl_options *options,
                         const char *workload_text, struct dl_inputs *inputs, struct dl_err *err) {
    DL_TRY(dl_inputs_load(context, options, inputs, err));
    return workload_text == NULL ? DL_OK
                                 : build_workload(context, workload_text, &inputs->workload, err);
}

enum dl_code dl_advise_judge(struct dl_context *context, const struct dl_options *options,
                             const char *workload_text, struct dl_verdict *out,
                             struct dl_err *err) {
    struct dl_arena own = {0};
    struct dl_context quiet = *context;
    struct dl_inputs inputs;
    struct dl_plan plan;
    struct dl_err inner = {.code = DL_OK};
    quiet.arena = &own;
    quiet.note = dl_drop_note;
    *out = (struct dl_verdict){.why = ""};
    enum dl_code code = load(&quiet, options, workload_text, &inputs, &inner);
    if (code == DL_OK)
        code = dl_inputs_predict(
            &(struct dl_inputs_case){&inputs, inputs.frameworks[0], inputs.nodes[0], false}, &own,
            &plan, &out->prediction, &inner);
    out->possible = code == DL_OK;
    if (out->possible) {
        out->samples = plan.global_batch_samples;
        out->precision = plan.precision;
        out->nodes = plan.nodes;
        out->devices = plan.nodes * plan.devices_per_node;
        out->price_per_node_hour = dl_price_of(inputs.system, NULL);
        const struct dl_power power = dl_power_of(inputs.system, &plan, &out->prediction, NULL);
        out->job_w = power.job_w;
        out->power_sigma_log = power.sigma_log;
        out->device = dl_arena_strdup(context->arena, inputs.system->device->name);
        out->release = dl_arena_strdup(context->arena, inputs.frameworks[0]->release);
    } else {
        out->why = dl_arena_strdup(context->arena, inner.message);
    }
    struct dl_prediction *p = &out->prediction; /* what lies in the arena goes with it */
    p->stages = NULL, p->warnings = NULL, p->terms = NULL, p->groups = NULL;
    p->warning_count = p->term_count = p->group_count = 0;
    p->messages.algorithm = p->messages.protocol = NULL;
    dl_arena_free(&own);
    if (code == DL_ERR_SYSTEM) *err = inner;
    return code == DL_ERR_SYSTEM ? code : DL_OK;
}

enum dl_code dl_advise_state_of(struct dl_context *context, const struct dl_options *options,
                                struct dl_advise_state *out, struct dl_err *err) {
    struct dl_context quiet = *context;
    struct dl_inputs inputs;
    struct dl_plan *plan = dl_arena_alloc(context->arena, 1, sizeof *plan);
    struct dl_prediction *p = dl_arena_alloc(context->arena, 1, sizeof *p);
    quiet.note = dl_drop_note;
    DL_TRY(dl_inputs_load(&quiet, options, &inputs, err));
    DL_TRY(dl_inputs_predict(
        &(struct dl_inputs_case){&inputs, inputs.frameworks[0], inputs.nodes[0], false},
        quiet.arena, plan, p, err));
    *out = (struct dl_advise_state){.system = inputs.system,
                                    .workload = inputs.workload,
                                    .framework = inputs.frameworks[0],
                                    .plan = plan,
                                    .prediction = p,
                                    .arena = context->arena};
    return DL_OK;
}
