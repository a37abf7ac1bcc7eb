/* foreign_model.c - see the header. The importers of the command, whose output is kept. */
#include "import/foreign_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/file_kind.h"
#include "import/import.h"

/* Forms that hold a model and are not read here. */
static const struct {
    const char *kind, *hint;
} others[] = {
    {"torch-save", "weights saved by PyTorch, which do not say what the model computes: give the "
                   "folder with its config.json, or record the model (`python -m dlmodel torch`)"},
    {"safetensors", "weights, which do not say what the model computes: give the folder with its "
                    "config.json"},
    {"hdf5", "an HDF5 file: give what the model's to_json() of Keras writes, or a .keras archive"},
    {"saved-model",
     "a SavedModel of TensorFlow: export it as ONNX (tf2onnx, which folds batch normalization), or "
     "save the model of Keras (.keras)"},
};

static enum dl_code keep(const struct dl_options *options, const char *text, struct dl_err *err) {
    (void)err;
    *(const char **)options->owner = text;
    return DL_OK;
}

static void pass_on(const struct dl_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Notes of the importers are printed as those of the calling command. */
static void pass_on(const struct dl_context *context, const char *format, ...) {
    const struct dl_context *asked = context->owner;
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    asked->note(asked, "%s", text);
}

static enum dl_code import(const struct dl_workload_files *files, const struct dl_data *data,
                           const char *kind, const char *path, const char **text,
                           struct dl_err *err) {
    struct dl_context inner = *files->context;
    struct dl_options *options = dl_arena_alloc(inner.arena, 1, sizeof *options);
    const struct dl_import_asked asked = {.name = NULL};
    inner.owner = (void *)files->context;
    inner.data = *data;
    inner.output = keep;
    inner.note = pass_on;
    options->owner = text;
    options->positional[options->positional_count++] = kind;
    options->positional[options->positional_count++] = path;
    files->context->note(files->context, "%s: read as %s", path, kind);
    return strcmp(kind, "onnx") == 0 || strcmp(kind, "pt2") == 0
               ? dl_import_onnx(&inner, options, &asked, err)
           : strcmp(kind, "keras") == 0 ? dl_import_keras(&inner, options, &asked, err)
                                        : dl_import_config(&inner, options, &asked, err);
}

/* dl_data.import_workload */
static enum dl_code read_file(const struct dl_data *data, const char *path, struct dl_arena *arena,
                              const char **text, struct dl_err *err) {
    struct dl_workload_files *files = data->import_user;
    *text = NULL;
    for (int i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0) *text = files->list[i].text;
    if (*text != NULL) return DL_OK;
    const char *kind = dl_file_kind(data, path, arena);
    if (kind == NULL || strcmp(kind, "workload") == 0) return DL_OK;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].kind, kind) == 0)
            return dl_fail_at(err, path, 0, 0, NULL, "%s",
                              dl_arena_printf(arena, others[i].hint, path));
    if (strcmp(kind, "onnx") != 0 && strcmp(kind, "pt2") != 0 && strcmp(kind, "config") != 0 &&
        strcmp(kind, "keras") != 0)
        return dl_fail_at(err, path, 0, 0, NULL,
                          "expected a workload, ONNX, torch.export or Keras model or config.json, "
                          "found a file of the "
                          "kind %s (see 'dlmodel import --help')",
                          kind);
    DL_TRY(import(files, data, kind, path, text, err));
    if (files->count == DL_WORKLOAD_FILES) return DL_OK;
    files->list[files->count].path = dl_arena_strdup(files->context->arena, path);
    files->list[files->count++].text = dl_arena_strdup(files->context->arena, *text);
    return DL_OK;
}

void dl_workload_files_allow(struct dl_workload_files *files, struct dl_context *context) {
    files->context = context;
    files->count = 0;
    context->data.import_workload = read_file;
    context->data.import_user = files;
}
