/* probe_cudnn_attention.c - probe "gpu-attention": attention as frameworks compose it without a
 * fused kernel: batched GEMMs of cuBLAS around the softmax of cuDNN. Shape "n= heads= q= d=
 * [prec=]" (samples, heads, tokens, head size); column-major, the numbers of a token contiguous.
 * fwd: S = K^T Q / sqrt(d), P = softmax(S), O = V P. bwd_data: dV = dO P^T, dP = V^T dO, dS = P (dP
 * - sum P dP), dQ = K dS / sqrt(d), dK = Q dS^T / sqrt(d), with P from the pool: the formulas hold
 * for any P. No mask and no dropout. */
#include "calibrate/probes/cudnn/probe_cudnn.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attention {
    bool backward;
    const struct dl_gpu_precision *precision;
    cublasHandle_t gemm;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t scores;
    int heads, q, d;        /* heads: of all samples */
    size_t vectors, square; /* elements of Q, K, V or O; of S or P; rounded up for alignment */
    long sets;
    char *pool, *room;
    float scale;
};

static enum dl_code check(cublasStatus_t status, struct dl_err *err) {
    if (status == CUBLAS_STATUS_SUCCESS) return DL_OK;
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED ||
                         status == CUBLAS_STATUS_ALLOC_FAILED ||
                         status == CUBLAS_STATUS_ARCH_MISMATCH;
    return dl_fail(err, refused ? DL_ERR_SYSTEM : DL_ERR_BACKEND,
                   "GEMM of attention: cuBLAS status %d", (int)status);
}

static void attention_close(void *state) {
    struct attention *a = state;
    if (a->scores != NULL) cudnnDestroyTensorDescriptor(a->scores);
}

/* Operands of a set in the pool: Q, K, V, then (backward) dO and P. Results: S, P, O or dV, dP, dS,
 * dQ, dK. */
static size_t operand_count(const struct attention *a) {
    return a->backward ? 4 * a->vectors + a->square : 3 * a->vectors;
}
static size_t result_count(const struct attention *a) {
    return a->backward ? 3 * a->vectors + 2 * a->square : a->vectors + 2 * a->square;
}

static enum dl_code attention_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct attention *a = state;
    static cublasHandle_t made;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    const long samples = dl_point_number(point, "n", 1), heads = dl_point_number(point, "heads", 1),
               q = dl_point_number(point, "q", 1), d = dl_point_number(point, "d", 1),
               most = 1 << 20;
    a->backward = strcmp(point->pass, "fwd") != 0;
    a->precision = dl_gpu_precision_of(point);
    if (samples < 1 || heads < 1 || q < 1 || d < 1 || samples > most / heads || q > most ||
        d > most || a->precision == NULL || a->precision->type == DL_GPU_F8)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot read the shape '%s'", point->shape);
    a->heads = (int)(samples * heads);
    a->q = (int)q;
    a->d = (int)d;
    a->scale = (float)(1 / sqrt((double)d));
    a->vectors = ((size_t)a->heads * (size_t)(q * d) + 255) / 256 * 256;
    a->square = ((size_t)a->heads * (size_t)(q * q) + 255) / 256 * 256;
    DL_TRY(dl_gpu_open(&gpu, err));
    if (gpu->capability < a->precision->capability)
        return dl_fail(err, DL_ERR_SYSTEM, "%s needs compute capability %d.%d", a->precision->name,
                       a->precision->capability / 10, a->precision->capability % 10);
    DL_TRY(dl_cudnn_open(&handle, err));
    a->handle = handle;
    if (made == NULL) DL_TRY(check(cublasCreate(&made), err));
    a->gemm = made;
    const size_t each = dl_gpu_type_bytes(a->precision->type);
    a->sets = dl_gpu_sets((double)(operand_count(a) + result_count(a)) * (double)each);
    DL_TRY(dl_gpu_pool(a->precision->type, (size_t)a->sets * operand_count(a), &pool, err));
    DL_TRY(dl_gpu_room((size_t)a->sets * result_count(a) * each, &room, err));
    a->pool = pool;
    a->room = room;
    DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&a->scores), "scores", err));
    return dl_cudnn_check(
        (int)cudnnSetTensor4dDescriptor(a->scores, CUDNN_TENSOR_NCHW,
                                        (cudnnDataType_t)dl_cudnn_type(a->precision->type),
                                        a->heads * a->q, a->q, 1, 1),
        "scores", err);
}

