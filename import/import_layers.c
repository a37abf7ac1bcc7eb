/* import_layers.c - layers from nodes: the net, what holds a value, and the walk over the nodes. */
#include "import/import_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"

const struct dl_shape *dl_net_shape(const struct dl_import_net *net, int item) {
    return item < 0 ? &net->input : &net->items[item].layer.out;
}

struct dl_onnx_value *dl_net_value(const struct dl_import_net *net, int value) {
    return &net->graph->values[value];
}

double dl_net_elements(const struct dl_import_net *net, int value) {
    return dl_onnx_elements(dl_net_value(net, value)) / (double)net->graph->batch;
}

void dl_net_hold(struct dl_import_net *net, int value, int item) {
    if (value < 0) return;
    net->flows[value] = (struct dl_flow){.item = item, .root = -1, .weight = -1, .bias = -1};
}

/* ---- items ---- */

struct dl_layer dl_net_layer(const struct dl_layer_kind *kind) {
    struct dl_layer layer = {.kind = kind, .groups = 1, .tied_to = -1};
    for (int i = 0; i < DL_DIMS; i++)
        layer.window.kernel[i] = layer.window.stride[i] = layer.window.dilation[i] =
            layer.requested.target[i] = 1;
    return layer;
}

/* Shape, parameters and work of a layer from its inputs. */
static enum dl_code infer(struct dl_import_net *net, struct dl_layer *layer, struct dl_err *err) {
    struct dl_shape *shapes =
        dl_arena_alloc(net->arena, (size_t)layer->input_count, sizeof *shapes);
    layer->in_elements = 0;
    for (int i = 0; i < layer->input_count; i++) {
        shapes[i] = *dl_net_shape(net, layer->inputs[i]);
        layer->in_elements += dl_shape_elements(&shapes[i]);
    }
    layer->in = shapes[0];
    layer->parameters = NULL;
    layer->parameter_count = 0;
    layer->parameter_elements = layer->buffer_elements = layer->forward_macs = 0;
    if (layer->input_count < layer->kind->inputs_min ||
        layer->input_count > layer->kind->inputs_max) {
        return dl_fail(err, DL_ERR_INPUT, "a %s has no %d inputs", layer->kind->name,
                       layer->input_count);
    }
    DL_TRY(layer->kind->infer(layer, shapes, net->arena, err));
    const double elements = dl_shape_elements(&layer->out);
    if (elements >= 1 && elements <= 9007199254740992.0 &&
        layer->forward_macs <= 9007199254740992.0)
        return DL_OK;
    return dl_fail(err, DL_ERR_INPUT, "%g output elements and %g multiply-adds a sample", elements,
                   layer->forward_macs);
}

enum dl_code dl_net_again(struct dl_import_net *net, int item, struct dl_err *err) {
    struct dl_layer *layer = &net->items[item].layer;
    DL_TRY(infer(net, layer, err));
    if (net->items[item].tied >= 0) layer->parameter_elements -= layer->parameters[0].elements;
    return DL_OK;
}

int dl_net_learn(struct dl_import_net *net, int value, int item) {
    struct dl_onnx_graph *g = net->graph;
    int stack[64], depth = 0, found = -1;
    stack[depth++] = value;
    while (depth > 0) {
        const int at = stack[--depth];
        const struct dl_onnx_value *v = &g->values[at];
        const struct dl_onnx_node *n = v->node < 0 ? NULL : &g->nodes[v->node];
        /* an initializer, or a node that generates constants (ConstantOfShape) */
        bool made_here = true;
        for (int i = 0; n != NULL && i < n->input_count && depth < 64; i++) {
            const int from = n->inputs[i];
            if (from < 0 || !g->values[from].constant || !g->values[from].floating) continue;
            stack[depth++] = from;
            made_here = false;
        }
        if (!made_here || !v->floating) continue;
        if (net->owner[at] > 0 && found < 0)
            found = net->owner[at] - 1;
        else if (net->owner[at] == 0)
            net->owner[at] = item + 1;
    }
    return found == item ? -1 : found;
}

