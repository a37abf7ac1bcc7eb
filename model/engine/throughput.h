/* throughput.h - what people read off a training run: tokens, model flop/s, MFU, HFU, and the
 * length of a run in time and device-hours.
 *
 * F-MODEL-FLOP: 6 flop for each multiply-add of a sample's forward pass (2 forward, 4 backward),
 * matrix products and convolutions alone, as PaLM's MFU counts: attention by the pairs that its
 * mask and window leave, half of them where it is causal; experts those that a token goes to, no
 * capacity, no padding. F-MFU: model flop/s of a device / its dense datasheet rate at the plan's
 * precision. F-HFU: the same with the forward multiply-adds that the plan recomputes, 2 flop each:
 * all of a transformer's layers but the head (full), or those that a layer marks as recomputable
 * (selective). Scores that a flash kernel recomputes on chip count in neither. Above 1 F-HFU has no
 * meaning: Winograd and FFT kernels do fewer multiply-adds than the direct convolutions counted. */
#ifndef DL_MODEL_ENGINE_THROUGHPUT_H
#define DL_MODEL_ENGINE_THROUGHPUT_H

#include "model/engine/predict.h"

struct dl_throughput {      /* NAN: unknown or without meaning */
    double tokens;          /* of a sample; the input is no sequence: NAN */
    double model_flop;      /* of a sample, forward and backward; F-MODEL-FLOP */
    double hardware_flop;   /* with recomputation; F-HFU */
    double peak_flop_per_s; /* of a device, dense, at the plan's precision */
    double tokens_per_s, device_tokens_per_s;
    double device_model_flop_per_s, device_hardware_flop_per_s;
    double mfu_frac, hfu_frac; /* F-MFU, F-HFU */
};

/* Tokens of a sample; NAN where the input is no sequence of them. */
double dl_tokens_per_sample(const struct dl_workload *workload);

/* Of a prediction of this plan. device: NULL where devices differ (no peak). Tokens, flop and
 * their rates only; errors: none. */
struct dl_throughput dl_throughput_of(const struct dl_device *device,
                                      const struct dl_workload *workload,
                                      const struct dl_plan *plan,
                                      const struct dl_prediction *prediction);

/* How long a run is: tokens (of sequences), or epochs of the dataset; 0: not asked for. */
struct dl_run_length {
    double tokens, epoch_count;
};
struct dl_run_total { /* NAN: not asked for, or unknown */
    double samples, iteration_count, time_s, device_time_s;
    double first_epoch_s; /* part of time_s; NAN: as all other epochs */
};
/* F-RUN-LENGTH: tokens / tokens of a sample, or epochs x samples of the dataset; the last
 * iteration is a whole one. The first epoch reads from storage what the page cache then holds.
 * Time of training alone: no start, checkpoint, evaluation or restart.
 * devices: all that the run occupies, GPUs where they are GPUs. */
struct dl_run_total dl_run_total_of(const struct dl_workload *workload, const struct dl_plan *plan,
                                    const struct dl_prediction *prediction,
                                    const struct dl_run_length *length);

#endif
