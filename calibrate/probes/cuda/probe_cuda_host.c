/* probe_cuda_host.c - probe "gpu-host": copies between host and device. Shape "bytes=", pass
 * "h2d_pinned", "d2h_pinned", "h2d_pageable", "d2h_pageable". Pageable copies are timed by the
 * host's clock: they return when they are done. */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct host {
    bool to_device, pinned;
    size_t bytes;
    void *pool, *room; /* on the device: source and destination */
    float *memory;
};

static void host_close(void *state) {
    struct host *h = state;
    if (h->pinned && h->memory != NULL) cudaFreeHost(h->memory);
    if (!h->pinned) free(h->memory);
}

static enum dl_code host_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct host *h = state;
    const struct dl_gpu *gpu;
    void *memory = NULL;
    h->to_device = strncmp(point->pass, "h2d", 3) == 0;
    h->pinned = strstr(point->pass, "pinned") != NULL;
    h->bytes = (size_t)dl_point_number(point, "bytes", 0) / sizeof(float) * sizeof(float);
    DL_TRY(dl_gpu_open(&gpu, err));
    DL_TRY(dl_gpu_pool(DL_GPU_F32, h->bytes / sizeof(float), &h->pool, err));
    DL_TRY(dl_gpu_room(h->bytes, &h->room, err));
    if (h->pinned)
        DL_TRY(dl_gpu_check((int)cudaMallocHost(&memory, h->bytes), "pinned memory", err));
    else if ((memory = malloc(h->bytes)) == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory for %s", point->shape);
    h->memory = memory;
    for (size_t i = 0; i < h->bytes / sizeof(float); i++)
        h->memory[i] = h->to_device ? (float)(i % 1021) : -1.0f;
    return DL_OK;
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    const struct host *h = state;
    (void)call;
    return dl_gpu_check(
        (int)(h->to_device
                  ? cudaMemcpyAsync(h->room, h->memory, h->bytes, cudaMemcpyHostToDevice, NULL)
                  : cudaMemcpyAsync(h->memory, h->pool, h->bytes, cudaMemcpyDeviceToHost, NULL)),
        "a copy", err);
}

static double host_run(void *state, long calls, struct dl_err *err) {
    const struct host *h = state;
    if (h->pinned) return dl_gpu_time(once, state, calls, err);
    if (dl_gpu_check((int)cudaDeviceSynchronize(), "waiting for the GPU", err) != DL_OK) return NAN;
    const double start = dl_now_s();
    for (long i = 0; i < calls; i++) {
        if (once(state, i, err) != DL_OK) return NAN;
    }
    if (dl_gpu_check((int)cudaDeviceSynchronize(), "waiting for the GPU", err) != DL_OK) return NAN;
    return dl_now_s() - start;
}

static enum dl_code host_verify(void *state, struct dl_err *err) {
    const struct host *h = state;
    uint64_t random = 5;
    DL_TRY(once(state, 0, err));
    DL_TRY(dl_gpu_check((int)cudaDeviceSynchronize(), "waiting for the GPU", err));
    for (int t = 0; t < 32 && h->bytes > 0; t++) {
        const size_t i = dl_random_next(&random) % (h->bytes / sizeof(float));
        double got = (double)h->memory[i];
        const double expected =
            h->to_device ? (double)(i % 1021) : dl_gpu_pool_value(DL_GPU_F32, i);
        if (h->to_device) DL_TRY(dl_gpu_read(DL_GPU_F32, h->room, i, &got, err));
        if (got != expected)
            return dl_fail(err, DL_ERR_BACKEND, "element %zu is %g after the copy, expected %g", i,
                           got, expected);
    }
    return DL_OK;
}

const struct dl_probe dl_probe_gpu_host = DL_PROBE(
    "gpu-host", "copies between host and device", 1e-3, dl_gpu_absent, struct host, host_open,
    host_run, .verify = host_verify, .close = host_close, .preemptions = dl_gpu_disturbances);
