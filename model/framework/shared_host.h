/* shared_host.h - CPU devices of one host share it: execution units of cores that are threads of
 * one, clocks, memory; and the cores themselves when there are more devices than cores
 * (F-SHARED-HOST). Virtual nodes of a test bed are one host.
 */
#ifndef DL_MODEL_FRAMEWORK_SHARED_HOST_H
#define DL_MODEL_FRAMEWORK_SHARED_HOST_H

#include "model/framework/cost.h"
#include "model/plan/plan.h"
#include "model/hardware/system.h"

/* How much longer work takes when all devices of a host work than when one does; each at least 1.
 */
struct dl_shared_host {
    double device_count;     /* of the plan that are on one host */
    double arithmetic_ratio; /* of work that arithmetic or latency bounds */
    double memory_ratio;     /* of work that memory bandwidth bounds and a cache does not hold */
    /* cores that the devices want / cores of the host: above 1 they take turns */
    double turns_ratio;
    double cache_bytes; /* a device's share of the last cache */
};

/* F-SHARED-HOST. Only CPU devices; arithmetic and memory only where calibrate measured them
 * (device.together_ratio). */
struct dl_shared_host dl_shared_host(const struct dl_system *system, const struct dl_plan *plan);
/* Whether plans of this system can differ in it. */
bool dl_shared_host_matters(const struct dl_system *system);
void dl_shared_host_scale(const struct dl_shared_host *shared, struct dl_pass_cost *cost);

/* Share of compute that stands still while the host's library communicates: messages that never
 * leave the host are copied by the cores that compute. 0 where there is an adapter, or a device
 * that is no CPU. F-SLOWDOWN. */
double dl_shared_host_stop_frac(const struct dl_system *system, const struct dl_plan *plan);

/* A thread that asks the others every cycle and polls until they answer (Horovod's own, in MPI)
 * takes turns with the c threads that compute on the c cores of a CPU device. It polls for a turn
 * of the scheduler, until the others' threads have theirs, and then sleeps for a cycle: compute
 * takes 1 + (turn / (turn + cycle)) / c times as long. 1 where there is one device, or it is no
 * CPU. F-SHARED-HOST. */
double dl_shared_host_poll_ratio(const struct dl_system *system, const struct dl_plan *plan,
                                 double cycle_s);

/* Whether the cores that compute also carry all messages, even those to a server on their own node:
 * CPU nodes whose network is the loopback of one host. */
bool dl_shared_host_carries(const struct dl_system *system);

#endif
