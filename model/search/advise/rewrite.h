/* rewrite.h - a network written out layer by layer as a workload file, with changed layers.
 * F-REWRITE: convolutional networks alone; what is not changed predicts as before. */
#ifndef DL_MODEL_SEARCH_ADVISE_REWRITE_H
#define DL_MODEL_SEARCH_ADVISE_REWRITE_H

#include "model/search/advise/advise.h"
#include "model/core/json.h"

/* One layer of the result; `name` of the last one that replaces a layer is that layer's own. */
struct dl_rewritten {
    struct dl_layer layer; /* kind, hidden (out), kernel, stride, pad, groups, bias are read */
};
enum { DL_REWRITTEN_LAYERS = 4 };

/* Replaces layer `index`: fills `out` and returns how many layers take its place, one after
 * another; 0: it stays. */
typedef int dl_rewrite_rule(const struct dl_workload *workload, int index,
                            struct dl_rewritten out[DL_REWRITTEN_LAYERS]);

/* The text of the rewritten file in the arena; NULL when the rule changes nothing, the network is
 * not convolutional. */
const char *dl_rewrite(const struct dl_workload *workload, const char *suffix,
                       dl_rewrite_rule *rule, struct dl_arena *arena);

/* A change that rewrites, for items, if the rule changes anything. */
void dl_advise_add_rewritten(const struct dl_advise_state *state, struct dl_advise_list *out,
                             const char *suffix, dl_rewrite_rule *rule, const char *text);

#endif
