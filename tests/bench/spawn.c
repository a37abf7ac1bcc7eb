/* spawn.c - spawn NAME RUNS PROGRAM ARGS...: time of the whole process, from before it is started
 * until it has ended, and the processor's time that it took; medians. Prints; judges nothing. */
#define _DEFAULT_SOURCE /* wait4 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv) {
    enum { MAX_RUNS = 1000 };
    static double wall_s[MAX_RUNS], cpu_s[MAX_RUNS];
    const int runs = argc > 3 ? atoi(argv[2]) : 0;
    posix_spawn_file_actions_t quiet;
    if (runs < 1 || runs > MAX_RUNS || posix_spawn_file_actions_init(&quiet) != 0) return 2;
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < runs; i++) {
        pid_t child;
        int status;
        struct rusage used;
        const double start_s = now_s();
        if (posix_spawn(&child, argv[3], &quiet, NULL, argv + 3, environ) != 0) return 1;
        if (wait4(child, &status, 0, &used) != child || status != 0) {
            fprintf(stderr, "%s: it failed\n", argv[1]);
            return 1;
        }
        wall_s[i] = now_s() - start_s;
        cpu_s[i] = seconds(used.ru_utime) + seconds(used.ru_stime);
    }
    qsort(wall_s, (size_t)runs, sizeof *wall_s, by_value);
    qsort(cpu_s, (size_t)runs, sizeof *cpu_s, by_value);
    printf("whole process: %-36s %8.2f ms, processor %.2f ms (medians of %d; %.2f to %.2f ms)\n",
           argv[1], 1e3 * wall_s[runs / 2], 1e3 * cpu_s[runs / 2], runs, 1e3 * wall_s[0],
           1e3 * wall_s[runs - 1]);
    return 0;
}
