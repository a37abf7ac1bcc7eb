/* probe_cuda_update.c - probe "gpu-update": an optimizer step over one array each of weights,
 * gradients and momenta in two cuBLAS calls (dlmodel has no device code): m = f m + g, then w = w -
 * r m. Shape "bytes=" of one array, pass "momentum"; the calls move six arrays (a fused kernel:
 * five). */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublas_v2.h>

enum { ROW = 1024 };
static const float KEEP = 0.9f, RATE = -0.01f;

struct update {
    cublasHandle_t handle;
    size_t count;
    long sets;
    float *g, *w, *m;
};

static enum dl_code update_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct update *u = state;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    u->count = ((size_t)dl_point_number(point, "bytes", 0) / sizeof(float) + ROW - 1) / ROW * ROW;
    DL_TRY(dl_gpu_open(&gpu, err));
    DL_TRY(dl_cublas_open(&handle, err));
    u->handle = handle;
    u->sets = dl_gpu_sets(3.0 * (double)u->count * sizeof(float));
    DL_TRY(dl_gpu_pool(DL_GPU_F32, (size_t)u->sets * u->count, &pool, err));
    DL_TRY(dl_gpu_room(2 * (size_t)u->sets * u->count * sizeof(float), &room, err));
    u->g = pool;
    u->w = room;
    u->m = u->w + (size_t)u->sets * u->count;
    /* the values stay finite: momenta tend to ten times the gradients */
    DL_TRY(dl_gpu_copy(u->w, u->g, (size_t)u->sets * u->count * sizeof(float), err));
    return dl_gpu_copy(u->m, u->g, (size_t)u->sets * u->count * sizeof(float), err);
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    static const float one = 1;
    const struct update *u = state;
    const size_t at = (size_t)(call % u->sets) * u->count;
    DL_TRY(dl_cublas_check((int)cublasSgeam(u->handle, CUBLAS_OP_N, CUBLAS_OP_N, ROW,
                                            (int)(u->count / ROW), &one, u->g + at, ROW, &KEEP,
                                            u->m + at, ROW, u->m + at, ROW),
                           "momenta", err));
    return dl_cublas_check(
        (int)cublasSaxpy(u->handle, (int)u->count, &RATE, u->m + at, 1, u->w + at, 1), "weights",
        err);
}

static double update_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(once, state, calls, err);
}

static enum dl_code update_verify(void *state, struct dl_err *err) {
    static const struct dl_gpu_precision fp32 = {"fp32", DL_GPU_F32, DL_GPU_F32, 0, 0, 1e-7, 1e-6};
    struct update *u = state;
    uint64_t random = 31;
    DL_TRY(dl_gpu_copy(u->w, u->g, u->count * sizeof(float), err));
    DL_TRY(dl_gpu_copy(u->m, u->g, u->count * sizeof(float), err));
    DL_TRY(once(u, 0, err));
    for (int t = 0; t < 16; t++) {
        const size_t i = dl_random_next(&random) % u->count;
        const double g = dl_gpu_pool_value(DL_GPU_F32, i), m = g + (double)KEEP * g;
        double got_m = 0, got_w = 0;
        DL_TRY(dl_gpu_read(DL_GPU_F32, u->m, i, &got_m, err));
        DL_TRY(dl_gpu_read(DL_GPU_F32, u->w, i, &got_w, err));
        DL_TRY(dl_gpu_judge(&fp32, 1, 1, i, got_m, m, err));
        DL_TRY(dl_gpu_judge(&fp32, 1, 1, i, got_w, g + (double)RATE * m, err));
    }
    return DL_OK;
}

static const char *implementation(const void *state) {
    (void)state;
    return "cublas geam and axpy";
}

const struct dl_probe dl_probe_gpu_update =
    DL_PROBE("gpu-update", "optimizer step (SGD with momentum), two cuBLAS calls", 1e-3,
             dl_gpu_absent, struct update, update_open, update_run, .verify = update_verify,
             .implementation = implementation, .preemptions = dl_gpu_disturbances);
