/* fake_cudnn_layer.c - batch normalization, relu, max pooling and softmax of the fake cuDNN. */
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>

#include "tests/fake_cuda/fake_gpu.h"
#include "tests/fake_cuda/fake_cudnn.h"

struct fakeActivation {
    int unused;
};
struct fakePooling {
    int size, pad, stride;
};

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *out) {
    *out = calloc(1, sizeof **out);
    return *out == NULL ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t a) {
    free(a);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t a,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coef) {
    (void)a, (void)nan, (void)coef;
    return mode == CUDNN_ACTIVATION_RELU ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *out) {
    *out = calloc(1, sizeof **out);
    return *out == NULL ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t p) {
    free(p);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t p, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int h, int w, int pad_h,
                                          int pad_w, int stride_h, int stride_w) {
    (void)nan;
    if (mode != CUDNN_POOLING_MAX || h != w || pad_h != pad_w || stride_h != stride_w)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *p = (struct fakePooling){h, pad_h, stride_h};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t out, cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
    (void)mode;
    *out = (struct fakeTensor){FAKE_F32, 4, {1, x->extent[1], 1, 1, 0}, (size_t)x->extent[1]};
    return CUDNN_STATUS_SUCCESS;
}

/* Traffic: `arrays` times the size of the input. */
static void spend(const struct fakeTensor *t, double arrays) {
    fake_kernel((double)t->count, arrays * (double)t->count * (double)fake_bytes(t->type), FAKE_F32,
                false, 1e9, 1e9, 1e9);
}
static struct fake_op rule(double (*value)(const struct fake_op *, size_t),
                           const struct fakeTensor *out, void *result, const struct fakeTensor *x) {
    return (struct fake_op){.out = result,
                            .count = out->count,
                            .type = out->type,
                            .in_type = x->type,
                            .value = value,
                            .n = {x->extent[0], x->extent[1], x->extent[2], x->extent[3]}};
}
static double in(const struct fake_op *op, int operand, size_t i) {
    return fake_load(op->in[operand], op->in_type, i, op->sequence);
}

/* ---- normalization; in: x, scale, bias, dy ---- */

