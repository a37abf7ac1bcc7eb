/* layer_attention.c - scores, softmax and context of attention; its projections are dense layers.
 *
 * One input: queries, keys and values of one projection, concatenated in the channels. Three
 * inputs: queries, keys, values. F-LAYER-ATTENTION: with q queries and k keys of h = heads * d
 * channels, forward does 2 * q * k * h multiply-adds and backward 4 * q * k * h (dV, dP, dQ, dK).
 * `causal` does not change the multiply-adds of the workload (model cards count that way), but a
 * flash kernel skips the masked half. Unfused, the scores go through memory: softmax 1R + 1W (with
 * scaling and mask fused in), dropout 1R + 1W and a mask byte; backward 1R + 1W and 2R + 1W. Kept:
 * inputs, softmax output and, with dropout, its output and a mask byte each: 5 * a * s^2 bytes in
 * 16 bit (key "korthikanti-2022"). Flash keeps its output and 4 bytes per query and head instead,
 * and recomputes the scores. Copies that reorder heads, and a composed softmax or dropout: facts.h.
 */
#include "model/workload/layer.h"

/* The shapes of a layer in the terms of attention; recomputed where needed, because the layer
 * stores no derived numbers. */
struct geometry {
    double queries, keys, head_dim, kv_channels;
};

static enum dl_code infer_packed(struct dl_layer *layer, const struct dl_shape *in,
                                 struct dl_err *err) {
    double slots = layer->heads + 2.0 * layer->kv_heads, head_dim = in->channels / slots;
    if (head_dim != floor(head_dim)) {
        return dl_layer_fail(
            err, DL_KEY_HEADS,
            "%.0f channels do not divide into queries, keys and values of %.0f heads", in->channels,
            slots);
    }
    layer->hidden = head_dim * layer->heads;
    return DL_OK;
}

static enum dl_code infer_separate(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_err *err) {
    double head_dim = inputs[0].channels / layer->heads;
    if (head_dim != floor(head_dim)) {
        return dl_layer_fail(err, DL_KEY_HEADS, "%.0f channels do not divide into %.0f heads",
                             inputs[0].channels, layer->heads);
    }
    if (!dl_shape_same(&inputs[1], &inputs[2]) ||
        inputs[1].channels != head_dim * layer->kv_heads) {
        char a[64], b[64];
        return dl_layer_fail(
            err, 0, "expected keys and values of one shape with %.0f channels, found %s and %s",
            head_dim * layer->kv_heads, dl_shape_text(&inputs[1], a, sizeof a),
            dl_shape_text(&inputs[2], b, sizeof b));
    }
    layer->hidden = inputs[0].channels;
    return DL_OK;
}

static struct geometry geometry_of(const struct dl_layer *layer) {
    struct geometry g = {.queries = layer->out.size[DL_DIMS - 1], .keys = layer->tokens};
    g.head_dim = layer->hidden / layer->heads;
    g.kv_channels = g.head_dim * layer->kv_heads;
    return g;
}

