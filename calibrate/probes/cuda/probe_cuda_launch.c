/* probe_cuda_launch.c - probe "gpu-launch": the cost of a kernel in addition to its work. Shape
 * "n=32" (floats that it scales). Pass "queue": host time to launch one; "train": device time
 * per kernel of many queued ones, including the gap between them; "wait": host time to launch
 * one and wait for its end. */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

struct launch {
    enum { QUEUE, TRAIN, WAIT } pass;
    cublasHandle_t handle;
    int count;
    float *x;
};
enum { BURST = 256 }; /* below the depth of the driver's queue */

static enum dl_code launch_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct launch *l = state;
    void *handle, *room;
    l->pass = strcmp(point->pass, "queue") == 0   ? QUEUE
              : strcmp(point->pass, "train") == 0 ? TRAIN
                                                  : WAIT;
    l->count = (int)dl_point_number(point, "n", 32);
    DL_TRY(dl_cublas_open(&handle, err));
    l->handle = handle;
    DL_TRY(dl_gpu_room((size_t)l->count * sizeof(float), &room, err));
    l->x = room;
    return DL_OK;
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    static const float one = 1;
    const struct launch *l = state;
    (void)call;
    return dl_cublas_check((int)cublasSscal(l->handle, l->count, &one, l->x, 1), "a small kernel",
                           err);
}

static enum dl_code wait_all(struct dl_err *err) {
    return dl_gpu_check((int)cudaDeviceSynchronize(), "waiting for the GPU", err);
}

static double launch_run(void *state, long calls, struct dl_err *err) {
    const struct launch *l = state;
    double sum = 0;
    if (l->pass == TRAIN) return dl_gpu_time(once, state, calls, err);
    if (wait_all(err) != DL_OK) return NAN;
    for (long first = 0; first < calls;) {
        const long burst = l->pass == WAIT ? 1 : calls - first < BURST ? calls - first : BURST;
        const double start = dl_now_s();
        for (long i = 0; i < burst; i++) {
            if (once(state, i, err) != DL_OK) return NAN;
        }
        if (l->pass == QUEUE) sum += dl_now_s() - start;
        if (wait_all(err) != DL_OK) return NAN;
        if (l->pass == WAIT) sum += dl_now_s() - start;
        first += burst;
    }
    return sum;
}

const struct dl_probe dl_probe_gpu_launch =
    DL_PROBE("gpu-launch", "kernel launch cost and gap", 200e-6, dl_gpu_absent, struct launch,
             launch_open, launch_run, .preemptions = dl_gpu_disturbances);
