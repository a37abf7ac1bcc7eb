/* import_pt2_operators.c - ATen's operators, as torch.export writes them, in those of ONNX. Views
 * become Reshape with the extents that the file declares. */
#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_pt2.h"

/* Number i of a list of one for all, or of one for each. */
static double nth(const double *numbers, int count, int i, double otherwise) {
    return count == 0 ? otherwise : numbers[i < count ? i : count - 1];
}

/* ---- windows ---- */

static void windows(struct dl_pt2_build *b, const char *name, const char *argument, int dims,
                    double otherwise) {
    double given[DL_PT2_LIST], all[DL_ONNX_RANK];
    const int count = dl_pt2_numbers(b->call, argument, given);
    for (int i = 0; i < dims; i++) all[i] = nth(given, count, i, otherwise);
    dl_pt2_attribute_list(b, name, all, dims);
}

/* The same zeros at both ends. */
static void paddings(struct dl_pt2_build *b, int dims) {
    double given[DL_PT2_LIST], all[2 * DL_ONNX_RANK];
    const int count = dl_pt2_numbers(b->call, "padding", given);
    for (int i = 0; i < dims; i++) all[i] = all[dims + i] = nth(given, count, i, 0);
    dl_pt2_attribute_list(b, "pads", all, 2 * dims);
}

static bool convolution(struct dl_pt2_call *c) {
    const bool transposed = strstr(c->operator_name, "transpose") != NULL;
    const int x = dl_pt2_tensor(c, "input"), weight = dl_pt2_tensor(c, "weight"),
              bias = dl_pt2_tensor(c, "bias");
    const struct dl_json_node *padding = dl_pt2_argument(c, "padding");
    if (x < 0 || weight < 0 || dl_pt2_rank(c, x) < 3) return false;
    if (padding != NULL && padding->kind == DL_JSON_STRING) return false;
    const int dims = dl_pt2_rank(c, x) - 2;
    struct dl_pt2_build b = dl_pt2_begin(c, transposed ? "ConvTranspose" : "Conv", x);
    dl_pt2_input(&b, weight);
    if (bias >= 0) dl_pt2_input(&b, bias);
    windows(&b, "strides", "stride", dims, 1);
    windows(&b, "dilations", "dilation", dims, 1);
    if (transposed) windows(&b, "output_padding", "output_padding", dims, 0);
    paddings(&b, dims);
    dl_pt2_attribute(&b, "group", dl_pt2_number(c, "groups", 1));
    return dl_pt2_end(&b), true;
}

static bool pooling(struct dl_pt2_call *c) {
    const bool most = strncmp(c->operator_name, "max", 3) == 0;
    const int x = dl_pt2_tensor(c, "self");
    double stride[DL_PT2_LIST];
    if (x < 0 || dl_pt2_rank(c, x) < 3) return false;
    const int dims = dl_pt2_rank(c, x) - 2;
    struct dl_pt2_build b = dl_pt2_begin(c, most ? "MaxPool" : "AveragePool", x);
    windows(&b, "kernel_shape", "kernel_size", dims, 1);
    windows(&b, "strides", dl_pt2_numbers(c, "stride", stride) > 0 ? "stride" : "kernel_size", dims,
            1);
    if (most) windows(&b, "dilations", "dilation", dims, 1);
    paddings(&b, dims);
    dl_pt2_attribute(&b, "ceil_mode", dl_pt2_number(c, "ceil_mode", 0));
    return dl_pt2_end(&b), true;
}

