/* layer_act.c - elementwise activations, softmax, dropout and the loss.
 *
 * F-LAYER-STREAM: an activation moves 1R + 1W forward and 2R + 1W backward.
 * relu, relu6, sigmoid, tanh and softmax keep their output for backward, gelu and swish their
 * input. In place an activation saves the memory of its input, which then does not count, but moves
 * the same bytes.
 */
#include "model/workload/layer.h"

static enum dl_code by_output_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    layer->saved.keeps = DL_KEEPS_OUTPUT;
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static enum dl_code by_input_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_arena *arena, struct dl_err *err) {
    layer->saved.keeps = DL_KEEPS_INPUT;
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static int emit_elementwise(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                            enum dl_pass pass, double batch, double flop_each,
                            struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, flop_each * n, n, n, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, flop_each * n, 2.0 * n, n, 0.0);
    return emit.count;
}

static int cheap_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    return emit_elementwise(layer, facts, pass, batch, 1.0, out);
}

/* 10: an exponential and a few operations; far below what would make it bound by arithmetic. */
static int costly_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                          enum dl_pass pass, double batch, struct dl_kernel *out) {
    return emit_elementwise(layer, facts, pass, batch, 10.0, out);
}

static int gelu_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.out_elements;
    if (pass != DL_FORWARD && pass != DL_BACKWARD_DATA) return emit.count;
    const struct dl_passes passes = dl_passes_gelu(facts->gelu, pass);
    dl_emit_passes(&emit, &passes, 10.0 * n, n, DL_FACT_GELU);
    return emit.count;
}

#define DL_ACTIVATION(symbol, kind_name, text, work_kind, infer_function, kernels_function)        \
    const struct dl_layer_kind symbol = {                                                          \
        .name = kind_name,                                                                         \
        .summary = text,                                                                           \
        .source = "formulas",                                                                      \
        .work = work_kind,                                                                         \
        .takes = DL_KEY_IN_PLACE,                                                                  \
        .inputs_min = 1,                                                                           \
        .inputs_max = 1,                                                                           \
        .infer = infer_function,                                                                   \
        .kernels = kernels_function,                                                               \
    }

DL_ACTIVATION(dl_layer_relu, "relu", "max(x, 0)", DL_WORK_ACTIVATION, by_output_infer,
              cheap_kernels);
DL_ACTIVATION(dl_layer_relu6, "relu6", "min(max(x, 0), 6)", DL_WORK_ACTIVATION, by_output_infer,
              cheap_kernels);
DL_ACTIVATION(dl_layer_sigmoid, "sigmoid", "logistic function", DL_WORK_ACTIVATION, by_output_infer,
              costly_kernels);
DL_ACTIVATION(dl_layer_tanh, "tanh", "hyperbolic tangent", DL_WORK_ACTIVATION, by_output_infer,
              costly_kernels);
DL_ACTIVATION(dl_layer_softmax, "softmax", "softmax over channels", DL_WORK_SOFTMAX,
              by_output_infer, costly_kernels);
DL_ACTIVATION(dl_layer_gelu, "gelu", "Gaussian error linear unit", DL_WORK_ACTIVATION,
              by_input_infer, gelu_kernels);
DL_ACTIVATION(dl_layer_swish, "swish", "x times its sigmoid (SiLU)", DL_WORK_ACTIVATION,
              by_input_infer, costly_kernels);

static enum dl_code dropout_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    if (layer->dropout > 0.0) {
        layer->saved.bytes = dl_shape_elements(&inputs[0]); /* the mask, one byte per element */
    } else {
        layer->view = true; /* the identity */
    }
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static int dropout_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                           enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    if (layer->dropout > 0.0 && (pass == DL_FORWARD || pass == DL_BACKWARD_DATA)) {
        const struct dl_passes passes = dl_passes_dropout(facts->dropout, pass);
        dl_emit_passes(&emit, &passes, 2.0 * n, n, DL_FACT_DROPOUT);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_dropout = {
    .name = "dropout",
    .summary = "dropout with a mask of one byte per element; dropout 0 is the identity",
    .source = "formulas",
    .needs = DL_KEY_DROPOUT,
    .takes = DL_KEY_IN_PLACE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = dropout_infer,
    .kernels = dropout_kernels,
};

/* Softmax cross-entropy of each token or sample, computed and kept in fp32 at any precision (4
 * bytes per logit). */
static enum dl_code loss_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    (void)err;
    layer->out = (struct dl_shape){.dims = 0, .channels = 1.0, .size = {1.0, 1.0, 1.0}};
    layer->saved.bytes = 4.0 * dl_shape_elements(&inputs[0]);
    return DL_OK;
}

static int loss_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.in_elements;
    if (pass != DL_FORWARD && pass != DL_BACKWARD_DATA) return emit.count;
    const struct dl_passes passes = dl_passes_loss(facts->loss, pass);
    dl_emit_stream(&emit, pass == DL_FORWARD ? 10.0 * n : 3.0 * n, passes.reads * n,
                   passes.writes * n, passes.fixed_bytes * n);
    if (emit.count == 0 || facts->loss == DL_LOSS_FUSED) return emit.count;
    struct dl_kernel *last = &emit.out[emit.count - 1];
    last->launches = passes.kernels;
    last->has_type = facts->precision != DL_TF32;
    last->type = DL_FP32;
    return emit.count;
}

const struct dl_layer_kind dl_layer_loss = {
    .name = "loss",
    .work = DL_WORK_SOFTMAX,
    .summary = "softmax cross-entropy, kept in fp32",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = loss_infer,
    .kernels = loss_kernels,
};
