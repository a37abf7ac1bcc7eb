/* layer_rmsnorm.c - root mean square normalization of tokens, and of the heads of queries and keys.
 *
 * F-LAYER-RMSNORM: as layer norm without mean and bias: 1R + 1W forward, 2R + 1W backward for its
 * input and 2R for its weights (none where one kernel computes both); kept are the input and 4
 * bytes a token. A head norm normalizes each head of queries and keys with weights that all heads
 * share, a qk norm all queries and all keys with a weight for each channel; values pass by,
 * untouched. Eager PyTorch (facts): to fp32, square, mean, product, to 16 bits, weight: 6 kernels
 * and 36 bytes an element forward; 10 and 64 for the gradient of the input, 2 and 12 for that of
 * the weight (counted in the reference code of Llama). A fused norm of an input cast to fp32
 * (fp32_norm_input) moves 2 + 4 bytes in the cast and 4 + 2 in the norm; backward 2 + 4 + 4 and 4 +
 * 2 in the cast of the gradient, and 2 + 4 for that of the weight.
 */
#include "model/workload/layer.h"

static enum dl_code rmsnorm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    /* reciprocal root mean square of each token, fp32 */
    layer->saved.bytes = 4.0 * dl_shape_positions(&inputs[0]);
    return dl_layer_parameter(layer, arena, "weight", inputs[0].channels, err);
}

/* Several operations on 16-bit elements, `bytes` of traffic for each of n. */
static void emit_eager(struct dl_emit *emit, double n, double kernels, double bytes) {
    struct dl_kernel kernel =
        dl_kernel_stream(emit->pass, kernels * n, bytes * n / 4.0, bytes * n / 4.0);
    kernel.launches = kernels;
    kernel.has_type = true;
    kernel.type = DL_BF16;
    if (n > 0.0) dl_emit_kernel(emit, kernel);
}

static void emit_norm(struct dl_emit *emit, double n, double statistics_bytes) {
    if (emit->facts->eager) {
        if (emit->pass == DL_FORWARD) emit_eager(emit, n, 6.0, 36.0);
        if (emit->pass == DL_BACKWARD_DATA) emit_eager(emit, n, 10.0, 64.0);
        if (emit->pass == DL_BACKWARD_WEIGHTS) emit_eager(emit, n, 2.0, 12.0);
        return;
    }
    if (emit->facts->fp32_norm_input) {
        if (emit->pass == DL_FORWARD) emit_eager(emit, n, 2.0, 12.0);
        if (emit->pass == DL_BACKWARD_DATA) emit_eager(emit, n, 2.0, 16.0);
        if (emit->pass == DL_BACKWARD_WEIGHTS) emit_eager(emit, n, 1.0, 6.0);
        return;
    }
    if (emit->pass == DL_FORWARD) dl_emit_stream(emit, 4.0 * n, n, n, statistics_bytes);
    if (emit->pass == DL_BACKWARD_DATA) dl_emit_stream(emit, 8.0 * n, 2.0 * n, n, statistics_bytes);
    if (emit->pass == DL_BACKWARD_WEIGHTS && emit->facts->layernorm != DL_LAYERNORM_ONE_KERNEL)
        dl_emit_stream(emit, 3.0 * n, 2.0 * n, 0.0, statistics_bytes);
}

static int rmsnorm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                           enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    emit_norm(&emit, emit.out_elements, batch * layer->saved.bytes);
    return emit.count;
}

const struct dl_layer_kind dl_layer_rmsnorm = {
    .name = "rmsnorm",
    .work = DL_WORK_LAYERNORM,
    .summary = "root mean square normalization over the channels of each token",
    .source = "formulas",
    .takes = DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = rmsnorm_infer,
    .kernels = rmsnorm_kernels,
};

/* Of queries, keys and values of one projection, the part that queries and keys are. */
static double turned(const struct dl_layer *layer) {
    return (layer->attention.heads + layer->attention.kv_heads) /
           (layer->attention.heads + 2.0 * layer->attention.kv_heads);
}

/* shared: each head is normalized, with weights that all heads share; else all queries and all keys
 * are, each with its own weights. */
static enum dl_code infer_of_heads(struct dl_layer *layer, const struct dl_shape *inputs,
                                   bool shared, struct dl_arena *arena, struct dl_err *err) {
    if (layer->attention.kv_heads == 0.0) layer->attention.kv_heads = layer->attention.heads;
    const double slots = layer->attention.heads + 2.0 * layer->attention.kv_heads,
                 head_dim = inputs[0].channels / slots;
    if (inputs[0].dims != 1 || head_dim != floor(head_dim)) {
        return dl_layer_fail(err, DL_KEY_HEADS,
                             "expected a sequence of queries, keys and values of %.0f heads in all",
                             slots);
    }
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    const double q = shared ? 1.0 : layer->attention.heads,
                 k = shared ? 1.0 : layer->attention.kv_heads,
                 norms = shared ? layer->attention.heads + layer->attention.kv_heads : 2.0;
    layer->saved.bytes = 4.0 * norms * dl_shape_positions(&inputs[0]);
    DL_TRY(dl_layer_parameter(layer, arena, "q.weight", q * head_dim, err));
    return dl_layer_parameter(layer, arena, "k.weight", k * head_dim, err);
}

static enum dl_code head_norm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    return infer_of_heads(layer, inputs, true, arena, err);
}

static enum dl_code qk_norm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    return infer_of_heads(layer, inputs, false, arena, err);
}

static int head_norm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const int joins = emit.count;
    emit_norm(&emit, turned(layer) * emit.out_elements, batch * layer->saved.bytes);
    for (int i = joins; i < emit.count; i++) {
        out[i].launches = 2.0; /* queries, keys */
        out[i].m *= layer->attention.heads + layer->attention.kv_heads;
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_head_norm = {
    .name = "head_norm",
    .work = DL_WORK_LAYERNORM,
    .summary = "root mean square normalization of each head of queries and keys",
    .source = "formulas",
    .needs = DL_KEY_HEADS,
    .takes = DL_KEY_KV_HEADS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = head_norm_infer,
    .kernels = head_norm_kernels,
};

const struct dl_layer_kind dl_layer_qk_norm = {
    .name = "qk_norm",
    .work = DL_WORK_LAYERNORM,
    .summary = "root mean square normalization of all queries and of all keys of each token",
    .source = "formulas",
    .needs = DL_KEY_HEADS,
    .takes = DL_KEY_KV_HEADS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = qk_norm_infer,
    .kernels = head_norm_kernels,
};
