/* correct.c - see correct.h. */
#include "model/engine/correct.h"

#include <math.h>

#include "model/engine/interval.h"

#define Z80 DL_NORMAL_80

/* Exposed communication by one factor, what the devices do by another, overhead by a third. */
static void apply(const struct dl_posterior_shift *shift, struct dl_prediction *p) {
    const double compute = exp(shift->compute_log), comm = exp(shift->communication_log),
                 overhead = compute * exp(shift->overhead_log), before_s = p->iteration_s;
    double *const local[] = {&p->forward_s, &p->backward_s, &p->update_s, &p->compute_s},
                  *const waits[] = {&p->bubble_s, &p->straggler_s, &p->overhead_s};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) *local[i] *= compute;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) *waits[i] *= overhead;
    p->comm_s *= comm;
    p->exposed_comm_s *= comm;
    p->iteration_s =
        p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s + p->overhead_s;
    const double ratio = p->iteration_s / before_s;
    p->throughput_samples_per_s /= ratio;
    p->epoch_s *= ratio;
    p->scaling_efficiency *= compute / ratio;
}

double dl_prediction_waits_s(const struct dl_prediction *p) {
    const double idle_s = p->overhead_s - p->straggler_s;
    return hypot(fmax(idle_s, p->host_bound_s), hypot(p->straggler_s, p->bubble_s));
}

struct dl_interval_case dl_interval_case_of(const struct dl_system *system,
                                            const struct dl_workload *workload,
                                            const struct dl_framework *framework,
                                            const struct dl_plan *plan,
                                            const struct dl_prediction *p) {
    const bool runs = p->iteration_s > 0;
    return (struct dl_interval_case){
        .framework = framework->name,
        .release = framework->release,
        .kernels = dl_device_kernels_name(system->device),
        .architecture = dl_device_architecture(system->device),
        .system = system->name,
        .devices = plan->nodes * plan->devices_per_node,
        .precision = plan->precision,
        .exposed_frac = runs ? p->exposed_comm_s / p->iteration_s : 0,
        .overhead_frac = runs ? (p->overhead_s + p->bubble_s) / p->iteration_s : 0,
        .waits_frac = runs ? dl_prediction_waits_s(p) / p->iteration_s : 0,
        .model_sigma_log = p->spread.model_sigma_log,
        .batch_per_device_samples = runs ? p->iteration_s * p->throughput_samples_per_s /
                                               (double)(plan->nodes * plan->devices_per_node)
                                         : 0,
        .parameters = workload->parameters + workload->frozen_elements,
        .layers = dl_workload_layers(workload),
        .release_assumed = framework->loaded.release_assumed,
        .anchored = plan->measured.compute_scale > 0,
    };
}

void dl_predict_correct(const struct dl_predict_request *r, struct dl_prediction *p) {
    const struct dl_interval_model *model = r->framework->errors.intervals;
    if (model == NULL) return;
    const struct dl_interval_case c =
        dl_interval_case_of(r->system, r->workload, r->framework, r->plan, p);
    double slow = dl_interval_end_log(model, &c, DL_SLOW_END, NULL),
           fast = dl_interval_end_log(model, &c, DL_FAST_END, NULL),
           sigma = dl_interval_sigma_log(model, &c);
    if (r->framework->errors.measured != NULL) {
        const struct dl_posterior_shift shift =
            dl_posterior_shift(r->framework->errors.measured, r->workload->name, &c);
        apply(&shift, p);
        slow = dl_posterior_end_log(r->framework->errors.measured, &shift, slow);
        fast = dl_posterior_end_log(r->framework->errors.measured, &shift, fast);
        sigma = fmin(sigma, shift.sigma_log);
    }
    struct dl_interval_case job = c;
    job.anchored = true;
    p->spread.job_end_log =
        hypot(dl_interval_end_log(model, &job, DL_SLOW_END, NULL), Z80 * model->job_sigma_log);
    p->spread.sigma_log = sigma;
    p->spread.plans_sigma_log = model->plans_sigma_log;
    p->spread.frameworks_sigma_log = dl_interval_frameworks_sigma_log(model, &c);
    p->iteration_low_s = p->iteration_s * exp(-fast);
    p->iteration_high_s = p->iteration_s * exp(slow);
}

double dl_prediction_framework_half_log(const struct dl_prediction *p) {
    return dl_interval_half_log(p->spread.frameworks_sigma_log, p->iteration_low_s,
                                p->iteration_high_s);
}

double dl_prediction_plan_half_log(const struct dl_prediction *p) {
    return dl_interval_half_log(p->spread.plans_sigma_log, p->iteration_low_s, p->iteration_high_s);
}

/* By throughput: alternatives may differ in samples per iteration. */
static double apart_log(const struct dl_prediction *a, const struct dl_prediction *b) {
    return fabs(log(a->throughput_samples_per_s / b->throughput_samples_per_s));
}

bool dl_prediction_frameworks_tie(const struct dl_prediction *a, const struct dl_prediction *b) {
    return apart_log(a, b) <=
           hypot(dl_prediction_framework_half_log(a), dl_prediction_framework_half_log(b));
}

bool dl_prediction_plans_tie(const struct dl_prediction *a, const struct dl_prediction *b) {
    return apart_log(a, b) <= hypot(dl_prediction_plan_half_log(a), dl_prediction_plan_half_log(b));
}

bool dl_prediction_is_slow(const struct dl_prediction *p, double measured_s) {
    const double end = p->spread.job_end_log;
    return measured_s > (end > 0 ? p->iteration_s * exp(end) : p->iteration_high_s);
}
