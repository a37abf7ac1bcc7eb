/* kernel_match.c - DeepBench's columns. Its sizes: GEMM m n k with transposes; convolution input w
 * h c n, filters k of s x r. Both of its 16-bit kinds keep operands in 2 bytes and sum in fp32,
 * which is "mixed" here. */
#include "model/machine/kernel_match.h"

#include <math.h>
#include <string.h>

#include "model/core/json.h"
#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_table.h"

/* Names in DeepBench's device column and the device files that they are; NULL: none (hosts and
 * boards: data/SOURCES.md). */
static const struct {
    const char *column, *device;
} devices[] = {
    {"V100", "v100_sxm2_16"}, {"P100", "p100_pcie16"},      {"T4", "t4"},
    {"1080Ti", "gtx1080ti"},  {"TitanXp", "titanxp"},       {"TitanX_Pascal", "titanx_pascal"},
    {"M40", "m40"},           {"TitanX", "titanx_maxwell"}, {"KNL7250", "knl7250"},
    {"AMD_MI25", NULL},       {"AMD_VegaFE", NULL},
};

const char *dl_kernel_match_device(const char *column) {
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        if (strcmp(devices[i].column, column) == 0) return devices[i].device;
    }
    return column;
}

bool dl_kernel_header(const struct dl_csv *csv) {
    return dl_kernel_table_header(csv) ||
           (dl_csv_column(csv, "time_ms") >= 0 && dl_csv_column(csv, "pass") >= 0 &&
            dl_csv_column(csv, "device") >= 0);
}

static int find(const char *const *names, const char *word) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) return i;
    }
    return -1;
}

/* Numbers of the named columns, up to NULL; *complete is false when one is empty. */
static enum dl_code read_sizes(const struct dl_csv *csv, int row, const char *const *names,
                               double *values, bool *complete, struct dl_err *err) {
    *complete = true;
    for (int i = 0; names[i] != NULL; i++) {
        const int column = dl_csv_column(csv, names[i]);
        if (column < 0)
            return dl_fail_at(err, csv->name, 1, 0, names[i],
                              "expected this column in a table of kernel times");
        DL_TRY(dl_kernel_number(csv, row, names[i], &values[i], err));
        if (isnan(values[i])) *complete = false;
    }
    return DL_OK;
}

static enum dl_code transposed(const struct dl_csv *csv, int row, const char *name, bool *out,
                               struct dl_err *err) {
    double storage;
    DL_TRY(dl_kernel_number(csv, row, name, &storage, err));
    *out = storage > 0; /* "N", "T" */
    return DL_OK;
}

static enum dl_code read_gemm(const struct dl_csv *csv, int row, enum dl_pass pass,
                              struct dl_kernel_row *out, struct dl_err *err) {
    static const char *const names[] = {"m", "n", "k", NULL};
    double v[3];
    bool complete = false;
    DL_TRY(read_sizes(csv, row, names, v, &complete, err));
    if (!complete) {
        out->why = "a size is not given";
        return DL_OK;
    }
    out->kernel = dl_kernel_gemm(pass, v[0], v[1], v[2], 1);
    DL_TRY(transposed(csv, row, "a_trans", &out->kernel.a_trans, err));
    return transposed(csv, row, "b_trans", &out->kernel.b_trans, err);
}

static enum dl_code read_conv(const struct dl_csv *csv, int row, enum dl_pass pass,
                              struct dl_kernel_row *out, struct dl_err *err) {
    enum { W, H, C, N, K, S, R, PAD_W, PAD_H, STRIDE_W, STRIDE_H, SIZES };
    static const char *const names[SIZES + 1] = {"w",     "h",          "c",          "n",
                                                 "k",     "s_filter_w", "r_filter_h", "pad_w",
                                                 "pad_h", "stride_w",   "stride_h"};
    double v[SIZES] = {0};
    bool complete = false;
    DL_TRY(read_sizes(csv, row, names, v, &complete, err));
    if (!complete) {
        out->why = "a size is not given";
        return DL_OK;
    }
    const double in[DL_DIMS] = {1, v[H], v[W]}, kernel[DL_DIMS] = {1, v[R], v[S]};
    const double stride[DL_DIMS] = {1, v[STRIDE_H], v[STRIDE_W]},
                 pad[DL_DIMS] = {0, v[PAD_H], v[PAD_W]};
    const double dilation[DL_DIMS] = {1, 1, 1};
    out->kernel = dl_kernel_conv(
        pass, &(struct dl_conv_shape){v[N], v[C], v[K], 1, in, kernel, stride, pad, dilation});
    return DL_OK;
}

enum dl_code dl_kernel_row_read(const struct dl_csv *csv, int row, struct dl_kernel_row *out,
                                struct dl_err *err) {
    static const char *const required[] = {"device", "precision", "pass", "time_ms"};
    int columns[4];
    if (dl_kernel_table_header(csv)) return dl_kernel_table_row_read(csv, row, out, err);
    for (int i = 0; i < 4; i++) {
        columns[i] = dl_csv_column(csv, required[i]);
        if (columns[i] < 0)
            return dl_fail_at(err, csv->name, 1, 0, required[i],
                              "expected this column in a table of kernel times");
    }
    const char *const *cells = csv->rows[row];
    double time_ms;
    *out = (struct dl_kernel_row){.device = cells[columns[0]]};
    DL_TRY(dl_kernel_number(csv, row, "time_ms", &time_ms, err));
    DL_TRY(dl_kernel_deepbench_op(csv, row, err));
    out->measured_s = time_ms * 1e-3;
    const bool conv = dl_csv_column(csv, "s_filter_w") >= 0;
    if (!conv && dl_csv_column(csv, "m") < 0) {
        out->why = "recurrent kernels are not in this version";
        return DL_OK;
    }
    const bool half = strncmp(cells[columns[1]], "fp16_in_", 8) == 0;
    const int precision = half ? (int)DL_MIXED : find(dl_precision_names, cells[columns[1]]);
    const int pass = find(dl_pass_names, cells[columns[2]]);
    if (precision < 0 || pass < 0) {
        const int wrong = precision < 0 ? 1 : 2;
        return dl_csv_fault(csv, row, columns[wrong], err, "unknown %s \"%s\"", required[wrong],
                            cells[columns[wrong]]);
    }
    out->precision = (enum dl_precision)precision;
    if (!(out->measured_s > 0)) {
        out->why = "no time is given";
        return DL_OK;
    }
    return conv ? read_conv(csv, row, (enum dl_pass)pass, out, err)
                : read_gemm(csv, row, (enum dl_pass)pass, out, err);
}
