/* data_host.c - host_counts.json: the table, and the release that a framework names. */
#include <string.h>

#include "model/catalog/data_internal.h"

static enum dl_code load_table(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_host_table *out, struct dl_err *err) {
    *out = (struct dl_host_table){.release_count = 0};
    const char *path = dl_data_file(data, "host_counts.json", arena);
    struct dl_json *doc = NULL;
    if (path == NULL) return DL_OK;
    DL_TRY(dl_data_json(data, path, arena, &doc, err));
    return dl_json_load(doc, &dl_host_table_schema, arena, out, err);
}

enum dl_code dl_data_host_counts(const struct dl_data *data, struct dl_framework *framework,
                                 const struct dl_json *doc, struct dl_arena *arena,
                                 struct dl_err *err) {
    const char *name = framework->host.host_counts;
    framework->host.counts = NULL;
    framework->host.table = NULL;
    if (name == NULL || strcmp(name, "none") == 0) return DL_OK;
    struct dl_host_table *table = dl_arena_alloc(arena, 1, sizeof *table);
    DL_TRY(load_table(data, arena, table, err));
    const char **names = dl_arena_alloc(arena, (size_t)table->release_count + 1, sizeof *names);
    for (int i = 0; i < table->release_count; i++) {
        names[i] = table->releases[i].name;
        if (strcmp(names[i], name) == 0) framework->host.counts = &table->releases[i];
    }
    framework->host.table = table;
    if (framework->host.counts != NULL) return DL_OK;
    const char *near = dl_suggest(name, names);
    return dl_json_fail(doc, "host_counts", err,
                        "expected a name in host_counts.json, or none, got \"%.60s\"%s%s", name,
                        near != NULL ? "; did you mean " : "", near != NULL ? near : "");
}
