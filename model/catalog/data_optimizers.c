/* data_optimizers.c - the row of optimizers.json that a framework names. */
#include <string.h>

#include "model/catalog/data_internal.h"

static enum dl_code load_table(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_optimizer_table *out, struct dl_err *err) {
    *out = (struct dl_optimizer_table){.row_count = 0};
    const char *path = dl_data_file(data, "optimizers.json", arena);
    struct dl_json *doc = NULL;
    if (path == NULL) return DL_OK;
    DL_TRY(dl_data_json(data, path, arena, &doc, err));
    return dl_json_load(doc, &dl_optimizer_table_schema, arena, out, err);
}

enum dl_code dl_data_optimizer(const struct dl_data *data, struct dl_framework *framework,
                               const struct dl_json *doc, struct dl_arena *arena,
                               struct dl_err *err) {
    const char *name = framework->kernels.optimizer_kernels;
    struct dl_optimizer_table table;
    framework->kernels.optimizer = NULL;
    if (name == NULL || strcmp(name, "fused") == 0) return DL_OK;
    DL_TRY(load_table(data, arena, &table, err));
    const char **names = dl_arena_alloc(arena, (size_t)table.row_count + 1, sizeof *names);
    for (int i = 0; i < table.row_count; i++) {
        names[i] = table.rows[i].name;
        if (strcmp(names[i], name) == 0) framework->kernels.optimizer = &table.rows[i];
    }
    if (framework->kernels.optimizer != NULL) return DL_OK;
    const char *near = dl_suggest(name, names);
    return dl_json_fail(doc, "optimizer_kernels", err,
                        "expected a name in optimizers.json, got \"%.60s\"%s%s", name,
                        near != NULL ? "; did you mean " : "", near != NULL ? near : "");
}
