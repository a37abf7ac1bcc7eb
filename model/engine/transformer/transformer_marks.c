/* transformer_marks.c - what transformer_split.c finds out about single layers: the modules that
 * recomputation names, the limits of layers with a state.
 */
#include <math.h>

#include "model/engine/transformer/transformer.h"
#include "model/plan/plan.h"
#include "model/workload/layer.h"

static bool mixes(const struct dl_transformer *tf, const struct dl_transformer_layer *l) {
    return tf->workload->layers[l->index].kind->mixing != DL_MIXES_NOTHING;
}

static bool is_linear(const struct dl_transformer_layer *l) {
    return l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW ||
           l->role == DL_TRANSFORMER_EXPERTS;
}

/* F-RECOMPUTE-MODULES: the MLP, or the experts, begin with the first linear layer after the
 * projection of attention, or of what stands in its place, and end with the last one. */
static void mark_block(const struct dl_transformer *tf, struct dl_transformer_layer *begin,
                       const struct dl_transformer_layer *end) {
    struct dl_transformer_layer *projection = NULL, *first = NULL, *last = NULL;
    bool routed = false, after = true; /* a block may be nothing but an MLP or experts */
    for (const struct dl_transformer_layer *l = begin; l < end; l++) {
        after = after && !mixes(tf, l);
        routed = routed || l->role == DL_TRANSFORMER_EXPERTS;
    }
    if (after) projection = begin;
    for (struct dl_transformer_layer *l = begin; l < end; l++) {
        const struct dl_layer *layer = &tf->workload->layers[l->index];
        if (layer->recomputable) l->modules |= 1u << DL_MODULE_ATTENTION;
        if (dl_layer_is_norm(layer)) l->modules |= 1u << DL_MODULE_NORM;
        after = after || mixes(tf, l);
        if (!is_linear(l) || !after) continue;
        if (projection == NULL)
            projection = l;
        else if (first == NULL)
            first = l;
        last = l;
    }
    for (struct dl_transformer_layer *l = first; l != NULL && l <= last; l++)
        if (l->modules == 0) l->modules = 1u << (routed ? DL_MODULE_MOE : DL_MODULE_MLP);
    if (first != NULL) last->ends_module = true;
}

/* F-RECOMPUTE-MODULES: what makes queries, keys and values of latents begins with the norm of each
 * and ends before attention. */
static void mark_latent(const struct dl_transformer *tf, struct dl_transformer_layer *begin,
                        const struct dl_transformer_layer *end) {
    bool latent = false, rising = false;
    for (struct dl_transformer_layer *l = begin; l < end && !mixes(tf, l); l++) {
        const struct dl_layer *layer = &tf->workload->layers[l->index];
        latent = latent || layer->kind == &dl_layer_latent;
        rising = layer->kind != &dl_layer_latent && latent && (rising || dl_layer_is_norm(layer));
        if (rising) l->modules |= 1u << DL_MODULE_LATENT;
    }
}

void dl_transformer_mark_modules(const struct dl_transformer *tf) {
    struct dl_transformer_layer *l = tf->layers, *const end = tf->layers + tf->layer_count;
    while (l < end) {
        struct dl_transformer_layer *begin = l;
        const int block = tf->workload->layers[l->index].block.number;
        while (l < end && l->part == begin->part &&
               tf->workload->layers[l->index].block.number == block)
            l++;
        if (begin->part != DL_TRANSFORMER_BODY) continue;
        mark_block(tf, begin, l);
        mark_latent(tf, begin, l);
    }
}

void dl_transformer_add_state(struct dl_transformer *tf, const struct dl_layer *layer) {
    tf->state_heads =
        (double)dl_common_divisor((int64_t)layer->attention.heads, (int64_t)tf->state_heads);
    tf->state_groups =
        (double)dl_common_divisor((int64_t)layer->attention.kv_heads, (int64_t)tf->state_groups);
    tf->state_in_channels = fmax(tf->state_in_channels, layer->in.channels);
    tf->state_out_channels = fmax(tf->state_out_channels, layer->out.channels);
    tf->tokens = layer->out.size[DL_DIMS - 1];
}

int64_t dl_transformer_tensor_parts(const struct dl_transformer *tf) {
    return dl_common_divisor((int64_t)tf->heads, (int64_t)tf->state_groups);
}
