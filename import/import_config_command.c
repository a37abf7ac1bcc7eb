/* import_config_command.c - `import config`: the workload that a config.json makes, and what it
 * leaves out. */
#include <string.h>

#include "import/import_config.h"
#include "import/import.h"
#include "import/run/arguments.h"

enum { CONFIG_BYTES = 4 << 20 };

/* Name of the folder of the file, which is the model's, else of its type. */
static const char *default_name(struct dl_arena *arena, const char *path, const char *type) {
    const char *slash = strrchr(path, '/'), *from = slash;
    while (from != NULL && from > path && from[-1] != '/') from--;
    const bool folder = slash != NULL && slash > from && from[0] != '.';
    return folder ? dl_import_name(arena, from, (size_t)(slash - from))
                  : dl_import_name(arena, type, strlen(type));
}

/* The workload that the text makes, with the one that it extends. */
static enum dl_code build(struct dl_context *context, const char *text,
                          const struct dl_config_model *model, const char *path,
                          struct dl_workload *out, struct dl_err *err) {
    struct dl_json *docs[2];
    const char *base;
    struct dl_err inner = {.code = DL_OK};
    DL_TRY(dl_data_path(&context->data, DL_DATA_WORKLOAD, model->family->extends, context->arena,
                        &base, err));
    DL_TRY(dl_json_parse("imported workload", text, strlen(text), context->arena, &docs[0], err));
    DL_TRY(dl_json_read(base, context->arena, &docs[1], err));
    const struct dl_json *const chain[] = {docs[0], docs[1]};
    const enum dl_code code = dl_workload_build(chain, 2, NULL, 0, context->arena, out, &inner);
    if (code == DL_OK || code == DL_ERR_SYSTEM) return code;
    return dl_fail_at(err, path, 0, 0, NULL, "its values do not make a workload: %.200s: %.300s",
                      inner.key, inner.message);
}

enum dl_code dl_import_config(struct dl_context *context, const struct dl_options *options,
                              const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_config_model model;
    struct dl_workload workload;
    char *json = NULL;
    size_t length = 0;
    DL_TRY(dl_import_files(options, 1, err));
    const char *path = options->positional[1];
    DL_TRY(dl_data_read(&context->data, path, CONFIG_BYTES, context->arena, &json, &length, err));
    DL_TRY(dl_config_parse(path, json, length, asked->skip_unknown, context->arena, &model, err));
    const char *name =
        asked->name != NULL ? asked->name : default_name(context->arena, path, model.type);
    const char *text = name == NULL ? NULL : dl_config_text(&model, name, context->arena);
    DL_TRY(build(context, text, &model, path, &workload, err));
    DL_TRY(context->output(options, text, err));
    context->note(context, "%s: %.0f parameters, %.0f of them active; %.0f tokens a sample", name,
                  workload.parameters, workload.active_parameters, workload.sequence);
    if (model.by_members)
        context->note(context,
                      "model_type \"%.60s\" is not known: its members are read as those of a Llama",
                      model.type);
    for (int i = 0; i < model.left_out_count; i++)
        context->note(context, "left out: %s", model.left_out[i]);
    if (model.skipped != NULL)
        context->note(context, "warning: left out members that are not known: %s", model.skipped);
    return DL_OK;
}
