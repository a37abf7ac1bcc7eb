/* advice.c - see advice.h. */
#include "model/engine/advice.h"

#include <math.h>

const double dl_knee_frac = 0.1, dl_efficient_frac = 0.8;

static int fastest_of(const struct dl_advice_point *p, int count, double budget) {
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (!p[i].fits || (budget > 0 && !(p[i].run_cost <= budget))) continue;
        if (best < 0 || p[i].samples_per_s > p[best].samples_per_s) best = i;
    }
    return best;
}

static int cheapest_of(const struct dl_advice_point *p, int count, double deadline_s) {
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (!p[i].fits || (deadline_s > 0 && !(p[i].run_s <= deadline_s))) continue;
        if (best < 0 || p[i].cost_per_sample < p[best].cost_per_sample) best = i;
    }
    return best;
}

/* The last point from which all larger ones are below the limit. */
static int inefficient_from(const struct dl_advice_point *p, int count) {
    int from = -1;
    for (int i = count - 1; i >= 0 && p[i].efficiency < dl_efficient_frac; i--) from = i;
    return from;
}

struct dl_advice dl_advice_of(const struct dl_advice_point *p, int count,
                              const struct dl_advice_limits *limits) {
    struct dl_advice a = {.knee = -1, .in_time = -1, .in_budget = -1, .tied_fastest = -1};
    a.fastest = fastest_of(p, count, 0);
    a.cheapest = cheapest_of(p, count, 0);
    a.inefficient = inefficient_from(p, count);
    for (int i = 0; i < count; i++) {
        if (p[i].fits && p[i].cost_per_sample <= (1 + dl_knee_frac) * p[a.cheapest].cost_per_sample)
            a.knee = i;
    }
    for (int i = 0; i < a.fastest && a.tied_fastest < 0; i++) {
        if (p[i].fits && log(p[a.fastest].samples_per_s / p[i].samples_per_s) <=
                             hypot(p[a.fastest].half_log, p[i].half_log))
            a.tied_fastest = i;
    }
    if (limits->deadline_s > 0) a.in_time = cheapest_of(p, count, limits->deadline_s);
    if (limits->budget > 0) a.in_budget = fastest_of(p, count, limits->budget);
    return a;
}
