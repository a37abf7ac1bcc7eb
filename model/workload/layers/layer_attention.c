/* layer_attention.c - scores, softmax and context of attention; its projections are dense layers.
 *
 * One input: queries, keys and values of one projection, concatenated in the channels. Two inputs:
 * queries; keys and values concatenated. Three: queries, keys, values. Heads of values may be
 * narrower than those of queries and keys (multi-head latent attention). F-LAYER-ATTENTION: with q
 * queries, k keys and a heads of d channels (values: v), forward does a * q * k * (d + v)
 * multiply-adds and backward twice that (dV, dP, dQ, dK). `causal` does not change the
 * multiply-adds of the workload (model cards count that way); a window of w keys does, k becomes at
 * most w. A flash kernel computes the pairs that the mask leaves alone, and in backward the scores
 * again: 2 a (d + v) flop per pair forward, 2 a (3 d + 2 v) backward; queries, keys, values and
 * output move once, and 4 bytes per query and head. Under 8-bit and 4-bit precisions attention runs
 * in bf16 as frameworks do (Transformer Engine's default). Unfused, the scores go through memory:
 * softmax 1R + 1W (with scaling and mask fused in), dropout 1R + 1W and a mask byte; backward 1R +
 * 1W and 2R + 1W. Kept: inputs, softmax output and, with dropout, its output and a mask byte each:
 * 5 * a * s^2 bytes in 16 bit (key "korthikanti-2022"). Flash keeps its output and 4 bytes per
 * query and head instead. Copies that reorder heads, and a composed softmax or dropout:
 * kernel_facts.h. */
#include <math.h>

#include "model/workload/layer.h"

/* The shapes of a layer in the terms of attention; recomputed where needed, because the layer
 * stores no derived numbers. */
struct geometry {
    double queries, keys, head_dim, value_dim;
};

static enum dl_code infer_packed(struct dl_layer *layer, const struct dl_shape *in,
                                 struct dl_err *err) {
    double slots = layer->attention.heads + 2.0 * layer->attention.kv_heads,
           head_dim = in->channels / slots;
    if (head_dim != floor(head_dim)) {
        return dl_layer_fail(
            err, DL_KEY_HEADS,
            "%.0f channels do not divide into queries, keys and values of %.0f heads", in->channels,
            slots);
    }
    layer->requested.hidden = head_dim * layer->attention.heads;
    return DL_OK;
}

/* Queries; then keys and values, in one tensor or two. */
static enum dl_code infer_separate(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_err *err) {
    const double head_dim = inputs[0].channels / layer->attention.heads;
    char a[64], b[64];
    if (head_dim != floor(head_dim)) {
        return dl_layer_fail(err, DL_KEY_HEADS, "%.0f channels do not divide into %.0f heads",
                             inputs[0].channels, layer->attention.heads);
    }
    const bool two = layer->input_count == 2;
    const double value_dim = two ? inputs[1].channels / layer->attention.kv_heads - head_dim
                                 : inputs[2].channels / layer->attention.kv_heads;
    if (!two && (!dl_shape_same_size(&inputs[1], &inputs[2]) ||
                 inputs[1].channels != head_dim * layer->attention.kv_heads)) {
        return dl_layer_fail(
            err, 0,
            "expected keys and values of one length and keys of %.0f channels, found %s and %s",
            head_dim * layer->attention.kv_heads, dl_shape_text(&inputs[1], a, sizeof a),
            dl_shape_text(&inputs[2], b, sizeof b));
    }
    if (!(value_dim >= 1.0) || value_dim != floor(value_dim)) {
        const struct dl_shape *last = &inputs[layer->input_count - 1];
        return dl_layer_fail(err, DL_KEY_KV_HEADS,
                             "values of %s do not divide into %.0f heads beside keys of %.0f "
                             "channels a head",
                             dl_shape_text(last, a, sizeof a), layer->attention.kv_heads, head_dim);
    }
    layer->requested.hidden = value_dim * layer->attention.heads;
    return DL_OK;
}

static struct geometry geometry_of(const struct dl_layer *layer) {
    struct geometry g = {.queries = layer->out.size[DL_DIMS - 1], .keys = layer->requested.tokens};
    g.value_dim = layer->requested.hidden / layer->attention.heads;
    g.head_dim =
        layer->input_count == 1 ? g.value_dim : layer->in.channels / layer->attention.heads;
    return g;
}