struct product {
    int m, n, k;
    bool ta, tb; /* transposed */
    float factor;
};

/* z[m,n] = factor x y for each head. */
static enum dl_code multiply(const struct attention *a, struct product p, const void *x,
                             const void *y, void *z, struct dl_err *err) {
    static const float zero = 0;
    const int m = p.m, n = p.n, k = p.k;
    const cudaDataType type = a->precision->type == DL_GPU_F32   ? CUDA_R_32F
                              : a->precision->type == DL_GPU_F16 ? CUDA_R_16F
                                                                 : CUDA_R_16BF;
    const cublasComputeType_t compute =
        a->precision->input_error_frac > 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return check(cublasGemmStridedBatchedEx(
                     a->gemm, p.ta ? CUBLAS_OP_T : CUBLAS_OP_N, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N, m,
                     n, k, &p.factor, x, type, p.ta ? k : m, (long long)m * k, y, type,
                     p.tb ? n : k, (long long)k * n, &zero, z, type, m, (long long)m * n, a->heads,
                     compute, CUBLAS_GEMM_DEFAULT),
                 err);
}

struct places {
    char *q, *k, *v, *d_o, *p; /* operands */
    char *s, *soft, *o;        /* forward */
    char *d_v, *d_p, *d_s, *d_q, *d_k;
};

static struct places places_of(const struct attention *a, long set) {
    const size_t each = dl_gpu_type_bytes(a->precision->type), vectors = a->vectors * each,
                 square = a->square * each;
    char *in = a->pool + (size_t)set * operand_count(a) * each,
         *out = a->room + (size_t)set * result_count(a) * each;
    struct places p = {.q = in, .k = in + vectors, .v = in + 2 * vectors};
    if (a->backward) {
        p.d_o = in + 3 * vectors, p.p = in + 4 * vectors;
        p.d_v = out, p.d_q = out + vectors, p.d_k = out + 2 * vectors, p.d_p = out + 3 * vectors,
        p.d_s = p.d_p + square;
    } else {
        p.o = out, p.s = out + vectors, p.soft = p.s + square;
    }
    return p;
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    static const float one = 1, zero = 0;
    const struct attention *a = state;
    const struct places p = places_of(a, call % a->sets);
    if (!a->backward) {
        DL_TRY(multiply(a, (struct product){a->q, a->q, a->d, true, false, a->scale}, p.k, p.q, p.s,
                        err));
        DL_TRY(dl_cudnn_check((int)cudnnSoftmaxForward(a->handle, CUDNN_SOFTMAX_ACCURATE,
                                                       CUDNN_SOFTMAX_MODE_INSTANCE, &one, a->scores,
                                                       p.s, &zero, a->scores, p.soft),
                              "softmax of scores", err));
        return multiply(a, (struct product){a->d, a->q, a->q, false, false, 1}, p.v, p.soft, p.o,
                        err);
    }
    DL_TRY(multiply(a, (struct product){a->d, a->q, a->q, false, true, 1}, p.d_o, p.p, p.d_v, err));
    DL_TRY(multiply(a, (struct product){a->q, a->q, a->d, true, false, 1}, p.v, p.d_o, p.d_p, err));
    DL_TRY(dl_cudnn_check((int)cudnnSoftmaxBackward(a->handle, CUDNN_SOFTMAX_ACCURATE,
                                                    CUDNN_SOFTMAX_MODE_INSTANCE, &one, a->scores,
                                                    p.p, a->scores, p.d_p, &zero, a->scores, p.d_s),
                          "gradient of softmax", err));
    DL_TRY(multiply(a, (struct product){a->d, a->q, a->q, false, false, a->scale}, p.k, p.d_s,
                    p.d_q, err));
    return multiply(a, (struct product){a->d, a->q, a->q, false, true, a->scale}, p.q, p.d_s, p.d_k,
                    err);
}

