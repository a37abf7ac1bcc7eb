/* layer_latent.c - the low-rank projections of multi-head latent attention (DeepSeek-V2).
 *
 * F-LAYER-LATENT: a latent layer is a dense layer whose output is few channels that all heads read:
 * tensor parallelism keeps it whole on every rank, where it splits a dense layer. Keys of latent
 * attention: the projection of the latent gives each head its own keys and values, the other input
 * holds the part of a key that turns (rope) and that all heads share; one fused kernel turns it,
 * copies it to every head and writes keys and values: reads both inputs, writes the output;
 * backward the other way round.
 */
#include "model/workload/layer.h"

static enum dl_code latent_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err) {
    return dl_layer_dense.infer(layer, inputs, arena, err);
}

static int latent_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                          enum dl_pass pass, double batch, struct dl_kernel *out) {
    return dl_layer_dense.kernels(layer, facts, pass, batch, out);
}

const struct dl_layer_kind dl_layer_latent = {
    .name = "latent",
    .summary = "dense layer to few channels that tensor parallelism does not split",
    .source = "formulas",
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_BIAS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = latent_infer,
    .kernels = latent_kernels,
};

static enum dl_code keys_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    char a[64], b[64];
    const double own = inputs[0].channels / layer->attention.heads;
    if (inputs[0].dims != 1 || !dl_shape_same_size(&inputs[0], &inputs[1]) || own != floor(own) ||
        layer->attention.rotary > inputs[1].channels) {
        return dl_layer_fail(
            err, 0,
            "expected keys and values of %.0f heads and a latent with %.0f turning "
            "channels, found %s and %s",
            layer->attention.heads, layer->attention.rotary, dl_shape_text(&inputs[0], a, sizeof a),
            dl_shape_text(&inputs[1], b, sizeof b));
    }
    layer->out = inputs[0];
    layer->out.channels = inputs[0].channels + layer->attention.heads * layer->attention.rotary;
    return DL_OK;
}

static int keys_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double tokens = batch * dl_shape_positions(&layer->in),
                 small = tokens * (layer->in.channels + layer->attention.rotary);
    if (pass == DL_FORWARD) dl_emit_stream(&emit, 0.0, small, emit.out_elements, 0.0);
    if (pass == DL_BACKWARD_DATA)
        dl_emit_stream(&emit, emit.out_elements, emit.out_elements, small, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_latent_keys = {
    .name = "latent_keys",
    .summary = "keys and values of latent attention, with the turning part that all heads share",
    .source = "formulas",
    .needs = DL_KEY_HEADS | DL_KEY_ROTARY,
    .inputs_min = 2,
    .inputs_max = 2,
    .infer = keys_infer,
    .kernels = keys_kernels,
};
