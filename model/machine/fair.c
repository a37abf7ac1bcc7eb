/* fair.c - see fair.h. */
#include "model/machine/fair.h"

#include <math.h>
#include <stdbool.h>

static bool active(const struct dl_fair_class *c) { return c->rate_bytes_per_s < 0.0; }

/* Common rate of the active classes at which the link is full, given what the others hold of it. */
static double full_at(double capacity_bytes_per_s, int link, const struct dl_fair_class *classes,
                      int class_count) {
    double load = 0.0, held = 0.0;
    for (int c = 0; c < class_count; c++) {
        const double use = classes[c].flows * classes[c].use_frac[link];
        if (active(&classes[c]))
            load += use;
        else
            held += use * classes[c].rate_bytes_per_s;
    }
    if (!(load > 0.0)) return HUGE_VAL;
    const double left = capacity_bytes_per_s - held;
    return left > 0.0 ? left / load : 0.0;
}

/* A single class needs no rounds: it gets what the fullest link allows, at most its demand. */
static void one_class(const double *capacity_bytes_per_s, int link_count,
                      struct dl_fair_class *class) {
    class->rate_bytes_per_s = class->demand_bytes_per_s, class->limit = -1;
    for (int l = link_count - 1; l >= 0; l--) {
        const double load = class->flows * class->use_frac[l];
        if (!(load > 0.0)) continue;
        const double full = capacity_bytes_per_s[l] > 0.0 ? capacity_bytes_per_s[l] / load : 0.0;
        if (full <= class->rate_bytes_per_s) class->rate_bytes_per_s = full, class->limit = l;
    }
}

void dl_fair_shares(const double *capacity_bytes_per_s, int link_count,
                    struct dl_fair_class *classes, int class_count) {
    if (class_count == 1) {
        one_class(capacity_bytes_per_s, link_count, classes);
        return;
    }
    for (int c = 0; c < class_count; c++) classes[c].rate_bytes_per_s = -1.0, classes[c].limit = -1;
    for (int round = 0; round < class_count; round++) {
        double level = HUGE_VAL, at[DL_FAIR_LINKS];
        for (int l = 0; l < link_count; l++) {
            at[l] = full_at(capacity_bytes_per_s[l], l, classes, class_count);
            if (at[l] < level) level = at[l];
        }
        for (int c = 0; c < class_count; c++)
            if (active(&classes[c]) && classes[c].demand_bytes_per_s < level)
                level = classes[c].demand_bytes_per_s;
        for (int c = 0; c < class_count; c++) {
            if (!active(&classes[c])) continue;
            int limit = -1;
            for (int l = 0; l < link_count && limit < 0; l++)
                if (classes[c].use_frac[l] > 0.0 && at[l] <= level) limit = l;
            if (limit < 0 && classes[c].demand_bytes_per_s > level) continue;
            classes[c].rate_bytes_per_s = level, classes[c].limit = limit;
        }
    }
}
