/* import_nsys_csv.c - see import_nsys.h. */
#include "import/import_nsys.h"

#include <math.h>
#include <string.h>

#include "import/import_trace_reader.h"
#include "model/core/csv.h"

static const char heading[] = "Range,";
static const char total_column[] = "Total Proj Time (ns)", count_column[] = "Range Instances";

const char *dl_nsys_table(const char *text, size_t length) {
    const char *end = text + length;
    for (const char *line = text; line != NULL && line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t width = (size_t)((stop != NULL ? stop : end) - line);
        if (width >= sizeof heading - 1 && strncmp(line, heading, sizeof heading - 1) == 0) {
            for (size_t i = 0; i + sizeof total_column - 1 <= width; i++)
                if (strncmp(line + i, total_column, sizeof total_column - 1) == 0) return line;
        }
        line = stop != NULL ? stop + 1 : NULL;
    }
    return NULL;
}

struct row {
    const char *layer; /* NULL: another range */
    int part;
    double total_ns, count;
    bool update;
};

static enum dl_code read_row(const struct dl_csv *csv, int i, const int *at, struct dl_arena *arena,
                             struct row *out, struct dl_err *err) {
    const char *range = csv->rows[i][at[0]];
    struct dl_trace_event event = {.kind = DL_TRACE_NESTED};
    size_t length = 0;
    *out = (struct row){.layer = NULL};
    range += range[0] == ':'; /* of no domain */
    out->update = dl_trace_is_update(range);
    const bool is_layer = dl_trace_layer_range(range, &event, &length);
    if (!is_layer && !out->update) return DL_OK;
    DL_TRY(dl_csv_number(csv, i, at[1], &out->total_ns, err));
    DL_TRY(dl_csv_number(csv, i, at[2], &out->count, err));
    if (!(out->total_ns >= 0 && out->total_ns <= 1e15) || !(out->count >= 1 && out->count <= 1e9))
        return dl_fail_at(err, csv->name, csv->row_lines[i], 1, total_column,
                          "expected a time from 0 to 1e15 ns, and instances of at least 1");
    if (is_layer) out->layer = dl_arena_strndup(arena, event.layer, length);
    out->part = event.kind == DL_TRACE_BACKWARD;
    return DL_OK;
}

/* The number of instances that most layers have. */
static double usual_count(const struct row *rows, int count) {
    double best = 1;
    int most = 0;
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int k = 0; k < count; k++)
            same += rows[k].layer != NULL && rows[k].count == rows[i].count;
        if (rows[i].layer != NULL && same > most) most = same, best = rows[i].count;
    }
    return best;
}

enum dl_code dl_nsys_csv(const char *name, const char *text, size_t length, int64_t steps,
                         struct dl_arena *arena, struct dl_trace_times *out, struct dl_err *err) {
    enum { MOST_ROWS = 20000 };
    struct dl_csv csv;
    DL_TRY(dl_csv_parse(name, text, length, arena, &csv, err));
    const int at[] = {dl_csv_column(&csv, "Range"), dl_csv_column(&csv, total_column),
                      dl_csv_column(&csv, count_column)};
    if (at[0] < 0 || at[1] < 0 || at[2] < 0 || csv.row_count > MOST_ROWS)
        return dl_fail_at(err, name, 1, 1, count_column,
                          "expected the columns Range, %s and %s, and at most %d rows",
                          total_column, count_column, MOST_ROWS);
    struct row *rows = dl_arena_alloc(arena, (size_t)csv.row_count + 1, sizeof *rows);
    struct dl_trace_sample *samples =
        dl_arena_alloc(arena, (size_t)csv.row_count + 1, sizeof *samples);
    int64_t count = 0;
    for (int i = 0; i < csv.row_count; i++) DL_TRY(read_row(&csv, i, at, arena, &rows[i], err));
    const double iterations = steps > 0 ? (double)steps : usual_count(rows, csv.row_count);
    double update_s = NAN;
    for (int i = 0; i < csv.row_count; i++) {
        const double time_us = 1e-3 * rows[i].total_ns / iterations;
        if (rows[i].update) update_s = (dl_known(update_s) ? update_s : 0) + 1e-6 * time_us;
        if (rows[i].layer == NULL) continue;
        samples[count++] = (struct dl_trace_sample){rows[i].layer, i, rows[i].part, time_us};
    }
    if (count == 0)
        return dl_fail_at(err, name, 1, 1, "Range",
                          "expected ranges of NVTX named layer:NAME:forward; there are none");
    dl_trace_sum_table(samples, count, update_s, arena, out);
    out->steps = (int64_t)iterations;
    out->on_device = true;
    return DL_OK;
}
