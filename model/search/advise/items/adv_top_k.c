/* adv_top_k.c - only the largest gradients travel. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) ||
        (!dl_advise_behaves(s, "bucketed") && !dl_advise_behaves(s, "tensor-fusion")))
        return 0;
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? "0.01" : "0.001";
        struct dl_advise_change *c = dl_advise_add(
            changes, &count, "set", "behaviour=top-k",
            dl_arena_printf(s->arena, "top-k gradient sparsification (largest %s)", part),
            "deep gradient compression: top-k with error feedback in a communication hook");
        dl_advise_also(c, "set", dl_arena_printf(s->arena, "gradient_frac=%s", part));
    }
    return count;
}

const struct dl_advise_item dl_adv_top_k = {
    .name = "top-k",
    .summary = "only the largest gradients of each rank travel",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "small gradients arrive steps later",
    .source = "deep-gradient-compression",
    .propose = propose,
};
