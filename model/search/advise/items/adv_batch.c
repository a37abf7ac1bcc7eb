/* adv_batch.c - more samples a step, in multiples that matrix units like. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const double now = s->plan->batch_per_device_samples, most = s->prediction->max_batch_samples;
    const double wanted[] = {8 * ceil(now / 8), 2 * now, 4 * now, 8 * now};
    int count = 0;
    if (s->plan->micro_batch_samples > 0) return 0;
    for (int i = 0; i < 4; i++) {
        bool seen = false; /* of 4 samples, the next 8 are twice as many */
        for (int k = 0; k < i; k++) seen = seen || wanted[k] == wanted[i];
        if (seen || wanted[i] <= now || wanted[i] != floor(wanted[i]) ||
            (dl_known(most) && wanted[i] > most))
            continue;
        const char *value = dl_arena_printf(s->arena, "%.0f", wanted[i]);
        dl_advise_add(changes, &count, "batch-per-device", value,
                      dl_arena_printf(s->arena, "%s samples per device", value),
                      dl_arena_printf(s->arena,
                                      "batch size %s on each device; scale the learning "
                                      "rate",
                                      value));
    }
    return count;
}

const struct dl_advise_item dl_adv_batch = {
    .name = "batch",
    .summary = "more samples per device and step",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "fewer, larger steps: learning rate and epochs must be tuned again",
    .source = "large-minibatch-sgd",
    .propose = propose,
};
