/* gradient_width.c - see the header. */
#include "model/framework/gradient_width.h"

#include <math.h>

struct dl_gradient_width dl_framework_gradient_width(const struct dl_framework *framework,
                                                     enum dl_precision precision) {
    const bool is_fp32 = precision == DL_FP32 || precision == DL_TF32;
    const bool keeps_fp32 = is_fp32 || framework->transformer.casts_gathered;
    double sent_bytes = framework->transformer.bf16_gradient_bytes;
    if (is_fp32) sent_bytes = framework->sync.gradient_bytes;
    if (precision == DL_MIXED) sent_bytes = framework->sync.mixed_gradient_bytes;
    return (struct dl_gradient_width){.sent_bytes = sent_bytes,
                                      .kept_bytes = fmax(keeps_fp32 ? 4 : 2, sent_bytes)};
}