/* A weight that another layer has already: tied where the format can say so. */
static void tie(struct dl_import_net *net, int item, int weight) {
    struct dl_import_item *it = &net->items[item];
    const int other = dl_net_learn(net, weight, item);
    const struct dl_onnx_value *v = dl_net_value(net, weight);
    if (other < 0 || it->layer.parameter_count == 0) return;
    /* each has its part */
    if (dl_onnx_elements(dl_net_value(net, v->origin)) > dl_onnx_elements(v)) return;
    const struct dl_layer *theirs = &net->items[other].layer;
    const bool same = theirs->parameter_count > 0 &&
                      theirs->parameters[0].elements == it->layer.parameters[0].elements;
    if (!same || (it->layer.kind->takes & DL_KEY_TIED) == 0 || net->items[other].tied >= 0) {
        net->shared_count++;
        return;
    }
    it->tied = other;
    it->layer.parameter_elements -= it->layer.parameters[0].elements;
}

enum dl_code dl_net_emit(struct dl_import_net *net, struct dl_layer *layer, const int *inputs,
                         int input_count, int weight, int *out, struct dl_err *err) {
    net->items = dl_arena_grow(net->arena, net->items, (size_t)net->item_count, sizeof *net->items);
    int *copied = dl_arena_alloc(net->arena, (size_t)input_count, sizeof *copied);
    memcpy(copied, inputs, (size_t)input_count * sizeof *copied);
    layer->inputs = copied;
    layer->input_count = input_count;
    DL_TRY(infer(net, layer, err));
    struct dl_import_item *item = &net->items[net->item_count];
    *item = (struct dl_import_item){.layer = *layer, .tied = -1};
    dl_net_name(net, item, weight);
    *out = net->item_count++;
    if (weight >= 0) tie(net, *out, weight);
    return DL_OK;
}

enum dl_code dl_net_put(struct dl_import_net *net, struct dl_layer *layer, int item, int weight,
                        int out, struct dl_err *err) {
    DL_TRY(dl_net_emit(net, layer, &item, 1, weight, &item, err));
    dl_net_hold(net, out, item);
    return DL_OK;
}

static enum dl_code emit_one(struct dl_import_net *net, struct dl_layer layer, int input, int *out,
                             struct dl_err *err) {
    return dl_net_emit(net, &layer, &input, 1, -1, out, err);
}

/* ---- what holds a value ---- */

static enum dl_code no_view(struct dl_import_net *net, int value, int item, struct dl_err *err) {
    char shape[64];
    const struct dl_onnx_value *v = dl_net_value(net, value);
    const char *dims = "";
    for (int d = 0; d < v->rank; d++)
        dims = dl_arena_printf(net->arena, "%s%s%lld", dims != NULL ? dims : "", d > 0 ? "x" : "",
                               (long long)v->dims[d]);
    return dl_fail(err, DL_ERR_INPUT, "no layer rearranges %s into %.100s",
                   dl_shape_text(dl_net_shape(net, item), shape, sizeof shape),
                   dims != NULL ? dims : "");
}

enum dl_code dl_net_sequence(struct dl_import_net *net, int item, double channels, int *out,
                             struct dl_err *err) {
    const struct dl_shape *s = dl_net_shape(net, item);
    *out = item;
    if (s->dims >= 2 && s->channels >= channels) {
        DL_TRY(emit_one(net, dl_net_layer(&dl_layer_tokens), item, out, err));
        s = dl_net_shape(net, *out);
    }
    if (s->dims != 1) return dl_fail(err, DL_ERR_INPUT, "expected a sequence");
    if (s->channels <= channels) return DL_OK;
    struct dl_layer part = dl_net_layer(&dl_layer_split);
    part.requested.hidden = channels;
    return emit_one(net, part, *out, out, err);
}

/* A slice of tokens or channels, recognized by its shape. */
static enum dl_code cut(struct dl_import_net *net, int value, int item, int *out,
                        struct dl_err *err) {
    const struct dl_onnx_value *v = dl_net_value(net, value);
    const struct dl_shape s = *dl_net_shape(net, item);
    const double elements = dl_net_elements(net, value), positions = dl_shape_positions(&s);
    const double last = v->rank > 0 ? (double)v->dims[v->rank - 1] : 0;
    struct dl_layer part = dl_net_layer(&dl_layer_split), slice = dl_net_layer(&dl_layer_slice);
    if (s.dims == 1 && last == s.channels && fmod(elements, last) == 0) {
        slice.requested.tokens = elements / last;
        return emit_one(net, slice, item, out, err);
    }
    part.requested.hidden = elements / positions;
    if (part.requested.hidden >= 1 && part.requested.hidden == floor(part.requested.hidden))
        return emit_one(net, part, item, out, err);
    return no_view(net, value, item, err);
}

