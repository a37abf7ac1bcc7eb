/* first_sight.c - see first_sight.h. */
#include "predict/compare/first_sight.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/core/columns.h"
#include "model/core/file.h"
#include "model/core/hash.h"

enum { HASH_DIGITS = 16, MOST_BYTES = 64 << 20 };

#define COLUMN(member)                                                                             \
    DL_SHOWN(struct dl_first_sight_row, member, #member, #member, "", 0, 0, 0, NULL)
static const struct dl_list_column columns[] = {
    COLUMN(file),        COLUMN(id),      COLUMN(source), COLUMN(kind),     COLUMN(predicted),
    COLUMN(low),         COLUMN(high),    COLUMN(unit),   COLUMN(measured), COLUMN(time_error_pct),
    COLUMN(in_interval), COLUMN(version), COLUMN(date),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* What a run is, for averages: network, place, whether the device's kernels were measured. */
static const char *kind_of(const struct dl_modelled *m, struct dl_arena *arena) {
    if (m->workload == NULL) return "";
    const char *layers = dl_workload_layers(m->workload), *family = m->workload->family;
    const char *network = layers == NULL ? (strcmp(family, "transformer") == 0 ? "encoder" : family)
                          : strcmp(layers, "decoder") == 0 ? "dense"
                                                           : "moe";
    return dl_arena_printf(arena, "%s/%s/%s", network,
                           m->plan->nodes > 1 ? "several-nodes" : "one-node",
                           m->system->device->kernel_model_count > 0 ? "samples" : "no-samples");
}

bool dl_first_sight_is(const struct dl_csv *csv) {
    for (int i = 0; i < COLUMNS; i++)
        if (dl_csv_column(csv, columns[i].column.key) < 0) return false;
    return true;
}

/* Cells of the columns of numbers. */
static enum dl_code read_numbers(const struct dl_csv *csv, int row, struct dl_first_sight_row *out,
                                 struct dl_err *err) {
    struct {
        const char *key;
        double *value;
    } cells[] = {{"predicted", &out->predicted},
                 {"low", &out->low},
                 {"high", &out->high},
                 {"measured", &out->measured},
                 {"time_error_pct", &out->time_error_pct}};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        DL_TRY(dl_csv_number(csv, row, dl_csv_column(csv, cells[i].key), cells[i].value, err));
    double inside;
    DL_TRY(dl_csv_number(csv, row, dl_csv_column(csv, "in_interval"), &inside, err));
    out->in_interval = dl_known(inside) ? inside > 0 : DL_ABSENT;
    if (!(out->measured > 0))
        return dl_csv_fault(csv, row, dl_csv_column(csv, "measured"), err,
                            "expected a measurement above 0");
    if (dl_known(out->predicted) && !(out->predicted > 0 && out->low > 0 && out->high >= out->low))
        return dl_csv_fault(csv, row, dl_csv_column(csv, "predicted"), err,
                            "expected a prediction above 0 with its interval");
    return DL_OK;
}

static enum dl_code read_row(const struct dl_csv *csv, int row, struct dl_first_sight_row *out,
                             struct dl_err *err) {
    const char *const *cells = csv->rows[row];
    *out = (struct dl_first_sight_row){.file = cells[dl_csv_column(csv, "file")],
                                       .id = cells[dl_csv_column(csv, "id")],
                                       .source = cells[dl_csv_column(csv, "source")],
                                       .kind = cells[dl_csv_column(csv, "kind")],
                                       .unit = cells[dl_csv_column(csv, "unit")],
                                       .version = cells[dl_csv_column(csv, "version")],
                                       .date = cells[dl_csv_column(csv, "date")]};
    return read_numbers(csv, row, out, err);
}

static uint64_t link_of(uint64_t before, const char *text, size_t length) {
    return dl_hash_bytes(dl_hash_bytes(DL_HASH_START, &before, sizeof before), text, length);
}

/* One line of the chain, "HASH NAME": the file must be the one that was recorded. */
static enum dl_code read_link(const char *line, struct dl_arena *arena, struct dl_first_sight *out,
                              struct dl_err *err) {
    const char *name = line + HASH_DIGITS + 1,
               *path = dl_arena_printf(arena, "%s/%s.csv", out->folder, name);
    char *text;
    size_t length;
    struct dl_csv csv;
    DL_TRY(dl_file_read(path, MOST_BYTES, arena, &text, &length, err));
    out->hash = link_of(out->hash, text, length);
    const char *hash = dl_arena_printf(arena, "%016" PRIx64, out->hash);
    if (strncmp(line, hash, HASH_DIGITS) != 0)
        return dl_fail(err, DL_ERR_INPUT,
                       "%s: error: not the file that was recorded; a first sight never changes "
                       "(%s/chain)",
                       path, out->folder);
    DL_TRY(dl_csv_parse(path, text, length, arena, &csv, err));
    if (!dl_first_sight_is(&csv))
        return dl_fail_at(err, path, 1, 1, NULL, "expected the header of a first sight");
    struct dl_first_sight_row *rows =
        dl_arena_alloc(arena, (size_t)(out->count + csv.row_count) + 1, sizeof *rows);
    if (out->count > 0) memcpy(rows, out->rows, (size_t)out->count * sizeof *rows);
    for (int i = 0; i < csv.row_count; i++) DL_TRY(read_row(&csv, i, &rows[out->count + i], err));
    out->rows = rows;
    out->count += csv.row_count;
    return DL_OK;
}

/* Reads the files that the chain of out->folder names. */
static enum dl_code read_chain(struct dl_arena *arena, struct dl_first_sight *out,
                               struct dl_err *err) {
    const char *path = dl_arena_printf(arena, "%s/chain", out->folder);
    char *text;
    size_t length;
    DL_TRY(dl_file_read(path, MOST_BYTES, arena, &text, &length, err));
    out->chain = dl_arena_strdup(arena, text);
    int number = 1;
    for (char *line = text; *line != 0; number++) {
        char *end = strchr(line, '\n');
        if (end == NULL || end - line < HASH_DIGITS + 2 || line[HASH_DIGITS] != ' ' ||
            memchr(line, '/', (size_t)(end - line)) != NULL)
            return dl_fail_at(err, path, number, 1, NULL, "expected a hash and the name of a file");
        *end = 0;
        DL_TRY(read_link(line, arena, out, err));
        line = end + 1;
    }
    return DL_OK;
}

enum dl_code dl_first_sight_read(const struct dl_data *data, struct dl_arena *arena,
                                 struct dl_first_sight *out, struct dl_err *err) {
    *out = (struct dl_first_sight){.hash = 0, .chain = ""};
    const char *chain = dl_data_file(data, "first_sight/chain", arena);
    if (chain == NULL) return DL_OK;
    out->folder = dl_arena_strndup(arena, chain, strlen(chain) - strlen("/chain"));
    return read_chain(arena, out, err);
}

static enum dl_code check_new(const struct dl_first_sight *record, const char *name,
                              const struct dl_compared *row, const char *file, struct dl_err *err) {
    for (int i = 0; i < record->count; i++) {
        if (strcmp(record->rows[i].file, file) == 0 && strcmp(record->rows[i].id, row->id) == 0)
            return dl_fail(err, DL_ERR_USAGE,
                           "--first-sight %s: %s of %s is recorded already, by version %s", name,
                           row->id, file, record->rows[i].version);
    }
    return DL_OK;
}

static enum dl_code check_name(const struct dl_first_sight *record, const char *name,
                               struct dl_arena *arena, struct dl_err *err) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    if (*name == 0 || name[strspn(name, allowed)] != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--first-sight: expected a name of a-z, 0-9, _ and -, got \"%s\"", name);
    const char *path = dl_arena_printf(arena, "%s/%s.csv", record->folder, name);
    if (access(path, F_OK) == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--first-sight: %s is there; a first sight is recorded once", path);
    return DL_OK;
}

static struct dl_first_sight_row row_of(const struct dl_compared *row, const char *file,
                                        const char *date, struct dl_arena *arena) {
    const bool predicted = !row->skipped;
    /* "dlmodel VERSION (COMMIT)" */
    const char *open = strchr(dl_version_text, '(') + 1;
    return (struct dl_first_sight_row){
        .file = file,
        .id = row->id,
        .source = row->source,
        .kind = kind_of(&row->modelled, arena),
        .unit = row->unit,
        .version = dl_arena_strndup(arena, open, strcspn(open, ")")),
        .date = date,
        .predicted = predicted ? row->predicted : NAN,
        .low = predicted ? row->low : NAN,
        .high = predicted ? row->high : NAN,
        .measured = row->measured,
        .time_error_pct = dl_compared_time_error_pct(row),
        .in_interval =
            predicted ? row->measured >= row->low && row->measured <= row->high : DL_ABSENT,
    };
}

enum dl_code dl_first_sight_add(const struct dl_data *data, const char *name,
                                const struct dl_comparison *comparison, const char *const *files,
                                struct dl_arena *arena, struct dl_err *err) {
    struct dl_first_sight record;
    struct dl_table table;
    char date[sizeof "2026-01-01"];
    const time_t now = time(NULL);
    struct tm day;
    DL_TRY(dl_first_sight_read(data, arena, &record, err));
    if (record.folder == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--first-sight: no data directory has first_sight/chain");
    DL_TRY(check_name(&record, name, arena, err));
    if (gmtime_r(&now, &day) == NULL || strftime(date, sizeof date, "%Y-%m-%d", &day) == 0)
        return dl_fail(err, DL_ERR_SYSTEM, "the clock has no date");
    dl_list_table(&table, arena, DL_LIST(columns), 0);
    const int rows = dl_comparison_row_count(comparison);
    for (int i = 0; i < rows; i++) {
        const struct dl_compared row = dl_comparison_row(comparison, i, NULL);
        if (!dl_known(row.measured)) continue;
        DL_TRY(check_new(&record, name, &row, files[i], err));
        const struct dl_first_sight_row facts = row_of(&row, files[i], date, arena);
        dl_list_add(&table, columns, &facts);
    }
    const char *text = dl_table_csv(&table),
               *path = dl_arena_printf(arena, "%s/%s.csv", record.folder, name),
               *chain = dl_arena_printf(arena, "%s%016" PRIx64 " %s\n", record.chain,
                                        link_of(record.hash, text, strlen(text)), name);
    DL_TRY(dl_file_write(path, text, strlen(text), err));
    return dl_file_write(dl_arena_printf(arena, "%s/chain", record.folder), chain, strlen(chain),
                         err);
}

enum dl_code dl_compare_first_sight(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err) {
    struct dl_first_sight record;
    DL_TRY(dl_first_sight_read(data, out->arena, &record, err));
    for (int i = 0; i < csv->row_count; i++) {
        struct dl_first_sight_row row;
        DL_TRY(read_row(csv, i, &row, err));
        struct dl_compared *compared = dl_comparison_add(out);
        *compared = (struct dl_compared){
            .id = row.id,
            .source = row.source,
            .system = row.kind,
            .unit = row.unit,
            .predicted = row.predicted,
            .measured = row.measured,
            .error_pct = 100 * (row.predicted - row.measured) / row.measured,
            .low = row.low,
            .high = row.high,
            .samples_per_iteration = NAN,
            .iteration_s = NAN,
            .devices = DL_ABSENT,
            .skipped = !dl_known(row.predicted),
            .why = dl_known(row.predicted) ? NULL : "not predicted by that version",
        };
    }
    return DL_OK;
}
