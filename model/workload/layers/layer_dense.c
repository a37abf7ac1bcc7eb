/* layer_dense.c - dense layers (of a vector, or of each token) and the dot interaction of DLRM.
 *
 * F-LAYER-DENSE: C * F multiply-adds per token and pass. GEMMs are column-major, with the
 * transposes that row-major frameworks pass to BLAS, as in DeepBench: forward (F, tokens, C) with A
 * transposed, backward-data (C, tokens, F), backward-weights (C, F, tokens) with B transposed. The
 * forward GEMM adds the bias, or a kernel of its own does (kernel_facts.h); the bias's gradient
 * is a sum over tokens, 1R.
 */
#include "model/workload/layer.h"

static enum dl_code dense_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    char text[64];
    if (inputs[0].dims > 1) {
        return dl_layer_fail(err, 0,
                             "expected a vector or a sequence, found %s; put a 'flatten' before it",
                             dl_shape_text(&inputs[0], text, sizeof text));
    }
    layer->out = inputs[0];
    layer->out.channels = layer->requested.hidden;
    double weights = inputs[0].channels * layer->requested.hidden;
    layer->forward_macs = weights * dl_shape_positions(&inputs[0]);
    layer->saved.keeps = DL_KEEPS_INPUT;
    DL_TRY(dl_layer_parameter(layer, arena, "weight", weights, err));
    if (layer->bias) DL_TRY(dl_layer_parameter(layer, arena, "bias", layer->requested.hidden, err));
    return DL_OK;
}

static int dense_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double c = layer->in.channels, f = layer->out.channels,
           rows = batch * dl_shape_positions(&layer->in);
    const double n = emit.out_elements;
    if (pass == DL_FORWARD) {
        dl_emit_gemm(&emit, f, rows, c, 1.0, true, false);
        if (layer->bias && facts->bias == DL_BIAS_KERNEL) {
            dl_emit_stream(&emit, n, n, n, 0.0);
            dl_emit_type(&emit, DL_FACT_BIAS);
        }
    }
    if (pass == DL_BACKWARD_DATA) dl_emit_gemm(&emit, c, rows, f, 1.0, false, false);
    if (pass == DL_BACKWARD_WEIGHTS) {
        dl_emit_gemm(&emit, c, f, rows, 1.0, false, true);
        if (layer->bias) {
            dl_emit_stream(&emit, n, n, f, 0.0);
            dl_emit_type(&emit, DL_FACT_BIAS);
        }
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_dense = {
    .name = "dense",
    .summary =
        "fully connected layer of a vector or of each token; tied: uses another layer's weight",
    .source = "formulas",
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_BIAS | DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = dense_infer,
    .kernels = dense_kernels,
};

/* F-LAYER-DOT: all dot products of T + 1 vectors of dimension d as one (T+1, T+1, d) GEMM per
 * sample; the output concatenates the first vector and the T(T+1)/2 distinct dot products. */
static enum dl_code dot_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    double vectors = (double)layer->input_count;
    for (int i = 0; i < layer->input_count; i++) {
        char a[64], b[64];
        if (inputs[i].dims != 0 || inputs[i].channels != inputs[0].channels) {
            return dl_layer_fail(err, 0,
                                 "expected vectors of one length; input 1 is %s, input %d is %s",
                                 dl_shape_text(&inputs[0], a, sizeof a), i + 1,
                                 dl_shape_text(&inputs[i], b, sizeof b));
        }
    }
    layer->tables = vectors - 1.0;
    layer->out = inputs[0];
    layer->out.channels = inputs[0].channels + vectors * (vectors - 1.0) / 2.0;
    layer->forward_macs = vectors * vectors * inputs[0].channels;
    layer->saved.keeps = DL_KEEPS_INPUT;
    return DL_OK;
}

static int dot_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double vectors = layer->tables + 1.0, d = layer->in.channels;
    if (pass == DL_FORWARD) {
        /* concatenate the vectors into one matrix */
        dl_emit_stream(&emit, 0.0, emit.in_elements, emit.in_elements, 0.0);
        dl_emit_gemm(&emit, vectors, vectors, d, batch, true, false);
        /* gather the distinct dot products */
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.out_elements, 0.0);
    }
    if (pass == DL_BACKWARD_DATA) {
        dl_emit_stream(&emit, 0.0, emit.out_elements, batch * vectors * vectors, 0.0);
        dl_emit_gemm(&emit, d, vectors, vectors, batch, false, false);
        dl_emit_gemm(&emit, d, vectors, vectors, batch, false, true);
        dl_emit_stream(&emit, emit.in_elements, 2.0 * emit.in_elements, emit.in_elements, 0.0);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_dot_interaction = {
    .name = "dot_interaction",
    .summary = "pairwise dot products of vectors (DLRM), concatenated with the first of them",
    .source = "formulas",
    .inputs_min = 2,
    .inputs_max = 4096,
    .infer = dot_infer,
    .kernels = dot_kernels,
};
