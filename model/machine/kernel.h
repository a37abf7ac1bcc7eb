/* kernel.h - what a device executes: the vocabulary between layers (which emit kernels) and devices
 * (which time them). Shapes are per call, with the batch included.
 *
 * Notation: N batch, C input channels, F output channels (filters), K kernel extent, in/out spatial
 * extents. 1 multiply-add = 2 flop.
 */
#ifndef DL_MODEL_MACHINE_KERNEL_H
#define DL_MODEL_MACHINE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Spatial dimensions, outermost first: {depth, height, width}; unused ones are 1. */
enum { DL_DIMS = 3 };

/* Precision of the arithmetic, in the order of dl_precision_names. */
enum dl_precision {
    DL_FP32,
    DL_TF32,
    DL_MIXED,
    DL_FP16,
    DL_BF16,
    DL_FP8,
    DL_MXFP8,
    DL_NVFP4,
    DL_PRECISIONS
};
/* "fp32","tf32","mixed","fp16","bf16","fp8","mxfp8","nvfp4", NULL */
extern const char *const dl_precision_names[];
/* 8 bits and less. */
static inline bool dl_precision_is_narrow(enum dl_precision precision) {
    return precision >= DL_FP8 && precision < DL_PRECISIONS;
}
/* Bytes of one activation element in memory: 4 for fp32 and tf32, 2 for all others: with 8-bit and
 * 4-bit operands, too, layers keep and pass on 16-bit activations. */
double dl_precision_bytes(enum dl_precision precision);
/* Bytes of one operand element of matrix arithmetic, scale factors included: 1 for fp8, 1 + 1/32
 * for mxfp8, 1/2 + 1/16 for nvfp4, else that of an activation. */
double dl_precision_operand_bytes(enum dl_precision precision);

enum dl_pass { DL_FORWARD, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS, DL_UPDATE, DL_PASSES };
extern const char *const dl_pass_names[]; /* "fwd","bwd_data","bwd_filter","update", NULL */

enum dl_op {
    DL_OP_GEMM,      /* C[m,n] = A[m,k] B[k,n], `count` of them in one call */
    DL_OP_CONV,      /* convolution, 1 to 3 spatial dimensions */
    DL_OP_STREAM,    /* bandwidth-bound: touches each element once (batch norm, ReLU, optimizer) */
    DL_OP_ATTENTION, /* fused attention of one pass: scores stay on chip */
    DL_OPS
};
extern const char *const dl_op_names[]; /* "gemm","conv","stream","attention", NULL */

/* Kernels of attention. OPEN: not decided; the layer's `flash` says composed or flash. */
enum dl_attention_kernel {
    DL_ATTENTION_OPEN,
    DL_ATTENTION_COMPOSED,      /* GEMMs, scale, mask, softmax, dropout: one kernel each */
    DL_ATTENTION_FUSED_SOFTMAX, /* GEMMs and one kernel for scale, mask and softmax (Megatron) */
    DL_ATTENTION_FLASH,         /* scores stay on chip: FlashAttention, cuDNN */
    DL_ATTENTION_KERNELS
};
/* "open","composed","fused-softmax","flash", NULL */
extern const char *const dl_attention_kernel_names[];

/* What a kernel is for, where calibration distinguishes such kernels (F-KERNEL-WORK); ANY where it
 * does not. */
enum dl_work {
    DL_WORK_ANY,
    DL_WORK_BATCHNORM,
    DL_WORK_LAYERNORM,
    DL_WORK_ACTIVATION,
    DL_WORK_POOLING,
    DL_WORK_SOFTMAX,
    DL_WORK_ATTENTION,
    DL_WORK_RMSNORM,
    DL_WORK_GATED,         /* SwiGLU, GeGLU: activation of one half times the other */
    DL_WORK_ROPE,          /* rotary position embedding */
    DL_WORK_CROSS_ENTROPY, /* softmax and loss over the vocabulary in one kernel */
    DL_WORK_DROPOUT,
    DL_WORK_EMBEDDING, /* rows of a table */
    DL_WORK_CAST,      /* to another type: quantization to fp8, copies of master weights */
    DL_WORK_OPTIMIZER, /* one fused update of many tensors */
    DL_WORKS
};
/* "any","batchnorm","layernorm","activation","pooling","softmax","attention","rmsnorm","gated",
 * "rope","cross-entropy","dropout","embedding","cast","optimizer", NULL */
extern const char *const dl_work_names[];

/* Kernels for one operation that differ in their further work. Training runs PLAIN ones. */
enum dl_variant {
    DL_VARIANT_PLAIN,
    DL_VARIANT_PAGED,     /* attention: keys and values in pages of a cache (serving) */
    DL_VARIANT_ENGINE,    /* attention: with rotary embedding and update of the cache (serving);
                          stream: a serving engine's own kernel; GEMM of 8 bits and less: with the
                          quantization of its input (serving) */
    DL_VARIANT_BLOCKS,    /* fp8 GEMM: a scale for each block of 128 x 128 */
    DL_VARIANT_FLASH2,    /* attention: FlashAttention-2, made for Ampere, on whatever GPU */
    DL_VARIANT_VENDOR,    /* stream: the vendor library's normalization, not the framework's */
    DL_VARIANT_DEPTHWISE, /* convolution: one input channel per group */
    DL_VARIANT_VOLUME,    /* convolution: by the library's three-dimensional kernels */
    DL_VARIANT_STRIDED,   /* stream: an operand is repeated (broadcast) or the order of the elements
                             changes, so that the kernel moves one element at a time */
    DL_VARIANT_COMPILED,  /* stream: a compiler's normalization (Inductor), not the framework's */
    DL_VARIANTS
};
extern const char *const dl_variant_names[]; /* "plain","paged","engine","blocks","flash2",
                                                "vendor","depthwise","volume","strided",
                                                "compiled", NULL */

