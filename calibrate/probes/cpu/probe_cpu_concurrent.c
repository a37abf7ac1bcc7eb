/* probe_cpu_concurrent.c - probe "beside": what a device of a few cores attains while the other
 * devices of this host work too. Shape "... devices=K" and a shape of the probe that is asked for
 * by pass: "product" (gemm, else matmul) or "copy" (stream). K - 1 copies of this program do the
 * same on the next cores until this one closes; what is timed is this one's.
 *
 * dlmodel-probe-cpu --cores N ...: this process and its libraries on the first N of its cores. The
 * cores that it could use before stay in the environment, for the others.
 */
#define _GNU_SOURCE /* sched_setaffinity, CPU_SET */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OTHERS = 255, TEXT = 160 };
static const char CORES[] = "DLMODEL_PROBE_CORES", COUNT[] = "DLMODEL_PROBE_CORES_EACH";
static const char PROGRAM[] = "/proc/self/exe";

struct beside {
    const struct dl_probe *inner;
    struct dl_point point;
    void *state;
    pid_t others[MAX_OTHERS];
    int other_count;
};

static bool usable(const struct dl_probe *probe) {
    return probe->open != NULL && probe->unavailable() == NULL;
}

static const struct dl_probe *inner_of(const char *pass) {
    if (strcmp(pass, "copy") == 0) return &dl_probe_stream;
    return usable(&dl_probe_gemm)     ? &dl_probe_gemm
           : usable(&dl_probe_matmul) ? &dl_probe_matmul
                                      : NULL;
}

static const char *unavailable(void) {
    return inner_of("product") == NULL ? "built without OpenBLAS and oneDNN" : NULL;
}

/* Cores [group * each, (group + 1) * each) of those in CORES for this process. False: there are not
 * so many. */
static bool take_cores(int group, int each) {
    const char *at = getenv(CORES);
    cpu_set_t own;
    int seen = 0, taken = 0;
    CPU_ZERO(&own);
    while (at != NULL && *at != 0) {
        char *end;
        const long core = strtol(at, &end, 10);
        if (end == at || core < 0 || core >= CPU_SETSIZE) return false;
        if (seen / each == group) CPU_SET((size_t)core, &own), taken++;
        seen++;
        at = *end == ',' ? end + 1 : end;
    }
    return taken == each && sched_setaffinity(0, sizeof own, &own) == 0;
}

static void remember_cores(int each) {
    cpu_set_t allowed;
    char text[8 * CPU_SETSIZE] = "", number[16];
    size_t used = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET((size_t)core, &allowed) || used + 9 > sizeof text) continue;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? "," : "", core);
    }
    snprintf(number, sizeof number, "%d", each);
    setenv(CORES, text, 1);
    setenv(COUNT, number, 1);
    setenv("OMP_NUM_THREADS", number, 1);
    setenv("OPENBLAS_NUM_THREADS", number, 1);
}

void dl_probe_cpu_cores(int argc, char **argv) {
    if (argc < 3 || strcmp(argv[1], "--cores") != 0) return;
    const int each = atoi(argv[2]);
    if (each < 1) return;
    remember_cores(each);
    if (!take_cores(0, each)) {
        fprintf(stderr, "%s: --cores %d: there are not so many, or they cannot be chosen\n",
                argv[0], each);
        exit(DL_ERR_BACKEND);
    }
    argv[2] = argv[0]; /* once more, for libraries count the cores when they are loaded */
    execv(PROGRAM, argv + 2);
    fprintf(stderr, "%s: cannot start again: %s\n", argv[0], strerror(errno));
    exit(DL_ERR_BACKEND);
}

/* One of the others: works until the one that measures ends or ends it. */
static int keep_busy(const struct beside *b, int ready) {
    struct dl_err err = {0};
    void *state;
    if (b->inner->open(&b->point, &state, &err) != DL_OK || !(b->inner->run(state, 1, &err) >= 0)) {
        fprintf(stderr, "beside: %s\n", err.message);
        return DL_ERR_BACKEND;
    }
    if (write(ready, "r", 1) != 1) return DL_ERR_BACKEND;
    for (const pid_t parent = getppid(); getppid() == parent;) {
        if (!(b->inner->run(state, 1, &err) >= 0)) return DL_ERR_BACKEND;
    }
    return DL_OK;
}

