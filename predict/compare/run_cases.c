/* run_cases.c - see run_cases.h. */
#include "predict/compare/run_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/compare/compare_runs.h"

/* Copies what outlives the stream. */
static void keep_header(const struct dl_csv *header, struct dl_arena *arena, struct dl_csv *out) {
    const char **names = dl_arena_alloc(arena, (size_t)header->column_count, sizeof *names);
    *out = (struct dl_csv){.name = dl_arena_strdup(arena, header->name),
                           .header = names,
                           .column_count = header->column_count};
    for (int c = 0; c < header->column_count; c++) {
        names[c] = dl_arena_strdup(arena, header->header[c]);
    }
}

enum dl_code dl_run_cases_open(const char *path, struct dl_arena *arena, struct dl_run_cases *out,
                               bool *is_runs_out, struct dl_err *err) {
    struct dl_csv_stream stream;
    bool regular;
    *out = (struct dl_run_cases){.any = false};
    *is_runs_out = false;
    DL_TRY(dl_csv_open(path, &stream, &regular, err));
    if (!regular) return DL_OK;
    *is_runs_out = dl_compare_is_runs(&stream.header);
    out->file = stream.file;
    if (*is_runs_out) keep_header(&stream.header, arena, &out->csv);
    dl_csv_close(&stream);
    return DL_OK;
}

/* Columns that distinguish cases, in the order of the header. */
struct key_columns {
    int *list;
    int count;
    int id, value; /* -1: not in the table */
};

static bool tells_apart(const char *column) {
    struct dl_run_plan_column plan;
    static const char *const of_rows[] = {"id", "value", "notes"};
    for (int i = 0; i < 3; i++)
        if (strcmp(column, of_rows[i]) == 0) return false;
    for (const struct dl_field *f = dl_run_row_schema.fields; f->key != NULL; f++)
        if (strcmp(f->key, column) == 0) return true;
    for (int i = 0; dl_run_plan_column(i, &plan); i++)
        if (strcmp(plan.name, column) == 0) return true;
    return false;
}

static void find_keys(const struct dl_csv *header, struct dl_arena *arena,
                      struct key_columns *out) {
    out->list = dl_arena_alloc(arena, (size_t)header->column_count, sizeof *out->list);
    out->count = 0;
    for (int c = 0; c < header->column_count; c++)
        if (tells_apart(header->header[c])) out->list[out->count++] = c;
    out->id = dl_csv_column(header, "id");
    out->value = dl_csv_column(header, "value");
}

/* The value of a cell that compare takes as a measurement; NAN for any other text: such a row is a
 * separate case, and checked for a missing or wrong value when cases are read. */
static double measured_value(const char *cell) {
    const struct dl_field *field = &dl_run_row_schema.fields[DL_RUN_VALUE];
    char *end;
    const double value = strtod(cell, &end);
    if (cell[0] == 0 || *end != 0 || strspn(cell, "+-.0123456789eE") != strlen(cell)) return NAN;
    return isfinite(value) && value >= field->min && value <= field->max ? value : NAN;
}

/* The cases so far, and a hash table over them. */
struct builder {
    struct key_columns keys;
    struct dl_arena *arena;
    struct dl_run_cases *out;
    const char *const **rows;
    uint64_t *hashes;
    int *lines;
    int64_t *offsets;
    int *slots; /* -1: free */
    size_t slot_count, capacity;
};

static uint64_t hash_row(const struct key_columns *keys, const char *const *row, bool has_value) {
    uint64_t hash = DL_HASH_START;
    for (int i = 0; i < keys->count; i++) hash = dl_hash_text(hash, row[keys->list[i]]);
    return has_value || keys->value < 0 ? hash : dl_hash_text(hash, row[keys->value]);
}

static bool same_case(const struct key_columns *keys, const char *const *known,
                      const char *const *row, bool has_value) {
    for (int i = 0; i < keys->count; i++)
        if (strcmp(known[keys->list[i]], row[keys->list[i]]) != 0) return false;
    if (keys->value < 0) return true;
    const bool known_has_value = dl_known(measured_value(known[keys->value]));
    return known_has_value == has_value &&
           (has_value || strcmp(known[keys->value], row[keys->value]) == 0);
}

static size_t slot_of(const struct builder *b, uint64_t hash) {
    return (size_t)(hash ^ hash >> 32) & (b->slot_count - 1);
}

/* Doubles the capacity; the old block stays in the arena. */
static void grow(struct builder *b) {
    const size_t count = (size_t)b->out->csv.row_count,
                 capacity = b->capacity == 0 ? 256 : 2 * b->capacity;
    struct builder wide = *b;
    wide.rows = dl_arena_alloc(b->arena, capacity, sizeof *wide.rows);
    wide.hashes = dl_arena_alloc(b->arena, capacity, sizeof *wide.hashes);
    wide.lines = dl_arena_alloc(b->arena, capacity, sizeof *wide.lines);
    wide.offsets = dl_arena_alloc(b->arena, capacity, sizeof *wide.offsets);
    wide.slots = dl_arena_alloc(b->arena, 2 * capacity, sizeof *wide.slots);
    wide.capacity = capacity;
    wide.slot_count = 2 * capacity;
    for (size_t i = 0; i < wide.slot_count; i++) wide.slots[i] = -1;
    for (size_t i = 0; i < count; i++) {
        wide.rows[i] = b->rows[i];
        wide.hashes[i] = b->hashes[i];
        wide.lines[i] = b->lines[i];
        wide.offsets[i] = b->offsets[i];
        size_t slot = slot_of(&wide, wide.hashes[i]);
        while (wide.slots[slot] >= 0) slot = (slot + 1) & (wide.slot_count - 1);
        wide.slots[slot] = (int)i;
    }
    *b = wide;
}

