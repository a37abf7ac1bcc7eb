/* import_chain.c - element-wise operators. A chain of them that reads one value becomes one
 * layer when it ends; its operations determine the kind. x * sigmoid(x) is a swish, x * (1 +
 * erf(x/sqrt 2)) / 2 a gelu, (x - mean) / sqrt(var + eps) * w + b a layer norm. */
#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_layers.h"

static enum dl_code no(struct dl_err *err, const char *why) {
    return dl_fail(err, DL_ERR_INPUT, "%s", why);
}

static const struct {
    const char *ops;
    unsigned how;
} functions[] = {
    {"Relu LeakyRelu PRelu ThresholdedRelu", DL_HOW_RELU},
    {"Clip", DL_HOW_CLIP},
    {"Sigmoid", DL_HOW_SIGMOID},
    {"HardSigmoid", DL_HOW_GATE},
    {"HardSwish", DL_HOW_GATE | DL_HOW_SELF},
    {"Tanh", DL_HOW_TANH},
    {"Erf Gelu", DL_HOW_ERF},
    {"Softplus", DL_HOW_SOFTPLUS},
    {"Mish", DL_HOW_SOFTPLUS | DL_HOW_TANH},
    {"Swish", DL_HOW_SIGMOID | DL_HOW_SELF},
    {"Softsign Elu Selu Celu Exp Log", DL_HOW_EXP},
    {"Sqrt Neg Abs Reciprocal Not Floor Ceil", DL_HOW_SCALAR},
};

/* A normalization without a mean is an RMS norm of tokens, or SSD's of the pixels of an image. */
static const struct dl_layer_kind *kind_of(unsigned how, bool pixels) {
    const bool self = (how & DL_HOW_SELF) != 0;
    if ((how & DL_HOW_MEAN) != 0)
        return (how & DL_HOW_SUB) != 0 ? &dl_layer_layernorm
               : pixels                ? &dl_layer_scale
                                       : &dl_layer_rmsnorm;
    if ((how & DL_HOW_ERF) != 0) return &dl_layer_gelu;
    if ((how & DL_HOW_SOFTPLUS) != 0 && (how & DL_HOW_TANH) != 0) return &dl_layer_swish;
    if ((how & DL_HOW_TANH) != 0)
        return self || (how & DL_HOW_POW) != 0 ? &dl_layer_gelu : &dl_layer_tanh;
    if ((how & (DL_HOW_SIGMOID | DL_HOW_GATE | DL_HOW_CLIP)) != 0 && self) return &dl_layer_swish;
    if ((how & (DL_HOW_SIGMOID | DL_HOW_GATE | DL_HOW_SOFTPLUS | DL_HOW_EXP)) != 0)
        return &dl_layer_sigmoid;
    if ((how & DL_HOW_CLIP) != 0) return &dl_layer_relu6;
    return (how & DL_HOW_RELU) != 0 ? &dl_layer_relu : NULL;
}

enum dl_code dl_net_close(struct dl_import_net *net, int value, struct dl_err *err) {
    struct dl_flow *f = &net->flows[value];
    if (f->scores > 0)
        return no(err, "a matrix multiplication of two activations that is not attention");
    if (f->pad != NULL) return no(err, "padding without a convolution or pooling after it");
    if (f->root < 0) return DL_OK;
    const int weight = f->weight, bias = f->bias;
    int item = net->flows[f->root].item;
    const struct dl_layer_kind *kind =
        kind_of(f->how, item != DL_FLOW_NONE && dl_net_shape(net, item)->dims > 1);
    if (kind != NULL) {
        if (dl_net_elements(net, value) != dl_net_elements(net, f->root))
            return no(err, "a mean over channels that normalizes nothing");
        DL_TRY(dl_net_whole(net, f->root, &item, err));
        struct dl_layer layer = dl_net_layer(kind);
        DL_TRY(dl_net_emit(net, &layer, &item, 1, weight, &item, err));
        if (bias >= 0) dl_net_learn(net, bias, item);
        if ((f->how & DL_HOW_MEAN) != 0 &&
            (weight < 0 || (kind == &dl_layer_layernorm && bias < 0)))
            net->unscaled_count++;
    } else {
        net->scalar_count++;
    }
    dl_net_hold(net, value, item);
    return DL_OK;
}

