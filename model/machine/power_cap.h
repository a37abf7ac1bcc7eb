/* power_cap.h - what a limit on a device's power does to its clock, and what a clock does to its
 * power. F-POWER-CAP, F-POWER-CLOCK
 */
#ifndef DL_MODEL_MACHINE_POWER_CAP_H
#define DL_MODEL_MACHINE_POWER_CAP_H

#include "model/machine/device.h"

/* Of the span from idle to load: kernels bound by memory, and waiting with clocks up
 * (F-POWER); values for all devices, chosen by the power of training in data/energy/power.csv. */
#define DL_POWER_MEMORY_FRAC 0.8
#define DL_POWER_WAIT_FRAC 0.5

/* Power of a device that waits for work, and in kernels bound by arithmetic at its highest clock
 * [W]; where its file is silent 0.15 of the rated power, and the rated power. NAN without a rated
 * power. */
double dl_device_idle_w(const struct dl_device *device);
double dl_device_load_w(const struct dl_device *device);

/* What the device may draw [W]: a limit that was set, else its rated power; NAN: not known. */
double dl_device_limit_w(const struct dl_device *device);

/* F-POWER-CLOCK: power in kernels bound by arithmetic at `ratio` (above 0) times the clock at which
 * they draw load_w [W]. */
double dl_power_at_clock_w(double idle_w, double load_w, double ratio);

/* F-POWER-CAP: time of kernels under the device's power limit / at its highest clock, at least 1.
 * `frac`: the share of the span from idle to load that they draw there, above 0 to 1. 1 with a
 * limit above what they draw, and where the power is not known. */
double dl_power_cap_slowdown(const struct dl_device *device, double frac);

/* F-POWER-CAP: the same of kernels bound by arithmetic. Where the rated power already lowers their
 * clock (uncapped_load_w): time under the limit / under the rated power, as they were timed. */
double dl_power_cap_arithmetic(const struct dl_device *device, double frac);

#endif
