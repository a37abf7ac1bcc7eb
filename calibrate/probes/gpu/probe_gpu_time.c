/* probe_gpu_time.c - timing by events, and disturbances of it. See probe_gpu.h. */
#include "calibrate/probes/gpu/probe_gpu.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

enum {
    CHUNK = 256,  /* calls between two events: fewer than the driver can queue (1024, unverified) */
    ATTEMPTS = 4, /* to hide the launch time of the host behind a longer memset */
    BLOCKER = 64 << 20, /* bytes of one memset */
};
static const double FIRST_HIDE_S = 1e-3, MAX_HIDE_S = 0.05;
/* below this ratio of device to host time, the device may have waited */
static const double HOST_BOUND_FRAC = 1.2;
static const double WARM_S = 0.3;  /* until clocks have risen */
static const double LOOK_S = 0.25; /* between two checks for other processes */

static struct {
    cudaEvent_t begin, end;
    void *blocker;
    double memset_bytes_per_s, hide_s;
    bool ready;
} timer;

static struct {
    long count, blocks, capped, thermal, braked, shared;
    double looked_s;
    bool shared_now;
} seen;

static enum dl_code elapsed(double *seconds, struct dl_err *err) {
    float ms = 0;
    DL_TRY(dl_gpu_check((int)cudaEventRecord(timer.end, NULL), "recording an event", err));
    DL_TRY(dl_gpu_check((int)cudaEventSynchronize(timer.end), "waiting for the GPU", err));
    DL_TRY(dl_gpu_check((int)cudaEventElapsedTime(&ms, timer.begin, timer.end), "reading the time",
                        err));
    *seconds = 1e-3 * (double)ms;
    return DL_OK;
}

static enum dl_code block_device(double seconds, struct dl_err *err) {
    const double memsets = ceil(seconds * timer.memset_bytes_per_s / BLOCKER);
    for (double i = 0; i < memsets; i++) {
        DL_TRY(dl_gpu_check((int)cudaMemsetAsync(timer.blocker, 0, BLOCKER, NULL), "memset", err));
    }
    return DL_OK;
}

/* Creates events, raises the clocks, and measures the rate of memset. */
static enum dl_code prepare(struct dl_err *err) {
    if (timer.ready) return DL_OK;
    DL_TRY(dl_gpu_check((int)cudaEventCreateWithFlags(&timer.begin, cudaEventDefault),
                        "creating an event", err));
    DL_TRY(dl_gpu_check((int)cudaEventCreateWithFlags(&timer.end, cudaEventDefault),
                        "creating an event", err));
    DL_TRY(dl_gpu_check((int)cudaMalloc(&timer.blocker, BLOCKER), "allocating a memset", err));
    timer.memset_bytes_per_s = BLOCKER; /* one memset at first */
    double seconds = 0;
    const double start = dl_now_s();
    for (int i = 0; i < 2 || (dl_now_s() - start < WARM_S && i < 10000); i++) {
        DL_TRY(dl_gpu_check((int)cudaEventRecord(timer.begin, NULL), "recording an event", err));
        DL_TRY(block_device(16, err));
        DL_TRY(elapsed(&seconds, err));
    }
    timer.memset_bytes_per_s = 16.0 * BLOCKER / fmax(seconds, 1e-6);
    timer.hide_s = FIRST_HIDE_S;
    timer.ready = true;
    return DL_OK;
}

static enum dl_code chunk(enum dl_code (*launch)(void *, long, struct dl_err *), void *state,
                          long first, long calls, double *seconds, struct dl_err *err) {
    for (int attempt = 0;; attempt++) {
        const double host = dl_now_s();
        DL_TRY(block_device(timer.hide_s, err));
        DL_TRY(dl_gpu_check((int)cudaEventRecord(timer.begin, NULL), "recording an event", err));
        for (long i = 0; i < calls; i++) DL_TRY(launch(state, first + i, err));
        const double queued_s = dl_now_s() - host;
        /* the device started before all calls were queued */
        const bool drained = cudaEventQuery(timer.begin) == cudaSuccess;
        DL_TRY(elapsed(seconds, err));
        if (!drained || *seconds > HOST_BOUND_FRAC * queued_s || attempt + 1 == ATTEMPTS ||
            timer.hide_s >= MAX_HIDE_S) {
            return DL_OK;
        }
        timer.hide_s = fmin(fmax(2 * timer.hide_s, 1.5 * queued_s), MAX_HIDE_S);
    }
}

double dl_gpu_time(enum dl_code (*launch)(void *state, long call, struct dl_err *err), void *state,
                   long calls, struct dl_err *err) {
    double sum = 0, part = 0;
    if (prepare(err) != DL_OK) return NAN;
    for (long first = 0; first < calls; first += CHUNK) {
        const long count = calls - first < CHUNK ? calls - first : CHUNK;
        if (chunk(launch, state, first, count, &part, err) != DL_OK) return NAN;
        sum += part;
    }
    return sum;
}

long dl_gpu_disturbances(void) {
    const struct dl_gpu *g;
    struct dl_nvml_state now;
    struct dl_err err;
    if (dl_gpu_open(&g, &err) != DL_OK) return 0;
    const bool look = dl_now_s() - seen.looked_s > LOOK_S;
    if (!dl_nvml_read(g->pci, look ? DL_NVML_PROCESSES : 0, &now)) return 0;
    if (look) {
        seen.looked_s = dl_now_s();
        seen.shared_now = now.processes > g->processes;
    }
    seen.blocks++;
    seen.capped += now.power_capped;
    seen.thermal += now.thermal;
    seen.braked += now.brake;
    seen.shared += seen.shared_now;
    seen.count += now.thermal || now.brake || seen.shared_now;
    return seen.count;
}

void dl_gpu_disturbance_facts(void) {
    char text[200];
    if (seen.blocks == 0) return;
    snprintf(text, sizeof text,
             "%ld of %ld blocks: %ld thermal throttling, %ld power brake, %ld concurrent processes",
             seen.count, seen.blocks, seen.thermal, seen.braked, seen.shared);
    dl_print_fact("gpu_disturbed", text);
    snprintf(text, sizeof text, "%ld of %ld blocks", seen.capped, seen.blocks);
    dl_print_fact("gpu_power_capped", text);
}
