/* energy.c - see energy.h. */
#include "model/engine/energy.h"

#include <math.h>

#include "model/machine/kernel.h"
#include "model/machine/power_cap.h"

/* Assumed where the file is silent: nodes of 8 H100 draw 5.8 to 7.1 kW in all. */
static const double HOST_FRAC = 0.3;

/* Of log(published / modelled): root mean square over data/energy/power.csv; and of the assumed
 * share of the host, from 20 to 45 % in nodes whose parts are known. */
static const double POWER_SIGMA_LOG = 0.065, HOST_SIGMA_LOG = 0.3;

static bool given(double value) { return dl_known(value) && value > 0; }

/* Of one state; frac: of the span from idle to load. */
static double state_w(const struct dl_device *device, double frac) {
    const double idle_w = dl_device_idle_w(device),
                 power_w = idle_w + frac * (dl_device_load_w(device) - idle_w);
    return fmin(power_w, dl_device_limit_w(device));
}

static double device_w(const struct dl_device *device, const struct dl_prediction *p) {
    const double kernels_s = p->by_limit_s[DL_LIMIT_COMPUTE] + p->by_limit_s[DL_LIMIT_MEMORY] +
                             p->by_limit_s[DL_LIMIT_LATENCY];
    /* kernels alone; slower ones, next to a collective, share out as these do */
    const double share = kernels_s > 0 ? p->compute_s / kernels_s / p->iteration_s : 0,
                 arithmetic = share * p->by_limit_s[DL_LIMIT_COMPUTE],
                 memory = share * p->by_limit_s[DL_LIMIT_MEMORY],
                 wait = fmax(0, 1 - arithmetic - memory);
    return arithmetic * state_w(device, 1) + memory * state_w(device, DL_POWER_MEMORY_FRAC) +
           wait * state_w(device, DL_POWER_WAIT_FRAC);
}

struct dl_power dl_power_of(const struct dl_system *system, const struct dl_plan *plan,
                            const struct dl_prediction *prediction, const struct dl_rates *rates) {
    struct dl_power out = {.device_w = NAN, .host_w = NAN, .node_w = NAN};
    const struct dl_device *device = system->device;
    const double nodes = (double)plan->nodes, each = (double)system->devices_per_node,
                 used = (double)plan->devices_per_node,
                 pue = given(system->operation.pue) ? system->operation.pue : 1;
    const bool rated = device != NULL && given(device->power.tdp_w) && prediction->group_count == 0;
    if (rated) {
        out.device_w = device_w(device, prediction);
        out.load_assumed = !given(device->power.load_w);
        out.host_assumed = !given(system->operation.host_w);
        out.host_w =
            out.host_assumed ? HOST_FRAC * each * device->power.tdp_w : system->operation.host_w;
        out.node_w = used * out.device_w + (each - used) * dl_device_idle_w(device) + out.host_w;
    }
    out.sigma_log = rated ? hypot(POWER_SIGMA_LOG,
                                  out.host_assumed ? HOST_SIGMA_LOG * out.host_w / out.node_w : 0)
                          : NAN;
    if (rates != NULL && given(rates->node_w)) {
        out.node_w = rates->node_w;
        out.sigma_log = 0;
    }
    out.job_w = nodes * out.node_w * pue;
    return out;
}

double dl_price_of(const struct dl_system *system, const struct dl_rates *rates) {
    if (rates != NULL && given(rates->price_per_node_hour)) return rates->price_per_node_hour;
    return given(system->operation.price_per_node_hour) ? system->operation.price_per_node_hour
                                                        : NAN;
}

const char *dl_currency_of(const struct dl_system *system, const struct dl_rates *rates) {
    if (rates != NULL && given(rates->price_per_node_hour)) return rates->currency;
    return given(system->operation.price_per_node_hour) ? system->operation.price_currency : NULL;
}

struct dl_spending dl_spending_of(const struct dl_system *system, const struct dl_plan *plan,
                                  const struct dl_power *power, const struct dl_rates *rates,
                                  double time_s) {
    const double joule_per_kwh = 3.6e6, s_per_hour = 3600, energy_j = power->job_w * time_s;
    return (struct dl_spending){.energy_j = energy_j,
                                .carbon_g = rates != NULL && given(rates->carbon_g_per_kwh)
                                                ? energy_j / joule_per_kwh * rates->carbon_g_per_kwh
                                                : NAN,
                                .cost = (double)plan->nodes * time_s / s_per_hour *
                                        dl_price_of(system, rates)};
}
