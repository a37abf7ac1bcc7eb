/* kernel_make.c - kernels from shapes: names, widths, work and compulsory traffic of GEMM,
 * convolution, attention and streams. Not here: their times (kernel.c). */
#include <math.h>
#include <stddef.h>

#include "model/machine/kernel.h"

const char *const dl_precision_names[] = {"fp32", "tf32",  "mixed", "fp16", "bf16",
                                          "fp8",  "mxfp8", "nvfp4", NULL};
const char *const dl_pass_names[] = {"fwd", "bwd_data", "bwd_filter", "update", NULL};
const char *const dl_work_names[] = {"any",       "batchnorm", "layernorm",     "activation",
                                     "pooling",   "softmax",   "attention",     "rmsnorm",
                                     "gated",     "rope",      "cross-entropy", "dropout",
                                     "embedding", "cast",      "optimizer",     NULL};
const char *const dl_variant_names[] = {"plain",   "paged",    "engine",    "blocks",
                                        "flash2",  "vendor",   "depthwise", "volume",
                                        "strided", "compiled", NULL};
const char *const dl_op_names[] = {"gemm", "conv", "stream", "attention", NULL};
const char *const dl_attention_kernel_names[] = {"open", "composed", "fused-softmax", "flash",
                                                 NULL};

double dl_precision_bytes(enum dl_precision precision) {
    switch (precision) {
    case DL_FP32:
    case DL_TF32: return 4.0;
    case DL_MIXED:
    case DL_FP16:
    case DL_BF16:
    case DL_FP8:
    case DL_MXFP8:
    case DL_NVFP4: return 2.0;
    case DL_PRECISIONS: break;
    }
    return NAN;
}

double dl_precision_operand_bytes(enum dl_precision precision) {
    switch (precision) {
    case DL_FP8: return 1.0;
    case DL_MXFP8: return 1.0 + 1.0 / 32.0;
    case DL_NVFP4: return 0.5 + 1.0 / 16.0;
    default: return dl_precision_bytes(precision);
    }
}

struct dl_kernel dl_kernel_gemm(enum dl_pass pass, double m, double n, double k, double count) {
    struct dl_kernel kernel = {
        .op = DL_OP_GEMM, .pass = pass, .m = m, .n = n, .k = k, .count = count};
    kernel.flop = 2.0 * m * n * k * count;
    kernel.read_elements = (m * k + k * n) * count;
    kernel.write_elements = m * n * count;
    kernel.launches = 1.0;
    return kernel;
}

struct dl_kernel dl_kernel_conv(enum dl_pass pass, const struct dl_conv_shape *shape) {
    const double batch = shape->batch, in_channels = shape->in_channels,
                 out_channels = shape->out_channels, groups = shape->groups;
    const double *in = shape->in, *kernel = shape->kernel, *stride = shape->stride,
                 *pad = shape->pad, *dilation = shape->dilation;
    struct dl_kernel conv = {.op = DL_OP_CONV,
                             .pass = pass,
                             .batch = batch,
                             .in_channels = in_channels,
                             .out_channels = out_channels,
                             .groups = groups};
    double in_points = 1.0, out_points = 1.0, taps = 1.0, touched = 1.0;
    for (int d = 0; d < DL_DIMS; d++) {
        conv.in[d] = in[d];
        conv.kernel[d] = kernel[d];
        conv.stride[d] = stride[d];
        conv.pad[d] = pad[d];
        conv.dilation[d] = dilation[d];
        double reach = dilation[d] * (kernel[d] - 1.0) + 1.0;
        double room = in[d] + 2.0 * pad[d] - reach;
        conv.out[d] = room >= 0.0 && stride[d] > 0.0 ? floor(room / stride[d]) + 1.0 : 0.0;
        in_points *= in[d];
        if (d < DL_DIMS - 1 && stride[d] > kernel[d]) touched *= kernel[d] / stride[d];
        out_points *= conv.out[d];
        taps *= kernel[d];
    }
    double group_channels = groups > 0.0 ? in_channels / groups : 0.0;
    double x = batch * in_channels * in_points, y = batch * out_channels * out_points;
    double w = out_channels * group_channels * taps;
    conv.flop = 2.0 * y * group_channels * taps;
    /* Each pass reads two of {x, y, w} (or their gradients) and writes the third. Rows that a
     * stride longer than the kernel leaves out are not read; points of a row are, with their
     * neighbours. */
    conv.read_elements = pass == DL_FORWARD         ? x * touched + w
                         : pass == DL_BACKWARD_DATA ? y + w
                                                    : x * touched + y;
    conv.write_elements = pass == DL_FORWARD ? y : pass == DL_BACKWARD_DATA ? x : w;
    conv.launches = 1.0;
    return conv;
}

