/* row_system.c - see row_system.h. */
#include "predict/compare/row_system.h"

#include <string.h>
#include <unistd.h>

enum dl_code dl_row_system(const struct dl_data *data, const char *name, struct dl_arena *arena,
                           const struct dl_system **out, const char **why_out, struct dl_err *err) {
    struct dl_err inner = {0};
    const char *path = NULL;
    *out = NULL;
    *why_out = "no system is given";
    if (name == NULL || name[0] == '\0') return DL_OK;
    const enum dl_code code = dl_data_path(data, DL_DATA_SYSTEM, name, arena, &path, &inner);
    if (code == DL_ERR_USAGE) {
        *why_out = dl_arena_strdup(arena, inner.message);
        return *why_out != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    }
    if (code != DL_OK) {
        *err = inner;
        return code;
    }
    /* text with a slash would pass as a path */
    if (access(path, F_OK) != 0) {
        *why_out = dl_arena_printf(arena, "no system file \"%s\"", name);
        return *why_out != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    }
    *why_out = NULL;
    return dl_data_system(data, name, arena, out, err);
}
