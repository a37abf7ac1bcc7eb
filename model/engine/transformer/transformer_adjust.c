/* transformer_adjust.c - changes to a micro-batch that depend on the number of micro-batches and
 * stages: experts' exchanges behind another micro-batch, recomputation of some layers.
 */
#include <math.h>

#include "model/engine/transformer/micro_batch_builder.h"

/* The four exchanges of a layer when two micro-batches pass it in opposite directions: the exchange
 * of gradients behind attention's forward pass, both dispatches behind the experts' passes, the
 * return of rows behind attention's backward pass. The sum of all. */
static struct dl_transformer_overlap exchanges_of(const struct dl_transformer *tf,
                                                  const struct dl_collective_time *const ways[2],
                                                  const struct dl_transformer_pass *forward,
                                                  const struct dl_transformer_pass *backward) {
    const struct {
        const struct dl_collective_time *way;
        double times, kernels_s;
    } pairs[] = {
        {ways[1], 1, forward->device_s - forward->experts_s},
        {ways[0], 2, forward->experts_s + backward->experts_s},
        {ways[1], 1, backward->device_s - backward->experts_s},
    };
    struct dl_transformer_overlap sum = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        const struct dl_transformer_overlap one =
            dl_transformer_overlap_of(pairs[i].times * pairs[i].way->time_s, pairs[i].kernels_s,
                                      dl_transformer_exchange_contention(tf, pairs[i].way));
        sum.exposed_s += one.exposed_s;
        sum.lost_s += one.lost_s;
        sum.path_s += one.path_s;
    }
    return sum;
}

void dl_transformer_overlap_experts(const struct dl_transformer *tf, double micro_batches,
                                    struct dl_transformer_micro_batch *b) {
    const struct dl_collective_time *ways[] = {&b->route, b->route_back.time_s > 0 ? &b->route_back
                                                                                   : &b->route};
    const double each_s = ways[0]->time_s + ways[1]->time_s;
    struct dl_transformer_pass *forward = &b->forward[DL_TRANSFORMER_BODY];
    struct dl_transformer_pass *backward = b->backward[DL_TRANSFORMER_BODY];
    if (!tf->input.settings.moe_overlap || tf->input.blocking_launches || !(each_s > 0) ||
        dl_framework_is_bound(tf->framework))
        return;
    const double all_but_one = 1 - 1 / fmax(1, micro_batches);
    const struct dl_transformer_overlap o =
        exchanges_of(tf, ways, forward, &backward[DL_RECOMPUTE_NONE]);
    for (int r = -1; r < DL_TRANSFORMER_RECOMPUTES; r++) {
        struct dl_transformer_pass *pass = r < 0 ? forward : &backward[r];
        for (int i = 0; i < 2; i++) dl_transformer_hide(ways[i], all_but_one, 2 * each_s, &o, pass);
        dl_transformer_set_pace(tf, pass);
    }
}

static void add_step(struct dl_transformer_pass *to, const struct dl_transformer_pass *from,
                     double times) {
    dl_transformer_add_pass(to, from, times);
    to->step_s += times * from->step_s;
    to->host_s += times * from->host_s;
    to->host_bound_s += times * from->host_bound_s;
}

void dl_transformer_recompute_some(double share, struct dl_transformer_micro_batch *micro_batch) {
    struct dl_transformer_pass *backward = micro_batch->backward[DL_TRANSFORMER_BODY], mean = {0};
    double *kept_bytes = micro_batch->kept_bytes[DL_TRANSFORMER_BODY];
    if (share >= 1) return;
    add_step(&mean, &backward[DL_RECOMPUTE_NONE], 1 - share);
    add_step(&mean, &backward[DL_RECOMPUTE_FULL], share);
    backward[DL_RECOMPUTE_FULL] = mean;
    kept_bytes[DL_RECOMPUTE_FULL] =
        (1 - share) * kept_bytes[DL_RECOMPUTE_NONE] + share * kept_bytes[DL_RECOMPUTE_FULL];
}
