/* workload_packed.c - see dl_workload_packed in workload.h. */
#include "model/workload/workload.h"

#include <string.h>

#include "model/workload/layer.h"

enum dl_code dl_workload_no_mtp(const struct dl_workload *workload, struct dl_err *err) {
    return dl_fail(err, DL_ERR_USAGE, "--mtp-layers: %s has no parameter mtp_layers",
                   workload->name);
}

enum dl_code dl_workload_packed(const struct dl_workload *workload, double document_tokens,
                                struct dl_arena *arena, const struct dl_workload **out,
                                struct dl_err *err) {
    const size_t count = (size_t)workload->layer_count;
    struct dl_workload *packed = dl_arena_alloc(arena, 1, sizeof *packed);
    struct dl_layer *layers = dl_arena_alloc(arena, count + 1, sizeof *layers);
    int found = 0;
    memcpy(layers, workload->layers, count * sizeof *layers);
    *packed = *workload;
    packed->layers = layers;
    packed->forward_macs_per_sample = packed->model_macs_per_sample = 0;
    for (size_t i = 0; i < count; i++) {
        struct dl_layer *layer = &layers[i];
        if (layer->kind == &dl_layer_attention && layer->requested.tokens > 1) {
            dl_layer_pack_attention(layer, document_tokens);
            found++;
        }
        packed->forward_macs_per_sample += layer->forward_macs;
        packed->model_macs_per_sample += dl_layer_model_macs(layer);
    }
    if (found == 0)
        return dl_fail(err, DL_ERR_USAGE, "--packed-length: %s has no attention to shorten",
                       workload->name);
    *out = packed;
    return DL_OK;
}
