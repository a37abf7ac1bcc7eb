/* adv_attention.c - attention whose scores stay on chip. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!(s->workload->heads > 0) || s->plan->attention != DL_ATTENTION_OPEN) return 0;
    dl_advise_add(changes, &count, "attention", "flash", "FlashAttention",
                  dl_advise_is(s, "mega") ? "--use-flash-attn"
                                          : "scaled_dot_product_attention, or flash-attn");
    dl_advise_add(changes, &count, "attention", "fused-softmax", "scale, mask and softmax fused",
                  "a fused softmax kernel");
    return count;
}

const struct dl_advise_item dl_adv_attention = {
    .name = "attention",
    .summary = "attention whose scores stay on chip",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "flash-attention",
    .propose = propose,
};
