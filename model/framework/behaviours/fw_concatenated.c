/* fw_concatenated.c - tf.distribute Mirrored and MultiWorkerMirrored, ChainerMN: all gradients
 * concatenated into packs.
 *
 * F-FW-PACKS. pack_bytes = 0: one pack, so that the all-reduce starts after the last gradient and
 * nothing overlaps. Otherwise a new pack begins when the previous one exceeds pack_bytes, and a
 * pack starts when its last member is ready. Concatenation and splitting read and write all bytes
 * of packs of several tensors twice. Source: tf-source (cross_device_ops.py,
 * cross_device_utils.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

static int fill_packs(const struct dl_gradient_sync_request *r, struct dl_message *messages) {
    const double limit = r->framework->pack_bytes;
    double bytes = 0;
    int packs = 0, first = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        bytes += r->gradients[g].bytes;
        const bool last = g == r->gradient_count - 1;
        if (!last && !(limit > 0 && bytes > limit)) continue;
        if (messages != NULL) {
            messages[packs].first = first;
            messages[packs].count = g + 1 - first;
            messages[packs].bytes = bytes;
            messages[packs].ready_s =
                r->framework->overlaps_backward ? r->gradients[g].ready_s : r->backward_end_s;
        }
        packs++;
        first = g + 1;
        bytes = 0;
    }
    return packs;
}

static enum dl_code exchange(const struct dl_gradient_sync_request *r, struct dl_gradient_sync *out,
                             struct dl_err *err) {
    DL_TRY(dl_gradient_sync_messages(r, fill_packs(r, NULL), out, err));
    fill_packs(r, out->messages);
    double copied_bytes = 0;
    for (int p = 0; p < out->message_count; p++) {
        struct dl_message *pack = &out->messages[p];
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, pack->bytes, pack, err));
        if (pack->count > 1) copied_bytes += pack->bytes;
    }
    out->device_copy_s = dl_gradient_sync_device_stream_s(r, 4 * copied_bytes);
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_one_pack = {
    .name = "packed",
    .summary = "gradients concatenated into one or a few packs, each reduced when complete",
    .source = "tf-source",
    .exchange = exchange,
};
