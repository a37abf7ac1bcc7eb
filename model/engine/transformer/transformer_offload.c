/* transformer_offload.c - states and activations in host memory.
 *
 * F-OFFLOAD: of a rank's parameters the share x keeps its optimizer states on the host. After
 * backward their gradients go there, the cores update them and the weights come back; neither
 * hides behind kernels. With ZeRO stage 3 `weights` has shards, gradients and states on the host:
 * each gather waits for the copy of its shard, each sum is copied out. Kept activations of a share
 * x of a stage's layers leave behind forward kernels and come back behind backward ones; what the
 * copies take longer shows. Each operation of PyTorch's Adam passes over its tensors: 80 bytes a
 * parameter (decay 8, first moment 12, second 20, root, bias and epsilon 24, step 16; counted in
 * torch.optim, not fused). DeepSpeed's passes once: it reads weight, gradient and moments, writes
 * weight and moments and a 16-bit copy, 30 bytes. Two layers' activations stay as buffers. Ranks
 * of a node share its memory's rate; devices on one host link share that.
 */
#include <math.h>

#include "model/engine/transformer/transformer_internal.h"
#include "model/engine/memory.h"
#include "model/framework/gradient_width.h"

static bool moves(const struct dl_transformer *tf, enum dl_offload what) {
    return (tf->input.offload.what >> what & 1) != 0;
}

double dl_transformer_offload_frac(const struct dl_transformer *tf, enum dl_offload what) {
    const double frac = tf->input.offload.frac;
    return moves(tf, what) ? frac > 0 ? frac : 1 : 0;
}

/* Of one device while all of its node copy. */
static double copy_s(const struct dl_transformer *tf, const struct dl_transformer_split *split,
                     double bytes) {
    const struct dl_host *host = &tf->system->host;
    const double sharing =
        fmin(host->devices_per_copy_link > 1 ? (double)host->devices_per_copy_link : 1,
             (double)split->devices_per_node);
    return bytes * sharing / host->copy_bandwidth_bytes_per_s;
}

static void lengthen(struct dl_collective_time *t, double seconds) {
    if (!(t->time_s > 0) || !(seconds > 0)) return;
    t->time_s += seconds, t->bandwidth_s += seconds;
    t->limit = "host-copy";
}

/* Shards of the body's layers, on their way to and from the host. */
static void copy_shards(const struct dl_transformer *tf, double frac,
                        struct dl_transformer_mapping *out) {
    const struct dl_transformer_split *s = &out->split;
    lengthen(&out->unit_gather, copy_s(tf, s, frac * out->unit_gather_bytes / out->shard_ranks));
    lengthen(&out->unit_reduce, copy_s(tf, s, frac * out->unit_gradient_bytes / out->shard_ranks));
}

void dl_transformer_offload_states(const struct dl_transformer *tf,
                                   struct dl_transformer_mapping *out) {
    const struct dl_host *host = &tf->system->host;
    const struct dl_transformer_split *s = &out->split;
    const double weights = dl_transformer_offload_frac(tf, DL_OFFLOAD_WEIGHTS),
                 frac = fmax(weights, dl_transformer_offload_frac(tf, DL_OFFLOAD_OPTIMIZER)),
                 moved = frac * out->updated_elements,
                 width = dl_framework_gradient_width(tf->framework, tf->precision).kept_bytes,
                 states = dl_memory_optimizer_bytes(tf->optimizer);
    if (!(frac > 0)) return;
    out->host.update_s = moved * (double)s->devices_per_node *
                         tf->framework->transformer.host_update_bytes /
                         host->memory_bandwidth_bytes_per_s;
    if (!(weights > 0))
        out->host.copy_s = copy_s(tf, s, moved * (width + dl_precision_bytes(tf->precision)));
    else
        copy_shards(tf, weights, out);
    out->host.bytes = moved * (states + 4 + width);
    out->update_s *= 1 - frac, out->update_error_s *= 1 - frac;
    for (int i = 0; i < 3; i++) {
        out->update_by_limit_s[i] *= 1 - frac;
        out->states[i].optimizer_bytes *= 1 - frac;
        out->states[i].weights_bytes *= 1 - weights;
        out->states[i].gradients_bytes *= 1 - weights;
    }
}

