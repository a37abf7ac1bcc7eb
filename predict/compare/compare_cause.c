/* compare_cause.c - hypotheses in the order in which they are checked; each returns its evidence
 * or NULL. */
#include "predict/compare/compare_cause.h"

#include <math.h>

#include "model/engine/correct.h"

/* Chosen: no known cause slows communication more. */
#define MOST_SLOWDOWN 20
#define ALIKE 0.07 /* ratios that differ by less count as equal */

static bool alike(double a, double b) { return fabs(a / b - 1) <= ALIKE; }

static const char *slower_compute(const struct dl_shortfall *r, double ratio,
                                  struct dl_arena *arena) {
    if (dl_known(r->base_ratio) && alike(ratio, r->base_ratio)) {
        return dl_arena_printf(arena,
                               "kernels slower than their samples: the run on %lld device%s takes "
                               "%.2f times its prediction, "
                               "this one %.2f",
                               (long long)r->base_devices, r->base_devices == 1 ? "" : "s",
                               r->base_ratio, ratio);
    }
    if (!dl_known(r->base_ratio) && r->plan->nodes * r->plan->devices_per_node == 1) {
        return dl_arena_printf(arena,
                               "kernels or host slower than calibrated: one device alone takes "
                               "%.2f times the prediction",
                               ratio);
    }
    return NULL;
}

/* The excess of this run over the smallest one's own error. */
static double corrected_s(const struct dl_shortfall *r) {
    return dl_known(r->base_ratio) ? r->measured_s - (r->base_ratio - 1) * r->prediction->compute_s
                                   : r->measured_s;
}

static const char *no_overlap(const struct dl_shortfall *r, struct dl_arena *arena) {
    const struct dl_prediction *p = r->prediction;
    const double serial_s = p->iteration_s - p->exposed_comm_s + p->comm_s;
    if (p->comm_s - p->exposed_comm_s < ALIKE * p->iteration_s || !alike(corrected_s(r), serial_s))
        return NULL;
    return dl_arena_printf(arena,
                           "communication not overlapped: compute plus all %.3g ms of "
                           "communication is %.3g ms; %.3g ms was measured",
                           1e3 * p->comm_s, 1e3 * serial_s, 1e3 * r->measured_s);
}

static const char *slower_network(const struct dl_shortfall *r, struct dl_arena *arena) {
    const struct dl_prediction *p = r->prediction;
    const double quiet_s = p->iteration_s - p->exposed_comm_s,
                 hidden_s = p->comm_s - p->exposed_comm_s;
    /* communication that would explain it, with the same overlap */
    const double needed_s = corrected_s(r) - quiet_s + hidden_s;
    const bool inside = r->plan->nodes == 1;
    if (p->comm_s <= 0 || needed_s <= 1.1 * p->comm_s || needed_s > MOST_SLOWDOWN * p->comm_s)
        return NULL;
    if (!inside && dl_known(r->node_ratio) &&
        r->node_ratio > 1.25 * (dl_known(r->base_ratio) ? r->base_ratio : 1))
        return NULL;
    return dl_arena_printf(arena,
                           "%s slower than in the system's file: communication %.1f times as long "
                           "(%.3g instead of %.3g ms) "
                           "would explain it%s",
                           inside ? "links inside the node" : "network between nodes",
                           needed_s / p->comm_s, 1e3 * needed_s, 1e3 * p->comm_s,
                           dl_known(r->node_ratio) ? "; inside one node the prediction holds better"
                                                   : "");
}

static const char *in_the_node(const struct dl_shortfall *r, struct dl_arena *arena) {
    if (r->plan->nodes == 1 || !dl_known(r->node_ratio) || !dl_known(r->base_ratio) ||
        r->node_ratio < 1.1 * r->base_ratio)
        return NULL;
    return dl_arena_printf(arena,
                           "a resource that the devices of a node share (input, host, links): one "
                           "node alone takes %.2f times the prediction",
                           r->node_ratio);
}

static const char *stragglers(const struct dl_shortfall *r, double ratio, struct dl_arena *arena) {
    const double base = dl_known(r->base_ratio) ? r->base_ratio : 1;
    if (ratio / base > 1.2 || !dl_known(r->fewer_ratio) || ratio < r->fewer_ratio) return NULL;
    return dl_arena_printf(arena,
                           "stragglers: the loss grows slowly with devices, %.2f times the "
                           "prediction after %.2f on fewer",
                           ratio, r->fewer_ratio);
}

const char *dl_compare_cause(const struct dl_shortfall *r, struct dl_arena *arena) {
    const struct dl_prediction *p = r->prediction;
    const double ratio = r->measured_s / p->iteration_s;
    if (!dl_prediction_is_slow(p, r->measured_s)) return NULL;
    const char *cause = slower_compute(r, ratio, arena);
    if (cause == NULL) cause = stragglers(r, ratio, arena);
    if (cause == NULL) cause = no_overlap(r, arena);
    if (cause == NULL) cause = in_the_node(r, arena);
    if (cause == NULL) cause = slower_network(r, arena);
    return cause != NULL
               ? cause
               : dl_arena_printf(arena, "not explained: %.2f times the prediction", ratio);
}
