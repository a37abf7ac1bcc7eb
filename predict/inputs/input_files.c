/* input_files.c - the inputs of a result: the files that were read, the options given, and a
 * command line that repeats it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/core/synonym.h"
#include "model/core/file.h"
#include "model/engine/strategies/strategy.h"
#include "model/core/text.h"
#include "model/catalog/data_internal.h"
#include "model/catalog/node_class.h"
#include "model/framework/settings.h"
#include "predict/inputs/inputs.h"

/* One file with its hash; a name without a file (a built-in part of a name) is omitted. *count
 * becomes -1 when memory or the system refuses: an incomplete list would be wrong. */
static void add_file(struct dl_context *context, enum dl_data_kind kind, const char *name,
                     struct dl_input_file *files, int *count) {
    struct dl_err why = {.code = DL_OK};
    const char *path = NULL;
    uint64_t hash;
    if (name == NULL || *count == DL_MAX_INPUT_FILES || *count < 0) return;
    enum dl_code code = dl_data_path(&context->data, kind, name, context->arena, &path, &why);
    if (code == DL_OK) code = dl_data_hash(&context->data, path, context->arena, &hash, &why);
    if (code == DL_OK) files[(*count)++] = (struct dl_input_file){path, hash};
    const char *devices = code == DL_OK ? strstr(path, "devices/") : NULL;
    /* its fitted kernel times */
    if (kind == DL_DATA_DEVICE && devices != NULL && *count < DL_MAX_INPUT_FILES) {
        path = dl_arena_printf(context->arena, "%.*skernels/%s", (int)(devices - path), path,
                               devices + strlen("devices/"));
        code = dl_data_hash(&context->data, path, context->arena, &hash, &why);
        if (code == DL_OK) files[(*count)++] = (struct dl_input_file){path, hash};
    }
    if (code == DL_ERR_SYSTEM) *count = -1;
}

int dl_inputs_files(struct dl_context *context, const struct dl_inputs *inputs,
                    struct dl_input_file *files) {
    int count = 0;
    const int base = (int)strcspn(inputs->words.workload, ":");
    const bool path = strchr(inputs->words.workload, '/') != NULL;
    const char *workload =
        path ? inputs->words.workload
             : dl_arena_printf(context->arena, "%.*s", base, inputs->words.workload);
    add_file(context, DL_DATA_SYSTEM, inputs->words.system, files, &count);
    add_file(context, DL_DATA_DEVICE, inputs->system->device_name, files, &count);
    add_file(context, DL_DATA_WORKLOAD, workload, files, &count);
    add_file(context, DL_DATA_LAYERS, inputs->words.layers, files, &count);
    for (int i = 0; i < inputs->framework_count; i++) {
        add_file(context, DL_DATA_FRAMEWORK, inputs->frameworks[i]->loaded.as, files, &count);
    }
    return count;
}

void dl_inputs_json(struct dl_context *context, const struct dl_inputs *inputs,
                    const struct dl_options *options, struct dl_json_writer *w) {
    struct dl_input_file files[DL_MAX_INPUT_FILES];
    const int file_count = dl_inputs_files(context, inputs, files);
    dl_jw_object(w, "inputs");
    dl_jw_string(w, "system", inputs->words.system);
    if (dl_node_class_is(inputs->words.system)) /* of which nodes, and whose links */
        dl_jw_string(w, "system_summary", inputs->system->summary);
    dl_jw_string(w, "workload", inputs->words.workload);
    dl_jw_string(w, "strategy",
                 inputs->plan.strategy != NULL ? inputs->plan.strategy->name : "as the framework");
    dl_jw_string(w, "precision", dl_precision_names[inputs->plan.precision]);
    dl_jw_string(w, "optimizer", dl_optimizer_names[inputs->plan.optimizer]);
    dl_jw_array(w, "nodes");
    for (size_t i = 0; i < inputs->node_count; i++) dl_jw_integer(w, NULL, inputs->nodes[i]);
    dl_jw_end(w);
    dl_jw_object(w, "options"); /* as given */
    for (int i = 0; i < options->given_count; i++) {
        if (!dl_option_repeatable(options->given[i].option))
            dl_jw_string(w, options->given[i].option->name, options->given[i].value);
    }
    dl_jw_end(w);
    dl_jw_array(w, "set");
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "set") == 0)
            dl_jw_string(w, NULL, options->given[i].value);
    }
    dl_jw_end(w);
    dl_jw_array(w, "files");
    for (int i = 0; i < file_count; i++) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "path", dl_data_shown_path(&context->data, files[i].path));
        const char *hash = dl_arena_printf(context->arena, "%016" PRIx64, files[i].hash);
        dl_jw_string(w, "fnv1a", hash);
        dl_jw_end(w);
    }
    dl_jw_end(w);
    dl_jw_end(w);
}

void dl_inputs_note_files(struct dl_context *context, const struct dl_inputs *inputs) {
    struct dl_input_file files[DL_MAX_INPUT_FILES];
    if (context->verbosity < 1) return;
    const int count = dl_inputs_files(context, inputs, files);
    context->note(context, "%s", dl_version_text);
    for (int i = 0; i < count; i++)
        context->note(context, "read %s (fnv1a %016" PRIx64 ")", files[i].path, files[i].hash);
}

static bool takes(const struct dl_command *command, const char *option) {
    for (int t = 0; command->options[t] != NULL; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL; o++) {
            if (strcmp(o->name, option) == 0) return true;
        }
    }
    return false;
}

