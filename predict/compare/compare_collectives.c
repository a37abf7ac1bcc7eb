/* compare_collectives.c - published collectives, predicted from system files alone. */
#include <math.h>
#include <string.h>

#include "model/collective/coll_match.h"
#include "predict/compare/compare.h"

struct system_cache {
    const char *name;
    const struct dl_system *system;
};

static enum dl_code find_system(const struct dl_data *data, struct system_cache *cache, int *count,
                                const char *name, struct dl_arena *arena,
                                const struct dl_system **out, struct dl_err *err) {
    for (int i = 0; i < *count; i++) {
        if (strcmp(cache[i].name, name) == 0) {
            *out = cache[i].system;
            return DL_OK;
        }
    }
    DL_TRY(dl_data_system(data, name, arena, out, err));
    if (*count < 64) cache[(*count)++] = (struct system_cache){name, *out};
    return DL_OK;
}

/* Rows that `import` wrote name the system itself. */
static bool is_system(const struct dl_data *data, const char *name, struct dl_arena *arena) {
    struct dl_err ignored = {.code = DL_OK};
    const char *path;
    return name != NULL && name[0] != 0 &&
           dl_data_path(data, DL_DATA_SYSTEM, name, arena, &path, &ignored) == DL_OK;
}

static enum dl_code predict_row(const struct dl_system *system, const struct dl_coll_match *match,
                                struct dl_compared *out, struct dl_arena *arena) {
    struct dl_system as_run = *system; /* the library's release of the row, where it is given */
    if (match->nccl_version != NULL) as_run.nccl_version = match->nccl_version;
    if (match->mpi != NULL) as_run.mpi = match->mpi;
    /* of another release */
    if (as_run.nccl_version != system->nccl_version || as_run.mpi != system->mpi)
        as_run.collective_count = 0;
    struct dl_collective_time t;
    struct dl_err inner = {0};
    if (dl_collective_time(&as_run, &match->request, &t, &inner) != DL_OK) {
        out->skipped = true;
        out->why = dl_arena_strdup(arena, inner.message);
        return DL_OK;
    }
    const double launch_s = dl_known(system->device->launch_s) ? system->device->launch_s : 0;
    out->predicted = t.time_s + match->launches * launch_s;
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    if (t.limit != NULL)
        out->bottleneck = strcmp(t.limit, "intra") == 0 ? "intra-link" : "inter-link";
    out->workload =
        dl_arena_printf(arena, "%s %s", dl_collective_op_names[match->request.op], t.algorithm);
    return DL_OK;
}

enum dl_code dl_compare_collectives(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err) {
    struct system_cache cache[64];
    int cached = 0;
    const int source = dl_csv_column(csv, "source");
    for (int r = 0; r < csv->row_count; r++) {
        struct dl_coll_row row;
        DL_TRY(dl_coll_row_read(csv, r, &row, err));
        struct dl_coll_match match = dl_coll_match(&row);
        if (match.system == NULL && match.measured_s > 0 && is_system(data, row.system, out->arena))
            match.system = row.system;
        struct dl_compared *compared = dl_comparison_add(out);
        if (compared == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        *compared = (struct dl_compared){
            .id = dl_arena_printf(out->arena, "%s:%d", csv->name, csv->row_lines[r]),
            .source = source < 0 ? "" : csv->rows[r][source],
            .system = match.system != NULL ? match.system : row.system,
            .framework = row.library,
            .unit = "s",
            .measured = match.measured_s > 0 ? match.measured_s : row.time_s,
            .predicted = NAN,
            .error_pct = NAN,
            .low = NAN,
            .high = NAN,
            .devices = dl_known(row.ranks) ? (int64_t)row.ranks : 0,
        };
        if (match.system == NULL || !(compared->measured > 0)) {
            compared->skipped = true;
            compared->why = match.system == NULL ? match.why : "no measured time";
            continue;
        }
        const struct dl_system *system;
        DL_TRY(find_system(data, cache, &cached, match.system, out->arena, &system, err));
        DL_TRY(predict_row(system, &match, compared, out->arena));
    }
    return DL_OK;
}
