/* import_kinds.c - ONNX operators that are one layer: convolution, pooling, dense, normalization,
 * embedding, concat, LSTM. */
#include <math.h>
#include <string.h>

#include "import/import_layers.h"

static enum dl_code no(struct dl_err *err, const char *why) {
    return dl_fail(err, DL_ERR_INPUT, "%s", why);
}

static bool is_learned(const struct dl_import_net *net, int value) {
    return value >= 0 && dl_net_value(net, value)->constant && dl_net_value(net, value)->floating &&
           dl_net_value(net, value)->known;
}

static int input_at(const struct dl_onnx_node *n, int i) {
    return i < n->input_count ? n->inputs[i] : -1;
}

/* The item behind an image-like value [batch, channels, extents...]. */
static enum dl_code image_of(struct dl_import_net *net, int value, int *item, struct dl_err *err) {
    const struct dl_onnx_value *v = dl_net_value(net, value);
    DL_TRY(dl_net_whole(net, value, item, err));
    const struct dl_shape *s = dl_net_shape(net, *item);
    bool fits = s->dims == v->rank - 2 && s->channels == (double)v->dims[1];
    for (int d = 2; fits && d < v->rank; d++)
        fits = s->size[DL_DIMS - v->rank + d] == (double)v->dims[d];
    return fits ? DL_OK : no(err, "its input is not an image (channels and extents)");
}

/* Strides, dilations and padding; a Pad before it counts too. Different padding at both ends of
 * half an element more or less is the mean of them, which the format can say. */
static enum dl_code set_window(struct dl_import_net *net, const struct dl_onnx_node *n,
                               struct dl_layer *layer, struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    const struct dl_flow *flow = &net->flows[n->inputs[0]];
    const struct dl_onnx_attribute *automatic = dl_onnx_attribute(n, "auto_pad");
    const bool same =
        automatic != NULL && automatic->text != NULL && strncmp(automatic->text, "SAME", 4) == 0;
    const int dims = x->rank - 2;
    for (int i = 0; i < dims; i++) {
        const int d = DL_DIMS - dims + i;
        layer->window.stride[d] = dl_onnx_list_at(n, "strides", i, 1);
        layer->window.dilation[d] = dl_onnx_list_at(n, "dilations", i, 1);
        double pads = dl_onnx_list_at(n, "pads", i, 0) + dl_onnx_list_at(n, "pads", i + dims, 0);
        if (flow->pad != NULL) pads += flow->pad[2 + i] + flow->pad[flow->pad_rank + 2 + i];
        if (same) {
            const double in = (double)x->dims[2 + i],
                         reach = layer->window.dilation[d] * (layer->window.kernel[d] - 1) + 1;
            pads = fmax(
                (ceil(in / layer->window.stride[d]) - 1) * layer->window.stride[d] + reach - in, 0);
        }
        layer->window.pad[d] = (pads - dl_onnx_list_at(n, "output_padding", i, 0)) / 2;
        if (!(layer->window.pad[d] >= 0)) return no(err, "its padding is negative");
    }
    return DL_OK;
}

