/* fw_concatenated.c - tf.distribute Mirrored and MultiWorkerMirrored: gradients are concatenated
 * into one tensor or a few.
 *
 * F-FW-CONCATENATED. pack_bytes = 0: one tensor, so that the all-reduce starts after the last
 * gradient and nothing overlaps. Otherwise a new tensor begins when the previous one exceeds
 * pack_bytes, or after pack_tensors variables, and each is reduced when its last gradient is ready.
 * Concatenating and splitting read and write all bytes of tensors that hold several gradients
 * twice, unless gradients are computed in place (scoped allocator); a division of its own does so
 * once. Source: tf-source
 * (cross_device_ops.py, cross_device_utils.py).
 */
#include <stddef.h>

#include "model/framework/gradient_sync.h"

struct policy {
    /* gradients of one pack, counted from the first variable; 0: by pack_bytes */
    double pack_tensors;
    bool in_place; /* gradients are computed in the pack's memory: no copies */
    bool divides;  /* the mean takes a further pass over the summed gradients */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, pack_tensors, NUMBER, DL_RANGE(0, 1e6, DL_UNIT_COUNT),
             .has_fallback = true,
             .help = "gradients of one concatenated tensor, counted from the first variable; 0: by "
                     "pack_bytes"),
    DL_FIELD(struct policy, in_place, BOOL,
             .help = "gradients are computed in the memory of their concatenated tensor, without "
                     "copies"),
    DL_FIELD(struct policy, divides, BOOL,
             .help = "dividing the sums takes a further pass over the gradients"),
    {.key = NULL},
};

/* Counts the concatenated tensors; fills `messages` unless it is NULL. */
static int concatenate(const struct dl_gradient_sync_request *r, struct dl_message *messages) {
    const double limit = r->framework->sync.pack_bytes;
    const int tensors = (int)DL_OWN(struct policy, r->framework)->pack_tensors;
    const bool overlaps = r->framework->sync.overlaps_backward;
    double bytes = 0;
    int count = 0, first = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        bytes += r->gradients[g].bytes;
        const bool last = g == r->gradient_count - 1;
        /* packs of variables begin with the first one, gradients with the last */
        const bool full =
            tensors > 0 ? (r->gradient_count - 1 - g) % tensors == 0 : limit > 0 && bytes > limit;
        if (!last && !full) continue;
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
    dl_gradient_sync_messages(r, concatenate(r, NULL), out);
    concatenate(r, out->messages);
    const struct policy *own = DL_OWN(struct policy, r->framework);
    double copied_bytes = 0;
    for (int m = 0; m < out->message_count; m++) {
        struct dl_message *message = &out->messages[m];
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, message->bytes, message, err));
        if (message->count > 1) copied_bytes += message->bytes;
    }
    /* read and written on the way in, and on the way out */
    const double copies = own->in_place ? 0 : 4, divisions = own->divides ? 2 : 0;
    out->device_copy_s =
        dl_gradient_sync_device_stream_s(r, copies * copied_bytes + divisions * r->total_bytes);
    return DL_OK;
}

static const char *const keys[] = {"pack_bytes", NULL};

const struct dl_framework_behaviour dl_fw_concatenated = {
    .name = "concatenated",
    .old_name = "packed",
    .summary = "gradients concatenated into one tensor or a few, each reduced when complete",
    .source = "tf-source",
    .keys = keys,
    .required = keys,
    .fields = fields,
    .buffer = dl_gradient_sync_packs,
    .synchronize = synchronize,
};
