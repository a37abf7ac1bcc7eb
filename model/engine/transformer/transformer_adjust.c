/* transformer_adjust.c - changes to a micro-batch that depend on the number of micro-batches and
 * stages: experts' exchanges behind another micro-batch, recomputation of some layers.
 */
#include <math.h>

#include "model/engine/transformer/micro_batch_builder.h"

/* Hides a share of the experts' exchanges, dispatch and return, behind kernels, which lose the
 * multiprocessors that the exchange uses. */
static void hide_exchanges(const struct dl_transformer *tf,
                           const struct dl_collective_time *const ways[2], double share,
                           struct dl_transformer_pass *pass) {
    for (int i = 0; i < 2; i++) {
        const struct dl_collective_time *t = ways[i];
        const double lost_s = share * t->time_s * dl_transformer_exchange_contention(tf, t);
        pass->comm_s -= share * t->time_s;
        pass->comm.s[DL_ON_LATENCY] -= share * t->latency_s;
        pass->comm.s[dl_resource_of_link(t->limit)] -= share * (t->time_s - t->latency_s);
        pass->comm_error_s -= share * t->time_s * t->sigma_log;
        pass->device_s += lost_s;
        pass->by_limit_s[DL_LIMIT_COMPUTE] += lost_s;
    }
    dl_transformer_set_pace(tf, pass);
}

/* The share of a layer's four exchanges that hides when two micro-batches pass it in opposite
 * directions: the exchange of gradients behind attention's forward pass, both dispatches behind the
 * experts' passes, the return of rows behind attention's backward pass. */
static double overlapped_frac(const struct dl_collective_time *const ways[2],
                              const struct dl_transformer_pass *forward,
                              const struct dl_transformer_pass *backward) {
    const double to_s = ways[0]->time_s, back_s = ways[1]->time_s,
                 attention_s = forward->device_s - forward->experts_s,
                 attention_back_s = backward->device_s - backward->experts_s,
                 experts_s = forward->experts_s + backward->experts_s,
                 hidden_s = fmin(back_s, attention_s) + fmin(2 * to_s, experts_s) +
                            fmin(back_s, attention_back_s);
    return hidden_s / (2 * (to_s + back_s));
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
    const double all_but_one = 1 - 1 / fmax(1, micro_batches),
                 share = all_but_one * overlapped_frac(ways, forward, &backward[DL_RECOMPUTE_NONE]);
    hide_exchanges(tf, ways, share, forward);
    for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
        hide_exchanges(tf, ways, share, &backward[r]);
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
