/* probe_cuda_gemm.c - probes "gpu-gemm" and "gpu-batch": GEMM and batched GEMM of cuBLAS (fp8:
 * cuBLASLt), column-major, beta = 0, fp32 accumulation, as frameworks call them. Shape "m= n= k=
 * ta= tb= [b=] [prec=]"; the b matrices of a batch are contiguous. */
#include "calibrate/probes/cuda/probe_cuda.h"

#include <cublas_v2.h>
#include <limits.h>

struct gemm {
    const struct dl_gpu_precision *precision;
    cublasHandle_t handle;
    struct dl_lt_gemm *lt; /* fp8 alone */
    int m, n, k, count;
    bool ta, tb;
    size_t a, b, c; /* elements of one call's operands and result, rounded up for alignment */
    long sets;
    char *pool, *room;
};

static size_t aligned(double elements) { return ((size_t)elements + 255) / 256 * 256; }

static void gemm_close(void *state) {
    struct gemm *p = state;
    if (p->lt != NULL) dl_lt_close(p->lt);
}

static enum dl_code read_shape(const struct dl_point *point, struct gemm *p, struct dl_err *err) {
    const long m = dl_point_number(point, "m", 0), n = dl_point_number(point, "n", 0),
               k = dl_point_number(point, "k", 0);
    const long count = dl_point_number(point, "b", 1);
    p->precision = dl_gpu_precision_of(point);
    if (m < 1 || n < 1 || k < 1 || count < 1 || m > INT_MAX || n > INT_MAX || k > INT_MAX ||
        count > INT_MAX || p->precision == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot read the shape '%s'", point->shape);
    p->m = (int)m;
    p->n = (int)n;
    p->k = (int)k;
    p->count = (int)count;
    p->ta = dl_point_number(point, "ta", 0) != 0;
    p->tb = dl_point_number(point, "tb", 0) != 0;
    p->a = aligned((double)m * (double)k * (double)count);
    p->b = aligned((double)k * (double)n * (double)count);
    p->c = aligned((double)m * (double)n * (double)count);
    return DL_OK;
}

static enum dl_code gemm_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct gemm *p = state;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    DL_TRY(read_shape(point, p, err));
    DL_TRY(dl_gpu_open(&gpu, err));
    if (gpu->capability < p->precision->capability) {
        return dl_fail(err, DL_ERR_SYSTEM, "%s needs compute capability %d.%d, this GPU has %d.%d",
                       p->precision->name, p->precision->capability / 10,
                       p->precision->capability % 10, gpu->capability / 10, gpu->capability % 10);
    }
    DL_TRY(dl_cublas_open(&handle, err));
    p->handle = handle;
    const size_t in = dl_gpu_type_bytes(p->precision->type),
                 out = dl_gpu_type_bytes(p->precision->out);
    p->sets = dl_gpu_sets((double)(p->a + p->b) * (double)in + (double)p->c * (double)out);
    DL_TRY(dl_gpu_pool(p->precision->type, (size_t)p->sets * (p->a + p->b), &pool, err));
    DL_TRY(dl_gpu_room((size_t)p->sets * p->c * out, &room, err));
    p->pool = pool;
    p->room = room;
    if (p->precision->type != DL_GPU_F8) return DL_OK;
    if (!p->ta || p->tb || p->count != 1 || p->m % 16 != 0 || p->n % 16 != 0 || p->k % 16 != 0)
        return dl_fail(err, DL_ERR_SYSTEM,
                       "fp8 GEMMs need ta=1 tb=0 and sides that are multiples of 16");
    return dl_lt_open(p->m, p->n, p->k, &p->lt, err);
}

