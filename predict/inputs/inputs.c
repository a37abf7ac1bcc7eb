/* inputs.c - loads systems, workloads, frameworks and plans from options. */
#include "predict/inputs/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/framework/input.h"
#include "model/parallel/strategy.h"
#include "predict/inputs/dataset.h"
#include "predict/inputs/layer_inputs.h"
#include "predict/inputs/heterogeneous_inputs.h"

const struct dl_option dl_input_options[] = {
    {"system", 's', "NAME|FILE", "What",
     "system; default: this machine's profile (local), else iris-v100", false},
    {"workload", 'w', "NAME|FILE", "What",
     "network, e.g. resnet50 or gpt:layers=24,hidden=1024,seq=1024,vocab=51200; default resnet50",
     false},
    {"framework", 'f', "NAME|all", "What", "framework in its distributed mode; default all", false},
    {"release", 0, "NAME", "What",
     "release of the framework, as its file has it; default the file's own", false},
    {"set", 0, "KEY=VALUE", "What",
     "what if: any field of system, device, workload or framework, e.g. "
     "links.inter.bandwidth=25GB/s",
     true},
    {"layers", 0, "NAME|FILE", "What",
     "times of layers that import trace wrote, in place of the model's; default those of "
     "data/layers/ that fit",
     false},
    {"strategy", 0, "NAME", "Plan",
     "how the work is split; predict and plot strategies: or all that can run; default the "
     "framework's own, mostly data",
     false},
    {"nodes", 'n', "LIST", "Plan", "16 or 1,2,4 or 1-64*2; default 1", false},
    {"devices-per-node", 'g', "N", "Plan", "default: all of a node", false},
    {"batch-per-device", 'b', "N|max", "Plan",
     "samples; default 32 for images, 8 for sequences (a quarter on CPUs)", false},
    {"global-batch", 'B', "N", "Plan", "samples of all devices together", false},
    {"precision", 'p', "fp32|tf32|mixed|fp16|bf16|fp8", "Plan", "of the arithmetic; default fp32",
     false},
    {"optimizer", 0, "sgd|momentum|adam|lamb", "Plan",
     "default adam for transformers, else momentum", false},
    {"library", 0, "NAME", "Plan",
     "collective library instead of the framework's own: nccl, mpi, gloo, ...", false},
    {"placement", 0, "cpu|gpu", "Plan",
     "where parameter servers of one node keep variables; default cpu", false},
    {"dp", 0, "N", "Plan", "data-parallel ranks; default: all devices", false},
    {"tp", 0, "N", "Plan", "tensor-, filter- or channel-parallel ranks", false},
    {"pp", 0, "N", "Plan", "pipeline stages", false},
    {"sp", 0, "N", "Plan", "spatial or sequence parts", false},
    {"ep", 0, "N", "Plan",
     "expert-parallel ranks of a mixture of experts, e.g. gpt:...,experts=8,topk=2,capacity=1.25",
     false},
    {"micro-batch", 0, "N", "Plan", "samples of a micro-batch", false},
    {"backup-workers", 0, "N", "Plan",
     "tensorflow-ps: nodes, one worker each, that a synchronous step does not wait for", false},
    {"recompute", 0, "none|selective|full", "Plan",
     "activations computed again in backward: none, those of attention scores, or all of a "
     "transformer layer; default as the framework does",
     false},
    {"sequence-parallel", 0, NULL, "Plan",
     "with tensor parallelism: split normalisations and dropout along the sequence", false},
    {"zero", 0, "STAGE", "Plan",
     "with tensor or pipeline parallelism: shard optimizer states (1), gradients (2), weights (3) "
     "over data ranks",
     false},
    {"zero-group", 0, "N", "Plan",
     "hybrid sharding: states are shared out among N neighbouring data ranks, e.g. those of a "
     "node, and replicated beyond",
     false},
    {"mapping", 0, "data-inside|pipeline-inside", "Plan",
     "neighbours of tensor and sequence ranks; default data-inside, Megatron's order", false},
    {"schedule", 0, "1f1b|gpipe|interleaved|async", "Plan", "of micro-batches; default 1f1b",
     false},
    {"virtual-stages", 0, "N", "Plan",
     "parts of the network on each device of an interleaved pipeline; default 2 there", false},
    {"assume", 0, "NAME", "Plan",
     "simplifications of another model, to compare with it: paradl; default nothing", false},
    {"input", 0, "synthetic|real", "Plan",
     "data made on the device, or read from the system's storage; default synthetic", false},
    {"dataset", 0, "NAME", "Plan",
     "real input of that size: imagenet, openimages-v4, cifar10, ...; or synthetic", false},
    {"decode-workers", 0, "N", "Plan",
     "processes or threads per device that decode real input; default all cores", false},
    {"first-epoch", 0, NULL, "Plan",
     "real input comes from storage although it would fit in the page cache", false},
    {"strict", 0, NULL, "Plan", "exit with 4 when a result is extrapolated", false},
    {.name = NULL},
};

