/* adv_factors.c - factors in place of the gradients of dense layers. */
#include <math.h>

#include "model/search/advise/advise.h"

#include "model/workload/layer.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    bool dense = false;
    int count = 0;
    for (int i = 0; i < s->workload->layer_count; i++)
        dense = dense || s->workload->layers[i].kind == &dl_layer_dense;
    if (!dl_advise_synchronizes(s) || !dense || s->plan->micro_batch_samples > 0 ||
        (!dl_advise_behaves(s, "bucketed") && !dl_advise_behaves(s, "tensor-fusion")))
        return 0;
    dl_advise_add(changes, &count, "set", "behaviour=sufficient-factors",
                  "sufficient-factor broadcasting (Poseidon)",
                  "all-gather inputs and output gradients of dense layers, as Poseidon does");
    return count;
}

const struct dl_advise_item dl_adv_factors = {
    .name = "factors",
    .summary = "dense layers exchange the factors of their gradients",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "poseidon-2017",
    .propose = propose,
};
