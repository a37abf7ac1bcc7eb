/* network.h - a workload for the benchmark programs: network.json ("dlmodel-network") lists all
 * layers with their shapes, so that all frameworks train the same network with the same layer
 * names. */
#ifndef DL_SLURM_RUN_NETWORK_H
#define DL_SLURM_RUN_NETWORK_H

#include "model/workload/workload.h"

/* The text. */
const char *dl_network_text(const struct dl_workload *workload, struct dl_arena *arena);

#endif
