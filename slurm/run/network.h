/* network.h - a workload as the benchmark programs read it: network.json ("dlmodel-network"), the
 * flat list of layers with their shapes, so that every framework trains the same network under the
 * same layer names.
 */
#ifndef DL_SLURM_RUN_NETWORK_H
#define DL_SLURM_RUN_NETWORK_H

#include "model/workload/workload.h"

/* The text, NULL when out of memory. */
const char *dl_network_text(const struct dl_workload *workload, struct dl_arena *arena);

#endif
