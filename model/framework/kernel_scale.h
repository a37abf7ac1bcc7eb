/* kernel_scale.h - time of a layer's kernels under a framework's release and on a device / by the
 * samples. F-FRAMEWORK-KERNELS
 */
#ifndef DL_MODEL_FRAMEWORK_KERNEL_SCALE_H
#define DL_MODEL_FRAMEWORK_KERNEL_SCALE_H

#include "model/hardware/device.h"
#include "model/framework/framework.h"
#include "model/workload/layer.h"

struct dl_kernel_scales {
    double op_scale[DL_OPS]; /* factors on time, by enum dl_op */
    double workspace_bytes;  /* device memory that a convolution may work in; INFINITY: no limit */
    /* a batch normalisation of which the release tells nothing: the device's norm_scale */
    bool norm_as_device;
};

/* What the release makes of that layer's kernels. */
struct dl_kernel_scales dl_kernel_scales(const struct dl_framework *framework,
                                         enum dl_precision precision, const struct dl_layer *layer);

/* The factor on one kernel's time: the release's, that of a fast algorithm which does not get its
 * memory (F-CONV-WORKSPACE), and the device's own for convolutions without a fast algorithm
 * (F-DIRECT-CONV) and for batch normalisations (F-DEVICE-NORM). */
double dl_kernel_scale_of(const struct dl_kernel_scales *scales, const struct dl_device *device,
                          enum dl_precision precision, const struct dl_kernel *kernel);

/* Whether Winograd or FFT algorithms serve a convolution: square kernels of 3 and more, stride 1,
 * one group. */
bool dl_kernel_has_fast_conv(const struct dl_kernel *kernel);

#endif
