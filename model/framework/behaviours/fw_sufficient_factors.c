/* fw_sufficient_factors.c - dense layers exchange the factors of their gradient, all other
 * gradients are summed in buckets.
 *
 * F-FW-SUFFICIENT-FACTORS. The gradient of a dense layer of in x out weights is a sum of outer
 * products over its samples: of B samples a rank holds B (in + out) numbers that suffice for all in
 * x out. Ranks gather these and compute the product over the samples of all P ranks themselves: a
 * GEMM with depth P B in place of B, of which the part beyond B is added. A weight goes that way
 * where all-gather and GEMM together take less time than its all-reduce. The sum is exact but for
 * the order of its terms. The rest: buckets of bucket_bytes, one of all where the framework has no
 * such size. Source: poseidon-2017; sufficient-factors.
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"
#include "model/workload/layer.h"

/* Samples times positions of a device that the layer's weights see in a step. */
static double depth_of(const struct dl_gradient_sync_request *r, const struct dl_layer *layer) {
    return ceil(r->plan->batch_per_device_samples - 1e-9) * dl_shape_positions(&layer->in);
}

/* The weight, not the bias, of a dense layer. */
static bool is_dense_weight(const struct dl_gradient_sync_request *r, int gradient) {
    const struct dl_layer *layer = &r->workload->layers[r->gradients[gradient].layer];
    return layer->kind == &dl_layer_dense &&
           r->gradients[gradient].elements == layer->in.channels * layer->out.channels;
}

static double gemm_s(const struct dl_gradient_sync_request *r, const struct dl_layer *layer,
                     double depth) {
    struct dl_kernel gemm =
        dl_kernel_gemm(DL_BACKWARD_WEIGHTS, layer->in.channels, layer->out.channels, depth, 1);
    gemm.b_trans = true;
    struct dl_kernel_time t;
    dl_kernel_time(r->system->device, r->plan->precision, &gemm, &t);
    return t.time_s;
}

/* Fills *message with the faster way of one dense weight and adds the GEMM to *extra_s. */
static enum dl_code send_weight(const struct dl_gradient_sync_request *r, int gradient,
                                struct dl_message *message, double *extra_s, struct dl_err *err) {
    const struct dl_layer *layer = &r->workload->layers[r->gradients[gradient].layer];
    const double ranks = (double)(r->plan->nodes * r->plan->devices_per_node),
                 depth = depth_of(r, layer),
                 width = r->gradients[gradient].bytes / r->gradients[gradient].elements,
                 bytes = ranks * depth * width * (layer->in.channels + layer->out.channels);
    const double product_s = fmax(0, gemm_s(r, layer, ranks * depth) - gemm_s(r, layer, depth));
    struct dl_message gather = *message;
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, r->gradients[gradient].bytes, message,
                                       err));
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_GATHER, bytes, &gather, err));
    if (!(gather.duration_s + product_s < message->duration_s)) return DL_OK;
    *message = gather;
    *extra_s += product_s;
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const double own = r->framework->sync.bucket_bytes,
                 limit = dl_known(own) ? own : r->total_bytes;
    double extra_s = 0;
    struct dl_message bucket = {.count = 0};
    dl_gradient_sync_messages(r, r->gradient_count + 1, out);
    out->message_count = 0;
    for (int g = 0; g < r->gradient_count; g++) {
        const bool last = g == r->gradient_count - 1, dense = is_dense_weight(r, g);
        if (!dense) {
            if (bucket.count == 0) bucket = (struct dl_message){.first = g};
            bucket.count = g + 1 - bucket.first;
            bucket.bytes += r->gradients[g].bytes;
            bucket.ready_s = r->gradients[g].ready_s;
        }
        if (bucket.count > 0 && (dense || last || bucket.bytes >= limit)) {
            struct dl_message *m = &out->messages[out->message_count++];
            *m = bucket;
            DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, m->bytes, m, err));
            bucket.count = 0;
            bucket.bytes = 0;
        }
        if (!dense) continue;
        struct dl_message *m = &out->messages[out->message_count++];
        *m = (struct dl_message){.first = g, .count = 1, .ready_s = r->gradients[g].ready_s};
        DL_TRY(send_weight(r, g, m, &extra_s, err));
    }
    out->device_copy_s = extra_s;
    return DL_OK;
}

static const char *const keys[] = {"bucket_bytes", NULL};

const struct dl_framework_behaviour dl_fw_sufficient_factors = {
    .name = "sufficient-factors",
    .summary = "dense layers gather the factors of their gradients where that is faster than to "
               "sum them; the rest in buckets",
    .source = "poseidon-2017",
    .keys = keys,
    .synchronize = synchronize,
};
