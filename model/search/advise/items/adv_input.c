/* adv_input.c - input that keeps up. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const struct dl_framework_input *input = &s->framework->input;
    int count = 0;
    if (!(s->prediction->exposed_input_s > 0)) return 0;
    if (input->feeds_pageable)
        dl_advise_add(changes, &count, "set", "feeds_pageable=false", "input in pinned memory",
                      "DataLoader(..., pin_memory=True)");
    if (!(input->prefetch_batches > 0))
        dl_advise_add(changes, &count, "set", "prefetch_batches=2", "batches prepared ahead",
                      "prefetch of 2 batches");
    if (input->copies_in_step)
        dl_advise_add(changes, &count, "set", "copies_in_step=false",
                      "the next batch is copied during the step",
                      "prefetch_to_device, or copies with non_blocking=True");
    if (s->plan->input.decode_workers > 0 && s->system->has_host && s->system->host.cores > 0) {
        const double all = floor((double)s->system->host.cores / (double)s->plan->devices_per_node);
        if (all > s->plan->input.decode_workers)
            dl_advise_add(changes, &count, "decode-workers", dl_arena_printf(s->arena, "%.0f", all),
                          dl_arena_printf(s->arena, "%.0f decoding workers per device", all),
                          dl_arena_printf(s->arena, "DataLoader(..., num_workers=%.0f)", all));
    }
    return count;
}

const struct dl_advise_item dl_adv_input = {
    .name = "input",
    .summary = "pinned, prefetched input with workers on all cores",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
