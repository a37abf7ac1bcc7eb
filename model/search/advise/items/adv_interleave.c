/* adv_interleave.c - several virtual stages on each device, for a shorter pipeline bubble. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const double layers = s->workload->transformer_layers;
    int count = 0;
    if (s->plan->pp <= 1 || s->plan->schedule != DL_1F1B || !(layers > 0)) return 0;
    for (int stages = 2; stages <= 8; stages++) {
        if (fmod(layers, (double)(s->plan->pp * stages)) != 0) continue;
        struct dl_advise_change *c = dl_advise_add(
            changes, &count, "schedule", "interleaved",
            dl_arena_printf(s->arena, "interleaved schedule, %d virtual stages a device", stages),
            dl_arena_printf(s->arena, "--num-layers-per-virtual-pipeline-stage %.0f",
                            layers / (double)(s->plan->pp * stages)));
        dl_advise_also(c, "virtual-stages", dl_arena_printf(s->arena, "%d", stages));
    }
    return count;
}

const struct dl_advise_item dl_adv_interleave = {
    .name = "interleave",
    .summary = "interleaved pipeline schedule",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "megatron-lm",
    .propose = propose,
};
