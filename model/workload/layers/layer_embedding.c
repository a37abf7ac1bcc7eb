/* layer_embedding.c - table look-up: one row of `out` elements per token, or one row per sample
 * when the input is a vector of indices (DLRM).
 *
 * F-LAYER-EMBED: forward reads and writes the rows used (gather) and reads an 8-byte index for
 * each. Backward-weights adds the gradient into them (scatter: 2R + 1W of those rows) and, unless
 * `sparse`, first writes zeros to a gradient of the whole table. There is no gradient of the
 * indices. Not modelled: caches that hold frequent rows.
 */
#include "model/workload/layer.h"

static enum dl_code embedding_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    layer->out =
        (struct dl_shape){.dims = 0, .channels = layer->requested.hidden, .size = {1.0, 1.0, 1.0}};
    if (inputs[0].dims == 1) {
        layer->out.dims = 1;
        layer->out.size[DL_DIMS - 1] =
            layer->requested.tokens > 0.0 ? layer->requested.tokens : inputs[0].size[DL_DIMS - 1];
    } else if (inputs[0].dims > 1) {
        return dl_layer_fail(err, 0, "expected a sequence of tokens or a vector of indices");
    } else if (layer->requested.tokens > 0.0) {
        return dl_layer_fail(err, DL_KEY_TOKENS, "only an embedding of a sequence has tokens");
    }
    return dl_layer_parameter(layer, arena, "weight", layer->rows * layer->requested.hidden, err);
}

static int embedding_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements, index_bytes = 8.0 * batch * dl_shape_positions(&layer->out);
    if (pass == DL_FORWARD) {
        dl_emit_stream(&emit, 0.0, n, n, index_bytes);
        dl_emit_type(&emit, DL_FACT_EMBEDDING);
    }
    if (pass == DL_BACKWARD_WEIGHTS) {
        if (!layer->sparse)
            dl_emit_stream(&emit, 0.0, 0.0, layer->rows * layer->requested.hidden, 0.0);
        dl_emit_stream(&emit, n, 2.0 * n, n, index_bytes);
        dl_emit_type(&emit, DL_FACT_EMBEDDING);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_embedding = {
    .name = "embedding",
    .summary = "table look-up, one row per token or per sample",
    .source = "formulas",
    .needs = DL_KEY_ROWS | DL_KEY_OUT,
    .takes = DL_KEY_TOKENS | DL_KEY_SPARSE | DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = embedding_infer,
    .kernels = embedding_kernels,
};
