/* probe_cpu_threads.c - binds each worker thread of a library to a core. New threads start on the
 * core of their creator, and the kernel may leave two on it for a second or more: samples of that
 * time show half the rate. Linux; where the calls fail, the kernel places the threads. */
#define _GNU_SOURCE /* sched_setaffinity, CPU_SET */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* The set of one core: number `index`, round-robin, of those that this process may use. */
static bool pick(const cpu_set_t *allowed, int index, cpu_set_t *out) {
    const int count = CPU_COUNT(allowed);
    int seen = 0;
    if (count < 2) return false;
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, allowed) || seen++ != index % count) continue;
        CPU_ZERO(out);
        CPU_SET(core, out);
        return true;
    }
    return false;
}

/* The main thread stays unbound: it finds the free core, and threads that it creates later inherit
 * all cores. */
void dl_spread_threads(void) {
    cpu_set_t allowed, own;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0) return;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return;
    int index = 0;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread <= 0 || thread == getpid()) continue;
        if (pick(&allowed, ++index, &own)) sched_setaffinity(thread, sizeof own, &own);
    }
    closedir(tasks);
}
