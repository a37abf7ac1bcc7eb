/* adv_bucket_views.c - gradients computed in their buckets. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) || !dl_advise_behaves(s, "bucketed") ||
        dl_framework_number(s->framework, "bucket_views") > 0)
        return 0;
    dl_advise_add(changes, &count, "set", "bucket_views=true", "gradients are views of the buckets",
                  "DistributedDataParallel(..., gradient_as_bucket_view=True)");
    return count;
}

const struct dl_advise_item dl_adv_bucket_views = {
    .name = "bucket-views",
    .summary = "gradients computed in their buckets, without copies",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
