/* data_intervals.c - finds the intervals of predictions among the data files. */
#include "model/cli/data_parts.h"
#include "model/predict/interval.h"

enum dl_code dl_data_intervals(const struct dl_data *data, struct dl_arena *arena,
                               const struct dl_interval_model **out, struct dl_err *err) {
    *out = NULL;
    for (int d = 0; d < data->directory_count; d++) {
        const char *path = dl_arena_printf(arena, "%s/intervals.json", data->directories[d]);
        struct dl_interval_model *model = dl_arena_alloc(arena, 1, sizeof *model);
        struct dl_json *doc = NULL;
        if (path == NULL || model == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        if (!dl_data_exists(path)) continue;
        DL_TRY(dl_json_read(path, arena, &doc, err));
        DL_TRY(dl_json_load(doc, &dl_interval_schema, arena, model, err));
        *out = model;
        return DL_OK;
    }
    return DL_OK;
}
