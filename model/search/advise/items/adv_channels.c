/* adv_channels.c - channels rounded up to multiples of 8, as matrix units like them. */
#include <math.h>

#include "model/search/advise/rewrite.h"
#include "model/workload/layer.h"

/* Channels that another layer must agree with (sums, groups, the classes of the loss) stay. */
static int pad(const struct dl_workload *w, int index, struct dl_rewritten *out) {
    const struct dl_layer *l = &w->layers[index];
    const bool grows = (l->kind == &dl_layer_conv && l->groups <= 1) || l->kind == &dl_layer_dense;
    if (!grows || fmod(l->requested.hidden, 8) == 0) return 0;
    for (int i = index + 1; i < w->layer_count; i++) {
        for (int k = 0; k < w->layers[i].input_count; k++)
            if (w->layers[i].inputs[k] == index && w->layers[i].kind == &dl_layer_loss) return 0;
        if (w->layers[i].kind == &dl_layer_add || w->layers[i].groups > 1) return 0;
    }
    out[0].layer.requested.hidden = 8 * ceil(l->requested.hidden / 8);
    return 1;
}

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    dl_advise_add_rewritten(s, changes, &count, "channels", pad,
                            "channels rounded up to multiples of 8");
    return count;
}

const struct dl_advise_item dl_adv_channels = {
    .name = "channels",
    .summary = "channels rounded up to multiples of 8, for matrix units",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "a network with more parameters",
    .source = "nvidia-tensor-cores",
    .rewrites = true,
    .propose = propose,
};
