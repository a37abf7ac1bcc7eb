/* adv_split_variables.c - large variables split over all parameter servers. */
#include <math.h>

#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (!dl_advise_synchronizes(s) || s->plan->nodes < 2 ||
        !dl_advise_behaves(s, "parameter-server") || dl_known(s->framework->sync.big_key_elements))
        return 0;
    dl_advise_add(changes, &count, "set", "big_key_elements=1000000",
                  "variables of a million elements and more split over all servers",
                  "tf.compat.v1.fixed_size_partitioner(number of servers)");
    return count;
}

const struct dl_advise_item dl_adv_split_variables = {
    .name = "split-variables",
    .summary = "large variables (VGG's fc6) split over all servers",
    .effect = DL_EFFECT_EXACT,
    .mathematics = "nothing changes",
    .source = "tf-source",
    .propose = propose,
};
