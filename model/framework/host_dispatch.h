/* host_dispatch.h - host time to issue one pass (F-HOST-COUNT). Not here: what hides it
 * (timeline.c, transformer_micro_batch.c). */
#ifndef DL_MODEL_FRAMEWORK_HOST_DISPATCH_H
#define DL_MODEL_FRAMEWORK_HOST_DISPATCH_H

#include "model/framework/framework.h"
#include "model/machine/system.h"
#include "model/workload/workload.h"

/* F-HOST-QUEUE: kernels that a stream of a GPU takes before the host must wait. */
enum { DL_LAUNCH_QUEUE = 1000 };

/* Host time [s] of one launch: dispatch_s of the framework, no less than launch_s of the device. 0:
 * a framework whose dispatch costs nothing (dispatch_s 0: a compiled program). */
double dl_dispatch_s(const struct dl_framework *framework, const struct dl_device *device);

/* `scale` times the host time of one operation of each kind on the system's processor:
 * host.call_scale of its file, else that of the table. All 0 where the framework has no counts. */
struct dl_host_cost dl_host_cost_of(const struct dl_framework *framework,
                                    const struct dl_system *system, double scale);
static inline double dl_host_count_s(const struct dl_host_cost *cost,
                                     const struct dl_host_count *count) {
    return count->call_count * cost->call_s + count->view_count * cost->view_s +
           count->operation_count * cost->operation_s + count->node_count * cost->node_s +
           count->rest_s * cost->scale;
}

/* What the host runs for one pass of a layer that launches `launches` kernels; those of a compiler
 * are one operation each. Nothing: the framework has no counts, the pass has no kernels. narrow:
 * name of the precision of its products where that has less than 16 bits, else NULL. */
struct dl_host_count dl_host_count_of(const struct dl_framework *framework,
                                      const struct dl_layer *layer, bool backward, bool compiled,
                                      double launches, const char *narrow);

#endif