struct moments {
    double mean, inverse, dy, dy_hat;
};
static struct moments moments_of(const struct fake_op *op, size_t channel, bool backward) {
    struct moments m = {0, 0, 0, 0};
    const size_t area = (size_t)(op->n[2] * op->n[3]), channels = (size_t)op->n[1],
                 images = (size_t)op->n[0];
    const double count = (double)(area * images);
    double variance = 0;
    for (size_t i = 0; i < area * images; i++)
        m.mean += in(op, 0, (i / area * channels + channel) * area + i % area) / count;
    for (size_t i = 0; i < area * images; i++)
        variance +=
            pow(in(op, 0, (i / area * channels + channel) * area + i % area) - m.mean, 2) / count;
    m.inverse = 1 / sqrt(variance + op->f[0]);
    for (size_t i = 0; i < area * images && backward; i++) {
        const size_t at = (i / area * channels + channel) * area + i % area;
        m.dy += in(op, 3, at) / count;
        m.dy_hat += in(op, 3, at) * (in(op, 0, at) - m.mean) * m.inverse / count;
    }
    return m;
}
static double norm(const struct fake_op *op, size_t i) {
    const size_t channel = i / (size_t)(op->n[2] * op->n[3]) % (size_t)op->n[1];
    const struct moments m = moments_of(op, channel, false);
    return fake_load(op->in[1], FAKE_F32, channel, op->sequence) * (in(op, 0, i) - m.mean) *
               m.inverse +
           fake_load(op->in[2], FAKE_F32, channel, op->sequence);
}
static double norm_back(const struct fake_op *op, size_t i) {
    const size_t channel = i / (size_t)(op->n[2] * op->n[3]) % (size_t)op->n[1];
    const struct moments m = moments_of(op, channel, true);
    return fake_load(op->in[1], FAKE_F32, channel, op->sequence) * m.inverse *
           (in(op, 3, i) - m.dy - (in(op, 0, i) - m.mean) * m.inverse * m.dy_hat);
}
cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    cudnnTensorDescriptor_t xd, const void *x, cudnnTensorDescriptor_t yd, void *y,
    cudnnTensorDescriptor_t bd, const void *scale, const void *bias, double factor, void *mean,
    void *variance, double epsilon, void *saved_mean, void *saved_inverse) {
    (void)h, (void)mode, (void)alpha, (void)beta, (void)bd, (void)factor, (void)mean,
        (void)variance, (void)saved_mean, (void)saved_inverse;
    struct fake_op op = rule(norm, yd, y, xd);
    op.in[0] = x, op.in[1] = scale, op.in[2] = bias;
    op.f[0] = epsilon;
    spend(xd, 3);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const void *alpha2, const void *beta2, cudnnTensorDescriptor_t xd, const void *x,
    cudnnTensorDescriptor_t dyd, const void *dy, cudnnTensorDescriptor_t dxd, void *dx,
    cudnnTensorDescriptor_t bd, const void *scale, void *dscale, void *dbias, double epsilon,
    const void *saved_mean, const void *saved_inverse) {
    (void)h, (void)mode, (void)alpha, (void)beta, (void)alpha2, (void)beta2, (void)dyd, (void)bd,
        (void)dscale, (void)dbias;
    (void)saved_mean, (void)saved_inverse;
    struct fake_op op = rule(norm_back, dxd, dx, xd);
    op.in[0] = x, op.in[1] = scale, op.in[3] = dy;
    op.f[0] = epsilon;
    spend(xd, 5);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- relu; in: x or y, dy ---- */

static double relu(const struct fake_op *op, size_t i) { return fmax(in(op, 0, i), 0); }
static double relu_back(const struct fake_op *op, size_t i) {
    return in(op, 0, i) > 0 ? in(op, 1, i) : 0;
}
cudnnStatus_t cudnnActivationForward(cudnnHandle_t h, cudnnActivationDescriptor_t a,
                                     const void *alpha, cudnnTensorDescriptor_t xd, const void *x,
                                     const void *beta, cudnnTensorDescriptor_t yd, void *y) {
    (void)h, (void)a, (void)alpha, (void)beta;
    struct fake_op op = rule(relu, yd, y, xd);
    op.in[0] = x;
    spend(xd, 2);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t h, cudnnActivationDescriptor_t a,
                                      const void *alpha, cudnnTensorDescriptor_t yd, const void *y,
                                      cudnnTensorDescriptor_t dyd, const void *dy,
                                      cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                      cudnnTensorDescriptor_t dxd, void *dx) {
    (void)h, (void)a, (void)alpha, (void)beta, (void)dyd, (void)xd, (void)x;
    struct fake_op op = rule(relu_back, dxd, dx, yd);
    op.in[0] = y, op.in[1] = dy;
    spend(yd, 3);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- max pooling; in: x, dy; n[4..7]: size, pad, stride, output side ---- */

static long winner(const struct fake_op *op, size_t image, long row, long column) {
    const long side = op->n[2];
    long best = -1;
    for (long r = row * op->n[6] - op->n[5]; r < row * op->n[6] - op->n[5] + op->n[4]; r++)
        for (long q = column * op->n[6] - op->n[5]; q < column * op->n[6] - op->n[5] + op->n[4];
             q++) {
            const long at = ((long)image * side + r) * side + q;
            if (r < 0 || q < 0 || r >= side || q >= side) continue;
            if (best < 0 || in(op, 0, (size_t)at) > in(op, 0, (size_t)best)) best = at;
        }
    return best;
}
static double pooled(const struct fake_op *op, size_t i) {
    const size_t out = (size_t)op->n[7];
    return in(op, 0, (size_t)winner(op, i / (out * out), (long)(i / out % out), (long)(i % out)));
}
static double pooled_back(const struct fake_op *op, size_t i) {
    const size_t side = (size_t)op->n[2], image = i / (side * side);
    const long out = op->n[7];
    double sum = 0;
    for (long r = 0; r < out; r++)
        for (long q = 0; q < out; q++) {
            if (labs(r * op->n[6] - (long)(i / side % side)) > op->n[4] ||
                labs(q * op->n[6] - (long)(i % side)) > op->n[4])
                continue;
            if (winner(op, image, r, q) == (long)i)
                sum += in(op, 1, (image * (size_t)out + (size_t)r) * (size_t)out + (size_t)q);
        }
    return sum;
}
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t h, cudnnPoolingDescriptor_t p, const void *alpha,
                                  cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t yd, void *y) {
    (void)h, (void)alpha, (void)beta;
    if (yd->extent[2] != (xd->extent[2] + 2 * p->pad - p->size) / p->stride + 1)
        return CUDNN_STATUS_BAD_PARAM;
    struct fake_op op = rule(pooled, yd, y, xd);
    op.in[0] = x;
    op.n[4] = p->size, op.n[5] = p->pad, op.n[6] = p->stride, op.n[7] = yd->extent[2];
    spend(xd, 1.25);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t h, cudnnPoolingDescriptor_t p, const void *alpha,
                                   cudnnTensorDescriptor_t yd, const void *y,
                                   cudnnTensorDescriptor_t dyd, const void *dy,
                                   cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                   cudnnTensorDescriptor_t dxd, void *dx) {
    (void)h, (void)alpha, (void)beta, (void)dyd, (void)y;
    struct fake_op op = rule(pooled_back, dxd, dx, xd);
    op.in[0] = x, op.in[1] = dy;
    op.n[4] = p->size, op.n[5] = p->pad, op.n[6] = p->stride, op.n[7] = yd->extent[2];
    spend(xd, 2.5);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- softmax over all but the first extent; in: x or y, dy ---- */

/* Caches the sums of the last row: a GEMM after a softmax reads every element of a row. */
static struct {
    unsigned sequence;
    size_t first;
    double most, sum;
} of_row;
static double soft(const struct fake_op *op, size_t i) {
    const size_t row = (size_t)(op->n[1] * op->n[2] * op->n[3]), first = i / row * row;
    if (of_row.sequence != op->sequence || of_row.first != first) {
        double most = -INFINITY, sum = 0;
        for (size_t j = first; j < first + row; j++) most = fmax(most, in(op, 0, j));
        for (size_t j = first; j < first + row; j++) sum += exp(in(op, 0, j) - most);
        of_row.sequence = op->sequence, of_row.first = first, of_row.most = most, of_row.sum = sum;
    }
    return exp(in(op, 0, i) - of_row.most) / of_row.sum;
}
static double soft_back(const struct fake_op *op, size_t i) {
    const size_t row = (size_t)(op->n[1] * op->n[2] * op->n[3]), first = i / row * row;
    if (of_row.sequence != op->sequence || of_row.first != first) {
        double dot = 0;
        for (size_t j = first; j < first + row; j++) dot += in(op, 0, j) * in(op, 1, j);
        of_row.sequence = op->sequence, of_row.first = first, of_row.sum = dot;
    }
    return in(op, 0, i) * (in(op, 1, i) - of_row.sum);
}
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void *alpha,
                                  cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t yd, void *y) {
    (void)h, (void)alpha, (void)beta;
    if (algorithm != CUDNN_SOFTMAX_ACCURATE || mode != CUDNN_SOFTMAX_MODE_INSTANCE)
        return CUDNN_STATUS_NOT_SUPPORTED;
    struct fake_op op = rule(soft, yd, y, xd);
    op.in[0] = x;
    spend(xd, 2);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void *alpha,
                                   cudnnTensorDescriptor_t yd, const void *y,
                                   cudnnTensorDescriptor_t dyd, const void *dy, const void *beta,
                                   cudnnTensorDescriptor_t dxd, void *dx) {
    (void)h, (void)alpha, (void)beta, (void)dyd, (void)algorithm, (void)mode;
    struct fake_op op = rule(soft_back, dxd, dx, yd);
    op.in[0] = y, op.in[1] = dy;
    spend(yd, 3);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}
