/* adv_sequence_parallel.c - norms and dropout split along the sequence between tensor ranks. */
#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (s->plan->tp <= 1 || s->plan->sequence_parallel) return 0;
    dl_advise_add(changes, &count, "sequence-parallel", NULL,
                  "sequence parallelism between the tensor ranks",
                  dl_advise_is(s, "megatron") ? "--sequence-parallel"
                                              : "norms and dropout with SequenceParallel()");
    return count;
}

const struct dl_advise_item dl_adv_sequence_parallel = {
    .name = "sequence-parallel",
    .summary = "norms and dropout split along the sequence",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "megatron-lm",
    .propose = propose,
};
