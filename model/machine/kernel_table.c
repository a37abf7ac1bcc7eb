/* kernel_table.c - GEMM, attention and convolution tables by GPU. Streams:
 * kernel_table_stream.c. */
#include "model/machine/kernel_table.h"

#include <math.h>
#include <string.h>

#include "model/machine/kernel_columns.h"

const char *dl_kernel_table_cell(const struct dl_csv *csv, int row, const char *name) {
    const int column = dl_csv_column(csv, name);
    return column < 0 ? "" : csv->rows[row][column];
}

bool dl_kernel_table_header(const struct dl_csv *csv) {
    return dl_csv_column(csv, "gpu") >= 0 && dl_csv_column(csv, "time_us") >= 0;
}

static bool has(const struct dl_csv *csv, const char *name) {
    return dl_csv_column(csv, name) >= 0;
}

/* A number of a named column; `fallback` where the cell is empty or the column missing. */
static enum dl_code number(const struct dl_csv *csv, int row, const char *name, double fallback,
                           double *out, struct dl_err *err) {
    DL_TRY(dl_kernel_number(csv, row, name, out, err));
    if (isnan(*out)) *out = fallback;
    return DL_OK;
}

static bool known(const double *values, int count) {
    for (int i = 0; i < count; i++)
        if (!(values[i] > 0.0)) return false;
    return true;
}

static const char NO_SIZE[] = "a size is not given";

/* Precision by the word of a type column; DL_PRECISIONS: none of training's. */
static enum dl_precision precision_of(const char *word) {
    static const struct {
        const char *word;
        enum dl_precision precision;
    } words[] = {{"fp32", DL_FP32},   {"tf32", DL_TF32},     {"fp16", DL_FP16},
                 {"bf16", DL_BF16},   {"fp8", DL_FP8},       {"fp8(e5m2)", DL_FP8},
                 {"mxfp8", DL_MXFP8}, {"fp4", DL_NVFP4},     {"nvfp4", DL_NVFP4},
                 {"mixed", DL_MIXED}, {"fp8->bf16", DL_FP8}, {"bf16->fp8", DL_BF16}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i].word) == 0) return words[i].precision;
    return DL_PRECISIONS;
}

/* Further work of the kernels of a library. */
static enum dl_variant variant_of(const struct dl_csv *csv, int row) {
    static const struct {
        const char *words;
        enum dl_variant variant;
    } libraries[] = {{"product_flash_attention", DL_VARIANT_FLASH2},
                     {"flash-attention (Tr", DL_VARIANT_FLASH2},
                     {"FlashAttention-2", DL_VARIANT_FLASH2},
                     {"vit_flash_attn", DL_VARIANT_PLAIN},
                     {"trtllm torch", DL_VARIANT_ENGINE},
                     {"trtllmprefill", DL_VARIANT_PAGED},
                     {"trtllmdecode", DL_VARIANT_PAGED},
                     {"flashinfer", DL_VARIANT_PAGED},
                     {"FlashInfer", DL_VARIANT_PAGED},
                     {"vllm", DL_VARIANT_PAGED},
                     {"vLLM", DL_VARIANT_PAGED},
                     {"sglang", DL_VARIANT_PAGED}};
    const char *library = dl_kernel_table_cell(csv, row, "library");
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (strstr(library, libraries[i].words) != NULL) return libraries[i].variant;
    return DL_VARIANT_PLAIN;
}

static enum dl_pass pass_of(const char *word) {
    if (strcmp(word, "bwd_weights") == 0 || strcmp(word, "bwd_filter") == 0)
        return DL_BACKWARD_WEIGHTS;
    if (strncmp(word, "bwd", 3) == 0) return DL_BACKWARD_DATA;
    return strcmp(word, "update") == 0 ? DL_UPDATE : DL_FORWARD;
}

