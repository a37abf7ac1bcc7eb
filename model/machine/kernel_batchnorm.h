/* kernel_batchnorm.h - batch normalization in NCHW, whose channels lie on a GPU's units. */
#ifndef DL_MODEL_MACHINE_KERNEL_BATCHNORM_H
#define DL_MODEL_MACHINE_KERNEL_BATCHNORM_H

#include "model/machine/device.h"

/* Whether a stream is such a batch norm. */
bool dl_batchnorm_by_channel(const struct dl_device *device, const struct dl_kernel *kernel);

/* Its time, where its bytes alone take bytes_s. */
double dl_batchnorm_s(const struct dl_device *device, const struct dl_kernel *kernel, double bytes,
                      double bytes_s);

#endif
