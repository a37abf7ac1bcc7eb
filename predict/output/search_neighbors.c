/* search_neighbors.c - see the header. */
#include "predict/output/search_neighbors.h"

#include <math.h>

#include "model/framework/capabilities.h"
#include "predict/output/search_threads.h"

/* The best iteration of the request; false: nothing can be enumerated, or the framework's release
 * lacks what the plan needs, which given ranks do not show. */
static bool best_of(struct dl_search_request *r, int threads, struct dl_arena *arena,
                    double *iteration_s) {
    struct dl_search_worker *found = dl_arena_alloc(arena, 1, sizeof *found);
    struct dl_err ignored = {.code = DL_OK};
    struct dl_search *search;
    double elapsed_s;
    if (dl_search_prepare(r, arena, &search, &ignored) != DL_OK) return false;
    const struct dl_search_run run = {.search = search, .threads = threads};
    if (dl_search_run(&run, found, &elapsed_s, &ignored) != DL_OK) return false;
    if (found->best_count == 0 && !found->has_nearest) return false;
    const struct dl_search_candidate *best =
        found->best_count > 0 ? &found->best[0] : &found->nearest;
    const struct dl_plan plan = dl_search_plan(search, best);
    char lacks[DL_LACKS_TEXT];
    *iteration_s = found->best_count > 0 ? best->iteration_s : INFINITY;
    return !dl_framework_lacks(r->framework, &plan, best->shard, lacks);
}

int dl_search_neighbors(const struct dl_search_request *request, const struct dl_plan *best,
                        int threads, struct dl_arena *arena,
                        struct dl_search_neighbor out[DL_NEIGHBORS]) {
    const int64_t devices = best->nodes * best->devices_per_node;
    const struct {
        const char *name;
        int64_t ranks;
    } axes[] = {{"tp", best->tp}, {"pp", best->pp}, {"cp", best->sp}, {"ep", best->ep}};
    int count = 0;
    if (!dl_known(request->workload->transformer_layers)) return 0;
    for (int i = 0; i < 4; i++) {
        for (int more = 1; more >= 0; more--) {
            struct dl_search_request r = *request;
            int64_t *const fixed[] = {&r.fixed.tp, &r.fixed.pp, &r.fixed.sp, &r.fixed.ep};
            const int64_t ranks = more ? 2 * axes[i].ranks : axes[i].ranks / 2;
            double iteration_s;
            if (*fixed[i] > 0 || ranks < 1 || devices % ranks != 0) continue;
            if (i == 3 && axes[i].ranks == 1) continue;
            *fixed[i] = ranks;
            r.keep = 1;
            r.front = false;
            r.nodes[0] = best->nodes;
            r.node_count = 1;
            r.shard_count = 0;
            if (best_of(&r, threads, arena, &iteration_s))
                out[count++] = (struct dl_search_neighbor){axes[i].name, ranks, iteration_s};
        }
    }
    return count;
}
