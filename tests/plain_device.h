/* plain_device.h - a GPU without kernel-time models, for tests that fit or apply one. */
#ifndef DL_TESTS_PLAIN_DEVICE_H
#define DL_TESTS_PLAIN_DEVICE_H

#include "model/machine/device.h"
#include "model/machine/kernel_model.h"

static inline struct dl_device plain_device(struct dl_rate *rates, int rate_count,
                                            double kernel_latency_s) {
    return (struct dl_device){.name = "plain",
                              .kind = DL_DEVICE_GPU,
                              .memory_bandwidth_bytes_per_s = 500e9,
                              .memory_efficiency = 0.8,
                              .l2_bytes = NAN,
                              .unit_count = 64,
                              .kernel_latency_s = kernel_latency_s,
                              .rates = rates,
                              .rate_count = rate_count};
}

/* A model without corrections: 10 us, 10 TFLOP/s, 500 GB/s. */
static inline struct dl_kernel_model plain_model(enum dl_op op, enum dl_precision precision) {
    return (struct dl_kernel_model){.op = (int)op,
                                    .pass = DL_FORWARD,
                                    .precision = (int)precision,
                                    .latency_s = 10e-6,
                                    .rate_flop_per_s = 10e12,
                                    .bandwidth_bytes_per_s = 500e9,
                                    .gains.unaligned_gain = 1,
                                    .gains.m_trans_gain = 1,
                                    .gains.n_trans_gain = 1,
                                    .gains.gain_3x3 = 1,
                                    .gains.gain_5x5 = 1,
                                    .gains.narrow_gain = 1,
                                    .gains.pointwise_gain = 1,
                                    .gains.padded_pointwise_gain = 1,
                                    .gains.grouped_gain = 1,
                                    .channel_multiple = 1,
                                    .algorithms.tile_64_gain = 1,
                                    .algorithms.tile_32_gain = 1,
                                    .base_sigma_log = 0.2,
                                    .correction.sigma_log = 0.1};
}

#endif
