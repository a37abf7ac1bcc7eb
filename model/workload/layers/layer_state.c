/* layer_state.c - layers that carry a state along the tokens instead of attending to all of them:
 * the state-space layer of Mamba-2 (SSD), the gated delta rule, Lightning attention. The
 * projections before and after them are dense layers.
 *
 * F-LAYER-STATE: H heads of P value channels, a state of N x P for each head, G groups of heads
 * that share keys and queries (B and C of Mamba), chunks of Q tokens. Training runs in chunks:
 * products inside a chunk, and the states between chunks. Multiply-adds of a token forward:
 *
 *   SSD         H (2 N P + Q P / 2) + G Q N / 2, the triangle of the mask alone
 *   Lightning   the same with G = H and N = P
 *   delta rule  H (3 N P + Q (3 N + 2 P)): products of keys, their triangular inverse times keys
 *               and values, states, results; kernels compute whole squares
 *
 * and the short convolution K taps a channel. Backward computes the states again instead of keeping
 * them: SSD H (5 N P + 3 Q P / 2) + 3 G Q N / 2, delta rule H (8 N P + Q (9 N + 5 P)). States are
 * fp32; keys, values and results have the plan's type, bf16 under 8-bit precisions. The scan of the
 * delta rule over chunks is sequential for each head, so its products are one of k = all tokens.
 * Kept for backward besides input and output: SSD its result before gate and norm (the fused kernel
 * of Mamba convolves again); delta rule q, k, v after the convolution, the inverse, and the result;
 * Lightning q, k, v after their activation, the result and its norm. Key `state-layers`. Not
 * modelled: how well Triton kernels run compared with a vendor's products of these shapes. */
#include <math.h>

#include "model/workload/layer.h"

struct geometry {
    double tokens, chunk, chunks; /* of all samples: `sequences` of `tokens` each */
    double sequences, heads, groups, state, value, taps;
};

static struct geometry geometry_of(const struct dl_layer *layer, double batch) {
    struct geometry g = {.tokens = layer->out.size[DL_DIMS - 1],
                         .sequences = batch,
                         .heads = layer->attention.heads,
                         .groups = layer->attention.kv_heads,
                         .state = layer->attention.state,
                         .value = layer->out.channels / layer->attention.heads,
                         .taps = layer->window.kernel[DL_DIMS - 1]};
    g.chunk = fmin(layer->requested.target[DL_DIMS - 1], g.tokens);
    g.chunks = batch * ceil(g.tokens / g.chunk);
    return g;
}

/* Channels that the short convolution takes: values, keys, queries. */
static double convolved(const struct geometry *g) {
    return g->heads * g->value + 2.0 * g->groups * g->state;
}

/* The input holds a gate as wide as the output, what is convolved, and `scalars` for each head. */
static enum dl_code infer(struct dl_layer *layer, const struct dl_shape *in, double scalars,
                          struct dl_err *err) {
    struct dl_layer_attention *a = &layer->attention;
    const double inner = layer->requested.hidden;
    if (in->dims != 1) return dl_layer_fail(err, 0, "expected a sequence");
    if (a->kv_heads == 0.0) a->kv_heads = a->heads;
    if (fmod(inner, a->heads) != 0 || fmod(a->heads, a->kv_heads) != 0)
        return dl_layer_fail(err, DL_KEY_HEADS,
                             "%.0f channels and %.0f groups do not divide into %.0f heads", inner,
                             a->kv_heads, a->heads);
    a->state = (in->channels - 2.0 * inner - scalars * a->heads) / (2.0 * a->kv_heads);
    if (!(a->state >= 1.0) || a->state != floor(a->state))
        return dl_layer_fail(err, DL_KEY_OUT,
                             "%.0f input channels less gate, values and scalars of %.0f heads "
                             "leave %g for keys and queries of %.0f groups",
                             in->channels, a->heads,
                             in->channels - 2.0 * inner - scalars * a->heads, a->kv_heads);
    layer->out = *in;
    layer->out.channels = inner;
    layer->saved.keeps = DL_KEEPS_INPUT | DL_KEEPS_OUTPUT;
    return DL_OK;
}

/* A product of matrices of which groups of heads share some: its traffic is given. */
static void emit_product(struct dl_emit *emit, double m, double n, double k, double count,
                         double reads, double writes) {
    struct dl_kernel kernel = dl_kernel_gemm(emit->pass, m, n, k, count);
    kernel.read_elements = reads;
    kernel.write_elements = writes;
    if (dl_precision_operand_bytes(emit->facts->precision) < 2) {
        kernel.has_type = true;
        kernel.type = DL_BF16;
    }
    dl_emit_kernel(emit, kernel);
}

