/* layer_norm.c - batch, layer, group and local response normalization, and a learned scale per
 * channel.
 *
 * F-LAYER-STREAM: batch norm in training moves 2R + 1W forward and 4R + 1W backward, unfused
 * (unverified). Layer norm keeps a token's row on chip: 1R + 1W forward, 2R +
 * 1W for its input and 2R for its weights. The statistics of batch norm (8 bytes a channel and
 * batch) are not counted among the saved activations.
 *
 * F-LAYER-GROUPNORM: statistics of groups of channels, then one value read and written for each
 * element: 2R + 1W forward in 3 kernels; backward sums over positions (2R), then the gradient of
 * the input (2R + 1W) in 4 kernels with the weights' (PyTorch's group_norm_kernel.cu, mem).
 */
#include <math.h>

#include "model/workload/layer.h"

static enum dl_code batchnorm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    /* running mean, variance, and a counter */
    layer->buffer_elements = 2.0 * inputs[0].channels + 1.0;
    DL_TRY(dl_layer_parameter(layer, arena, "weight", inputs[0].channels, err));
    return dl_layer_parameter(layer, arena, "bias", inputs[0].channels, err);
}

static int batchnorm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    /* the weights' gradients come with those of the data */
    if (pass == DL_BACKWARD_WEIGHTS && !layer->first) return emit.count;
    const struct dl_passes passes = dl_passes_batchnorm(facts->batchnorm, pass);
    const int before = emit.count;
    dl_emit_stream(&emit, (passes.reads + passes.writes + 2.0) * n, passes.reads * n,
                   passes.writes * n, 0.0);
    if (emit.count == before) return emit.count;
    if (facts->channels_first && facts->batchnorm != DL_BATCHNORM_COMPOSED)
        emit.out[emit.count - 1].m = layer->out.channels;
    emit.out[emit.count - 1].launches =
        passes.kernels + (pass == DL_FORWARD ? facts->norm_small_kernels : 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_batchnorm = {
    .name = "batchnorm",
    .work = DL_WORK_BATCHNORM,
    .summary = "batch normalization in training; its running statistics are buffers",
    .source = "formulas",
    .takes = DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = batchnorm_infer,
    .kernels = batchnorm_kernels,
};

static enum dl_code layernorm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    /* mean and deviation of each token, fp32 */
    layer->saved.bytes = 8.0 * dl_shape_positions(&inputs[0]);
    DL_TRY(dl_layer_parameter(layer, arena, "weight", inputs[0].channels, err));
    if (!layer->bias) return DL_OK;
    return dl_layer_parameter(layer, arena, "bias", inputs[0].channels, err);
}

static int layernorm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements, statistics_bytes = batch * layer->saved.bytes;
    struct dl_passes passes = dl_passes_layernorm(facts->layernorm, pass);
    if (n > 0.0) passes.fixed_bytes += statistics_bytes / n;
    const double flop_each = pass == DL_FORWARD ? 8.0 : pass == DL_BACKWARD_DATA ? 11.0 : 4.0;
    const int before = emit.count;
    if (pass != DL_BACKWARD_WEIGHTS) {
        dl_emit_passes(&emit, &passes, flop_each * n, n, DL_FACT_LAYERNORM);
    } else if (facts->layernorm != DL_LAYERNORM_ONE_KERNEL) {
        dl_emit_stream(&emit, flop_each * n, passes.reads * n, passes.writes * n, statistics_bytes);
        if (emit.count > before) emit.out[emit.count - 1].launches = passes.kernels;
        dl_emit_type(&emit, DL_FACT_LAYERNORM);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_layernorm = {
    .name = "layernorm",
    .work = DL_WORK_LAYERNORM,
    .summary = "layer normalization over the channels of each token",
    .source = "formulas",
    .takes = DL_KEY_BIAS | DL_KEY_TIED,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = layernorm_infer,
    .kernels = layernorm_kernels,
};

/* Adaptive norms of diffusion transformers have scale and shift from elsewhere. */
static enum dl_code plain_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    layer->saved.keeps = DL_KEEPS_INPUT;
    layer->saved.bytes = 8.0 * dl_shape_positions(&inputs[0]);
    return dl_layer_infer_same(layer, inputs, arena, err);
}

static int plain_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    return pass == DL_BACKWARD_WEIGHTS ? 0 : layernorm_kernels(layer, facts, pass, batch, out);
}

const struct dl_layer_kind dl_layer_plain_norm = {
    .name = "plain_norm",
    .work = DL_WORK_LAYERNORM,
    .summary = "layer normalization without weights (adaptive norms of diffusion transformers)",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = plain_infer,
    .kernels = plain_kernels,
};

static enum dl_code groupnorm_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                    struct dl_arena *arena, struct dl_err *err) {
    const double each = inputs[0].channels / layer->groups;
    if (each != floor(each)) {
        return dl_layer_fail(err, DL_KEY_GROUPS, "%.0f channels do not divide into %.0f groups",
                             inputs[0].channels, layer->groups);
    }
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    layer->saved.bytes = 8.0 * layer->groups; /* mean and deviation, fp32 */
    DL_TRY(dl_layer_parameter(layer, arena, "weight", inputs[0].channels, err));
    return dl_layer_parameter(layer, arena, "bias", inputs[0].channels, err);
}

static int groupnorm_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    static const struct dl_passes forward = {.kernels = 3, .reads = 2, .writes = 1},
                                  backward = {.kernels = 4, .reads = 4, .writes = 1};
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_passes(&emit, &forward, 8.0 * n, n, DL_FACT_LAYERNORM);
    if (pass == DL_BACKWARD_DATA) dl_emit_passes(&emit, &backward, 15.0 * n, n, DL_FACT_LAYERNORM);
    return emit.count;
}

const struct dl_layer_kind dl_layer_groupnorm = {
    .name = "groupnorm",
    .summary = "normalization over groups of channels and all positions",
    .source = "formulas",
    .needs = DL_KEY_GROUPS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = groupnorm_infer,
    .kernels = groupnorm_kernels,
};

/* Local response normalization over neighbouring channels: one kernel fills the scale, one divides
 * by it. */
static enum dl_code lrn_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    (void)err;
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT | DL_KEEPS_OUTPUT;
    layer->saved.own_elements = dl_shape_elements(&inputs[0]);
    return DL_OK;
}

static int lrn_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    if (pass == DL_FORWARD) {
        dl_emit_stream(&emit, 6.0 * n, n, n, 0.0);
        dl_emit_stream(&emit, 4.0 * n, 2.0 * n, n, 0.0);
    }
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 12.0 * n, 4.0 * n, n, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_lrn = {
    .name = "lrn",
    .summary = "local response normalization across channels",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = lrn_infer,
    .kernels = lrn_kernels,
};

/* y = w_c * x / |x|: normalization across channels with a learned factor (SSD, conv4_3). */
static enum dl_code scale_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    return dl_layer_parameter(layer, arena, "weight", inputs[0].channels, err);
}

static int scale_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, 4.0 * n, 2.0 * n, n, 0.0);
    if (pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 6.0 * n, 2.0 * n, n, 0.0);
    if (pass == DL_BACKWARD_WEIGHTS) dl_emit_stream(&emit, 2.0 * n, 2.0 * n, 0.0, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_scale = {
    .name = "scale",
    .summary = "normalization across channels with a learned factor per channel (SSD)",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = scale_infer,
    .kernels = scale_kernels,
};
