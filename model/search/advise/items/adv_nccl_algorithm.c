/* adv_nccl_algorithm.c - an algorithm imposed on NCCL. */
#include <math.h>

#include "model/search/advise/advise.h"
#include "model/network/collective.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    static const char *const names[] = {"ring", "tree"}, *const spelled[] = {"Ring", "Tree"};
    int count = 0;
    if (!dl_advise_synchronizes(s) ||
        dl_libraries[s->framework->sync.library]->algorithm_key == NULL ||
        s->system->device->kind != DL_DEVICE_GPU || s->system->software.nccl_algorithm != NULL)
        return 0;
    for (int i = 0; i < 2; i++)
        dl_advise_add(changes, &count, "set",
                      dl_arena_printf(s->arena, "nccl_algorithm=%s", names[i]),
                      dl_arena_printf(s->arena, "NCCL's %s algorithm", names[i]),
                      dl_arena_printf(s->arena, "NCCL_ALGO=%s", spelled[i]));
    return count;
}

const struct dl_advise_item dl_adv_nccl_algorithm = {
    .name = "nccl-algorithm",
    .summary = "ring or tree imposed on NCCL",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "the same sums in another order",
    .source = "nccl-source",
    .propose = propose,
};