static bool adaptive_pooling(struct dl_pt2_call *c) {
    const bool most = strstr(c->operator_name, "max") != NULL;
    const int x = dl_pt2_tensor(c, "self"), rank = x < 0 ? 0 : dl_pt2_rank(c, x);
    double kernel[DL_ONNX_RANK];
    bool one = true, same = true;
    if (rank < 3 || dl_pt2_rank(c, c->outputs[0]) != rank) return false;
    for (int d = 2; d < rank; d++) {
        const double from = (double)dl_pt2_value(c, x)->declared[d],
                     to = (double)dl_pt2_value(c, c->outputs[0])->declared[d];
        if (!(to >= 1) || fmod(from, to) != 0) return false;
        kernel[d - 2] = from / to;
        one = one && to == 1;
        same = same && to == from;
    }
    struct dl_pt2_build b = dl_pt2_begin(c,
                                         same  ? "Identity"
                                         : one ? (most ? "GlobalMaxPool" : "GlobalAveragePool")
                                               : (most ? "MaxPool" : "AveragePool"),
                                         x);
    if (!same && !one) {
        dl_pt2_attribute_list(&b, "kernel_shape", kernel, rank - 2);
        dl_pt2_attribute_list(&b, "strides", kernel, rank - 2);
    }
    return dl_pt2_end(&b), true;
}

static bool upsampling(struct dl_pt2_call *c) {
    const int x = dl_pt2_sample(c), rank = dl_pt2_rank(c, c->outputs[0]);
    double sizes[DL_ONNX_RANK];
    if (x < 0) return false;
    for (int d = 0; d < rank; d++) sizes[d] = (double)dl_pt2_value(c, c->outputs[0])->declared[d];
    struct dl_pt2_build b = dl_pt2_begin(c, "Resize", x);
    dl_pt2_input(&b, -1);
    dl_pt2_input(&b, -1);
    dl_pt2_input(&b, dl_pt2_constant(c, sizes, rank, 1));
    return dl_pt2_end(&b), true;
}

/* ATen lists both ends of the last dimension first, ONNX all begins, then all ends. */
static bool zeros_around(struct dl_pt2_call *c) {
    const int x = dl_pt2_sample(c), rank = x < 0 ? 0 : dl_pt2_rank(c, x);
    double given[DL_PT2_LIST], all[2 * DL_ONNX_RANK] = {0};
    const int count = dl_pt2_numbers(c, "pad", given);
    if (x < 0 || count == 0 || count % 2 != 0 || count > 2 * rank) return false;
    for (int i = 0; i < count; i++) all[(i % 2) * rank + rank - 1 - i / 2] = given[i];
    struct dl_pt2_build b = dl_pt2_begin(c, "Pad", x);
    dl_pt2_attribute_list(&b, "pads", all, 2 * rank);
    return dl_pt2_end(&b), true;
}

/* ---- products ---- */

static bool linear(struct dl_pt2_call *c) {
    static const double turned[] = {1, 0};
    const int x = dl_pt2_tensor(c, "input"), weight = dl_pt2_tensor(c, "weight"),
              bias = dl_pt2_tensor(c, "bias");
    if (x < 0 || weight < 0 || dl_pt2_rank(c, weight) != 2) return false;
    if (dl_pt2_rank(c, x) == 2) {
        struct dl_pt2_build b = dl_pt2_begin(c, "Gemm", x);
        dl_pt2_input(&b, weight);
        if (bias >= 0) dl_pt2_input(&b, bias);
        dl_pt2_attribute(&b, "transB", 1);
        return dl_pt2_end(&b), true;
    }
    struct dl_pt2_build t = dl_pt2_begin(c, "Transpose", weight);
    dl_pt2_attribute_list(&t, "perm", turned, 2);
    struct dl_pt2_build product = dl_pt2_begin(c, "MatMul", x);
    dl_pt2_input(&product, dl_pt2_then(&t));
    if (bias < 0) return dl_pt2_end(&product), true;
    struct dl_pt2_build sum = dl_pt2_begin(c, "Add", dl_pt2_then(&product));
    dl_pt2_input(&sum, bias);
    return dl_pt2_end(&sum), true;
}