struct dl_kernel {
    enum dl_op op;
    enum dl_pass pass;
    enum dl_work work;
    enum dl_variant variant;

    /* DL_OP_GEMM. STREAM: m rows of a normalization, channels of a batch norm in NCHW; 0: none, or
     * not known */
    double m, n, k, count;
    bool a_trans, b_trans;

    /* DL_OP_CONV, of the whole call */
    double batch, in_channels, out_channels, groups;
    double in[DL_DIMS], kernel[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS],
        out[DL_DIMS];

    /* DL_OP_ATTENTION, of the whole call: `batch` sequences, query heads and key-value heads.
     * `window`: keys that a query sees at most; 0: all. */
    double heads, kv_heads, queries, keys, head_dim, value_dim, window;
    bool causal;

    /* Type of this kernel where it is not the plan's: of the operands of GEMM, CONV, ATTENTION; of
     * the elements of STREAM. */
    bool has_type;
    enum dl_precision type;

    /* All operations. Traffic of GEMM and CONV is the compulsory one of their three tensors. */
    double flop;           /* 2 per multiply-add; elementwise operations for STREAM */
    double read_elements;  /* of the activation type */
    double write_elements; /* of the activation type */
    double extra_bytes;    /* further traffic of fixed width (fp32 statistics, masks, indices) */
    double launches;       /* device kernels that this call launches, usually 1 */
};

/* Kernels from their shapes, with flop and compulsory traffic set. */
struct dl_kernel dl_kernel_gemm(enum dl_pass pass, double m, double n, double k, double count);
struct dl_conv_shape {
    double batch, in_channels, out_channels, groups;
    const double *in, *kernel, *stride, *pad, *dilation; /* DL_DIMS each */
};
struct dl_kernel dl_kernel_conv(enum dl_pass pass, const struct dl_conv_shape *shape);
struct dl_kernel dl_kernel_stream(enum dl_pass pass, double flop, double read_elements,
                                  double write_elements);

/* F-CONV-LAYOUT: elements of its activations that a library copies from NCHW to NHWC, or back,
 * around a convolution on matrix units. None for 1x1 kernels of stride 1, which are products in
 * either order, if the positions of an image fill whole words of 16 bytes. */
double dl_conv_copied_elements(const struct dl_kernel *conv, double element_bytes);

/* A convolution whose groups have one input channel each. */
bool dl_kernel_is_depthwise(const struct dl_kernel *kernel);

/* F-ATTENTION-PAIRS: pairs of a query and a key that attention computes, for one head of one
 * sequence. Causal: the last query sees every key. window > 0: each query sees at most so many. */
double dl_attention_pairs(double queries, double keys, bool causal, double window);

/* F-KERNEL-ATTENTION: fused attention of one pass. flop = 2 batch heads pairs (dq + dv) forward,
 * 2 batch heads pairs (3 dq + 2 dv) backward (scores again, dV, dP, dQ, dK); DL_BACKWARD_DATA is
 * the whole backward pass. Traffic: each tensor once. */
struct dl_attention_shape {
    double batch, heads, kv_heads, queries, keys, head_dim, value_dim, window;
    bool causal;
};
struct dl_kernel dl_kernel_attention(enum dl_pass pass, const struct dl_attention_shape *shape);

struct dl_device;

enum dl_limit { DL_LIMIT_COMPUTE, DL_LIMIT_MEMORY, DL_LIMIT_LATENCY };

struct dl_kernel_time {
    double time_s;       /* on the device, without the launch gap; NAN: no rate for it */
    double sigma_log;    /* standard deviation of log(time): its uncertainty */
    enum dl_limit limit; /* what bounds the time */
    bool extrapolated;   /* outside the samples, or no samples for this device */
    const char *formula; /* id: "F-KERNEL-MODEL", "F-KERNEL-ROOFLINE", "F-KERNEL-STREAM" */
    const char *origin;  /* "fitted", "borrowed" (a related device's model, scaled), "datasheet" */
    const char *origin_device; /* owner of the samples or the datasheet */
};

/* Time of one call on a device in a precision. Pure; at most a few hundred ns. */
void dl_kernel_time(const struct dl_device *device, enum dl_precision precision,
                    const struct dl_kernel *kernel, struct dl_kernel_time *out);

/* Whether a device has kernels of attention later than FlashAttention-2: Hopper, Blackwell. */
bool dl_kernel_has_later_attention(const struct dl_device *device);

/* Shortest time [s] of a call that a host timed from outside, where samples of the kernel's model
 * were timed so; NAN: unknown. */
double dl_kernel_call_s(const struct dl_device *device, enum dl_precision precision,
                        const struct dl_kernel *kernel);

/* F-CONV-WORKSPACE: device memory [bytes] that the fastest algorithm of a convolution works in:
 * Winograd with separate transforms for 3x3 kernels of stride 1 and 32 channels or more, 0 for
 * others. */
double dl_kernel_workspace_bytes(const struct dl_kernel *kernel, double element_bytes);

/* F-CONV-WORKSPACE: factor, at least 1, by which a convolution slows down when the framework grants
 * less workspace than its fastest algorithm needs (dl_kernel_workspace_bytes): the gain that the
 * samples show. */
double dl_kernel_workspace_factor(const struct dl_device *device, enum dl_precision precision,
                                  const struct dl_kernel *kernel, double limit_bytes);

#endif