/* The chain of `x` goes on into `out`. */
static void extend(struct dl_import_net *net, int x, int out, unsigned how) {
    const struct dl_flow from = net->flows[x];
    net->flows[out] = from;
    if (from.root < 0)
        net->flows[out].root = x, net->flows[out].how = 0,
        net->flows[out].weight = net->flows[out].bias = -1;
    net->flows[out].how |= how;
    net->flows[out].item = from.root < 0 ? from.item : net->flows[from.root].item;
}

static int root_of(const struct dl_import_net *net, int x) {
    return net->flows[x].root < 0 ? x : net->flows[x].root;
}

enum dl_code dl_map_unary(struct dl_import_net *net, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    const int x = n->inputs[0], out = n->output_count > 0 ? n->outputs[0] : -1;
    const struct dl_flow *f = &net->flows[x];
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!dl_has_word(functions[i].ops, n->op)) continue;
        const bool function = (functions[i].how & DL_HOW_FUNCTIONS) != 0;
        if (out < 0) return no(err, "it has no output");
        if (f->scores > 0) {
            net->flows[out] = *f;
            return DL_OK;
        }
        if (function && f->root >= 0 && (f->how & (DL_HOW_MEAN | DL_HOW_RELU)) != 0)
            DL_TRY(dl_net_close(net, x, err));
        if (f->pad != NULL) return no(err, "padding without a convolution or pooling after it");
        const bool plain = f->root < 0;
        extend(net, x, out, functions[i].how);
        if (functions[i].how == DL_HOW_RELU || (functions[i].how == DL_HOW_CLIP && plain))
            return dl_net_close(net, out, err);
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_USAGE, "no layer corresponds to it");
}

/* ---- with a constant ---- */

static double last_extent(const struct dl_onnx_value *v) {
    return v->rank > 0 ? (double)v->dims[v->rank - 1] : 1;
}

/* A shift that belongs to the layer before it: the bias of a dense layer or convolution, the scale
 * or shift of a group norm. */
static bool belongs(struct dl_import_net *net, int x, int c, bool add, struct dl_err *err,
                    enum dl_code *code) {
    const double count = dl_onnx_elements(dl_net_value(net, c));
    const int item = net->flows[x].item;
    if (net->flows[x].root >= 0 || item < 0) return false;
    struct dl_import_item *it = &net->items[item];
    const bool takes = it->layer.kind == &dl_layer_dense || it->layer.kind == &dl_layer_conv ||
                       it->layer.kind == &dl_layer_conv_transpose;
    if (it->affine && count == it->layer.out.channels) {
        dl_net_learn(net, c, item);
        if (add) it->affine = false;
        return true;
    }
    if (!add || !takes || it->layer.bias || count != it->layer.out.channels) return false;
    it->layer.bias = true;
    dl_net_learn(net, c, item);
    *code = dl_net_again(net, item, err);
    return true;
}

