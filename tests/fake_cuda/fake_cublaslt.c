/* fake_cublaslt.c - cuBLASLt of the fake device: fp8 GEMM with A transposed. */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_gpu.h"

struct cublasLtContext {
    int unused;
};
struct fakeLtDesc {
    cublasOperation_t ta;
};
struct fakeLtLayout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
};
struct fakeLtPreference {
    uint64_t workspace;
};

#define MAKE(function, type, extra)                                                                \
    cublasStatus_t function {                                                                      \
        *out = calloc(1, sizeof **out);                                                            \
        if (*out == NULL) return CUBLAS_STATUS_ALLOC_FAILED;                                       \
        extra;                                                                                     \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
#define DROP(function, type)                                                                       \
    cublasStatus_t function(type p) {                                                              \
        free(p);                                                                                   \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
MAKE(cublasLtCreate(cublasLtHandle_t *out), cublasLtHandle_t, )
DROP(cublasLtDestroy, cublasLtHandle_t)
MAKE(cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                              cudaDataType_t scale),
     cublasLtMatmulDesc_t, ((void)compute, (void)scale))
DROP(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
MAKE(cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
                                uint64_t cols, int64_t ld),
     cublasLtMatrixLayout_t, (**out = (struct fakeLtLayout){type, rows, cols, ld}))
DROP(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
MAKE(cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out), cublasLtMatmulPreference_t, )
DROP(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t size) {
    if (what != CUBLASLT_MATMUL_DESC_TRANSA || size != sizeof d->ta)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(&d->ta, value, size);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *value, size_t size) {
    if (what != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || size != sizeof p->workspace)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(&p->workspace, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
    (void)handle;
    (void)p;
    *found = 0;
    if (fake_capability() < 89) return CUBLAS_STATUS_ARCH_MISMATCH;
    if (d->ta != CUBLAS_OP_T || a->type != CUDA_R_8F_E4M3 || b->type != CUDA_R_8F_E4M3 ||
        a->rows != b->rows || c->rows != a->cols || c->cols != b->cols || out != c ||
        a->rows % 16 != 0 || wanted < 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(results, 0, sizeof *results);
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static double gemm_value(const struct fake_op *op, size_t index) {
    const size_t m = (size_t)op->n[0], k = (size_t)op->n[1], i = index % m, j = index / m;
    double sum = 0;
    for (size_t l = 0; l < k; l++)
        sum += fake_load(op->in[0], FAKE_F8, l + i * k, op->sequence) *
               fake_load(op->in[1], FAKE_F8, l + j * k, op->sequence);
    return sum;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_size, cudaStream_t stream) {
    (void)handle;
    (void)d;
    (void)alpha;
    (void)beta;
    (void)algorithm;
    (void)workspace;
    (void)workspace_size;
    (void)stream;
    if (c != out || lc != lout) return CUBLAS_STATUS_NOT_SUPPORTED;
    const double m = (double)la->cols, n = (double)lb->cols, k = (double)la->rows;
    fake_kernel(2 * m * n * k, m * k + k * n + 2 * m * n, FAKE_F8, false, m, n, k);
    fake_record((struct fake_op){.out = out,
                                 .count = (size_t)(m * n),
                                 .type = FAKE_BF16,
                                 .value = gemm_value,
                                 .in = {a, b},
                                 .n = {(long)m, (long)k}});
    return CUBLAS_STATUS_SUCCESS;
}