struct dl_kernel dl_kernel_stream(enum dl_pass pass, double flop, double read_elements,
                                  double write_elements) {
    return (struct dl_kernel){.op = DL_OP_STREAM,
                              .pass = pass,
                              .flop = flop,
                              .read_elements = read_elements,
                              .write_elements = write_elements,
                              .launches = 1.0};
}

double dl_attention_pairs(double queries, double keys, bool causal, double window) {
    const double wide = window > 0.0 && window < keys ? window : keys;
    if (!causal) return queries * wide;
    /* The query i places before the last sees keys - i keys, at least 1 and at most `wide`. */
    const double rows = fmin(queries, keys), hidden = fmin(keys - wide, rows);
    const double narrowing = rows - hidden, first = keys - hidden, last = keys - rows + 1.0;
    return hidden * wide + narrowing * (first + last) / 2.0 + (queries - rows);
}

struct dl_kernel dl_kernel_attention(enum dl_pass pass, const struct dl_attention_shape *shape) {
    struct dl_kernel kernel = {.op = DL_OP_ATTENTION,
                               .pass = pass,
                               .work = DL_WORK_ATTENTION,
                               .batch = shape->batch,
                               .heads = shape->heads,
                               .kv_heads = shape->kv_heads,
                               .queries = shape->queries,
                               .keys = shape->keys,
                               .head_dim = shape->head_dim,
                               .value_dim = shape->value_dim,
                               .window = shape->window,
                               .causal = shape->causal,
                               .launches = 1.0};
    const bool forward = pass == DL_FORWARD;
    const double dq = shape->head_dim, dv = shape->value_dim;
    const double pairs =
        dl_attention_pairs(shape->queries, shape->keys, shape->causal, shape->window);
    const double q = shape->batch * shape->heads * shape->queries,
                 kv = shape->batch * shape->kv_heads * shape->keys;
    kernel.flop =
        2.0 * shape->batch * shape->heads * pairs * (forward ? dq + dv : 3.0 * dq + 2.0 * dv);
    /* Forward: Q, K, V to O. Backward: Q, K, V, O, dO to dQ, dK, dV. */
    kernel.read_elements = q * dq + kv * (dq + dv) + (forward ? 0.0 : 2.0 * q * dv);
    kernel.write_elements = forward ? q * dv : q * dq + kv * (dq + dv);
    kernel.extra_bytes = 4.0 * q; /* logarithms of the sums */
    return kernel;
}

/* Source: hta-traces (ResNet-50 in TF32 on an A100): the first layer's forward kernel takes three
 * channels in their order; copies of images of 7 x 7 run at half the rate of others. */
double dl_conv_copied_elements(const struct dl_kernel *conv, double element_bytes) {
    static const double WORD_BYTES = 16.0, NARROW = 4.0, UNALIGNED = 2.0;
    double in = 1.0, out = 1.0, taps = 1.0, steps = 1.0;
    if (conv->groups > 1.0) return 0.0;
    for (int d = 0; d < DL_DIMS; d++) {
        in *= conv->in[d];
        out *= conv->out[d];
        taps *= conv->kernel[d];
        steps *= conv->stride[d];
    }
    const bool in_fits = fmod(in * element_bytes, WORD_BYTES) == 0.0,
               out_fits = fmod(out * element_bytes, WORD_BYTES) == 0.0;
    if (taps <= 1.0 && steps <= 1.0 && in_fits) return 0.0;
    if (conv->pass == DL_FORWARD && conv->in_channels < NARROW) return 0.0;
    return conv->batch * (conv->in_channels * in * (in_fits ? 1.0 : UNALIGNED) +
                          conv->out_channels * out * (out_fits ? 1.0 : UNALIGNED));
}

bool dl_kernel_is_depthwise(const struct dl_kernel *kernel) {
    return kernel->op == DL_OP_CONV && kernel->groups > 1.0 &&
           kernel->groups >= kernel->in_channels;
}
