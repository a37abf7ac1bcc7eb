/* probe_cuda_lt.c - GEMM in fp8 (E4M3) by cuBLASLt: fp32 accumulation, bf16 result, scales of 1.
 * Needs CUDA 11.8 and an Ada, Hopper or later GPU. */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { WORKSPACE = 32 << 20 };

struct dl_lt_gemm {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    void *workspace;
};

void dl_lt_close(struct dl_lt_gemm *p) {
    if (p->preference != NULL) cublasLtMatmulPreferenceDestroy(p->preference);
    if (p->a != NULL) cublasLtMatrixLayoutDestroy(p->a);
    if (p->b != NULL) cublasLtMatrixLayoutDestroy(p->b);
    if (p->c != NULL) cublasLtMatrixLayoutDestroy(p->c);
    if (p->operation != NULL) cublasLtMatmulDescDestroy(p->operation);
    if (p->workspace != NULL) cudaFree(p->workspace);
    if (p->handle != NULL) cublasLtDestroy(p->handle);
    free(p);
}

static enum dl_code prepare(struct dl_lt_gemm *p, int m, int n, int k, struct dl_err *err) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const uint64_t workspace = WORKSPACE, rows = (uint64_t)k;
    int found = 0;
    DL_TRY(dl_gpu_check((int)cudaMalloc(&p->workspace, WORKSPACE),
                        "allocating the cuBLASLt workspace", err));
    DL_TRY(dl_cublas_check((int)cublasLtCreate(&p->handle), "creating a cuBLASLt handle", err));
    DL_TRY(dl_cublas_check(
        (int)cublasLtMatmulDescCreate(&p->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "fp8 GEMM",
        err));
    DL_TRY(dl_cublas_check((int)cublasLtMatmulDescSetAttribute(p->operation,
                                                               CUBLASLT_MATMUL_DESC_TRANSA,
                                                               &transposed, sizeof transposed),
                           "fp8 GEMM", err));
    DL_TRY(dl_cublas_check(
        (int)cublasLtMatrixLayoutCreate(&p->a, CUDA_R_8F_E4M3, rows, (uint64_t)m, k), "fp8 operand",
        err));
    DL_TRY(dl_cublas_check(
        (int)cublasLtMatrixLayoutCreate(&p->b, CUDA_R_8F_E4M3, rows, (uint64_t)n, k), "fp8 operand",
        err));
    DL_TRY(dl_cublas_check(
        (int)cublasLtMatrixLayoutCreate(&p->c, CUDA_R_16BF, (uint64_t)m, (uint64_t)n, m),
        "fp8 result", err));
    DL_TRY(dl_cublas_check((int)cublasLtMatmulPreferenceCreate(&p->preference), "fp8 GEMM", err));
    DL_TRY(dl_cublas_check(
        (int)cublasLtMatmulPreferenceSetAttribute(
            p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
        "fp8 GEMM", err));
    DL_TRY(dl_cublas_check((int)cublasLtMatmulAlgoGetHeuristic(p->handle, p->operation, p->a, p->b,
                                                               p->c, p->c, p->preference, 1,
                                                               &p->best, &found),
                           "selecting an fp8 algorithm", err));
    return found > 0 ? DL_OK
                     : dl_fail(err, DL_ERR_SYSTEM,
                               "cuBLASLt has no fp8 algorithm for m=%d n=%d k=%d", m, n, k);
}

enum dl_code dl_lt_open(int m, int n, int k, struct dl_lt_gemm **out, struct dl_err *err) {
    struct dl_lt_gemm *p = calloc(1, sizeof *p);
    if (p == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const enum dl_code code = prepare(p, m, n, k, err);
    if (code == DL_OK)
        *out = p;
    else
        dl_lt_close(p);
    return code;
}

enum dl_code dl_lt_multiply(const struct dl_lt_gemm *p, const void *a, const void *b, void *c,
                            struct dl_err *err) {
    static const float one = 1, zero = 0;
    return dl_cublas_check((int)cublasLtMatmul(p->handle, p->operation, &one, a, p->a, b, p->b,
                                               &zero, c, p->c, c, p->c, &p->best.algo, p->workspace,
                                               WORKSPACE, NULL),
                           "fp8 GEMM", err);
}