/* "bwd" of a layer with weights: the gradients of its input and of its weights. */
static bool has_both_gradients(const char *pass) {
    return strcmp(pass, "bwd") == 0 || strcmp(pass, "fwd_bwd") == 0;
}

static void add(struct dl_kernel_row *out, struct dl_kernel kernel) {
    if (out->more_count < DL_ROW_MORE) out->more[out->more_count++] = kernel;
}

/* Products of 8 bits and less by cuBLASLt and its like, which training runs; the linear layers of
 * serving engines quantize their input on the way. */
static enum dl_variant product_variant(const char *library, enum dl_precision precision) {
    static const char *const products[] = {"cuBLASLt",         "hipBLASLt",     "torch.mm",
                                           "torch._scaled_mm", "TileLang",      "no cast",
                                           "with the cast",    "with all casts"};
    if (!dl_precision_is_narrow(precision)) return DL_VARIANT_PLAIN;
    if (strstr(library, "deepgemm") != NULL || strstr(library, "DeepGEMM") != NULL)
        return DL_VARIANT_BLOCKS;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        if (strstr(library, products[i]) != NULL) return DL_VARIANT_PLAIN;
    return DL_VARIANT_ENGINE;
}

/* The cast of an operand of so many elements from 16 bits. */
static struct dl_kernel cast_of(double elements, enum dl_precision precision) {
    struct dl_kernel cast = dl_kernel_stream(DL_FORWARD, elements, elements, 0.0);
    cast.extra_bytes = elements * dl_precision_operand_bytes(precision);
    cast.work = DL_WORK_CAST;
    return cast;
}

static enum dl_code read_gemm(const struct dl_csv *csv, int row, struct dl_kernel_row *out,
                              struct dl_err *err) {
    double v[4];
    static const char *const names[] = {"m", "n", "k", "batch"};
    for (int i = 0; i < 4; i++) DL_TRY(number(csv, row, names[i], i == 3 ? 1.0 : NAN, &v[i], err));
    if (!known(v, 4)) {
        out->why = NO_SIZE;
        return DL_OK;
    }
    const char *pass = dl_kernel_table_cell(csv, row, "pass");
    /* "grouped weight gradient": one product, of the sizes given */
    if (strstr(dl_kernel_table_cell(csv, row, "op"), "gradient") != NULL) pass = "";
    const double m = v[0], n = v[1], k = v[2], count = v[3];
    if (strcmp(pass, "bwd_data") == 0)
        out->kernel = dl_kernel_gemm(DL_FORWARD, m, k, n, count);
    else if (pass_of(pass) == DL_BACKWARD_WEIGHTS)
        out->kernel = dl_kernel_gemm(DL_FORWARD, k, n, m, count);
    else
        out->kernel = dl_kernel_gemm(DL_FORWARD, m, n, k, count);
    if (strcmp(pass, "fwd_bwd") == 0) add(out, dl_kernel_gemm(DL_FORWARD, m, k, n, count));
    if (strcmp(pass, "bwd") == 0) out->kernel = dl_kernel_gemm(DL_FORWARD, m, k, n, count);
    if (has_both_gradients(pass)) add(out, dl_kernel_gemm(DL_FORWARD, k, n, m, count));
    const char *library = dl_kernel_table_cell(csv, row, "library");
    out->kernel.variant = product_variant(library, out->precision);
    for (int i = 0; i < out->more_count; i++) out->more[i].variant = out->kernel.variant;
    if (strcmp(pass, "fwd") == 0 && strstr(library, "with the cast") != NULL) {
        add(out, cast_of(m * k * count, out->precision));
        if (strstr(library, "both operands") != NULL)
            add(out, cast_of(n * k * count, out->precision));
    }
    return DL_OK;
}

