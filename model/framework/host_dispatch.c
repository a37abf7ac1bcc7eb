/* host_dispatch.c - see the header. */
#include "model/framework/host_dispatch.h"

#include <math.h>

static double eager_call_s(const struct dl_device *device) {
    for (; device != NULL; device = device->borrowed)
        if (dl_known(device->eager_call_s)) return device->eager_call_s;
    return 0;
}

double dl_dispatch_s(const struct dl_framework *framework, const struct dl_device *device) {
    const double own_s = framework->host.dispatch_s,
                 launch_s = dl_known(device->launch_s) ? device->launch_s : 0;
    if (!(own_s > 0)) return 0;
    return fmax(fmax(own_s, launch_s), framework->host.eager_calls ? eager_call_s(device) : 0);
}
