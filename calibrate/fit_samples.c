/* fit_samples.c - kernel CSV files (DeepBench's columns) to samples, and all surfaces of one device from them.
 * Not here: the fit itself (fit_kernel.c).
 */
#include <math.h>
#include <string.h>

#include "calibrate/fit_kernel.h"
#include "model/csv.h"

/* Names in DeepBench's device column and the device files that they are (hosts and boards: data/SOURCES.md). */
static const struct {
    const char *column, *device;
} DEVICES[] = {
    {"V100", "v100_sxm2_16"}, {"P100", "p100_pcie16"},         {"T4", "t4"},
    {"1080Ti", "gtx1080ti"},  {"TitanXp", "titanxp"},          {"TitanX_Pascal", "titanx_pascal"},
    {"M40", "m40"},           {"TitanX", "titanx_maxwell"},    {"KNL7250", "knl7250"},
};
enum { DEVICE_COUNT = sizeof DEVICES / sizeof DEVICES[0] };

const char *dl_fit_device_of(const char *device_column)
{
    for (int i = 0; i < DEVICE_COUNT; i++)
        if (strcmp(DEVICES[i].column, device_column) == 0) return DEVICES[i].device;
    return NULL;
}

const char *dl_fit_column_of(const char *device_name)
{
    for (int i = 0; i < DEVICE_COUNT; i++)
        if (strcmp(DEVICES[i].device, device_name) == 0) return DEVICES[i].column;
    return NULL;
}

static int index_of(const char *const *names, const char *word)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], word) == 0) return i;
    return -1;
}

/* Both of DeepBench's 16-bit kinds keep activations in 2 bytes and sum in fp32: "mixed" here. */
static int precision_of(const char *text)
{
    if (strncmp(text, "fp16_in_", 8) == 0) return DL_MIXED;
    return index_of(dl_precision_names, text);
}

enum column {
    COL_DEVICE, COL_PRECISION, COL_PASS, COL_TIME, COL_LIBRARY, COMMON_COLUMNS,
    COL_M = COMMON_COLUMNS, COL_GEMM_N, COL_K, COL_A_TRANS, COL_B_TRANS, GEMM_COLUMNS,
    COL_W = COMMON_COLUMNS, COL_H, COL_C, COL_N, COL_FILTERS, COL_S, COL_R, COL_PAD_W, COL_PAD_H, COL_STRIDE_W,
    COL_STRIDE_H, CONV_COLUMNS
};
static const char *const GEMM_HEADER[GEMM_COLUMNS] = {"device", "precision", "pass",    "time_ms", "library",
                                                      "m",      "n",         "k",       "a_trans", "b_trans"};
static const char *const CONV_HEADER[CONV_COLUMNS] = {
    "device", "precision", "pass",       "time_ms",    "library", "w",     "h",        "c",
    "n",      "k",         "s_filter_w", "r_filter_h", "pad_w",   "pad_h", "stride_w", "stride_h"};

/* Cells `first` to `end` - 1 as numbers; *complete is false when one is empty or no size. */
static enum dl_code read_sizes(const struct dl_csv *csv, int row, const int *columns, int first, int end,
                               double *values, bool *complete, struct dl_err *err)
{
    *complete = true;
    for (int c = first; c < end; c++) {
        DL_TRY(dl_csv_number(csv, row, columns[c], &values[c], err));
        if (isnan(values[c]) || values[c] < 0.0) *complete = false;
    }
    return DL_OK;
}

static enum dl_code read_gemm(const struct dl_csv *csv, int row, const int *columns, enum dl_pass pass,
                              struct dl_kernel *out, bool *complete, struct dl_err *err)
{
    double v[GEMM_COLUMNS];
    DL_TRY(read_sizes(csv, row, columns, COL_M, COL_A_TRANS, v, complete, err));
    if (!*complete) return DL_OK;
    *out = dl_kernel_gemm(pass, v[COL_M], v[COL_GEMM_N], v[COL_K], 1.0);
    out->a_trans = csv->rows[row][columns[COL_A_TRANS]][0] == 'T';
    out->b_trans = csv->rows[row][columns[COL_B_TRANS]][0] == 'T';
    return DL_OK;
}

static enum dl_code read_conv(const struct dl_csv *csv, int row, const int *columns, enum dl_pass pass,
                              struct dl_kernel *out, bool *complete, struct dl_err *err)
{
    double v[CONV_COLUMNS];
    DL_TRY(read_sizes(csv, row, columns, COL_W, CONV_COLUMNS, v, complete, err));
    if (!*complete) return DL_OK;
    const double in[DL_DIMS] = {1.0, v[COL_H], v[COL_W]}, kernel[DL_DIMS] = {1.0, v[COL_R], v[COL_S]};
    const double stride[DL_DIMS] = {1.0, v[COL_STRIDE_H], v[COL_STRIDE_W]};
    const double pad[DL_DIMS] = {0.0, v[COL_PAD_H], v[COL_PAD_W]}, dilation[DL_DIMS] = {1.0, 1.0, 1.0};
    *out = dl_kernel_conv(pass, v[COL_N], v[COL_C], v[COL_FILTERS], 1.0, in, kernel, stride, pad, dilation);
    return DL_OK;
}