static void emit_convolution(struct dl_emit *emit, const struct geometry *g) {
    const double n = g->sequences * g->tokens * convolved(g);
    if (!(g->taps > 1)) return;
    dl_emit_stream(emit, (2.0 * g->taps + 5.0) * n, n, n, 0.0);
}

/* Gradients of the input and of the weights in one kernel. */
static void emit_convolution_backward(struct dl_emit *emit, const struct geometry *g) {
    const double n = g->sequences * g->tokens * convolved(g);
    if (!(g->taps > 1)) return;
    dl_emit_stream(emit, (6.0 * g->taps + 10.0) * n, 2.0 * n, n, 0.0);
}

/* Norm and gate in one kernel. */
static void emit_gate(struct dl_emit *emit) {
    const double n = emit->out_elements;
    if (emit->pass == DL_FORWARD)
        dl_emit_stream(emit, 15.0 * n, 2.0 * n, n, 0.0);
    else
        dl_emit_stream(emit, 25.0 * n, 3.0 * n, 2.0 * n, 0.0);
}

/* Steps of time and their sums over a chunk, which are fp32. */
static void emit_steps(struct dl_emit *emit, const struct geometry *g) {
    const double n = g->sequences * g->tokens * g->heads;
    dl_emit_stream(emit, 10.0 * n, n, 0.0, 8.0 * n);
}

/* ---- SSD and Lightning attention ---- */

/* Sizes of the tensors of a call. */
struct sizes {
    double values, keys, states, squares;
};

static struct sizes sizes_of(const struct geometry *g) {
    const double tokens = g->sequences * g->tokens;
    return (struct sizes){.values = tokens * g->heads * g->value,
                          .keys = tokens * g->groups * g->state,
                          .states = g->chunks * g->heads * g->state * g->value,
                          .squares = g->chunks * g->groups * g->chunk * g->chunk};
}

/* States of the chunks, passed on from one to the next, and products of keys and queries. */
static void emit_states(struct dl_emit *emit, const struct geometry *g, const struct sizes *s) {
    enum { WIDER = 2, READ = 4, WRITE = 2 }; /* fp32 states; read again, written in 16 bits */
    emit_product(emit, g->state, g->value, g->chunk, g->chunks * g->heads, s->values + s->keys,
                 s->states);
    dl_emit_stream(emit, 2.0 * s->states, 0.0, 0.0, (WIDER + READ + WRITE) * s->states);
    emit_product(emit, g->chunk, g->chunk / 2.0, g->state, g->chunks * g->groups, 2.0 * s->keys,
                 s->squares);
}

static void emit_chunks_forward(struct dl_emit *emit, const struct geometry *g) {
    const struct sizes s = sizes_of(g);
    emit_states(emit, g, &s);
    emit_product(emit, g->value, g->chunk, g->chunk / 2.0 + g->state, g->chunks * g->heads,
                 s.values + s.keys + s.states + s.squares, s.values);
}

static void emit_chunks_backward(struct dl_emit *emit, const struct geometry *g) {
    const struct sizes s = sizes_of(g);
    const double Q = g->chunk, N = g->state, P = g->value, each = g->chunks * g->heads,
                 shared = g->chunks * g->groups;
    emit_states(emit, g, &s);                                        /* again */
    emit_product(emit, N, P, Q, each, s.values + s.keys, s.states);  /* of the states */
    dl_emit_stream(emit, 4.0 * s.states, 0.0, 0.0, 14.0 * s.states); /* back through the chunks */
    emit_product(emit, P, Q, Q / 2.0 + N, each, 2.0 * s.values + s.keys + s.states + s.squares,
                 s.values);                                                         /* of values */
    emit_product(emit, N, Q, P, each, s.values + s.states, s.keys);                 /* of keys */
    emit_product(emit, N, Q, P, each, s.values + s.states, s.keys);                 /* of queries */
    emit_product(emit, Q, Q / 2.0, P, each, 2.0 * s.values, s.squares);             /* of squares */
    emit_product(emit, Q, Q / 2.0, P, each, 2.0 * s.values + s.squares, s.squares); /* of decays */
    emit_product(emit, Q / 2.0, N, Q, 2.0 * shared, 2.0 * (s.squares + s.keys), 2.0 * s.keys);
}

