/* shared_host.h - CPU devices of one host share its execution units (hardware threads), clocks and
 * memory, and time-slice its cores when there are more devices than cores (F-SHARED-HOST). Virtual
 * nodes of a test bed are one host.
 */
#ifndef DL_MODEL_FRAMEWORK_SHARED_HOST_H
#define DL_MODEL_FRAMEWORK_SHARED_HOST_H

#include "model/framework/cost.h"
#include "model/plan/plan.h"
#include "model/machine/system.h"

/* Slowdown of work when all devices of a host are busy, relative to one device alone; each at least
 * 1. */
struct dl_shared_host {
    double device_count;     /* of the plan that are on one host */
    double arithmetic_ratio; /* of work bound by arithmetic or latency */
    double memory_ratio;     /* of work bound by memory bandwidth that no cache holds */
    /* cores that the devices need / cores of the host; above 1 devices are time-sliced */
    double core_oversubscription_ratio;
    double cache_bytes; /* a device's share of the last-level cache */
};

/* F-SHARED-HOST. CPU devices only; arithmetic and memory only where calibrate measured them
 * (device.together_ratio). */
struct dl_shared_host dl_shared_host(const struct dl_system *system, const struct dl_plan *plan);
void dl_shared_host_scale(const struct dl_shared_host *shared, struct dl_pass_cost *cost);

/* Share of compute that stops while the host's library communicates: the cores that compute also
 * copy messages that never leave the host. 0 with a network adapter or on GPUs. F-SLOWDOWN. */
double dl_shared_host_stop_frac(const struct dl_system *system, const struct dl_plan *plan);

/* Slowdown of compute next to a thread that polls in MPI every cycle (Horovod's own): it is
 * time-sliced with the c threads that compute on the c cores of a CPU device. It polls for one time
 * slice, until the other ranks' threads get theirs, and then sleeps for a cycle: compute takes 1 +
 * (slice / (slice + cycle)) / c times as long. 1 for one device and on GPUs. F-SHARED-HOST. */
double dl_shared_host_poll_ratio(const struct dl_system *system, const struct dl_plan *plan,
                                 double cycle_s);

/* Slowdown of arithmetic where a device of c cores leaves e of them to a library's endpoints:
 * c / (c - e). 1 for one device and on GPUs. F-ENDPOINTS. */
double dl_shared_host_endpoint_ratio(const struct dl_system *system,
                                     const struct dl_framework *framework,
                                     const struct dl_plan *plan);

/* Whether the cores that compute also carry all messages, including those to a server on their own
 * node: CPU nodes whose network is the loopback of one host. */
bool dl_host_cores_carry_messages(const struct dl_system *system);

#endif
