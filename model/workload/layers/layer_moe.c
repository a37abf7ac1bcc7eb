/* layer_moe.c - a mixture of experts in place of a feed-forward layer: a router, and E experts of
 * two GEMMs each; every token goes to k of them.
 *
 * F-LAYER-MOE: parameters h E + E (2 h f, and f + h with bias), with gated experts (SwiGLU, GeGLU)
 * h E + E (3 h f, and 2 f + h); a router with bias E more. Active multiply-adds per token h E + 2 k
 * h f (gated 3 k h f). With a capacity factor c every expert has room for c k T / E of T tokens
 * (GShard and Switch) and computes all of it; where no tokens are dropped (capacity 0), the rows
 * are the k T that there are, and a factor c >= 1 states the imbalance of the router, tokens of the
 * largest expert / mean. Kernels: router (E, T, h) and its softmax with the selection; dispatch, T
 * h read and c k T h written; batches of E GEMMs (f or 2 f, c k T/E, h) and (h, c k T/E, f) around
 * an activation; combination, c k T h read and T h written. Backward-data mirrors them,
 * backward-weights has three GEMMs. Kept per token: input, the router's E, c k (h + 2 f), gated c k
 * (h + 3 f). With experts sharded over e devices (F-TRANSFORMER-EXPERT), a device holds E/e of them
 * and receives the tokens of e devices: the same c k T rows in fewer, larger GEMMs. Shared experts
 * are separate dense layers. Not modelled: the load-balancing loss, sorting of indices.
 */
#include <math.h>

#include "model/workload/layer.h"

static double tokens_of(const struct dl_layer *layer) { return dl_shape_positions(&layer->in); }
static double routed(const struct dl_layer *layer) {
    return layer->moe.top_k * layer->moe.capacity;
} /* rows of experts per token */

/* Width of the first matrix's output / f. */
static double widths(const struct dl_layer *layer) { return layer->moe.gated ? 2 : 1; }

double dl_layer_moe_own_elements(const struct dl_layer *layer) {
    return tokens_of(layer) *
           (layer->moe.experts +
            routed(layer) * (layer->in.channels + (widths(layer) + 1) * layer->requested.hidden));
}

static enum dl_code moe_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    const double h = inputs[0].channels, f = layer->requested.hidden, e = layer->moe.experts,
                 wide = widths(layer) * f;
    if (inputs[0].dims > 1)
        return dl_layer_fail(err, 0, "expected a vector or a sequence; put a 'flatten' before it");
    if (layer->moe.top_k == 0) layer->moe.top_k = 1;
    layer->moe.dropless = layer->moe.capacity == 0;
    if (layer->moe.dropless) layer->moe.capacity = 1;
    if (layer->moe.top_k > e)
        return dl_layer_fail(err, DL_KEY_TOPK,
                             "expected at most the number of experts (%.0f), found %.0f", e,
                             layer->moe.top_k);
    layer->moe.held_experts = e;
    layer->out = inputs[0];
    layer->forward_macs = tokens_of(layer) * h * (e + layer->moe.top_k * (wide + f));
    layer->saved.keeps = DL_KEEPS_INPUT;
    layer->saved.own_elements = dl_layer_moe_own_elements(layer);
    DL_TRY(dl_layer_parameter(layer, arena, "router", h * e, err));
    if (layer->moe.router_bias) DL_TRY(dl_layer_parameter(layer, arena, "router.bias", e, err));
    DL_TRY(dl_layer_parameter(layer, arena, "fc1.weight", e * h * wide, err));
    if (layer->bias) DL_TRY(dl_layer_parameter(layer, arena, "fc1.bias", e * wide, err));
    DL_TRY(dl_layer_parameter(layer, arena, "fc2.weight", e * h * f, err));
    if (layer->bias) DL_TRY(dl_layer_parameter(layer, arena, "fc2.bias", e * h, err));
    return DL_OK;
}

static int moe_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double h = layer->in.channels, f = layer->requested.hidden, e = layer->moe.experts,
                 held = layer->moe.held_experts, wide = widths(layer) * f;
    const double tokens = batch * tokens_of(layer), all = tokens * routed(layer),
                 rows = ceil(all / held);
    if (pass == DL_FORWARD) {
        dl_emit_gemm(&emit, e, tokens, h, 1.0, true, false);
        dl_emit_stream(&emit, 10.0 * tokens * e, tokens * e, tokens * (e + layer->moe.top_k), 0.0);
        dl_emit_stream(&emit, 0.0, tokens * h, all * h, 0.0);
        dl_emit_gemm(&emit, wide, rows, h, held, true, false);
        dl_emit_stream(&emit, 8.0 * all * f, all * wide, all * f, 0.0);
        dl_emit_gemm(&emit, h, rows, f, held, true, false);
        dl_emit_stream(&emit, 2.0 * all * h, all * h, tokens * h, 0.0);
    } else if (pass == DL_BACKWARD_DATA) {
        dl_emit_stream(&emit, 2.0 * all * h, tokens * h + all * h,
                       all * h + tokens * layer->moe.top_k, 0.0);
        dl_emit_gemm(&emit, f, rows, h, held, false, false);
        dl_emit_stream(&emit, 8.0 * all * f, all * (f + wide), all * wide, 0.0);
        dl_emit_gemm(&emit, h, rows, wide, held, false, false);
        dl_emit_stream(&emit, all * h, all * h, tokens * h, 0.0);
        dl_emit_stream(&emit, 4.0 * tokens * e, 2.0 * tokens * e, tokens * e, 0.0);
        dl_emit_gemm(&emit, h, tokens, e, 1.0, false, false);
    } else {
        dl_emit_gemm(&emit, h, e, tokens, 1.0, false, true);
        dl_emit_gemm(&emit, h, wide, rows, held, false, true);
        dl_emit_gemm(&emit, f, h, rows, held, false, true);
        if (layer->bias)
            dl_emit_stream(&emit, all * (wide + h), all * (wide + h), held * (wide + h), 0.0);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_moe = {
    .name = "moe",
    .summary = "mixture of experts: a router, and two GEMMs in each expert that a token goes to",
    .source = "formulas",
    .needs = DL_KEY_OUT | DL_KEY_EXPERTS,
    .takes = DL_KEY_TOPK | DL_KEY_CAPACITY | DL_KEY_BIAS | DL_KEY_GATED | DL_KEY_ROUTER_BIAS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = moe_infer,
    .kernels = moe_kernels,
};
