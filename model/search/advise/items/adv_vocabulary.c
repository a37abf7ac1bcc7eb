/* adv_vocabulary.c - a vocabulary that matrix units like. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const double now = dl_advise_parameter(s->workload, "vocab"), padded = 128 * ceil(now / 128);
    int count = 0;
    if (!(now > 0) || padded == now) return 0;
    const char *value = dl_arena_printf(s->arena, "vocab=%.0f", padded);
    dl_advise_add(changes, &count, "set", value,
                  dl_arena_printf(s->arena, "vocabulary padded from %.0f to %.0f", now, padded),
                  "--make-vocab-size-divisible-by 128, padded logits masked");
    return count;
}

const struct dl_advise_item dl_adv_vocabulary = {
    .name = "vocabulary",
    .summary = "the vocabulary padded to a multiple of 128",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes, with the logits of padded rows masked",
    .source = "megatron-lm",
    .propose = propose,
};
