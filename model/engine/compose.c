/* compose.c - see compose.h. Not here: where the parts come from, and their interpretation
 * (diagnose.c). */
#include "model/engine/compose.h"

#include <math.h>

#include "model/statistics/stats.h"
#include "model/framework/gradient_sync.h"
#include "model/framework/layer_times.h"

double dl_compose_exposed_input_s(double load_s, double feed_s, bool prefetches, double step_s) {
    return feed_s + (prefetches ? fmax(0, load_s - step_s) : load_s);
}

void dl_compose_input(const struct dl_input_time *input, const struct dl_framework *framework,
                      double extra_s, struct dl_evidence *out) {
    out->load_s = input->pipeline_s;
    out->feed_s = input->feed_s + extra_s;
    out->prefetches = framework->input.prefetch_batches > 0;
}

void dl_compose_iteration(const struct dl_evidence *e, struct dl_iteration *out) {
    out->compute_s = e->forward_s + e->backward_s + e->update_s;
    out->straggler_s = e->straggler_frac * out->compute_s;
    out->overhead_s = e->host_s + out->straggler_s;
    const double step_s = out->compute_s + e->exposed_comm_s + e->bubble_s + out->overhead_s;
    out->exposed_input_s = dl_compose_exposed_input_s(e->load_s, e->feed_s, e->prefetches, step_s);
    out->iteration_s = step_s + out->exposed_input_s;
}

/* Standard deviation of a step / its mean: between the system's devices, else between iterations,
 * where they were profiled; NAN: unknown. */
static double jitter_frac(const struct dl_system *system, const struct dl_plan *plan) {
    if (dl_known(system->jitter_frac) || plan->measured.layer_times == NULL)
        return system->jitter_frac;
    return dl_layer_times_jitter_frac(plan->measured.layer_times, plan->batch_per_device_samples);
}

double dl_straggler_frac(const struct dl_system *system, const struct dl_framework *framework,
                         const struct dl_plan *plan) {
    const double nodes = (double)plan->nodes, each = (double)plan->devices_per_node,
                 jitter = jitter_frac(system, plan);
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    const bool waits = !framework->sync.asynchronous && !(behaviour != NULL && behaviour->is_bound);
    if (nodes * each <= 1 || !dl_known(jitter) || !waits) return 0;
    if (plan->backup_workers <= 0) return jitter * dl_normal_expected_max(nodes * each);
    const double counted = nodes - (double)plan->backup_workers;
    return jitter * fmax(0, dl_normal_expected_order(counted, nodes, each));
}

void dl_compose(const struct dl_evidence *e, const struct dl_workload *workload,
                const struct dl_plan *plan, double alone_s, struct dl_prediction *out) {
    struct dl_iteration i;
    dl_compose_iteration(e, &i);
    out->forward_s = e->forward_s;
    out->backward_s = e->backward_s;
    out->update_s = e->update_s;
    out->compute_s = i.compute_s;
    out->comm_s = e->comm_s;
    out->exposed_comm_s = e->exposed_comm_s;
    out->input_s = e->load_s + e->feed_s;
    out->exposed_input_s = i.exposed_input_s;
    out->bubble_s = e->bubble_s;
    out->straggler_s = i.straggler_s;
    for (int k = 0; k < 3; k++) out->by_limit_s[k] = e->by_limit_s[k];
    out->overhead_s = i.overhead_s;
    out->host_bound_s = fmax(e->host_s, e->host_bound_s);
    out->iteration_s = i.iteration_s;
    /* gradients of spare workers are dropped */
    const double used = 1 - (double)plan->backup_workers / (double)plan->nodes;
    out->throughput_samples_per_s = used * plan->global_batch_samples / i.iteration_s;
    const double samples =
        plan->input.dataset_samples > 0 ? plan->input.dataset_samples : workload->epoch_samples;
    out->epoch_s = samples / out->throughput_samples_per_s; /* NAN when unknown */
    out->scaling_efficiency = used * alone_s / i.iteration_s;
}