static double attention_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(once, state, calls, err);
}

/* Number `i` of token `token` of a head, of operand 0 Q, 1 K, 2 V, 3 dO; P of (key, query). The
 * last set. */
static double at(const struct attention *a, int operand, int head, int token, int i) {
    const size_t first = (size_t)(a->sets - 1) * operand_count(a) + (size_t)operand * a->vectors;
    return dl_gpu_pool_value(a->precision->type,
                             first + ((size_t)head * (size_t)a->q + (size_t)token) * (size_t)a->d +
                                 (size_t)i);
}
static double p_at(const struct attention *a, int head, int query, int key) {
    const size_t first = (size_t)(a->sets - 1) * operand_count(a) + 4 * a->vectors;
    return dl_gpu_pool_value(a->precision->type,
                             first + ((size_t)head * (size_t)a->q + (size_t)query) * (size_t)a->q +
                                 (size_t)key);
}

static double dot(const struct attention *a, int left, int left_token, int right, int right_token,
                  int head) {
    double sum = 0;
    for (int i = 0; i < a->d; i++)
        sum += at(a, left, head, left_token, i) * at(a, right, head, right_token, i);
    return sum;
}

/* Number i of O (forward), of dQ (backward); *most: the largest weight of the last sum. */
static double expect(const struct attention *a, double *weights, int head, int query, int i,
                     double *most) {
    double sum = 0, all = 0;
    for (int k = 0; k < a->q; k++) {
        weights[k] = a->backward ? dot(a, 2, k, 3, query, head)
                                 : exp((double)a->scale * dot(a, 1, k, 0, query, head));
        all += a->backward ? weights[k] * p_at(a, head, query, k) : weights[k];
    }
    *most = 0;
    for (int k = 0; k < a->q; k++) {
        const double w = a->backward
                             ? (double)a->scale * p_at(a, head, query, k) * (weights[k] - all)
                             : weights[k] / all;
        sum += w * at(a, a->backward ? 1 : 2, head, k, i);
        *most = fmax(*most, fabs(w));
    }
    return sum;
}

static enum dl_code attention_verify(void *state, struct dl_err *err) {
    enum { SOME = 4 };
    struct attention *a = state;
    double *weights = calloc((size_t)a->q, sizeof *weights);
    uint64_t random = 1917;
    if (weights == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    const struct places p = places_of(a, a->sets - 1);
    enum dl_code code = once(a, a->sets - 1, err);
    for (int t = 0; t < SOME && code == DL_OK; t++) {
        const int head = (int)(dl_random_next(&random) % (uint64_t)a->heads),
                  query = (int)(dl_random_next(&random) % (uint64_t)a->q),
                  i = (int)(dl_random_next(&random) % (uint64_t)a->d);
        const size_t index =
            ((size_t)head * (size_t)a->q + (size_t)query) * (size_t)a->d + (size_t)i;
        double got = 0, most = 0;
        const double expected = expect(a, weights, head, query, i, &most);
        code = dl_gpu_read(a->precision->type, a->backward ? p.d_q : p.o, index, &got, err);
        /* Scores and weights are stored in this precision, which rounds each weight. */
        const struct dl_gpu_precision rounded = {
            a->precision->name,
            a->precision->type,
            a->precision->out,
            a->precision->capability,
            a->precision->input_error_frac * fmax(most, 1),
            fmax(a->precision->sum_error_frac, a->precision->output_error_frac) * fmax(most, 1),
            a->precision->output_error_frac};
        if (code == DL_OK) code = dl_gpu_judge(&rounded, a->q, 5, index, got, expected, err);
    }
    free(weights);
    return code;
}

static const char *implementation(const void *state) {
    (void)state;
    return "composed: cublas and cudnn";
}

const struct dl_probe dl_probe_gpu_attention = DL_PROBE(
    "gpu-attention", "attention, composed of cuBLAS and cuDNN calls", 1e-3, dl_gpu_absent,
    struct attention, attention_open, attention_run, .verify = attention_verify,
    .implementation = implementation, .close = attention_close, .preemptions = dl_gpu_disturbances);