static bool attention(struct dl_pt2_call *c) {
    const int q = dl_pt2_tensor(c, "query"), k = dl_pt2_tensor(c, "key"),
              v = dl_pt2_tensor(c, "value");
    if (q < 0 || k < 0 || v < 0 || dl_pt2_rank(c, q) != 4 || dl_pt2_rank(c, k) != 4) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Attention", q);
    dl_pt2_input(&b, k);
    dl_pt2_input(&b, v);
    dl_pt2_attribute(&b, "q_num_heads", (double)dl_pt2_value(c, q)->declared[1]);
    dl_pt2_attribute(&b, "kv_num_heads", (double)dl_pt2_value(c, k)->declared[1]);
    dl_pt2_attribute(&b, "is_causal", dl_pt2_number(c, "is_causal", 0));
    return dl_pt2_end(&b), true;
}

/* ---- normalization ---- */

static bool normalization(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "input"), weight = dl_pt2_tensor(c, "weight"),
              bias = dl_pt2_tensor(c, "bias");
    double shape[DL_PT2_LIST];
    const bool batch = strstr(c->operator_name, "batch_norm") != NULL,
               group = strstr(c->operator_name, "group_norm") != NULL,
               rms = strstr(c->operator_name, "rms_norm") != NULL;
    if (x < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c,
                                         batch   ? "BatchNormalization"
                                         : group ? "GroupNormalization"
                                         : rms   ? "RMSNormalization"
                                                 : "LayerNormalization",
                                         x);
    dl_pt2_input(&b, weight);
    if (bias >= 0 || batch || group) dl_pt2_input(&b, bias);
    if (batch) {
        dl_pt2_input(&b, dl_pt2_tensor(c, "running_mean"));
        dl_pt2_input(&b, dl_pt2_tensor(c, "running_var"));
    }
    if (group) dl_pt2_attribute(&b, "num_groups", dl_pt2_number(c, "num_groups", 1));
    if (!batch && !group)
        dl_pt2_attribute(&b, "axis", -dl_pt2_numbers(c, "normalized_shape", shape));
    return dl_pt2_end(&b), true;
}

