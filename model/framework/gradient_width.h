/* gradient_width.h - bytes of a gradient element, by precision. The only place that decides it.
 */
#ifndef DL_MODEL_FRAMEWORK_GRADIENT_WIDTH_H
#define DL_MODEL_FRAMEWORK_GRADIENT_WIDTH_H

#include "model/framework/framework.h"
#include "model/machine/device.h"

struct dl_gradient_width {
    double sent_bytes; /* in collectives and their buffers */
    double kept_bytes; /* between backward and update */
};

/* F-GRADIENT-WIDTH. Sent: gradient_bytes in fp32 and tf32, mixed_gradient_bytes in mixed precision,
 * bf16_gradient_bytes in 16 bits and less. Kept: as wide as sent, but at least 4 bytes where the
 * parameters are fp32 (fp32, tf32, FSDP's shards: casts_gathered) and 2 elsewhere. Autocast of
 * PyTorch and Keras differentiates fp32 parameters, so mixed_gradient_bytes is 4 there; apex O2,
 * MXNet and DeepSpeed train 16-bit parameters: 2. Sources: kernels-of-frameworks,
 * pytorch-fsdp-source. */
struct dl_gradient_width dl_framework_gradient_width(const struct dl_framework *framework,
                                                     enum dl_precision precision);

#endif
