/* row_system.c - see row_system.h. */
#include "predict/compare/row_system.h"

#include <string.h>
#include <unistd.h>

/* A copy of the system whose devices have that power limit. */
static enum dl_code limit_power(struct dl_arena *arena, double power_limit_w,
                                const struct dl_system **system, struct dl_err *err) {
    struct dl_system *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    struct dl_device *device = dl_arena_alloc(arena, 1, sizeof *device);
    if (copy == NULL || device == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *copy = **system;
    *device = *copy->device;
    device->power_limit_w = power_limit_w;
    copy->device = device;
    *system = copy;
    return DL_OK;
}

enum dl_code dl_row_system(const struct dl_data *data, const char *name, double limit_w,
                           struct dl_arena *arena, const struct dl_system **out,
                           const char **why_out, struct dl_err *err) {
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
    DL_TRY(dl_data_system(data, name, arena, out, err));
    return dl_known(limit_w) ? limit_power(arena, limit_w, out, err) : DL_OK;
}