static enum dl_code attention_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    for (int i = 0; i < layer->input_count; i++) {
        if (inputs[i].dims != 1) return dl_layer_fail(err, 0, "expected sequences");
    }
    if (layer->heads < 1.0) return dl_layer_fail(err, DL_KEY_HEADS, "expected at least 1 head");
    if (layer->kv_heads == 0.0) layer->kv_heads = layer->heads;
    if (layer->heads / layer->kv_heads != floor(layer->heads / layer->kv_heads)) {
        return dl_layer_fail(err, DL_KEY_KV_HEADS,
                             "%.0f heads do not share %.0f key and value heads evenly",
                             layer->heads, layer->kv_heads);
    }
    if (layer->input_count == 2) {
        return dl_layer_fail(err, 0,
                             "expected 1 input (packed) or 3 (queries, keys, values), found 2");
    }
    DL_TRY(layer->input_count == 1 ? infer_packed(layer, &inputs[0], err)
                                   : infer_separate(layer, inputs, err));
    layer->out = inputs[0];
    layer->out.channels = layer->hidden;
    layer->tokens = inputs[layer->input_count - 1].size[DL_DIMS - 1];
    double q = layer->out.size[DL_DIMS - 1], k = layer->tokens;
    layer->forward_macs = 2.0 * q * k * layer->hidden;
    layer->recomputable = true;
    layer->keeps = DL_KEEPS_INPUT;
    double scores = layer->heads * q * k;
    if (layer->flash) {
        layer->keeps |= DL_KEEPS_OUTPUT;
        layer->saved_bytes = 4.0 * layer->heads * q;
    } else {
        layer->own_elements = layer->dropout > 0.0 ? 2.0 * scores : scores;
        layer->saved_bytes = layer->dropout > 0.0 ? scores : 0.0;
    }
    if (layer->additive) {
        DL_TRY(dl_layer_parameter(layer, arena, "linear_att", layer->hidden, err));
        DL_TRY(dl_layer_parameter(layer, arena, "normalize_scalar", 1.0, err));
        DL_TRY(dl_layer_parameter(layer, arena, "normalize_bias", layer->hidden, err));
    }
    return DL_OK;
}

/* The GEMMs of flash attention keep the scores on chip: only queries, keys, values and output move,
 * and all GEMMs are one launch. */
static void emit_flash(struct dl_emit *emit, const struct geometry *g, int gemms) {
    const struct dl_layer *layer = emit->layer;
    double share = layer->causal ? 0.5 * (1.0 + 1.0 / g->keys) : 1.0;
    double tokens = g->queries * layer->hidden + 2.0 * g->keys * g->kv_channels; /* Q, K, V */
    for (int i = 0; i < gemms; i++) {
        bool scores = i == 0; /* Q K^T has the long side as m, the others the head's */
        struct dl_kernel kernel =
            dl_kernel_gemm(emit->pass, scores ? g->keys : g->head_dim, g->queries,
                           scores ? g->head_dim : g->keys, emit->batch * layer->heads * share);
        bool last = i == gemms - 1;
        double writes = emit->pass == DL_FORWARD ? emit->out_elements : emit->batch * tokens;
        double reads =
            emit->batch * tokens + (emit->pass == DL_FORWARD ? 0.0 : 2.0 * emit->out_elements);
        kernel.read_elements = i == 0 ? reads : 0.0;
        kernel.write_elements = last ? writes : 0.0;
        kernel.extra_bytes = last ? emit->batch * layer->saved_bytes : 0.0;
        kernel.launches = i == 0 ? 1.0 : 0.0;
        dl_emit_kernel(emit, kernel);
    }
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
    double count = emit->batch * layer->heads, q = g->queries, k = g->keys, d = g->head_dim,
           n = count * q * k;
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
        dl_emit_gemm(emit, d, q, k, count, false, false); /* context: V P */
    }
    if (emit->pass == DL_BACKWARD_DATA) {
        emit_head_copies(emit);
        dl_emit_gemm(emit, d, k, q, count, false, true); /* dV = dO P^T */
        dl_emit_gemm(emit, k, q, d, count, true, false); /* dP = V^T dO */
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
                           ? layer->flash
                           : facts->attention == DL_ATTENTION_FLASH;
    if (flash) {
        if (pass == DL_FORWARD) emit_flash(&emit, &g, 2);
        if (pass == DL_BACKWARD_DATA) emit_flash(&emit, &g, 5);
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
    .needs = DL_KEY_HEADS,
    .takes = DL_KEY_KV_HEADS | DL_KEY_CAUSAL | DL_KEY_FLASH | DL_KEY_DROPOUT | DL_KEY_ADDITIVE,
    .inputs_min = 1,
    .inputs_max = 3,
    .infer = attention_infer,
    .kernels = attention_kernels,
};
