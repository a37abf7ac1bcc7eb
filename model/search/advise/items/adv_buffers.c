/* adv_buffers.c - no broadcast of batch-norm statistics in each step. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) ||
        !(dl_framework_number(s->framework, "buffers_broadcast") > 0) ||
        !(s->workload->buffer_elements > 0))
        return 0;
    dl_advise_add(changes, &count, "set", "buffers_broadcast=false",
                  "running statistics stay on their rank",
                  "DistributedDataParallel(..., broadcast_buffers=False)");
    return count;
}

const struct dl_advise_item dl_adv_buffers = {
    .name = "buffers",
    .summary = "no broadcast of batch-norm statistics in each step",
    .effect = DL_EFFECT_EXACT,
    .mathematics =
        "weights are the same; running statistics of other ranks than the first are never used",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