/* A copy of the cells that are read later; the others are empty. */
static const char *const *keep_cells(const struct builder *b, const char *const *row) {
    const int columns = b->out->csv.column_count;
    const char **kept = dl_arena_alloc(b->arena, (size_t)columns, sizeof *kept);
    for (int c = 0; c < columns; c++) kept[c] = "";
    for (int i = -2; i < b->keys.count; i++) {
        const int c = i == -2 ? b->keys.id : i == -1 ? b->keys.value : b->keys.list[i];
        if (c < 0 || row[c][0] == 0) continue;
        kept[c] = dl_arena_strdup(b->arena, row[c]);
    }
    return kept;
}

/* The number of the row's case, a new one if need be. */
static int case_of(struct builder *b, const struct dl_csv *chunk, int row, bool has_value) {
    const char *const *cells = chunk->rows[row];
    const uint64_t hash = hash_row(&b->keys, cells, has_value);
    if ((size_t)b->out->csv.row_count == b->capacity) grow(b);
    size_t slot = slot_of(b, hash);
    for (; b->slots[slot] >= 0; slot = (slot + 1) & (b->slot_count - 1)) {
        const int known = b->slots[slot];
        if (b->hashes[known] == hash && same_case(&b->keys, b->rows[known], cells, has_value))
            return known;
    }
    const int added = b->out->csv.row_count;
    b->rows[added] = keep_cells(b, cells);
    b->hashes[added] = hash;
    b->lines[added] = chunk->row_lines[row];
    b->offsets[added] = chunk->row_offsets[row];
    b->slots[slot] = added;
    b->out->csv.row_count++;
    return added;
}

/* *wrong_out: the rest need not be read: a value is no number, which fails later with its place.
 */
static enum dl_code add_chunk(struct builder *b, const struct dl_filters *filters,
                              const struct dl_csv *chunk, bool *wrong_out, struct dl_err *err) {
    for (int row = 0; row < chunk->row_count && !*wrong_out; row++) {
        b->out->any = true;
        if (!dl_filters_pass(filters, chunk, row)) continue;
        const char *cell = b->keys.value >= 0 ? chunk->rows[row][b->keys.value] : "";
        const double value = measured_value(cell);
        const int of = case_of(b, chunk, row, dl_known(value));
        DL_TRY(dl_row_list_add(&b->out->rows, of, value, b->arena, err));
        *wrong_out = cell[0] != 0 && !dl_known(value);
    }
    return DL_OK;
}

/* Opens the table again, if it is what it was: the cells that are asked for are there. */
static enum dl_code open_again(const struct dl_run_cases *cases, struct dl_csv_stream *out,
                               struct dl_err *err) {
    const struct dl_file_reader *then = &cases->file, *now = &out->file;
    bool regular = false;
    DL_TRY(dl_csv_open(then->path, out, &regular, err));
    if (regular && now->device == then->device && now->inode == then->inode &&
        now->size_bytes == then->size_bytes && now->changed_ns == then->changed_ns &&
        out->header.column_count == cases->csv.column_count)
        return DL_OK;
    if (regular) dl_csv_close(out);
    return dl_fail_at(err, then->path, 0, 0, NULL, "changed while it was read");
}

enum dl_code dl_run_cases_read(struct dl_run_cases *cases, const struct dl_filters *filters,
                               struct dl_arena *arena, struct dl_err *err) {
    struct dl_csv_stream stream;
    struct dl_csv chunk;
    bool wrong = false;
    struct builder b = {.arena = arena, .out = cases};
    find_keys(&cases->csv, arena, &b.keys);
    DL_TRY(open_again(cases, &stream, err));
    enum dl_code code;
    do {
        code = dl_csv_next(&stream, &chunk, err);
        if (code == DL_OK) code = add_chunk(&b, filters, &chunk, &wrong, err);
    } while (code == DL_OK && chunk.row_count > 0 && !wrong);
    dl_csv_close(&stream);
    cases->csv.rows = b.rows;
    cases->csv.row_lines = b.lines;
    cases->csv.row_offsets = b.offsets;
    return code;
}

enum dl_code dl_run_cases_names(const struct dl_run_cases *cases, const struct dl_filters *filters,
                                enum dl_code (*visit)(void *user, const char *id,
                                                      struct dl_err *err),
                                void *user, struct dl_err *err) {
    struct dl_csv_stream stream;
    struct dl_csv chunk;
    int left = cases->rows.count;
    const int id = dl_csv_column(&cases->csv, "id");
    DL_TRY(open_again(cases, &stream, err));
    enum dl_code code = DL_OK;
    while (code == DL_OK) {
        code = dl_csv_next(&stream, &chunk, err);
        if (code != DL_OK || chunk.row_count == 0) break;
        for (int row = 0; row < chunk.row_count && left > 0 && code == DL_OK; row++) {
            if (!dl_filters_pass(filters, &chunk, row)) continue;
            left--;
            code = visit(user, id >= 0 ? chunk.rows[row][id] : "", err);
        }
    }
    dl_csv_close(&stream);
    if (code == DL_OK && left > 0)
        return dl_fail_at(err, cases->file.path, 0, 0, NULL, "changed while it was read");
    return code;
}
