/* fit_samples.c - reads kernel CSV files (DeepBench's columns) and fits all kernel-time models of a
 * device. Not here: the fit itself (fit_kernel.c). */
#include <math.h>
#include <string.h>

#include "calibrate/fits/fit_kernel.h"
#include "model/base/csv.h"
#include "model/hardware/kernel_match.h"

enum dl_code dl_fit_read_samples(const char *csv_path, const char *device, struct dl_arena *arena,
                                 struct dl_kernel_sample **samples_out, size_t *n_out,
                                 const char **library_out, struct dl_err *err) {
    struct dl_csv csv;
    DL_TRY(dl_csv_read(csv_path, arena, &csv, err));
    struct dl_kernel_sample *samples =
        dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *samples);
    if (samples == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading %s", csv_path);
    const int library = dl_csv_column(&csv, "library");
    size_t n = 0;
    *library_out = NULL;
    for (int row = 0; row < csv.row_count; row++) {
        struct dl_kernel_row read;
        DL_TRY(dl_kernel_row_read(&csv, row, &read, err));
        const char *name = dl_kernel_match_device(read.device);
        if (device != NULL && (name == NULL || strcmp(name, device) != 0)) continue;
        if (read.why != NULL || !(read.kernel.flop > 0.0)) continue;
        samples[n++] = (struct dl_kernel_sample){read.kernel, read.precision, read.measured_s};
        if (library >= 0) *library_out = csv.rows[row][library];
    }
    *samples_out = samples;
    *n_out = n;
    return DL_OK;
}

static enum dl_code join_samples(const char *const *csv_paths, size_t csv_count, const char *device,
                                 struct dl_arena *arena, struct dl_kernel_sample **out,
                                 size_t *n_out, const char **library, struct dl_err *err) {
    struct dl_kernel_sample *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < csv_count; i++) {
        struct dl_kernel_sample *part = NULL;
        size_t count = 0;
        const char *name = NULL;
        DL_TRY(dl_fit_read_samples(csv_paths[i], device, arena, &part, &count, &name, err));
        struct dl_kernel_sample *joined = dl_arena_alloc(arena, n + count, sizeof *joined);
        if (joined == NULL)
            return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading kernel times");
        if (n > 0) memcpy(joined, all, n * sizeof *joined);
        if (count > 0) memcpy(joined + n, part, count * sizeof *joined);
        all = joined;
        n += count;
        if (name != NULL)
            *library = *library == NULL ? name : dl_arena_printf(arena, "%s; %s", *library, name);
    }
    *out = all;
    *n_out = n;
    return DL_OK;
}

/* Key of data/SOURCES.md for DeepBench's tables. */
static const char SOURCE[] = "deepbench";

enum dl_code dl_fit_kernel_files(const char *const *csv_paths, size_t csv_count,
                                 const struct dl_device *device, struct dl_arena *arena,
                                 struct dl_kernel_model_set *set, struct dl_fit_report_row **rows,
                                 size_t *row_count, struct dl_err *err) {
    enum { COMBINATIONS = DL_OPS * DL_PASSES * DL_PRECISIONS };
    const char *library = NULL;
    struct dl_kernel_sample *samples = NULL;
    size_t n = 0;
    DL_TRY(join_samples(csv_paths, csv_count, device->name, arena, &samples, &n, &library, err));
    if (n == 0)
        return dl_fail(err, DL_ERR_INPUT,
                       "no kernel times of device %s in the tables (column device)", device->name);
    struct dl_kernel_model *surfaces = dl_arena_alloc(arena, COMBINATIONS, sizeof *surfaces);
    struct dl_fit_report_row *report = dl_arena_alloc(arena, COMBINATIONS, sizeof *report);
    if (surfaces == NULL || report == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    int count = 0;
    for (int c = 0; c < COMBINATIONS; c++) {
        struct dl_fit_report_row row = {.precision = (enum dl_precision)(c % DL_PRECISIONS),
                                        .pass = (enum dl_pass)(c / DL_PRECISIONS % DL_PASSES),
                                        .op = (enum dl_op)(c / DL_PRECISIONS / DL_PASSES)};
        bool any = false;
        for (size_t i = 0; i < n && !any; i++)
            any = samples[i].kernel.op == row.op && samples[i].kernel.pass == row.pass &&
                  samples[i].precision == row.precision;
        if (!any) continue;
        DL_TRY(dl_fit_kernel_model(samples, n, device, row.op, row.pass, row.precision, arena,
                                   &surfaces[count], &row.quality, err));
        surfaces[count].source = SOURCE;
        report[count++] = row;
    }
    *set = (struct dl_kernel_model_set){.device = device->name,
                                        .library = library,
                                        .source = SOURCE,
                                        .kernel_models = surfaces,
                                        .kernel_model_count = count};
    *rows = report;
    *row_count = (size_t)count;
    return DL_OK;
}