static double chunk_macs(const struct geometry *g) {
    return g->tokens * (g->heads * g->value * (2.0 * g->state + g->chunk / 2.0) +
                        g->groups * g->chunk * g->state / 2.0);
}

static enum dl_code ssd_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    DL_TRY(infer(layer, inputs, 1.0, err));
    const struct geometry g = geometry_of(layer, 1.0);
    layer->forward_macs = chunk_macs(&g) + g.tokens * g.taps * convolved(&g);
    layer->saved.own_elements = g.tokens * layer->out.channels;
    if (layer->moe.gated) layer->saved.bytes = 4.0 * g.tokens * g.groups;
    DL_TRY(dl_layer_parameter(layer, arena, "conv1d.weight", g.taps * convolved(&g), err));
    if (layer->bias) DL_TRY(dl_layer_parameter(layer, arena, "conv1d.bias", convolved(&g), err));
    DL_TRY(dl_layer_parameter(layer, arena, "A_log", g.heads, err));
    DL_TRY(dl_layer_parameter(layer, arena, "D", g.heads, err));
    DL_TRY(dl_layer_parameter(layer, arena, "dt_bias", g.heads, err));
    if (layer->moe.gated)
        DL_TRY(dl_layer_parameter(layer, arena, "norm.weight", layer->out.channels, err));
    return DL_OK;
}

static int ssd_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const struct geometry g = geometry_of(layer, batch);
    if (pass == DL_BACKWARD_WEIGHTS) return emit.count; /* in the kernels of the other pass */
    if (pass == DL_BACKWARD_DATA) emit_gate(&emit);
    emit_convolution(&emit, &g);
    emit_steps(&emit, &g);
    if (pass == DL_FORWARD) {
        emit_chunks_forward(&emit, &g);
        emit_gate(&emit);
    } else {
        emit_chunks_backward(&emit, &g);
        emit_steps(&emit, &g);
        emit_convolution_backward(&emit, &g);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_ssd = {
    .name = "ssd",
    .summary = "state-space layer of Mamba-2: short convolution, scan in chunks, gate with norm",
    .source = "state-layers",
    .mixing = DL_MIXES_BY_STATE,
    .needs = DL_KEY_OUT | DL_KEY_HEADS | DL_KEY_SIZE,
    .takes = DL_KEY_KV_HEADS | DL_KEY_KERNEL | DL_KEY_BIAS | DL_KEY_GATED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = ssd_infer,
    .kernels = ssd_kernels,
};

static enum dl_code lightning_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    DL_TRY(infer(layer, inputs, 0.0, err));
    const struct geometry g = geometry_of(layer, 1.0);
    layer->forward_macs = chunk_macs(&g);
    layer->saved.own_elements = g.tokens * (convolved(&g) + 2.0 * layer->out.channels);
    return dl_layer_parameter(layer, arena, "norm.weight", layer->out.channels, err);
}

static int lightning_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const struct geometry g = geometry_of(layer, batch);
    const double n = batch * g.tokens * convolved(&g);
    if (pass == DL_FORWARD) {
        dl_emit_stream(&emit, 5.0 * n, n, n, 0.0); /* SiLU of queries, keys and values */
        emit_chunks_forward(&emit, &g);
        emit_gate(&emit);
    } else if (pass == DL_BACKWARD_DATA) {
        emit_gate(&emit);
        emit_chunks_backward(&emit, &g);
        dl_emit_stream(&emit, 8.0 * n, 2.0 * n, n, 0.0);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_lightning = {
    .name = "lightning",
    .summary = "linear attention with decay (Lightning attention): scan in chunks, norm, gate",
    .source = "state-layers",
    .mixing = DL_MIXES_BY_STATE,
    .needs = DL_KEY_OUT | DL_KEY_HEADS | DL_KEY_SIZE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = lightning_infer,
    .kernels = lightning_kernels,
};

/* ---- gated delta rule ---- */

static enum dl_code delta_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    DL_TRY(infer(layer, inputs, 2.0, err));
    const struct geometry g = geometry_of(layer, 1.0);
    const double H = g.heads, N = g.state, P = g.value, Q = g.chunk;
    layer->forward_macs =
        g.tokens * (H * (3.0 * N * P + Q * (3.0 * N + 2.0 * P)) + g.taps * convolved(&g));
    layer->saved.own_elements = g.tokens * H * (2.0 * N + 2.0 * P + Q);
    layer->saved.bytes = g.tokens * H * (4.0 + 4.0 + 8.0 + 4.0); /* decay, beta, norms of q and k */
    DL_TRY(dl_layer_parameter(layer, arena, "conv1d.weight", g.taps * convolved(&g), err));
    DL_TRY(dl_layer_parameter(layer, arena, "A_log", H, err));
    DL_TRY(dl_layer_parameter(layer, arena, "dt_bias", H, err));
    return dl_layer_parameter(layer, arena, "norm.weight", P, err);
}

