/* kernel_scale.c - see the header. Not here: kernel times (kernel.c), their sums (cost.c). */
#include "model/framework/kernel_scale.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/framework/workspace.h"
#include "model/machine/power_cap.h"

static double or_one(double factor) { /* absent is NAN */
    return factor > 0 ? factor : 1;
}

/* What a device's file does not say holds for it as for the device whose kernel-time models it
 * borrows. */
static double of_device(const struct dl_device *device, size_t member) {
    double value = NAN;
    for (; device != NULL && !(value > 0); device = device->borrowed)
        memcpy(&value, (const char *)device + member, sizeof value);
    return or_one(value);
}

bool dl_attention_is_cudnn(const struct dl_framework *framework, const struct dl_device *device) {
    return framework->transformer.attention_library == DL_ATTENTION_SDPA &&
           dl_generation_of(device->architecture) == DL_BLACKWELL;
}

/* Time of fused attention over that of the device's kernel-time models. */
static double attention_scale(const struct dl_framework *framework,
                              const struct dl_device *device) {
    const double own = or_one(device->scales.attention_scale);
    double over_flash2 = 1;
    switch ((enum dl_attention_library)framework->transformer.attention_library) {
    case DL_ATTENTION_TRITON:
        over_flash2 = of_device(device, offsetof(struct dl_device, scales.triton_attention_scale));
        break;
    case DL_ATTENTION_SDPA:
        if (dl_attention_is_cudnn(framework, device)) return own;
        break;
    case DL_ATTENTION_FLASH2: break;
    case DL_ATTENTION_NATIVE: return own;
    }
    return own * over_flash2 * of_device(device, offsetof(struct dl_device, scales.flash2_scale));
}

struct dl_kernel_scales dl_kernel_scales(const struct dl_framework *framework,
                                         const struct dl_device *device,
                                         const struct dl_layer *layer) {
    const bool norm = strcmp(layer->kind->name, "batchnorm") == 0 &&
                      framework->kernels.batchnorm != (int)DL_BATCHNORM_COMPOSED;
    const bool grouped =
        framework->transformer.experts.grouped_gemms && layer->kind == &dl_layer_moe;
    return (struct dl_kernel_scales){
        .workspace_bytes = dl_workspace_limit_bytes(framework),
        .stream_scale = norm ? or_one(device->scales.norm_scale) : 1,
        .attention_scale = attention_scale(framework, device),
        .grouped_scale =
            grouped ? of_device(device, offsetof(struct dl_device, scales.grouped_scale)) : 1,
        .narrow_grouped_scale =
            grouped ? of_device(device, offsetof(struct dl_device, scales.narrow_grouped_scale))
                    : 1};
}

static double load_scale(const struct dl_device *device, enum dl_precision precision) {
    if (precision == DL_FP32) return 1;
    return of_device(device, offsetof(struct dl_device, scales.load_scale));
}

/* Of experts; their router is a single GEMM. */
static double grouped_scale(const struct dl_kernel_scales *scales, enum dl_precision precision,
                            const struct dl_kernel *kernel) {
    if (!(kernel->count > 1)) return 1;
    return or_one(dl_precision_operand_bytes(precision) < 2 ? scales->narrow_grouped_scale
                                                            : scales->grouped_scale);
}

bool dl_kernel_has_fast_conv(const struct dl_kernel *kernel) {
    double side = 0;
    int wide = 0;
    if (kernel->op != DL_OP_CONV || kernel->groups > 1) return false;
    for (int d = 0; d < DL_DIMS; d++) {
        if (kernel->stride[d] > 1 || kernel->dilation[d] > 1) return false;
        if (kernel->kernel[d] <= 1) continue;
        if (wide > 0 && kernel->kernel[d] != side) return false;
        side = kernel->kernel[d];
        wide++;
    }
    return wide == 2;
}

/* F-UNEQUAL-CONV: 1x7, 7x1, 3x5, over images that extend in each of these dimensions. */
static bool has_unequal_sides(const struct dl_kernel *kernel) {
    double widest = 1, sides = 0, dims = 0;
    for (int d = 0; d < DL_DIMS; d++) widest = fmax(widest, kernel->kernel[d]);
    for (int d = 0; d < DL_DIMS; d++) {
        dims += kernel->in[d] > 1;
        sides += kernel->kernel[d] == widest;
    }
    return kernel->groups <= 1 && widest > 1 && dims > sides;
}

/* Of the kernel's library and the device's generation. */
static double own_scale(const struct dl_kernel_scales *scales, const struct dl_device *device,
                        enum dl_precision precision, const struct dl_kernel *kernel) {
    if (kernel->op == DL_OP_STREAM) return scales->stream_scale;
    if (kernel->op == DL_OP_ATTENTION) return scales->attention_scale;
    if (kernel->op == DL_OP_GEMM)
        return load_scale(device, precision) * grouped_scale(scales, precision, kernel);
    if (kernel->op != DL_OP_CONV) return 1;
    double scale = 1;
    if (isfinite(scales->workspace_bytes) && device->kind == DL_DEVICE_GPU)
        scale *= dl_kernel_workspace_factor(device, precision, kernel, scales->workspace_bytes);
    if (device->scales.direct_conv_scale > 0 && kernel->groups <= 1 &&
        !dl_kernel_has_fast_conv(kernel))
        scale *= device->scales.direct_conv_scale;
    if (device->scales.unequal_conv_scale > 0 && has_unequal_sides(kernel))
        scale *= device->scales.unequal_conv_scale;
    return scale;
}

/* Under the device's limit. A kernel that takes `stalled` times as long as the device could leaves
 * its matrix units waiting for the rest, and draws less for it. */
static double power_cap(const struct dl_device *device, const struct dl_kernel *kernel,
                        double stalled) {
    if (kernel->op == DL_OP_STREAM) return dl_power_cap_slowdown(device, DL_POWER_MEMORY_FRAC);
    return dl_power_cap_arithmetic(device, DL_POWER_WAIT_FRAC +
                                               (1 - DL_POWER_WAIT_FRAC) / fmax(1, stalled));
}

double dl_kernel_scale_of(const struct dl_kernel_scales *scales, const struct dl_device *device,
                          enum dl_precision precision, const struct dl_kernel *kernel) {
    const double scale = own_scale(scales, device, precision, kernel);
    if (!(dl_device_load_w(device) > dl_device_limit_w(device))) return scale;
    const double stalled = kernel->op == DL_OP_ATTENTION ? scales->attention_scale
                           : kernel->op == DL_OP_GEMM    ? grouped_scale(scales, precision, kernel)
                                                         : 1;
    return scale * power_cap(device, kernel, stalled);
}