static enum dl_code read_attention(const struct dl_csv *csv, int row, enum dl_pass pass,
                                   struct dl_kernel_row *out, struct dl_err *err) {
    enum { BATCH, HEADS, KV_HEADS, QUERIES, KEYS, HEAD_DIM, VALUE_DIM, SIZES };
    static const char *const names[SIZES] = {"batch",  "heads_q",     "heads_kv",  "seq_q",
                                             "seq_kv", "head_dim_qk", "head_dim_v"};
    double v[SIZES], window, causal;
    for (int i = 0; i < SIZES; i++) DL_TRY(number(csv, row, names[i], NAN, &v[i], err));
    DL_TRY(number(csv, row, "window", 0.0, &window, err));
    DL_TRY(number(csv, row, "causal", 0.0, &causal, err));
    if (isnan(v[KV_HEADS])) v[KV_HEADS] = v[HEADS];
    if (isnan(v[VALUE_DIM])) v[VALUE_DIM] = v[HEAD_DIM];
    if (!known(v, SIZES)) {
        out->why = NO_SIZE;
        return DL_OK;
    }
    const struct dl_attention_shape shape = {.batch = v[BATCH],
                                             .heads = v[HEADS],
                                             .kv_heads = v[KV_HEADS],
                                             .queries = v[QUERIES],
                                             .keys = v[KEYS],
                                             .head_dim = v[HEAD_DIM],
                                             .value_dim = v[VALUE_DIM],
                                             .window = window,
                                             .causal = causal > 0.0};
    out->kernel = dl_kernel_attention(pass, &shape);
    out->kernel.variant = variant_of(csv, row);
    if (strstr(dl_kernel_table_cell(csv, row, "library"), "unfused") != NULL)
        out->why = "composed of several kernels";
    if (strcmp(dl_kernel_table_cell(csv, row, "pass"), "fwd_bwd") != 0) return DL_OK;
    struct dl_kernel backward = dl_kernel_attention(DL_BACKWARD_DATA, &shape);
    backward.variant = out->kernel.variant;
    add(out, backward);
    return DL_OK;
}

/* One spatial dimension of a convolution: letters of its columns (size, kernel) and the end of the
 * names of the others. */
struct dimension {
    const char *in, *kernel, *stride, *pad, *dilation;
};

/* In 32 bits all frameworks keep NCHW. */
static void add_copies(struct dl_kernel_row *out) {
    if (out->precision != DL_TF32) return;
    const double bytes = dl_precision_bytes(DL_TF32);
    double copied = dl_conv_copied_elements(&out->kernel, bytes);
    for (int i = 0; i < out->more_count; i++)
        copied += dl_conv_copied_elements(&out->more[i], bytes);
    if (copied > 0.0) add(out, dl_kernel_stream(out->kernel.pass, 0.0, copied, copied));
}

