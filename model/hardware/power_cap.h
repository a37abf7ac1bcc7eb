/* power_cap.h - what a limit on a device's power does to its clock. F-POWER-CAP
 */
#ifndef DL_MODEL_HARDWARE_POWER_CAP_H
#define DL_MODEL_HARDWARE_POWER_CAP_H

#include "model/hardware/device.h"

/* Of the span from idle to load: kernels bound by memory, and waiting with clocks up
 * (F-POWER); values for all devices, chosen by the power of training in data/energy/power.csv. */
#define DL_POWER_MEMORY_FRAC 0.8
#define DL_POWER_WAIT_FRAC 0.5

/* Power of a device that waits for work, and in kernels bound by arithmetic [W]; where its file is
 * silent 0.15 of the rated power, and the rated power. NAN without a rated power. */
double dl_device_idle_w(const struct dl_device *device);
double dl_device_load_w(const struct dl_device *device);

/* F-POWER-CAP: time of kernels under the device's power limit / without it, at least 1. `frac`: the
 * share of the span from idle to load that they draw without it, above 0 to 1. 1 without a limit,
 * with one above what they draw, and where the power is not known. */
double dl_power_cap_slowdown(const struct dl_device *device, double frac);

#endif
