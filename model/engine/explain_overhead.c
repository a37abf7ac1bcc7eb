/* explain_overhead.c - see the header. */
#include "model/engine/explain_overhead.h"

#include <math.h>

#include "model/statistics/stats.h"
#include "model/framework/host_dispatch.h"

/* F-STRAGGLER, F-BACKUP: jitter x expected maximum x compute, with the jitter behind the wait. */
static const char *straggler_inputs(const struct dl_plan *plan, const struct dl_prediction *p,
                                    struct dl_arena *arena) {
    const double nodes = (double)plan->nodes, each = (double)plan->devices_per_node,
                 spare = (double)plan->backup_workers;
    const double sigmas = spare > 0 ? fmax(0, dl_normal_expected_order(nodes - spare, nodes, each))
                                    : dl_normal_expected_max(nodes * each);
    const double jitter = sigmas > 0 ? p->straggler_s / (sigmas * p->compute_s) : 0;
    const char *who = spare > 0
                          ? dl_arena_printf(arena, "worker %.0f of %.0f", nodes - spare, nodes)
                          : dl_arena_printf(arena, "max of %.0f devices", nodes * each);
    return dl_arena_printf(arena, "jitter=%.3g x E[%s]=%.3g x compute=%.4g ms", jitter,
                           who != NULL ? who : "", sigmas, 1e3 * p->compute_s);
}

static int put(struct dl_term *out, int count, const char *name, const char *formula,
               const char *inputs, const char *origin, double value_s) {
    if (!(value_s > 0)) return count;
    out[count] = (struct dl_term){.name = name,
                                  .group = "overhead",
                                  .formula = formula,
                                  .inputs = inputs,
                                  .origin = origin,
                                  .start_s = NAN,
                                  .value = value_s,
                                  .sigma_log = NAN};
    return count + 1;
}

/* F-HOST-COUNT: what the host does in an iteration, and how long it takes for that. */
static const char *host_inputs(const struct dl_overhead_inputs *in, double scale,
                               struct dl_arena *arena) {
    const struct dl_framework *f = in->framework;
    const struct dl_host_cost cost = dl_host_cost_of(f, in->system, scale);
    struct dl_host_count all = {0};
    dl_host_count_add(&all, &in->host, in->micro_batches);
    const double launches = in->kernel_count * in->micro_batches,
                 others = in->operation_count * in->micro_batches,
                 launch_s = scale * dl_dispatch_s(f, in->system->device),
                 host_s = (launches + others) * launch_s + dl_host_count_s(&cost, &all);
    const char *more = others > 0 ? dl_arena_printf(arena, " and %.0f operations", others) : "";
    if (f->host.counts == NULL)
        return dl_arena_printf(arena, "%.0f launches%s x %.3g us=%.4g ms, minus what kernels hide",
                               launches, more, 1e6 * launch_s, 1e3 * host_s);
    const char *rest = all.rest_s != 0 ? dl_arena_printf(arena, ", measured beyond these %.4g ms",
                                                         1e3 * all.rest_s * cost.scale)
                                       : "";
    return dl_arena_printf(
        arena,
        "%.0f launches%s x %.3g us, %.0f Python calls x %.3g, %.0f ATen operations x %.3g, %.0f "
        "views x %.3g, %.0f autograd nodes x %.3g us%s=%.4g ms, minus what kernels hide",
        launches, more, 1e6 * launch_s, all.call_count, 1e6 * cost.call_s, all.operation_count,
        1e6 * cost.operation_s, all.view_count, 1e6 * cost.view_s, all.node_count,
        1e6 * cost.node_s, rest, 1e3 * host_s);
}

int dl_explain_overhead(const struct dl_overhead_inputs *in, const struct dl_prediction *p,
                        struct dl_arena *arena, struct dl_term *out) {
    const struct dl_framework *f = in->framework;
    const double scale = dl_plan_compute_scale(in->plan),
                 gap_s = scale * dl_device_gap_s(in->system->device);
    const double kernels = in->kernel_count * in->micro_batches,
                 idle_s = fmax(0, p->overhead_s - p->straggler_s);
    const double fixed_s = fmin(idle_s, in->host_count * f->host.iteration_s),
                 gaps_s = fmin(idle_s - fixed_s, gap_s * kernels),
                 late_s = idle_s - fixed_s - gaps_s;
    const double devices = f->host.single_process ? (double)in->plan->devices_per_node : 1;
    int count = 0;
    count = put(out, count, "launch gaps", "F-HOST-GAP",
                dl_arena_printf(arena, "kernel_gap=%.3g us x %.0f kernels", 1e6 * gap_s, kernels),
                "device file", gaps_s);
    count = put(out, count, "host time per iteration", "F-HOST-GAP",
                dl_arena_printf(arena, "iteration_s=%.3g ms x %.0f", 1e3 * f->host.iteration_s,
                                in->host_count),
                "framework file", fixed_s);
    /* less than a picosecond is rounding */
    count = put(out, count, "device waits for the host", "F-HOST-COUNT",
                host_inputs(in, scale * devices, arena),
                f->host.counts != NULL ? "host_counts.json" : "framework file",
                late_s > 1e-12 ? late_s : 0);
    return put(out, count, "straggler wait",
               in->plan->backup_workers > 0 ? "F-BACKUP" : "F-STRAGGLER",
               straggler_inputs(in->plan, p, arena), "system file", p->straggler_s);
}
