/* adv_bucket.c - the size of gradient buckets. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    static const int sizes_mib[] = {1, 4, 10, 25, 50, 100, 400};
    const double now = s->framework->sync.bucket_bytes;
    int count = 0;
    if (!dl_advise_synchronizes(s) || !dl_advise_behaves(s, "bucketed") ||
        dl_framework_number(s->framework, "bucket_count") > 0 || !dl_known(now))
        return 0;
    for (int i = 0; i < 7; i++) {
        const double bytes = sizes_mib[i] * 1048576.0;
        if (bytes == now) continue;
        dl_advise_add(changes, &count, "set",
                      dl_arena_printf(s->arena, "bucket_bytes=%dMiB", sizes_mib[i]),
                      dl_arena_printf(s->arena, "buckets of %d MiB", sizes_mib[i]),
                      dl_arena_printf(s->arena, "DistributedDataParallel(..., bucket_cap_mb=%d)",
                                      sizes_mib[i]));
    }
    return count;
}

const struct dl_advise_item dl_adv_bucket = {
    .name = "bucket",
    .summary = "the size of gradient buckets",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