enum dl_code dl_inputs_overrides(struct dl_context *context, const struct dl_options *options,
                                 struct dl_data *data, struct dl_err *err) {
    *data = context->data;
    data->overrides = dl_arena_alloc(context->arena, DL_MAX_REPEATS, sizeof *data->overrides);
    if (data->overrides == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
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
        if (o->key == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    }
    return DL_OK;
}

static enum dl_code load_frameworks(struct dl_context *context, const struct dl_data *data,
                                    const char *name, struct dl_inputs *out, struct dl_err *err) {
    out->framework_all = strcmp(name, "all") == 0;
    if (!out->framework_all) {
        out->framework_count = 1;
        return dl_data_framework(data, name, context->arena, &out->frameworks[0], err);
    }
    const char **names;
    DL_TRY(dl_data_names(data, DL_DATA_FRAMEWORK, context->arena, &names, err));
    for (int i = 0; names[i] != NULL && out->framework_count < 64; i++) {
        DL_TRY(dl_data_framework(data, names[i], context->arena,
                                 &out->frameworks[out->framework_count++], err));
    }
    return DL_OK;
}

/* A release that no framework has is an error that names those there are. */
static enum dl_code check_release(struct dl_context *context, const char *name,
                                  const struct dl_inputs *inputs, struct dl_err *err) {
    const char *all = "";
    if (name == NULL) return DL_OK;
    for (int i = 0; i < inputs->framework_count; i++) {
        const struct dl_framework *f = inputs->frameworks[i];
        if (strcmp(f->release, name) == 0) return DL_OK;
        all = dl_arena_printf(context->arena, "%s%s%s %s", all, all[0] != 0 ? ", " : "", f->name,
                              f->release);
        for (int r = 0; r < f->release_count; r++)
            all = dl_arena_printf(context->arena, "%s, %s", all, f->releases[r].name);
    }
    return dl_fail(err, DL_ERR_USAGE, "--release: no release \"%s\"; there are %s", name, all);
}

static enum dl_code unknown_strategy(const char *given, struct dl_err *err) {
    const char *names[64], *near;
    int count = 0;
    for (; count < 63 && dl_strategies[count] != NULL; count++)
        names[count] = dl_strategies[count]->name;
    names[count] = NULL;
    near = dl_suggest(given, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--strategy: no strategy \"%.60s\"; did you mean \"%s\"?",
                       given, near);
    return dl_fail(err, DL_ERR_USAGE,
                   "--strategy: no strategy \"%.60s\"; see 'dlmodel list strategies'", given);
}

static enum dl_code read_plan(const struct dl_options *options, struct dl_inputs *out,
                              struct dl_err *err) {
    struct dl_plan *plan = &out->plan;
    const char *strategy = dl_option_text(options, "strategy"),
               *batch = dl_option_text(options, "batch-per-device");
    int precision = DL_FP32, optimizer = DL_MOMENTUM, recompute = DL_RECOMPUTE_NONE, input = 0,
        placement = 0;
    int schedule = DL_1F1B, assume = DL_ASSUME_NOTHING, mapping = DL_MAP_DATA_INSIDE;
    static const char *const inputs[] = {"synthetic", "real", NULL}, *const placements[] = {
                                                                         "cpu", "gpu", NULL};
    plan->strategy = strategy == NULL ? NULL : dl_strategy_find(strategy);
    if (strategy != NULL && plan->strategy == NULL) {
        return unknown_strategy(strategy, err);
    }
    DL_TRY(dl_option_choice(options, "precision", dl_precision_names, &precision, err));
    DL_TRY(dl_option_choice(options, "optimizer", dl_optimizer_names, &optimizer, err));
    DL_TRY(dl_option_choice(options, "recompute", dl_recompute_names, &recompute, err));
    DL_TRY(dl_option_choice(options, "input", inputs, &input, err));
    DL_TRY(dl_option_choice(options, "placement", placements, &placement, err));
    DL_TRY(dl_option_choice(options, "schedule", dl_schedule_names, &schedule, err));
    DL_TRY(dl_option_choice(options, "assume", dl_assume_names, &assume, err));
    DL_TRY(dl_option_choice(options, "mapping", dl_mapping_names, &mapping, err));
    DL_TRY(dl_option_integer(options, "zero", 0, 3, &plan->shard, err));
    DL_TRY(dl_option_integer(options, "zero-group", 2, 100000000, &plan->shard_group, err));
    plan->recompute_open = !dl_option_given(options, "recompute");
    plan->mapping = (enum dl_mapping)mapping;
    plan->schedule = (enum dl_schedule)schedule;
    plan->assume = (enum dl_assume)assume;
    plan->precision = (enum dl_precision)precision;
    plan->optimizer = (enum dl_optimizer)optimizer;
    plan->recompute = (enum dl_recompute)recompute;
    plan->synthetic_input = input == 0;
    plan->first_epoch = dl_option_given(options, "first-epoch");
    DL_TRY(dl_option_number(options, "decode-workers", DL_UNIT_COUNT, 1, 1e5, &plan->decode_workers,
                            err));
    plan->variable_placement = placements[placement];
    plan->library = dl_option_text(options, "library");
    plan->sequence_parallel = dl_option_given(options, "sequence-parallel");
    const struct {
        const char *name;
        int64_t *value;
    } counts[] = {
        {"devices-per-node", &plan->devices_per_node},
        {"dp", &plan->dp},
        {"tp", &plan->tp},
        {"pp", &plan->pp},
        {"sp", &plan->sp},
        {"ep", &plan->ep},
        {"virtual-stages", &plan->virtual_stages},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        DL_TRY(dl_option_integer(options, counts[i].name, 1, 100000000, counts[i].value, err));
    }
    DL_TRY(dl_option_integer(options, "backup-workers", 0, 100000000, &plan->backup_workers, err));
    out->max_batch = batch != NULL && strcmp(batch, "max") == 0;
    if (!out->max_batch) {
        DL_TRY(dl_option_number(options, "batch-per-device", DL_UNIT_COUNT, 1, 1e7,
                                &plan->batch_per_device_samples, err));
    }
    DL_TRY(dl_option_number(options, "micro-batch", DL_UNIT_COUNT, 1, 1e7,
                            &plan->micro_batch_samples, err));
    DL_TRY(dl_option_number(options, "global-batch", DL_UNIT_COUNT, 1, 1e12,
                            &plan->global_batch_samples, err));
    if (batch != NULL && plan->global_batch_samples > 0) {
        return dl_fail(err, DL_ERR_USAGE, "give --batch-per-device or --global-batch, not both");
    }
    return DL_OK;
}

/* --dataset, or with --input real that of the workload. */
static enum dl_code read_dataset(struct dl_context *context, const struct dl_options *options,
                                 struct dl_plan *plan, struct dl_err *err) {
    const char *name = dl_option_text(options, "dataset");
    if (name == NULL) return DL_OK;
    if (dl_option_given(options, "input") &&
        plan->synthetic_input != (strcmp(name, "synthetic") == 0)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--input and --dataset contradict each other; give --dataset alone");
    }
    return dl_dataset_apply(&context->data, name, context->arena, plan, err);
}

enum dl_optimizer dl_default_optimizer(const struct dl_workload *workload) {
    return workload->family != NULL && strcmp(workload->family, "transformer") == 0 ? DL_ADAM
                                                                                    : DL_MOMENTUM;
}

double dl_default_batch(const struct dl_system *system, const struct dl_workload *workload) {
    const bool images = workload->family != NULL && strcmp(workload->family, "cnn") == 0;
    const bool cpu = system->device->kind == DL_DEVICE_CPU;
    return (images ? 32.0 : 8.0) / (cpu ? 4.0 : 1.0);
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
        const char *near = near_key(&dl_system_schema, key, arena);
        if (near == NULL) near = near_key(&dl_framework_schema, key, arena);
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

/* As the one framework's release builds it; several frameworks are compared on the same network. */
static enum dl_code load_workload(struct dl_context *context, struct dl_data *data,
                                  struct dl_inputs *out, struct dl_err *err) {
    const char *name = out->workload_name;
    if (out->framework_count == 1) {
        const struct dl_framework *framework = out->frameworks[0];
        name = dl_framework_workload(
            framework,
            data->release == NULL ? NULL : dl_framework_release_find(framework, data->release),
            name);
    }
    data->training = true;
    return dl_data_workload(data, name, context->arena, &out->workload, err);
}

/* A workload made from parameters is called by all of its name: "gpt:layers=24,...", not "gpt". */
static enum dl_code name_workload(struct dl_context *context, struct dl_inputs *out,
                                  struct dl_err *err) {
    if (strchr(out->workload_name, ':') == NULL || strchr(out->workload_name, '/') != NULL)
        return DL_OK;
    struct dl_workload *named = dl_arena_alloc(context->arena, 1, sizeof *named);
    if (named == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *named = *out->workload;
    named->name = out->workload_name;
    out->workload = named;
    return DL_OK;
}

enum dl_code dl_inputs_load(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err) {
    memset(out, 0, sizeof *out);
    if (options->positional_count > 0) {
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[0]);
    }
    struct dl_data data;
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    const char *system = dl_option_text(options, "system"),
               *workload = dl_option_text(options, "workload");
    const char *framework = dl_option_text(options, "framework"),
               *nodes = dl_option_text(options, "nodes");
    const bool own = context->profile_path != NULL && access(context->profile_path, R_OK) == 0;
    out->system_name = system != NULL ? system : own ? "local" : "iris-v100";
    out->workload_name = workload != NULL ? workload : "resnet50";
    struct dl_err list_err = {0};
    if (dl_list_parse(nodes == NULL ? "1" : nodes, out->nodes, DL_MAX_LIST, &out->node_count,
                      &list_err) != DL_OK) {
        return dl_fail(err, DL_ERR_USAGE, "--nodes: %s", list_err.message);
    }
    DL_TRY(read_plan(options, out, err));
    DL_TRY(read_dataset(context, options, &out->plan, err));
    DL_TRY(dl_heterogeneous_load(context, &data, options, out, err));
    if (out->mixed == NULL)
        DL_TRY(dl_data_system(&data, out->system_name, context->arena, &out->system, err));
    data.release = dl_option_text(options, "release");
    DL_TRY(load_frameworks(context, &data, framework == NULL ? "all" : framework, out, err));
    DL_TRY(check_release(context, data.release, out, err));
    DL_TRY(load_workload(context, &data, out, err));
    DL_TRY(dl_inputs_overrides_used(context, &data, err));
    DL_TRY(name_workload(context, out, err));
    if (!out->max_batch && out->plan.batch_per_device_samples <= 0 &&
        out->plan.global_batch_samples <= 0) {
        out->plan.batch_per_device_samples = dl_default_batch(out->system, out->workload);
    }
    out->strict = dl_option_given(options, "strict");
    if (!dl_option_given(options, "optimizer"))
        out->plan.optimizer = dl_default_optimizer(out->workload);
    DL_TRY(dl_layer_inputs_load(context, options, out, err));
    if (!out->plan.synthetic_input) {
        struct dl_plan one = out->plan;
        one.nodes = one.devices_per_node = 1;
        const struct dl_input_time t =
            dl_input_compute(out->system, out->workload, out->frameworks[0], &one);
        if (t.unknown != NULL)
            context->note(context, "warning: real input: %s is unknown and not counted", t.unknown);
        else if (t.cached)
            context->note(context, "the dataset fits in the page cache: storage counts in the "
                                   "first epoch only (--first-epoch)");
    }
    return DL_OK;
}

enum dl_code dl_inputs_predict(const struct dl_inputs *inputs, const struct dl_framework *framework,
                               int64_t nodes, bool terms, struct dl_arena *arena,
                               struct dl_plan *plan_out, struct dl_prediction *out,
                               struct dl_err *err) {
    struct dl_plan plan = inputs->plan;
    const struct dl_predict_options options = {.terms = terms};
    plan.nodes = nodes;
    plan.layer_times = dl_layer_inputs_for(inputs, framework);
    if (inputs->mixed != NULL) {
        if (inputs->max_batch)
            return dl_fail(err, DL_ERR_USAGE,
                           "--batch-per-device max: not with --mixed-nodes; give a number");
        return dl_heterogeneous_predict(inputs->mixed, inputs->workload, framework, &plan, &options,
                                        arena, plan_out, out, err);
    }
    if (inputs->max_batch) {
        plan.batch_per_device_samples = 1;
        DL_TRY(dl_plan_complete(inputs->system, inputs->workload, framework, &plan, err));
        DL_TRY(
            dl_predict(inputs->system, inputs->workload, framework, &plan, NULL, arena, out, err));
        if (!(out->max_batch_samples >= 1)) {
            return dl_fail(err, DL_ERR_NO, "%s on %s: not even one sample a device fits in memory",
                           inputs->workload->name, inputs->system->name);
        }
        plan = inputs->plan;
        plan.nodes = nodes;
        plan.layer_times = dl_layer_inputs_for(inputs, framework);
        plan.batch_per_device_samples = out->max_batch_samples;
    }
    DL_TRY(dl_plan_complete(inputs->system, inputs->workload, framework, &plan, err));
    *plan_out = plan;
    return dl_predict(inputs->system, inputs->workload, framework, &plan, &options, arena, out,
                      err);
}

static uint64_t fnv1a(const char *text, size_t length) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

/* One file with its hash; one that a name does not lead to (a built-in part of a name) is left out.
 * *count becomes -1 when memory or the system refuses: a list that lacks a file would be a wrong
 * one. */
static void add_file(struct dl_context *context, enum dl_data_kind kind, const char *name,
                     struct dl_input_file *files, int *count) {
    struct dl_err why = {.code = DL_OK};
    const char *path = NULL;
    char *text = NULL;
    size_t length = 0;
    const size_t most = 64u << 20;
    if (name == NULL || *count == DL_MAX_INPUT_FILES || *count < 0) return;
    enum dl_code code = dl_data_path(&context->data, kind, name, context->arena, &path, &why);
    if (code == DL_OK) code = dl_file_read(path, most, context->arena, &text, &length, &why);
    if (code == DL_OK) files[(*count)++] = (struct dl_input_file){path, fnv1a(text, length)};
    const char *devices = code == DL_OK ? strstr(path, "devices/") : NULL;
    /* its fitted kernel times */
    if (kind == DL_DATA_DEVICE && devices != NULL && *count < DL_MAX_INPUT_FILES) {
        path = dl_arena_printf(context->arena, "%.*skernels/%s", (int)(devices - path), path,
                               devices + strlen("devices/"));
        code = path == NULL ? DL_ERR_SYSTEM
                            : dl_file_read(path, most, context->arena, &text, &length, &why);
        if (code == DL_OK) files[(*count)++] = (struct dl_input_file){path, fnv1a(text, length)};
    }
    if (code == DL_ERR_SYSTEM) *count = -1;
}

int dl_inputs_files(struct dl_context *context, const struct dl_inputs *inputs,
                    struct dl_input_file *files) {
    int count = 0;
    const int base = (int)strcspn(inputs->workload_name, ":");
    const bool path = strchr(inputs->workload_name, '/') != NULL;
    const char *workload =
        path ? inputs->workload_name
             : dl_arena_printf(context->arena, "%.*s", base, inputs->workload_name);
    if (workload == NULL) return -1;
    add_file(context, DL_DATA_SYSTEM, inputs->system_name, files, &count);
    add_file(context, DL_DATA_DEVICE, inputs->system->device_name, files, &count);
    add_file(context, DL_DATA_WORKLOAD, workload, files, &count);
    add_file(context, DL_DATA_LAYERS, inputs->layers_name, files, &count);
    for (int i = 0; i < inputs->framework_count; i++) {
        add_file(context, DL_DATA_FRAMEWORK, inputs->frameworks[i]->name, files, &count);
    }
    return count;
}

void dl_inputs_json(struct dl_context *context, const struct dl_inputs *inputs,
                    const struct dl_options *options, struct dl_json_writer *w) {
    struct dl_input_file files[DL_MAX_INPUT_FILES];
    const int file_count = dl_inputs_files(context, inputs, files);
    dl_jw_object(w, "inputs");
    dl_jw_string(w, "system", inputs->system_name);
    dl_jw_string(w, "workload", inputs->workload_name);
    dl_jw_string(w, "strategy",
                 inputs->plan.strategy != NULL ? inputs->plan.strategy->name : "as the framework");
    dl_jw_string(w, "precision", dl_precision_names[inputs->plan.precision]);
    dl_jw_string(w, "optimizer", dl_optimizer_names[inputs->plan.optimizer]);
    dl_jw_array(w, "nodes");
    for (size_t i = 0; i < inputs->node_count; i++) dl_jw_integer(w, NULL, inputs->nodes[i]);
    dl_jw_end(w);
    dl_jw_object(w, "options"); /* as given */
    for (int i = 0; i < options->given_count; i++) {
        if (!options->given[i].option->repeatable)
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
    w->failed = w->failed || file_count < 0;
    for (int i = 0; i < file_count; i++) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "path", files[i].path);
        const char *hash = dl_arena_printf(context->arena, "%016" PRIx64, files[i].hash);
        w->failed = w->failed || hash == NULL;
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

/* Quoted for a shell where it needs to be. */
static const char *quoted(struct dl_arena *arena, const char *word) {
    const bool plain =
        word[0] != 0 &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@*") ==
            strlen(word) &&
        strchr(word, '*') == NULL;
    return plain || strchr(word, '\'') != NULL ? word : dl_arena_printf(arena, "'%s'", word);
}

const char *dl_inputs_command(struct dl_context *context, const struct dl_options *options,
                              const char *command, const char *framework, int64_t nodes) {
    static const char *const replaced[] = {"framework", "nodes",  "format", "json",    "csv",
                                           "output",    "strict", "quiet",  "verbose", "color",
                                           "data",      "trace",  NULL};
    const char *line = dl_arena_printf(context->arena, "dlmodel %s", command);
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_option *o = options->given[i].option;
        bool keep = true;
        for (int k = 0; replaced[k] != NULL; k++) keep = keep && strcmp(replaced[k], o->name) != 0;
        if (!keep) continue;
        line = dl_arena_printf(
            context->arena, "%s --%s%s%s", line, o->name, o->argument != NULL ? " " : "",
            o->argument != NULL ? quoted(context->arena, options->given[i].value) : "");
    }
    line = dl_arena_printf(context->arena, "%s --framework %s", line, framework);
    return dl_option_given(options, "mixed-nodes")
               ? line
               : dl_arena_printf(context->arena, "%s --nodes %" PRId64, line, nodes);
}
