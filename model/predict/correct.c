/* correct.c - see correct.h. */
#include "model/predict/correct.h"

#include <math.h>

#include "model/predict/interval.h"

#define Z80 1.2815515655446004 /* 90 % quantile of the normal distribution */

/* Exposed communication by one factor, what the devices and their host do by another. */
static void apply(const struct dl_posterior_shift *shift, struct dl_prediction *p) {
    const double compute = exp(shift->compute_log), comm = exp(shift->communication_log),
                 before_s = p->iteration_s;
    double *const local[] = {&p->forward_s, &p->backward_s,  &p->update_s,  &p->compute_s,
                             &p->bubble_s,  &p->straggler_s, &p->overhead_s};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) *local[i] *= compute;
    p->comm_s *= comm;
    p->exposed_comm_s *= comm;
    p->iteration_s =
        p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s + p->overhead_s;
    const double ratio = p->iteration_s / before_s;
    p->throughput_samples_per_s /= ratio;
    p->epoch_s *= ratio;
    p->scaling_efficiency *= compute / ratio;
}

void dl_predict_correct(const struct dl_predict_request *r, struct dl_prediction *p) {
    const struct dl_interval_model *model = r->framework->intervals;
    const double exposed_frac = p->iteration_s > 0 ? p->exposed_comm_s / p->iteration_s : 0;
    if (model == NULL) return;
    const struct dl_interval_case c = {
        .framework = r->framework->name,
        .release = r->framework->release,
        .device = r->system->device->name,
        .precision = r->plan->precision,
        .exposed_frac = exposed_frac,
        .model_sigma_log = p->model_sigma_log,
        .anchored = r->plan->compute_scale > 0,
    };
    double sigma = dl_interval_sigma_log(model, &c), quantile = model->quantile_ratio;
    if (r->framework->measured != NULL) {
        const struct dl_posterior_shift shift = dl_posterior_shift(
            r->framework->measured, r->workload->name, r->plan->precision, exposed_frac);
        apply(&shift, p);
        if (Z80 * shift.sigma_log < quantile * sigma) {
            sigma = shift.sigma_log;
            quantile = Z80;
        }
    }
    p->sigma_log = sigma;
    p->shared_sigma_log = fmin(sigma, dl_interval_shared_sigma_log(model, &c));
    p->iteration_low_s = p->iteration_s * exp(-quantile * sigma);
    p->iteration_high_s = p->iteration_s * exp(quantile * sigma);
}

/* Half of the 80 % interval without the part of the errors that alternatives share. */
static double own_half_log(const struct dl_prediction *p) {
    const double half = log(p->iteration_high_s / p->iteration_s), sigma = p->sigma_log,
                 shared = p->shared_sigma_log;
    if (!dl_known(sigma) || !dl_known(shared) || !(sigma > 0)) return half;
    return half * sqrt(fmax(0, 1 - shared * shared / (sigma * sigma)));
}

bool dl_prediction_ties(const struct dl_prediction *a, const struct dl_prediction *b) {
    /* by throughput: alternatives may differ in samples per iteration */
    const double difference = fabs(log(a->throughput_samples_per_s / b->throughput_samples_per_s));
    return difference <= hypot(own_half_log(a), own_half_log(b));
}
