/* fake_cublas.c - cuBLAS of the fake device. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "tests/fake_cuda/fake_gpu.h"

struct cublasContext {
    int unused;
};

cublasStatus_t cublasCreate(cublasHandle_t *out) {
    *out = calloc(1, sizeof **out);
    return *out == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    (void)handle;
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

static double axpy(const struct fake_op *op, size_t i) {
    return fake_load(op->in[1], FAKE_F32, i, op->sequence) +
           op->f[0] * fake_load(op->in[0], FAKE_F32, i, op->sequence);
}
cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float *alpha, const float *x,
                           int incx, float *y, int incy) {
    if (handle == NULL || incx != 1 || incy != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
    fake_kernel(2.0 * n, 12.0 * n, FAKE_F32, false, 1e9, 1e9, 1e9);
    fake_record((struct fake_op){.out = (char *)y,
                                 .count = (size_t)n,
                                 .type = FAKE_F32,
                                 .value = axpy,
                                 .in = {x, y},
                                 .f = {(double)*alpha}});
    return CUBLAS_STATUS_SUCCESS;
}

static double scaled(const struct fake_op *op, size_t i) {
    return op->f[0] * fake_load(op->in[0], FAKE_F32, i, op->sequence);
}
cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float *alpha, float *x, int incx) {
    if (handle == NULL || incx != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
    fake_kernel(n, 8.0 * n, FAKE_F32, false, 1e9, 1e9, 1e9);
    fake_record((struct fake_op){.out = (char *)x,
                                 .count = (size_t)n,
                                 .type = FAKE_F32,
                                 .value = scaled,
                                 .in = {x},
                                 .f = {(double)*alpha}});
    return CUBLAS_STATUS_SUCCESS;
}

static double added(const struct fake_op *op, size_t i) {
    return op->f[0] * fake_load(op->in[0], FAKE_F32, i, op->sequence) +
           op->f[1] * fake_load(op->in[1], FAKE_F32, i, op->sequence);
}
cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
                           int n, const float *alpha, const float *a, int lda, const float *beta,
                           const float *b, int ldb, float *c, int ldc) {
    if (handle == NULL || ta != CUBLAS_OP_N || tb != CUBLAS_OP_N || lda != m || ldb != m ||
        ldc != m)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const double count = (double)m * n;
    fake_kernel(3 * count, 12 * count, FAKE_F32, false, 1e9, 1e9, 1e9);
    fake_record((struct fake_op){.out = (char *)c,
                                 .count = (size_t)count,
                                 .type = FAKE_F32,
                                 .value = added,
                                 .in = {a, b},
                                 .f = {(double)*alpha, (double)*beta}});
    return CUBLAS_STATUS_SUCCESS;
}

static enum fake_type type_of(cudaDataType type) {
    return type == CUDA_R_32F    ? FAKE_F32
           : type == CUDA_R_16F  ? FAKE_F16
           : type == CUDA_R_16BF ? FAKE_BF16
                                 : FAKE_F8;
}

/* n: m, n, k, lda, ldb, stride_a, stride_b, stride_c, ta, tb; column-major */
static double gemm_value(const struct fake_op *op, size_t index) {
    const size_t m = (size_t)op->n[0], k = (size_t)op->n[2], lda = (size_t)op->n[3],
                 ldb = (size_t)op->n[4];
    const size_t batch = index / (size_t)op->n[7], i = index % (size_t)op->n[7] % m,
                 j = index % (size_t)op->n[7] / m;
    const size_t a0 = batch * (size_t)op->n[5], b0 = batch * (size_t)op->n[6];
    double sum = 0;
    for (size_t l = 0; l < k; l++) {
        sum += fake_load(op->in[0], op->in_type, a0 + (op->n[8] ? l + i * lda : i + l * lda),
                         op->sequence) *
               fake_load(op->in[1], op->in_type, b0 + (op->n[9] ? j + l * ldb : l + j * ldb),
                         op->sequence);
    }
    return op->f[0] * sum;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const double flop = 2.0 * m * n * k * count, size = (double)fake_bytes(type_of(type_a));
    (void)algorithm;
    if (handle == NULL || type_a != type_b || *(const float *)beta > 0 || ldc != m)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (fake_capability() < 80 && (tf32 || type_a == CUDA_R_16BF))
        return CUBLAS_STATUS_ARCH_MISMATCH;
    fake_kernel(flop, size * count * ((double)m * k + (double)k * n + (double)m * n),
                type_of(type_a), tf32, m, n, k);
    fake_record((struct fake_op){.out = c,
                                 .count = (size_t)stride_c * (size_t)count,
                                 .type = type_of(type_c),
                                 .in_type = type_of(type_a),
                                 .value = gemm_value,
                                 .in = {a, b},
                                 .n = {m, n, k, lda, ldb, (long)stride_a, (long)stride_b,
                                       (long)stride_c, ta == CUBLAS_OP_T, tb == CUBLAS_OP_T},
                                 .f = {(double)*(const float *)alpha}});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType type_a, int lda, const void *b, cudaDataType type_b,
                            int ldb, const void *beta, void *c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b,
                                      ldb, 0, beta, c, type_c, ldc, (long long)m * n, 1, compute,
                                      algorithm);
}
