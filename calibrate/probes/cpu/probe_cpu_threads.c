/* probe_cpu_threads.c - one core for each worker thread of a library. New threads begin on the core
 * of the one that made them, and the kernel may leave two there for a second or more: samples of
 * that time say half of the rate. Linux; where the calls fail, threads stay where the kernel puts
 * them. */
#define _GNU_SOURCE /* sched_setaffinity, CPU_SET */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Core number `index` (counted round and round) of those this process may use, as a set of its own.
 */
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

/* The main thread stays free: it finds the core that is left, and threads that it makes later begin
 * with all cores. */
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
