/* kernel_batchnorm.c - see the header. */
#include "model/machine/kernel_batchnorm.h"

#include <math.h>

/* F-BATCHNORM-CHANNELS: cuDNN normalizes a channel in NCHW on one unit, which moves UNIT_BYTES a
 * clock at most: with 64 channels half of the bandwidth on A100 and H100, 0.9 of a V100's. The
 * backward pass, which reads its tensors twice between two sums, takes BACKWARD times the time of
 * its bytes on each of them (hta-traces, triosim-trace). F-DEVICE-NORM holds before Volta. */
double dl_batchnorm_s(const struct dl_device *device, const struct dl_kernel *kernel, double bytes,
                      double bytes_s) {
    static const double UNIT_BYTES = 10.5, BACKWARD = 1.12;
    const double channels_s = bytes / (kernel->m * UNIT_BYTES * device->clock_hz),
                 pass = kernel->pass == DL_FORWARD ? 1.0 : BACKWARD;
    if (!(channels_s > 0.0)) return bytes_s;
    return pass * cbrt(bytes_s * bytes_s * bytes_s + channels_s * channels_s * channels_s);
}

bool dl_batchnorm_by_channel(const struct dl_device *device, const struct dl_kernel *kernel) {
    return kernel->op == DL_OP_STREAM && kernel->work == DL_WORK_BATCHNORM && kernel->m > 0.0 &&
           device->kind == DL_DEVICE_GPU && !dl_known(device->scales.norm_scale);
}
