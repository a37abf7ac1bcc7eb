/* fw_tensor_fusion.c - Horovod: a background thread wakes every cycle, fuses the tensors that
 * are ready and reduces them.
 *
 * F-FW-TENSOR-FUSION. A gradient is noticed at the end of the cycle in which it becomes ready;
 * ranks negotiate which tensors are ready everywhere (F-NEGOTIATION); these are fused in order up
 * to fusion_bytes, a larger tensor is reduced alone. Tensors that share a message are copied into
 * the fusion buffer and back on the collective's stream: each separately up to 0.20, all by one
 * kernel from 0.21; on a CPU they take its memory from the computation. The phase of the cycles
 * relative to the iteration is unknown: the timeline averages over it (F-CYCLE-PHASE).
 *
 * F-FUSION-WAIT. TensorFlow and PyTorch queue the operation that reduces a gradient for NCCL when
 * the host issues it, with an event that the device reaches after the gradient. Ranks negotiate it
 * from then on; the thread waits for the events of all tensors of a message before it starts NCCL,
 * and negotiates nothing meanwhile. The farther the host runs ahead, the larger are messages, and
 * the later they begin. MXNet's engine queues the operation once the gradient is computed.
 *
 * F-FUSION-THREAD. The background thread only starts NCCL's kernels; a host library works in this
 * thread, which negotiates and reduces nothing else meanwhile, so that more tensors gather for the
 * next cycle. The framework copies tensors to the host as they become ready, one after the other
 * at message_s each, while the thread reduces others; it copies them back, at message_s each, from
 * the thread's callbacks (assumed). Source: horovod-source (operations.cc). */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

struct policy {
    double fusion_bytes, cycle_s;
    /* the coordinator's time for one tensor of one rank; 0: a response cache spares it */
    double request_s;
    bool batched_copies;     /* one kernel copies all tensors of a message into its buffer */
    bool queued_when_issued; /* F-FUSION-WAIT */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, fusion_bytes, NUMBER, DL_RANGE(1, 1e12, DL_UNIT_BYTE), .required = true,
             .help = "fusion buffer: maximum size of a fused collective"),
    DL_FIELD(struct policy, cycle_s, NUMBER, DL_RANGE(1e-6, 1, DL_UNIT_S), .required = true,
             .help = "time between two checks for ready gradients"),
    DL_FIELD(struct policy, request_s, NUMBER, DL_RANGE(0, 1, DL_UNIT_S), .has_fallback = true,
             .help = "the coordinator's time for a rank's request for a tensor; 0: a cache spares "
                     "requests"),
    DL_FIELD(struct policy, batched_copies, BOOL,
             .help = "one kernel copies all tensors into the fusion buffer, one back; else a copy "
                     "for each"),
    DL_FIELD(struct policy, queued_when_issued, BOOL,
             .help = "NCCL's gradients are negotiated once issued; the thread waits for the "
                     "device"),
    {.key = NULL},
};

static const struct policy *own(const struct dl_gradient_sync_request *r) {
    return DL_OWN(struct policy, r->framework);
}

/* F-NEGOTIATION: the control round of a cycle that finds `tensors` ready. Two small all-reduces of
 * bit vectors (response cache), or the coordinator gathers sizes and requests of all ranks, handles
 * them one by one and broadcasts sizes and responses: four trees of small messages either way. */
static enum dl_code negotiate(const struct dl_gradient_sync_request *r, int tensors, double *out_s,
                              struct dl_err *err) {
    const struct dl_plan *plan = r->plan;
    const double ranks = (double)(plan->nodes * plan->devices_per_node);
    const struct dl_collective_request tree = {.op = DL_COLL_BROADCAST,
                                               .library = DL_LIB_MPI,
                                               .bytes = 64,
                                               .nodes = plan->nodes,
                                               .ranks_per_node = plan->devices_per_node};
    struct dl_collective_time one;
    DL_TRY(dl_collective_time(r->system, &tree, &one, err));
    *out_s = 4 * one.time_s + tensors * ranks * own(r)->request_s;
    return DL_OK;
}

static bool on_gpu(const struct dl_gradient_sync_request *r) {
    return r->system->device->kind == DL_DEVICE_GPU;
}

/* F-FUSION-THREAD: time of one tensor's copy to the host, or back, where a host library reduces
 * gradients of GPUs. */
static double host_copy_s(const struct dl_gradient_sync_request *r) {
    return !dl_libraries[r->library]->takes_gpu_memory && on_gpu(r)
               ? r->framework->sync.messages.message_s
               : 0;
}

/* Copies of a message's tensors into the fusion buffer and back. */
static double copies_s(const struct dl_gradient_sync_request *r, const struct dl_message *fused) {
    double sum_s = 0;
    if (fused->count <= 1) return 0;
    if (own(r)->batched_copies) return 2 * dl_gradient_sync_device_stream_s(r, 2 * fused->bytes);
    for (int g = fused->first; g < fused->first + fused->count; g++)
        sum_s += 2 * dl_gradient_sync_device_stream_s(r, 2 * r->gradients[g].bytes);
    return sum_s;
}

/* End of the cycle, at or after `from_s`, that sees everything up to `ready_s`. */
static double next_cycle(double from_s, double ready_s, double cycle_s) {
    if (ready_s <= from_s) return from_s;
    return from_s + cycle_s * ceil((ready_s - from_s) / cycle_s - 1e-9);
}

/* One collective: the tensors from gradient `first` on, of those before `ready`, that fit into the
 * fusion buffer. */
