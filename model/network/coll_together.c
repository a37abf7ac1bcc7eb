/* coll_together.c - different collectives at the same time on one job (F-COLL-TOGETHER): what each
 * gets of the links inside a node and of the adapters. Groups of one kind are in their own request
 * (`concurrent`); this is about several kinds, for example tensor-parallel all-reduces inside the
 * nodes while sharded parameters are gathered across them. */
#include "model/network/collective.h"
#include "model/network/libraries/nccl.h"
#include "model/machine/fair.h"

enum { INSIDE, ADAPTERS, LINKS };

/* The rate of one rank set alone, and its share of each link per byte per second (capacity 1). A
 * ring over several nodes passes each byte over the links inside them as well. */
static enum dl_code demand_of(const struct dl_system *system,
                              const struct dl_collective_request *request, double capacity[LINKS],
                              struct dl_fair_class *out, struct dl_err *err) {
    struct dl_collective_request folded, group;
    struct dl_nccl_graph graph, node;
    dl_collective_domain(system, request, &folded);
    DL_TRY(dl_collective_group(system, &folded, &group, err));
    *out = (struct dl_fair_class){.flows = 1, .demand_bytes_per_s = HUGE_VAL};
    if (group.nodes * group.ranks_per_node < 2) return DL_OK;
    DL_TRY(dl_nccl_graph_build(system, &group, &graph, err));
    out->demand_bytes_per_s = graph.channels * graph.ring_bytes_per_s;
    if (group.ranks_per_node > 1) {
        struct dl_collective_request inside = group;
        inside.nodes = 1;
        DL_TRY(dl_nccl_graph_build(system, &inside, &node, err));
        const double most = node.channels * node.ring_bytes_per_s;
        out->use_frac[INSIDE] = 1.0 / most; /* `most` differs between groups of a link graph */
        capacity[INSIDE] = 1.0;
    }
    if (group.nodes > 1) {
        /* each group of this kind on a node sends what it moves through the node's adapters */
        out->use_frac[ADAPTERS] =
            dl_most(1.0, (double)group.concurrent) /
            (dl_coll_adapters(system, &group) * dl_nccl_adapter_bytes_per_s(&system->inter));
        capacity[ADAPTERS] = 1.0;
    }
    return DL_OK;
}

enum dl_code dl_collective_together(const struct dl_system *system,
                                    const struct dl_collective_request *requests, int count,
                                    double *frac, struct dl_err *err) {
    struct dl_fair_class classes[DL_COLL_TOGETHER];
    double capacity[LINKS] = {HUGE_VAL, HUGE_VAL};
    if (count < 1 || count > DL_COLL_TOGETHER)
        return dl_fail(err, DL_ERR_USAGE, "expected 1 to %d collectives at the same time, got %d",
                       DL_COLL_TOGETHER, count);
    for (int i = 0; i < count; i++) {
        if (requests[i].library != DL_LIB_NCCL)
            return dl_fail(err, DL_ERR_USAGE, "expected collectives of NCCL at the same time");
        DL_TRY(demand_of(system, &requests[i], capacity, &classes[i], err));
    }
    dl_fair_shares(capacity, LINKS, classes, count);
    for (int i = 0; i < count; i++)
        frac[i] = isinf(classes[i].demand_bytes_per_s)
                      ? 1.0
                      : dl_least(1.0, classes[i].rate_bytes_per_s / classes[i].demand_bytes_per_s);
    return DL_OK;
}
