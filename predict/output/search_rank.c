/* search_rank.c - see the header. */
#include "predict/output/search_rank.h"

#include "model/engine/correct.h"

/* Cost (node-hours where no price is known) and energy of an iteration. */
static void spend(const struct dl_search_request *r, const struct dl_rates *rates,
                  const struct dl_searched *row, double *cost, double *energy_j) {
    const struct dl_power power = dl_power_of(r->system, row->plan, row->prediction, rates);
    *cost = (double)row->plan->nodes * row->prediction->iteration_s;
    *energy_j = dl_known(power.job_w) ? power.job_w * row->prediction->iteration_s : *cost;
}

static double energy_of(const struct dl_search_request *r, const struct dl_rates *rates,
                        const struct dl_searched *row) {
    double cost, energy_j;
    spend(r, rates, row, &cost, &energy_j);
    return energy_j;
}

/* The search keeps the most plans by rated power times time, which orders plans as their energy
 * does but for how busy they keep the devices; of these the modelled energy of F-POWER decides.
 * Stable; returns how many are left. */
int dl_search_rank_by_energy(const struct dl_search_request *r, const struct dl_rates *rates,
                             struct dl_searched *rows, int count, int top) {
    for (int i = 1; i < count; i++) {
        const struct dl_searched row = rows[i];
        int at = i;
        for (; at > 0 && energy_of(r, rates, &rows[at - 1]) > energy_of(r, rates, &row); at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
    const int left = count < top ? count : top;
    struct dl_prediction best = *rows[0].prediction, other;
    best.throughput_samples_per_s = 1 / energy_of(r, rates, &rows[0]); /* F-TIE of the energies */
    for (int i = 0; i < left; i++) {
        other = *rows[i].prediction;
        other.throughput_samples_per_s = 1 / energy_of(r, rates, &rows[i]);
        rows[i].tied = dl_prediction_plans_tie(&best, &other);
    }
    return left;
}

/* F-COST-FRONT: of the front of time, memory and devices, which holds them all, the plans that
 * nothing beats in time, cost and energy. */
void dl_search_mark_cost_front(const struct dl_search_request *r, const struct dl_rates *rates,
                               struct dl_searched *rows, int count) {
    for (int i = 0; i < count; i++) {
        double cost, energy_j, other_cost, other_energy_j;
        spend(r, rates, &rows[i], &cost, &energy_j);
        rows[i].cost_front = true;
        for (int k = 0; k < count && rows[i].cost_front; k++) {
            const double time_s = rows[i].prediction->iteration_s,
                         other_s = rows[k].prediction->iteration_s;
            spend(r, rates, &rows[k], &other_cost, &other_energy_j);
            const bool less = other_s < time_s || other_cost < cost || other_energy_j < energy_j;
            rows[i].cost_front =
                !(less && other_s <= time_s && other_cost <= cost && other_energy_j <= energy_j);
        }
    }
}
