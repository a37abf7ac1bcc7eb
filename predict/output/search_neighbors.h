/* search_neighbors.h - how much slower twice or half as many ranks of one kind are: why not tp 8?
 */
#ifndef DL_PREDICT_OUTPUT_SEARCH_NEIGHBORS_H
#define DL_PREDICT_OUTPUT_SEARCH_NEIGHBORS_H

#include "model/search/search.h"

enum { DL_NEIGHBORS = 8 };
struct dl_search_neighbor {
    const char *axis; /* "tp", "pp", "cp" or "ep" */
    int64_t ranks;
    double iteration_s; /* of the best plan with as many ranks; INFINITY: none fits in memory */
};

/* Searches again for each neighbor of `best`; what cannot be enumerated is left out. Returns how
 * many. Networks that are no stack of equal layers have none. */
int dl_search_neighbors(const struct dl_search_request *request, const struct dl_plan *best,
                        int threads, struct dl_arena *arena,
                        struct dl_search_neighbor out[DL_NEIGHBORS]);

#endif