static enum dl_code fuse(const struct dl_gradient_sync_request *r, int first, int ready,
                         double agreed_s, struct dl_message *fused, struct dl_err *err) {
    const double limit = own(r)->fusion_bytes;
    double bytes = 0;
    int g = first;
    do {
        bytes += r->gradients[g++].bytes;
    } while (g < ready && bytes + r->gradients[g].bytes <= limit);
    fused->first = first;
    fused->count = g - first;
    fused->ready_s = agreed_s;
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, bytes, fused, err));
    const double buffer_s = on_gpu(r) ? copies_s(r, fused) : 0;
    fused->duration_s += buffer_s;
    fused->bandwidth_s += buffer_s;
    const double back_s = fused->count * host_copy_s(r);
    fused->latency_s += back_s;
    fused->duration_s += back_s;
    return DL_OK;
}

/* The background thread's state while it works through the gradients. */
struct thread {
    double now_s;        /* begin of its cycle */
    double copied_s;     /* end of the last copy to the host */
    double copied_bytes; /* through the fusion buffer in the host's memory */
};

/* F-FUSION-WAIT: whether tensors are negotiated before the device has computed them. */
static bool early(const struct dl_gradient_sync_request *r) {
    return own(r)->queued_when_issued && dl_libraries[r->library]->queues_on_gpu && on_gpu(r);
}

/* When gradient `g` is there to negotiate. F-FUSION-THREAD: for a host library, when it lies in the
 * host's memory; `copied_s` is the end of the copy before. */
static double arrives_s(const struct dl_gradient_sync_request *r, int g, double copied_s) {
    const double copy_s = host_copy_s(r);
    const double ready_s = r->gradients[g].ready_s;
    if (early(r)) return r->gradients[g].issued_s;
    return copy_s > 0 ? fmax(ready_s, copied_s) + copy_s : ready_s;
}

/* One cycle of the thread: negotiates and reduces what has arrived from gradient *g on. */
static enum dl_code one_cycle(const struct dl_gradient_sync_request *r,
                              struct dl_gradient_sync *out, struct thread *t, int *g,
                              struct dl_err *err) {
    const double cycle_s = own(r)->cycle_s;
    double arrived_s = arrives_s(r, *g, t->copied_s);
    double agreed_s;
    int ready = *g;
    t->now_s = next_cycle(t->now_s, arrived_s, cycle_s);
    while (ready < r->gradient_count &&
           (arrived_s = arrives_s(r, ready, t->copied_s)) <= t->now_s) {
        t->copied_s = arrived_s;
        ready++;
    }
    DL_TRY(negotiate(r, ready - *g, &agreed_s, err));
    double end_s = t->now_s + agreed_s;
    while (*g < ready) {
        struct dl_message *fused = &out->messages[out->message_count++];
        DL_TRY(fuse(r, *g, ready, t->now_s + agreed_s, fused, err));
        *g += fused->count;
        if (early(r)) {
            end_s = fmax(end_s, r->gradients[*g - 1].ready_s);
            fused->ready_s = end_s;
        }
        if (fused->count > 1 && !on_gpu(r)) t->copied_bytes += fused->bytes;
        if (!dl_libraries[r->library]->queues_on_gpu || !on_gpu(r)) end_s += fused->duration_s;
    }
    t->now_s = fmax(t->now_s + cycle_s, end_s);
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const double cycle_s = own(r)->cycle_s;
    dl_gradient_sync_messages(r, r->gradient_count, out);
    out->message_count = 0;
    struct thread t = {0};
    const struct dl_gradient *const begin = r->gradients;
    if (r->gradient_count > 0)
        t.now_s = (early(r) ? begin->issued_s : begin->ready_s) + cycle_s * r->phase_frac;
    /* A gradient waits for two cycles at most, the second after rounding. Times that do not advance
     * (NAN, or a cycle below the resolution of a double) end here instead of never. */
    const int most_cycles = 2 * r->gradient_count + 2;
    for (int g = 0, cycles = 0; g < r->gradient_count; cycles++) {
        if (cycles > most_cycles)
            return dl_fail(err, DL_ERR_INPUT,
                           "framework %s: cycles of %g s never reach a gradient that is ready at "
                           "%g s",
                           r->framework->name, cycle_s, r->gradients[g].ready_s);
        DL_TRY(one_cycle(r, out, &t, &g, err));
    }
    out->device_copy_s =
        dl_gradient_sync_device_stream_s(r, 4 * t.copied_bytes) + dl_gradient_sync_cast_s(r);
    return DL_OK;
}

static double poll_cycle_s(const struct dl_framework *framework) {
    return DL_OWN(struct policy, framework)->cycle_s;
}

static struct dl_sync_buffer buffer(const struct dl_framework *framework, double gradient_bytes) {
    const double bytes = DL_OWN(struct policy, framework)->fusion_bytes;
    (void)gradient_bytes;
    return (struct dl_sync_buffer){bytes, "fusion buffer", bytes};
}

static const char *const keys[] = {"message_s", NULL};

const struct dl_framework_behaviour dl_fw_tensor_fusion = {
    .name = "tensor-fusion",
    .old_name = "fused-ticks",
    .summary =
        "each cycle fuses the ready gradients up to a threshold and reduces them, overlapped "
        "with backward",
    .source = "horovod-source",
    .poll_cycle_s = poll_cycle_s,
    .timing_dependent = true,
    .has_phase = true,
    .keys = keys,
    .fields = fields,
    .buffer = buffer,
    .synchronize = synchronize,
};