enum dl_code dl_net_whole(struct dl_import_net *net, int value, int *item, struct dl_err *err) {
    DL_TRY(dl_net_close(net, value, err));
    *item = net->flows[value].item;
    if (*item == DL_FLOW_NONE)
        return dl_fail(err, DL_ERR_INPUT, "expected something that depends on the model's input");
    const double elements = dl_net_elements(net, value),
                 whole = dl_shape_elements(dl_net_shape(net, *item));
    if (elements == whole) return DL_OK;
    if (elements > whole || isnan(elements)) return no_view(net, value, *item, err);
    DL_TRY(cut(net, value, *item, item, err));
    net->flows[value].item = *item;
    return DL_OK;
}

enum dl_code dl_net_rows(struct dl_import_net *net, int value, double channels, int *item,
                         bool *pixels, struct dl_err *err) {
    DL_TRY(dl_net_whole(net, value, item, err));
    const struct dl_shape *s = dl_net_shape(net, *item);
    *pixels = false;
    if (s->channels == channels) {
        *pixels = s->dims >= 2 && dl_shape_positions(s) > 1;
        if (s->dims < 2 || *pixels) return DL_OK;
    }
    if (dl_shape_elements(s) == channels) {
        DL_TRY(emit_one(net, dl_net_layer(&dl_layer_flatten), *item, item, err));
        return DL_OK;
    }
    return no_view(net, value, *item, err);
}

/* ---- the walk ---- */

static enum dl_code map_view(struct dl_import_net *net, const struct dl_onnx_node *n,
                             struct dl_err *err) {
    const int x = n->inputs[0];
    const bool open = dl_has_word("Identity Cast", n->op);
    if (!open && net->flows[x].scores == 0) DL_TRY(dl_net_close(net, x, err));
    for (int i = 0; i < n->output_count; i++) {
        if (n->outputs[i] >= 0) net->flows[n->outputs[i]] = net->flows[x];
    }
    return DL_OK;
}

static const struct {
    const char *ops;
    dl_map_fn *map;
} maps[] = {
    {"Conv ConvTranspose", dl_map_conv},
    {"MaxPool AveragePool", dl_map_pool},
    {"GlobalAveragePool GlobalMaxPool", dl_map_global_pool},
    {"BatchNormalization", dl_map_batchnorm},
    {"LRN", dl_map_lrn},
    {"Gemm", dl_map_dense},
    {"MatMul", dl_map_matmul},
    {"Gather", dl_map_gather},
    {"Concat", dl_map_concat},
    {"LSTM", dl_map_lstm},
    {"Resize Upsample", dl_map_resize},
    {"Pad", dl_map_pad},
    {"Dropout", dl_map_dropout},
    {"Softmax LogSoftmax", dl_map_softmax},
    {"LayerNormalization RMSNormalization SimplifiedLayerNormalization InstanceNormalization "
     "GroupNormalization",
     dl_map_norm},
    {"ReduceMean", dl_map_mean},
    {"Where", dl_map_where},
    {"Add Sub Mul Div Pow Sum Equal Less Greater LessOrEqual GreaterOrEqual And Or", dl_map_binary},
    {"Reshape Flatten Transpose Squeeze Unsqueeze Slice Split Expand Identity Cast", map_view},
    {"Attention MultiHeadAttention", dl_map_attention_op},
};

static dl_map_fn *find_map(const struct dl_onnx_node *n) {
    if (n->domain[0] != 0) return NULL;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        if (dl_has_word(maps[i].ops, n->op)) return maps[i].map;
    }
    return dl_map_unary; /* rejects unknown operators */
}

static bool is_constant(const struct dl_import_net *net, const struct dl_onnx_node *n) {
    for (int i = 0; i < n->output_count; i++) {
        if (n->outputs[i] >= 0 && !dl_net_value(net, n->outputs[i])->constant) return false;
    }
    return true;
}

/* A node that is left out passes its first input on; its shape is the declared one, else that of
 * the input. */
