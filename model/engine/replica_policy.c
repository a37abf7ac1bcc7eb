/* replica_policy.c - how a framework's collectives run on a system: their library, and what they
 * take from computation. See replica.h. */
#include <math.h>

#include "model/engine/replica.h"
#include "model/framework/shared_host.h"
#include "model/network/collective.h"

enum dl_library dl_replica_library(const struct dl_system *system,
                                   const struct dl_framework *framework,
                                   const struct dl_plan *plan) {
    const bool cpu = system->device->kind == DL_DEVICE_CPU;
    const int own = cpu ? framework->sync.cpu_library : framework->sync.library;
    const int library = plan->library != NULL ? dl_library_find(plan->library) : own;
    /* a framework without CPU support; dl_plan_complete refuses it */
    return (enum dl_library)(library < 0 ? framework->sync.library : library);
}

bool dl_replica_polls(const struct dl_system *system, const struct dl_framework *framework,
                      const struct dl_plan *plan) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    return behaviour != NULL && behaviour->poll_cycle_s != NULL &&
           dl_libraries[dl_replica_library(system, framework, plan)]->polls;
}

double dl_replica_slowdown_frac(const struct dl_system *system,
                                const struct dl_framework *framework, const struct dl_plan *plan) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    const double own = system->device->collective_slowdown_frac;
    if (behaviour != NULL && behaviour->is_bound) return 0;
    const bool kernels = system->device->kind == DL_DEVICE_GPU &&
                         dl_libraries[dl_replica_library(system, framework, plan)]->queues_on_gpu;
    /* A framework whose thread polls has its share of core time anyway. */
    const double stop_frac =
        dl_replica_polls(system, framework, plan) ? 0 : dl_shared_host_stop_frac(system, plan);
    return kernels && dl_known(own) ? fmax(own, stop_frac) : stop_frac;
}
