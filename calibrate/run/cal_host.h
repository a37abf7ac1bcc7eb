/* cal_host.h - facts of this machine. Linux: /proc and /sys; what is not there stays unknown. */
#ifndef DL_CALIBRATE_RUN_CAL_HOST_H
#define DL_CALIBRATE_RUN_CAL_HOST_H

#include <stdint.h>

#include "model/base/arena.h"

struct dl_cal_host {
    const char *name, *kernel, *cpu; /* node name; "Linux 6.1.0 x86_64"; model name */
    int64_t sockets, cores;          /* cores: online processors */
    /* of those, what this process may use (taskset, Slurm's binding), as the libraries do */
    int64_t allowed;
    double memory_bytes, last_cache_bytes; /* NAN: unknown */
    double clock_hz;                       /* as /proc/cpuinfo says at this moment; NAN: unknown */
};

/* The strings are never NULL. */
void dl_cal_host_read(struct dl_arena *arena, struct dl_cal_host *out);
double dl_cal_now_s(void);                            /* monotonic */
double dl_cal_load(void);                             /* load average of a minute; NAN: unknown */
const char *dl_cal_time_text(struct dl_arena *arena); /* now, UTC: 2024-01-31T12:00:00Z */

#endif
