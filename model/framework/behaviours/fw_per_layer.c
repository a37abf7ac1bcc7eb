/* fw_per_layer.c - Caffe with NCCL and Intel Caffe with MLSL: one all-reduce for each layer with
 * parameters.
 *
 * F-FW-LAYER. No fusion: one collective per layer. Caffe synchronizes the host at each
 * (collective_launch_s) and updates after the last; MLSL waits for a layer's own reduction just
 * before that layer's next forward pass. Sources: caffe-source
 * (parallel.cpp), mlsl-source (multi_sync.hpp).
 */

#include "model/framework/gradient_sync.h"

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    dl_gradient_sync_messages(r, r->gradient_count, out);
    out->message_count = 0;
    for (int g = 0; g < r->gradient_count;) {
        struct dl_message *layer = &out->messages[out->message_count++];
        double bytes = 0;
        layer->first = g;
        do {
            bytes += r->gradients[g++].bytes;
        } while (g < r->gradient_count &&
                 r->gradients[g].layer == r->gradients[layer->first].layer);
        layer->count = g - layer->first;
        layer->ready_s = r->gradients[g - 1].ready_s;
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, bytes, layer, err));
    }
    out->per_layer_wait = dl_libraries[r->library]->waits_per_layer;
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_per_layer = {
    .name = "per-layer",
    .summary = "one all-reduce per layer, as soon as its backward pass is done",
    .source = "caffe-source",
    .synchronize = synchronize,
};
