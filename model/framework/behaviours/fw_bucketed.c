/* fw_bucketed.c - PyTorch DistributedDataParallel: gradients in fixed buckets, one all-reduce each,
 * overlapping backward.
 *
 * F-FW-BUCKETS. A tensor is appended, then the bucket is closed if its size has reached the limit
 * (first_bucket_bytes for the first bucket, bucket_bytes for the others); tensors are never split.
 * Bucket b starts when its last gradient is ready and bucket b-1 was launched; the optimizer waits
 * for all.
 * Source: pytorch-ddp-source (reducer.cpp, distributed.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

struct policy {
    double first_bucket_bytes;
    double bucket_count;    /* buckets of equal size instead (NVCaffe); 0: by bucket_bytes */
    bool bucket_views;      /* gradients are computed in the buckets: no copies */
    bool buffers_broadcast; /* batch-norm buffers before each forward pass */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, first_bucket_bytes, NUMBER, DL_RANGE(1, 1e12, DL_UNIT_BYTE),
             .help = "size at which the first gradient bucket is closed; absent: bucket_bytes"),
    DL_FIELD(struct policy, buffers_broadcast, BOOL,
             .help = "batch-norm statistics are broadcast before each forward pass"),
    DL_FIELD(
        struct policy, bucket_count, NUMBER, DL_RANGE(0, 1000, DL_UNIT_COUNT), .has_fallback = true,
        .help = "buckets of equal size instead of buckets of bucket_bytes; 0: by bucket_bytes"),
    DL_FIELD(struct policy, bucket_views, BOOL,
             .help = "gradients are computed in the buckets, without copies"),
    {.key = NULL},
};

static int count_buckets(const struct dl_gradient_sync_request *r, struct dl_message *messages) {
    const struct policy *own = DL_OWN(struct policy, r->framework);
    const double equal = own->bucket_count;
    const double later = equal > 0 ? r->total_bytes / equal : r->framework->sync.bucket_bytes,
                 first_bucket = equal > 0 ? NAN : own->first_bucket_bytes;
    double limit = dl_known(first_bucket) ? first_bucket : later;
    double size = 0, ready_s = 0;
    int buckets = 0, first = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        size += r->gradients[g].bytes;
        ready_s = fmax(ready_s, r->gradients[g].ready_s);
        const bool last = g == r->gradient_count - 1;
        if (size < limit && !last) continue;
        if (messages != NULL) {
            messages[buckets].first = first;
            messages[buckets].count = g + 1 - first;
            messages[buckets].bytes = size;
            messages[buckets].ready_s = ready_s;
        }
        buckets++;
        first = g + 1;
        size = 0;
        limit = later;
    }
    return buckets;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const struct policy *own = DL_OWN(struct policy, r->framework);
    dl_gradient_sync_messages(r, count_buckets(r, NULL), out);
    count_buckets(r, out->messages);
    for (int b = 0; b < out->message_count; b++) {
        struct dl_message *bucket = &out->messages[b];
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, bucket->bytes, bucket, err));
    }
    /* The copy into the bucket, with the division by n, and the copy out of it: one read and one
     * write each; a CPU also reads each cache line before it writes it. */
    const bool cpu = r->system->device->kind == DL_DEVICE_CPU;
    /* what narrows gradients to the network works on the buckets */
    const double kept_bytes =
        r->plan->precision == DL_FP32 ? fmax(r->parameter_bytes, r->total_bytes) : r->total_bytes;
    if (!own->bucket_views)
        out->device_copy_s = dl_gradient_sync_device_stream_s(r, (cpu ? 6 : 4) * kept_bytes);
    out->device_copy_s += dl_gradient_sync_cast_s(r);
    if (own->buffers_broadcast && r->workload->buffer_elements > 0) {
        struct dl_message broadcast = {0};
        DL_TRY(dl_gradient_sync_collective(r, DL_COLL_BROADCAST, 4 * r->workload->buffer_elements,
                                           &broadcast, err));
        out->prologue_s = broadcast.duration_s;
    }
    return DL_OK;
}

static enum dl_code check(const struct dl_framework *framework, const struct dl_json *doc,
                          struct dl_err *err) {
    if (dl_known(DL_OWN(struct policy, framework)->first_bucket_bytes) &&
        !dl_known(framework->sync.bucket_bytes))
        return dl_json_fail(doc, "first_bucket_bytes", err, "needs bucket_bytes as well");
    return DL_OK;
}

static const char *const keys[] = {"bucket_bytes", NULL};

const struct dl_framework_behaviour dl_fw_bucketed = {
    .name = "bucketed",
    .summary = "gradients in fixed buckets in backward order, one all-reduce each, overlapped with "
               "backward",
    .source = "pytorch-ddp-source",
    .keys = keys,
    .required = keys,
    .fields = fields,
    .check = check,
    .synchronize = synchronize,
};
