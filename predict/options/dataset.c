/* dataset.c - reads datasets.csv. */
#include "predict/options/dataset.h"

#include <string.h>
#include <unistd.h>

#include "model/core/csv.h"

enum { MAX_DATASETS = 256 };

static enum dl_code positive(const struct dl_csv *csv, int row, const char *column, double *out,
                             struct dl_err *err) {
    const int c = dl_csv_column(csv, column);
    if (c < 0)
        return dl_fail_at(err, csv->name, 1, 1, column, "a table of datasets needs this column");
    DL_TRY(dl_csv_number(csv, row, c, out, err));
    if (*out > 0) return DL_OK;
    return dl_csv_fault(csv, row, c, err, "expected a number above 0, got \"%.60s\"",
                        csv->rows[row][c]);
}

/* JPEG images decode at the rate of ImageNet's: 7 ms of a core each (key "dali-blog"). */
static const double JPEG_S_PER_BYTE = 0.007 / 117000;

/* How samples are decoded: by the row's time, else JPEG images by their bytes. */
static enum dl_code read_decoding(const struct dl_csv *csv, int row, struct dl_plan *plan,
                                  struct dl_err *err) {
    const int jpeg = dl_csv_column(csv, "jpeg"), own = dl_csv_column(csv, "decode_s_per_sample");
    const char *used = jpeg < 0 ? "" : csv->rows[row][jpeg];
    if (strcmp(used, "") != 0 && strcmp(used, "crop") != 0 && strcmp(used, "whole") != 0)
        return dl_csv_fault(csv, row, jpeg, err,
                            "expected crop (a random part is used), whole or nothing, got "
                            "\"%.60s\"",
                            used);
    plan->input.cropped = strcmp(used, "crop") == 0;
    if (used[0] == 0 || (own >= 0 && csv->rows[row][own][0] != 0))
        return positive(csv, row, "decode_s_per_sample", &plan->input.decode_s_per_sample, err);
    plan->input.decode_s_per_sample = plan->input.sample_bytes * JPEG_S_PER_BYTE;
    return DL_OK;
}

/* Names that a message lists, and whether there is the one that was looked for. */
struct found {
    bool found;
    const char *names[MAX_DATASETS + 2];
    int count;
};

/* Fills the plan from the row of that name. */
static enum dl_code find(const struct dl_data *data, const char *name, struct dl_arena *arena,
                         struct dl_plan *plan, struct found *out, struct dl_err *err) {
    for (int d = 0; d < data->directory_count; d++) {
        const char *path = dl_arena_printf(arena, "%s/datasets.csv", data->directories[d]);
        struct dl_csv csv;
        if (access(path, F_OK) != 0) continue;
        DL_TRY(dl_data_csv(data, path, arena, &csv, err));
        const int column = dl_csv_column(&csv, "name");
        if (column < 0)
            return dl_fail_at(err, path, 1, 1, "name", "a table of datasets needs this column");
        for (int r = 0; r < csv.row_count; r++) {
            if (strcmp(csv.rows[r][column], name) == 0) {
                out->found = true;
                DL_TRY(positive(&csv, r, "samples", &plan->input.dataset_samples, err));
                DL_TRY(positive(&csv, r, "sample_bytes", &plan->input.sample_bytes, err));
                return read_decoding(&csv, r, plan, err);
            }
            if (out->count < MAX_DATASETS) out->names[out->count++] = csv.rows[r][column];
        }
    }
    return DL_OK;
}

enum dl_code dl_dataset_usual(const struct dl_data *data, const struct dl_workload *workload,
                              struct dl_arena *arena, struct dl_plan *plan, bool *found,
                              struct dl_err *err) {
    struct found row = {.count = 0};
    if (workload->dataset != NULL) DL_TRY(find(data, workload->dataset, arena, plan, &row, err));
    *found = row.found;
    return DL_OK;
}

enum dl_code dl_dataset_apply(const struct dl_data *data, const char *name, struct dl_arena *arena,
                              struct dl_plan *plan, struct dl_err *err) {
    struct found row = {.names = {"synthetic"}, .count = 1};
    plan->input.synthetic = strcmp(name, "synthetic") == 0;
    if (plan->input.synthetic) return DL_OK;
    DL_TRY(find(data, name, arena, plan, &row, err));
    if (row.found) return DL_OK;
    row.names[row.count] = NULL;
    const char *near = dl_suggest(name, row.names), *all = "synthetic";
    for (int i = 1; i < row.count; i++) all = dl_arena_printf(arena, "%s, %s", all, row.names[i]);
    return dl_fail(err, DL_ERR_USAGE, "--dataset: no dataset \"%s\"; %s%s%sthere are %s", name,
                   near != NULL ? "did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "? " : "", all);
}
