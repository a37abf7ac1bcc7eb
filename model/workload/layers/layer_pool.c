/* layer_pool.c - pooling and upsampling.
 *
 * F-LAYER-STREAM: forward reads the input once and writes the output once; backward reads the
 * gradient of the output and writes that of the input. Max pooling keeps its input and an index of
 * 8 bytes per output element (PyTorch's int64). The others need only shapes, but PyTorch's average
 * pooling keeps its input.
 */
#include "model/workload/layer.h"

static enum dl_code window_infer(struct dl_layer *layer, const struct dl_shape *in,
                                 struct dl_err *err) {
    if (in->dims < 1)
        return dl_layer_fail(err, 0, "expected an input with spatial extents, found a vector");
    layer->out = *in;
    for (int i = DL_DIMS - in->dims; i < DL_DIMS; i++) {
        double padded = in->size[i] + 2.0 * layer->window.pad[i];
        if (layer->window.kernel[i] > padded) {
            return dl_layer_fail(err, DL_KEY_KERNEL,
                                 "a window of %.0f does not fit the padded input of %.0f",
                                 layer->window.kernel[i], padded);
        }
        double steps = (padded - layer->window.kernel[i]) / layer->window.stride[i];
        double out = (layer->window.ceil_mode ? ceil(steps) : floor(steps)) + 1.0;
        /* A window must start inside the input or its left padding. */
        if (layer->window.ceil_mode &&
            (out - 1.0) * layer->window.stride[i] >= in->size[i] + layer->window.pad[i])
            out -= 1.0;
        layer->out.size[i] = out;
    }
    return DL_OK;
}

static double window(const struct dl_layer *layer) {
    return layer->window.kernel[0] * layer->window.kernel[1] * layer->window.kernel[2];
}

static enum dl_code maxpool_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    DL_TRY(window_infer(layer, &inputs[0], err));
    layer->saved.keeps = DL_KEEPS_INPUT;
    layer->saved.bytes = 8.0 * dl_shape_elements(&layer->out);
    return DL_OK;
}

/* Windows that an input element lies in. */
static double windows_of_a_point(const struct dl_layer *layer) {
    double windows = 1.0;
    for (int i = 0; i < DL_DIMS; i++)
        windows *= ceil(layer->window.kernel[i] / layer->window.stride[i]);
    return windows;
}

/* F-POOL-BACKWARD: for each element of its input PyTorch's kernel of the backward pass looks at
 * index and gradient of every window, mostly in the cache. Both together count as PER_WINDOW
 * elements of traffic: 1.9 (V100, A100) and 2.3 (H100) in fp32, 1.9 on an A100 in NHWC and 16
 * bits (hta-traces, triosim-trace). */
static const double PER_WINDOW = 2.0;

static int maxpool_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                           enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    if (pass == DL_FORWARD) {
        dl_emit_stream(&emit, window(layer) * emit.out_elements, emit.in_elements,
                       emit.out_elements, 8.0 * emit.out_elements);
    }
    if (pass == DL_BACKWARD_DATA) {
        const double n = emit.in_elements, m = emit.out_elements;
        if (facts->pooling == DL_POOLING_INDICES)
            dl_emit_stream(&emit, n, PER_WINDOW * windows_of_a_point(layer) * n, n, 0.0);
        else
            dl_emit_stream(&emit, n, m, n, 8.0 * m);
    }
    return emit.count;
}

static enum dl_code avgpool_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->saved.keeps = DL_KEEPS_INPUT;
    return window_infer(layer, &inputs[0], err);
}

static int average_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                           enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double reads = emit.in_elements, writes = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, reads, reads, writes, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, reads, writes, reads, 0.0);
    return emit.count;
}

static enum dl_code global_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (inputs[0].dims < 1)
        return dl_layer_fail(err, 0, "expected an input with spatial extents, found a vector");
    layer->out = inputs[0];
    for (int i = 0; i < DL_DIMS; i++) layer->out.size[i] = 1.0;
    return DL_OK;
}

static enum dl_code adaptive_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (inputs[0].dims < 1)
        return dl_layer_fail(err, 0, "expected an input with spatial extents, found a vector");
    layer->out = inputs[0];
    for (int i = DL_DIMS - inputs[0].dims; i < DL_DIMS; i++)
        layer->out.size[i] = layer->requested.target[i];
    layer->saved.keeps = DL_KEEPS_INPUT;
    return DL_OK;
}

/* The output of an adaptive pool may be larger than its input (AlexNet on small images): elements
 * then repeat. */
const struct dl_layer_kind dl_layer_maxpool = {
    .name = "maxpool",
    .work = DL_WORK_POOLING,
    .summary = "max pooling; stride defaults to the window",
    .source = "formulas",
    .needs = DL_KEY_KERNEL,
    .takes = DL_KEY_STRIDE | DL_KEY_PAD | DL_KEY_CEIL,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = maxpool_infer,
    .kernels = maxpool_kernels,
};

const struct dl_layer_kind dl_layer_avgpool = {
    .name = "avgpool",
    .work = DL_WORK_POOLING,
    .summary = "average pooling; stride defaults to the window",
    .source = "formulas",
    .needs = DL_KEY_KERNEL,
    .takes = DL_KEY_STRIDE | DL_KEY_PAD | DL_KEY_CEIL,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = avgpool_infer,
    .kernels = average_kernels,
};

const struct dl_layer_kind dl_layer_global_pool = {
    .name = "global_pool",
    .work = DL_WORK_POOLING,
    .summary = "mean over all positions",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = global_infer,
    .kernels = average_kernels,
};

const struct dl_layer_kind dl_layer_adaptive_pool = {
    .name = "adaptive_pool",
    .work = DL_WORK_POOLING,
    .summary = "average pooling to a given output size",
    .source = "formulas",
    .needs = DL_KEY_SIZE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = adaptive_infer,
    .kernels = average_kernels,
};

static enum dl_code upsample_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (inputs[0].dims < 1)
        return dl_layer_fail(err, 0, "expected an input with spatial extents, found a vector");
    layer->out = inputs[0];
    for (int i = DL_DIMS - inputs[0].dims; i < DL_DIMS; i++)
        layer->out.size[i] *= layer->requested.scale;
    return DL_OK;
}

const struct dl_layer_kind dl_layer_upsample = {
    .name = "upsample",
    .summary = "enlarges each extent by a whole factor (nearest or bilinear)",
    .source = "formulas",
    .needs = DL_KEY_SCALE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = upsample_infer,
    .kernels = average_kernels,
};
