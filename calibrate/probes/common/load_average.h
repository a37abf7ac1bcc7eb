/* load_average.h - load average of this host, for the probes and for the program that starts them,
 * which share no object files. */
#ifndef DL_CALIBRATE_PROBES_COMMON_LOAD_AVERAGE_H
#define DL_CALIBRATE_PROBES_COMMON_LOAD_AVERAGE_H

#include <math.h>
#include <stdio.h>

/* Over one minute; NAN: unknown. */
static inline double dl_load_average(void) {
    double load_average;
    FILE *file = fopen("/proc/loadavg", "r");
    if (file == NULL) return NAN;
    if (fscanf(file, "%lf", &load_average) != 1) load_average = NAN;
    fclose(file);
    return load_average;
}

#endif
