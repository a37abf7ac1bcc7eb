/* layer_conv.c - convolutions and transposed convolutions in one to three dimensions, grouped,
 * depthwise and dilated.
 *
 * Work: F-LAYER-CONV, F * (C / groups) * prod(K) * prod(out) multiply-adds per sample and pass;
 * a transposed one has prod(in) in place of prod(out). The bias is a separate bandwidth-bound
 * kernel, 1R + 1W forward and 1R backward, as PyTorch with cuDNN executes it. Not modelled: the
 * algorithm's workspace, layout changes.
 */
#include "model/workload/layer.h"

static enum dl_code check_channels(const struct dl_layer *layer, const struct dl_shape *in,
                                   struct dl_err *err) {
    if (in->dims < 1)
        return dl_layer_fail(err, 0, "expected an input with spatial extents, found a vector");
    double c = in->channels / layer->groups, f = layer->requested.hidden / layer->groups;
    if (c != floor(c)) {
        return dl_layer_fail(err, DL_KEY_GROUPS,
                             "%.0f input channels do not divide into %.0f groups", in->channels,
                             layer->groups);
    }
    if (f != floor(f)) {
        return dl_layer_fail(err, DL_KEY_GROUPS,
                             "%.0f output channels do not divide into %.0f groups",
                             layer->requested.hidden, layer->groups);
    }
    return DL_OK;
}

static double product(const double values[DL_DIMS]) { return values[0] * values[1] * values[2]; }

/* The filters and the bias; each weight works once at each of `positions`. */
static enum dl_code add_weights(struct dl_layer *layer, double weights, double positions,
                                struct dl_arena *arena, struct dl_err *err) {
    layer->forward_macs = weights * positions;
    layer->saved.keeps = DL_KEEPS_INPUT;
    DL_TRY(dl_layer_parameter(layer, arena, "weight", weights, err));
    return layer->bias ? dl_layer_parameter(layer, arena, "bias", layer->requested.hidden, err)
                       : DL_OK;
}

static enum dl_code conv_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    const struct dl_shape *in = &inputs[0];
    DL_TRY(check_channels(layer, in, err));
    layer->out = *in;
    layer->out.channels = layer->requested.hidden;
    for (int i = DL_DIMS - in->dims; i < DL_DIMS; i++) {
        double reach = layer->window.dilation[i] * (layer->window.kernel[i] - 1.0) + 1.0;
        double padded = in->size[i] + 2.0 * layer->window.pad[i];
        if (reach > padded) {
            return dl_layer_fail(
                err, DL_KEY_KERNEL,
                "a kernel reaching over %.0f does not fit the padded input of %.0f", reach, padded);
        }
        layer->out.size[i] = floor((padded - reach) / layer->window.stride[i]) + 1.0;
    }
    double weights =
        layer->requested.hidden * (in->channels / layer->groups) * product(layer->window.kernel);
    return add_weights(layer, weights, dl_shape_positions(&layer->out), arena, err);
}

/* Copies to another layout that the framework or the library makes around a convolution: of the
 * weights, and of both activations where it computes channels-last and they are not. F-KERNEL-FACTS
 */
static void emit_copies(struct dl_emit *emit, const struct dl_kernel *conv,
                        const struct dl_shape *from, const struct dl_shape *to, double batch) {
    const struct dl_kernel_facts *facts = emit->facts;
    const double weights = facts->weight_copies
                               ? emit->layer->parameter_elements + emit->layer->frozen_elements
                               : 0.0,
                 all = batch * (dl_shape_elements(from) + dl_shape_elements(to)),
                 activations = !facts->activation_copies     ? 0.0
                               : facts->precision == DL_TF32 ? dl_conv_copied_elements(conv, 4.0)
                                                             : all,
                 copied = weights + activations;
    const int before = emit->count;
    dl_emit_stream(emit, 0.0, copied, copied, 0.0);
    if (emit->count == before) return;
    struct dl_kernel *kernel = &emit->out[emit->count - 1];
    kernel->launches = (weights > 0.0 ? 1.0 : 0.0) + (activations > 0.0 ? 2.0 : 0.0);
    kernel->work = DL_WORK_ANY;
}