/* Copies run longer than the pass by so much: all of it depends on them. */
static void show(struct dl_transformer_pass *pass, double seconds) {
    if (!(seconds > 0)) return;
    pass->comm_s += seconds, pass->step_s += seconds;
    pass->comm = (struct dl_resource_use){{[DL_ON_HOST_COPY] = pass->device_s + pass->comm_s}};
}

void dl_transformer_offload_activations(const struct dl_transformer *tf,
                                        const struct dl_transformer_split *split,
                                        struct dl_transformer_micro_batch *micro_batch) {
    const double frac = dl_transformer_offload_frac(tf, DL_OFFLOAD_ACTIVATIONS);
    struct dl_transformer_pass *forward = &micro_batch->forward[DL_TRANSFORMER_BODY];
    if (!(frac > 0)) return;
    double longest_s = 0;
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        struct dl_transformer_pass *backward = &micro_batch->backward[DL_TRANSFORMER_BODY][r];
        const double moved = frac * micro_batch->kept_bytes[DL_TRANSFORMER_BODY][r],
                     seconds = copy_s(tf, split, moved);
        micro_batch->offloaded_bytes[r] = moved;
        micro_batch->kept_bytes[DL_TRANSFORMER_BODY][r] -= moved;
        show(backward, seconds - backward->step_s);
        if (r == (int)tf->input.recompute) longest_s = seconds;
    }
    show(forward, longest_s - forward->step_s);
}

enum dl_code dl_transformer_check_offload(const struct dl_system *system,
                                          const struct dl_plan *plan, int shard,
                                          struct dl_err *err) {
    const struct dl_host *host = &system->host;
    const unsigned what = plan->offload.what;
    if (what == 0 && plan->offload.frac > 0)
        return dl_fail(err, DL_ERR_USAGE, "--offload-fraction: goes with --offload");
    if (what == 0) return DL_OK;
    if ((what >> DL_OFFLOAD_WEIGHTS & 1) != 0 && shard < 3)
        return dl_fail(err, DL_ERR_USAGE, "--offload weights: goes with --zero 3");
    if ((what >> DL_OFFLOAD_ACTIVATIONS & 1) != 0 && plan->recompute_open)
        return dl_fail(err, DL_ERR_USAGE,
                       "--offload activations: give --recompute, which decides what is kept");
    if (!system->has_host || !(host->copy_bandwidth_bytes_per_s > 0) ||
        !(host->memory_bandwidth_bytes_per_s > 0))
        return dl_fail(err, DL_ERR_INPUT,
                       "--offload: system %s lacks host.copy_bandwidth_bytes_per_s or "
                       "host.memory_bandwidth_bytes_per_s",
                       system->name);
    return DL_OK;
}

/* Of a node. */
static double host_bytes(const struct dl_transformer *tf,
                         const struct dl_transformer_mapping *mapping,
                         const struct dl_transformer_micro_batch *micro_batch,
                         const struct dl_transformer_choice *choice) {
    const double layer_bytes = micro_batch->offloaded_bytes[(int)choice->recompute];
    double most = 0;
    for (int64_t i = 0; i < mapping->split.pp && layer_bytes > 0; i++)
        most = fmax(most, dl_transformer_stage_in_flight(mapping, choice, i) *
                              dl_transformer_stage_layers(tf, mapping, i));
    return (double)mapping->split.devices_per_node * (mapping->host.bytes + most * layer_bytes);
}

bool dl_transformer_fits_host(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *mapping,
                              const struct dl_transformer_micro_batch *micro_batch,
                              const struct dl_transformer_choice *choice) {
    const double room_bytes = tf->system->host.memory_bytes;
    return tf->input.offload.what == 0 || !(room_bytes > 0) ||
           host_bytes(tf, mapping, micro_batch, choice) <= room_bytes;
}

enum dl_code dl_transformer_check_host(const struct dl_transformer_parts *t, struct dl_err *err) {
    if (dl_transformer_fits_host(t->tf, &t->mapping, &t->micro_batch, &t->choice)) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--offload: %.4g GB on the host of each node, which has %.4g GB; give a smaller "
                   "--offload-fraction",
                   host_bytes(t->tf, &t->mapping, &t->micro_batch, &t->choice) / 1e9,
                   t->tf->system->host.memory_bytes / 1e9);
}
