/* import_workload.c - `dlmodel import onnx`: layers of an ONNX model as a workload file, checked by
 * loading it again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/workload/workload.h"
#include "import/import.h"
#include "import/import_pt2.h"
#include "import/import_layers.h"
#include "import/import_stack.h"
#include "model/core/text.h"

enum { DIMS_MAX = 64, KINDS_SHOWN = 12 };

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
    if (kinds > KINDS_SHOWN)
        text =
            dl_arena_printf(net->arena, "%s\n  and %d more operators", text, kinds - KINDS_SHOWN);
    return text;
}

/* An exporter that folds constants writes a tied weight twice, once transposed. */
static void note_untied(struct dl_context *context, const struct dl_import_net *net) {
    if (strcmp(net->graph->format, "ONNX") != 0) return; /* others keep parameters as they are */
    for (int i = 0; i < net->item_count; i++) {
        const struct dl_layer *dense = &net->items[i].layer;
        if (dense->kind != &dl_layer_dense || net->items[i].tied >= 0) continue;
        for (int k = 0; k < i; k++) {
            const struct dl_layer *table = &net->items[k].layer;
            if (table->kind != &dl_layer_embedding || table->rows != dense->requested.hidden ||
                table->requested.hidden != dense->in.channels)
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
        dims[(*count)++].extent = (int64_t)number;
    }
    return DL_OK;
}

const char *dl_import_name(struct dl_arena *arena, const char *text, size_t length) {
    char *name = dl_arena_strndup(arena, text, length);
    for (char *at = name; *at != '\0'; at++) {
        const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                           (*at >= '0' && *at <= '9') || strchr("._-", *at) != NULL;
        if (!plain) *at = '_';
    }
    return name;
}

/* Base name of the file without its ending. */
static const char *default_name(struct dl_arena *arena, const char *path) {
    const char *name = dl_base_name(path), *dot = strrchr(name, '.');
    return dl_import_name(arena, name,
                          dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
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
    const bool exported = strcmp(options->positional[0], "pt2") == 0;
    DL_TRY(
        (exported ? dl_pt2_read : dl_onnx_read)(&context->data, path, context->arena, &graph, err));
    DL_TRY(dl_onnx_set_inputs(&graph, dims, dim_count, err));
    DL_TRY(dl_import_map(&graph, &net, err));
    const char *left = left_text(&net);
    if (net.left_count > 0 && !asked->skip_unknown) {
        context->note(context, "%.200s has operators without a layer:%s", path, left);
        return dl_fail_at(err, path, 0, 0, NULL,
                          "%d of %d nodes (%.2g %%) map to no layer; --skip-unknown skips them%s",
                          net.left_count, graph.node_count,
                          100.0 * net.left_count / graph.node_count,
                          exported ? dl_arena_printf(context->arena,
                                                     ", `python -m dlmodel export %.200s` "
                                                     "records them",
                                                     path)
                                   : "");
    }
    if (net.item_count == 0)
        return dl_fail_at(err, path, 0, 0, NULL, "expected at least one node that is a layer");
    struct dl_import_stack stack;
    dl_import_find_stack(&net, &stack);
    const char *text = dl_import_text(&net, &stack, name);
    DL_TRY(check_text(&net, text, &workload, err));
    DL_TRY(context->output(options, text, err));
    if (net.left_count > 0)
        context->note(context, "warning: skipped, with all their parameters:%s", left);
    note_all(context, &net, &workload, name);
    if (stack.count > 0)
        context->note(context,
                      "a stack of %d equal layers '%s': tensor and pipeline parallelism "
                      "can split it",
                      stack.count, stack.name);
    return DL_OK;
}
