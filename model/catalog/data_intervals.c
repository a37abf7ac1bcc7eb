/* data_intervals.c - finds the intervals of predictions among the data files. */
#include "model/catalog/data_internal.h"
#include "model/catalog/store.h"
#include "model/engine/interval.h"

static enum dl_code intervals_of(const struct dl_data *data, const char *name,
                                 struct dl_arena *arena, const void **out, struct dl_err *err) {
    *out = NULL;
    const char *path = dl_data_file(data, name, arena);
    if (path == NULL) return DL_OK;
    struct dl_interval_model *model = dl_arena_alloc(arena, 1, sizeof *model);
    struct dl_json *doc = NULL;
    DL_TRY(dl_data_json(data, path, arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_interval_schema, arena, model, err));
    *out = model;
    return DL_OK;
}

enum dl_code dl_data_intervals(const struct dl_data *data, struct dl_arena *arena,
                               const struct dl_interval_model **out, struct dl_err *err) {
    const void *found;
    DL_TRY(
        dl_store_load(data, DL_DATA_INTERVALS, "intervals.json", intervals_of, arena, &found, err));
    *out = found;
    return DL_OK;
}