static enum dl_code multiply(void *state, long call, struct dl_err *err) {
    static const float one = 1, zero = 0;
    const struct gemm *p = state;
    const size_t set = (size_t)(call % p->sets), in = dl_gpu_type_bytes(p->precision->type);
    const void *a = p->pool + set * (p->a + p->b) * in,
               *b = p->pool + (set * (p->a + p->b) + p->a) * in;
    void *c = p->room + set * p->c * dl_gpu_type_bytes(p->precision->out);
    if (p->lt != NULL) return dl_lt_multiply(p->lt, a, b, c, err);
    const cudaDataType type = p->precision->type == DL_GPU_F32   ? CUDA_R_32F
                              : p->precision->type == DL_GPU_F16 ? CUDA_R_16F
                                                                 : CUDA_R_16BF;
    const cublasComputeType_t compute =
        p->precision->input_error_frac > 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                            tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int lda = p->ta ? p->k : p->m, ldb = p->tb ? p->n : p->k;
    if (p->count == 1) {
        return dl_cublas_check((int)cublasGemmEx(p->handle, ta, tb, p->m, p->n, p->k, &one, a, type,
                                                 lda, b, type, ldb, &zero, c, type, p->m, compute,
                                                 CUBLAS_GEMM_DEFAULT),
                               "GEMM", err);
    }
    const long long each_a = (long long)p->m * p->k, each_b = (long long)p->k * p->n,
                    each_c = (long long)p->m * p->n;
    return dl_cublas_check((int)cublasGemmStridedBatchedEx(p->handle, ta, tb, p->m, p->n, p->k,
                                                           &one, a, type, lda, each_a, b, type, ldb,
                                                           each_b, &zero, c, type, p->m, each_c,
                                                           p->count, compute, CUBLAS_GEMM_DEFAULT),
                           "batched GEMM", err);
}

static double gemm_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(multiply, state, calls, err);
}

/* Checks some elements of the last set. */
static enum dl_code gemm_verify(void *state, struct dl_err *err) {
    enum { SOME = 16 };
    struct gemm *p = state;
    const struct dl_gpu_precision *precision = p->precision;
    const size_t set = (size_t)p->sets - 1, m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    const size_t a0 = set * (p->a + p->b), b0 = a0 + p->a;
    const char *c = p->room + set * p->c * dl_gpu_type_bytes(precision->out);
    uint64_t random = 777;
    DL_TRY(multiply(p, (long)set, err));
    for (int t = 0; t < SOME; t++) {
        const size_t i = dl_random_next(&random) % m, j = dl_random_next(&random) % n;
        const size_t batch = dl_random_next(&random) % (size_t)p->count;
        const size_t index = batch * m * n + i + j * m;
        double sum = 0, got = 0;
        for (size_t l = 0; l < k; l++) {
            sum += dl_gpu_pool_value(precision->type,
                                     a0 + batch * m * k + (p->ta ? l + i * k : i + l * m)) *
                   dl_gpu_pool_value(precision->type,
                                     b0 + batch * k * n + (p->tb ? j + l * n : l + j * k));
        }
        DL_TRY(dl_gpu_read(precision->out, c, index, &got, err));
        DL_TRY(dl_gpu_judge(precision, (double)k, 1, index, got, sum, err));
    }
    return DL_OK;
}

static const char *implementation(const void *state) {
    const struct gemm *p = state;
    return p->lt != NULL ? "cublaslt" : "cublas";
}

const struct dl_probe dl_probe_gpu_gemm =
    DL_PROBE("gpu-gemm", "GEMM, cuBLAS", 1e-3, dl_gpu_absent, struct gemm, gemm_open, gemm_run,
             .verify = gemm_verify, .implementation = implementation, .close = gemm_close,
             .preemptions = dl_gpu_disturbances);
const struct dl_probe dl_probe_gpu_batch =
    DL_PROBE("gpu-batch", "batched GEMM, cuBLAS", 1e-3, dl_gpu_absent, struct gemm, gemm_open,
             gemm_run, .verify = gemm_verify, .implementation = implementation, .close = gemm_close,
             .preemptions = dl_gpu_disturbances);
