/* foreign_model.h - files of others where a workload is named: -w model.onnx, -w config.json, a
 * checkpoint's folder. */
#ifndef DL_IMPORT_FOREIGN_MODEL_H
#define DL_IMPORT_FOREIGN_MODEL_H

#include "model/catalog/command.h"

enum { DL_WORKLOAD_FILES = 16 };

/* Files that were read for one context, each once. */
struct dl_workload_files {
    const struct dl_context *context;
    struct {
        const char *path, *text;
    } list[DL_WORKLOAD_FILES];
    int count;
};

/* Lets the context's workloads be files of others, for as long as `files` lives. */
void dl_workload_files_allow(struct dl_workload_files *files, struct dl_context *context);

#endif
