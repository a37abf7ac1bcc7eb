/* file_kind.h - what a file is, by what is in it: not by its name. */
#ifndef DL_IMPORT_FILE_KIND_H
#define DL_IMPORT_FILE_KIND_H

#include "model/catalog/data.h"

/* "onnx", "config", "megatron", ...: the kinds of `import`; "workload": a file of this program;
 * "torch-save", "safetensors", "hdf5", "saved-model": forms that hold a model and
 * are not read; NULL: none is recognized. */
const char *dl_file_kind(const struct dl_data *data, const char *path, struct dl_arena *arena);
/* The same of the first bytes of a file. */
const char *dl_text_kind(const char *bytes, size_t length, struct dl_arena *arena);

#endif