static enum dl_code learned_sum(struct dl_import_net *net, const struct dl_onnx_node *n, int x,
                                int c, struct dl_err *err) {
    const struct dl_onnx_value *v = dl_net_value(net, c), *table = dl_net_value(net, v->origin);
    const double count = dl_onnx_elements(v), own = dl_onnx_elements(table);
    int item, row = DL_FLOW_INPUT;
    DL_TRY(dl_net_whole(net, x, &item, err));
    struct dl_shape s = *dl_net_shape(net, item);
    if (count != dl_shape_elements(&s))
        return no(err, "it adds learned values that are neither a bias nor a position");
    /* positions of patches */
    if (s.dims >= 2 && last_extent(v) == s.channels && s.channels != s.size[DL_DIMS - 1]) {
        DL_TRY(dl_net_sequence(net, item, s.channels, &item, err));
        s = *dl_net_shape(net, item);
    }
    /* the first rows of a longer table */
    if (own > count && net->tokens && s.dims == 1 && fmod(own, s.channels) == 0) {
        struct dl_layer look = dl_net_layer(&dl_layer_embedding), add = dl_net_layer(&dl_layer_add);
        look.rows = own / s.channels;
        look.requested.hidden = s.channels;
        if (s.size[DL_DIMS - 1] != net->input.size[DL_DIMS - 1])
            look.requested.tokens = s.size[DL_DIMS - 1];
        DL_TRY(dl_net_emit(net, &look, &row, 1, v->origin, &row, err));
        const int both[2] = {item, row};
        DL_TRY(dl_net_emit(net, &add, both, 2, -1, &item, err));
    } else {
        struct dl_layer position = dl_net_layer(&dl_layer_position);
        DL_TRY(dl_net_emit(net, &position, &item, 1, c, &item, err));
    }
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

static enum dl_code with_scores(struct dl_import_net *net, const struct dl_onnx_node *n, int x,
                                int other, struct dl_err *err) {
    struct dl_scores *s = &net->scores[net->flows[x].scores - 1];
    const struct dl_onnx_value *v = dl_net_value(net, other);
    const double elements = v->known ? dl_onnx_elements(v) : 0;
    const bool square = v->rank >= 2 && v->dims[v->rank - 1] == v->dims[v->rank - 2] &&
                        (double)v->dims[v->rank - 1] == s->key_count && s->key_count > 1;
    if (v->constant && v->floating && elements > s->query_count * s->key_count)
        return no(err, "it adds learned values to scores of attention");
    if (v->constant && square) s->causal = true;
    net->flows[n->outputs[0]] = net->flows[x];
    return DL_OK;
}

/* Whether x is a normalization, made of single operators, that a constant of v's size scales or
 * shifts. */
static bool norm_takes(const struct dl_import_net *net, int x, const struct dl_onnx_value *v) {
    const struct dl_flow *f = &net->flows[x];
    return f->root >= 0 && (f->how & DL_HOW_MEAN) != 0 &&
           dl_onnx_elements(v) == last_extent(dl_net_value(net, x));
}

/* Weight or bias of such a normalization. */
static enum dl_code of_norm(struct dl_import_net *net, int x, int c, int out, bool weight,
                            struct dl_err *err) {
    const bool centred = (net->flows[x].how & DL_HOW_SUB) != 0;
    extend(net, x, out, weight ? DL_HOW_WEIGHT : DL_HOW_SCALAR);
    if (weight)
        net->flows[out].weight = c;
    else
        net->flows[out].bias = c;
    return !weight || !centred ? dl_net_close(net, out, err) : DL_OK;
}

/* A learned factor per channel, or the sine and cosine of the position. */
static enum dl_code learned_factor(struct dl_import_net *net, int x, int c, int out,
                                   struct dl_err *err) {
    const struct dl_onnx_value *v = dl_net_value(net, c);
    int item;
    DL_TRY(dl_net_whole(net, x, &item, err));
    if (dl_onnx_elements(v) == dl_net_shape(net, item)->channels) {
        struct dl_layer layer = dl_net_layer(&dl_layer_scale);
        return dl_net_put(net, &layer, item, c, out, err);
    }
    if (v->rank >= 2 && fmod(dl_net_elements(net, x), dl_onnx_elements(v)) == 0) {
        dl_net_hold(net, out, item);
        net->scalar_count++;
        return DL_OK;
    }
    return no(err, "a constant that no layer uses");
}

static enum dl_code with_constant(struct dl_import_net *net, const struct dl_onnx_node *n, int x,
                                  int c, struct dl_err *err) {
    const struct dl_onnx_value *v = dl_net_value(net, c);
    const bool add = strcmp(n->op, "Add") == 0 || strcmp(n->op, "Sum") == 0,
               mul = strcmp(n->op, "Mul") == 0;
    struct dl_flow *f = &net->flows[x];
    const int out = n->outputs[0];
    enum dl_code code = DL_OK;
    if (!v->known) return no(err, "the shape of a constant is not known");
    if (f->scores > 0) return with_scores(net, n, x, c, err);
    if (dl_onnx_elements(v) == 1 || !v->floating ||
        (f->item == DL_FLOW_INPUT && root_of(net, x) >= 0 && (net->tokens || !add))) {
        extend(net, x, out, strcmp(n->op, "Pow") == 0 ? DL_HOW_POW : DL_HOW_SCALAR);
        return DL_OK;
    }
    if ((add || mul) && norm_takes(net, x, v)) return of_norm(net, x, c, out, mul, err);
    if ((add || mul) && belongs(net, x, c, add, err, &code)) {
        net->flows[out] = net->flows[x];
        return code;
    }
    if (add) return learned_sum(net, n, x, c, err);
    if (mul) return learned_factor(net, x, c, out, err);
    return no(err, "a constant that no layer uses");
}

/* ---- of two activations ---- */

/* Reshapes two items to the same shape. */
static enum dl_code unify(struct dl_import_net *net, int *a, int *b, struct dl_err *err) {
    const struct dl_shape x = *dl_net_shape(net, *a), y = *dl_net_shape(net, *b);
    if (dl_shape_same(&x, &y)) return DL_OK;
    if (x.channels == y.channels && dl_shape_positions(&x) == dl_shape_positions(&y) &&
        (x.dims == 1 || y.dims == 1)) {
        return dl_net_sequence(net, x.dims == 1 ? *b : *a, x.channels, x.dims == 1 ? b : a, err);
    }
    if (dl_shape_elements(&x) != dl_shape_elements(&y))
        return no(err, "it combines tensors of different shapes");
    for (int i = 0; i < 2; i++) {
        int *item = i == 0 ? a : b;
        struct dl_layer flat = dl_net_layer(&dl_layer_flatten);
        if (dl_net_shape(net, *item)->dims > 0)
            DL_TRY(dl_net_emit(net, &flat, item, 1, -1, item, err));
    }
    return DL_OK;
}

static enum dl_code join(struct dl_import_net *net, const struct dl_onnx_node *n, const int *values,
                         int count, struct dl_err *err) {
    const bool product = strcmp(n->op, "Mul") == 0 || strcmp(n->op, "Div") == 0;
    int *items = dl_arena_alloc(net->arena, (size_t)count, sizeof *items), item;
    for (int i = 0; i < count; i++) DL_TRY(dl_net_whole(net, values[i], &items[i], err));
    if (!product) {
        for (int i = 1; i < count; i++) DL_TRY(unify(net, &items[0], &items[i], err));
    } else {
        const struct dl_shape *x = dl_net_shape(net, items[0]), *y = dl_net_shape(net, items[1]);
        if (dl_shape_elements(x) < dl_shape_elements(y)) {
            const int first = items[0];
            items[0] = items[1], items[1] = first;
        } else if (dl_shape_elements(x) == dl_shape_elements(y)) {
            DL_TRY(unify(net, &items[0], &items[1], err));
        }
    }
    struct dl_layer layer = dl_net_layer(product ? &dl_layer_mul : &dl_layer_add);
    DL_TRY(dl_net_emit(net, &layer, items, count, -1, &item, err));
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

/* Halves of one layer's output, turned by the position and put together again: rotary embedding of
 * as many heads as the value's last extent leaves. */
static enum dl_code rotation(struct dl_import_net *net, int x, int out, struct dl_err *err) {
    const double head = last_extent(dl_net_value(net, x));
    int item = net->flows[x].item;
    const struct dl_shape *s = dl_net_shape(net, item);
    if (s->dims == 1 && head >= 2 && fmod(s->channels, head) == 0) {
        struct dl_layer rope = dl_net_layer(&dl_layer_rope);
        rope.attention.heads = s->channels / head;
        return dl_net_put(net, &rope, item, -1, out, err);
    }
    net->flows[out] = net->flows[x];
    net->scalar_count++;
    return DL_OK;
}

static enum dl_code of_two(struct dl_import_net *net, const struct dl_onnx_node *n, int a, int b,
                           struct dl_err *err) {
    const struct dl_flow *x = &net->flows[a], *y = &net->flows[b];
    const bool times = strcmp(n->op, "Mul") == 0, sub = strcmp(n->op, "Sub") == 0;
    if (x->scores > 0) return with_scores(net, n, a, b, err);
    if (y->scores > 0) return with_scores(net, n, b, a, err);
    if (root_of(net, a) == root_of(net, b) && (x->root >= 0 || y->root >= 0)) {
        const int longer = x->root >= 0 ? a : b;
        extend(net, longer, n->outputs[0],
               x->how | y->how | (times ? DL_HOW_SELF : 0u) | (sub ? DL_HOW_SUB : 0u));
        return DL_OK;
    }
    /* a mask of tokens */
    if (net->tokens && (x->item == DL_FLOW_INPUT || y->item == DL_FLOW_INPUT)) {
        extend(net, x->item == DL_FLOW_INPUT ? b : a, n->outputs[0], DL_HOW_SCALAR);
        return DL_OK;
    }
    if (!dl_has_word("Add Sub Mul Div Sum", n->op)) return no(err, "no layer compares activations");
    DL_TRY(dl_net_close(net, a, err));
    DL_TRY(dl_net_close(net, b, err));
    const bool halves =
        net->flows[a].item == net->flows[b].item && net->flows[a].item >= 0 && a != b;
    if (halves &&
        dl_net_elements(net, a) == dl_shape_elements(dl_net_shape(net, net->flows[a].item)))
        return rotation(net, a, n->outputs[0], err);
    const int both[2] = {a, b};
    return join(net, n, both, 2, err);
}

enum dl_code dl_map_binary(struct dl_import_net *net, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    if (n->input_count < 2 || n->output_count < 1 || n->outputs[0] < 0)
        return no(err, "expected two inputs and an output");
    for (int i = 0; i < n->input_count; i++) {
        if (n->inputs[i] < 0) return no(err, "an input is left out");
    }
    if (n->input_count > 2) return join(net, n, n->inputs, n->input_count, err);
    const int a = n->inputs[0], b = n->inputs[1];
    if (dl_net_value(net, b)->constant) return with_constant(net, n, a, b, err);
    if (dl_net_value(net, a)->constant) return with_constant(net, n, b, a, err);
    return of_two(net, n, a, b, err);
}

/* A mean over all positions is a pooling; over the channels it is part of a normalization. */
enum dl_code dl_map_mean(struct dl_import_net *net, const struct dl_onnx_node *n,
                         struct dl_err *err) {
    const int x = n->inputs[0], out = n->outputs[0];
    const struct dl_onnx_value *v = dl_net_value(net, x), *reduced = dl_net_value(net, out);
    if (!reduced->known) return no(err, "its axes are not constants");
    const double before = dl_net_elements(net, x), after = dl_net_elements(net, out);
    const bool over_last = v->rank >= 2 && reduced->rank == v->rank &&
                           reduced->dims[v->rank - 1] == 1 && after * last_extent(v) == before;
    if ((net->flows[x].how & DL_HOW_FUNCTIONS) != 0 && net->flows[x].root >= 0)
        DL_TRY(dl_net_close(net, x, err));
    const int item = net->flows[root_of(net, x)].item;
    const struct dl_shape *s = item == DL_FLOW_NONE ? NULL : dl_net_shape(net, item);
    if (over_last && s != NULL && last_extent(v) == s->channels &&
        !(s->dims >= 2 && v->rank == s->dims + 2 && (double)v->dims[1] == s->channels &&
          s->size[DL_DIMS - 1] == s->channels)) {
        extend(net, x, out, DL_HOW_MEAN);
        return DL_OK;
    }
    int whole;
    DL_TRY(dl_net_whole(net, x, &whole, err));
    s = dl_net_shape(net, whole);
    if (after != s->channels || s->dims == 0) return no(err, "it is not a mean over all positions");
    struct dl_layer layer = dl_net_layer(&dl_layer_global_pool);
    return dl_net_put(net, &layer, whole, -1, out, err);
}

/* A choice between scores and a constant is a mask; between a token's features and a constant too.
 */
enum dl_code dl_map_where(struct dl_import_net *net, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    int kept = -1;
    if (n->input_count != 3 || n->inputs[1] < 0 || n->inputs[2] < 0)
        return no(err, "expected three inputs");
    for (int i = 1; i < 3; i++) {
        const int v = n->inputs[i];
        if (net->flows[v].scores > 0) return with_scores(net, n, v, n->inputs[0], err);
        if (!dl_net_value(net, v)->constant) {
            if (kept >= 0) return no(err, "it selects between two activations");
            kept = v;
        }
    }
    if (kept < 0) kept = n->inputs[0]; /* made from a mask alone */
    if (dl_onnx_elements(dl_net_value(net, kept)) !=
            dl_onnx_elements(dl_net_value(net, n->outputs[0])) &&
        net->flows[kept].item != DL_FLOW_INPUT) {
        return no(err, "it repeats an activation");
    }
    extend(net, kept, n->outputs[0], DL_HOW_SCALAR);
    return DL_OK;
}