static void leave_out(struct dl_import_net *net, const struct dl_onnx_node *n, const char *why,
                      bool unknown) {
    int source = -1;
    for (int i = 0; i < n->input_count && source < 0; i++) {
        if (n->inputs[i] >= 0 && !dl_net_value(net, n->inputs[i])->constant) source = n->inputs[i];
    }
    const char *copy = dl_arena_strdup(net->arena, why);
    net->left[net->left_count++] = (struct dl_left_out){net->node, copy, unknown};
    struct dl_err ignored = {.code = DL_OK};
    if (source >= 0 && dl_net_close(net, source, &ignored) != DL_OK)
        net->flows[source].root = -1, net->flows[source].item = DL_FLOW_INPUT;
    for (int i = 0; i < n->output_count; i++) {
        if (n->outputs[i] < 0) continue;
        struct dl_onnx_value *v = dl_net_value(net, n->outputs[i]);
        dl_net_hold(net, n->outputs[i], source >= 0 ? net->flows[source].item : DL_FLOW_NONE);
        if (v->known || source < 0) continue;
        const struct dl_onnx_value *from = dl_net_value(net, source);
        const bool declared = v->declared_rank >= 0;
        v->known = from->known || declared;
        v->rank = declared ? v->declared_rank : from->rank;
        for (int d = 0; d < v->rank; d++)
            v->dims[d] = !declared            ? from->dims[d]
                         : v->declared[d] > 0 ? v->declared[d]
                         : d == 0             ? net->graph->batch
                                              : 1;
    }
}

/* The shape in the file must equal the inferred one. */
static enum dl_code check_declared(struct dl_import_net *net, const struct dl_onnx_node *n,
                                   struct dl_err *err) {
    for (int i = 0; i < n->output_count; i++) {
        const struct dl_onnx_value *v = n->outputs[i] < 0 ? NULL : dl_net_value(net, n->outputs[i]);
        if (v == NULL || !v->known || v->declared_rank < 0) continue;
        bool same = v->rank == v->declared_rank;
        for (int d = 0; same && d < v->rank; d++)
            same = v->declared[d] == 0 || v->declared[d] == v->dims[d] || d == 0;
        if (!same) {
            return dl_onnx_fail(net->graph, n, err,
                                "its output '%.60s' does not have the shape that the file declares",
                                v->name);
        }
    }
    return DL_OK;
}

static enum dl_code map_node(struct dl_import_net *net, int node, struct dl_err *err) {
    const struct dl_onnx_node *n = &net->graph->nodes[node];
    struct dl_err soft = {.code = DL_OK};
    net->node = node;
    DL_TRY(dl_onnx_infer(net->graph, node, err));
    DL_TRY(check_declared(net, n, err));
    for (int i = 0; i < n->output_count; i++) dl_net_hold(net, n->outputs[i], DL_FLOW_NONE);
    if (is_constant(net, n)) return DL_OK;
    dl_map_fn *map = find_map(n);
    enum dl_code code;
    if (map == NULL)
        code = dl_fail(&soft, DL_ERR_USAGE, "of '%.60s', not of ONNX", n->domain);
    else if (n->input_count == 0 || n->inputs[0] < 0)
        code = dl_fail(&soft, DL_ERR_INPUT, "it has no first input");
    else if (n->outputs[0] < 0)
        code = dl_fail(&soft, DL_ERR_INPUT, "it has no first output");
    else
        code = map(net, n, &soft);
    if (code == DL_OK) {
        const int out = n->output_count > 0 ? n->outputs[0] : -1;
        if (out < 0 || dl_net_value(net, out)->known) return DL_OK;
        code = dl_fail(&soft, DL_ERR_INPUT, "the shape of its output is not known");
    }
    if (code == DL_ERR_SYSTEM) {
        *err = soft;
        return code;
    }
    leave_out(net, n, soft.message, code == DL_ERR_USAGE);
    return DL_OK;
}

static const struct dl_onnx_node *reader_of(const struct dl_onnx_graph *g,
                                            const struct dl_onnx_value *v, const char *op) {
    for (int k = 0; k < g->node_count; k++) {
        const struct dl_onnx_node *n = &g->nodes[k];
        if (n->input_count > 0 && n->inputs[0] >= 0 && &g->values[n->inputs[0]] == v &&
            strcmp(n->op, op) == 0)
            return n;
    }
    return NULL;
}