int dl_probe_cpu_busy(int argc, char **argv) {
    enum { WORDS = 6 }; /* program --busy GROUP PIPE PASS SHAPE */
    if (argc != WORDS || strcmp(argv[1], "--busy") != 0) return -1;
    struct beside b = {.point = {.shape = argv[5], .pass = argv[4], .directory = "."}};
    b.inner = inner_of(argv[4]);
    return b.inner == NULL ? DL_ERR_BACKEND : keep_busy(&b, atoi(argv[3]));
}

static void end_others(struct beside *b) {
    for (int i = 0; i < b->other_count; i++) kill(b->others[i], SIGKILL);
    for (int i = 0; i < b->other_count; i++) waitpid(b->others[i], NULL, 0);
    b->other_count = 0;
}

/* A program anew, not a copy of this one: libraries with threads do not survive fork. */
static pid_t start_other(const struct beside *b, int group, int each, int ready) {
    char number[16], pipe_text[16], pass[TEXT], shape[TEXT], flag[] = "--busy",
                                                             name[] = "dlmodel-probe-cpu";
    snprintf(number, sizeof number, "%d", group);
    snprintf(pipe_text, sizeof pipe_text, "%d", ready);
    snprintf(pass, sizeof pass, "%s", b->point.pass);
    snprintf(shape, sizeof shape, "%s", b->point.shape);
    char *const words[] = {name, flag, number, pipe_text, pass, shape, NULL};
    const pid_t parent = getpid(), other = fork();
    if (other != 0) return other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !take_cores(group, each)) _exit(DL_ERR_BACKEND);
    execv(PROGRAM, words);
    _exit(DL_ERR_BACKEND);
}

static void beside_close(void *state) {
    struct beside *b = state;
    end_others(b);
    b->inner->close(b->state);
    free(b);
}

static enum dl_code start_others(struct beside *b, int devices, struct dl_err *err) {
    const char *each = getenv(COUNT);
    int ready[2];
    char byte;
    if (each == NULL) return dl_fail(err, DL_ERR_BACKEND, "the probe beside needs --cores");
    if (pipe(ready) != 0)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    for (int group = 1; group < devices; group++) {
        const pid_t other = start_other(b, group, atoi(each), ready[1]);
        if (other < 0) break;
        b->others[b->other_count++] = other;
    }
    close(ready[1]);
    int heard = 0;
    /* ends when all of them ended */
    while (heard < devices - 1 && read(ready[0], &byte, 1) == 1) heard++;
    close(ready[0]);
    if (heard == devices - 1) return DL_OK;
    end_others(b);
    return dl_fail(err, DL_ERR_SYSTEM, "only %d of %d other devices work", heard, devices - 1);
}

static enum dl_code beside_open(const struct dl_point *point, void **state, struct dl_err *err) {
    const long devices = dl_point_number(point, "devices", 1);
    struct beside *b = calloc(1, sizeof *b);
    if (b == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    b->point = *point;
    b->inner = inner_of(point->pass);
    enum dl_code code = b->inner == NULL || devices < 1 || devices > MAX_OTHERS + 1
                            ? dl_fail(err, DL_ERR_SYSTEM, "cannot run %s here", point->shape)
                            : b->inner->open(point, &b->state, err);
    if (code == DL_OK) {
        code = start_others(b, (int)devices, err);
        if (code != DL_OK) b->inner->close(b->state);
    }
    if (code != DL_OK) {
        free(b);
        return code;
    }
    *state = b;
    return DL_OK;
}

static double beside_run(void *state, long calls, struct dl_err *err) {
    const struct beside *b = state;
    return b->inner->run(b->state, calls, err);
}

static enum dl_code beside_verify(void *state, struct dl_err *err) {
    const struct beside *b = state;
    return b->inner->verify != NULL ? b->inner->verify(b->state, err) : DL_OK;
}

static const char *beside_implementation(const void *state) {
    const struct beside *b = state;
    return b->inner->implementation != NULL ? b->inner->implementation(b->state) : NULL;
}

const struct dl_probe dl_probe_beside = {"beside",      "devices of a few cores beside each other",
                                         1e-3,          unavailable,
                                         beside_open,   beside_run,
                                         beside_verify, beside_implementation,
                                         beside_close,  NULL};
