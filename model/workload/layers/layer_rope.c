/* layer_rope.c - rotary position embedding.
 *
 * F-LAYER-ROPE: one fused kernel turns pairs of channels of queries and keys by angles that the
 * position gives: 1R + 1W of what turns, forward and backward alike (backward turns back); nothing
 * is kept. The input is queries, keys and values of one projection (heads and kv_heads given:
 * values pass by), or queries alone (kv_heads absent). `rotary` channels of each head turn. The
 * tables of sines and cosines, one row a position, are not counted. Eager PyTorch (facts): to fp32,
 * complex product, to 16 bits for queries and for keys: 6 kernels and 20 bytes an element each way.
 */
#include "model/workload/layer.h"

static double slots(const struct dl_layer *layer) {
    return layer->attention.heads + 2.0 * layer->attention.kv_heads;
}

static enum dl_code rope_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    const double head_dim = inputs[0].channels / slots(layer);
    if (inputs[0].dims != 1 || head_dim != floor(head_dim)) {
        char text[64];
        return dl_layer_fail(err, DL_KEY_HEADS,
                             "expected a sequence of %.0f heads in all, found %s", slots(layer),
                             dl_shape_text(&inputs[0], text, sizeof text));
    }
    if (layer->attention.rotary > head_dim) {
        return dl_layer_fail(err, DL_KEY_ROTARY,
                             "expected at most the %.0f channels of a head, found %.0f", head_dim,
                             layer->attention.rotary);
    }
    /* what turns / all channels of a head */
    layer->requested.scale =
        layer->attention.rotary > 0.0 ? layer->attention.rotary / head_dim : 1.0;
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static int rope_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.out_elements * layer->requested.scale *
                     (layer->attention.heads + layer->attention.kv_heads) / slots(layer);
    if (pass == DL_BACKWARD_WEIGHTS) return emit.count;
    if (!facts->eager) {
        dl_emit_stream(&emit, 3.0 * n, n, n, 0.0);
        return emit.count;
    }
    struct dl_kernel kernel = dl_kernel_stream(pass, 6.0 * n, 5.0 * n, 5.0 * n); /* 2 bytes each */
    kernel.launches = 6.0;
    kernel.has_type = true;
    kernel.type = DL_BF16;
    if (n > 0.0) dl_emit_kernel(&emit, kernel);
    return emit.count;
}

const struct dl_layer_kind dl_layer_rope = {
    .name = "rope",
    .summary = "rotary position embedding of queries and keys",
    .source = "formulas",
    .needs = DL_KEY_HEADS,
    .takes = DL_KEY_KV_HEADS | DL_KEY_ROTARY,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = rope_infer,
    .kernels = rope_kernels,
};
