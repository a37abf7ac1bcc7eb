/* spread_of_plans.c - see spread_of_plans.h. */
#include "fits/spread_of_plans.h"

#include <math.h>
#include <string.h>

/* Whether rows are of one job, and of one plan of it. */
static bool same_job(const struct dl_fit_row *a, const struct dl_fit_row *b) {
    return a->decision.plans[0] != 0 && strcmp(a->decision.plans, b->decision.plans) == 0;
}
static bool same_plan(const struct dl_fit_row *a, const struct dl_fit_row *b) {
    return same_job(a, b) && strcmp(a->decision.plan, b->decision.plan) == 0;
}

/* Mean error of the plan of row `first` over its repeats, which are then done. */
static double mean_of_plan(const struct dl_fit_rows *list, const double *errors, size_t first,
                           bool *done) {
    const struct dl_fit_row *rows = list->rows;
    double times = 0, sum = 0;
    for (size_t i = first; i < list->count; i++) {
        if (done[i] || isnan(errors[i]) || !same_plan(&rows[i], &rows[first])) continue;
        done[i] = true;
        times++;
        sum += errors[i];
    }
    return sum / times;
}

void dl_spread_of_plans(const struct dl_generalized *g, const double *errors,
                        struct dl_arena *arena, double *out) {
    const size_t n = g->rows->count;
    const struct dl_fit_row *rows = g->rows->rows;
    double *squares = dl_arena_alloc(arena, 2 * g->group_count + 2, sizeof *squares);
    bool *done = dl_arena_alloc(arena, n + 1, sizeof *done);
    double *freedom = squares + g->group_count, variance = 0, groups = 0;
    for (size_t i = 0; i < n; i++) {
        double count = 0, sum = 0, square = 0;
        for (size_t j = i; j < n; j++) { /* the plans of its job */
            if (done[j] || isnan(errors[j]) || !same_job(&rows[j], &rows[i])) continue;
            const double mean = mean_of_plan(g->rows, errors, j, done);
            count++;
            sum += mean;
            square += mean * mean;
        }
        if (count < 2) continue;
        squares[g->group_of[i]] += fmax(0, square - sum * sum / count);
        freedom[g->group_of[i]] += count - 1;
    }
    for (size_t k = 0; k < g->group_count; k++) {
        if (!(freedom[k] > 0)) continue;
        variance += squares[k] / freedom[k];
        groups++;
    }
    *out = groups > 0 ? sqrt(variance / groups) : 0;
}
