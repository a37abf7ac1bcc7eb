/* layer_slice.c - layers that take part of a tensor: tokens of a sequence, pixels, channels.
 *
 * F-LAYER-STREAM: a slice or a crop copies forward, 1R + 1W of the part; a split of channels is a
 * view that the next layer reads. Backward each writes a gradient of the input's size that is zero
 * elsewhere, 1R of the part and 1W of the whole.
 */
#include "model/workload/layer.h"

static enum dl_code slice_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (inputs[0].dims != 1 || layer->requested.tokens < 1.0 ||
        layer->requested.tokens > inputs[0].size[DL_DIMS - 1]) {
        char text[64];
        return dl_layer_fail(err, DL_KEY_TOKENS,
                             "expected 1 to all tokens of a sequence, found %.0f of %s",
                             layer->requested.tokens, dl_shape_text(&inputs[0], text, sizeof text));
    }
    layer->out = inputs[0];
    layer->out.size[DL_DIMS - 1] = layer->requested.tokens;
    return DL_OK;
}

static int cut_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements, whole = batch * dl_shape_elements(&layer->in);
    if (n == whole && layer->input_count == 2) return emit.count; /* a crop that cuts nothing */
    if (pass == DL_FORWARD) dl_emit_stream(&emit, 0.0, n, n, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 0.0, n, whole, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_slice = {
    .name = "slice",
    .summary = "the first tokens of a sequence",
    .source = "formulas",
    .needs = DL_KEY_TOKENS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = slice_infer,
    .kernels = cut_kernels,
};

static enum dl_code crop_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->out = inputs[0];
    for (int i = 0; i < DL_DIMS; i++) {
        if (inputs[0].dims != inputs[1].dims || inputs[1].size[i] > inputs[0].size[i]) {
            char a[64], b[64];
            return dl_layer_fail(err, 0, "cannot crop %s to the size of %s",
                                 dl_shape_text(&inputs[0], a, sizeof a),
                                 dl_shape_text(&inputs[1], b, sizeof b));
        }
        layer->out.size[i] = inputs[1].size[i];
    }
    return DL_OK;
}

const struct dl_layer_kind dl_layer_crop = {
    .name = "crop",
    .summary = "crops the first input to the size of the second (U-Net)",
    .source = "formulas",
    .inputs_min = 2,
    .inputs_max = 2,
    .infer = crop_infer,
    .kernels = cut_kernels,
};

static enum dl_code split_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (layer->requested.hidden > inputs[0].channels) {
        return dl_layer_fail(err, DL_KEY_OUT, "expected 1 to all %.0f channels, found %.0f",
                             inputs[0].channels, layer->requested.hidden);
    }
    layer->out = inputs[0];
    layer->out.channels = layer->requested.hidden;
    return DL_OK;
}

static int split_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    if (pass == DL_BACKWARD_DATA)
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.in_elements, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_split = {
    .name = "split",
    .alias = "part",
    .summary = "some of the channels; a view forward",
    .source = "formulas",
    .needs = DL_KEY_OUT,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = split_infer,
    .kernels = split_kernels,
};
