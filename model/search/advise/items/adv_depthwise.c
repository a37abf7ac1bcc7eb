/* adv_depthwise.c - a dense convolution as a depthwise and a pointwise one. */
#include "model/search/advise/rewrite.h"
#include "model/workload/layer.h"

static int separate(const struct dl_workload *w, int index, struct dl_rewritten *out) {
    const struct dl_layer *l = &w->layers[index];
    if (l->kind != &dl_layer_conv || l->in.dims != 2 || l->groups > 1 || l->first ||
        l->kernel[DL_DIMS - 1] < 3 || l->in.channels < 8)
        return 0;
    out[0].layer = out[1].layer = *l;
    out[0].layer.requested.hidden = out[0].layer.groups = l->in.channels;
    for (int d = DL_DIMS - 2; d < DL_DIMS; d++) {
        out[1].layer.kernel[d] = out[1].layer.stride[d] = out[1].layer.dilation[d] = 1;
        out[1].layer.pad[d] = 0;
    }
    return 2;
}

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    dl_advise_add_rewritten(s, changes, &count, "depthwise", separate,
                            "convolutions as depthwise and pointwise ones");
    return count;
}

const struct dl_advise_item dl_adv_depthwise = {
    .name = "depthwise",
    .summary = "dense convolutions replaced by depthwise and pointwise ones",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "another network with fewer parameters",
    .source = "mobilenet-paper",
    .rewrites = true,
    .propose = propose,
};
