/* import_workload.c - `dlmodel import onnx`: layers of an ONNX model as a workload file, checked by
 * loading it again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/workload/workload.h"
#include "predict/import/import.h"
#include "predict/import/import_layers.h"

enum { DIMS_MAX = 64, KINDS_SHOWN = 12 };

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while importing a model");
}

/* ---- writing ---- */

static void extents(struct dl_json_writer *w, const char *key, const double *values, int dims,
                    double usual) {
    const double *own = values + DL_DIMS - dims;
    bool same = true, is_usual = true;
    for (int i = 0; i < dims; i++) {
        same = same && own[i] == own[0];
        is_usual = is_usual && own[i] == usual;
    }
    if (is_usual) return;
    if (same) {
        dl_jw_number(w, key, own[0]);
        return;
    }
    dl_jw_array(w, key);
    for (int i = 0; i < dims; i++) dl_jw_number(w, NULL, own[i]);
    dl_jw_end(w);
}

static void write_numbers(struct dl_json_writer *w, const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    const struct {
        unsigned key;
        const char *name;
        double value, usual;
    } numbers[] = {
        {DL_KEY_OUT, "out", l->hidden, 0},
        {DL_KEY_GROUPS, "groups", l->groups, 1},
        {DL_KEY_HEADS, "heads", l->heads, 0},
        {DL_KEY_KV_HEADS, "kv_heads", l->kv_heads, l->heads},
        {DL_KEY_ROWS, "rows", l->rows, 0},
        {DL_KEY_SCALE, "scale", l->scale, 0},
        {DL_KEY_DROPOUT, "dropout", l->dropout, -1},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bool zero = numbers[i].key == DL_KEY_DROPOUT && l->dropout == 0 &&
                          (l->kind->needs & DL_KEY_DROPOUT) == 0;
        if ((keys & numbers[i].key) != 0 && numbers[i].value != numbers[i].usual && !zero)
            dl_jw_number(w, numbers[i].name, numbers[i].value);
    }
    if ((keys & DL_KEY_TOKENS) != 0 && l->tokens > 0) dl_jw_number(w, "tokens", l->tokens);
}

static void write_geometry(struct dl_json_writer *w, const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    const int dims = l->in.dims;
    const bool pools = (keys & DL_KEY_KERNEL) != 0 && (keys & DL_KEY_OUT) == 0;
    write_numbers(w, l);
    if ((keys & DL_KEY_KERNEL) != 0) extents(w, "kernel", l->kernel, dims, 0);
    if ((keys & DL_KEY_STRIDE) != 0) extents(w, "stride", l->stride, dims, pools ? 0 : 1);
    if ((keys & DL_KEY_PAD) != 0) extents(w, "pad", l->pad, dims, 0);
    if ((keys & DL_KEY_DILATION) != 0) extents(w, "dilation", l->dilation, dims, 1);
    if ((keys & DL_KEY_CAUSAL) != 0 && l->causal) dl_jw_number(w, "causal", 1);
    if ((keys & DL_KEY_BIAS) != 0 && l->bias) dl_jw_bool(w, "bias", true);
    if ((keys & DL_KEY_CEIL) != 0 && l->ceil_mode) dl_jw_bool(w, "ceil", true);
    if ((keys & DL_KEY_BIDIRECTIONAL) != 0 && l->bidirectional)
        dl_jw_bool(w, "bidirectional", true);
}

static const char *item_name(const struct dl_import_net *net, int item) {
    return item < 0 ? "input" : net->items[item].name;
}

static const char *layer_line(const struct dl_import_net *net, int index) {
    const struct dl_import_item *item = &net->items[index];
    const struct dl_layer *l = &item->layer;
    struct dl_json_writer w;
    dl_jw_init(&w, net->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "name", item->name);
    dl_jw_string(&w, "kind", l->kind->name);
    if (l->input_count > 1 || l->inputs[0] != index - 1) {
        dl_jw_array(&w, "from");
        for (int i = 0; i < l->input_count; i++)
            dl_jw_string(&w, NULL, item_name(net, l->inputs[i]));
        dl_jw_end(&w);
    }
    write_geometry(&w, l);
    if (item->tied >= 0) dl_jw_string(&w, "tied", net->items[item->tied].name);
    dl_jw_end(&w);
    return w.failed ? NULL : w.text;
}

