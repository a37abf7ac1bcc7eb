/* kernel.c - kernels from shapes, and the choice of what times them: a fitted surface of the device, one borrowed from
 * a relative, or the roofline. Formula ids F-KERNEL-ROOFLINE and F-KERNEL-STREAM here, F-KERNEL-SURFACE in surface.c.
 * Not modelled: overlap of kernels on one device, clock changes, the launch gap (host side: framework files).
 */
#include "model/kernel.h"

#include <math.h>
#include <stddef.h>

#include "model/device.h"
#include "model/surface.h"

const char *const dl_precision_names[] = {"fp32", "tf32", "mixed", "fp16", "bf16", "fp8", NULL};
const char *const dl_pass_names[] = {"fwd", "bwd_data", "bwd_filter", "update", NULL};
const char *const dl_op_names[] = {"gemm", "conv", "stream", NULL};

double dl_precision_bytes(enum dl_precision precision)
{
    switch (precision) {
    case DL_FP32:
    case DL_TF32: return 4.0;
    case DL_MIXED:
    case DL_FP16:
    case DL_BF16: return 2.0;
    case DL_FP8: return 1.0;
    case DL_PRECISIONS: break;
    }
    return NAN;
}

struct dl_kernel dl_kernel_gemm(enum dl_pass pass, double m, double n, double k, double count)
{
    struct dl_kernel kernel = {.op = DL_OP_GEMM, .pass = pass, .m = m, .n = n, .k = k, .count = count};
    kernel.flop = 2.0 * m * n * k * count;
    kernel.read_elements = (m * k + k * n) * count;
    kernel.write_elements = m * n * count;
    kernel.launches = 1.0;
    return kernel;
}

struct dl_kernel dl_kernel_conv(enum dl_pass pass, double batch, double in_channels, double out_channels, double groups,
                                const double in[DL_DIMS], const double kernel[DL_DIMS], const double stride[DL_DIMS],
                                const double pad[DL_DIMS], const double dilation[DL_DIMS])
{
    struct dl_kernel conv = {.op = DL_OP_CONV, .pass = pass, .batch = batch, .in_channels = in_channels,
                             .out_channels = out_channels, .groups = groups};
    double in_points = 1.0, out_points = 1.0, taps = 1.0;
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
        out_points *= conv.out[d];
        taps *= kernel[d];
    }
    double group_channels = groups > 0.0 ? in_channels / groups : 0.0;
    double x = batch * in_channels * in_points, y = batch * out_channels * out_points;
    double w = out_channels * group_channels * taps;
    conv.flop = 2.0 * y * group_channels * taps;
    /* Each pass reads two of {x, y, w} (or their gradients) and writes the third. */
    conv.read_elements = pass == DL_FORWARD ? x + w : pass == DL_BACKWARD_DATA ? y + w : x + y;
    conv.write_elements = pass == DL_FORWARD ? y : pass == DL_BACKWARD_DATA ? x : w;
    conv.launches = 1.0;
    return conv;
}

struct dl_kernel dl_kernel_stream(enum dl_pass pass, double flop, double read_elements, double write_elements)
{
    return (struct dl_kernel){.op = DL_OP_STREAM, .pass = pass, .flop = flop, .read_elements = read_elements,
                              .write_elements = write_elements, .launches = 1.0};
}

void dl_kernel_time(const struct dl_device *device, enum dl_precision precision, const struct dl_kernel *kernel,
                    struct dl_kernel_time *out)
{
    double bytes = (kernel->read_elements + kernel->write_elements) * dl_precision_bytes(precision) + kernel->extra_bytes;
    double peak = dl_device_peak(device, kernel->op == DL_OP_STREAM ? DL_FP32 : precision);
    double bandwidth = device->memory_bandwidth_bytes_per_s *
                       (dl_known(device->memory_efficiency) ? device->memory_efficiency : 0.8);
    double latency_s = (dl_known(device->kernel_latency_s) ? device->kernel_latency_s : 5e-6) * kernel->launches;
    double compute_s = kernel->op == DL_OP_STREAM ? 0.0 : kernel->flop / (0.6 * peak), memory_s = bytes / bandwidth;
    out->time_s = latency_s + fmax(compute_s, memory_s);
    out->sigma_log = 0.5;
    out->limit = compute_s > memory_s ? DL_LIMIT_COMPUTE : DL_LIMIT_MEMORY;
    if (latency_s > fmax(compute_s, memory_s)) out->limit = DL_LIMIT_LATENCY;
    out->extrapolated = kernel->op != DL_OP_STREAM;
    out->formula = kernel->op == DL_OP_STREAM ? "F-KERNEL-STREAM" : "F-KERNEL-ROOFLINE";
    out->origin = "datasheet";
}
