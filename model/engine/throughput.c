/* throughput.c - see throughput.h. */
#include "model/engine/throughput.h"

#include <math.h>
#include <string.h>

#include "model/workload/layer.h"

/* The formula's own constants: a multiply-add is 2 flop, and backward does two for each of the
 * forward pass. */
static const double FLOP = 2, PASSES = 3;

/* Whether the plan computes the layer's forward pass twice. The head, whose output is the
 * vocabulary, follows the layers that full recomputation repeats. */
static bool recomputes(const struct dl_workload *workload, const struct dl_layer *layer,
                       enum dl_recompute recompute) {
    if (recompute == DL_RECOMPUTE_SELECTIVE) return layer->recomputable;
    if (recompute != DL_RECOMPUTE_FULL) return false;
    return !(dl_known(workload->vocabulary) && layer->out.channels >= workload->vocabulary);
}

double dl_tokens_per_sample(const struct dl_workload *workload) {
    const struct dl_shape *input = &workload->input;
    const bool sequence =
        input->dims == 1 && workload->family != NULL &&
        (strcmp(workload->family, "transformer") == 0 || strcmp(workload->family, "rnn") == 0);
    return sequence ? input->size[DL_DIMS - 1] : NAN;
}

struct dl_throughput dl_throughput_of(const struct dl_device *device,
                                      const struct dl_workload *workload,
                                      const struct dl_plan *plan,
                                      const struct dl_prediction *prediction) {
    const double devices = (double)(plan->nodes * plan->devices_per_node),
                 samples_per_s = prediction->throughput_samples_per_s;
    struct dl_throughput out = {.tokens = dl_tokens_per_sample(workload), .peak_flop_per_s = NAN};
    const unsigned modules =
        plan->recompute == DL_RECOMPUTE_SELECTIVE ? plan->recomputed.modules : 0;
    double macs = 0, again = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        /* F-FROZEN: no gradients of frozen weights, nor of what only they read */
        const double passes = layer->detached ? 1 : layer->frozen ? PASSES - 1 : PASSES;
        macs += passes / PASSES * dl_layer_model_macs(layer);
        if (!layer->detached && recomputes(workload, layer, plan->recompute))
            again += dl_layer_model_macs(layer);
    }
    if (device != NULL) out.peak_flop_per_s = dl_device_peak(device, plan->precision);
    out.model_flop = macs > 0 ? PASSES * FLOP * macs : NAN;
    if (dl_known(workload->transformer_layers))
        again *=
            dl_plan_recomputed_frac(plan, ceil(workload->transformer_layers / (double)plan->pp));
    if ((modules & (1u << DL_MODULE_MLP | 1u << DL_MODULE_MOE)) != 0)
        again = NAN; /* layers of a network do not say which module they are in */
    else if (modules != 0 && (modules & 1u << DL_MODULE_ATTENTION) == 0)
        again = 0;
    out.hardware_flop = out.model_flop + FLOP * again;
    out.tokens_per_s = samples_per_s * out.tokens;
    out.device_tokens_per_s = out.tokens_per_s / devices;
    out.device_model_flop_per_s = samples_per_s * out.model_flop / devices;
    out.device_hardware_flop_per_s = samples_per_s * out.hardware_flop / devices;
    out.mfu_frac = out.device_model_flop_per_s / out.peak_flop_per_s;
    const double hfu_frac = out.device_hardware_flop_per_s / out.peak_flop_per_s;
    out.hfu_frac = hfu_frac <= 1 ? hfu_frac : NAN;
    return out;
}

struct dl_run_total dl_run_total_of(const struct dl_workload *workload, const struct dl_plan *plan,
                                    const struct dl_prediction *prediction,
                                    const struct dl_run_length *length) {
    const double dataset =
        plan->input.dataset_samples > 0 ? plan->input.dataset_samples : workload->epoch_samples;
    struct dl_run_total out = {NAN, NAN, NAN, NAN, NAN};
    if (length->tokens > 0) out.samples = length->tokens / dl_tokens_per_sample(workload);
    if (length->epoch_count > 0) out.samples = length->epoch_count * dataset;
    if (!dl_known(out.samples)) return out;
    /* what an iteration adds: without the samples of spare workers, whose gradients are dropped */
    const double each = prediction->throughput_samples_per_s * prediction->iteration_s;
    out.iteration_count = ceil(out.samples / each * (1 - 1e-12));
    out.time_s = out.iteration_count * prediction->iteration_s;
    if (prediction->first_epoch_iteration_s > 0 && dl_known(dataset)) {
        const double first = fmin(out.iteration_count, ceil(dataset / each * (1 - 1e-12)));
        out.first_epoch_s = first * prediction->first_epoch_iteration_s;
        out.time_s += out.first_epoch_s - first * prediction->iteration_s;
    }
    out.device_time_s = out.time_s * (double)(plan->nodes * plan->devices_per_node);
    return out;
}
