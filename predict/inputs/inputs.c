/* inputs.c - loads the systems, workloads and frameworks that the options name. */
#include "model/catalog/node_class.h"
#include "model/framework/capabilities.h"
#include "model/framework/read_keys.h"
#include "model/framework/settings.h"
#include "model/plan/plan_defaults.h"
#include "model/core/synonym.h"
#include "predict/inputs/frameworks.h"
#include "predict/inputs/inputs.h"
#include "predict/options/dataset.h"

#include <string.h>

#include "model/framework/input.h"
#include "predict/compare/measured.h"
#include "predict/inputs/heterogeneous_inputs.h"
#include "predict/inputs/layer_inputs.h"

enum dl_code dl_inputs_overrides(struct dl_context *context, const struct dl_options *options,
                                 struct dl_data *data, struct dl_err *err) {
    *data = context->data;
    data->overrides = dl_arena_alloc(context->arena, DL_MAX_REPEATS, sizeof *data->overrides);
    data->override_count = 0;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "set") != 0) continue;
        const char *text = options->given[i].value, *equals = strchr(text, '=');
        if (equals == NULL || equals == text || equals[1] == 0) {
            return dl_fail(err, DL_ERR_USAGE, "--set: expected KEY=VALUE, got \"%s\"", text);
        }
        struct dl_override *o = &data->overrides[data->override_count++];
        o->key = dl_arena_strndup(context->arena, text, (size_t)(equals - text));
        o->value = equals + 1;
    }
    return dl_data_intervals(data, context->arena, &data->intervals, err);
}

enum dl_code dl_inputs_one_framework(const struct dl_inputs *inputs, const char *command,
                                     struct dl_err *err) {
    if (!inputs->framework_listed) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--framework: %s takes one framework, got \"%s\"", command,
                   inputs->words.framework);
}

/* -s 4x8xh100_sxm: its nodes and devices, where no option says how many, and whose links. */
static enum dl_code nodes_of_class(struct dl_context *context, struct dl_inputs *out,
                                   struct dl_err *err) {
    const char *name = out->words.system;
    struct dl_node_class of;
    if (!dl_node_class_is(name) || dl_data_attachment(&context->data, name) != NULL) return DL_OK;
    DL_TRY(dl_node_class_find(&context->data, name, context->arena, &of, err));
    if (!out->given.nodes && !out->given.gpus) {
        out->nodes[0] = of.nodes;
        out->node_count = 1;
    }
    if (out->plan.devices_per_node <= 0) out->plan.devices_per_node = of.devices_per_node;
    context->note(context, "%s: %s", name, dl_node_class_words(&of, context->arena));
    return DL_OK;
}

