/* adv_local_steps.c - parameters averaged every few steps. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) || s->plan->tp * s->plan->pp * s->plan->sp > 1 ||
        (!dl_advise_behaves(s, "bucketed") && !dl_advise_behaves(s, "tensor-fusion")))
        return 0;
    for (int steps = 4; steps <= 16; steps *= 2) {
        struct dl_advise_change *c =
            dl_advise_add(changes, &count, "set", "behaviour=local-steps",
                          dl_arena_printf(s->arena, "local SGD, averaged every %d steps", steps),
                          dl_arena_printf(s->arena,
                                          "PostLocalSGDOptimizer with "
                                          "PeriodicModelAverager(period=%d)",
                                          steps));
        dl_advise_also(c, "set", dl_arena_printf(s->arena, "local_step_count=%d", steps));
    }
    return count;
}

const struct dl_advise_item dl_adv_local_steps = {
    .name = "local-sgd",
    .summary = "local SGD: parameters averaged every few steps",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "replicas drift apart between averagings",
    .source = "local-sgd",
    .propose = propose,
};
