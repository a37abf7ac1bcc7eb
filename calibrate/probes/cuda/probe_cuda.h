/* probe_cuda.h - the probes of dlmodel-probe-cuda, which use the CUDA runtime and cuBLAS. One file
 * each. */
#ifndef DL_CALIBRATE_PROBES_CUDA_PROBE_CUDA_H
#define DL_CALIBRATE_PROBES_CUDA_PROBE_CUDA_H

#include "calibrate/probes/gpu/probe_gpu.h"

extern const struct dl_probe dl_probe_gpu_gemm, dl_probe_gpu_batch, dl_probe_gpu_copy,
    dl_probe_gpu_launch, dl_probe_gpu_host, dl_probe_gpu_update;

/* A cublasHandle_t, created by the first call. */
enum dl_code dl_cublas_open(void **handle, struct dl_err *err);
enum dl_code dl_cublas_check(int status, const char *what, struct dl_err *err);

/* A GEMM in fp8 by cuBLASLt (probe_cuda_lt.c). */
struct dl_lt_gemm;
/* C[m,n] = A^T B, column-major, k contiguous in both; DL_ERR_SYSTEM: the library has no algorithm.
 */
enum dl_code dl_lt_open(int m, int n, int k, struct dl_lt_gemm **out, struct dl_err *err);
enum dl_code dl_lt_multiply(const struct dl_lt_gemm *gemm, const void *a, const void *b, void *c,
                            struct dl_err *err);
void dl_lt_close(struct dl_lt_gemm *gemm);

#endif
