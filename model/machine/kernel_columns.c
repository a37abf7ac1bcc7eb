/* kernel_columns.c - the columns of tables of kernel times: DeepBench's, and those by GPU. */
#include "model/machine/kernel_columns.h"

static const char *const passes[] = {"fwd",         "bwd",     "bwd_data", "bwd_filter",
                                     "bwd_weights", "fwd_bwd", "update",   NULL};
static const char *const storages[] = {"N", "T", NULL};

#define TEXT(name, text)                                                                           \
    { .key = name, .type = DL_FIELD_STRING, .help = text }
#define SIZE(name, text)                                                                           \
    { .key = name, .type = DL_FIELD_INTEGER, DL_RANGE(1, 1e10, DL_UNIT_COUNT), .help = text }
#define FROM_0(name, most, text)                                                                   \
    { .key = name, .type = DL_FIELD_INTEGER, DL_RANGE(0, most, DL_UNIT_COUNT), .help = text }
#define WORD(name, words, text)                                                                    \
    { .key = name, .type = DL_FIELD_CHOICE, .choices = words, .help = text }
#define TIME(name, least, most, text)                                                              \
    { .key = name, .type = DL_FIELD_NUMBER, DL_RANGE(least, most, DL_UNIT_NONE), .help = text }
static const struct dl_field columns[] = {
    TEXT("device", "DeepBench: device as published"),
    TEXT("gpu", "by GPU: a device or one of its aliases"),
    TEXT("op", "operation; of a GEMM or convolution as published"),
    WORD("pass", passes,
         "forward or backward; bwd of a GEMM or convolution: both gradients; fwd_bwd: all passes"),
    TEXT("precision", "DeepBench: type of the arithmetic"),
    TEXT("dtype_a", "GEMM by GPU: type of the operands"),
    TEXT("dtype", "by GPU: type of the elements"),
    TEXT("library", "library or framework"),
    TIME("time_ms", 1e-6, 1e7, "DeepBench: measured time, ms"),
    TIME("time_us", 1e-3, 1e10, "by GPU: measured time, us"),
    TEXT("timing", "how it was timed: around one call, do_bench, layer hook, or else the kernel"),
    SIZE("m", "GEMM: rows of the result"),
    SIZE("n", "GEMM: columns of the result; convolution: images"),
    SIZE("k", "GEMM: length of the sums; convolution: filters"),
    SIZE("batch", "GEMMs in one call; attention: sequences"),
    WORD("a_trans", storages, "GEMM: storage of the first operand"),
    WORD("b_trans", storages, "GEMM: storage of the second operand"),
    SIZE("heads_q", "attention: heads of queries"),
    SIZE("heads_kv", "attention: heads of keys and values; empty: as many"),
    SIZE("seq_q", "attention: queries"),
    SIZE("seq_kv", "attention: keys"),
    SIZE("head_dim_qk", "attention: size of a query"),
    SIZE("head_dim_v", "attention: size of a value; empty: that of a query"),
    FROM_0("causal", 1, "attention: 1 where a query sees no later key"),
    FROM_0("window", 1e10, "attention: keys that a query sees at most; empty or 0: all"),
    SIZE("c", "convolution: input channels"),
    SIZE("d", "convolution: depth; empty: the library was asked for two dimensions"),
    SIZE("h", "convolution: height"),
    SIZE("w", "convolution: width"),
    SIZE("kd", "convolution: depth of the kernel"),
    SIZE("r", "convolution: height of the kernel"),
    SIZE("s", "convolution: width of the kernel"),
    SIZE("r_filter_h", "convolution, DeepBench: height of the kernel"),
    SIZE("s_filter_w", "convolution, DeepBench: width of the kernel"),
    FROM_0("stride_d", 1e6, "convolution: step; 0 or empty: 1"),
    FROM_0("stride_h", 1e6, "convolution: step; 0 or empty: 1"),
    FROM_0("stride_w", 1e6, "convolution: step; 0 or empty: 1"),
    FROM_0("pad_d", 1e6, "convolution: zeros at each side"),
    FROM_0("pad_h", 1e6, "convolution: zeros at each side"),
    FROM_0("pad_w", 1e6, "convolution: zeros at each side"),
    FROM_0("dil_d", 1e6, "convolution: dilation; 0 or empty: 1"),
    FROM_0("dil_h", 1e6, "convolution: dilation; 0 or empty: 1"),
    FROM_0("dil_w", 1e6, "convolution: dilation; 0 or empty: 1"),
    SIZE("groups", "convolution: groups of channels"),
    FROM_0("transposed", 1, "convolution: 1 for a transposed one, which is not predicted"),
    TEXT("shape", "stream: operands, 16x559x1024; 1024"),
    FROM_0("elements", 1e13, "stream: elements of the longest tensor"),
    FROM_0("bytes_min", 1e15, "stream: bytes that it must move"),
    {.key = NULL},
};

const struct dl_schema dl_kernel_row_schema = {
    .name = "dlmodel-kernels",
    .summary =
        "columns of a table of kernel times; an operation needs only those that it has; others are "
        "kept and ignored",
    .fields = columns,
};

static const char *const deepbench[] = {"gemm", "conv", "rnn_vanilla", "rnn_lstm", "rnn_gru", NULL};
static const struct dl_field deepbench_op = {
    .key = "op", .type = DL_FIELD_CHOICE, .choices = deepbench};

enum dl_code dl_kernel_number(const struct dl_csv *csv, int row, const char *name, double *out,
                              struct dl_err *err) {
    const int column = dl_csv_column(csv, name);
    *out = NAN;
    return column < 0 ? DL_OK
                      : dl_csv_field(csv, row, column,
                                     dl_csv_field_find(&dl_kernel_row_schema, name), out, err);
}

enum dl_code dl_kernel_deepbench_op(const struct dl_csv *csv, int row, struct dl_err *err) {
    const int column = dl_csv_column(csv, "op");
    double ignored;
    return column < 0 ? DL_OK : dl_csv_field(csv, row, column, &deepbench_op, &ignored, err);
}
