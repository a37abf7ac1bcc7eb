/* adv_kv_heads.c - fewer heads of keys and values. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const double heads = dl_advise_parameter(s->workload, "heads"),
                 now = dl_advise_parameter(s->workload, "kv_heads");
    int count = 0;
    if (!(heads > 0) || !(now > 0) || now < heads) return 0;
    for (int group = 4; group <= 8; group *= 2) {
        if (fmod(heads, group) != 0) continue;
        const char *value = dl_arena_printf(s->arena, "kv_heads=%.0f", heads / group);
        dl_advise_add(
            changes, &count, "set", value,
            dl_arena_printf(s->arena, "grouped queries: %d heads share keys and values", group),
            dl_arena_printf(s->arena, "--group-query-attention, %s", value));
    }
    return count;
}

const struct dl_advise_item dl_adv_kv_heads = {
    .name = "grouped-queries",
    .summary = "grouped-query attention",
    .effect = DL_EFFECT_MODEL,
    .mathematics = "another network with fewer parameters",
    .source = "gqa-2023",
    .propose = propose,
};