enum dl_code dl_map_conv(struct dl_import_net *net, const struct dl_onnx_node *n,
                         struct dl_err *err) {
    const bool transposed = strcmp(n->op, "ConvTranspose") == 0;
    const int weight = input_at(n, 1), bias = input_at(n, 2);
    int item;
    if (!is_learned(net, weight)) return no(err, "its kernel is not a constant");
    if (bias >= 0 && !is_learned(net, bias)) return no(err, "its bias is not a constant");
    const struct dl_onnx_value *w = dl_net_value(net, weight);
    if (w->rank < 3 || w->rank > 2 + DL_DIMS) return no(err, "expected 1 to 3 spatial dimensions");
    const double *pads = net->flows[n->inputs[0]].pad;
    const int pad_rank = net->flows[n->inputs[0]].pad_rank;
    if (pads == NULL) DL_TRY(image_of(net, n->inputs[0], &item, err));
    item = net->flows[n->inputs[0]].item;
    net->flows[n->inputs[0]].pad = pads, net->flows[n->inputs[0]].pad_rank = pad_rank;
    struct dl_layer layer = dl_net_layer(transposed ? &dl_layer_conv_transpose : &dl_layer_conv);
    layer.groups = dl_onnx_number(n, "group", 1);
    layer.requested.hidden = transposed ? (double)w->dims[1] * layer.groups : (double)w->dims[0];
    layer.bias = bias >= 0;
    for (int d = 2; d < w->rank; d++)
        layer.window.kernel[DL_DIMS - w->rank + d] = (double)w->dims[d];
    DL_TRY(set_window(net, n, &layer, err));
    DL_TRY(dl_net_emit(net, &layer, &item, 1, weight, &item, err));
    if (bias >= 0) dl_net_learn(net, bias, item);
    net->forward_macs += dl_onnx_elements(w) *
                         (transposed ? dl_shape_positions(&net->items[item].layer.in)
                                     : dl_net_elements(net, n->outputs[0]) / (double)w->dims[0]);
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

enum dl_code dl_map_pool(struct dl_import_net *net, const struct dl_onnx_node *n,
                         struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    int item;
    if (x->rank < 3 || x->rank > 2 + DL_DIMS) return no(err, "expected 1 to 3 spatial dimensions");
    if (net->flows[n->inputs[0]].pad == NULL) DL_TRY(image_of(net, n->inputs[0], &item, err));
    item = net->flows[n->inputs[0]].item;
    struct dl_layer layer =
        dl_net_layer(strcmp(n->op, "MaxPool") == 0 ? &dl_layer_maxpool : &dl_layer_avgpool);
    layer.window.ceil_mode = dl_onnx_number(n, "ceil_mode", 0) != 0;
    for (int i = 0; i < x->rank - 2; i++)
        layer.window.kernel[DL_DIMS - x->rank + 2 + i] = dl_onnx_list_at(n, "kernel_shape", i, 1);
    DL_TRY(set_window(net, n, &layer, err));
    for (int d = 0; d < DL_DIMS; d++) {
        if (layer.window.dilation[d] != 1) return no(err, "its window is dilated");
    }
    return dl_net_put(net, &layer, item, -1, n->outputs[0], err);
}

enum dl_code dl_map_global_pool(struct dl_import_net *net, const struct dl_onnx_node *n,
                                struct dl_err *err) {
    struct dl_layer layer = dl_net_layer(&dl_layer_global_pool);
    int item;
    DL_TRY(image_of(net, n->inputs[0], &item, err));
    return dl_net_put(net, &layer, item, -1, n->outputs[0], err);
}

/* Zeros around an image, for the next convolution or pooling to take over. */
enum dl_code dl_map_pad(struct dl_import_net *net, const struct dl_onnx_node *n,
                        struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]),
                               *list = dl_onnx_in(net->graph, n, 1);
    const struct dl_onnx_attribute *listed = dl_onnx_attribute(n, "pads");
    const double *pads = list != NULL                                     ? list->numbers
                         : listed != NULL && listed->count == 2 * x->rank ? listed->list
                                                                          : NULL;
    bool any = false;
    int item;
    if (pads == NULL) return no(err, "its extents are not constants");
    for (int d = 0; d < 2 * x->rank; d++) any = any || pads[d] != 0;
    DL_TRY(dl_net_whole(net, n->inputs[0], &item, err));
    dl_net_hold(net, n->outputs[0], item);
    if (!any) return DL_OK;
    DL_TRY(image_of(net, n->inputs[0], &item, err));
    for (int d = 0; d < 2 * x->rank; d++) {
        if (pads[d] < 0 || (pads[d] > 0 && d % x->rank < 2))
            return no(err, "it pads dimensions other than the extents of an image");
    }
    net->flows[n->outputs[0]].pad = pads;
    net->flows[n->outputs[0]].pad_rank = x->rank;
    return DL_OK;
}

/* ---- dense ---- */

/* A dense layer over the channels of an image is a convolution of kernel 1. */
enum dl_code dl_net_dense(struct dl_import_net *net, int x, int weight, double in, double out,
                          int *item, struct dl_err *err) {
    bool pixels = false;
    DL_TRY(dl_net_rows(net, x, in, item, &pixels, err));
    struct dl_layer layer = dl_net_layer(pixels ? &dl_layer_conv : &dl_layer_dense);
    layer.requested.hidden = out;
    DL_TRY(dl_net_emit(net, &layer, item, 1, weight, item, err));
    net->forward_macs += in * out * dl_shape_positions(dl_net_shape(net, *item));
    return DL_OK;
}

