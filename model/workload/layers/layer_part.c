/* layer_part.c - some of the channels of a tensor (split, chunk).
 *
 * F-LAYER-STREAM: forward a view that the next layer reads; backward a gradient of the input's size
 * that is zero elsewhere, 1R of the part and 1W of the whole.
 */
#include "model/workload/layer.h"

static enum dl_code part_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    if (layer->hidden > inputs[0].channels) {
        return dl_layer_fail(err, DL_KEY_OUT, "expected 1 to all %.0f channels, found %.0f",
                             inputs[0].channels, layer->hidden);
    }
    layer->out = inputs[0];
    layer->out.channels = layer->hidden;
    return DL_OK;
}

static int part_kernels(const struct dl_layer *layer, enum dl_pass pass, double batch,
                        struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, pass, batch, out);
    if (pass == DL_BACKWARD_DATA)
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.in_elements, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_part = {
    .name = "part",
    .summary = "some of the channels (split); a view forward",
    .source = "formulas",
    .needs = DL_KEY_OUT,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = part_infer,
    .kernels = part_kernels,
};