/* --gpus: whole nodes, or a part of one. */
static enum dl_code nodes_of_gpus(struct dl_inputs *out, struct dl_err *err) {
    const int64_t each =
        out->plan.devices_per_node > 0 ? out->plan.devices_per_node : out->system->devices_per_node;
    if (out->words.gpus <= 0) return DL_OK;
    if (out->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--gpus: --heterogeneous determines the number of devices");
    if (out->words.gpus > each && out->words.gpus % each != 0) {
        const int64_t below = out->words.gpus / each * each;
        return dl_fail(err, DL_ERR_USAGE,
                       "--gpus %lld: nodes of %s have %lld; nearest are %lld and %lld",
                       (long long)out->words.gpus, out->system->name, (long long)each,
                       (long long)below, (long long)(below + each));
    }
    out->plan.devices_per_node = out->words.gpus < each ? out->words.gpus : each;
    out->nodes[0] = out->words.gpus / out->plan.devices_per_node;
    out->node_count = 1;
    return DL_OK;
}

const char *dl_inputs_batch(const struct dl_inputs *inputs, const struct dl_plan *plan,
                            struct dl_arena *arena) {
    const bool global = inputs->plan.global_batch_samples > 0 || inputs->heterogeneous != NULL;
    return dl_arena_printf(arena, "%.10g samples %s",
                           global ? plan->global_batch_samples : plan->batch_per_device_samples,
                           global ? "over all devices" : "per device");
}

static const char *near_key(const struct dl_schema *schema, const char *key,
                            struct dl_arena *arena) {
    const char *const *keys = dl_json_keys(schema, arena);
    return keys == NULL ? NULL : dl_suggest(key, keys);
}

enum dl_code dl_inputs_overrides_used(struct dl_context *context, const struct dl_data *data,
                                      struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    for (int i = 0; i < data->override_count; i++) {
        const char *key = data->overrides[i].key;
        if (data->overrides[i].used) continue;
        const char *readers = dl_framework_key_readers(key, arena);
        if (readers != NULL)
            return dl_fail(err, DL_ERR_USAGE,
                           "--set: nothing reads '%s' here; frameworks of these behaviours do: %s "
                           "(see 'dlmodel list frameworks')",
                           key, readers);
        const char *near = near_key(&dl_system_schema, key, arena);
        if (near == NULL) near = near_key(dl_framework_schema_of(NULL, arena), key, arena);
        if (dl_json_key_known(&dl_device_schema, key))
            near = dl_arena_printf(arena, "device.%s", key);
        if (near != NULL)
            return dl_fail(err, DL_ERR_USAGE, "--set: no field '%s'; did you mean '%s'?", key,
                           near);
        return dl_fail(
            err, DL_ERR_USAGE,
            "--set: no field '%s' in the system, workload or framework; see 'dlmodel schema "
            "system' and 'dlmodel help set'",
            key);
    }
    return DL_OK;
}

/* The network of the name, and as the release of each framework builds it; with one framework, the
 * latter is the network. */
static enum dl_code read_workload(struct dl_context *context, struct dl_data *data,
                                  struct dl_inputs *out, struct dl_err *err) {
    data->training = true;
    for (int i = 0; i < out->framework_count; i++) {
        const char *name = dl_framework_workload(out->frameworks[i], out->words.workload);
        if (strcmp(name, out->words.workload) != 0)
            DL_TRY(dl_data_workload(data, name, context->arena, &out->own_workloads[i], err));
    }
    if (out->framework_count == 1 && out->own_workloads[0] != NULL) {
        out->workload = out->own_workloads[0];
        out->own_workloads[0] = NULL;
        return DL_OK;
    }
    return dl_data_workload(data, out->words.workload, context->arena, &out->workload, err);
}

static enum dl_code load_workload(struct dl_context *context, struct dl_data *data,
                                  struct dl_inputs *out, struct dl_err *err) {
    const int64_t further = out->plan.tokens.mtp_layers;
    if (further > 0)
        dl_data_override(data, DL_MTP_KEY,
                         dl_arena_printf(context->arena, "%lld", (long long)further),
                         context->arena);
    DL_TRY(read_workload(context, data, out, err));
    if (further > 0 && !data->overrides[data->override_count - 1].used)
        return dl_workload_no_mtp(out->workload, err);
    for (int i = 0; i < out->framework_count; i++)
        if (out->own_workloads[i] != NULL)
            DL_TRY(dl_plan_network(&out->plan, context->arena, &out->own_workloads[i], err));
    return dl_plan_network(&out->plan, context->arena, &out->workload, err);
}

const struct dl_workload *dl_inputs_workload(const struct dl_inputs *inputs,
                                             const struct dl_framework *framework) {
    for (int i = 0; i < inputs->framework_count; i++) {
        if (inputs->frameworks[i] == framework && inputs->own_workloads[i] != NULL)
            return inputs->own_workloads[i];
    }
    return inputs->workload;
}

/* A workload made from parameters has its full name: "gpt:layers=24,...", not "gpt". */
static void name_workload(struct dl_context *context, struct dl_inputs *out) {
    if (strchr(out->words.workload, ':') == NULL || strchr(out->words.workload, '/') != NULL)
        return;
    struct dl_workload *named = dl_arena_alloc(context->arena, 1, sizeof *named);
    *named = *out->workload;
    named->name = out->words.workload;
    out->workload = named;
}

/* Real input without --dataset: the workload's usual one, with its time to decode. */
static enum dl_code usual_dataset(struct dl_context *context, struct dl_inputs *in,
                                  struct dl_err *err) {
    bool found;
    if (in->plan.input.synthetic) {
        return in->plan.input.decode_workers > 0
                   ? dl_fail(err, DL_ERR_USAGE,
                             "--decode-workers: synthetic input is not decoded; give --input real "
                             "or --dataset NAME")
                   : DL_OK;
    }
    if (in->words.dataset != NULL) return DL_OK;
    DL_TRY(dl_dataset_usual(&context->data, in->workload, context->arena, &in->plan, &found, err));
    if (found)
        context->note(context,
                      "real input: sizes and time to decode are those of %s; --dataset "
                      "NAME chooses another",
                      in->workload->dataset);
    return DL_OK;
}

/* Missing data for real input is reported once, as is a cached dataset that costs nothing. */
static void note_input(struct dl_context *context, const struct dl_inputs *in) {
    struct dl_plan one = in->plan;
    if (one.input.synthetic) return;
    one.nodes = one.devices_per_node = 1;
    const struct dl_input_time t =
        dl_input_compute(in->system, in->workload, in->frameworks[0], &one);
    if (t.unknown != NULL)
        context->note(context, "warning: real input: %s is unknown and not counted", t.unknown);
    else if (t.cached)
        context->note(context, "the data set fits in memory: only the first epoch reads from "
                               "storage");
}

/* A run's length must mean something for the network. */
static enum dl_code check_length(const struct dl_inputs *in, struct dl_err *err) {
    if (in->length.tokens > 0 && !dl_known(dl_tokens_per_sample(in->workload)))
        return dl_fail(err, DL_ERR_USAGE, "--tokens: %s reads no sequences of tokens; use --epochs",
                       in->workload->name);
    if (in->length.epoch_count > 0 && !(in->plan.input.dataset_samples > 0) &&
        !dl_known(in->workload->epoch_samples))
        return dl_fail(err, DL_ERR_USAGE, "--epochs: %s has no usual dataset; name one: --dataset",
                       in->workload->name);
    return DL_OK;
}

static enum dl_code apply_settings(struct dl_context *context, struct dl_inputs *out,
                                   struct dl_err *err) {
    const struct dl_system *system = out->system;
    const struct dl_path_choice *over = &out->plan.settings.between_nodes;
    if (out->heterogeneous != NULL &&
        (over->transport != DL_TRANSPORT_OPEN || over->gpudirect != DL_SWITCH_OPEN))
        return dl_fail(err, DL_ERR_USAGE,
                       "--transport, --gpudirect: not with --heterogeneous; its systems say so");
    for (int i = 0; i < out->framework_count; i++) {
        out->system = system;
        DL_TRY(
            dl_settings_apply(&out->plan, context->arena, &out->system, &out->frameworks[i], err));
    }
    return DL_OK;
}

/* Ranks of a node that share states next to tensor and context ranks. */
static int64_t node_ranks(const struct dl_inputs *in) {
    const struct dl_plan *plan = &in->plan;
    const int64_t devices =
        plan->devices_per_node > 0 ? plan->devices_per_node : in->system->devices_per_node;
    const int64_t tp = plan->tp > 0 ? plan->tp : 1;
    return devices / tp > 1 ? devices / tp : 0;
}

/* A profile of which other programs disturbed most samples is no basis for an answer. */
static void note_calibration(struct dl_context *context, const struct dl_system *system) {
    const double MOST = 0.25;
    const struct dl_calibration *c = &system->calibration;
    int disturbed = 0;
    for (int i = 0; i < c->sample_count; i++) disturbed += c->samples[i].preempted > 0;
    if (disturbed <= MOST * c->sample_count) return;
    context->note(context,
                  "warning: unreliable calibration of %s: other programs disturbed %d of %d "
                  "samples; calibrate again on an idle machine, or name a system (--system)",
                  system->name, disturbed, c->sample_count);
}

enum dl_code dl_inputs_load(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err) {
    if (options->positional_count > 0) {
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[0]);
    }
    struct dl_data data;
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    DL_TRY(dl_inputs_read(context, options, out, err));
    if (out->words.system == NULL)
        out->words.system = dl_data_has_profile(&data) ? "local" : "iris-v100";
    DL_TRY(dl_heterogeneous_load(context, &data, options, out, err));
    if (out->heterogeneous == NULL)
        DL_TRY(dl_data_system(&data, out->words.system, context->arena, &out->system, err));
    DL_TRY(nodes_of_class(context, out, err));
    if (out->system->borrowed != NULL)
        context->note(context, "%s: %s", out->system->name, out->system->borrowed);
    DL_TRY(nodes_of_gpus(out, err));
    data.architecture = out->system->device->architecture;
    DL_TRY(dl_inputs_frameworks(context, &data, out, err));
    DL_TRY(apply_settings(context, out, err));
    DL_TRY(load_workload(context, &data, out, err));
    if (out->words.measured != NULL && out->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--measured: not with --heterogeneous");
    if (out->words.measured != NULL)
        DL_TRY(dl_measured_load(context, &data, out->words.measured, out, err));
    DL_TRY(dl_inputs_overrides_used(context, &data, err));
    name_workload(context, out);
    DL_TRY(usual_dataset(context, out, err));
    DL_TRY(check_length(out, err));
    struct dl_plan *plan = &out->plan;
    if (plan->shard_group == 0 && dl_name_shards_in_nodes(out->words.framework))
        plan->shard_group = node_ranks(out);
    if (!out->max_batch && plan->batch_per_device_samples <= 0 && plan->global_batch_samples <= 0)
        plan->batch_per_device_samples =
            dl_default_batch(out->system->device->kind == DL_DEVICE_CPU, out->workload);
    if (!out->given.plan.precision)
        plan->precision =
            dl_default_precision(out->system->device, out->frameworks, (int)out->framework_count);
    if (!out->given.plan.optimizer) plan->optimizer = dl_default_optimizer(out->workload);
    DL_TRY(dl_layer_inputs_load(context, out, err));
    note_input(context, out);
    note_calibration(context, out->system);
    return DL_OK;
}

void dl_inputs_question(const struct dl_inputs *inputs, const struct dl_framework *framework,
                        int64_t nodes, struct dl_plan_question *out) {
    *out = (struct dl_plan_question){
        .system = inputs->system,
        .workload = dl_inputs_workload(inputs, framework),
        .framework = framework,
        .plan = inputs->plan,
        .given = inputs->given.plan,
        .max_batch = inputs->max_batch,
        .max_micro_batch = inputs->max_micro_batch,
        .memo = inputs->memo,
    };
    out->plan.nodes = nodes;
    out->plan.measured.layer_times = dl_layer_inputs_for(inputs, framework);
}

/* F-RUN-LENGTH: the first epoch of a run fills the page cache, where the data set fits in it. */
static enum dl_code predict_first_epoch(const struct dl_inputs *inputs,
                                        const struct dl_plan_question *question,
                                        struct dl_arena *arena, const struct dl_plan *plan,
                                        struct dl_prediction *out, struct dl_err *err) {
    struct dl_plan first = *plan;
    struct dl_prediction prediction;
    if ((inputs->length.tokens <= 0 && inputs->length.epoch_count <= 0) || plan->input.synthetic ||
        !dl_input_compute(inputs->system, question->workload, question->framework, plan).cached)
        return DL_OK;
    first.input.first_epoch = true;
    DL_TRY(dl_predict_complete(&(struct dl_predict_request){.system = question->system,
                                                            .workload = question->workload,
                                                            .framework = question->framework,
                                                            .plan = &first,
                                                            .arena = arena},
                               &prediction, err));
    out->first_epoch_iteration_s = prediction.iteration_s;
    return DL_OK;
}

enum dl_code dl_inputs_predict(const struct dl_inputs_case *one, struct dl_arena *arena,
                               struct dl_plan *plan_out, struct dl_prediction *out,
                               struct dl_err *err) {
    const struct dl_inputs *inputs = one->inputs;
    struct dl_plan_question question;
    dl_inputs_question(inputs, one->framework, one->nodes, &question);
    if (inputs->heterogeneous == NULL) {
        DL_TRY(dl_plan_predict(&question, one->terms, arena, plan_out, out, err));
        return predict_first_epoch(inputs, &question, arena, plan_out, out, err);
    }
    if (inputs->max_batch || inputs->max_micro_batch)
        return dl_fail(err, DL_ERR_USAGE, "max: not with --heterogeneous; give a number");
    DL_TRY(dl_plan_keep_states_whole(one->framework, &question.given, &question.plan, err));
    const struct dl_heterogeneous_question mixed = {inputs->heterogeneous, question.workload,
                                                    one->framework, &question.plan};
    return dl_heterogeneous_predict(&mixed, one->terms, arena, plan_out, out, err);
}
