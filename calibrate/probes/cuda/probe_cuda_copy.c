/* probe_cuda_copy.c - probe "gpu-copy": memory bandwidth of the device. Shape "bytes=" of one
 * array; pass "copy" (memcpy on the device, 2 arrays move), "axpy" (y += a x, 3 arrays), "scale" (x
 * = a x, 2 arrays). */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublas_v2.h>
#include <string.h>

struct copy {
    enum { COPY, AXPY, SCALE } pass;
    cublasHandle_t handle;
    size_t count; /* floats of one array */
    long sets;
    float *from, *to;
};
static const float FACTOR = 0.5f;

static enum dl_code copy_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct copy *c = state;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    c->pass = strcmp(point->pass, "copy") == 0   ? COPY
              : strcmp(point->pass, "axpy") == 0 ? AXPY
                                                 : SCALE;
    c->count = ((size_t)dl_point_number(point, "bytes", 0) / sizeof(float) + 63) / 64 * 64;
    DL_TRY(dl_gpu_open(&gpu, err));
    DL_TRY(dl_cublas_open(&handle, err));
    c->handle = handle;
    c->sets = dl_gpu_sets(2.0 * (double)c->count * sizeof(float));
    DL_TRY(dl_gpu_pool(DL_GPU_F32, (size_t)c->sets * c->count, &pool, err));
    DL_TRY(dl_gpu_room((size_t)c->sets * c->count * sizeof(float), &room, err));
    c->from = pool;
    c->to = room;
    return DL_OK;
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    const struct copy *c = state;
    const size_t at = (size_t)(call % c->sets) * c->count;
    const int count = (int)c->count;
    switch (c->pass) {
    case COPY: return dl_gpu_copy(c->to + at, c->from + at, c->count * sizeof(float), err);
    case AXPY:
        return dl_cublas_check(
            (int)cublasSaxpy(c->handle, count, &FACTOR, c->from + at, 1, c->to + at, 1), "axpy",
            err);
    case SCALE: break;
    }
    return dl_cublas_check((int)cublasSscal(c->handle, count, &FACTOR, c->to + at, 1), "scale",
                           err);
}

static double copy_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(once, state, calls, err);
}

/* One call on fresh operands. */
static enum dl_code copy_verify(void *state, struct dl_err *err) {
    static const struct dl_gpu_precision fp32 = {"fp32", DL_GPU_F32, DL_GPU_F32, 0, 0, 1e-7, 1e-6};
    struct copy *c = state;
    uint64_t random = 99;
    if (c->pass != COPY) DL_TRY(dl_gpu_copy(c->to, c->from, c->count * sizeof(float), err));
    DL_TRY(once(c, 0, err));
    for (int t = 0; t < 16; t++) {
        const size_t i = dl_random_next(&random) % c->count;
        const double x = dl_gpu_pool_value(DL_GPU_F32, i), factor = (double)FACTOR;
        double got = 0;
        DL_TRY(dl_gpu_read(DL_GPU_F32, c->to, i, &got, err));
        DL_TRY(dl_gpu_judge(&fp32, 1, 1, i, got,
                            c->pass == COPY   ? x
                            : c->pass == AXPY ? x + factor * x
                                              : factor * x,
                            err));
    }
    return DL_OK;
}

static const char *implementation(const void *state) {
    const struct copy *c = state;
    return c->pass == COPY ? "cudaMemcpyAsync" : "cublas";
}

const struct dl_probe dl_probe_gpu_copy = DL_PROBE(
    "gpu-copy", "device memory bandwidth", 1e-3, dl_gpu_absent, struct copy, copy_open, copy_run,
    .verify = copy_verify, .implementation = implementation, .preemptions = dl_gpu_disturbances);