static bool softmax(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self");
    if (x < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Softmax", x);
    dl_pt2_attribute(&b, "axis", dl_pt2_number(c, "dim", -1));
    return dl_pt2_end(&b), true;
}

/* ---- views ---- */

/* The declared extents, with the batch as it comes. */
static bool reshaped(struct dl_pt2_call *c) {
    const int x = dl_pt2_sample(c);
    const struct dl_onnx_value *out = dl_pt2_value(c, c->outputs[0]);
    double shape[DL_ONNX_RANK];
    if (x < 0 || out->declared_rank < 0) return false;
    for (int d = 0; d < out->declared_rank; d++) shape[d] = (double)out->declared[d];
    struct dl_pt2_build b =
        dl_pt2_begin(c, strcmp(c->operator_name, "expand") == 0 ? "Expand" : "Reshape", x);
    dl_pt2_input(&b, dl_pt2_constant(c, shape, out->declared_rank, 1));
    return dl_pt2_end(&b), true;
}

static int axis(double given, int rank) { return (int)(given < 0 ? given + rank : given); }

static bool turned(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self"), rank = x < 0 ? 0 : dl_pt2_rank(c, x);
    double order[DL_PT2_LIST], given[DL_PT2_LIST];
    if (rank < 1) return false;
    for (int d = 0; d < rank; d++) order[d] = d;
    if (strcmp(c->operator_name, "permute") == 0) {
        if (dl_pt2_numbers(c, "dims", given) != rank) return false;
        for (int d = 0; d < rank; d++) order[d] = axis(given[d], rank);
    } else {
        const bool plain = strcmp(c->operator_name, "t") == 0;
        const double from = plain ? 0 : dl_pt2_number(c, "dim0", 0),
                     to = plain ? 1 : dl_pt2_number(c, "dim1", 1);
        if (!(from >= -rank && from < rank && to >= -rank && to < rank)) return false;
        order[axis(from, rank)] = axis(to, rank);
        order[axis(to, rank)] = axis(from, rank);
    }
    struct dl_pt2_build b = dl_pt2_begin(c, "Transpose", x);
    dl_pt2_attribute_list(&b, "perm", order, rank);
    return dl_pt2_end(&b), true;
}

static bool slice(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self");
    const double dim = dl_pt2_number(c, "dim", 0), start = dl_pt2_number(c, "start", 0),
                 last = fmin(dl_pt2_number(c, "end", 1e15), 1e15),
                 step = dl_pt2_number(c, "step", 1);
    if (x < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Slice", x);
    dl_pt2_input(&b, dl_pt2_constant(c, &start, 1, 1));
    dl_pt2_input(&b, dl_pt2_constant(c, &last, 1, 1));
    dl_pt2_input(&b, dl_pt2_constant(c, &dim, 1, 1));
    dl_pt2_input(&b, dl_pt2_constant(c, &step, 1, 1));
    return dl_pt2_end(&b), true;
}

static bool selection(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self");
    const double index = dl_pt2_number(c, "index", 0);
    if (x < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Gather", x);
    dl_pt2_input(&b, dl_pt2_constant(c, &index, 1, 0));
    dl_pt2_attribute(&b, "axis", dl_pt2_number(c, "dim", 0));
    return dl_pt2_end(&b), true;
}

static bool parts(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self"), rank = x < 0 ? 0 : dl_pt2_rank(c, x);
    const double dim = dl_pt2_number(c, "dim", 0);
    const bool single = strcmp(c->operator_name, "unbind") == 0;
    double extents[DL_PT2_LIST];
    int values[DL_PT2_LIST];
    if (x < 0 || !(dim >= -rank && dim < rank)) return false;
    for (int i = 0; i < c->output_count; i++) {
        extents[i] = single ? 1 : (double)dl_pt2_value(c, c->outputs[i])->declared[axis(dim, rank)];
        values[i] = single ? dl_pt2_temporary(c) : c->outputs[i];
    }
    struct dl_pt2_build b = dl_pt2_begin(c, "Split", x);
    dl_pt2_input(&b, dl_pt2_constant(c, extents, c->output_count, 1));
    dl_pt2_attribute(&b, "axis", dim);
    dl_pt2_finish(&b, values, c->output_count);
    for (int i = 0; single && i < c->output_count; i++) {
        struct dl_pt2_build s = dl_pt2_begin(c, "Squeeze", values[i]);
        dl_pt2_input(&s, dl_pt2_constant(c, &dim, 1, 1));
        dl_pt2_finish(&s, &c->outputs[i], 1);
    }
    return true;
}

static bool joined(struct dl_pt2_call *c) {
    int values[DL_PT2_LIST];
    const int count = dl_pt2_tensors(c, dl_pt2_argument(c, "tensors"), values);
    if (count < 1) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Concat", values[0]);
    for (int i = 1; i < count; i++) dl_pt2_input(&b, values[i]);
    dl_pt2_attribute(&b, "axis", dl_pt2_number(c, "dim", 0));
    return dl_pt2_end(&b), true;
}

/* ---- element by element ---- */

static bool reciprocal_root(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self");
    if (x < 0) return false;
    struct dl_pt2_build root = dl_pt2_begin(c, "Sqrt", x),
                        b = dl_pt2_begin(c, "Reciprocal", dl_pt2_then(&root));
    return dl_pt2_end(&b), true;
}

static bool mean(struct dl_pt2_call *c) {
    const int x = dl_pt2_tensor(c, "self");
    double dims[DL_PT2_LIST];
    const int count = dl_pt2_numbers(c, "dim", dims);
    if (x < 0 || count == 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "ReduceMean", x);
    dl_pt2_attribute_list(&b, "axes", dims, count);
    dl_pt2_attribute(&b, "keepdims", dl_pt2_number(c, "keepdim", 0));
    return dl_pt2_end(&b), true;
}

static bool dropout(struct dl_pt2_call *c) {
    const int x = dl_pt2_sample(c);
    const double share = dl_pt2_number(c, "p", 0.5);
    if (x < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, "Dropout", x);
    dl_pt2_input(&b, dl_pt2_constant(c, &share, 1, 0));
    return dl_pt2_end(&b), true;
}

/* Operators without attributes: ONNX's, and the arguments that it reads, in its order; none named:
 * the sample. */
static const struct {
    const char *theirs, *ours, *inputs[3];
} plain[] = {
    {"contiguous to _to_copy clone alias detach type_as float lift_fresh_copy", "Identity", {NULL}},
    {"matmul", "MatMul", {"self", "other"}},
    {"mm bmm", "MatMul", {"self", "mat2"}},
    {"addmm", "Gemm", {"mat1", "mat2", "self"}},
    {"embedding", "Gather", {"weight", "indices"}},
    {"add", "Add", {"self", "other"}},
    {"sub", "Sub", {"self", "other"}},
    {"mul", "Mul", {"self", "other"}},
    {"div", "Div", {"self", "other"}},
    {"pow", "Pow", {"self", "exponent"}},
    {"relu", "Relu", {NULL}},
    {"relu6 hardtanh clamp", "Clip", {NULL}},
    {"leaky_relu", "LeakyRelu", {NULL}},
    {"elu", "Elu", {NULL}},
    {"sigmoid", "Sigmoid", {NULL}},
    {"hardsigmoid", "HardSigmoid", {NULL}},
    {"silu", "Swish", {NULL}},
    {"hardswish", "HardSwish", {NULL}},
    {"tanh", "Tanh", {NULL}},
    {"gelu", "Gelu", {NULL}},
    {"mish", "Mish", {NULL}},
    {"softplus", "Softplus", {NULL}},
    {"exp", "Exp", {NULL}},
    {"log", "Log", {NULL}},
    {"sqrt", "Sqrt", {NULL}},
    {"neg", "Neg", {NULL}},
    {"abs", "Abs", {NULL}},
    {"erf", "Erf", {NULL}},
    {"cos", "Cos", {NULL}},
    {"sin", "Sin", {NULL}},
    {"reciprocal", "Reciprocal", {NULL}},
};

static bool without_attributes(struct dl_pt2_call *c) {
    size_t row = 0;
    while (row < sizeof plain / sizeof *plain && !dl_has_word(plain[row].theirs, c->operator_name))
        row++;
    if (row == sizeof plain / sizeof *plain) return false;
    const char *const *inputs = plain[row].inputs;
    int values[3] = {dl_pt2_sample(c)}, count = inputs[0] == NULL;
    while (count < 3 && inputs[count] != NULL) {
        values[count] = dl_pt2_operand(c, inputs[count]);
        count++;
    }
    for (int i = 0; i < count; i++)
        if (values[i] < 0) return false;
    struct dl_pt2_build b = dl_pt2_begin(c, plain[row].ours, values[0]);
    for (int i = 1; i < count; i++) dl_pt2_input(&b, values[i]);
    return dl_pt2_end(&b), true;
}

void dl_pt2_translate(struct dl_pt2_call *c) {
    static const struct {
        const char *names; /* between blanks */
        bool (*translate)(struct dl_pt2_call *);
    } all[] = {
        {"conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d", convolution},
        {"max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d", pooling},
        {"adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d",
         adaptive_pooling},
        {"upsample_nearest2d upsample_bilinear2d upsample_bicubic2d", upsampling},
        {"pad constant_pad_nd", zeros_around},
        {"linear", linear},
        {"scaled_dot_product_attention", attention},
        {"batch_norm layer_norm group_norm rms_norm", normalization},
        {"softmax _softmax", softmax},
        {"view reshape flatten unsqueeze squeeze unflatten _unsafe_view expand", reshaped},
        {"permute transpose t", turned},
        {"slice", slice},
        {"select", selection},
        {"split split_with_sizes chunk unbind", parts},
        {"cat", joined},
        {"rsqrt", reciprocal_root},
        {"mean", mean},
        {"dropout feature_dropout", dropout},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (dl_has_word(all[i].names, c->operator_name) && all[i].translate(c)) return;
    if (without_attributes(c)) return;
    struct dl_pt2_build b = dl_pt2_begin(
        c, dl_arena_printf(c->graph->arena, "aten.%s", c->operator_name), dl_pt2_sample(c));
    dl_pt2_finish(&b, c->outputs, c->output_count);
}
