/* compare_calibrated.c - published collectives, predicted from other samples of the same machine as
 * a calibrated profile would predict them: five folds over the sizes of each series (series.h), or
 * each rank count from the others. */
#include <math.h>

#include "model/engine/diagnose.h"
#include "predict/compare/compare.h"
#include "predict/compare/series.h"

enum { FEWEST = 5 }; /* series with fewer sizes are not split into folds */

/* The contents of a profile for this fold: *count rank sets, or 0 and the reason. */
static void profile_of(const struct dl_series *series, const struct dl_series_row *row,
                       enum dl_calibrated mode, struct dl_coll_measured **out, int *count,
                       const char **why) {
    int sets = 0;
    *count = 0;
    *why = mode == DL_CALIBRATED_SIZES ? "fewer than 5 sizes of its series are published"
                                       : "no other rank count of its machine is published";
    if (mode == DL_CALIBRATED_SIZES && row->sizes < FEWEST) return;
    for (int r = 0; r < series->count; r++)
        sets += series->rows[r].machine == row->machine && series->rows[r].series == r;
    struct dl_coll_measured *list = dl_arena_alloc(series->arena, (size_t)sets + 1, sizeof *list);
    if (mode == DL_CALIBRATED_SIZES) {
        dl_series_measured(series, row->series, row->order % DL_SERIES_FOLDS, &list[(*count)++]);
    }
    for (int r = 0; mode == DL_CALIBRATED_RANKS && r < series->count; r++) {
        const struct dl_series_row *other = &series->rows[r];
        if (other->machine != row->machine || other->series != r || other->series == row->series)
            continue;
        /* another kind of link */
        if ((other->match.request.nodes > 1) != (row->match.request.nodes > 1)) continue;
        dl_series_measured(series, r, -1, &list[(*count)++]);
    }
    *out = list;
}

static enum dl_code predict_row(const struct dl_data *data, const struct dl_series *series,
                                const struct dl_series_row *row, enum dl_calibrated mode,
                                struct dl_compared *out, struct dl_err *err) {
    const double z80 = 1.2816; /* of an 80 % interval */
    struct dl_system system;
    struct dl_coll_measured *sets = NULL;
    struct dl_collective_time t;
    struct dl_err inner = {0};
    int count = 0;
    profile_of(series, row, mode, &sets, &count, &out->why);
    out->skipped = count == 0;
    if (out->skipped) return DL_OK;
    DL_TRY(dl_series_system(data, row, series->arena, &system, &out->why, err));
    out->skipped = out->why != NULL;
    if (out->skipped) return DL_OK;
    system.collectives = sets, system.collective_count = count;
    if (dl_collective_time(&system, &row->match.request, &t, &inner) != DL_OK) {
        out->skipped = true;
        out->why = dl_arena_strdup(series->arena, inner.message);
        return DL_OK;
    }
    out->why = NULL;
    out->predicted = t.time_s;
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    out->low = t.time_s * exp(-z80 * t.sigma_log);
    out->high = t.time_s * exp(z80 * t.sigma_log);
    if (t.limit != NULL)
        out->bottleneck = dl_bottleneck_names[dl_resource_bottleneck(dl_resource_of_link(t.limit))];
    out->workload = dl_arena_printf(series->arena, "%s %s",
                                    dl_collective_op_names[row->match.request.op], t.algorithm);
    return DL_OK;
}

enum dl_code dl_compare_calibrated(const struct dl_data *data, const struct dl_csv *csv,
                                   enum dl_calibrated mode, struct dl_comparison *out,
                                   struct dl_err *err) {
    struct dl_series series;
    if (dl_csv_column(csv, "collective") < 0) {
        return dl_fail(err, DL_ERR_USAGE, "--calibrated: %s is not a table of collectives",
                       csv->name);
    }
    DL_TRY(dl_series_read(csv, out->arena, &series, err));
    for (int r = 0; r < series.count; r++) {
        const struct dl_series_row *row = &series.rows[r];
        struct dl_compared *compared = dl_comparison_add(out);
        *compared = (struct dl_compared){
            .id = row->id,
            .source = row->source,
            .system = row->text.system,
            .framework = row->text.library,
            .unit = "s",
            .measured = row->text.time_s,
            .predicted = NAN,
            .error_pct = NAN,
            .low = NAN,
            .high = NAN,
            .devices = dl_known(row->text.ranks) ? (int64_t)row->text.ranks : 0,
        };
        if (row->series < 0) {
            compared->skipped = true;
            compared->why = row->match.system == NULL ? dl_coll_match_why(&row->match, out->arena)
                                                      : "no size and time";
            continue;
        }
        DL_TRY(predict_row(data, &series, row, mode, compared, err));
    }
    return DL_OK;
}
