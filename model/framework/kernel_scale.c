/* kernel_scale.c - see the header. Not here: kernel times (kernel.c), their sums (cost.c). */
#include "model/framework/kernel_scale.h"

#include <math.h>
#include <string.h>

#include "model/framework/workspace.h"

static double or_one(double factor) { /* absent is NAN */
    return factor > 0 ? factor : 1;
}

static bool is_one_of(const char *name, const char *const *names) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* 1x7, 7x1, 1x3. Matters for convolutions only. */
static bool has_unequal_sides(const struct dl_layer *layer) {
    return layer->out.dims == 2 && layer->kernel[DL_DIMS - 2] != layer->kernel[DL_DIMS - 1];
}

/* Layers that frameworks compose of many small kernels, unless they ship a fused one, have their
 * own factor. */
struct dl_kernel_scales dl_kernel_scales(const struct dl_framework *framework,
                                         enum dl_precision precision,
                                         const struct dl_layer *layer) {
    const struct dl_framework_kernels *f = &framework->kernels;
    static const char *const composed[] = {"layernorm", "gelu", "softmax", "dropout",
                                           "attention", "loss", NULL};
    const bool mixed = precision == DL_MIXED || precision == DL_FP16 || precision == DL_BF16;
    const char *kind = layer->kind->name;
    double conv = mixed ? f->mixed_conv_scale : f->conv_scale,
           stream = mixed ? f->mixed_stream_scale : f->stream_scale;
    if (layer->groups > 1) conv = mixed ? f->mixed_grouped_scale : f->grouped_scale;
    /* Composed layers run the same kernels in mixed precision unless the release has others. */
    if (is_one_of(kind, composed))
        stream = mixed && dl_known(f->mixed_composed_scale) ? f->mixed_composed_scale
                                                            : f->composed_scale;
    conv = or_one(conv);
    if (has_unequal_sides(layer)) conv *= or_one(f->unequal_scale);
    stream = or_one(stream);
    if (strcmp(kind, "loss") == 0) stream *= or_one(f->loss_scale);
    const bool norm = strcmp(kind, "batchnorm") == 0;
    if (norm) stream *= or_one(f->norm_scale);
    return (struct dl_kernel_scales){
        {[DL_OP_GEMM] = 1, [DL_OP_CONV] = conv, [DL_OP_STREAM] = stream},
        dl_workspace_limit_bytes(framework),
        norm && !dl_known(f->norm_scale)};
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

double dl_kernel_scale_of(const struct dl_kernel_scales *scales, const struct dl_device *device,
                          enum dl_precision precision, const struct dl_kernel *kernel) {
    double scale = scales->op_scale[kernel->op];
    if (kernel->op == DL_OP_STREAM && scales->norm_as_device) scale *= or_one(device->norm_scale);
    if (kernel->op != DL_OP_CONV) return scale;
    if (isfinite(scales->workspace_bytes) && device->kind == DL_DEVICE_GPU)
        scale *= dl_kernel_workspace_factor(device, precision, kernel, scales->workspace_bytes);
    if (device->direct_conv_scale > 0 && kernel->groups <= 1 && !dl_kernel_has_fast_conv(kernel))
        scale *= device->direct_conv_scale;
    return scale;
}
