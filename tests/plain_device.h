/* plain_device.h - a GPU without kernel-time models, for tests that fit or apply one. */
#ifndef DL_TESTS_PLAIN_DEVICE_H
#define DL_TESTS_PLAIN_DEVICE_H

#include "model/machine/device.h"

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

#endif