const char *dl_inputs_framework_word(const struct dl_options *options,
                                     const struct dl_framework *framework) {
    const char *given = dl_option_text(options, "framework");
    const bool said = given != NULL && strchr(given, ',') == NULL &&
                      (dl_data_is_path(given) || dl_name_shards_in_nodes(given));
    return said ? given : framework->name;
}

/* The command with those options that were given, that it takes, and that are not `replaced`. */
static struct dl_text repeat(struct dl_context *context, const struct dl_options *options,
                             const struct dl_command *target, const char *replaced) {
    static const char shown[] = "framework format json csv output help strict quiet verbose color "
                                "markdown trace title top export threads plan";
    struct dl_text line = {.arena = context->arena};
    dl_text_printf(&line, "dlmodel %s", target->name);
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_option *o = options->given[i].option;
        if ((strcmp(o->name, "data") != 0 && !takes(target, o->name)) ||
            dl_has_word(shown, o->name) || dl_has_word(replaced, o->name))
            continue;
        dl_text_printf(&line, " --%s", o->name);
        if (o->argument != NULL)
            dl_text_printf(&line, " %s", dl_shell_word(context->arena, options->given[i].value));
    }
    return line;
}

const char *dl_inputs_command(struct dl_context *context, const struct dl_options *options,
                              const char *command, const struct dl_framework *framework,
                              int64_t nodes) {
    const struct dl_command *target = NULL;
    struct dl_err err = {0};
    if (dl_command_find(context->commands, command, &target, &err) != DL_OK) return "";
    struct dl_text line = repeat(context, options, target, "nodes");
    dl_text_printf(&line, " --framework %s",
                   dl_shell_word(context->arena, dl_inputs_framework_word(options, framework)));
    if (!dl_option_given(options, "heterogeneous") && !dl_option_given(options, "gpus"))
        dl_text_printf(&line, " --nodes %" PRId64, nodes);
    return dl_text_string(&line);
}

/* Ranks as options; those of axes that the strategy does not split over are 1 and unsaid, the
 * others are said: what is left open would be filled. */
static void add_ranks(struct dl_text *line, const struct dl_plan *plan) {
    const bool images = dl_partitions_layers(plan->strategy->partitioning);
    const struct {
        const char *option;
        unsigned axis;
        int64_t ranks;
    } all[] = {{"dp", DL_AXIS_DP, plan->dp * plan->ep},
               {"tp", DL_AXIS_TP, plan->tp},
               {"pp", DL_AXIS_PP, plan->pp},
               {images ? "spatial" : "cp", DL_AXIS_SP, plan->sp},
               {"ep", DL_AXIS_EP, dl_plan_expert_ranks(plan)}};
    dl_text_printf(line, " --strategy %s", plan->strategy->name);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if ((plan->strategy->axes & all[i].axis) != 0)
            dl_text_printf(line, " --%s %" PRId64, all[i].option, all[i].ranks);
    }
}

/* Settings that a search chose. */
static void add_settings(struct dl_text *line, const struct dl_options *options,
                         const struct dl_plan *plan) {
    for (int n = 1; dl_settings_varied[n] != NULL; n++) {
        const char *name = dl_settings_varied[n], *value = dl_settings_text(plan, n, line->arena);
        if (value == NULL || dl_option_given(options, name)) continue;
        dl_text_printf(line, " --%s%s%s", name, value[0] != 0 ? " " : "", value);
    }
}

const char *dl_inputs_plan_command(struct dl_context *context, const struct dl_options *options,
                                   const char *command, const struct dl_framework *framework,
                                   const struct dl_plan *plan) {
    static const char replaced[] =
        "nodes gpus devices-per-node batch-per-device global-batch strategy dp tp pp cp sp spatial "
        "ep expert-imbalance micro-batch recompute zero schedule virtual-stages sequence-parallel "
        "mapping precision optimizer";
    const struct dl_command *target = NULL;
    struct dl_err err = {0};
    if (dl_command_find(context->commands, command, &target, &err) != DL_OK) return "";
    struct dl_text line = repeat(context, options, target, replaced);
    dl_text_printf(&line, " --framework %s --nodes %" PRId64 " --devices-per-node %" PRId64,
                   dl_shell_word(context->arena, dl_inputs_framework_word(options, framework)),
                   plan->nodes, plan->devices_per_node);
    dl_text_printf(&line, " --precision %s --optimizer %s", dl_precision_names[plan->precision],
                   dl_optimizer_names[plan->optimizer]);
    add_ranks(&line, plan);
    dl_text_printf(&line, " --global-batch %.17g", plan->global_batch_samples);
    if (plan->micro_batch_samples > 0)
        dl_text_printf(&line, " --micro-batch %.17g", plan->micro_batch_samples);
    if (plan->experts.imbalance_ratio > 0)
        dl_text_printf(&line, " --expert-imbalance %.17g", plan->experts.imbalance_ratio);
    dl_text_printf(&line, " --recompute %s", dl_plan_recompute_text(plan, line.arena));
    if (plan->sequence_parallel && plan->tp > 1) dl_text_add(&line, " --sequence-parallel");
    if (plan->shard > 0 && plan->strategy->shard == 0)
        dl_text_printf(&line, " --zero %" PRId64, plan->shard);
    if (plan->pp > 1) {
        dl_text_printf(&line, " --schedule %s", dl_schedule_names[plan->schedule]);
        if (dl_schedules[plan->schedule]->most_parts > 1 && plan->virtual_stages > 0)
            dl_text_printf(&line, " --virtual-stages %" PRId64, plan->virtual_stages);
        dl_text_printf(&line, " --mapping %s", dl_mapping_names[plan->mapping]);
    }
    add_settings(&line, options, plan);
    return dl_text_string(&line);
}
