/* export.c - the table of formats, and what they share. */
#include "predict/export/export.h"

#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "model/framework/capabilities.h"

const struct dl_export dl_exports[] = {
    {"megatron", "command line of Megatron-LM, with torchrun", "megatron-core", true, false,
     dl_export_megatron},
    {"torchtitan", "configuration of torchtitan, TOML", "pytorch-fsdp2", false, false,
     dl_export_torchtitan},
    {"deepspeed", "configuration of DeepSpeed, JSON; it does not name the model", NULL, false, true,
     dl_export_deepspeed},
    {"sbatch", "job script for Slurm, with nodes and wall time", NULL, true, false,
     dl_export_sbatch},
    {NULL, NULL, NULL, false, false, NULL},
};
const char *const dl_export_names[] = {"megatron", "torchtitan", "deepspeed", "sbatch", NULL};

const struct dl_export *dl_export_find(const char *name) {
    for (const struct dl_export *e = dl_exports; e->name != NULL; e++) {
        if (strcmp(e->name, name) == 0) return e;
    }
    return NULL;
}

static enum dl_code check(const char *name, const struct dl_framework *framework,
                          const struct dl_plan *plan, struct dl_err *err) {
    char lacks[DL_LACKS_TEXT];
    if (!dl_framework_lacks(framework, plan, (int)dl_rows_zero(plan), lacks)) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--export %s: %s %s %s", name, framework->name,
                   framework->release, lacks);
}

enum dl_code dl_export_write(const char *name, const struct dl_export_request *request,
                             const char **text_out, struct dl_err *err) {
    struct dl_text text = {.arena = request->arena};
    const struct dl_export *format = dl_export_find(name);
    if (format == NULL) return dl_fail(err, DL_ERR_USAGE, "--export: no format \"%s\"", name);
    DL_TRY(check(name, request->row->framework, request->row->plan, err));
    if (request->target != NULL) DL_TRY(check(name, request->target, request->row->plan, err));
    if (request->row->workload->frozen_elements > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export %s: it trains all weights; leave out --lora-rank, --frozen-layers",
                       name);
    if (!format->takes_mtp && dl_export_number(request->row->workload, "mtp_layers", 0) > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export %s: it has no layers that predict further tokens (mtp_layers)",
                       name);
    if (!format->takes_tower && dl_export_number(request->row->workload, "vision_layers", 0) > 0)
        return dl_fail(err, DL_ERR_USAGE, "--export %s: it has no vision tower (vision_layers)",
                       name);
    DL_TRY(format->write(request, &text, err));
    *text_out = dl_text_string(&text);
    return DL_OK;
}

static const struct dl_map_entry *find_value(const struct dl_workload *workload, const char *key) {
    for (int i = 0; i < workload->value_count; i++) {
        if (strcmp(workload->values[i].key, key) == 0) return &workload->values[i];
    }
    return NULL;
}

double dl_export_number(const struct dl_workload *workload, const char *key, double fallback) {
    const struct dl_map_entry *value = find_value(workload, key);
    return value != NULL && dl_known(value->number) ? value->number : fallback;
}

const char *dl_export_word(const struct dl_workload *workload, const char *key,
                           const char *fallback) {
    const struct dl_map_entry *value = find_value(workload, key);
    return value != NULL && value->text != NULL ? value->text : fallback;
}

double dl_export_share(const struct dl_plan *plan) {
    return plan->global_batch_samples / (double)(plan->dp * plan->ep);
}

double dl_export_micro_batch(const struct dl_plan *plan) {
    if (plan->micro_batch_samples > 0) return plan->micro_batch_samples;
    return plan->pp > 1 ? 1 : dl_export_share(plan);
}
