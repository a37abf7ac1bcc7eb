/* fw_replicated.c - PyTorch DataParallel: one process broadcasts the weights to all GPUs before
 * each forward pass and sums gradients on the first GPU, which alone updates.
 *
 * F-FW-REPLICATE. Before forward, the first GPU scatters the slices of the batch, then broadcasts
 * all parameters and buffers in chunks of pack_bytes. Python threads issue the replicas' kernels
 * under one interpreter lock (single_process) and rebuild the modules for each device (replica_s
 * per tensor and device). The reduction of gradients is the backward pass of the broadcast: it runs
 * chunk by chunk once the last gradient is ready. Source: pytorch-dp-source (data_parallel.py,
 * comm.py).
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"
#include "model/network/path.h"

static const char *refuse(const struct dl_system *system, const struct dl_plan *plan) {
    if (plan->nodes > 1)
        return "one process drives the GPUs of one node: use --nodes 1 or pytorch-ddp";
    if (system->device->kind == DL_DEVICE_CPU) return "needs GPUs";
    return NULL;
}

/* Seconds of `op` over `bytes`, chunk after chunk. */
static enum dl_code in_chunks(const struct dl_gradient_sync_request *r, enum dl_collective_op op,
                              double bytes, double *seconds, struct dl_message *last,
                              struct dl_err *err) {
    const double chunk = r->framework->sync.pack_bytes > 0 ? r->framework->sync.pack_bytes : bytes;
    const double chunks = bytes > 0 ? ceil(bytes / chunk) : 0;
    *seconds = 0;
    if (chunks < 1) return DL_OK;
    DL_TRY(dl_gradient_sync_collective(r, op, bytes / chunks, last, err));
    *seconds = chunks * last->duration_s;
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const double devices = (double)r->plan->devices_per_node;
    struct dl_message broadcast = {0};
    double broadcast_s, reduce_s;
    dl_gradient_sync_messages(r, 1, out);
    DL_TRY(in_chunks(r, DL_COLL_BROADCAST, r->parameter_bytes + 4 * r->workload->buffer_elements,
                     &broadcast_s, &broadcast, err));
    struct dl_message *reduce = &out->messages[0];
    DL_TRY(in_chunks(r, DL_COLL_REDUCE, r->total_bytes, &reduce_s, reduce, err));
    reduce->count = r->gradient_count;
    reduce->bytes = r->total_bytes;
    reduce->ready_s = r->backward_end_s;
    reduce->duration_s = reduce_s;
    reduce->returns = true;
    double scatter_s = 0; /* slices leave the first GPU one after the other */
    const double device_bytes_per_s = dl_path_device_bytes_per_s(r->system);
    if (dl_known(device_bytes_per_s) && dl_known(r->workload->input_bytes_per_sample)) {
        scatter_s = (devices - 1) * r->plan->batch_per_device_samples *
                    r->workload->input_bytes_per_sample / device_bytes_per_s;
    }
    out->prologue_s = broadcast_s + scatter_s;
    out->host_s = r->framework->sync.replica_s * r->workload->parameter_tensors * devices;
    return DL_OK;
}

static const char *const keys[] = {"pack_bytes", "replica_s", NULL};

static const char *const required[] = {"pack_bytes", NULL};

const struct dl_framework_behaviour dl_fw_replicated = {
    .name = "replicated",
    .summary = "one process broadcasts all weights before each step and sums gradients on one GPU "
               "after it",
    .source = "pytorch-dp-source",
    .refuse = refuse,
    .keys = keys,
    .required = required,
    .buffer = dl_gradient_sync_packs,
    .synchronize = synchronize,
};
