/* managed.h - replicas whose devices take more memory than they have, by moving it to the host and
 * back. */
#ifndef DL_MODEL_ENGINE_MANAGED_H
#define DL_MODEL_ENGINE_MANAGED_H

#include "model/engine/replica.h"

/* Managed memory takes more than the device has. */
bool dl_replica_is_managed(const struct dl_replica *replica);

/* F-MANAGED: what does not fit leaves the device and comes back once in a step, over the host link
 * that devices share: activations are read in the reverse of the order in which they were written,
 * so that the rest stays. */
double dl_replica_paging_s(const struct dl_replica *replica, const struct dl_memory *memory);

#endif