static bool has_kind(const struct dl_import_net *net, const struct dl_layer_kind *kind) {
    for (int i = 0; i < net->item_count; i++) {
        if (net->items[i].layer.kind == kind) return true;
    }
    return false;
}

/* The extents of the input are parameters, so that --set can change them. */
static void write_input(struct dl_json_writer *w, const struct dl_import_net *net) {
    static const char *const names[DL_DIMS] = {"depth", "height", "width"};
    const struct dl_shape *s = &net->input;
    dl_jw_object(w, "parameters");
    for (int d = DL_DIMS - s->dims; d < DL_DIMS; d++)
        dl_jw_number(w, net->tokens ? "seq" : s->dims == 1 ? "length" : names[d], s->size[d]);
    dl_jw_end(w);
    dl_jw_object(w, "input");
    if (net->tokens) {
        dl_jw_string(w, "tokens", "seq");
    } else {
        dl_jw_number(w, "channels", s->channels);
        if (s->dims > 0) dl_jw_array(w, "size");
        for (int d = DL_DIMS - s->dims; d < DL_DIMS; d++)
            dl_jw_string(w, NULL, s->dims == 1 ? "length" : names[d]);
        if (s->dims > 0) dl_jw_end(w);
    }
    dl_jw_end(w);
}

/* One line a layer, as the built-in workloads have it. */
static const char *workload_text(const struct dl_import_net *net, const char *name,
                                 struct dl_err *err) {
    struct dl_json_writer head, input;
    const struct dl_onnx_graph *g = net->graph;
    const bool transformer = has_kind(net, &dl_layer_attention),
               rnn = has_kind(net, &dl_layer_lstm), cnn = has_kind(net, &dl_layer_conv);
    dl_jw_init(&head, net->arena, true);
    dl_jw_object(&head, NULL);
    dl_jw_string(&head, "name", name);
    dl_jw_string(&head, "summary",
                 dl_arena_printf(net->arena, "imported from ONNX: %.80s, opset %lld, by %.80s",
                                 g->name, (long long)g->opset, g->producer));
    dl_jw_string(&head, "source", "imported");
    if (transformer || rnn || cnn)
        dl_jw_string(&head, "family", transformer ? "transformer" : rnn ? "rnn" : "cnn");
    dl_jw_end(&head);
    dl_jw_init(&input, net->arena, true);
    dl_jw_object(&input, NULL);
    write_input(&input, net);
    dl_jw_end(&input);
    size_t length = strlen(head.text) + strlen(input.text) + 256;
    const char **lines = dl_arena_alloc(net->arena, (size_t)net->item_count, sizeof *lines);
    for (int i = 0; lines != NULL && i < net->item_count; i++) {
        lines[i] = layer_line(net, i);
        if (lines[i] == NULL)
            lines = NULL;
        else
            length += strlen(lines[i]) + 8;
    }
    char *text =
        lines == NULL || head.failed || input.failed ? NULL : dl_arena_alloc(net->arena, length, 1);
    if (text == NULL) {
        no_memory(err);
        return NULL;
    }
    /* Without their own braces the parts become members of one object. */
    int at = snprintf(text, length,
                      "{\n  \"format\": \"dlmodel-workload\", \"version\": 1,\n  %.*s,\n  %.*s,\n  "
                      "\"layers\": [\n",
                      (int)strlen(head.text) - 2, head.text + 1, (int)strlen(input.text) - 2,
                      input.text + 1);
    for (int i = 0; i < net->item_count; i++) {
        at += snprintf(text + at, length - (size_t)at, "    %s%s\n", lines[i],
                       i + 1 < net->item_count ? "," : "");
    }
    snprintf(text + at, length - (size_t)at, "  ]\n}\n");
    return text;
}

/* ---- checks ---- */

