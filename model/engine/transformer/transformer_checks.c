/* transformer_checks.c - what the host does before collectives when the ranks of each check one
 * another (F-HOST-CHECKS): seconds of the framework's file for each rank of the group, in jobs of
 * several nodes. Those inside layers are a part of the host's time of a pass
 * (transformer_micro_batch.c). */
#include <math.h>

#include "model/engine/transformer/transformer_internal.h"

double dl_transformer_check_s(const struct dl_transformer *tf,
                              const struct dl_transformer_split *split, double ranks) {
    return split->nodes > 1 ? tf->framework->sync.check_peer_s * ranks : 0;
}

/* Collectives that carry gradients: DDP closes a bucket with the tensor that fills it, half of
 * which is beyond its size on average; or one call for everything. */
static double gradient_calls(const struct dl_transformer *tf,
                             const struct dl_transformer_mapping *mapping) {
    const double bytes = tf->framework->sync.bucket_bytes,
                 tensors = tf->tensor_count[DL_TRANSFORMER_BEFORE] +
                           tf->tensor_count[DL_TRANSFORMER_AFTER] +
                           mapping->stage_layers * tf->tensor_count[DL_TRANSFORMER_BODY];
    if (!dl_transformer_reduces_behind(tf, mapping->shard) || !dl_known(bytes)) return 1;
    return ceil(mapping->gradient_bytes / (bytes + mapping->gradient_bytes / tensors));
}

double dl_transformer_iteration_checks_s(const struct dl_transformer *tf,
                                         const struct dl_transformer_mapping *mapping,
                                         double backward_s) {
    const struct dl_transformer_split *s = &mapping->split;
    const double data = mapping->replicas, model = (double)(s->tp * s->pp),
                 world = (double)(s->nodes * s->devices_per_node);
    double sum = data > 1 ? gradient_calls(tf, mapping) * data : 0;
    const double hidden_s =
        dl_transformer_reduces_behind(tf, mapping->shard) && data > 1 ? backward_s : 0;
    const double gather = mapping->shard > 0 && data > 1 ? data : 0;
    sum = fmax(0, dl_transformer_check_s(tf, s, sum) - hidden_s);
    /* the mean loss, the norm of gradients and a barrier */
    return sum + dl_transformer_check_s(tf, s, gather + data + model + world);
}
