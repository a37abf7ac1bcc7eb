/* cal_host.c - see the header. */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "calibrate/run/cal_host.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Text behind "key : " of a line of /proc/cpuinfo, or NULL. */
static char *value_of(char *line, const char *key) {
    const size_t length = strlen(key);
    char *colon = strchr(line, ':');
    if (strncmp(line, key, length) != 0 || colon == NULL) return NULL;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = 0;
    return colon;
}

static void read_processors(struct dl_arena *arena, struct dl_cal_host *out) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[1024];
    unsigned long long sockets_seen = 0; /* bit of each physical id below 64 */
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *text;
        if ((text = value_of(line, "model name")) != NULL)
            out->cpu = dl_arena_strdup(arena, text);
        else if ((text = value_of(line, "physical id")) != NULL)
            sockets_seen |= 1ull << (strtoul(text, NULL, 10) % 64);
        else if ((text = value_of(line, "cpu MHz")) != NULL)
            out->clock_hz = fmax(1e6 * strtod(text, NULL), 1e6);
    }
    fclose(file);
    for (; sockets_seen != 0; sockets_seen &= sockets_seen - 1) out->sockets++;
}

static double last_cache(void) {
    double largest = NAN;
    for (int i = 0; i < 8; i++) {
        char path[96], suffix = 0;
        double size = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(path, "r");
        if (file == NULL) break;
        if (fscanf(file, "%lf%c", &size, &suffix) >= 1 && size > 0) {
            largest = fmax(largest, size * (suffix == 'M'   ? 1048576.0
                                            : suffix == 'K' ? 1024.0
                                                            : 1.0));
        }
        fclose(file);
    }
    return largest;
}

void dl_cal_host_read(struct dl_arena *arena, struct dl_cal_host *out) {
    struct utsname names;
    *out = (struct dl_cal_host){.name = "unknown",
                                .kernel = "unknown",
                                .cpu = "unknown",
                                .clock_hz = NAN,
                                .memory_bytes = NAN};
    if (uname(&names) == 0) {
        out->name = dl_arena_strdup(arena, names.nodename);
        out->kernel =
            dl_arena_printf(arena, "%s %s %s", names.sysname, names.release, names.machine);
    }
    read_processors(arena, out);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
               page = sysconf(_SC_PAGESIZE);
    out->cores = cores < 1 ? 1 : cores;
    cpu_set_t own;
    const int64_t count = sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 0;
    out->allowed = count < 1 || count > out->cores ? out->cores : count;
    if (out->sockets < 1) out->sockets = 1;
    if (pages > 0 && page > 0) out->memory_bytes = (double)pages * (double)page;
    out->last_cache_bytes = last_cache();
}

const char *dl_cal_time_text(struct dl_arena *arena) {
    char text[32] = "unknown";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return dl_arena_strdup(arena, text);
}
