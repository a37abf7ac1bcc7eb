/* kernel_norm.h - normalizations: batch norm in NCHW, whose channels lie on a GPU's
 * units, and the backward pass of layer norm. */
#ifndef DL_MODEL_MACHINE_KERNEL_NORM_H
#define DL_MODEL_MACHINE_KERNEL_NORM_H

#include "model/machine/device.h"
#include "model/machine/kernel_model.h"

/* Whether a stream is such a batch norm. */
bool dl_batchnorm_by_channel(const struct dl_device *device, const struct dl_kernel *kernel);

/* Time of a batch norm whose bytes alone take bytes_s. */
double dl_batchnorm_s(const struct dl_device *device, enum dl_precision precision,
                      const struct dl_kernel *kernel, double bytes, double bytes_s);

/* Share of its rate that a kernel attains, timed by `model` (NULL: by its bytes): below 1 for
 * backward passes of layer norms without samples of that pass. */
double dl_norm_share(enum dl_precision precision, const struct dl_kernel *kernel,
                     const struct dl_kernel_model *model);

#endif