static enum dl_code read_conv(const struct dl_csv *csv, int row, enum dl_pass pass,
                              struct dl_kernel_row *out, struct dl_err *err) {
    static const struct dimension dimensions[DL_DIMS] = {{"d", "kd", "stride_d", "pad_d", "dil_d"},
                                                         {"h", "r", "stride_h", "pad_h", "dil_h"},
                                                         {"w", "s", "stride_w", "pad_w", "dil_w"}};
    double in[DL_DIMS], kernel[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS];
    double sizes[4], transposed;
    static const char *const names[] = {"n", "c", "k", "groups"};
    for (int i = 0; i < 4; i++)
        DL_TRY(number(csv, row, names[i], i == 3 ? 1.0 : NAN, &sizes[i], err));
    for (int d = 0; d < DL_DIMS; d++) {
        DL_TRY(number(csv, row, dimensions[d].in, 1.0, &in[d], err));
        DL_TRY(number(csv, row, dimensions[d].kernel, 1.0, &kernel[d], err));
        DL_TRY(number(csv, row, dimensions[d].stride, 1.0, &stride[d], err));
        DL_TRY(number(csv, row, dimensions[d].pad, 0.0, &pad[d], err));
        DL_TRY(number(csv, row, dimensions[d].dilation, 1.0, &dilation[d], err));
        stride[d] = fmax(stride[d], 1.0);
        dilation[d] = fmax(dilation[d], 1.0);
    }
    DL_TRY(number(csv, row, "transposed", 0.0, &transposed, err));
    if (!known(sizes, 4) || !known(in, DL_DIMS) || !known(kernel, DL_DIMS)) {
        out->why = NO_SIZE;
        return DL_OK;
    }
    if (transposed > 0.0) {
        out->why = "transposed convolution";
        return DL_OK;
    }
    const char *word = dl_kernel_table_cell(csv, row, "pass");
    const enum dl_pass passes[] = {pass, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS};
    for (int i = 0; i < 3; i++) {
        const bool part = i == 0 || (i == 1 && strcmp(word, "fwd_bwd") == 0) ||
                          (i == 2 && has_both_gradients(word));
        if (!part) continue;
        struct dl_kernel conv = dl_kernel_conv(
            passes[i], &(struct dl_conv_shape){sizes[0], sizes[1], sizes[2], sizes[3], in, kernel,
                                               stride, pad, dilation});
        /* A depth is given, also of 1, where the library was called with three dimensions. */
        if (*dl_kernel_table_cell(csv, row, "d") != '\0') conv.variant = DL_VARIANT_VOLUME;
        if (dl_kernel_is_depthwise(&conv)) conv.variant = DL_VARIANT_DEPTHWISE;
        if (i == 0)
            out->kernel = conv;
        else
            add(out, conv);
    }
    if (strcmp(dl_kernel_table_cell(csv, row, "layout"), "NHWC") != 0) add_copies(out);
    if (!(out->kernel.flop > 0.0)) out->why = NO_SIZE;
    return DL_OK;
}

/* The host launches each call between two events, so that a short kernel is hidden behind its
 * launch. */
static bool timed_by_call(const char *timing) {
    return strstr(timing, "around one call") != NULL || strstr(timing, "do_bench") != NULL ||
           strstr(timing, "layer hook") != NULL;
}

enum dl_code dl_kernel_table_row_read(const struct dl_csv *csv, int row, struct dl_kernel_row *out,
                                      struct dl_err *err) {
    double time_us;
    *out = (struct dl_kernel_row){.device = dl_kernel_table_cell(csv, row, "gpu")};
    DL_TRY(number(csv, row, "time_us", NAN, &time_us, err));
    out->measured_s = time_us * 1e-6;
    out->by_call = timed_by_call(dl_kernel_table_cell(csv, row, "timing"));
    const bool gemm = has(csv, "m") && has(csv, "n") && has(csv, "k") && !has(csv, "stride_h");
    const char *type = dl_kernel_table_cell(csv, row, has(csv, "dtype_a") ? "dtype_a" : "dtype");
    out->precision = precision_of(*type == '\0' && has(csv, "elements") ? "fp32" : type);
    double known_pass;
    DL_TRY(dl_kernel_number(csv, row, "pass", &known_pass, err));
    const enum dl_pass pass = pass_of(dl_kernel_table_cell(csv, row, "pass"));
    if (gemm)
        DL_TRY(read_gemm(csv, row, out, err));
    else if (has(csv, "heads_q"))
        DL_TRY(read_attention(csv, row, pass, out, err));
    else if (has(csv, "stride_h"))
        DL_TRY(read_conv(csv, row, pass, out, err));
    else
        DL_TRY(dl_kernel_table_stream(csv, row, pass, out, err));
    if (out->precision == DL_PRECISIONS) {
        out->precision = DL_FP32;
        out->why = "the type is none of training's";
    } else if (!(out->measured_s > 0.0)) {
        out->why = "no time is given";
    } else if (strcmp(dl_kernel_table_cell(csv, row, "kv_dtype"), "fp8") == 0 &&
               out->precision != DL_FP8) {
        out->why = "keys and values of another type than the queries";
    }
    return DL_OK;
}
