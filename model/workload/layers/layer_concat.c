/* layer_concat.c - layers that combine, extend or reinterpret tensors.
 *
 * F-LAYER-STREAM: a residual add moves 2R + 1W forward and nothing backward: its inputs share the
 * gradient, and a tensor with several readers adds up their gradients itself (dl_emit_begin). A
 * concatenation copies, 1R + 1W each way. A vector that is added at every position costs 1R more
 * backward, the sum of its gradient. A given tensor (text of a diffusion model, images beside
 * tokens) comes with the sample and costs nothing on the device.
 */
#include "model/workload/layer.h"

/* One value per channel, at all positions. */
static bool adds_vector(const struct dl_layer *layer, const struct dl_shape *inputs) {
    return layer->input_count == 2 && inputs[1].dims == 0 && inputs[0].dims > 0 &&
           inputs[1].channels == inputs[0].channels;
}

static enum dl_code add_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->out = inputs[0];
    if (adds_vector(layer, inputs)) return DL_OK;
    for (int i = 1; i < layer->input_count; i++) {
        char a[64], b[64];
        if (dl_shape_same(&inputs[0], &inputs[i])) continue;
        return dl_layer_fail(
            err, 0, "inputs of an add must have one shape; input 1 is %s, input %d is %s",
            dl_shape_text(&inputs[0], a, sizeof a), i + 1, dl_shape_text(&inputs[i], b, sizeof b));
    }
    return DL_OK;
}

static int add_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double additions = (double)layer->input_count - 1.0, n = emit.out_elements;
    const bool vector = layer->input_count == 2 && emit.in_elements < 2.0 * n;
    if (pass == DL_FORWARD) {
        dl_emit_stream(&emit, additions * n, vector ? emit.in_elements : 2.0 * additions * n,
                       additions * n, 0.0);
        if (emit.count > 0) emit.out[emit.count - 1].launches = additions;
        if (layer->out.dims == 1) dl_emit_type(&emit, DL_FACT_RESIDUAL);
    }
    if (pass == DL_BACKWARD_DATA && vector) dl_emit_stream(&emit, n, n, emit.in_elements - n, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_add = {
    .name = "add",
    .summary = "sum of tensors of one shape (residual connection); a second of two may be a vector",
    .source = "formulas",
    .takes = DL_KEY_IN_PLACE,
    .inputs_min = 2,
    .inputs_max = 64,
    .infer = add_infer,
    .kernels = add_kernels,
};

/* The second input may be one value per channel (squeeze and excitation), one per token (gate of a
 * shared expert) or of the full shape. */
static enum dl_code mul_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                              struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    bool per_channel =
        inputs[1].channels == inputs[0].channels && dl_shape_positions(&inputs[1]) == 1.0;
    bool per_token = inputs[1].channels == 1.0 && dl_shape_same_size(&inputs[0], &inputs[1]);
    if (!per_channel && !per_token && !dl_shape_same(&inputs[0], &inputs[1])) {
        char a[64], b[64];
        return dl_layer_fail(
            err, 0,
            "expected a second input of the shape or the channels of the first; found %s and %s",
            dl_shape_text(&inputs[0], a, sizeof a), dl_shape_text(&inputs[1], b, sizeof b));
    }
    layer->out = inputs[0];
    layer->saved.keeps = DL_KEEPS_INPUT;
    return DL_OK;
}

static int mul_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                       enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, n, emit.in_elements, n, 0.0);
    if (pass == DL_BACKWARD_DATA) {
        /* dy times the second is the gradient of the first */
        dl_emit_stream(&emit, n, emit.in_elements, n, 0.0);
        /* and the other way round, summed */
        dl_emit_stream(&emit, 2.0 * n, 2.0 * n, emit.in_elements - n, 0.0);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_mul = {
    .name = "mul",
    .summary = "elementwise product of two tensors; the second may hold one value per channel",
    .source = "formulas",
    .inputs_min = 2,
    .inputs_max = 2,
    .infer = mul_infer,
    .kernels = mul_kernels,
};

static int copy_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    if (pass == DL_FORWARD || pass == DL_BACKWARD_DATA) {
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.out_elements, 0.0);
    }
    return emit.count;
}

static enum dl_code concat_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->out = inputs[0];
    for (int i = 1; i < layer->input_count; i++) {
        char a[64], b[64];
        if (!dl_shape_same_size(&inputs[0], &inputs[i])) {
            return dl_layer_fail(
                err, 0,
                "inputs of a concat may differ in channels only; input 1 is %s, input %d is %s",
                dl_shape_text(&inputs[0], a, sizeof a), i + 1,
                dl_shape_text(&inputs[i], b, sizeof b));
        }
        layer->out.channels += inputs[i].channels;
    }
    return DL_OK;
}

const struct dl_layer_kind dl_layer_concat = {
    .name = "concat",
    .summary = "concatenates tensors along the channels",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 4096,
    .infer = concat_infer,
    .kernels = copy_kernels,
};

