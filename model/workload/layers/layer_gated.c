/* layer_gated.c - activations of today's transformers: gated ones and the squared ReLU.
 *
 * F-LAYER-GATED: the input holds a gate and a value of f channels each, or they are two inputs; the
 * output is act(gate) * value: one fused kernel that reads 2 f and writes f a token forward, and
 * backward reads 2 f and the gradient's f and writes 2 f. Kept: the input. Squared ReLU moves 1R +
 * 1W forward and 2R + 1W backward and keeps its input. Eager PyTorch (facts) runs the activation
 * and the product one after the other: 3 f + 2 f forward in two kernels, 6 f + 3 f backward in
 * three.
 */
#include "model/workload/layer.h"

static enum dl_code gated_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    const bool apart = layer->input_count == 2;
    if (apart && !dl_shape_same(&inputs[0], &inputs[1]))
        return dl_layer_fail(err, 0, "gate and value must have one shape");
    const double half = apart ? inputs[0].channels : inputs[0].channels / 2.0;
    if (half != floor(half)) {
        return dl_layer_fail(err, 0,
                             "expected an even number of channels (gate and value), found %.0f",
                             inputs[0].channels);
    }
    layer->out = inputs[0];
    layer->out.channels = half;
    layer->saved.keeps = DL_KEEPS_INPUT;
    return DL_OK;
}

static int gated_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.out_elements; /* exponential, product, and their derivatives */
    if (facts->unfused_gate && pass != DL_BACKWARD_WEIGHTS) {
        const bool forward = pass == DL_FORWARD;
        struct dl_kernel kernel = dl_kernel_stream(pass, 15.0 * n, forward ? 3.0 * n : 6.0 * n,
                                                   forward ? 2.0 * n : 3.0 * n);
        kernel.launches = forward ? 2.0 : 3.0;
        dl_emit_kernel(&emit, kernel);
        return emit.count;
    }
    if (pass == DL_FORWARD) dl_emit_stream(&emit, 11.0 * n, 2.0 * n, n, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 15.0 * n, 3.0 * n, 2.0 * n, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_swiglu = {
    .name = "swiglu",
    .summary = "swish of one half of the channels times the other half",
    .source = "formulas",
    .work = DL_WORK_ACTIVATION,
    .inputs_min = 1,
    .inputs_max = 2,
    .infer = gated_infer,
    .kernels = gated_kernels,
};

const struct dl_layer_kind dl_layer_geglu = {
    .name = "geglu",
    .summary = "GELU of one half of the channels times the other half",
    .source = "formulas",
    .work = DL_WORK_ACTIVATION,
    .inputs_min = 1,
    .inputs_max = 2,
    .infer = gated_infer,
    .kernels = gated_kernels,
};

static enum dl_code relu2_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    layer->saved.keeps = DL_KEEPS_INPUT;
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static int relu2_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, 2.0 * n, n, n, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 3.0 * n, 2.0 * n, n, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_relu2 = {
    .name = "relu2",
    .summary = "square of max(x, 0)",
    .source = "formulas",
    .work = DL_WORK_ACTIVATION,
    .takes = DL_KEY_IN_PLACE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = relu2_infer,
    .kernels = relu2_kernels,
};
