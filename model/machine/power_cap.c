/* power_cap.c - see the header.
 *
 * A device lowers its clock until it draws no more than its limit, the rated power where nobody set
 * another. Power above idle goes with clock x voltage^2. Near the highest clock the voltage follows
 * the clock, and power its cube; below VOLTAGE_FLOOR of the highest voltage it stays, and power
 * goes with the clock alone.
 */
#include "model/machine/power_cap.h"

#include <math.h>

/* Assumed where the files are silent: 60 of 400 W (A100), 80 of 700 W (H200). */
static const double IDLE_FRAC = 0.15;
/* Lowest / highest voltage: tools/fit_cap.py, from training under limits (cap.csv). */
static const double VOLTAGE_FLOOR = 0.887;
/* Of the span; no driver takes a limit as low as this. */
static const double LEAST_SPAN = 0.05;

static bool given(double value) { return dl_known(value) && value > 0; }

double dl_device_idle_w(const struct dl_device *device) {
    return given(device->power.idle_w) ? device->power.idle_w : IDLE_FRAC * device->power.tdp_w;
}

double dl_device_load_w(const struct dl_device *device) {
    return given(device->power.load_w) ? device->power.load_w : device->power.tdp_w;
}

double dl_device_limit_w(const struct dl_device *device) {
    return given(device->power.power_limit_w) ? device->power.power_limit_w : device->power.tdp_w;
}

double dl_power_at_clock_w(double idle_w, double load_w, double ratio) {
    const double voltage = fmax(VOLTAGE_FLOOR, ratio);
    return idle_w + (load_w - idle_w) * ratio * voltage * voltage;
}

/* Time / time at the highest clock, of kernels that draw frac of the span from idle to load_w there
 * and may draw limit_w. */
static double slowdown(const struct dl_device *device, double load_w, double limit_w, double frac) {
    const double idle_w = dl_device_idle_w(device), span_w = frac * (load_w - idle_w);
    if (!given(limit_w) || !given(span_w)) return 1;
    const double left = fmax(LEAST_SPAN, (limit_w - idle_w) / span_w);
    if (left >= 1) return 1;
    return left < pow(VOLTAGE_FLOOR, 3) ? VOLTAGE_FLOOR * VOLTAGE_FLOOR / left : 1 / cbrt(left);
}

double dl_power_cap_slowdown(const struct dl_device *device, double frac) {
    return slowdown(device, dl_device_load_w(device), dl_device_limit_w(device), frac);
}

double dl_power_cap_arithmetic(const struct dl_device *device, double frac) {
    const double uncapped_w = device->power.uncapped_load_w;
    if (!given(uncapped_w)) return dl_power_cap_slowdown(device, frac);
    return fmax(1, slowdown(device, uncapped_w, dl_device_limit_w(device), frac) /
                       slowdown(device, uncapped_w, device->power.tdp_w, frac));
}
