/* search_inputs.c - see search_inputs.h. */
#include "predict/inputs/search_inputs.h"

#include "model/engine/transformer/transformer.h"

enum dl_code dl_search_check(const struct dl_inputs *inputs, struct dl_err *err) {
    DL_TRY(dl_inputs_one_framework(inputs, "search", err));
    if (inputs->plan.backup_workers > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--backup-workers: search covers no backup workers; use predict");
    if (inputs->max_micro_batch)
        return dl_fail(err, DL_ERR_USAGE, "--micro-batch max: search tries them all; leave it out");
    if (inputs->max_batch)
        return dl_fail(
            err, DL_ERR_USAGE,
            "--batch-per-device: search takes a number instead of max, or --global-batch");
    return DL_OK;
}

/* What a search of a transformer's plans is for on devices of that age. */
static const struct dl_framework *usual_framework(const struct dl_inputs *inputs) {
    const struct dl_device *device = inputs->system->device;
    const struct dl_framework *newer = dl_framework_default(
        inputs->frameworks, inputs->framework_count, DL_DEFAULT_TRANSFORMER_8_BITS);
    for (int i = 0; i < device->rate_count && newer != NULL; i++)
        if (device->rates[i].precision == DL_FP8) return newer;
    return dl_framework_default(inputs->frameworks, inputs->framework_count,
                                DL_DEFAULT_TRANSFORMER);
}

enum dl_code dl_search_choose_framework(struct dl_context *context, struct dl_inputs *inputs,
                                        const struct dl_framework **out, struct dl_err *err) {
    struct dl_err ignored = {.code = DL_OK};
    struct dl_transformer tf;
    *out = inputs->frameworks[0];
    if (!inputs->framework_all) return DL_OK;
    struct dl_plan plan = inputs->plan;
    plan.tp = 2, plan.pp = plan.sp = plan.ep = 1;
    const bool stack =
        dl_transformer_prepare(inputs->system, inputs->workload, inputs->frameworks[0], &plan,
                               context->arena, &tf, &ignored) == DL_OK;
    *out = stack ? usual_framework(inputs)
                 : dl_framework_bound(inputs->frameworks, inputs->framework_count);
    if (*out == NULL) return dl_fail(err, DL_ERR_USAGE, "--framework: name one for the search");
    context->note(context,
                  "using framework %s%s; choose another with "
                  "--framework (dlmodel predict compares them)",
                  (*out)->name,
                  dl_framework_is_bound(*out)
                      ? ", the bound that strategies can reach without framework costs"
                      : ", the default for transformers");
    return DL_OK;
}
