/* adv_cycle.c - the cycle of Horovod. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    static const double cycles_ms[] = {0.5, 1, 2.5, 5, 10, 25};
    int count = 0;
    if (!dl_advise_synchronizes(s) || !dl_advise_behaves(s, "tensor-fusion")) return 0;
    for (int i = 0; i < 6; i++) {
        if (fabs(cycles_ms[i] * 1e-3 - dl_framework_number(s->framework, "cycle_s")) < 1e-9)
            continue;
        dl_advise_add(changes, &count, "set",
                      dl_arena_printf(s->arena, "cycle_s=%gms", cycles_ms[i]),
                      dl_arena_printf(s->arena, "a cycle of %g ms", cycles_ms[i]),
                      dl_arena_printf(s->arena, "HOROVOD_CYCLE_TIME=%g", cycles_ms[i]));
    }
    return count;
}

const struct dl_advise_item dl_adv_cycle = {
    .name = "cycle",
    .summary = "how often Horovod looks for ready gradients",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "horovod-source",
    .propose = propose,
};
