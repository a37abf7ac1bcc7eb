/* transformer_calls.c - the calls of collectives outside layers: how many carry the gradients, and
 * what the host does beside them.
 *
 * F-TRANSFORMER-DATA: gradients go in buckets: DDP and Megatron close one with the tensor that
 * fills it, half of which is beyond its size on average; each is a call with its own latency.
 * F-HOST-CHECKS: seconds of the framework's file for each other rank of the group before each call,
 * in jobs of several nodes; those inside layers are a part of the host's time of a pass
 * (transformer_micro_batch.c). F-HOST-PIECES: torch.distributed's gathers into lists copy each
 * tensor's share of each data rank out of one buffer, an operation and a launch each,
 * which the host issues while the gather runs.
 */
#include <math.h>

#include "model/engine/transformer/transformer_internal.h"
#include "model/framework/gradient_width.h"
#include "model/framework/host_dispatch.h"

static double bucket_bytes(const struct dl_transformer *tf,
                           const struct dl_transformer_mapping *mapping) {
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    if (!(policy->bucket_elements > 0)) return tf->framework->sync.bucket_bytes;
    return dl_framework_gradient_width(tf->framework, tf->precision).sent_bytes *
           fmax(policy->bucket_elements, policy->bucket_elements_per_rank * mapping->shard_ranks);
}

double dl_transformer_bucket_count(const struct dl_transformer *tf,
                                   const struct dl_transformer_mapping *mapping) {
    const double bytes = bucket_bytes(tf, mapping);
    if (!tf->framework->sync.overlaps_backward) return 1;
    const double count =
        dl_known(bytes) ? ceil(mapping->gradient_bytes / bytes) : mapping->stage_layers;
    return fmax(1, fmin(count, mapping->stage_layers + 2));
}

static double tensor_count(const struct dl_transformer *tf,
                           const struct dl_transformer_mapping *mapping) {
    return tf->tensor_count[DL_TRANSFORMER_BEFORE] + tf->tensor_count[DL_TRANSFORMER_AFTER] +
           mapping->stage_layers * tf->tensor_count[DL_TRANSFORMER_BODY];
}

double dl_transformer_gradient_calls(const struct dl_transformer *tf,
                                     const struct dl_transformer_mapping *mapping) {
    const double bytes = bucket_bytes(tf, mapping), all = mapping->gradient_bytes;
    if (!dl_transformer_reduces_behind(tf, mapping->shard) || !dl_known(bytes) || mapping->bound)
        return 1;
    return fmax(1, ceil(all / (bytes + all / tensor_count(tf, mapping))));
}

double dl_transformer_check_s(const struct dl_transformer *tf,
                              const struct dl_transformer_split *split, double ranks) {
    return split->nodes > 1 ? tf->framework->sync.check_peer_s * (ranks - 1) : 0;
}

static double piece_copies_s(const struct dl_transformer *tf,
                             const struct dl_transformer_mapping *mapping) {
    if (!tf->framework->transformer.gathers_pieces || mapping->shard != 1) return 0;
    const double scale = tf->compute_scale > 0 ? tf->compute_scale : 1;
    const struct dl_host_cost cost = dl_host_cost_of(tf->framework, tf->system, scale);
    const double copies_s =
        tensor_count(tf, mapping) * mapping->replicas *
        (scale * dl_dispatch_s(tf->framework, tf->system->device) + cost.operation_s);
    return fmax(0, copies_s - mapping->gather.time_s);
}

double dl_transformer_iteration_calls_s(const struct dl_transformer *tf,
                                        const struct dl_transformer_mapping *mapping,
                                        double backward_s) {
    const struct dl_transformer_split *s = &mapping->split;
    const double data = mapping->replicas, model = (double)(s->tp * s->pp),
                 world = (double)(s->nodes * s->devices_per_node);
    /* the norm of gradients and a barrier */
    const double ends_s =
        dl_transformer_check_s(tf, s, model) + dl_transformer_check_s(tf, s, world);
    if (!(data > 1)) return ends_s;
    const double data_s = dl_transformer_check_s(tf, s, data),
                 sums_s = data_s * dl_transformer_gradient_calls(tf, mapping),
                 hidden_s = dl_transformer_reduces_behind(tf, mapping->shard) ? backward_s : 0;
    /* the gather of parameters, the mean loss */
    return fmax(0, sums_s - hidden_s) + data_s * (mapping->shard > 0 ? 2 : 1) + ends_s +
           piece_copies_s(tf, mapping);
}
