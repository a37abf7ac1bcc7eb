/* row_system.c - see row_system.h. */
#include "predict/compare/row_system.h"

#include <unistd.h>

#include "model/network/libraries/nccl.h"

static bool given(const char *text) { return text != NULL && text[0] != '\0'; }

/* A copy of the system with the values of the row. */
static void as_said(struct dl_arena *arena, const struct dl_row_machine *said,
                    const struct dl_system **system) {
    struct dl_system *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    struct dl_device *device = dl_arena_alloc(arena, 1, sizeof *device);
    *copy = **system;
    *device = *copy->device;
    if (dl_known(said->power_limit_w)) device->power.power_limit_w = said->power_limit_w;
    if (given(said->nccl_version)) copy->software.nccl_version = said->nccl_version;
    if (said->nccl_rings > 0) copy->software.nccl_rings = said->nccl_rings;
    copy->device = device;
    dl_nccl_prepare(copy);
    *system = copy;
}

enum dl_code dl_row_system(const struct dl_data *data, const char *name,
                           const struct dl_row_machine *said, struct dl_arena *arena,
                           const struct dl_system **out, const char **why_out, struct dl_err *err) {
    int number;
    struct dl_err inner = {0};
    const char *path = NULL;
    *out = NULL;
    *why_out = "no system is given";
    if (name == NULL || name[0] == '\0') return DL_OK;
    const enum dl_code code = dl_data_path(data, DL_DATA_SYSTEM, name, arena, &path, &inner);
    if (code == DL_ERR_USAGE) {
        *why_out = dl_arena_strdup(arena, inner.message);
        return DL_OK;
    }
    if (code != DL_OK) {
        *err = inner;
        return code;
    }
    /* text with a slash would pass as a path */
    if (access(path, F_OK) != 0) {
        *why_out = dl_arena_printf(arena, "no system file \"%s\"", name);
        return DL_OK;
    }
    const bool release = said != NULL && given(said->nccl_version);
    if (release && dl_nccl_version_find(said->nccl_version, &number) == NULL) {
        *why_out = dl_arena_printf(arena, "nccl_version \"%.40s\" is no release of NCCL 2",
                                   said->nccl_version);
        return DL_OK;
    }
    *why_out = NULL;
    DL_TRY(dl_data_system(data, name, arena, out, err));
    const bool says =
        said != NULL && (dl_known(said->power_limit_w) || release || said->nccl_rings > 0);
    if (says) as_said(arena, said, out);
    return DL_OK;
}
