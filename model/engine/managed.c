/* managed.c - see the header. */
#include "model/engine/managed.h"

bool dl_replica_is_managed(const struct dl_replica *replica) {
    return replica->request->framework->activations.managed_memory && replica->parts > 1;
}

double dl_replica_paging_s(const struct dl_replica *replica, const struct dl_memory *memory) {
    const struct dl_gradient_sync_request x = {.system = replica->request->system,
                                               .plan = &replica->plan};
    const double excess_bytes = memory->total_bytes - memory->capacity_bytes;
    if (!dl_replica_is_managed(replica) || !(excess_bytes > 0)) return 0;
    const double one_way_s = dl_gradient_sync_host_copy_s(&x, excess_bytes, false);
    return dl_known(one_way_s) ? 2 * one_way_s : 0;
}
