/* paradl.c - ParaDL's closed forms. See paradl.h. */
#include "model/engine/paradl.h"

#include <math.h>

struct dl_paradl_time dl_paradl_epoch(const struct dl_paradl_request *r) {
    struct dl_paradl_time epoch = {0};
    /* a last, smaller batch sends as much */
    const double iterations = ceil(r->dataset_samples / r->batch_samples);
    const double samples = r->batch_samples / r->replicas; /* of a group */
    double compute_s = 0, update_s = 0, weights = 0, gathers_s = 0;
    for (int i = 0; i < r->layer_count; i++) {
        const struct dl_paradl_layer *layer = &r->layers[i];
        const double share = layer->split ? r->parts : 1;
        compute_s += layer->compute_s / share;
        update_s += layer->update_s / share;
        weights += layer->weight_bytes;
        if (!layer->split || r->parts <= 1) continue;
        gathers_s += r->inside.alpha_s +
                     samples * layer->output_bytes * r->inside.beta_s_per_byte / r->parts;
    }
    epoch.compute_s = r->dataset_samples / r->replicas * compute_s;
    epoch.update_s = iterations * update_s;
    epoch.comm_s = iterations * 3 * (r->parts - 1) * gathers_s;
    if (r->replicas > 1) {
        epoch.comm_s += iterations * 2 * (r->replicas - 1) *
                        (r->across.alpha_s + weights * r->across.beta_s_per_byte / r->replicas);
    }
    return epoch;
}
