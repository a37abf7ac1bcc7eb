/* fw_ideal.c - the bound: no host cost, every gradient reduced by the library's best, overlapped
 * with backward and with the next forward as far as data dependences allow. Small tensors are fused
 * as they come, in buckets of bucket_bytes. F-FW-IDEAL.
 */
#include <stddef.h>

#include "model/framework/gradient_sync.h"

static enum dl_code exchange(const struct dl_gradient_sync_request *r, struct dl_gradient_sync *out,
                             struct dl_err *err) {
    DL_TRY(dl_gradient_sync_messages(r, r->gradient_count, out, err));
    out->message_count = 0;
    for (int g = 0; g < r->gradient_count;) {
        struct dl_message *bucket = &out->messages[out->message_count++];
        double bytes = 0;
        bucket->first = g;
        do {
            bytes += r->gradients[g++].bytes;
        } while (g < r->gradient_count && bytes < r->framework->bucket_bytes);
        bucket->count = g - bucket->first;
        bucket->ready_s = r->gradients[g - 1].ready_s;
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, bytes, bucket, err));
    }
    out->wait_each = true;
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_ideal = {
    .name = "ideal",
    .is_bound = true,
    .summary = "no framework overhead; communication overlaps backward and the next forward",
    .source = "formulas",
    .exchange = exchange,
};
