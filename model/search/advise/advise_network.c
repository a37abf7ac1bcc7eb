/* advise_network.c - layers of the network rewritten: rows of dl_advise_items. */
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

void dl_advise_channels(const struct dl_advise_state *s, struct dl_advise_list *out) {
    dl_advise_add_rewritten(s, out, "channels", pad, "channels rounded up to multiples of 8");
}

/* k x k with stride s: (k - 1) / 2 kernels of 3x3 with the same field of view, the first with the
 * stride; padding in proportion. */
static int split(const struct dl_workload *w, int index, struct dl_rewritten *out) {
    const struct dl_layer *l = &w->layers[index];
    const double size = l->window.kernel[DL_DIMS - 1];
    const int count = (int)((size - 1) / 2);
    if (l->kind != &dl_layer_conv || l->in.dims != 2 || l->groups > 1 || size < 5 || size > 7 ||
        fmod(size, 2) == 0)
        return 0;
    for (int d = DL_DIMS - 2; d < DL_DIMS; d++)
        if (l->window.kernel[d] != size || l->window.dilation[d] != 1 ||
            l->window.pad[d] != floor(l->window.pad[d]))
            return 0;
    for (int k = 0; k < count; k++) {
        out[k].layer = *l;
        for (int d = DL_DIMS - 2; d < DL_DIMS; d++) {
            out[k].layer.window.kernel[d] = 3;
            out[k].layer.window.pad[d] = l->window.pad[d] > 0 ? 1 : 0;
            if (k > 0) out[k].layer.window.stride[d] = 1;
        }
    }
    return count;
}

void dl_advise_kernels(const struct dl_advise_state *s, struct dl_advise_list *out) {
    dl_advise_add_rewritten(s, out, "kernels", split, "kernels of 5x5 and 7x7 as several of 3x3");
}

static int separate(const struct dl_workload *w, int index, struct dl_rewritten *out) {
    const struct dl_layer *l = &w->layers[index];
    if (l->kind != &dl_layer_conv || l->in.dims != 2 || l->groups > 1 || l->first ||
        l->window.kernel[DL_DIMS - 1] < 3 || l->in.channels < 8)
        return 0;
    out[0].layer = out[1].layer = *l;
    out[0].layer.requested.hidden = out[0].layer.groups = l->in.channels;
    for (int d = DL_DIMS - 2; d < DL_DIMS; d++) {
        out[1].layer.window.kernel[d] = out[1].layer.window.stride[d] =
            out[1].layer.window.dilation[d] = 1;
        out[1].layer.window.pad[d] = 0;
    }
    return 2;
}

void dl_advise_depthwise(const struct dl_advise_state *s, struct dl_advise_list *out) {
    dl_advise_add_rewritten(s, out, "depthwise", separate,
                            "convolutions as depthwise and pointwise ones");
}
