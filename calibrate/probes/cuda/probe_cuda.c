/* probe_cuda.c - dlmodel-probe-cuda: the table of its probes, and cuBLAS. */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublas_v2.h>
#include <stdio.h>

static const struct dl_probe *const probes[] = {
    &dl_probe_gpu_gemm,
    &dl_probe_gpu_batch,
    &dl_probe_gpu_copy,
    &dl_probe_gpu_launch,
    &dl_probe_gpu_host,
    &dl_probe_gpu_update,
    NULL,
};

enum dl_code dl_cublas_check(int status, const char *what, struct dl_err *err) {
    if (status == CUBLAS_STATUS_SUCCESS) return DL_OK;
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED ||
                         status == CUBLAS_STATUS_ALLOC_FAILED ||
                         status == CUBLAS_STATUS_ARCH_MISMATCH;
    return dl_fail(err, refused ? DL_ERR_SYSTEM : DL_ERR_BACKEND, "%s: cuBLAS: %s (status %d)",
                   what,
                   status == CUBLAS_STATUS_NOT_SUPPORTED   ? "not supported"
                   : status == CUBLAS_STATUS_ALLOC_FAILED  ? "out of memory"
                   : status == CUBLAS_STATUS_ARCH_MISMATCH ? "not supported by this GPU"
                                                           : "failed",
                   status);
}

enum dl_code dl_cublas_open(void **handle, struct dl_err *err) {
    static cublasHandle_t made;
    const struct dl_gpu *gpu;
    DL_TRY(dl_gpu_open(&gpu, err));
    if (made == NULL) {
        DL_TRY(dl_cublas_check((int)cublasCreate(&made), "creating a cuBLAS handle", err));
        int version = 0;
        char text[32];
        if (cublasGetVersion(made, &version) == CUBLAS_STATUS_SUCCESS) {
            snprintf(text, sizeof text, "%d", version);
            dl_print_fact("cublas", text);
        }
    }
    *handle = made;
    return DL_OK;
}

int main(int argc, char **argv) { return dl_gpu_main(argc, argv, probes); }