/* The file must agree with the graph: shape of each layer, total multiply-adds. */
static enum dl_code check_text(const struct dl_import_net *net, const char *text,
                               struct dl_workload *out, struct dl_err *err) {
    struct dl_json *doc;
    struct dl_err inner = {.code = DL_OK};
    DL_TRY(dl_json_parse("imported workload", text, strlen(text), net->arena, &doc, err));
    const struct dl_json *const docs[] = {doc};
    const enum dl_code code = dl_workload_build(docs, 1, NULL, 0, net->arena, out, &inner);
    if (code != DL_OK)
        return dl_fail_at(err, net->graph->file, 0, 0, NULL,
                          "its layers do not make a workload: %.300s: %.300s", inner.key,
                          inner.message);
    for (int i = 0; i < net->item_count; i++) {
        if (dl_shape_same(&out->layers[i].out, &net->items[i].layer.out)) continue;
        return dl_fail_at(err, net->graph->file, 0, 0, NULL,
                          "layer '%.80s' of the workload does not have the shape of the model",
                          net->items[i].name);
    }
    if (net->left_count > 0 ||
        fabs(out->forward_macs_per_sample - net->forward_macs) <= 1e-9 * net->forward_macs)
        return DL_OK;
    return dl_fail_at(err, net->graph->file, 0, 0, NULL,
                      "the workload does %.0f multiply-adds a sample, the nodes of the model %.0f",
                      out->forward_macs_per_sample, net->forward_macs);
}

/* "GridSample 2 nodes (1.5 %), first '/a/b': no layer corresponds to it" for each operator. */
static const char *left_text(const struct dl_import_net *net) {
    const struct dl_onnx_graph *g = net->graph;
    const char *text = "";
    int kinds = 0;
    for (int i = 0; i < net->left_count && text != NULL; i++) {
        const struct dl_onnx_node *n = &g->nodes[net->left[i].node];
        int count = 0;
        bool listed = false;
        for (int k = 0; k < net->left_count; k++) {
            const bool same = strcmp(g->nodes[net->left[k].node].op, n->op) == 0 &&
                              strcmp(g->nodes[net->left[k].node].domain, n->domain) == 0;
            listed = listed || (same && k < i);
            count += same;
        }
        if (listed || ++kinds > KINDS_SHOWN) continue;
        text = dl_arena_printf(
            net->arena,
            "%s\n  %.40s%s%.60s: %d of %d nodes (%.2g %%), first node %d%s%.80s: %.200s", text,
            n->domain, n->domain[0] != 0 ? "." : "", n->op, count, g->node_count,
            100.0 * count / g->node_count, net->left[i].node, n->name[0] != 0 ? " " : "", n->name,
            net->left[i].why);
    }
    if (text != NULL && kinds > KINDS_SHOWN)
        text =
            dl_arena_printf(net->arena, "%s\n  and %d more operators", text, kinds - KINDS_SHOWN);
    return text;
}

/* An exporter that folds constants writes a tied weight twice, once transposed. */
static void note_untied(struct dl_context *context, const struct dl_import_net *net) {
    for (int i = 0; i < net->item_count; i++) {
        const struct dl_layer *dense = &net->items[i].layer;
        if (dense->kind != &dl_layer_dense || net->items[i].tied >= 0) continue;
        for (int k = 0; k < i; k++) {
            const struct dl_layer *table = &net->items[k].layer;
            if (table->kind != &dl_layer_embedding || table->rows != dense->hidden ||
                table->hidden != dense->in.channels)
                continue;
            context->note(context,
                          "'%s' has as many weights as the embedding '%s'; if they are one, export "
                          "without folding constants "
                          "(PyTorch: do_constant_folding=False), so that they are counted once",
                          net->items[i].name, net->items[k].name);
        }
    }
}

static void note_all(struct dl_context *context, const struct dl_import_net *net,
                     const struct dl_workload *w, const char *name) {
    const struct dl_onnx_graph *g = net->graph;
    double learned = 0, unread = 0;
    int unread_count = 0;
    for (int v = 0; v < g->value_count; v++) {
        const double elements = dl_onnx_elements(&g->values[v]);
        if (net->owner[v] > 0)
            learned += elements;
        else if (g->values[v].initializer && g->values[v].floating && elements > 1)
            unread += elements, unread_count++;
    }
    context->note(context, "%s: %d nodes became %d layers: %.0f parameters, %.6g GMAC a sample",
                  name, g->node_count, net->item_count, w->parameters,
                  w->forward_macs_per_sample / 1e9);
    if (g->stripped_count > 0)
        context->note(context, "%d tensors have no data; their shapes are all that is needed",
                      g->stripped_count);
    if (g->batch > 1)
        context->note(context, "the model has a batch of %lld; the workload describes one sample",
                      (long long)g->batch);
    if (net->scalar_count > 0)
        context->note(context, "%d scalar operators emit no layer (they would be fused)",
                      net->scalar_count);
    if (net->unscaled_count > 0) {
        context->note(context,
                      "%d normalizations lack a learned scale or shift; the workload counts both",
                      net->unscaled_count);
    }
    if (net->shared_count > 0) {
        context->note(context,
                      "%d layers share a weight with another in a way that the format cannot "
                      "express; it is counted each time",
                      net->shared_count);
    }
    if (unread > w->buffer_elements) {
        context->note(context,
                      "%d tensors with %.0f elements are neither parameters nor buffers of a layer",
                      unread_count, unread);
    }
    if (learned > w->parameters) {
        context->note(context,
                      "the layers have %.0f parameters, the tensors behind them %.0f elements: "
                      "what two operators learn is "
                      "counted once (Caffe's batch norm and scale)",
                      w->parameters, learned);
    }
    note_untied(context, net);
}

