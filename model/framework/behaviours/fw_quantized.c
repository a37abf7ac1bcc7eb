/* fw_quantized.c - CNTK's 1-bit SGD: gradients are quantized on the device with error feedback,
 * aggregated by MPI and decoded.
 *
 * F-FW-QUANTIZED. Encoding reads the gradient and the residual error and writes codes and error;
 * decoding reads codes and writes the sum: 5 passes of 4 bytes over every element on the device.
 * One aggregation of all gradients per minibatch, after backward; gradient_bytes is the width of a
 * code (1 bit: 0.125 byte; the scale of each column is neglected). Source: cntk-docs; the passes
 * are counted here.
 */

#include "model/framework/gradient_sync.h"

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    dl_gradient_sync_messages(r, 1, out);
    struct dl_message *all = &out->messages[0];
    all->count = r->gradient_count;
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, r->total_bytes, all, err));
    all->ready_s = r->backward_end_s;
    out->device_copy_s = dl_gradient_sync_device_stream_s(r, 5 * r->parameter_bytes);
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_quantized = {
    .name = "quantized",
    .lossy = true,
    .summary = "gradients quantized with error feedback, one aggregation after backward",
    .source = "cntk-docs",
    .synchronize = synchronize,
};
