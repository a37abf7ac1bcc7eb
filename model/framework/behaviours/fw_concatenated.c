/* fw_concatenated.c - tf.distribute Mirrored and MultiWorkerMirrored, ChainerMN: gradients are
 * concatenated into one tensor or a few.
 *
 * F-FW-CONCATENATED. pack_bytes = 0: one tensor, so that the all-reduce starts after the last
 * gradient and nothing overlaps. Otherwise a new tensor begins when the previous one exceeds
 * pack_bytes, and each is reduced when its last gradient is ready. Concatenating and splitting read
 * and write all bytes of tensors that hold several gradients twice. Source: tf-source
 * (cross_device_ops.py, cross_device_utils.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

/* Counts the concatenated tensors; fills `messages` unless it is NULL. */
static int concatenate(const struct dl_gradient_sync_request *r, struct dl_message *messages) {
    const double limit = r->framework->sync.concatenated.pack_bytes;
    const bool overlaps = r->framework->sync.overlaps_backward;
    double bytes = 0;
    int count = 0, first = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        bytes += r->gradients[g].bytes;
        const bool last = g == r->gradient_count - 1;
        if (!last && !(limit > 0 && bytes > limit)) continue;
        if (messages != NULL) {
            messages[count].first = first;
            messages[count].count = g + 1 - first;
            messages[count].bytes = bytes;
            messages[count].ready_s = overlaps ? r->gradients[g].ready_s : r->backward_end_s;
        }
        count++;
        first = g + 1;
        bytes = 0;
    }
    return count;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    DL_TRY(dl_gradient_sync_messages(r, concatenate(r, NULL), out, err));
    concatenate(r, out->messages);
    double copied_bytes = 0;
    for (int m = 0; m < out->message_count; m++) {
        struct dl_message *message = &out->messages[m];
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, message->bytes, message, err));
        if (message->count > 1) copied_bytes += message->bytes;
    }
    out->device_copy_s = dl_gradient_sync_device_stream_s(r, 4 * copied_bytes);
    return DL_OK;
}

static const char *const required[] = {"pack_bytes", NULL};

const struct dl_framework_behaviour dl_fw_concatenated = {
    .name = "concatenated",
    .old_name = "packed",
    .summary = "gradients concatenated into one tensor or a few, each reduced when complete",
    .source = "tf-source",
    .required = required,
    .synchronize = synchronize,
};