/* Keys that a query may see, without the causal mask. */
static double visible(const struct dl_layer *layer) {
    const double tokens = layer->requested.tokens * dl_layer_document_frac(layer);
    return layer->attention.window > 0.0 ? fmin(layer->attention.window, tokens) : tokens;
}

void dl_layer_pack_attention(struct dl_layer *layer, double document_tokens) {
    const double whole = visible(layer);
    layer->attention.document_frac = fmin(1.0, document_tokens / layer->requested.tokens);
    layer->forward_macs *= visible(layer) / whole;
}

double dl_layer_attention_pairs(const struct dl_layer *layer) {
    const double k = layer->requested.tokens * dl_layer_document_frac(layer), w = visible(layer),
                 queries = layer->out.size[DL_DIMS - 1];
    /* the first w queries see 1, 2, ..., w keys, the others w */
    return layer->attention.causal ? queries * (w * (w + 1.0) / 2.0 + (k - w) * w) / k
                                   : queries * w;
}

/* What backward needs besides input and output. */
static void set_kept(struct dl_layer *layer) {
    const double q = layer->out.size[DL_DIMS - 1],
                 scores = layer->attention.heads * q * layer->requested.tokens;
    layer->saved.keeps = DL_KEEPS_INPUT | (layer->attention.flash ? DL_KEEPS_OUTPUT : 0u);
    layer->saved.own_elements = layer->attention.flash ? 0.0
                                : layer->dropout > 0.0 ? 2.0 * scores
                                                       : scores;
    layer->saved.bytes = layer->attention.flash ? 4.0 * layer->attention.heads * q
                         : layer->dropout > 0.0 ? scores
                                                : 0.0;
}

void dl_layer_set_attention(struct dl_layer *layer, enum dl_attention_kernel attention) {
    if (layer->kind != &dl_layer_attention || attention == DL_ATTENTION_OPEN) return;
    const double own = layer->saved.own_elements;
    layer->attention.flash = attention == DL_ATTENTION_FLASH;
    set_kept(layer);
    layer->saved.elements += layer->saved.own_elements - own;
}

static enum dl_code attention_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    for (int i = 0; i < layer->input_count; i++) {
        if (inputs[i].dims != 1) return dl_layer_fail(err, 0, "expected sequences");
    }
    if (layer->attention.kv_heads == 0.0) layer->attention.kv_heads = layer->attention.heads;
    if (layer->attention.heads / layer->attention.kv_heads !=
        floor(layer->attention.heads / layer->attention.kv_heads)) {
        return dl_layer_fail(err, DL_KEY_KV_HEADS,
                             "%.0f heads do not share %.0f key and value heads evenly",
                             layer->attention.heads, layer->attention.kv_heads);
    }
    DL_TRY(layer->input_count == 1 ? infer_packed(layer, &inputs[0], err)
                                   : infer_separate(layer, inputs, err));
    layer->out = inputs[0];
    layer->out.channels = layer->requested.hidden;
    layer->requested.tokens = inputs[layer->input_count - 1].size[DL_DIMS - 1];
    const struct geometry g = geometry_of(layer);
    layer->forward_macs =
        g.queries * visible(layer) * layer->attention.heads * (g.head_dim + g.value_dim);
    layer->recomputable = true;
    set_kept(layer);
    if (layer->attention.sinks)
        DL_TRY(dl_layer_parameter(layer, arena, "sinks", layer->attention.heads, err));
    if (layer->additive) {
        DL_TRY(dl_layer_parameter(layer, arena, "linear_att", layer->requested.hidden, err));
        DL_TRY(dl_layer_parameter(layer, arena, "normalize_scalar", 1.0, err));
        DL_TRY(dl_layer_parameter(layer, arena, "normalize_bias", layer->requested.hidden, err));
    }
    return DL_OK;
}

/* One kernel of each pass keeps the scores on chip. Ranks that share the tokens out see pairs of
 * early and late tokens alike, so the mean counts, not the pairs of the last queries. */
static void emit_flash(struct dl_emit *emit, const struct geometry *g) {
    const struct dl_layer *layer = emit->layer;
    const struct dl_attention_shape shape = {.batch = emit->batch,
                                             .heads = layer->attention.heads,
                                             .kv_heads = layer->attention.kv_heads,
                                             .queries = g->queries,
                                             .keys = g->keys,
                                             .head_dim = g->head_dim,
                                             .value_dim = g->value_dim,
                                             .window = layer->attention.window,
                                             .causal = layer->attention.causal};
    struct dl_kernel kernel = dl_kernel_attention(emit->pass, &shape);
    if (g->queries != g->keys)
        kernel.flop *= dl_layer_document_frac(layer) * dl_layer_attention_pairs(layer) /
                       dl_attention_pairs(g->queries, g->keys, layer->attention.causal,
                                          layer->attention.window);
    if (emit->facts->precision >= DL_FP8) {
        kernel.has_type = true;
        kernel.type = DL_BF16;
    }
    dl_emit_kernel(emit, kernel);
}