/* Keys of each value head, products of keys in a chunk, their inverse times keys and values. */
static void emit_inverse(struct dl_emit *emit, const struct geometry *g, bool again) {
    const double Q = g->chunk, N = g->state, P = g->value, each = g->chunks * g->heads,
                 squares = each * Q * Q, keys = each * Q * N, values = each * Q * P;
    if (!again) {
        dl_emit_stream(emit, 6.0 * keys, 2.0 * keys, 2.0 * keys, 0.0); /* q and k of length 1 */
        emit_product(emit, Q, Q, N, each, keys, squares);
        dl_emit_stream(emit, Q * squares / 3.0, squares, squares, 4.0 * squares);
    }
    emit_product(emit, N + P, Q, Q, each, squares + keys + values, keys + values);
}

static void delta_forward(struct dl_emit *emit, const struct geometry *g) {
    const double Q = g->chunk, N = g->state, P = g->value, each = g->chunks * g->heads,
                 heads = g->sequences * g->heads, keys = each * Q * N, values = each * Q * P,
                 states = each * N * P;
    emit_convolution(emit, g);
    emit_steps(emit, g);
    emit_inverse(emit, g, false);
    emit_product(emit, N, P, 2.0 * g->tokens, heads, 2.0 * keys + values, values + states);
    emit_product(emit, Q, Q, N, each, 2.0 * keys, 0.0);
    emit_product(emit, P, Q, N + Q, each, values + states, values);
    emit_gate(emit);
}

static void delta_backward(struct dl_emit *emit, const struct geometry *g) {
    const double Q = g->chunk, N = g->state, P = g->value, each = g->chunks * g->heads,
                 heads = g->sequences * g->heads, keys = each * Q * N, values = each * Q * P,
                 states = each * N * P, squares = each * Q * Q;
    emit_gate(emit);
    emit_convolution(emit, g);
    emit_inverse(emit, g, true);
    emit_product(emit, N, P, 2.0 * g->tokens, heads, 2.0 * keys + values, values + states);
    emit_product(emit, Q, Q, N + P, each, 2.0 * keys + 2.0 * values, values); /* of values */
    emit_product(emit, N, P, 3.0 * g->tokens, heads, 3.0 * keys + 2.0 * values, values + states);
    emit_product(emit, N, Q, 3.0 * P + 2.0 * Q, each, 2.0 * (values + states + keys), 3.0 * keys);
    emit_product(emit, Q, Q, P, each, 2.0 * values, squares);
    /* through the inverse: of itself, keys, values */
    emit_product(emit, Q, Q, N + P, each, 2.0 * (keys + values), squares);
    emit_product(emit, N + P, Q, Q, each, squares + keys + values, keys + values);
    emit_product(emit, Q, Q, N, each, keys, squares);
    emit_product(emit, N, Q, 2.0 * Q, each, squares + keys, keys);
    dl_emit_stream(emit, 6.0 * keys, 4.0 * keys, 2.0 * keys, 0.0);
    emit_steps(emit, g);
    emit_convolution_backward(emit, g);
}

static int delta_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const struct geometry g = geometry_of(layer, batch);
    if (pass == DL_FORWARD) delta_forward(&emit, &g);
    if (pass == DL_BACKWARD_DATA) delta_backward(&emit, &g);
    return emit.count;
}

const struct dl_layer_kind dl_layer_delta_rule = {
    .name = "delta_rule",
    .summary = "linear attention by the gated delta rule: short convolution, chunks, norm, gate",
    .source = "state-layers",
    .mixing = DL_MIXES_BY_STATE,
    .needs = DL_KEY_OUT | DL_KEY_HEADS | DL_KEY_SIZE,
    .takes = DL_KEY_KV_HEADS | DL_KEY_KERNEL,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = delta_infer,
    .kernels = delta_kernels,
};
