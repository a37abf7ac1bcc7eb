/* workload_gradients.c - which tensors have gradients, and which are kept for them. */
#include "model/workload/layer.h"

/* A tensor needs a gradient when a layer before it is trained. */
static void mark_gradients(struct dl_layer *layers, int count, bool *needs_gradient) {
    for (int i = 0; i < count; i++) {
        struct dl_layer *layer = &layers[i];
        layer->first = true;
        layer->consumers = 0;
        for (int j = 0; j < layer->input_count; j++) {
            int input = layer->inputs[j];
            if (input >= 0 && needs_gradient[input]) layer->first = false;
        }
        needs_gradient[i] =
            !layer->first || layer->parameter_count > 0 || (layer->tied_to >= 0 && !layer->frozen);
        for (int j = 0; j < layer->input_count; j++) {
            int input = layer->inputs[j];
            bool size_only = layer->kind == &dl_layer_crop && j > 0;
            if (input >= 0 && needs_gradient[input] && !size_only) layers[input].consumers++;
        }
    }
}

/* F-FROZEN: a linear layer reads its input again for the gradients of its weights alone. */
static bool keeps_input(const struct dl_layer *layer) {
    const bool linear = layer->kind == &dl_layer_dense || layer->kind == &dl_layer_conv ||
                        layer->kind == &dl_layer_conv_transpose;
    return (layer->saved.keeps & DL_KEEPS_INPUT) != 0 &&
           !(linear && layer->frozen && layer->parameter_count == 0);
}

/* kept[i]: a backward pass reads the output of layer i; the output of a view is its input's memory.
 */
static void mark_kept(const struct dl_layer *layers, int count, const bool *needs_gradient,
                      bool *kept, int *root) {
    for (int i = 0; i < count; i++) {
        const struct dl_layer *layer = &layers[i];
        root[i] = i;
        if (layer->view) root[i] = layer->inputs[0] < 0 ? -1 : root[layer->inputs[0]];
        if (!needs_gradient[i]) continue;
        if ((layer->saved.keeps & DL_KEEPS_OUTPUT) != 0 && root[i] >= 0) kept[root[i]] = true;
        for (int j = 0; j < layer->input_count; j++) {
            int input = layer->inputs[j] < 0 ? -1 : root[layer->inputs[j]];
            if (keeps_input(layer) && input >= 0) kept[input] = true;
        }
    }
}

void dl_layers_mark_gradients(struct dl_layer *layers, int count, struct dl_arena *scratch) {
    bool *needs_gradient = dl_arena_alloc(scratch, (size_t)count, sizeof *needs_gradient);
    bool *kept = dl_arena_alloc(scratch, (size_t)count, sizeof *kept);
    int *root = dl_arena_alloc(scratch, (size_t)count, sizeof *root);
    mark_gradients(layers, count, needs_gradient);
    mark_kept(layers, count, needs_gradient, kept, root);
    for (int i = 0; i < count; i++) {
        struct dl_layer *layer = &layers[i];
        if (!needs_gradient[i]) {
            layer->saved.own_elements = 0.0;
            layer->saved.bytes = 0.0;
        }
        layer->saved.elements =
            layer->saved.own_elements + (kept[i] ? dl_shape_elements(&layer->out) : 0.0);
    }
}
