/* frameworks.c - see frameworks.h. */
#include "predict/inputs/frameworks.h"

#include <string.h>

#include "model/core/arena.h"
#include "model/core/text.h"
#include "model/framework/capabilities.h"
#include "model/framework/release.h"

/* "a,b,c", in that order. */
static enum dl_code load_listed(struct dl_context *context, const struct dl_data *data,
                                const char *list, struct dl_inputs *out, struct dl_err *err) {
    const char *rest = list;
    for (const char *name; (name = dl_list_next(&rest, context->arena)) != NULL;) {
        const int at = out->framework_count;
        if (at == DL_MAX_FRAMEWORKS)
            return dl_fail(err, DL_ERR_USAGE, "--framework: more than %d", (int)DL_MAX_FRAMEWORKS);
        DL_TRY(dl_data_framework(data, name, context->arena, &out->frameworks[at], err));
        for (int i = 0; i < at; i++) {
            if (strcmp(out->frameworks[i]->name, out->frameworks[at]->name) == 0)
                return dl_fail(err, DL_ERR_USAGE, "--framework: \"%s\" names one twice", list);
        }
        out->framework_count++;
    }
    return DL_OK;
}

static enum dl_code load_named(struct dl_context *context, const struct dl_data *data,
                               struct dl_inputs *out, struct dl_err *err) {
    const char *name = out->words.framework;
    out->framework_listed = strchr(name, ',') != NULL;
    out->framework_all = strcmp(name, "all") == 0 || out->framework_listed;
    if (out->framework_listed) return load_listed(context, data, name, out, err);
    if (!out->framework_all) {
        out->framework_count = 1;
        return dl_data_framework(data, name, context->arena, &out->frameworks[0], err);
    }
    const char **names;
    dl_data_names(data, DL_DATA_FRAMEWORK, context->arena, &names);
    for (int i = 0; names[i] != NULL && out->framework_count < DL_MAX_FRAMEWORKS; i++) {
        const struct dl_framework **next = &out->frameworks[out->framework_count];
        DL_TRY(dl_data_framework(data, names[i], context->arena, next, err));
        if ((*next)->status == DL_MAINTAINED || out->words.all_frameworks)
            out->framework_count++;
        else
            out->left_out++;
    }
    return DL_OK;
}

/* What selects one of several releases of a version. */
static struct dl_release_facts facts_of(const struct dl_inputs *in) {
    const struct dl_plan *plan = &in->plan;
    return (struct dl_release_facts){
        .version = in->words.release,
        .workload = in->words.workload,
        .strategy = in->words.strategy,
        .precision =
            dl_precision_names[in->given.plan.precision
                                   ? plan->precision
                                   : dl_default_precision(in->system->device, in->frameworks,
                                                          (int)in->framework_count)],
        .compiler = plan->compiler == DL_COMPILER_OPEN ? NULL : dl_compiler_names[plan->compiler],
    };
}

/* "pytorch-ddp 2.0 (usual)" */
static const char *choice_text(const struct dl_framework *plain,
                               const struct dl_release_choice *choice, struct dl_arena *arena) {
    static const char *const origins[] = {[DL_RELEASE_DESCRIBED] = NULL,
                                          [DL_RELEASE_ONLY] = "the only one",
                                          [DL_RELEASE_NEAREST] = "the nearest",
                                          [DL_RELEASE_USUAL] = "usual on this device"};
    return dl_arena_printf(arena, "%s %s (%s)", plain->name,
                           choice->release != NULL ? choice->release->name : plain->release,
                           origins[choice->origin]);
}

/* The framework in the release that the facts choose; `plain`: as its file is. */
static enum dl_code load_release(struct dl_context *context, const struct dl_data *data,
                                 const struct dl_framework *plain,
                                 const struct dl_release_facts *facts,
                                 struct dl_release_choice *choice, const struct dl_framework **out,
                                 struct dl_err *err) {
    struct dl_data of = *data;
    const struct dl_framework *kernels = NULL;
    of.architecture = NULL;
    if (plain->kernels.kernels_from != NULL)
        DL_TRY(dl_data_framework(&of, plain->kernels.kernels_from, context->arena, &kernels, err));
    of.architecture = data->architecture;
    dl_release_choose(plain, kernels, facts, data->architecture, choice);
    of.release = choice->release != NULL ? choice->release->name : plain->release;
    if (kernels != NULL)
        of.kernels_release = choice->kernels != NULL ? choice->kernels->name : kernels->release;
    return dl_data_framework(&of, plain->loaded.as, context->arena, out, err);
}

enum dl_code dl_inputs_frameworks(struct dl_context *context, const struct dl_data *data,
                                  struct dl_inputs *out, struct dl_err *err) {
    struct dl_data plain = *data;
    if (out->words.release == NULL) return load_named(context, data, out, err);
    plain.architecture = NULL;
    DL_TRY(load_named(context, &plain, out, err));
    const struct dl_release_facts facts = facts_of(out);
    const struct dl_framework *files[DL_MAX_FRAMEWORKS];
    const char *others = NULL;
    bool described = dl_release_is_version(facts.version);
    for (int i = 0; i < out->framework_count; i++) {
        const struct dl_framework *file = files[i] = out->frameworks[i];
        struct dl_release_choice choice;
        DL_TRY(load_release(context, data, file, &facts, &choice, &out->frameworks[i], err));
        described |= choice.origin == DL_RELEASE_DESCRIBED;
        if (choice.origin == DL_RELEASE_DESCRIBED) continue;
        const char *text = choice_text(file, &choice, context->arena);
        others = others == NULL ? text : dl_arena_printf(context->arena, "%s, %s", others, text);
    }
    if (!described)
        return dl_release_refuse(facts.version, files, (int)out->framework_count, context->arena,
                                 err);
    if (others != NULL)
        context->note(context, "--release: no release covers \"%s\": constants of %s",
                      facts.version, others);
    return DL_OK;
}
