/* series.c - see series.h. */
#include "predict/compare/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/compare/row_system.h"

static bool same_text(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool same_machine(const struct dl_series_row *a, const struct dl_series_row *b) {
    return a->match.request.op == b->match.request.op &&
           a->match.request.library == b->match.request.library &&
           same_text(a->text.library, b->text.library) &&
           same_text(a->text.lib_version, b->text.lib_version) &&
           same_text(a->text.system, b->text.system) && same_text(a->text.device, b->text.device) &&
           same_text(a->text.series, b->text.series);
}

static bool same_ranks(const struct dl_series_row *a, const struct dl_series_row *b) {
    return a->match.request.nodes == b->match.request.nodes &&
           a->match.request.ranks_per_node == b->match.request.ranks_per_node;
}

static void number(struct dl_series *s, int r) {
    struct dl_series_row *row = &s->rows[r];
    row->machine = row->series = r;
    for (int k = r - 1; k >= 0; k--) {
        if (s->rows[k].machine < 0 || !same_machine(row, &s->rows[k])) continue;
        row->machine = s->rows[k].machine;
        if (same_ranks(row, &s->rows[k])) row->series = s->rows[k].series;
    }
}

enum dl_code dl_series_read(const struct dl_csv *csv, struct dl_arena *arena, struct dl_series *out,
                            struct dl_err *err) {
    const int source = dl_csv_column(csv, "source");
    *out = (struct dl_series){.arena = arena};
    out->rows = dl_arena_alloc(arena, (size_t)csv->row_count + 1, sizeof *out->rows);
    for (int r = 0; r < csv->row_count; r++) {
        struct dl_series_row *row = &out->rows[out->count++];
        *row = (struct dl_series_row){.series = -1, .machine = -1};
        DL_TRY(dl_coll_row_read(csv, r, &row->text, err));
        row->match = dl_coll_match(&row->text);
        row->id = dl_arena_printf(arena, "%s:%d", csv->name, csv->row_lines[r]);
        row->source = source < 0 ? "" : csv->rows[r][source];
        if (row->match.system != NULL && dl_known(row->text.size_bytes) && row->text.time_s > 0)
            number(out, r);
    }
    for (int r = 0; r < out->count; r++) {
        struct dl_series_row *row = &out->rows[r];
        for (int k = 0; k < out->count && row->series >= 0; k++) {
            if (out->rows[k].series != row->series) continue;
            row->sizes++;
            row->order += out->rows[k].text.size_bytes < row->text.size_bytes;
        }
    }
    return DL_OK;
}

static int by_bytes(const void *a, const void *b) {
    const double x = ((const struct dl_coll_sample *)a)->bytes,
                 y = ((const struct dl_coll_sample *)b)->bytes;
    return x < y ? -1 : x > y;
}

void dl_series_measured(const struct dl_series *series, int first, int fold,
                        struct dl_coll_measured *out) {
    const struct dl_series_row *head = &series->rows[first];
    struct dl_coll_sample *samples =
        dl_arena_alloc(series->arena, (size_t)head->sizes + 1, sizeof *samples);
    int count = 0, kept = 0;
    for (int r = first; r < series->count; r++) {
        const struct dl_series_row *row = &series->rows[r];
        if (row->series != first || (fold >= 0 && row->order % DL_SERIES_FOLDS == fold)) continue;
        samples[count++] =
            (struct dl_coll_sample){row->text.size_bytes, row->text.time_s, NAN, NAN};
    }
    qsort(samples, (size_t)count, sizeof *samples, by_bytes);
    for (int i = 0; i < count; kept++) {
        double sum = 0;
        const int start = i;
        for (; i < count && !(samples[i].bytes > samples[start].bytes); i++)
            sum += log(samples[i].time_s);
        samples[kept] =
            (struct dl_coll_sample){samples[start].bytes, exp(sum / (i - start)), NAN, NAN};
    }
    *out = (struct dl_coll_measured){
        .library = dl_library_names[head->match.request.library],
        .operation = dl_collective_op_names[head->match.request.op],
        .nodes = head->match.request.nodes,
        .ranks = head->match.request.nodes * head->match.request.ranks_per_node,
        .samples = samples,
        .sample_count = kept,
    };
}

enum dl_code dl_series_system(const struct dl_data *data, const struct dl_series_row *row,
                              struct dl_arena *arena, struct dl_system *out, const char **why_out,
                              struct dl_err *err) {
    const struct dl_system *loaded;
    DL_TRY(dl_row_system(data, row->match.system, NULL, arena, &loaded, why_out, err));
    if (loaded == NULL) return DL_OK;
    *out = *loaded;
    if (row->match.nccl_version != NULL) out->software.nccl_version = row->match.nccl_version;
    if (row->match.mpi != NULL) out->software.mpi = row->match.mpi;
    out->collectives = NULL, out->collective_count = 0;
    return DL_OK;
}
