/* probe_cpu_concurrent.c - probe "concurrent": what a device of a few cores attains while the other
 * devices of this host compute too. Shape "... devices=K" with a shape of the inner probe, which
 * the pass selects: "gemm" (gemm, else matmul) or "copy" (stream). K - 1 further processes of this
 * program run the same work on the next cores until the measuring one closes; only its own calls
 * are timed.
 *
 * dlmodel-probe-cpu --cores N ...: binds this process and its libraries to the first N of its
 * cores. The environment keeps the list of all cores, for the other processes. */
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

struct concurrent {
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
    return inner_of("gemm") == NULL ? "built without OpenBLAS and oneDNN" : NULL;
}

/* Binds this process to cores [group * each, (group + 1) * each) of the list in CORES. false: there
 * are too few. */
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
        fprintf(stderr, "%s: --cores %d: too few cores, or the process may not bind to them\n",
                argv[0], each);
        exit(DL_ERR_BACKEND);
    }
    argv[2] = argv[0]; /* exec again: libraries count the cores when they are loaded */
    execv(PROGRAM, argv + 2);
    fprintf(stderr, "%s: cannot exec itself: %s\n", argv[0], strerror(errno));
    exit(DL_ERR_BACKEND);
}

/* One of the other processes: computes until the measuring one exits or kills it. */
static int keep_busy(const struct concurrent *c, int ready) {
    struct dl_err err = {0};
    void *state;
    if (dl_probe_open(c->inner, &c->point, &state, &err) != DL_OK ||
        !(c->inner->run(state, 1, &err) >= 0)) {
        fprintf(stderr, "concurrent: %s\n", err.message);
        return DL_ERR_BACKEND;
    }
    if (write(ready, "r", 1) != 1) return DL_ERR_BACKEND;
    for (const pid_t parent = getppid(); getppid() == parent;) {
        if (!(c->inner->run(state, 1, &err) >= 0)) return DL_ERR_BACKEND;
    }
    return DL_OK;
}

int dl_probe_cpu_busy(int argc, char **argv) {
    enum { WORDS = 6 }; /* program --busy GROUP PIPE PASS SHAPE */
    if (argc != WORDS || strcmp(argv[1], "--busy") != 0) return -1;
    struct concurrent c = {.point = {.shape = argv[5], .pass = argv[4], .directory = "."}};
    c.inner = inner_of(argv[4]);
    return c.inner == NULL ? DL_ERR_BACKEND : keep_busy(&c, atoi(argv[3]));
}

static void end_others(struct concurrent *c) {
    for (int i = 0; i < c->other_count; i++) kill(c->others[i], SIGKILL);
    for (int i = 0; i < c->other_count; i++) waitpid(c->others[i], NULL, 0);
    c->other_count = 0;
}

/* exec, not only fork: threads of libraries do not survive fork. */
static pid_t start_other(const struct concurrent *c, int group, int each, int ready) {
    char number[16], pipe_text[16], pass[TEXT], shape[TEXT], flag[] = "--busy",
                                                             name[] = "dlmodel-probe-cpu";
    snprintf(number, sizeof number, "%d", group);
    snprintf(pipe_text, sizeof pipe_text, "%d", ready);
    snprintf(pass, sizeof pass, "%s", c->point.pass);
    snprintf(shape, sizeof shape, "%s", c->point.shape);
    char *const words[] = {name, flag, number, pipe_text, pass, shape, NULL};
    const pid_t parent = getpid(), other = fork();
    if (other != 0) return other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !take_cores(group, each)) _exit(DL_ERR_BACKEND);
    execv(PROGRAM, words);
    _exit(DL_ERR_BACKEND);
}

static void concurrent_close(void *state) {
    struct concurrent *c = state;
    end_others(c);
    if (c->state != NULL) dl_probe_close(c->inner, c->state);
}

static enum dl_code start_others(struct concurrent *c, int devices, struct dl_err *err) {
    const char *each = getenv(COUNT);
    int ready[2];
    char byte;
    if (each == NULL) return dl_fail(err, DL_ERR_BACKEND, "the probe concurrent needs --cores");
    if (pipe(ready) != 0)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    for (int group = 1; group < devices; group++) {
        const pid_t other = start_other(c, group, atoi(each), ready[1]);
        if (other < 0) break;
        c->others[c->other_count++] = other;
    }
    close(ready[1]);
    int heard = 0;
    /* read() returns 0 once all have exited */
    while (heard < devices - 1 && read(ready[0], &byte, 1) == 1) heard++;
    close(ready[0]);
    if (heard == devices - 1) return DL_OK;
    end_others(c);
    return dl_fail(err, DL_ERR_SYSTEM, "only %d of %d other devices started", heard, devices - 1);
}

static enum dl_code concurrent_open(const struct dl_point *point, void *state, struct dl_err *err) {
    const long devices = dl_point_number(point, "devices", 1);
    struct concurrent *c = state;
    void *inner = NULL;
    c->point = *point;
    c->inner = inner_of(point->pass);
    if (c->inner == NULL || devices < 1 || devices > MAX_OTHERS + 1)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot run %s here", point->shape);
    DL_TRY(dl_probe_open(c->inner, point, &inner, err));
    c->state = inner;
    return start_others(c, (int)devices, err);
}

static double concurrent_run(void *state, long calls, struct dl_err *err) {
    const struct concurrent *c = state;
    return c->inner->run(c->state, calls, err);
}

static enum dl_code concurrent_verify(void *state, struct dl_err *err) {
    const struct concurrent *c = state;
    return c->inner->verify != NULL ? c->inner->verify(c->state, err) : DL_OK;
}

static const char *concurrent_implementation(const void *state) {
    const struct concurrent *c = state;
    return c->inner->implementation != NULL ? c->inner->implementation(c->state) : NULL;
}

const struct dl_probe dl_probe_concurrent =
    DL_PROBE("concurrent", "devices of a few cores that compute concurrently", 1e-3, unavailable,
             struct concurrent, concurrent_open, concurrent_run, .verify = concurrent_verify,
             .implementation = concurrent_implementation, .close = concurrent_close);
