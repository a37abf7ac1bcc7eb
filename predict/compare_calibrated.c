/* compare_calibrated.c - published collectives, predicted from other samples of the same machine as a calibrated profile
 * would: five folds over sizes, or one rank count left out.
 *
 * A series is what was measured in one way: machine, library and release, operation, nodes and ranks, notes but for their
 * numbers. Series that differ in nodes and ranks alone are one machine with several rank counts. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/coll_match.h"
#include "predict/compare.h"

enum { FOLDS = 5, FEWEST = 5 }; /* series with fewer sizes are not parted */

struct row {
    struct dl_coll_row text;
    struct dl_coll_match match;
    const char *id, *source;
    int series, machine; /* numbers of the series and of the machine; -1: cannot be used */
    int order;           /* of its size in the series */
    int sizes;           /* of the series */
};

struct table {
    const struct dl_data *data;
    struct row *rows;
    int count;
    struct dl_arena *arena;
};

static bool same_text(const char *a, const char *b) { return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0; }

/* "median of 5 runs buffers host" and "median of 12 runs buffers host" are one way of measuring. */
static bool same_words(const char *a, const char *b) {
    if (a == NULL) a = "";
    if (b == NULL) b = "";
    for (;;) {
        while (isdigit((unsigned char)*a)) a++;
        while (isdigit((unsigned char)*b)) b++;
        if (*a != *b) return false;
        if (*a == '\0') return true;
        a++, b++;
    }
}

static bool same_machine(const struct row *a, const struct row *b) {
    return a->match.request.op == b->match.request.op && a->match.request.library == b->match.request.library &&
           same_text(a->text.library, b->text.library) && same_text(a->text.lib_version, b->text.lib_version) &&
           same_text(a->text.system, b->text.system) && same_text(a->text.device, b->text.device) &&
           same_words(a->text.notes, b->text.notes);
}

static bool same_series(const struct row *a, const struct row *b) {
    return a->match.request.nodes == b->match.request.nodes && a->match.request.ranks_per_node == b->match.request.ranks_per_node;
}

static enum dl_code read_rows(const struct dl_csv *csv, struct table *table, struct dl_err *err) {
    const int source = dl_csv_column(csv, "source");
    table->rows = dl_arena_alloc(table->arena, (size_t)csv->row_count + 1, sizeof *table->rows);
    if (table->rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int r = 0; r < csv->row_count; r++) {
        struct row *row = &table->rows[table->count++];
        *row = (struct row){.series = -1, .machine = -1};
        DL_TRY(dl_coll_row_read(csv, r, &row->text, err));
        row->match = dl_coll_match(&row->text);
        row->id = dl_arena_printf(table->arena, "%s:%d", csv->name, csv->row_lines[r]);
        row->source = source < 0 ? "" : csv->rows[r][source];
        if (row->match.system == NULL || !dl_known(row->text.size_bytes) || !(row->text.time_s > 0)) continue;
        row->machine = row->series = r;
        for (int k = r - 1; k >= 0; k--) {
            if (table->rows[k].machine < 0 || !same_machine(row, &table->rows[k])) continue;
            row->machine = table->rows[k].machine;
            if (same_series(row, &table->rows[k])) row->series = table->rows[k].series;
        }
    }
    for (int r = 0; r < table->count; r++) {
        struct row *row = &table->rows[r];
        for (int k = 0; k < table->count && row->series >= 0; k++) {
            if (table->rows[k].series != row->series) continue;
            row->sizes++;
            if (table->rows[k].text.size_bytes < row->text.size_bytes) row->order++;
        }
    }
    return DL_OK;
}

static int by_bytes(const void *a, const void *b) {
    const double x = ((const struct dl_coll_sample *)a)->bytes, y = ((const struct dl_coll_sample *)b)->bytes;
    return x < y ? -1 : x > y;
}

