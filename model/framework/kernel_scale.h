/* kernel_scale.h - factors on the time of a layer's kernels: the framework release's and the
 * device's, relative to the device's samples. F-FRAMEWORK-KERNELS
 */
#ifndef DL_MODEL_FRAMEWORK_KERNEL_SCALE_H
#define DL_MODEL_FRAMEWORK_KERNEL_SCALE_H

#include "model/hardware/device.h"
#include "model/framework/framework.h"
#include "model/workload/layer.h"

struct dl_kernel_scales {
    double op_scale[DL_OPS]; /* factors on time, by enum dl_op */
    double workspace_bytes;  /* maximum workspace of a convolution; INFINITY: no limit */
    /* a batch norm for which the release has no factor: the device's norm_scale applies */
    bool norm_as_device;
};

/* The release's factors on that layer's kernels. */
struct dl_kernel_scales dl_kernel_scales(const struct dl_framework *framework,
                                         enum dl_precision precision, const struct dl_layer *layer);

/* The factor on one kernel's time: the release's, that of a fast algorithm that lacks workspace
 * (F-CONV-WORKSPACE), and the device's for convolutions without a fast algorithm (F-DIRECT-CONV)
 * and for batch norms (F-DEVICE-NORM). */
double dl_kernel_scale_of(const struct dl_kernel_scales *scales, const struct dl_device *device,
                          enum dl_precision precision, const struct dl_kernel *kernel);

/* Whether Winograd or FFT algorithms can run a convolution: square kernels of side 2 or more,
 * stride 1, no dilation, one group. */
bool dl_kernel_has_fast_conv(const struct dl_kernel *kernel);

#endif