/* The convolution from `from` to `to` in its pass `role`, then the layer's bias. */
static int emit_conv(struct dl_emit emit, enum dl_pass role, const struct dl_shape *from,
                     const struct dl_shape *to) {
    const struct dl_layer *layer = emit.layer;
    const enum dl_pass pass = emit.pass;
    const double n = emit.out_elements, batch = emit.batch;
    const struct dl_kernel conv = dl_kernel_conv(
        role, &(struct dl_conv_shape){batch, from->channels, to->channels, layer->groups,
                                      from->size, layer->window.kernel, layer->window.stride,
                                      layer->window.pad, layer->window.dilation});
    dl_emit_kernel(&emit, conv);
    emit_copies(&emit, &conv, from, to, batch);
    if (layer->bias && pass == DL_FORWARD) dl_emit_stream(&emit, n, n, n, 0.0);
    if (layer->bias && pass == DL_BACKWARD_WEIGHTS) dl_emit_stream(&emit, n, n, 0.0, 0.0);
    return emit.count;
}

static int conv_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    return emit_conv(dl_emit_begin(layer, facts, pass, batch, out), pass, &layer->in, &layer->out);
}

const struct dl_layer_kind dl_layer_conv = {
    .name = "conv",
    .summary = "convolution in 1 to 3 dimensions; groups = channels makes it depthwise",
    .source = "formulas",
    .needs = DL_KEY_OUT | DL_KEY_KERNEL,
    .takes =
        DL_KEY_STRIDE | DL_KEY_PAD | DL_KEY_DILATION | DL_KEY_GROUPS | DL_KEY_BIAS | DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = conv_infer,
    .kernels = conv_kernels,
};

static enum dl_code transpose_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    const struct dl_shape *in = &inputs[0];
    DL_TRY(check_channels(layer, in, err));
    layer->out = *in;
    layer->out.channels = layer->requested.hidden;
    for (int i = DL_DIMS - in->dims; i < DL_DIMS; i++) {
        double reach = layer->window.dilation[i] * (layer->window.kernel[i] - 1.0) + 1.0;
        layer->out.size[i] =
            (in->size[i] - 1.0) * layer->window.stride[i] - 2.0 * layer->window.pad[i] + reach;
        if (layer->out.size[i] < 1.0) {
            return dl_layer_fail(err, DL_KEY_PAD,
                                 "the output extent would be %.0f; expected at least 1",
                                 layer->out.size[i]);
        }
    }
    double weights =
        in->channels * (layer->requested.hidden / layer->groups) * product(layer->window.kernel);
    return add_weights(layer, weights, dl_shape_positions(in), arena, err);
}

/* A transposed convolution is the gradient of a convolution from `out` to `in`: it runs forward as
 * that one's backward-data pass and vice versa, as libraries do. */
static int transpose_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    enum dl_pass role = pass == DL_FORWARD         ? DL_BACKWARD_DATA
                        : pass == DL_BACKWARD_DATA ? DL_FORWARD
                                                   : pass;
    return emit_conv(dl_emit_begin(layer, facts, pass, batch, out), role, &layer->out, &layer->in);
}

const struct dl_layer_kind dl_layer_conv_transpose = {
    .name = "conv_transpose",
    .summary = "transposed convolution (up-convolution)",
    .source = "formulas",
    .needs = DL_KEY_OUT | DL_KEY_KERNEL,
    .takes =
        DL_KEY_STRIDE | DL_KEY_PAD | DL_KEY_DILATION | DL_KEY_GROUPS | DL_KEY_BIAS | DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = transpose_infer,
    .kernels = transpose_kernels,
};
