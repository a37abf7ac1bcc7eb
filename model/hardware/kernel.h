/* kernel.h - what a device executes: the vocabulary between layers (which emit kernels) and devices
 * (which time them). Shapes are per call, with the batch included.
 *
 * Notation: N batch, C input channels, F output channels (filters), K kernel extent, in/out spatial
 * extents. 1 multiply-add = 2 flop.
 */
#ifndef DL_MODEL_HARDWARE_KERNEL_H
#define DL_MODEL_HARDWARE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* spatial dimensions, outermost first: {depth, height, width}; unused ones are 1 */
enum { DL_DIMS = 3 };

enum dl_precision { /* of the arithmetic; the order is that of dl_precision_names */
                    DL_FP32,
                    DL_TF32,
                    DL_MIXED,
                    DL_FP16,
                    DL_BF16,
                    DL_FP8,
                    DL_PRECISIONS
};
extern const char *const dl_precision_names[]; /* "fp32","tf32","mixed","fp16","bf16","fp8", NULL */
/* Bytes of one activation element: 4 for fp32 and tf32, 2 for mixed, fp16, bf16, and 1 for fp8
 * operands. */
double dl_precision_bytes(enum dl_precision precision);

enum dl_pass { DL_FORWARD, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS, DL_UPDATE, DL_PASSES };
extern const char *const dl_pass_names[]; /* "fwd","bwd_data","bwd_filter","update", NULL */

enum dl_op {
    DL_OP_GEMM, /* C[m,n] = A[m,k] B[k,n], `count` of them in one call */
    DL_OP_CONV, /* convolution, 1 to 3 spatial dimensions */
    /* bandwidth-bound: reads and writes elements once (batch norm, ReLU, pooling, add, optimizer)
     */
    DL_OP_STREAM,
    DL_OPS
};
extern const char *const dl_op_names[]; /* "gemm","conv","stream", NULL */

/* What a kernel is for, where a calibration tells such kernels apart (F-KERNEL-WORK); ANY: it does
 * not. */
enum dl_work {
    DL_WORK_ANY,
    DL_WORK_BATCHNORM,
    DL_WORK_LAYERNORM,
    DL_WORK_ACTIVATION,
    DL_WORK_POOLING,
    DL_WORK_SOFTMAX,
    DL_WORK_ATTENTION,
    DL_WORKS
};
/* "any","batchnorm","layernorm","activation","pooling","softmax","attention", NULL */
extern const char *const dl_work_names[];

struct dl_kernel {
    enum dl_op op;
    enum dl_pass pass;
    enum dl_work work;
    /* DL_OP_GEMM */
    double m, n, k, count;
    bool a_trans, b_trans;
    /* DL_OP_CONV: all of the whole call */
    double batch, in_channels, out_channels, groups;
    double in[DL_DIMS], kernel[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS],
        out[DL_DIMS];
    /* all: work. For GEMM and CONV compulsory traffic of the three tensors. */
    double flop;          /* 2 per multiply-add; elementwise operations for STREAM */
    double read_elements; /* of the activation type */
    double write_elements;
    double extra_bytes; /* moved besides, of fixed width (fp32 statistics, masks, indices) */
    double launches;    /* device kernels launched by this call, usually 1 */
};

/* Kernels from their shapes, with flop and compulsory traffic filled in. */
struct dl_kernel dl_kernel_gemm(enum dl_pass pass, double m, double n, double k, double count);
struct dl_kernel dl_kernel_conv(enum dl_pass pass, double batch, double in_channels,
                                double out_channels, double groups, const double in[DL_DIMS],
                                const double kernel[DL_DIMS], const double stride[DL_DIMS],
                                const double pad[DL_DIMS], const double dilation[DL_DIMS]);
struct dl_kernel dl_kernel_stream(enum dl_pass pass, double flop, double read_elements,
                                  double write_elements);

struct dl_device;

enum dl_limit { DL_LIMIT_COMPUTE, DL_LIMIT_MEMORY, DL_LIMIT_LATENCY };

struct dl_kernel_time {
    /* on the device, launch gap not included; NAN when the device has no rate for it */
    double time_s;
    double sigma_log;    /* standard deviation of log(time): its uncertainty */
    enum dl_limit limit; /* what bounds it */
    bool extrapolated;   /* outside the samples, or no samples for this device */
    const char *formula; /* id: "F-KERNEL-MODEL", "F-KERNEL-ROOFLINE", "F-KERNEL-STREAM" */
    /* "fitted", "borrowed" (the surface of a relative, scaled), "datasheet" */
    const char *origin;
    /* whose samples or datasheet: the device itself, or the one borrowed from */
    const char *origin_device;
};

/* Time of one call on a device in a precision. Pure; at most a few hundred ns. */
void dl_kernel_time(const struct dl_device *device, enum dl_precision precision,
                    const struct dl_kernel *kernel, struct dl_kernel_time *out);

/* F-CONV-WORKSPACE: device memory that the fastest algorithm of a convolution works in: Winograd
 * with separate transforms for 3x3 kernels of stride 1 and 32 channels or more, 0 for others. */
double dl_kernel_workspace_bytes(const struct dl_kernel *kernel, double element_bytes);

/* F-CONV-WORKSPACE: the factor by which a convolution's time grows when a framework does not grant
 * the memory that its fastest algorithm works in (dl_kernel_workspace_bytes): the gain that the
 * samples show. */
double dl_kernel_workspace_factor(const struct dl_device *device, enum dl_precision precision,
                                  const struct dl_kernel *kernel, double limit_bytes);

#endif