/* ---- the command ---- */

static enum dl_code read_dims(struct dl_context *context, const struct dl_options *options,
                              struct dl_onnx_dim *dims, int *count, struct dl_err *err) {
    for (int i = 0; i < options->given_count && *count < DIMS_MAX; i++) {
        if (strcmp(options->given[i].option->name, "dim") != 0) continue;
        const char *text = options->given[i].value, *equals = strrchr(text, '=');
        double number = 0;
        struct dl_err inner = {.code = DL_OK};
        if (equals != NULL && dl_units_parse(equals + 1, DL_UNIT_COUNT, &number, &inner) != DL_OK)
            equals = NULL;
        if (equals == NULL || equals == text || !(number >= 1 && number <= 1e9) ||
            number != floor(number)) {
            return dl_fail(err, DL_ERR_USAGE,
                           "--dim: expected NAME=N with a whole N of at least 1, got \"%s\"", text);
        }
        dims[*count].name = dl_arena_strndup(context->arena, text, (size_t)(equals - text));
        if (dims[*count].name == NULL) return no_memory(err);
        dims[(*count)++].extent = (int64_t)number;
    }
    return DL_OK;
}

/* Base name of the file without its ending, of letters, digits, '_', '-' and '.'. */
static const char *default_name(struct dl_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = dl_arena_strdup(arena, slash != NULL ? slash + 1 : path);
    char *dot = name == NULL ? NULL : strrchr(name, '.');
    if (dot != NULL && dot != name) *dot = 0;
    for (char *at = name; at != NULL && *at != 0; at++) {
        const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                           (*at >= '0' && *at <= '9') || strchr("._-", *at) != NULL;
        if (!plain) *at = '_';
    }
    return name;
}

enum dl_code dl_import_onnx(struct dl_context *context, const struct dl_options *options,
                            const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_onnx_dim dims[DIMS_MAX];
    struct dl_onnx_graph graph;
    struct dl_import_net net;
    struct dl_workload workload;
    int dim_count = 0;
    DL_TRY(dl_import_files(options, 1, err));
    DL_TRY(read_dims(context, options, dims, &dim_count, err));
    const char *path = options->positional[1];
    const char *name = asked->name != NULL ? asked->name : default_name(context->arena, path);
    if (name == NULL) return no_memory(err);
    DL_TRY(dl_onnx_read(path, context->arena, &graph, err));
    DL_TRY(dl_onnx_set_inputs(&graph, dims, dim_count, err));
    DL_TRY(dl_import_map(&graph, &net, err));
    const char *left = left_text(&net);
    if (left == NULL) return no_memory(err);
    if (net.left_count > 0 && !asked->skip_unknown) {
        context->note(context, "%.200s has operators without a layer:%s", path, left);
        return dl_fail_at(err, path, 0, 0, NULL,
                          "%d of %d nodes (%.2g %%) map to no layer; --skip-unknown skips them",
                          net.left_count, graph.node_count,
                          100.0 * net.left_count / graph.node_count);
    }
    if (net.item_count == 0)
        return dl_fail_at(err, path, 0, 0, NULL, "expected at least one node that is a layer");
    const char *text = workload_text(&net, name, err);
    if (text == NULL) return DL_ERR_SYSTEM;
    DL_TRY(check_text(&net, text, &workload, err));
    DL_TRY(context->output(options, text, err));
    if (net.left_count > 0)
        context->note(context, "warning: skipped, with all their parameters:%s", left);
    note_all(context, &net, &workload, name);
    return DL_OK;
}
