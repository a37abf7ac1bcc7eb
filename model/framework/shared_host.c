/* shared_host.c - see the header. F-SHARED-HOST: with k of the K devices that fill a host busy,
 * arithmetic takes 1 + (s - 1) (k - 1) / (K - 1) times as long, s = device.together_ratio
 * measured with all K. Memory takes max(1, k b / B) times as long, b: bandwidth of one device
 * alone, B: of all together, for passes that move more than a device's share of the last-level
 * cache. Both take k c / C times as long when k devices of c cores need more than C cores. */
#include "model/framework/shared_host.h"
#include "model/network/path.h"

#include <math.h>
#include <string.h>

/* time slice of a busy thread on a core: CONFIG_HZ=250 of Debian's Linux (unverified) */
static const double SLICE_S = 4e-3;
static const struct dl_shared_host ALONE = {1, 1, 1, 1, INFINITY};

static bool is_cpu(const struct dl_system *system) { return system->device->kind == DL_DEVICE_CPU; }

struct dl_shared_host dl_shared_host(const struct dl_system *system, const struct dl_plan *plan) {
    const struct dl_device *device = system->device;
    const double cores = (double)device->unit_count,
                 host_cores = system->has_host ? (double)system->host.cores : 0;
    struct dl_shared_host out = ALONE;
    out.device_count =
        (double)(plan->devices_per_node * (system->nodes_share_host ? plan->nodes : 1));
    /* DL_ABSENT is negative */
    if (!is_cpu(system) || !(cores >= 1) || !(host_cores >= cores)) return out;
    const double fit = host_cores / cores, working = fmin(out.device_count, fit);
    out.core_oversubscription_ratio = fmax(1, out.device_count / fit);
    out.cache_bytes = dl_known(device->l2_bytes) ? device->l2_bytes / fmax(1, working) : 0;
    if (!(device->all_sockets_slowdown_ratio >= 1) || !(working > 1)) return out;
    out.arithmetic_ratio = 1 + (device->all_sockets_slowdown_ratio - 1) * (working - 1) / (fit - 1);
    const double drawn = working * device->memory_bandwidth_bytes_per_s * device->memory_efficiency;
    if (dl_known(system->host.memory_bandwidth_bytes_per_s))
        out.memory_ratio = fmax(1, drawn / system->host.memory_bandwidth_bytes_per_s);
    return out;
}

void dl_shared_host_scale(const struct dl_shared_host *shared, struct dl_pass_cost *cost) {
    if (!(cost->time_s > 0)) return;
    const double alone_s = cost->time_s;
    const double beyond =
        cost->bytes > shared->cache_bytes ? shared->memory_ratio : shared->arithmetic_ratio;
    double sum_s = 0, split_s = 0;
    for (int i = 0; i < 3; i++) {
        split_s += cost->by_limit_s[i];
        sum_s += cost->by_limit_s[i] * (i == DL_LIMIT_MEMORY ? beyond : shared->arithmetic_ratio);
    }
    const double factor = shared->core_oversubscription_ratio *
                          (split_s > 0 ? sum_s / split_s : shared->arithmetic_ratio);
    for (int i = 0; i < 3; i++)
        cost->by_limit_s[i] *= shared->core_oversubscription_ratio *
                               (i == DL_LIMIT_MEMORY ? beyond : shared->arithmetic_ratio);
    cost->time_s = alone_s * factor;
    cost->error_s *= factor;
    cost->error_square_s2 *= factor * factor;
}

double dl_shared_host_stop_frac(const struct dl_system *system, const struct dl_plan *plan) {
    const struct dl_device *device = system->device;
    if (plan->nodes < 2 || !dl_host_cores_carry_messages(system)) return 0;
    return device->unit_count >= 1 ? 1 / (double)device->unit_count : 1;
}

double dl_shared_host_poll_ratio(const struct dl_system *system, const struct dl_plan *plan,
                                 double cycle_s) {
    const double cores = system->device->unit_count >= 1 ? (double)system->device->unit_count : 1;
    return is_cpu(system) && plan->nodes * plan->devices_per_node > 1
               ? 1 + SLICE_S / (SLICE_S + cycle_s) / cores
               : 1;
}

double dl_shared_host_endpoint_ratio(const struct dl_system *system,
                                     const struct dl_framework *framework,
                                     const struct dl_plan *plan) {
    const struct dl_device *device = system->device;
    const bool phi = device->architecture != NULL && strncmp(device->architecture, "knl", 3) == 0;
    const double cores = (double)device->unit_count, own = framework->sync.communication_cores,
                 many = framework->sync.knl_communication_cores;
    const double taken = phi && many > 0 ? many : own;
    if (!is_cpu(system) || plan->nodes * plan->devices_per_node <= 1 || !(cores > taken)) return 1;
    return cores / (cores - taken);
}

bool dl_host_cores_carry_messages(const struct dl_system *system) {
    return is_cpu(system) && dl_path_is_loopback(system);
}
