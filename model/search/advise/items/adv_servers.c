/* adv_servers.c - the number of parameter servers. */
#include <math.h>

#include "model/search/advise/advise.h"

#include "model/framework/gradient_sync.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) || !s->framework->behaviour->has_servers || s->plan->nodes < 2)
        return 0;
    for (int64_t servers = 1; servers <= 2 * s->plan->nodes && count < 6; servers *= 2) {
        if (servers == s->plan->parameter_servers.count) continue;
        const char *value = dl_arena_printf(s->arena, "%lld", (long long)servers);
        dl_advise_add(changes, &count, "servers", value,
                      dl_arena_printf(s->arena, "%s parameter servers", value),
                      dl_arena_printf(s->arena, "%s server processes (ps hosts)", value));
    }
    return count;
}

const struct dl_advise_item dl_adv_servers = {
    .name = "servers",
    .summary = "the number of parameter servers",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "tf-source",
    .propose = propose,
};
