/* cmd_import_run.c - import of a training run: the formats, and the one command for all of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/run/imported_run.h"
#include "model/core/file.h"

enum { MAX_BYTES = 64 << 20, MAX_ENVIRONMENT = 64 };

static const char *const megatron_frameworks[] = {"megatron-core", "megatron", NULL};
static const char *const deepspeed_frameworks[] = {"deepspeed-zero3", NULL};
static const char *const fsdp_frameworks[] = {"pytorch-fsdp", NULL};
static const char *const ddp_frameworks[] = {"pytorch-ddp", NULL};
static const char *const maxtext_frameworks[] = {"jax-maxtext", NULL};
static const char *const titan_frameworks[] = {"pytorch-fsdp2", "pytorch-fsdp", NULL};

const struct dl_run_format dl_run_formats[] = {
    {"megatron", megatron_frameworks, dl_run_read_megatron, dl_megatron_plan, "megatron"},
    {"nemo", megatron_frameworks, dl_run_read_megatron, dl_megatron_plan, "megatron"},
    {"torchtitan", titan_frameworks, dl_run_read_torchtitan, dl_torchtitan_plan, "torchtitan"},
    {"deepspeed", deepspeed_frameworks, dl_run_read_json, dl_deepspeed_plan, "deepspeed"},
    {"accelerate", fsdp_frameworks, dl_run_read_yaml, dl_accelerate_plan, "accelerate"},
    {"composer", fsdp_frameworks, dl_run_read_yaml, dl_composer_plan, "composer"},
    {"maxtext", maxtext_frameworks, dl_run_read_yaml, dl_maxtext_plan, "maxtext"},
    {"launch", ddp_frameworks, dl_run_read_script, dl_launch_plan, "launch"},
    {NULL, NULL, NULL, NULL, NULL},
};

/* The first of the names that is a framework here. */
static const char *framework_of(struct dl_context *context, const struct dl_import_asked *asked,
                                const char *const *names) {
    struct dl_err ignored;
    const char *path;
    if (asked->framework != NULL) return asked->framework;
    for (; names[1] != NULL; names++)
        if (dl_data_path(&context->data, DL_DATA_FRAMEWORK, names[0], context->arena, &path,
                         &ignored) == DL_OK)
            break;
    return names[0];
}

/* --env NAME=VALUE. */
static enum dl_code environment_of(const struct dl_options *options, struct dl_arena *arena,
                                   const char *const **out, struct dl_err *err) {
    const char **pairs = dl_arena_alloc(arena, MAX_ENVIRONMENT + 1, sizeof *pairs);
    int count = 0;
    *out = pairs;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "env") != 0) continue;
        const char *pair = options->given[i].value, *equals = strchr(pair, '=');
        if (equals == NULL || equals == pair || count == MAX_ENVIRONMENT)
            return dl_fail(err, DL_ERR_USAGE, "--env: expected NAME=VALUE, found \"%.60s\"", pair);
        pairs[count++] = pair;
    }
    return DL_OK;
}

/* What a script's command line would say is missing. */
static enum dl_code plan_of(const struct dl_run_format *format, struct dl_run *run) {
    const enum dl_code code = format->plan(run);
    const size_t length = strlen(run->err->message);
    if (code != DL_OK && run->script_arguments != NULL)
        snprintf(run->err->message + length, sizeof run->err->message - length,
                 "; the script takes values from its command line: give them by --args '%.300s'",
                 run->script_arguments);
    return code;
}

enum dl_code dl_run_import(struct dl_context *context, const struct dl_run_source *file,
                           const char *kind, const struct dl_import_asked *asked,
                           struct dl_imported_run *out, struct dl_err *err) {
    const struct dl_run_format *format = dl_run_formats;
    struct dl_arena *arena = context->arena;
    struct dl_run_source source = *file;
    struct dl_plan_words *words = dl_arena_alloc(arena, 1, sizeof *words);
    struct dl_run *run = &out->run;
    char *text;
    while (strcmp(format->name, kind) != 0) format++;
    source.context = context;
    DL_TRY(dl_data_read(&context->data, source.path, MAX_BYTES, arena, &text, &source.length, err));
    source.text = text;
    source.arguments = asked->arguments;
    source.config = asked->config;
    if (memchr(text, '\0', source.length) != NULL)
        return dl_fail_at(err, source.path, 1, 1, NULL, "a zero byte: this is no text");
    words->arena = arena;
    words->kind = format->name;
    words->path = source.path;
    words->system = asked->system;
    words->framework = framework_of(context, asked, format->frameworks);
    words->workload = dl_arena_alloc(arena, 1, sizeof *words->workload);
    words->workload->arena = arena;
    *run = (struct dl_run){.context = context,
                           .out = words,
                           .err = err,
                           .workload = asked->workload,
                           .vocabulary = asked->vocabulary > 0 ? (double)asked->vocabulary : NAN,
                           .framework_asked = asked->framework != NULL,
                           .nodes = NAN,
                           .per_node = NAN,
                           .ranks = NAN};
    dl_arguments_start(&run->arguments, source.path, arena);
    DL_TRY(format->read(&source, run));
    if (asked->ranks > 0) run->ranks = (double)asked->ranks;
    DL_TRY(plan_of(format, run));
    const struct dl_argument_class *own, *common;
    DL_TRY(dl_argument_classes_read(&context->data, format->arguments, arena, &own, &common, err));
    return dl_arguments_sort(&run->arguments, own, common, asked->skip_unknown || run->complete,
                             &out->lists, err);
}

enum dl_code dl_import_run(struct dl_context *context, const struct dl_options *options,
                           const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_run_source source = {.path = options->positional[1]};
    struct dl_imported_run *imported = dl_arena_alloc(context->arena, 1, sizeof *imported);
    DL_TRY(dl_import_files(options, 1, err));
    DL_TRY(environment_of(options, context->arena, &source.environment, err));
    DL_TRY(dl_run_import(context, &source, options->positional[0], asked, imported, err));
    return dl_run_print(context, options, &imported->run, &imported->lists, err);
}
