/* adv_overlap.c - collectives of sharded optimizers behind compute. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const struct dl_transformer_policy *policy = &s->framework->transformer;
    int count = 0;
    if (s->prediction->stage_count == 0) return 0;
    if (!policy->overlaps_gather && s->plan->dp > 1)
        dl_advise_add(changes, &count, "set", "overlaps_gather=true",
                      "parameters gathered behind the next forward pass", "--overlap-param-gather");
    if (!s->framework->sync.overlaps_backward && s->plan->dp > 1)
        dl_advise_add(changes, &count, "set", "overlaps_backward=true",
                      "gradients reduced behind backward", "--overlap-grad-reduce");
    if (!policy->p2p_overlap && s->plan->pp > 1 && s->plan->schedule == DL_INTERLEAVED)
        dl_advise_add(changes, &count, "set", "p2p_overlap=true",
                      "messages between stages behind other micro-batches",
                      "--overlap-p2p-communication");
    return count;
}

const struct dl_advise_item dl_adv_overlap = {
    .name = "overlap",
    .summary = "collectives of transformers behind compute",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "megatron-lm",
    .propose = propose,
};
