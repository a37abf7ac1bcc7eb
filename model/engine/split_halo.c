/* split_halo.c - halos of spatial parallelism. F-HALO, F-HALO-CHAIN */
#include <math.h>
#include <string.h>

#include "model/engine/split_internal.h"
#include "model/workload/layer.h"

/* Share of a layer's outputs that need nothing from the neighbours. */
static double inner_frac(const struct dl_split_context *w, const struct dl_layer *layer) {
    double inner = 1;
    for (int d = 0; d < DL_DIMS; d++) {
        if (w->split->grid[d] <= 1 || !(layer->kernel[d] > 1)) continue;
        const double rows = ceil(layer->out.size[d] / w->split->grid[d]);
        const double beyond = layer->dilation[d] * (layer->kernel[d] - 1) + 1 - layer->stride[d];
        inner *= fmax(0, 1 - ceil(fmax(0, beyond) / layer->stride[d]) / rows);
    }
    return inner;
}

struct dl_split_blocks dl_split_blocks_of(const struct dl_workload *whole) {
    struct dl_split_blocks blocks = {-1, -1};
    for (int j = 0; j < whole->layer_count; j++) {
        const struct dl_layer *layer = &whole->layers[j];
        if (layer->kind == &dl_layer_add) blocks.last_add = j;
        /* an input that is not the layer before has a second reader, or leaves a branch open */
        for (int i = 0; i < layer->input_count; i++) {
            const int from = layer->inputs[i];
            if (from >= 0 && from < j - 1 && (blocks.fork < 0 || from < blocks.fork))
                blocks.fork = from;
        }
    }
    return blocks;
}

bool dl_split_in_block(const struct dl_split_blocks *blocks, int index) {
    return blocks->fork >= 0 && index > blocks->fork && index < blocks->last_add;
}

/* Elements that one device sends to one neighbour along `dim` where every window is exchanged by
 * half its size: of the input (forward) or of the gradient of the output. */
static double half_window(const struct dl_split_context *w, const struct dl_layer *layer, int dim,
                          bool backward) {
    const struct dl_shape *shape = backward ? &layer->out : &layer->in;
    double elements = shape->channels * floor(layer->kernel[dim] / 2);
    for (int d = 0; d < DL_DIMS; d++) {
        if (d != dim) elements *= ceil(shape->size[d] / w->split->grid[d]);
    }
    return elements;
}

/* Elements to one neighbour along `dim`; 0: no message. */
static double elements_to_neighbour(const struct dl_split_context *w, int index, int dim,
                                    bool backward) {
    const struct dl_layer *layer = &w->whole->layers[index];
    if (w->replica->request->framework->activations.halo_forward == DL_HALO_WINDOWS) {
        /* the input needs no gradient; its weights' uses the forward halo */
        if (backward && layer->first) return 0;
        return dl_split_halo_elements(layer, w->split, dim, backward) / 2;
    }
    const bool convolves = layer->kind == &dl_layer_conv,
               pools = strstr(layer->kind->name, "pool") != NULL;
    if (backward) return convolves ? half_window(w, layer, dim, true) : 0;
    if ((!convolves && !pools) || dl_split_in_block(&w->blocks, index)) return 0;
    return half_window(w, layer, dim, false);
}

enum dl_code dl_split_add_halos(struct dl_split_context *w, int index, bool backward,
                                struct dl_err *err) {
    const struct dl_activation_policy *policy = &w->replica->request->framework->activations;
    const bool chain = policy->halo_exchange == DL_HALO_SERIAL;
    int64_t stride = 1;
    for (int d = DL_DIMS - 1; d >= 0; d--) {
        const int64_t parts = (int64_t)w->split->grid[d];
        if (parts <= 1) continue;
        const struct dl_group_message talk = {
            .op = chain ? DL_COLL_P2P : DL_COLL_HALO,
            .library =
                policy->halo_library >= 0 ? policy->halo_library : policy->activation_library,
            .bytes =
                w->replica->samples * elements_to_neighbour(w, index, d, backward) * w->width_bytes,
            .group = parts,
            .stride = stride,
            .host_s = (parts > 2 && !chain ? 2 : 1) * policy->halo_message_s,
            .hops = chain ? 2 * (double)(parts - 1) : 1,
        };
        DL_TRY(dl_split_add_message(
            w, &talk, index, backward,
            policy->halo_overlaps ? inner_frac(w, &w->whole->layers[index]) : 0, err));
        w->replica->buffer_bytes += 2 * talk.bytes;
        stride *= parts;
    }
    return DL_OK;
}
