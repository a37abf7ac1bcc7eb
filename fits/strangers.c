/* strangers.c - see strangers.h. */
#include "fits/strangers.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/core/text.h"

double dl_stranger_error_log(const struct dl_first_sight_row *row) {
    return -log1p(row->time_error_pct / 100);
}

bool dl_stranger_recorded(const struct dl_strangers *s, const struct dl_fit_row *row) {
    for (size_t k = 0; k < s->rows.count; k++)
        if (s->seen[k] != NULL && strcmp(s->rows.rows[k].id, row->id) == 0 &&
            strcmp(s->rows.rows[k].source, row->source) == 0)
            return true;
    return false;
}

/* The table of that name; NULL: no data directory has it. */
static const char *table_path(const struct dl_data *data, const char *file,
                              struct dl_arena *arena) {
    const char *path = dl_data_file(data, dl_arena_printf(arena, "unseen/%s", file), arena);
    return path != NULL ? path : dl_data_file(data, dl_arena_printf(arena, "runs/%s", file), arena);
}

static enum dl_code read_tables(const struct dl_data *data, const struct dl_first_sight *record,
                                struct dl_arena *arena, struct dl_strangers *out,
                                const char **files, struct dl_err *err) {
    struct dl_csv *csvs = dl_arena_alloc(arena, (size_t)record->count + 1, sizeof *csvs);
    int count = 0;
    for (int i = 0; i < record->count; i++) {
        const int before = count;
        dl_text_place(files, &count, INT_MAX, record->rows[i].file);
        if (count == before) continue;
        const char *path = table_path(data, record->rows[i].file, arena);
        if (path == NULL)
            return dl_fail(err, DL_ERR_INPUT, "%s/chain: no table %s in unseen/ or runs/",
                           record->folder, record->rows[i].file);
        DL_TRY(dl_csv_read(path, arena, &csvs[before], err));
    }
    return dl_fit_rows_read(data, csvs, count, arena, &out->rows, err);
}

/* The record's row of each run. */
static void join(const struct dl_first_sight *record, const char *const *files,
                 struct dl_strangers *out) {
    for (size_t i = 0; i < out->rows.count; i++) {
        const struct dl_fit_row *row = &out->rows.rows[i];
        if (!dl_known(row->measured_s) || !dl_known(out->predictions[i].iteration_s)) continue;
        for (int k = 0; k < record->count && out->seen[i] == NULL; k++) {
            const struct dl_first_sight_row *r = &record->rows[k];
            if (dl_known(r->predicted) && strcmp(r->id, row->id) == 0 &&
                strcmp(r->file, files[row->csv]) == 0)
                out->seen[i] = r;
        }
    }
}

enum dl_code dl_strangers_read(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_strangers *out, struct dl_err *err) {
    struct dl_first_sight record;
    *out = (struct dl_strangers){.seen = NULL};
    DL_TRY(dl_first_sight_read(data, arena, &record, err));
    out->hash = record.hash;
    const char **files = dl_arena_alloc(arena, (size_t)record.count + 1, sizeof *files);
    DL_TRY(read_tables(data, &record, arena, out, files, err));
    const size_t room = out->rows.count + 1;
    out->predictions = dl_arena_alloc(arena, room, sizeof *out->predictions);
    out->seen = dl_arena_alloc(arena, room, sizeof *out->seen);
    for (size_t i = 0; i < out->rows.count; i++) out->predictions[i].iteration_s = NAN;
    DL_TRY(dl_fit_rows_predict(&out->rows, NULL, NULL, out->predictions, err));
    join(&record, files, out);
    return DL_OK;
}