/* Samples of one series, but those of `fold` (-1: all); a size that was measured twice counts with the mean of logs. */
static enum dl_code measured_of(const struct table *table, int series, int fold, struct dl_coll_measured *out, struct dl_err *err) {
    const struct row *first = &table->rows[series];
    struct dl_coll_sample *samples = dl_arena_alloc(table->arena, (size_t)first->sizes + 1, sizeof *samples);
    if (samples == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    int count = 0, kept = 0;
    for (int r = series; r < table->count; r++) {
        const struct row *row = &table->rows[r];
        if (row->series != series || (fold >= 0 && row->order % FOLDS == fold)) continue;
        samples[count++] = (struct dl_coll_sample){row->text.size_bytes, row->text.time_s, NAN, NAN};
    }
    qsort(samples, (size_t)count, sizeof *samples, by_bytes);
    for (int i = 0; i < count; kept++) {
        double sum = 0;
        const int start = i;
        for (; i < count && !(samples[i].bytes > samples[start].bytes); i++) sum += log(samples[i].time_s);
        samples[kept] = (struct dl_coll_sample){samples[start].bytes, exp(sum / (i - start)), NAN, NAN};
    }
    *out = (struct dl_coll_measured){
        .library = dl_library_names[first->match.request.library], .operation = dl_collective_op_names[first->match.request.op],
        .nodes = first->match.request.nodes, .ranks = first->match.request.nodes * first->match.request.ranks_per_node,
        .samples = samples, .sample_count = kept,
    };
    return DL_OK;
}

/* What the profile of this fold would hold: *count rank sets, 0 with the reason. */
static enum dl_code profile_of(const struct table *table, const struct row *row, enum dl_calibrated mode,
                               struct dl_coll_measured **out, int *count, const char **why, struct dl_err *err) {
    int sets = 0;
    *count = 0;
    *why = mode == DL_CALIBRATED_SIZES ? "fewer than 5 sizes of its series are published" : "no other rank count of its machine is published";
    if (mode == DL_CALIBRATED_SIZES && row->sizes < FEWEST) return DL_OK;
    for (int r = 0; r < table->count; r++) sets += table->rows[r].machine == row->machine && table->rows[r].series == r;
    struct dl_coll_measured *list = dl_arena_alloc(table->arena, (size_t)sets + 1, sizeof *list);
    if (list == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (mode == DL_CALIBRATED_SIZES) DL_TRY(measured_of(table, row->series, row->order % FOLDS, &list[(*count)++], err));
    for (int r = 0; mode == DL_CALIBRATED_RANKS && r < table->count; r++) {
        const struct row *other = &table->rows[r];
        if (other->machine != row->machine || other->series != r || other->series == row->series) continue;
        if ((other->match.request.nodes > 1) != (row->match.request.nodes > 1)) continue; /* another kind of link */
        DL_TRY(measured_of(table, r, -1, &list[(*count)++], err));
    }
    *out = list;
    return DL_OK;
}

static enum dl_code predict_row(const struct table *table, const struct row *row, enum dl_calibrated mode, struct dl_compared *out,
                                struct dl_err *err) {
    const struct dl_system *loaded;
    struct dl_coll_measured *sets = NULL;
    struct dl_collective_time t;
    struct dl_err inner = {0};
    int count = 0;
    DL_TRY(profile_of(table, row, mode, &sets, &count, &out->why, err));
    out->skipped = count == 0;
    if (out->skipped) return DL_OK;
    DL_TRY(dl_data_system(table->data, row->match.system, table->arena, &loaded, err));
    struct dl_system system = *loaded;
    if (row->match.nccl_version != NULL) system.nccl_version = row->match.nccl_version;
    if (row->match.mpi != NULL) system.mpi = row->match.mpi;
    system.collectives = sets, system.collective_count = count;
    if (dl_collective_time(&system, &row->match.request, &t, &inner) != DL_OK) {
        out->skipped = true;
        out->why = dl_arena_strdup(table->arena, inner.message);
        return DL_OK;
    }
    out->why = NULL;
    out->predicted = t.time_s;
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    out->low = t.time_s * exp(-1.2816 * t.sigma_log), out->high = t.time_s * exp(1.2816 * t.sigma_log); /* 80 % */
    if (t.limit != NULL) out->bottleneck = strcmp(t.limit, "intra") == 0 ? "intra-link" : "inter-link";
    out->workload = dl_arena_printf(table->arena, "%s %s", dl_collective_op_names[row->match.request.op], t.algorithm);
    return DL_OK;
}

enum dl_code dl_compare_calibrated(const struct dl_data *data, const struct dl_csv *csv, enum dl_calibrated mode,
                                   struct dl_comparison *out, struct dl_err *err) {
    struct table table = {.data = data, .arena = out->arena};
    if (dl_csv_column(csv, "collective") < 0) return dl_fail(err, DL_ERR_USAGE, "--calibrated: %s is not a table of collectives", csv->name);
    DL_TRY(read_rows(csv, &table, err));
    for (int r = 0; r < table.count; r++) {
        const struct row *row = &table.rows[r];
        struct dl_compared *compared = dl_comparison_add(out);
        if (compared == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        *compared = (struct dl_compared){
            .id = row->id, .source = row->source, .system = row->match.system != NULL ? row->match.system : row->text.system,
            .framework = row->text.library, .unit = "s", .measured = row->text.time_s, .predicted = NAN, .error_pct = NAN,
            .low = NAN, .high = NAN, .devices = dl_known(row->text.ranks) ? (int64_t)row->text.ranks : 0,
        };
        if (row->series < 0) {
            compared->skipped = true;
            compared->why = row->match.system == NULL ? row->match.why : "no size and time";
            continue;
        }
        DL_TRY(predict_row(&table, row, mode, compared, err));
    }
    return DL_OK;
}
