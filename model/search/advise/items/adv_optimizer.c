/* adv_optimizer.c - one optimizer kernel for many tensors. */
#include <math.h>

#include "model/search/advise/advise.h"

#include "model/framework/framework.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (s->framework->kernels.optimizer == NULL) return 0;
    dl_advise_add(changes, &count, "set", "optimizer_kernels=fused", "a fused optimizer",
                  dl_advise_is(s, "pytorch") ? "fused=True of the optimizer, or apex.optimizers"
                                             : "an optimizer that is one operation");
    return count;
}

const struct dl_advise_item dl_adv_optimizer = {
    .name = "optimizer",
    .summary = "the update of all tensors in few kernels",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same operations, intermediate results are not rounded to memory",
    .source = "kernels-of-frameworks",
    .propose = propose,
};
