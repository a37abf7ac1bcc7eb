/* import_attention.c - matrix multiplications: with a constant, a dense layer; of two
 * activations, the scores or the context of attention.
 *
 * Scores are queries times keys; scaling, masks, softmax and dropout of them emit nothing; their
 * multiplication with the values is the attention layer, from one packed projection or from
 * three. */
#include <math.h>
#include <string.h>

#include "import/import_layers.h"

static enum dl_code no(struct dl_err *err, const char *why) {
    return dl_fail(err, DL_ERR_INPUT, "%s", why);
}

static enum dl_code product_with_constant(struct dl_import_net *net, const struct dl_onnx_node *n,
                                          int x, int weight, struct dl_err *err) {
    const struct dl_onnx_value *w = dl_net_value(net, weight);
    int item;
    for (int d = 0; d < w->rank - 2; d++) {
        if (w->dims[d] != 1) return no(err, "a matrix multiplication with several matrices");
    }
    if (!w->known || !w->floating || w->rank < 2) return no(err, "its matrix is not learned");
    DL_TRY(dl_net_dense(net, x, weight, (double)w->dims[w->rank - 2], (double)w->dims[w->rank - 1],
                        &item, err));
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

static enum dl_code begin(struct dl_import_net *net, const struct dl_onnx_node *n, int a, int b,
                          struct dl_err *err) {
    const struct dl_onnx_value *q = dl_net_value(net, a), *k = dl_net_value(net, b);
    if (q->rank < 2 || k->rank < 2)
        return no(err, "a matrix multiplication of two activations that is not attention");
    DL_TRY(dl_net_close(net, a, err));
    DL_TRY(dl_net_close(net, b, err));
    struct dl_scores *s = &net->scores[net->score_count];
    *s = (struct dl_scores){.queries = a,
                            .keys = b,
                            .query_count = (double)q->dims[q->rank - 2],
                            .size = (double)q->dims[q->rank - 1],
                            .key_count = (double)k->dims[k->rank - 1]};
    s->heads = dl_net_elements(net, n->outputs[0]) / (s->query_count * s->key_count);
    if (!(s->heads >= 1) || s->heads != floor(s->heads))
        return no(err, "a matrix multiplication of two activations that is not attention");
    dl_net_hold(net, n->outputs[0], net->flows[a].item);
    net->flows[n->outputs[0]].scores = ++net->score_count;
    return DL_OK;
}

/* The sequence of heads x width channels behind queries, keys or values; fewer heads of keys and
 * values are shared. */
static enum dl_code side(struct dl_import_net *net, const struct dl_scores *s, int value,
                         double rows, int *item, struct dl_err *err) {
    const double channels = s->heads * s->size;
    *item = net->flows[value].item;
    const struct dl_shape *shape = dl_net_shape(net, *item);
    DL_TRY(dl_net_sequence(net, *item, fmin(channels, shape->channels), item, err));
    shape = dl_net_shape(net, *item);
    if (shape->size[DL_DIMS - 1] == rows && fmod(shape->channels, s->size) == 0) return DL_OK;
    return no(err, "attention over parts of a sequence (windows) has no layer");
}

static enum dl_code finish(struct dl_import_net *net, const struct dl_onnx_node *n,
                           const struct dl_scores *s, int v, struct dl_err *err) {
    const struct dl_onnx_value *values = dl_net_value(net, v);
    DL_TRY(dl_net_close(net, v, err));
    int items[3] = {net->flows[s->queries].item, net->flows[s->keys].item, net->flows[v].item},
        count = 3, item;
    if (values->rank < 2 || (double)values->dims[values->rank - 2] != s->key_count)
        return no(err, "scores times something of another length");
    if ((double)values->dims[values->rank - 1] != s->size)
        return no(err, "values of another width than queries and keys");
    for (int i = 0; i < 3; i++) {
        if (items[i] < 0) return no(err, "attention over something that no layer made");
    }
    const struct dl_shape *one = dl_net_shape(net, items[0]);
    struct dl_layer layer = dl_net_layer(&dl_layer_attention);
    layer.attention.heads = s->heads;
    const bool same = items[0] == items[1] && items[1] == items[2],
               square = s->query_count == s->key_count;
    if (same && square && one->dims == 1 && one->size[DL_DIMS - 1] == s->query_count &&
        one->channels == 3 * s->heads * s->size) {
        count = 1;
    } else {
        DL_TRY(side(net, s, s->queries, s->query_count, &items[0], err));
        DL_TRY(side(net, s, s->keys, s->key_count, &items[1], err));
        DL_TRY(side(net, s, v, s->key_count, &items[2], err));
        layer.attention.kv_heads = dl_net_shape(net, items[1])->channels / s->size;
    }
    layer.attention.causal = s->causal;
    layer.dropout = s->dropout;
    DL_TRY(dl_net_emit(net, &layer, items, count, -1, &item, err));
    net->forward_macs += 2 * s->heads * s->query_count * s->key_count * s->size;
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

enum dl_code dl_map_matmul(struct dl_import_net *net, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    if (n->input_count < 2 || n->inputs[1] < 0 || n->output_count < 1 || n->outputs[0] < 0)
        return no(err, "expected two inputs and an output");
    const int a = n->inputs[0], b = n->inputs[1];
    if (dl_net_value(net, b)->constant) return product_with_constant(net, n, a, b, err);
    if (dl_net_value(net, a)->constant) return no(err, "its learned matrix is on the left");
    if (net->flows[b].scores > 0) return no(err, "scores of attention on the right");
    if (net->flows[a].scores == 0) return begin(net, n, a, b, err);
    return finish(net, n, &net->scores[net->flows[a].scores - 1], b, err);
}

/* ONNX's own Attention operator (opset 23): queries, keys and values as sequences. */
enum dl_code dl_map_attention_op(struct dl_import_net *net, const struct dl_onnx_node *n,
                                 struct dl_err *err) {
    int items[3], item;
    if (n->input_count < 3 || n->inputs[1] < 0 || n->inputs[2] < 0)
        return no(err, "expected queries, keys and values");
    const struct dl_onnx_value *q = dl_net_value(net, n->inputs[0]);
    struct dl_layer layer = dl_net_layer(&dl_layer_attention);
    layer.attention.heads = dl_onnx_number(n, "q_num_heads", q->rank == 4 ? (double)q->dims[1] : 0);
    layer.attention.kv_heads = dl_onnx_number(n, "kv_num_heads", layer.attention.heads);
    layer.attention.causal = dl_onnx_number(n, "is_causal", 0) != 0;
    for (int i = 0; i < 3; i++) {
        const double rows = (double)dl_net_value(net, n->inputs[i])->dims[q->rank == 4 ? 2 : 1];
        DL_TRY(dl_net_close(net, n->inputs[i], err));
        if (net->flows[n->inputs[i]].item < 0 || !(rows > 0))
            return no(err, "attention over something that no layer made");
        DL_TRY(dl_net_sequence(net, net->flows[n->inputs[i]].item,
                               dl_net_elements(net, n->inputs[i]) / rows, &items[i], err));
    }
    DL_TRY(dl_net_emit(net, &layer, items, 3, -1, &item, err));
    net->forward_macs += net->items[item].layer.forward_macs;
    struct dl_onnx_value *out = dl_net_value(net, n->outputs[0]);
    out->known = true;
    out->rank = q->rank;
    memcpy(out->dims, q->dims, sizeof out->dims);
    dl_net_hold(net, n->outputs[0], item);
    return DL_OK;
}

enum dl_code dl_map_softmax(struct dl_import_net *net, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const int x = n->inputs[0];
    struct dl_layer layer = dl_net_layer(&dl_layer_softmax);
    int item;
    if (net->flows[x].scores > 0) {
        net->scores[net->flows[x].scores - 1].softmax = true;
        net->flows[n->outputs[0]] = net->flows[x];
        return DL_OK;
    }
    DL_TRY(dl_net_whole(net, x, &item, err));
    return dl_net_put(net, &layer, item, -1, n->outputs[0], err);
}
