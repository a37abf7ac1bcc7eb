/* kernel_scale.h - factors on the time of a layer's kernels: what a release of a library and the
 * device make of them, relative to the device's samples. F-KERNEL-FACTS
 */
#ifndef DL_MODEL_FRAMEWORK_KERNEL_SCALE_H
#define DL_MODEL_FRAMEWORK_KERNEL_SCALE_H

#include "model/machine/device.h"
#include "model/framework/framework.h"
#include "model/workload/layer.h"

struct dl_kernel_scales {
    double workspace_bytes; /* maximum workspace of a convolution; INFINITY: no limit */
    double stream_scale;    /* factor on bandwidth-bound kernels: the device's norm_scale, or 1 */
    double attention_scale; /* factor on fused attention by the release's library */
    /* factors on the experts' GEMMs by the release's grouped kernels, 16 bits and less; 0: 1 */
    double grouped_scale, narrow_grouped_scale;
};

/* What the release of a framework and of its libraries makes of that layer's kernels. */
struct dl_kernel_scales dl_kernel_scales(const struct dl_framework *framework,
                                         const struct dl_device *device,
                                         const struct dl_layer *layer);

/* The factor on one kernel's time: the device's for batch norms by cuDNN (F-DEVICE-NORM) and for
 * convolutions without a fast algorithm (F-DIRECT-CONV), that of a fast algorithm that lacks
 * workspace (F-CONV-WORKSPACE), of GEMMs under the power limit and of attention by kernels of an
 * older generation (F-KERNEL-LOAD), of grouped GEMMs (F-KERNEL-GROUPED), of the clock under a power
 * limit (F-POWER-CAP). */
double dl_kernel_scale_of(const struct dl_kernel_scales *scales, const struct dl_device *device,
                          enum dl_precision precision, const struct dl_kernel *kernel);

/* Whether PyTorch chooses cuDNN for fused attention there: on Blackwell. F-KERNEL-LOAD */
bool dl_attention_is_cudnn(const struct dl_framework *framework, const struct dl_device *device);

/* Whether Winograd or FFT algorithms can run a convolution: square kernels of side 2 or more,
 * stride 1, no dilation, one group. */
bool dl_kernel_has_fast_conv(const struct dl_kernel *kernel);

#endif
