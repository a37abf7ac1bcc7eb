/* cal_host.h - facts of this machine from /proc and /sys (Linux); missing facts stay unknown. */
#ifndef DL_CALIBRATE_RUN_CAL_HOST_H
#define DL_CALIBRATE_RUN_CAL_HOST_H

#include <stdint.h>

#include "model/core/arena.h"

struct dl_cal_host {
    const char *name, *kernel, *cpu; /* node name; "Linux 6.1.0 x86_64"; model name */
    int64_t sockets, cores;          /* cores: online processors */
    /* of those, usable by this process and its libraries (taskset, Slurm's binding) */
    int64_t allowed;
    double memory_bytes, last_cache_bytes; /* NAN: unknown */
    double clock_hz;                       /* current value in /proc/cpuinfo; NAN: unknown */
};

/* The strings are never NULL. */
void dl_cal_host_read(struct dl_arena *arena, struct dl_cal_host *out);
const char *dl_cal_time_text(struct dl_arena *arena); /* now, UTC: 2024-01-31T12:00:00Z */

#endif
