/* adv_hierarchical.c - all-reduce inside nodes, then between them. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) || s->framework->sync.hierarchical || s->plan->nodes < 2 ||
        s->plan->devices_per_node < 2 || s->system->device->kind != DL_DEVICE_GPU ||
        !dl_advise_behaves(s, "tensor-fusion"))
        return 0;
    dl_advise_add(changes, &count, "set", "hierarchical=true", "hierarchical all-reduce",
                  "HOROVOD_HIERARCHICAL_ALLREDUCE=1");
    return count;
}

const struct dl_advise_item dl_adv_hierarchical = {
    .name = "hierarchical",
    .summary = "all-reduce inside nodes by NCCL, between them by MPI",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "horovod-source",
    .propose = propose,
};
