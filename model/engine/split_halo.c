/* split_halo.c - halos of spatial parallelism. F-HALO */
#include <math.h>

#include "model/engine/split_internal.h"

/* Share of a layer's outputs that need nothing from the neighbours. */
static double inner_frac(const struct dl_split_context *w, const struct dl_layer *layer) {
    double inner = 1;
    for (int d = 0; d < DL_DIMS; d++) {
        if (w->split->grid[d] <= 1 || !(layer->window.kernel[d] > 1)) continue;
        const double rows = ceil(layer->out.size[d] / w->split->grid[d]);
        const double beyond =
            layer->window.dilation[d] * (layer->window.kernel[d] - 1) + 1 - layer->window.stride[d];
        inner *= fmax(0, 1 - ceil(fmax(0, beyond) / layer->window.stride[d]) / rows);
    }
    return inner;
}

enum dl_code dl_split_add_halos(struct dl_split_context *w, int index, bool backward,
                                struct dl_err *err) {
    const struct dl_activation_policy *policy = &w->replica->request->framework->activations;
    const struct dl_layer *layer = &w->whole->layers[index];
    const double hidden_frac = policy->halo_overlaps ? inner_frac(w, layer) : 0;
    /* the input needs no gradient; its weights' uses the forward halo */
    if (backward && layer->first) return DL_OK;
    int64_t stride = 1;
    for (int d = DL_DIMS - 1; d >= 0; d--) {
        const int64_t parts = (int64_t)w->split->grid[d];
        if (parts <= 1) continue;
        const struct dl_group_message halo = {
            .op = DL_COLL_HALO,
            .library = policy->activation_library,
            .bytes = w->replica->samples * dl_split_halo_elements(layer, w->split, d, backward) /
                     2 * w->width_bytes,
            .group = parts,
            .stride = stride,
            .host_s = (parts > 2 ? 2 : 1) * policy->halo_message_s,
            .hops = 1,
        };
        DL_TRY(dl_split_add_message(w, &halo, index, backward, hidden_frac, err));
        w->replica->buffer_bytes += 2 * halo.bytes;
        stride *= parts;
    }
    return DL_OK;
}
