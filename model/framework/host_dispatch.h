/* host_dispatch.h - host time to issue one operation. Not here: what hides it (timeline.c,
 * transformer_micro_batch.c). */
#ifndef DL_MODEL_FRAMEWORK_HOST_DISPATCH_H
#define DL_MODEL_FRAMEWORK_HOST_DISPATCH_H

#include "model/framework/framework.h"
#include "model/machine/device.h"

/* F-HOST-QUEUE: kernels that a stream of a GPU takes before the host must wait. */
enum { DL_LAUNCH_QUEUE = 1000 };

/* F-HOST-EAGER: host time [s] of one operation: dispatch_s of the framework, no less than launch_s
 * of the device; where the framework's operations are calls of eager PyTorch (eager_calls), no less
 * than eager_call_s, or that of the device whose kernel-time models it borrows. 0: a framework
 * whose dispatch costs nothing (dispatch_s 0: a compiled program). */
double dl_dispatch_s(const struct dl_framework *framework, const struct dl_device *device);

#endif
