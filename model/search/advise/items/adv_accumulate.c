/* adv_accumulate.c - several micro-batches for one synchronization and update. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const double now = s->plan->batch_per_device_samples;
    int count = 0;
    if (s->plan->micro_batch_samples > 0 || s->plan->tp * s->plan->pp * s->plan->sp > 1) return 0;
    for (int k = 2; k <= 8; k *= 2) {
        const char *micro = dl_arena_printf(s->arena, "%.0f", now);
        struct dl_advise_change *c = dl_advise_add(
            changes, &count, "batch-per-device", dl_arena_printf(s->arena, "%.0f", k * now),
            dl_arena_printf(s->arena, "accumulate gradients over %d micro-batches of %s", k, micro),
            dl_advise_is(s, "horovod")
                ? dl_arena_printf(s->arena,
                                  "DistributedOptimizer(..., backward_passes_per_step=%d)", k)
                : dl_arena_printf(s->arena,
                                  "%d backward passes per step, all but the last under "
                                  "no_sync()",
                                  k));
        dl_advise_also(c, "micro-batch", micro);
    }
    return count;
}

const struct dl_advise_item dl_adv_accumulate = {
    .name = "accumulate",
    .summary = "gradient accumulation over micro-batches",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "as a batch that is larger as many times; batch norm sees the micro-batches",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
