/* kernel_norm.c - see the header. */
#include "model/machine/kernel_norm.h"

#include <math.h>

bool dl_batchnorm_by_channel(const struct dl_device *device, const struct dl_kernel *kernel) {
    return kernel->op == DL_OP_STREAM && kernel->work == DL_WORK_BATCHNORM && kernel->m > 0.0 &&
           device->kind == DL_DEVICE_GPU && !dl_known(device->scales.norm_scale);
}

/* F-BATCHNORM-CHANNELS: cuDNN normalizes a channel in NCHW on one unit, which moves UNIT_BYTES a
 * clock at most: with 64 channels half of the bandwidth on A100 and H100, 0.9 of a V100's. The
 * backward pass, which reads its tensors twice between two sums, takes BACKWARD times the time of
 * its bytes on each of them (hta-traces, triosim-trace). F-DEVICE-NORM holds before Volta.
 *
 * F-BATCHNORM-NHWC: its persistent kernels of 16-bit tensors in NHWC keep a group of channels on
 * the chip and wait for all units between their sums. From Ampere on they attain this share of the
 * bandwidth: 0.63 forward, 0.69 backward of a ResNet-50 step on an A100 (a100-profile, a PyTorch
 * step in one CUDA graph, 53 layers); runs on H100 agree, those on V100 show none of it. */
double dl_batchnorm_s(const struct dl_device *device, enum dl_precision precision,
                      const struct dl_kernel *kernel, double bytes, double bytes_s) {
    static const double UNIT_BYTES = 10.5, BACKWARD = 1.12, PERSISTENT = 0.65;
    if (!dl_batchnorm_by_channel(device, kernel))
        return kernel->m <= 0.0 && dl_precision_bytes(precision) < 4.0 &&
                       dl_generation_of(device->architecture) >= DL_AMPERE
                   ? bytes_s / PERSISTENT
                   : bytes_s;
    const double channels_s = bytes / (kernel->m * UNIT_BYTES * device->clock_hz),
                 pass = kernel->pass == DL_FORWARD ? 1.0 : BACKWARD;
    if (!(channels_s > 0.0)) return bytes_s;
    return pass * cbrt(bytes_s * bytes_s * bytes_s + channels_s * channels_s * channels_s);
}

/* F-NORM-BACKWARD: the backward pass of a normalization sums each tensor along rows and along
 * columns; where only the forward pass has samples, its kernels attain this share of their rate:
 * PyTorch's layer norm 0.60 to 0.71 in 32 bits (V100, A100, H100; NeuSight, Liger, pytorch 87445)
 * and 0.48 to 0.61 in 16 bits (A100, H200, GB200, GB300; apex 1037, cudnn-frontend, KernelAgent
 * 133). */
double dl_norm_share(enum dl_precision precision, const struct dl_kernel *kernel,
                     const struct dl_kernel_model *model) {
    static const double WIDE = 0.65, NARROW = 0.55;
    const bool backward = kernel->pass == DL_BACKWARD_DATA || kernel->pass == DL_BACKWARD_WEIGHTS;
    if (kernel->op != DL_OP_STREAM || kernel->work != DL_WORK_LAYERNORM || !backward ||
        kernel->launches > 1.0 || kernel->variant == DL_VARIANT_VENDOR ||
        (model != NULL && model->pass != DL_FORWARD))
        return 1.0;
    return dl_precision_bytes(precision) >= 4.0 ? WIDE : NARROW;
}