enum dl_code dl_map_dense(struct dl_import_net *net, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    const int weight = input_at(n, 1), bias = input_at(n, 2);
    if (!is_learned(net, weight)) return no(err, "its matrix is not a constant");
    if (bias >= 0 && !is_learned(net, bias)) return no(err, "its bias is not a constant");
    if (dl_onnx_number(n, "transA", 0) != 0) return no(err, "it transposes its input");
    const struct dl_onnx_value *w = dl_net_value(net, weight);
    const bool turned = dl_onnx_number(n, "transB", 0) != 0;
    int item;
    DL_TRY(dl_net_dense(net, n->inputs[0], weight, (double)w->dims[turned ? 1 : 0],
                        (double)w->dims[turned ? 0 : 1], &item, err));
    if (bias >= 0) {
        net->items[item].layer.bias = true;
        dl_net_learn(net, bias, item);
        DL_TRY(dl_net_again(net, item, err));
    }
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

/* ---- normalization ---- */

static enum dl_code same(struct dl_import_net *net, const struct dl_onnx_node *n,
                         const struct dl_layer_kind *kind, double channels, int weight, int *item,
                         struct dl_err *err) {
    struct dl_layer layer = dl_net_layer(kind);
    DL_TRY(dl_net_whole(net, n->inputs[0], item, err));
    if (dl_net_shape(net, *item)->channels != channels)
        return no(err, "its channels differ from those of the layer before it");
    DL_TRY(dl_net_emit(net, &layer, item, 1, weight, item, err));
    dl_net_hold(net, n->outputs[0], *item);
    return DL_OK;
}

enum dl_code dl_map_batchnorm(struct dl_import_net *net, const struct dl_onnx_node *n,
                              struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    int item;
    if (x->rank < 2 || n->input_count < 3) return no(err, "expected channels, scale and shift");
    DL_TRY(same(net, n, &dl_layer_batchnorm, (double)x->dims[1], input_at(n, 1), &item, err));
    dl_net_learn(net, input_at(n, 2), item);
    net->items[item].affine = true; /* Caffe's comes as a separate Mul and Add */
    return DL_OK;
}

enum dl_code dl_map_lrn(struct dl_import_net *net, const struct dl_onnx_node *n,
                        struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    int item;
    if (x->rank < 2) return no(err, "expected channels");
    return same(net, n, &dl_layer_lrn, (double)x->dims[1], -1, &item, err);
}

/* Layer norm over the last axis; instance and group norm, whose scale and shift may also come as
 * separate operators. */
enum dl_code dl_map_norm(struct dl_import_net *net, const struct dl_onnx_node *n,
                         struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    const bool layer_norm = strcmp(n->op, "LayerNormalization") == 0,
               rms = strstr(n->op, "RMS") != NULL || n->op[0] == 'S';
    const int weight = input_at(n, 1), bias = input_at(n, 2);
    int item;
    if (x->rank < 2) return no(err, "expected channels");
    if (layer_norm || rms) {
        const double axis = dl_onnx_number(n, "axis", -1);
        if (axis != -1 && axis != x->rank - 1)
            return no(err, "it normalizes over more than the channels");
        DL_TRY(same(net, n, rms ? &dl_layer_scale : &dl_layer_layernorm,
                    (double)x->dims[x->rank - 1], weight, &item, err));
        if (bias >= 0) dl_net_learn(net, bias, item);
        if (weight < 0 || (layer_norm && bias < 0)) net->unscaled_count++;
        return DL_OK;
    }
    struct dl_layer layer = dl_net_layer(&dl_layer_layernorm);
    DL_TRY(dl_net_whole(net, n->inputs[0], &item, err));
    const struct dl_onnx_value *w = weight < 0 ? NULL : dl_net_value(net, weight);
    const bool own =
        w != NULL && w->known && dl_onnx_elements(w) == dl_net_shape(net, item)->channels;
    DL_TRY(dl_net_emit(net, &layer, &item, 1, own ? weight : -1, &item, err));
    if (own && bias >= 0) dl_net_learn(net, bias, item);
    net->items[item].affine = !own;
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

enum dl_code dl_map_dropout(struct dl_import_net *net, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *given = dl_onnx_in(net->graph, n, 1);
    const double ratio = given != NULL && given->numbers != NULL && dl_onnx_elements(given) >= 1
                             ? given->numbers[0]
                             : dl_onnx_number(n, "ratio", 0.5);
    const int x = n->inputs[0];
    if (!(ratio >= 0 && ratio < 1)) return no(err, "its ratio is not from 0 to below 1");
    if (net->flows[x].scores > 0) {
        net->scores[net->flows[x].scores - 1].dropout = ratio;
        net->flows[n->outputs[0]] = net->flows[x];
        return DL_OK;
    }
    int item;
    struct dl_layer layer = dl_net_layer(&dl_layer_dropout);
    layer.dropout = ratio;
    DL_TRY(dl_net_whole(net, x, &item, err));
    if (ratio > 0) return dl_net_put(net, &layer, item, -1, n->outputs[0], err);
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

/* ---- look-up and joins ---- */

enum dl_code dl_map_gather(struct dl_import_net *net, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const int table = n->inputs[0], index = input_at(n, 1);
    const struct dl_onnx_value *w = dl_net_value(net, table);
    if (!w->constant) { /* some of the positions or channels: cut out when a layer reads it */
        if (index < 0 || !dl_net_value(net, index)->constant)
            return no(err, "what it picks depends on the input");
        DL_TRY(dl_net_close(net, table, err));
        net->flows[n->outputs[0]] = net->flows[table];
        return DL_OK;
    }
    if (!w->floating || w->rank != 2 || index < 0)
        return no(err, "expected a table of two dimensions");
    int item = DL_FLOW_INPUT;
    if (net->input.dims > 1) return no(err, "only a model of tokens has an embedding");
    struct dl_layer layer = dl_net_layer(&dl_layer_embedding);
    layer.rows = (double)w->dims[0];
    layer.requested.hidden = (double)w->dims[1];
    const double count = dl_net_elements(net, index);
    if (net->input.dims == 1 && count != net->input.size[DL_DIMS - 1])
        layer.requested.tokens = count;
    return dl_net_put(net, &layer, item, table, n->outputs[0], err);
}

/* Learned tokens before a sequence. */
static enum dl_code prepend(struct dl_import_net *net, const struct dl_onnx_node *n, int learned,
                            int rest, struct dl_err *err) {
    const struct dl_onnx_value *token = dl_net_value(net, learned), *v = dl_net_value(net, rest);
    const double channels = v->rank < 1 ? 0 : (double)v->dims[v->rank - 1];
    int item;
    const double own = dl_onnx_elements(dl_net_value(net, token->origin));
    if (token->rank < 1 || v->rank < 1 || !v->known) return no(err, "it joins scalars");
    if (token->dims[token->rank - 1] != v->dims[v->rank - 1] || fmod(own, channels) != 0)
        return no(err, "it concatenates a constant along an axis other than the tokens");
    DL_TRY(dl_net_whole(net, rest, &item, err));
    if (dl_net_shape(net, item)->channels != channels)
        return no(err, "it concatenates a constant to something other than tokens");
    DL_TRY(dl_net_sequence(net, item, channels, &item, err));
    struct dl_layer layer = dl_net_layer(&dl_layer_prepend);
    layer.requested.tokens = own / channels;
    return dl_net_put(net, &layer, item, learned, n->outputs[0], err);
}

/* Parts of one layer's output that come together again (rotary position embedding) are that output.
 */
static bool one_source(const struct dl_import_net *net, const struct dl_onnx_node *n, int *item) {
    double sum = 0;
    for (int i = 0; i < n->input_count; i++) {
        const int v = n->inputs[i];
        if (v < 0 || net->flows[v].item == DL_FLOW_NONE || (i > 0 && net->flows[v].item != *item))
            return false;
        *item = net->flows[v].item;
        sum += dl_net_elements(net, v);
    }
    return n->input_count > 1 && *item >= 0 && sum <= dl_shape_elements(dl_net_shape(net, *item));
}

enum dl_code dl_map_concat(struct dl_import_net *net, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    int *items = dl_arena_alloc(net->arena, (size_t)n->input_count, sizeof *items), item;
    const struct dl_onnx_value *out = dl_net_value(net, n->outputs[0]);
    if (!out->known) return no(err, "its shape is not known");
    for (int i = 0; i < n->input_count; i++) {
        if (n->inputs[i] < 0) return no(err, "an input is left out");
        const struct dl_onnx_value *v = dl_net_value(net, n->inputs[i]);
        if (v->constant && i == 0 && n->input_count == 2 && v->floating)
            return prepend(net, n, n->inputs[0], n->inputs[1], err);
        if (v->constant) return no(err, "it concatenates a constant");
        DL_TRY(dl_net_close(net, n->inputs[i], err));
    }
    if (one_source(net, n, &item)) {
        dl_net_hold(net, n->outputs[0], item);
        return DL_OK;
    }
    double channels = 0;
    for (int i = 0; i < n->input_count; i++) {
        DL_TRY(dl_net_whole(net, n->inputs[i], &items[i], err));
        const struct dl_shape *s = dl_net_shape(net, items[i]);
        if (out->rank == 2 && s->dims > 0) { /* joined as vectors */
            struct dl_layer flat = dl_net_layer(&dl_layer_flatten);
            DL_TRY(dl_net_emit(net, &flat, &items[i], 1, -1, &items[i], err));
        }
        channels += dl_net_shape(net, items[i])->channels;
    }
    double axis = dl_onnx_number(n, "axis", 0);
    if (axis < 0) axis += out->rank;
    if ((double)out->dims[(int)axis] != channels)
        return no(err, "it concatenates along an axis other than the channels");
    struct dl_layer layer = dl_net_layer(&dl_layer_concat);
    DL_TRY(dl_net_emit(net, &layer, items, n->input_count, -1, &item, err));
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

enum dl_code dl_map_lstm(struct dl_import_net *net, const struct dl_onnx_node *n,
                         struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]);
    const int w = input_at(n, 1), r = input_at(n, 2), b = input_at(n, 3);
    int item;
    if (!is_learned(net, w) || !is_learned(net, r) || x->rank != 3)
        return no(err, "its weights are not constants");
    const struct dl_onnx_value *recurrent = dl_net_value(net, r);
    struct dl_layer layer = dl_net_layer(&dl_layer_lstm);
    layer.requested.hidden = (double)recurrent->dims[2];
    layer.bidirectional = recurrent->dims[0] == 2;
    DL_TRY(dl_net_whole(net, n->inputs[0], &item, err));
    DL_TRY(dl_net_sequence(net, item, (double)x->dims[2], &item, err));
    if (dl_net_shape(net, item)->channels != (double)x->dims[2])
        return no(err, "its features differ from those of the layer before it");
    DL_TRY(dl_net_emit(net, &layer, &item, 1, w, &item, err));
    dl_net_learn(net, r, item);
    if (b >= 0) dl_net_learn(net, b, item);
    net->forward_macs += 4.0 * (double)recurrent->dims[0] * layer.requested.hidden *
                         ((double)x->dims[2] + layer.requested.hidden) * (double)x->dims[0];
    for (int i = 0; i < n->output_count; i++) {
        dl_net_hold(net, n->outputs[i], item);
        if (n->outputs[i] >= 0) net->flows[n->outputs[i]].state = i > 0;
    }
    return DL_OK;
}

enum dl_code dl_map_resize(struct dl_import_net *net, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_net_value(net, n->inputs[0]),
                               *out = dl_net_value(net, n->outputs[0]);
    struct dl_layer layer = dl_net_layer(&dl_layer_upsample);
    int item;
    DL_TRY(image_of(net, n->inputs[0], &item, err));
    if (!out->known) return no(err, "its extents are not constants");
    layer.requested.scale = (double)out->dims[2] / (double)x->dims[2];
    for (int d = 0; d < x->rank; d++) {
        const double factor = (double)out->dims[d] / (double)x->dims[d];
        if (factor != (d < 2 ? 1 : layer.requested.scale) || factor != floor(factor))
            return no(err, "it does not scale by one whole number");
    }
    if (layer.requested.scale > 1) return dl_net_put(net, &layer, item, -1, n->outputs[0], err);
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}