static enum dl_code join_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->out = inputs[0];
    for (int i = 0; i < layer->input_count; i++) {
        char a[64], b[64];
        if (inputs[i].dims != 1 || inputs[i].channels != inputs[0].channels) {
            return dl_layer_fail(err, 0,
                                 "expected sequences of one width; input 1 is %s, input %d is %s",
                                 dl_shape_text(&inputs[0], a, sizeof a), i + 1,
                                 dl_shape_text(&inputs[i], b, sizeof b));
        }
        if (i > 0) layer->out.size[DL_DIMS - 1] += inputs[i].size[DL_DIMS - 1];
    }
    return DL_OK;
}

const struct dl_layer_kind dl_layer_join = {
    .name = "join",
    .summary = "puts sequences one behind another (tokens of text and of an image)",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 64,
    .infer = join_infer,
    .kernels = copy_kernels,
};

/* The placed tokens overwrite a copy of the sequence. */
static enum dl_code place_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    char a[64], b[64];
    layer->out = inputs[0];
    if (inputs[0].dims == 1 && inputs[1].dims == 1 && inputs[0].channels == inputs[1].channels &&
        inputs[1].size[DL_DIMS - 1] <= inputs[0].size[DL_DIMS - 1])
        return DL_OK;
    return dl_layer_fail(err, 0, "cannot place the tokens %s in the sequence %s",
                         dl_shape_text(&inputs[1], b, sizeof b),
                         dl_shape_text(&inputs[0], a, sizeof a));
}

static int place_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                         enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double n = emit.in_elements;
    if (pass == DL_FORWARD || pass == DL_BACKWARD_DATA) dl_emit_stream(&emit, 0.0, n, n, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_place = {
    .name = "place",
    .summary = "puts the second sequence in the place of as many tokens of the first (images)",
    .source = "formulas",
    .inputs_min = 2,
    .inputs_max = 2,
    .infer = place_infer,
    .kernels = place_kernels,
};

static int no_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                      enum dl_pass pass, double batch, struct dl_kernel *out) {
    return dl_emit_begin(layer, facts, pass, batch, out).count;
}

static enum dl_code flatten_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    (void)err;
    layer->view = true;
    layer->out = (struct dl_shape){
        .dims = 0, .channels = dl_shape_elements(&inputs[0]), .size = {1.0, 1.0, 1.0}};
    return DL_OK;
}

const struct dl_layer_kind dl_layer_flatten = {
    .name = "flatten",
    .summary = "reinterprets a tensor as a vector; moves nothing",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = flatten_infer,
    .kernels = no_kernels,
};

static enum dl_code given_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                struct dl_arena *arena, struct dl_err *err) {
    (void)inputs;
    (void)arena;
    (void)err;
    layer->out = (struct dl_shape){.dims = layer->requested.target_dims,
                                   .channels = layer->requested.hidden};
    for (int i = 0; i < DL_DIMS; i++) layer->out.size[i] = layer->requested.target[i];
    return DL_OK;
}

const struct dl_layer_kind dl_layer_given = {
    .name = "given",
    .summary = "a further tensor of the sample: channels 'out', extents 'size'; needs no gradient",
    .source = "formulas",
    .reshapes = true,
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_SIZE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = given_infer,
    .kernels = no_kernels,
};

static enum dl_code tokens_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    (void)err;
    layer->out =
        (struct dl_shape){.dims = 1, .channels = inputs[0].channels, .size = {1.0, 1.0, 1.0}};
    layer->out.size[DL_DIMS - 1] = dl_shape_positions(&inputs[0]);
    return DL_OK;
}

const struct dl_layer_kind dl_layer_tokens = {
    .name = "tokens",
    .summary = "turns positions into a sequence (patches of an image); copies, because the "
               "channels become innermost",
    .source = "formulas",
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = tokens_infer,
    .kernels = copy_kernels,
};

/* x + w with one learned value for each element of a sample, or for those of `rows` tokens, which
 * repeat (images of one sample). */
static enum dl_code position_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_arena *arena, struct dl_err *err) {
    const double all = dl_shape_elements(&inputs[0]);
    layer->out = inputs[0];
    return dl_layer_parameter(layer, arena, "weight",
                              layer->rows > 0.0 ? layer->rows * inputs[0].channels : all, err);
}

static int position_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                            enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    double n = emit.out_elements, each = n / batch;
    if (pass == DL_FORWARD) dl_emit_stream(&emit, n, n + each, n, 0.0);
    if (pass == DL_BACKWARD_WEIGHTS) dl_emit_stream(&emit, n, n, each, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_position = {
    .name = "position",
    .summary = "adds a learned value to each element (position embedding of a fixed length)",
    .source = "formulas",
    .takes = DL_KEY_ROWS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = position_infer,
    .kernels = position_kernels,
};

static enum dl_code prepend_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_arena *arena, struct dl_err *err) {
    if (inputs[0].dims != 1) return dl_layer_fail(err, 0, "expected a sequence");
    layer->out = inputs[0];
    layer->out.size[DL_DIMS - 1] += layer->requested.tokens;
    const double rows = layer->rows > 0.0 ? layer->rows : layer->requested.tokens;
    return dl_layer_parameter(layer, arena, "weight", rows * inputs[0].channels, err);
}

const struct dl_layer_kind dl_layer_prepend = {
    .name = "prepend",
    .summary = "puts learned tokens before a sequence (class token)",
    .source = "formulas",
    .needs = DL_KEY_TOKENS,
    .takes = DL_KEY_ROWS,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = prepend_infer,
    .kernels = copy_kernels,
};
