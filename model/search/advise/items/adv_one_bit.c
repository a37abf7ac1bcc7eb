/* adv_one_bit.c - gradients of one bit. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) ||
        (!dl_advise_behaves(s, "bucketed") && !dl_advise_behaves(s, "tensor-fusion")))
        return 0;
    struct dl_advise_change *c =
        dl_advise_add(changes, &count, "set", "behaviour=quantized", "1-bit gradient compression",
                      "1-bit SGD or 1-bit Adam with error feedback");
    dl_advise_also(c, "set", "gradient_bytes=0.125");
    dl_advise_also(c, "set", "mixed_gradient_bytes=0.125");
    dl_advise_also(c, "set", "bf16_gradient_bytes=0.125");
    return count;
}

const struct dl_advise_item dl_adv_one_bit = {
    .name = "one-bit",
    .summary = "gradients quantized to one bit, after backward",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "rounding errors arrive steps later",
    .source = "cntk-docs",
    .propose = propose,
};
