/* adv_layout.c - channels-last activations for matrix units. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const int now = s->framework->kernels.mixed_layout;
    int count = 0;
    if (s->plan->precision != DL_MIXED || now == DL_LAYOUT_NHWC || s->workload->family == NULL ||
        s->workload->family[0] != 'c' || !dl_advise_matrix_units(s))
        return 0;
    dl_advise_add(changes, &count, "set", "mixed_layout=nhwc", "channels-last activations (NHWC)",
                  dl_advise_is(s, "pytorch")
                      ? "model.to(memory_format=torch.channels_last), and the input alike"
                      : "data format NHWC");
    return count;
}

const struct dl_advise_item dl_adv_layout = {
    .name = "nhwc",
    .summary = "activations in the order NHWC, for matrix units",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "nvidia-layouts",
    .propose = propose,
};
