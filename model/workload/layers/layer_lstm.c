/* layer_lstm.c - one LSTM layer over a sequence, in one or both directions, with the two bias
 * vectors of cuDNN.
 *
 * F-LAYER-LSTM: 4h(i + h) multiply-adds per token and direction. One GEMM multiplies the input of
 * all tokens; the recurrent part is a GEMM per token, one after another: `count` GEMMs with as many
 * launches. Kept: input, output and, per token, four gates and the cell state. Not modelled:
 * kernels that keep the recurrent weights on chip, overlap of both directions.
 */
#include "model/workload/layer.h"

static enum dl_code lstm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    if (inputs[0].dims != 1) return dl_layer_fail(err, 0, "expected a sequence");
    double i = inputs[0].channels, h = layer->requested.hidden,
           tokens = inputs[0].size[DL_DIMS - 1];
    int directions = layer->bidirectional ? 2 : 1;
    layer->out = inputs[0];
    layer->out.channels = h * (double)directions;
    layer->forward_macs = (double)directions * 4.0 * h * (i + h) * tokens;
    layer->saved.keeps = DL_KEEPS_INPUT | DL_KEEPS_OUTPUT;
    layer->saved.own_elements = (double)directions * 5.0 * h * tokens;
    for (int direction = 0; direction < directions; direction++) {
        bool back = direction == 1;
        DL_TRY(dl_layer_parameter(layer, arena, back ? "weight_ih_reverse" : "weight_ih",
                                  4.0 * h * i, err));
        DL_TRY(dl_layer_parameter(layer, arena, back ? "weight_hh_reverse" : "weight_hh",
                                  4.0 * h * h, err));
        DL_TRY(
            dl_layer_parameter(layer, arena, back ? "bias_ih_reverse" : "bias_ih", 4.0 * h, err));
        DL_TRY(
            dl_layer_parameter(layer, arena, back ? "bias_hh_reverse" : "bias_hh", 4.0 * h, err));
    }
    return DL_OK;
}

static void emit_recurrent(struct dl_emit *emit, double m, double k, double tokens,
                           double directions, bool a_trans) {
    dl_emit_gemm(emit, m, emit->batch, k, tokens * directions, a_trans, false);
    if (emit->count > 0) emit->out[emit->count - 1].launches = tokens * directions;
}

static int lstm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double i = layer->in.channels, h = layer->requested.hidden,
           tokens = layer->in.size[DL_DIMS - 1], rows = batch * tokens;
    double directions = layer->bidirectional ? 2.0 : 1.0, cells = directions * rows * h;
    if (pass == DL_FORWARD) {
        dl_emit_gemm(&emit, 4.0 * h, rows, i, directions, true, false);
        emit_recurrent(&emit, 4.0 * h, h, tokens, directions, true);
        /* Both gate sums and the cell state in; gates, cell state and output out. */
        dl_emit_stream(&emit, 30.0 * cells, 9.0 * cells, 6.0 * cells, 0.0);
    }
    if (pass == DL_BACKWARD_DATA) {
        dl_emit_stream(&emit, 40.0 * cells, 8.0 * cells, 5.0 * cells, 0.0);
        /* The recurrent GEMM carries the gradient back in time; the weights need it even in a first
         * layer. */
        dl_emit_gemm(&emit, i, rows, 4.0 * h, directions, false, false);
        if (!layer->first) emit_recurrent(&emit, h, 4.0 * h, tokens, directions, false);
    }
    if (pass == DL_BACKWARD_WEIGHTS) {
        if (layer->first) {
            dl_emit_stream(&emit, 40.0 * cells, 8.0 * cells, 5.0 * cells, 0.0);
            emit_recurrent(&emit, h, 4.0 * h, tokens, directions, false);
        }
        dl_emit_gemm(&emit, i, 4.0 * h, rows, directions, false, true);
        dl_emit_gemm(&emit, h, 4.0 * h, rows, directions, false, true);
        dl_emit_stream(&emit, 4.0 * cells, 4.0 * cells, 0.0, 0.0);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_lstm = {
    .name = "lstm",
    .summary = "LSTM layer over a sequence, optionally in both directions",
    .source = "formulas",
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_BIDIRECTIONAL,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = lstm_infer,
    .kernels = lstm_kernels,
};