/* Exported from TensorFlow, an image has its channels last and is transposed first. */
static bool channels_last(const struct dl_onnx_graph *g, const struct dl_onnx_value *image) {
    const struct dl_onnx_node *n = reader_of(g, image, "Transpose");
    const struct dl_onnx_attribute *perm = n != NULL ? dl_onnx_attribute(n, "perm") : NULL;
    return image->rank > 3 && perm != NULL && perm->count == image->rank && perm->list[0] == 0 &&
           perm->list[1] == image->rank - 1 && perm->list[2] == 1;
}

/* The first input of floating-point numbers is the sample; a model of tokens has the longest of its
 * inputs. */
static enum dl_code set_input(struct dl_import_net *net, struct dl_err *err) {
    const struct dl_onnx_graph *g = net->graph;
    const struct dl_onnx_value *image = NULL;
    double longest = 0;
    for (int i = 0; i < g->input_count; i++) {
        const struct dl_onnx_value *v = &g->values[g->inputs[i]];
        if (v->floating && image == NULL && v->rank >= 2) image = v;
        if (!v->floating) longest = fmax(longest, dl_onnx_elements(v) / (double)g->batch);
        dl_net_hold(net, g->inputs[i], DL_FLOW_INPUT);
    }
    net->input = (struct dl_shape){.channels = 1, .size = {1, 1, 1}};
    if (image == NULL) {
        if (!(longest >= 1))
            return dl_fail_at(err, g->file, 0, 0, NULL,
                              "expected an input of at least two dimensions");
        net->tokens = true;
        net->input.dims = 1;
        net->input.size[DL_DIMS - 1] = longest;
        return DL_OK;
    }
    if (image->rank > 2 + DL_DIMS)
        return dl_fail_at(err, g->file, 0, 0, NULL,
                          "expected at most 3 spatial dimensions of input '%.80s'", image->name);
    /* of rank 3: [batch, channels, length] for convolutions, else [batch, tokens, features] */
    const bool last =
        image->rank == 3 ? reader_of(g, image, "Conv") == NULL : channels_last(g, image);
    net->input.dims = image->rank - 2;
    net->input.channels = (double)image->dims[last ? image->rank - 1 : 1];
    for (int d = 2; d < image->rank; d++)
        net->input.size[DL_DIMS - image->rank + d] = (double)image->dims[last ? d - 1 : d];
    return DL_OK;
}

/* Training needs a loss on each output that a layer holds. */
static enum dl_code add_losses(struct dl_import_net *net, struct dl_err *err) {
    const struct dl_onnx_graph *g = net->graph;
    for (int i = 0; i < g->output_count; i++) {
        const int value = g->outputs[i];
        struct dl_err soft = {.code = DL_OK};
        int item, loss;
        bool seen = net->flows[value].state;
        if (dl_net_whole(net, value, &item, &soft) != DL_OK || item < 0) continue;
        for (int k = 0; k < net->item_count; k++)
            seen = seen || (net->items[k].layer.kind == &dl_layer_loss &&
                            net->items[k].layer.inputs[0] == item);
        net->node = g->node_count - 1;
        if (!seen) DL_TRY(emit_one(net, dl_net_layer(&dl_layer_loss), item, &loss, err));
    }
    return DL_OK;
}

enum dl_code dl_import_map(struct dl_onnx_graph *g, struct dl_import_net *out, struct dl_err *err) {
    struct dl_import_net net = {.graph = g, .arena = g->arena, .names = {.arena = g->arena}};
    net.flows = dl_arena_alloc(g->arena, (size_t)g->value_count, sizeof *net.flows);
    net.owner = dl_arena_alloc(g->arena, (size_t)g->value_count, sizeof *net.owner);
    net.left = dl_arena_alloc(g->arena, (size_t)g->node_count, sizeof *net.left);
    net.scores = dl_arena_alloc(g->arena, (size_t)g->node_count, sizeof *net.scores);
    for (int v = 0; v < g->value_count; v++) dl_net_hold(&net, v, DL_FLOW_NONE);
    DL_TRY(set_input(&net, err));
    for (int k = 0; k < g->node_count; k++) DL_TRY(map_node(&net, k, err));
    DL_TRY(add_losses(&net, err));
    *out = net;
    return DL_OK;
}
