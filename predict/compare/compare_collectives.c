/* compare_collectives.c - published collectives, predicted from system files alone. */
#include <math.h>
#include <string.h>

#include "model/network/coll_match.h"
#include "model/engine/diagnose.h"
#include "model/engine/interval.h"
#include "predict/compare/collective_cause.h"
#include "predict/compare/row_system.h"

/* A system file is read once; a missing one is remembered with the reason. */
struct system_cache {
    const struct dl_data *data;
    struct dl_arena *arena;
    struct {
        const char *name, *why;
        const struct dl_system *system;
    } entries[64];
    int count;
};

static enum dl_code find_system(struct system_cache *cache, const char *name,
                                const struct dl_system **out, const char **why_out,
                                struct dl_err *err) {
    for (int i = 0; i < cache->count; i++) {
        if (strcmp(cache->entries[i].name, name) == 0) {
            *out = cache->entries[i].system;
            *why_out = cache->entries[i].why;
            return DL_OK;
        }
    }
    DL_TRY(dl_row_system(cache->data, name, NULL, cache->arena, out, why_out, err));
    if (cache->count < (int)(sizeof cache->entries / sizeof cache->entries[0])) {
        cache->entries[cache->count].name = name;
        cache->entries[cache->count].why = *why_out;
        cache->entries[cache->count++].system = *out;
    }
    return DL_OK;
}

/* Leaves out the samples of other releases of NCCL than the row's, whose rules they would impose on
 * it. */
static void keep_release(struct dl_system *system, const char *version, struct dl_arena *arena) {
    struct dl_coll_measured *kept =
        dl_arena_alloc(arena, (size_t)system->collective_count, sizeof *kept);
    int count = 0;
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *set = &system->collectives[i];
        if (set->library_version == NULL || strcmp(set->library_version, version) == 0)
            kept[count++] = *set;
    }
    system->collectives = kept, system->collective_count = count;
}

/* Whatever a collective takes is communication, and no framework or set-up is a stranger's:
 * F-INTERVAL with no other part. */
static void add_interval(const struct dl_interval_model *model, struct dl_compared *out) {
    static const struct dl_interval_case c = {
        .exposed_frac = 1, .model_sigma_log = NAN, .anchored = true};
    if (model == NULL) return;
    const double ratio = exp(dl_interval_end_log(model, &c, DL_SLOW_END, NULL));
    out->low = out->predicted / ratio;
    out->high = out->predicted * ratio;
}

static void predict_row(const struct dl_system *system, const struct dl_coll_match *match,
                        const struct dl_interval_model *intervals, struct dl_compared *out,
                        struct dl_arena *arena) {
    /* With the library release of the row, unless samples of the machine itself are available. */
    struct dl_system machine = *system;
    if (match->nccl_version != NULL && machine.collective_count > 0)
        keep_release(&machine, match->nccl_version, arena);
    if (machine.collective_count == 0 && match->nccl_version != NULL)
        machine.software.nccl_version = match->nccl_version;
    if (machine.collective_count == 0 && match->mpi != NULL) machine.software.mpi = match->mpi;
    struct dl_collective_time t;
    struct dl_err inner = {0};
    if (dl_collective_time(&machine, &match->request, &t, &inner) != DL_OK) {
        out->skipped = true;
        out->why = dl_arena_strdup(arena, inner.message);
        return;
    }
    const double launch_s = dl_known(system->device->launch_s) ? system->device->launch_s : 0;
    out->predicted = t.time_s + match->launches * launch_s;
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    if (t.limit != NULL)
        out->bottleneck = dl_bottleneck_names[dl_resource_bottleneck(dl_resource_of_link(t.limit))];
    add_interval(intervals, out);
    dl_compared_explain(out, dl_collective_causes(&machine, &match->request, out, arena), arena);
    out->workload =
        dl_arena_printf(arena, "%s %s", dl_collective_op_names[match->request.op], t.algorithm);
}

enum dl_code dl_compare_collectives(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err) {
    struct system_cache cache = {.data = data, .arena = out->arena};
    const struct dl_interval_model *intervals;
    DL_TRY(dl_data_intervals(data, out->arena, &intervals, err));
    const int source = dl_csv_column(csv, "source");
    for (int r = 0; r < csv->row_count; r++) {
        struct dl_coll_row row;
        DL_TRY(dl_coll_row_read(csv, r, &row, err));
        struct dl_coll_match match = dl_coll_match(&row);
        struct dl_compared *compared = dl_comparison_add(out);
        *compared = (struct dl_compared){
            .id = dl_arena_printf(out->arena, "%s:%d", csv->name, csv->row_lines[r]),
            .source = source < 0 ? "" : csv->rows[r][source],
            .system = row.system,
            .framework = row.library,
            .unit = "s",
            .measured = match.measured_s > 0 ? match.measured_s : row.time_s,
            .predicted = NAN,
            .error_pct = NAN,
            .low = NAN,
            .high = NAN,
            .devices = dl_known(row.ranks) ? (int64_t)row.ranks : 0,
        };
        const struct dl_system *system = NULL;
        compared->why = dl_coll_match_why(&match, out->arena);
        if (match.system != NULL)
            DL_TRY(find_system(&cache, match.system, &system, &compared->why, err));
        compared->skipped = system == NULL;
        if (system == NULL) continue;
        if (match.version_ignored)
            compared->remark = dl_arena_printf(
                out->arena,
                "lib_version \"%s\" is not a release of the library: the system's is used",
                row.lib_version);
        predict_row(system, &match, intervals, compared, out->arena);
    }
    return DL_OK;
}
