/* adv_kernels.c - a large kernel as several of 3x3. */
#include <math.h>

#include "model/search/advise/rewrite.h"
#include "model/workload/layer.h"

/* k x k with stride s: (k - 1) / 2 kernels of 3x3 with the same field of view, the first with the
 * stride; padding in proportion. */
static int split(const struct dl_workload *w, int index, struct dl_rewritten *out) {
    const struct dl_layer *l = &w->layers[index];
    const double size = l->kernel[DL_DIMS - 1];
    const int count = (int)((size - 1) / 2);
    if (l->kind != &dl_layer_conv || l->in.dims != 2 || l->groups > 1 || size < 5 || size > 7 ||
        fmod(size, 2) == 0)
        return 0;
    for (int d = DL_DIMS - 2; d < DL_DIMS; d++)
        if (l->kernel[d] != size || l->dilation[d] != 1 || l->pad[d] != floor(l->pad[d])) return 0;
    for (int k = 0; k < count; k++) {
        out[k].layer = *l;
        for (int d = DL_DIMS - 2; d < DL_DIMS; d++) {
            out[k].layer.kernel[d] = 3;
            out[k].layer.pad[d] = l->pad[d] > 0 ? 1 : 0;
            if (k > 0) out[k].layer.stride[d] = 1;
        }
    }
    return count;
}

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    dl_advise_add_rewritten(s, changes, &count, "kernels", split,
                            "kernels of 5x5 and 7x7 as several of 3x3");
    return count;
}

const struct dl_advise_item dl_adv_kernels = {
    .name = "kernels",
    .summary = "large kernels split into several of 3x3",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "another network with the same field of view",
    .source = "vgg-paper",
    .rewrites = true,
    .propose = propose,
};