static enum dl_code find_columns(const struct dl_csv *csv, const char *const *names, int count, int *columns,
                                 struct dl_err *err)
{
    for (int c = 0; c < count; c++) {
        columns[c] = dl_csv_column(csv, names[c]);
        if (columns[c] < 0)
            return dl_fail_at(err, csv->name, 1, 0, names[c], "a table of kernel times needs the column \"%s\"",
                              names[c]);
    }
    return DL_OK;
}

enum dl_code dl_fit_read_samples(const char *csv_path, const char *device_column, struct dl_arena *arena,
                                 struct dl_kernel_sample **samples_out, size_t *n_out, const char **library_out,
                                 struct dl_err *err)
{
    static const double S_PER_MS = 1e-3;
    struct dl_csv csv;
    DL_TRY(dl_csv_read(csv_path, arena, &csv, err));
    bool conv = dl_csv_column(&csv, "s_filter_w") >= 0;
    int columns[CONV_COLUMNS];
    DL_TRY(find_columns(&csv, conv ? CONV_HEADER : GEMM_HEADER, conv ? (int)CONV_COLUMNS : (int)GEMM_COLUMNS, columns,
                        err));
    struct dl_kernel_sample *samples = dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *samples);
    if (samples == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading %s", csv_path);
    size_t n = 0;
    const char *library = NULL;
    for (int row = 0; row < csv.row_count; row++) {
        const char *const *cells = csv.rows[row];
        if (device_column != NULL && strcmp(cells[columns[COL_DEVICE]], device_column) != 0) continue;
        int precision = precision_of(cells[columns[COL_PRECISION]]);
        int pass = index_of(dl_pass_names, cells[columns[COL_PASS]]);
        if (precision < 0 || pass < 0) {
            const char *key = precision < 0 ? "precision" : "pass";
            return dl_fail_at(err, csv_path, csv.row_lines[row], 0, key, "unknown %s \"%s\"", key,
                              cells[columns[precision < 0 ? COL_PRECISION : COL_PASS]]);
        }
        double time_ms;
        bool complete;
        DL_TRY(dl_csv_number(&csv, row, columns[COL_TIME], &time_ms, err));
        if (isnan(time_ms) || time_ms <= 0.0) continue;
        struct dl_kernel_sample *sample = &samples[n];
        DL_TRY((conv ? read_conv : read_gemm)(&csv, row, columns, (enum dl_pass)pass, &sample->kernel, &complete, err));
        if (!complete || !(sample->kernel.flop > 0.0)) continue;
        sample->precision = (enum dl_precision)precision;
        sample->time_s = time_ms * S_PER_MS;
        library = cells[columns[COL_LIBRARY]];
        n++;
    }
    *samples_out = samples;
    *n_out = n;
    if (library_out != NULL) *library_out = library;
    return DL_OK;
}

static enum dl_code join_samples(const char *const *csv_paths, size_t csv_count, const char *device_column,
                                 struct dl_arena *arena, struct dl_kernel_sample **out, size_t *n_out,
                                 const char **library, struct dl_err *err)
{
    struct dl_kernel_sample *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < csv_count; i++) {
        struct dl_kernel_sample *part = NULL;
        size_t count = 0;
        const char *name = NULL;
        DL_TRY(dl_fit_read_samples(csv_paths[i], device_column, arena, &part, &count, &name, err));
        struct dl_kernel_sample *joined = dl_arena_alloc(arena, n + count, sizeof *joined);
        if (joined == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading kernel times");
        if (n > 0) memcpy(joined, all, n * sizeof *joined);
        if (count > 0) memcpy(joined + n, part, count * sizeof *joined);
        all = joined;
        n += count;
        if (name != NULL) *library = *library == NULL ? name : dl_arena_printf(arena, "%s; %s", *library, name);
    }
    *out = all;
    *n_out = n;
    return DL_OK;
}

/* Key of data/SOURCES.md for DeepBench's tables. */
static const char SOURCE[] = "deepbench";

enum dl_code dl_fit_kernel_files(const char *const *csv_paths, size_t csv_count, const struct dl_device *device,
                                 struct dl_arena *arena, struct dl_surface_set *set,
                                 struct dl_fit_report_row **rows, size_t *row_count, struct dl_err *err)
{
    enum { COMBINATIONS = DL_OPS * DL_PASSES * DL_PRECISIONS };
    const char *column = dl_fit_column_of(device->name), *library = NULL;
    if (column == NULL) column = device->name; /* a table of our own names devices as their files do */
    struct dl_kernel_sample *samples = NULL;
    size_t n = 0;
    DL_TRY(join_samples(csv_paths, csv_count, column, arena, &samples, &n, &library, err));
    if (n == 0)
        return dl_fail(err, DL_ERR_INPUT,
                       "the tables have no kernel times of device %s (\"%s\" in their column device)", device->name,
                       column);
    struct dl_surface *surfaces = dl_arena_alloc(arena, COMBINATIONS, sizeof *surfaces);
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
        DL_TRY(dl_fit_surface(samples, n, device, row.op, row.pass, row.precision, arena, &surfaces[count],
                              &row.quality, err));
        surfaces[count].source = SOURCE;
        report[count++] = row;
    }
    *set = (struct dl_surface_set){.device = device->name, .library = library, .source = SOURCE, .surfaces = surfaces,
                                   .surface_count = count};
    *rows = report;
    *row_count = (size_t)count;
    return DL_OK;
}
