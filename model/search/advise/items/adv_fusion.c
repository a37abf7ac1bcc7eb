/* adv_fusion.c - the fusion buffer of Horovod. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    static const int sizes_mib[] = {8, 16, 32, 64, 128, 256};
    int count = 0;
    if (!dl_advise_synchronizes(s) || !dl_advise_behaves(s, "tensor-fusion")) return 0;
    for (int i = 0; i < 6; i++) {
        if (sizes_mib[i] * 1048576.0 == dl_framework_number(s->framework, "fusion_bytes")) continue;
        dl_advise_add(
            changes, &count, "set", dl_arena_printf(s->arena, "fusion_bytes=%dMiB", sizes_mib[i]),
            dl_arena_printf(s->arena, "fusion buffer of %d MiB", sizes_mib[i]),
            dl_arena_printf(s->arena, "HOROVOD_FUSION_THRESHOLD=%d", sizes_mib[i] * 1048576));
    }
    return count;
}

const struct dl_advise_item dl_adv_fusion = {
    .name = "fusion",
    .summary = "the size of Horovod's fusion buffer",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "horovod-source",
    .propose = propose,
};
