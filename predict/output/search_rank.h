/* search_rank.h - found plans by what they cost: energy, and the front of time, cost and energy. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_RANK_H
#define DL_PREDICT_OUTPUT_SEARCH_RANK_H

#include "model/engine/energy.h"
#include "predict/output/search_print.h"

/* Sorts rows by the energy of an iteration (F-POWER), marks those tied with the first, and returns
 * how many are left: at most `top`. Time where a power is unknown. */
int dl_search_rank_by_energy(const struct dl_search_request *request, const struct dl_rates *rates,
                             struct dl_searched *rows, int count, int top);

/* F-COST-FRONT: marks the rows that no other beats in time, cost and energy. */
void dl_search_mark_cost_front(const struct dl_search_request *request,
                               const struct dl_rates *rates, struct dl_searched *rows, int count);

#endif
