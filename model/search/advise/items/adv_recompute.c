/* adv_recompute.c - activations recomputed in backward, or no longer. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!(s->workload->transformer_layers > 0)) return 0;
    for (int r = 0; dl_recompute_names[r] != NULL; r++) {
        if (r == (int)s->plan->recompute) continue;
        /* more than what is in force only where memory is short */
        if (r > (int)s->plan->recompute && s->prediction->fits) continue;
        dl_advise_add(
            changes, &count, "recompute", dl_recompute_names[r],
            dl_arena_printf(s->arena, "recomputation: %s", dl_recompute_names[r]),
            dl_arena_printf(s->arena, "activation checkpointing: %s", dl_recompute_names[r]));
    }
    return count;
}

const struct dl_advise_item dl_adv_recompute = {
    .name = "recompute",
    .summary = "activations recomputed in backward, or no longer",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "megatron-lm",
    .propose = propose,
};
