/* energy.h - power, energy, carbon dioxide and cost of an iteration and of a whole run.
 *
 * F-POWER: a device draws P(s) = idle + u(s) (load - idle), at most its limit, in each state s of
 * an iteration: arithmetic (u = 1), memory-bound kernels, and waiting (latency, communication,
 * input, bubble, host). Its mean power weights them by their shares of the iteration. A node
 * draws its devices (idle ones idle) and its host. F-ENERGY: nodes x that x PUE x time. F-COST:
 * nodes x hours x price of a node, which is paid whole. Where the files are silent, stated
 * assumptions stand in: load = rated power, idle = 0.15 of it, host = 0.3 of the rated power of
 * the node's devices, PUE = 1. A price has no substitute. F-POWER-INTERVAL: the spread of
 * log(measured / modelled) is that of the published figures in data/energy/power.csv; with assumed
 * power of the host, also that of the assumption, in the host's share. The 80 % interval is +-1.28
 * spreads.
 */
#ifndef DL_MODEL_ENGINE_ENERGY_H
#define DL_MODEL_ENGINE_ENERGY_H

#include "model/engine/throughput.h"

/* What the user says instead of the system's file; NAN (or 0), NULL: nothing. */
struct dl_rates {
    double node_w;              /* a node at load */
    double price_per_node_hour; /* replaces the system's price and its currency */
    const char *currency;
    double carbon_g_per_kwh; /* of the electricity */
};

struct dl_power {      /* NAN: unknown */
    double device_w;   /* mean of a device over the iteration */
    double host_w;     /* the rest of a node */
    double node_w;     /* both; the user's value if there is one */
    double job_w;      /* all nodes, with PUE */
    double sigma_log;  /* F-POWER-INTERVAL: spread of log(measured / modelled); 0: as given */
    bool load_assumed; /* rated power stands in for a device's power at load */
    bool host_assumed; /* no power of the host is known */
};

/* F-POWER of one node's devices and host while `prediction` of `plan` runs. NAN without a rated or
 * measured power of the device, or where devices differ (heterogeneous jobs), unless node_w is
 * given. rates: NULL: none. Errors: none. */
struct dl_power dl_power_of(const struct dl_system *system, const struct dl_plan *plan,
                            const struct dl_prediction *prediction, const struct dl_rates *rates);

struct dl_spending { /* of any time span; NAN: unknown */
    double energy_j, carbon_g, cost;
};
/* F-ENERGY, F-COST of `time_s` seconds of the job. The currency is that of dl_currency_of. */
struct dl_spending dl_spending_of(const struct dl_system *system, const struct dl_plan *plan,
                                  const struct dl_power *power, const struct dl_rates *rates,
                                  double time_s);

/* Price of a node and hour in force, and its currency; NAN, NULL: unknown. */
double dl_price_of(const struct dl_system *system, const struct dl_rates *rates);
const char *dl_currency_of(const struct dl_system *system, const struct dl_rates *rates);

#endif
