/* fw_top_k.c - top-k sparsification with error feedback: each rank sends its largest gradients and
 * keeps the rest for later steps.
 *
 * F-FW-TOP-K. Of all elements the fraction gradient_frac is sent as a value of 4 bytes and an index
 * of 4: ranks choose different ones, so that an all-gather takes the place of the all-reduce and
 * each rank adds the pairs of all ranks. Selecting reads the gradient, reads and writes the
 * residual, and reads it once more for the threshold: 4 passes of 4 bytes over every element;
 * adding reads each pair and reads and writes one element: 16 bytes. One message after backward.
 * Source: deep-gradient-compression; the passes are counted here.
 */
#include <stddef.h>

#include "model/framework/gradient_sync.h"

struct policy {
    double gradient_frac; /* elements that a rank sends / all */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, gradient_frac, NUMBER, DL_RANGE(1e-6, 1, DL_UNIT_NONE),
             .required = true, .help = "top-k: gradients that a rank sends / all"),
    {.key = NULL},
};

enum { PAIR_BYTES = 8, SELECT_BYTES = 16, ADD_BYTES = 16 };

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const double ranks = (double)(r->plan->nodes * r->plan->devices_per_node),
                 elements = r->parameter_bytes / 4,
                 sent = ranks * elements * DL_OWN(struct policy, r->framework)->gradient_frac;
    dl_gradient_sync_messages(r, 1, out);
    struct dl_message *all = &out->messages[0];
    all->count = r->gradient_count;
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_GATHER, PAIR_BYTES * sent, all, err));
    all->ready_s = r->backward_end_s;
    out->device_copy_s =
        dl_gradient_sync_device_stream_s(r, SELECT_BYTES * elements + ADD_BYTES * sent);
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_top_k = {
    .name = "top-k",
    .lossy = true,
    .summary = "the largest gradients of each rank with error feedback, gathered after backward",
    .source = "deep-gradient-compression",
    .fields = fields,
    .synchronize = synchronize,
};