/* Copies between the order of tokens and that of heads. */
static void emit_head_copies(struct dl_emit *emit) {
    const double n = emit->facts->head_copies * emit->out_elements;
    const int before = emit->count;
    dl_emit_stream(emit, 0.0, n, n, 0.0);
    if (emit->count > before) emit->out[emit->count - 1].launches = emit->facts->head_copies;
}

/* Scale and mask as kernels of their own, 1R + 1W each. */
static void emit_scores(struct dl_emit *emit, double kernels, double n) {
    const int before = emit->count;
    dl_emit_stream(emit, kernels * n, kernels * n, kernels * n, 0.0);
    if (emit->count > before) emit->out[emit->count - 1].launches = kernels;
}

static void emit_unfused(struct dl_emit *emit, const struct geometry *g) {
    const struct dl_layer *layer = emit->layer;
    double count = emit->batch * layer->attention.heads, q = g->queries, k = g->keys,
           d = g->head_dim, v = g->value_dim, n = count * q * k;
    bool drops = layer->dropout > 0.0;
    const struct dl_kernel_facts *facts = emit->facts;
    const struct dl_passes softmax = dl_passes_softmax(facts->softmax, emit->pass),
                           dropout = dl_passes_dropout(facts->dropout, emit->pass);
    if (emit->pass == DL_FORWARD) {
        emit_head_copies(emit);
        dl_emit_gemm(emit, k, q, d, count, true, false); /* scores: K^T Q */
        emit_scores(emit, facts->score_kernels, n);
        dl_emit_passes(emit, &softmax, 10.0 * n, n, DL_FACT_SOFTMAX);
        if (drops) dl_emit_passes(emit, &dropout, 2.0 * n, n, DL_FACT_SCORES);
        dl_emit_gemm(emit, v, q, k, count, false, false); /* context: V P */
    }
    if (emit->pass == DL_BACKWARD_DATA) {
        emit_head_copies(emit);
        dl_emit_gemm(emit, v, k, q, count, false, true); /* dV = dO P^T */
        dl_emit_gemm(emit, k, q, v, count, true, false); /* dP = V^T dO */
        if (drops) dl_emit_passes(emit, &dropout, n, n, DL_FACT_SCORES);
        dl_emit_passes(emit, &softmax, 4.0 * n, n, DL_FACT_SOFTMAX);
        emit_scores(emit, fmin(facts->score_kernels, 1.0), n); /* the mask has no gradient */
        dl_emit_gemm(emit, d, q, k, count, false, false);      /* dQ = K dS */
        dl_emit_gemm(emit, d, k, q, count, false, true);       /* dK = Q dS^T */
    }
}

static int attention_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    struct geometry g = geometry_of(layer);
    const bool flash = facts->attention == DL_ATTENTION_OPEN
                           ? layer->attention.flash
                           : facts->attention == DL_ATTENTION_FLASH;
    if (flash) { /* F-PACKED: a sequence is as many as it has documents */
        const double part = dl_layer_document_frac(layer);
        g.queries *= part, g.keys *= part, emit.batch /= part;
        if (pass == DL_FORWARD || pass == DL_BACKWARD_DATA) emit_flash(&emit, &g);
    } else {
        const int joins = emit.count; /* additions of gradients come before its own kernels */
        emit_unfused(&emit, &g);
        for (int i = joins; i < emit.count; i++) out[i].work = DL_WORK_ATTENTION;
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_attention = {
    .name = "attention",
    .summary = "scores, softmax and context of (multi-head) attention, fused (flash) or not",
    .source = "formulas",
    .mixing = DL_MIXES_BY_ATTENTION,
    .needs = DL_KEY_HEADS,
    .takes = DL_KEY_KV_HEADS | DL_KEY_CAUSAL | DL_KEY_FLASH | DL_KEY_DROPOUT | DL_KEY_ADDITIVE |
             DL_KEY_WINDOW | DL_KEY_SINKS,
    .inputs_min = 1,
    .inputs_max = 3,
    .infer = attention_infer,
    .kernels = attention_kernels,
};
