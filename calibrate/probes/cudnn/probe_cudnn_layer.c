/* probe_cudnn_layer.c - probes of bandwidth-bound layers: "gpu-norm" (batch normalization in
 * training), "gpu-layernorm", "gpu-act" (relu), "gpu-pool" (max, 3x3, stride 2, padding 1),
 * "gpu-softmax". Shape "n= c= h= [prec=]" (layer normalization and softmax: n rows of c numbers),
 * passes fwd and bwd_data. Layer normalization runs as batch normalization of one image whose
 * channels are the rows: the same sums and traffic, with a factor per row instead of per column.
 * Backward softmax and relu take y from the pool: the formulas hold for any y. */
#include "calibrate/probes/cudnn/probe_cudnn.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { NORM, LAYER_NORM, ACT, POOL, SOFTMAX };
struct layer {
    enum kind kind;
    bool backward;
    const struct dl_gpu_precision *precision;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y, channel;
    cudnnActivationDescriptor_t act;
    cudnnPoolingDescriptor_t pool;
    int n, c, h, w, out;        /* w equals h, except for layer normalization */
    size_t in_count, out_count; /* elements of x and y, rounded up for alignment */
    long sets;
    char *first, *room; /* operands; results */
    float *factors;     /* of a normalization: scale, bias, their gradients */
};
static const double EPSILON = 1e-5;

static void layer_close(void *state) {
    struct layer *l = state;
    if (l->x != NULL) cudnnDestroyTensorDescriptor(l->x);
    if (l->y != NULL) cudnnDestroyTensorDescriptor(l->y);
    if (l->channel != NULL) cudnnDestroyTensorDescriptor(l->channel);
    if (l->act != NULL) cudnnDestroyActivationDescriptor(l->act);
    if (l->pool != NULL) cudnnDestroyPoolingDescriptor(l->pool);
    if (l->factors != NULL) cudaFree(l->factors);
}

static double scale_of(int channel) { return 1 + 0.125 * (channel % 8); }
static double bias_of(int channel) { return 0.25 * (channel % 4); }

static enum dl_code make_factors(struct layer *l, struct dl_err *err) {
    const size_t c = (size_t)l->c;
    void *device = NULL;
    float *host = calloc(4 * c, sizeof *host);
    if (host == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < l->c; i++) {
        host[i] = (float)scale_of(i);
        host[c + (size_t)i] = (float)bias_of(i);
    }
    cudaError_t code = cudaMalloc(&device, 4 * c * sizeof *host);
    if (code == cudaSuccess)
        code = cudaMemcpy(device, host, 4 * c * sizeof *host, cudaMemcpyHostToDevice);
    l->factors = device;
    free(host);
    return dl_gpu_check((int)code, "factors of a normalization", err);
}

static enum dl_code describe(struct layer *l, struct dl_err *err) {
    const cudnnDataType_t type = (cudnnDataType_t)dl_cudnn_type(l->precision->type);
    DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&l->x), "input", err));
    DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&l->y), "output", err));
    DL_TRY(dl_cudnn_check(
        (int)cudnnSetTensor4dDescriptor(l->x, CUDNN_TENSOR_NCHW, type, l->n, l->c, l->h, l->w),
        "input", err));
    DL_TRY(dl_cudnn_check((int)cudnnSetTensor4dDescriptor(l->y, CUDNN_TENSOR_NCHW, type, l->n, l->c,
                                                          l->out, l->kind == POOL ? l->out : l->w),
                          "output", err));
    if (l->kind == NORM || l->kind == LAYER_NORM) {
        DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&l->channel), "channels", err));
        DL_TRY(dl_cudnn_check(
            (int)cudnnDeriveBNTensorDescriptor(l->channel, l->x, CUDNN_BATCHNORM_SPATIAL),
            "channels", err));
        return make_factors(l, err);
    }
    if (l->kind == ACT) {
        DL_TRY(dl_cudnn_check((int)cudnnCreateActivationDescriptor(&l->act), "relu", err));
        return dl_cudnn_check((int)cudnnSetActivationDescriptor(l->act, CUDNN_ACTIVATION_RELU,
                                                                CUDNN_PROPAGATE_NAN, 0.0),
                              "relu", err);
    }
    if (l->kind == SOFTMAX) return DL_OK;
    DL_TRY(dl_cudnn_check((int)cudnnCreatePoolingDescriptor(&l->pool), "pooling", err));
    return dl_cudnn_check((int)cudnnSetPooling2dDescriptor(l->pool, CUDNN_POOLING_MAX,
                                                           CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 2, 2),
                          "pooling", err);
}

/* Operands of a set in the pool: x, then dy (backward), then y (backward of relu and softmax).
 * Results: dx or y, and for backward pooling the y of its forward pass. */
struct operands {
    void *x, *dy, *y, *result, *true_y;
};

static size_t operand_count(const struct layer *l) {
    return l->in_count + (l->backward ? 2 * l->out_count : 0);
}
static size_t result_count(const struct layer *l) { return l->in_count + l->out_count; }

static struct operands operands_of(const struct layer *l, long set) {
    const size_t each = dl_gpu_type_bytes(l->precision->type);
    char *in = l->first + (size_t)set * operand_count(l) * each,
         *out = l->room + (size_t)set * result_count(l) * each;
    return (struct operands){in, in + l->in_count * each, in + (l->in_count + l->out_count) * each,
                             out, l->backward ? out + l->in_count * each : out};
}

static enum dl_code forward(const struct layer *l, void *x, void *y, struct dl_err *err) {
    static const float one = 1, zero = 0;
    const size_t c = (size_t)l->c;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    switch (l->kind) {
    case NORM:
    case LAYER_NORM:
        status = cudnnBatchNormalizationForwardTraining(
            l->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, l->x, x, l->y, y, l->channel,
            l->factors, l->factors + c, 1.0, NULL, NULL, EPSILON, NULL, NULL);
        break;
    case ACT:
        status = cudnnActivationForward(l->handle, l->act, &one, l->x, x, &zero, l->y, y);
        break;
    case POOL:
        status = cudnnPoolingForward(l->handle, l->pool, &one, l->x, x, &zero, l->y, y);
        break;
    case SOFTMAX:
        status = cudnnSoftmaxForward(l->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                     &one, l->x, x, &zero, l->y, y);
        break;
    }
    return dl_cudnn_check((int)status, "a layer forward", err);
}

static enum dl_code backward(const struct layer *l, const struct operands *o, struct dl_err *err) {
    static const float one = 1, zero = 0;
    const size_t c = (size_t)l->c;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    switch (l->kind) {
    case NORM:
    case LAYER_NORM:
        status = cudnnBatchNormalizationBackward(
            l->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, l->x, o->x, l->y, o->dy,
            l->x, o->result, l->channel, l->factors, l->factors + 2 * c, l->factors + 3 * c,
            EPSILON, NULL, NULL);
        break;
    case ACT:
        status = cudnnActivationBackward(l->handle, l->act, &one, l->y, o->y, l->y, o->dy, l->x,
                                         o->x, &zero, l->x, o->result);
        break;
    case POOL:
        status = cudnnPoolingBackward(l->handle, l->pool, &one, l->y, o->true_y, l->y, o->dy, l->x,
                                      o->x, &zero, l->x, o->result);
        break;
    case SOFTMAX:
        status =
            cudnnSoftmaxBackward(l->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                 &one, l->y, o->y, l->y, o->dy, &zero, l->x, o->result);
        break;
    }
    return dl_cudnn_check((int)status, "a layer backward", err);
}

static enum dl_code layer_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct layer *l = state;
    l->kind = (enum kind)point->variant;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    l->backward = strcmp(point->pass, "fwd") != 0;
    l->precision = dl_gpu_precision_of(point);
    l->n = (int)dl_point_number(point, "n", 1);
    l->c = (int)dl_point_number(point, "c", 1);
    l->h = (int)dl_point_number(point, "h", 1);
    l->out = l->kind == POOL ? (l->h + 2 - 3) / 2 + 1 : l->h;
    if (l->n < 1 || l->c < 1 || l->h < 1 || l->precision == NULL || l->precision->type == DL_GPU_F8)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot read the shape '%s'", point->shape);
    l->w = l->h;
    if (l->kind == LAYER_NORM) {
        l->w = l->c;
        l->c = l->n;
        l->n = 1;
    }
    const double images = (double)l->n * l->c;
    l->in_count = ((size_t)(images * l->h * l->w) + 255) / 256 * 256;
    l->out_count =
        ((size_t)(images * l->out * (l->kind == POOL ? l->out : l->w)) + 255) / 256 * 256;
    DL_TRY(dl_gpu_open(&gpu, err));
    if (gpu->capability < l->precision->capability)
        return dl_fail(err, DL_ERR_SYSTEM, "%s needs compute capability %d.%d", l->precision->name,
                       l->precision->capability / 10, l->precision->capability % 10);
    DL_TRY(dl_cudnn_open(&handle, err));
    l->handle = handle;
    const size_t each = dl_gpu_type_bytes(l->precision->type);
    l->sets = dl_gpu_sets((double)(operand_count(l) + result_count(l)) * (double)each);
    DL_TRY(dl_gpu_pool(l->precision->type, (size_t)l->sets * operand_count(l), &pool, err));
    DL_TRY(dl_gpu_room((size_t)l->sets * result_count(l) * each, &room, err));
    l->first = pool;
    l->room = room;
    DL_TRY(describe(l, err));
    for (long set = 0; set < l->sets && l->kind == POOL && l->backward; set++) {
        const struct operands o = operands_of(l, set);
        DL_TRY(forward(l, o.x, o.true_y, err));
    }
    return DL_OK;
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    const struct layer *l = state;
    const struct operands o = operands_of(l, call % l->sets);
    return l->backward ? backward(l, &o, err) : forward(l, o.x, o.result, err);
}

static double layer_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(once, state, calls, err);
}

/* Numbers of the last set, from the pool. */
static double x_at(const struct layer *l, size_t i) {
    return dl_gpu_pool_value(l->precision->type, (size_t)(l->sets - 1) * operand_count(l) + i);
}
static double dy_at(const struct layer *l, size_t i) { return x_at(l, l->in_count + i); }
static double y_at(const struct layer *l, size_t i) {
    return x_at(l, l->in_count + l->out_count + i);
}

static double expect_norm(const struct layer *l, size_t index) {
    const size_t area = (size_t)l->h * (size_t)l->w, channels = (size_t)l->c,
                 channel = index / area % channels;
    const double count = (double)l->n * (double)area;
    double mean = 0, square = 0, sum_dy = 0, sum_dy_x = 0;
    for (size_t n = 0; n < (size_t)l->n; n++) {
        for (size_t i = (n * channels + channel) * area; i < (n * channels + channel + 1) * area;
             i++) {
            mean += x_at(l, i);
            square += x_at(l, i) * x_at(l, i);
            if (!l->backward) continue;
            sum_dy += dy_at(l, i);
            sum_dy_x += dy_at(l, i) * x_at(l, i);
        }
    }
    mean /= count;
    const double inverse = 1 / sqrt(square / count - mean * mean + EPSILON),
                 scale = scale_of((int)channel);
    const double hat = (x_at(l, index) - mean) * inverse;
    if (!l->backward) return scale * hat + bias_of((int)channel);
    const double sum_dy_hat = (sum_dy_x - mean * sum_dy) * inverse;
    return scale * inverse * (dy_at(l, index) - sum_dy / count - hat * sum_dy_hat / count);
}

static double expect_softmax(const struct layer *l, size_t index) {
    const size_t row = index / (size_t)l->c * (size_t)l->c;
    double sum = 0;
    for (size_t i = row; i < row + (size_t)l->c; i++)
        sum += l->backward ? y_at(l, i) * dy_at(l, i) : exp(x_at(l, i));
    return l->backward ? y_at(l, index) * (dy_at(l, index) - sum) : exp(x_at(l, index)) / sum;
}

/* Largest x of output (row, column) of one image and channel; *where: its index. */
static double window(const struct layer *l, size_t image, int row, int column, size_t *where) {
    double most = -INFINITY;
    for (int r = 2 * row - 1; r <= 2 * row + 1; r++) {
        for (int q = 2 * column - 1; q <= 2 * column + 1; q++) {
            if (r < 0 || q < 0 || r >= l->h || q >= l->h) continue;
            const size_t at = (image * (size_t)l->h + (size_t)r) * (size_t)l->h + (size_t)q;
            const double x = x_at(l, at);
            if (x > most) {
                most = x;
                *where = at;
            }
        }
    }
    return most;
}

static double expect_pool(const struct layer *l, size_t index) {
    const size_t side = (size_t)(l->backward ? l->h : l->out), image = index / (side * side);
    const int row = (int)(index / side % side), column = (int)(index % side);
    size_t where = 0;
    if (!l->backward) return window(l, image, row, column, &where);
    double sum = 0;
    for (int r = row / 2; r <= (row + 1) / 2; r++) {
        for (int q = column / 2; q <= (column + 1) / 2; q++) {
            if (r >= l->out || q >= l->out) continue;
            window(l, image, r, q, &where);
            if (where == index)
                sum += dy_at(l, (image * (size_t)l->out + (size_t)r) * (size_t)l->out + (size_t)q);
        }
    }
    return sum;
}

static double expect(const struct layer *l, size_t index) {
    switch (l->kind) {
    case NORM:
    case LAYER_NORM: return expect_norm(l, index);
    case ACT:
        return l->backward ? (y_at(l, index) > 0 ? dy_at(l, index) : 0) : fmax(x_at(l, index), 0);
    case POOL: return expect_pool(l, index);
    case SOFTMAX: break;
    }
    return expect_softmax(l, index);
}

static enum dl_code layer_verify(void *state, struct dl_err *err) {
    enum { SOME = 8 };
    static const double SLACK = 30; /* a mean and a variance, or exponentials */
    struct layer *l = state;
    const double images = (double)l->n * l->c, side = l->backward ? l->h : l->out;
    const size_t count = (size_t)(images * side * (l->kind == POOL ? side : l->w));
    uint64_t random = 271;
    DL_TRY(once(l, l->sets - 1, err));
    for (int t = 0; t < SOME; t++) {
        const size_t index = dl_random_next(&random) % count;
        double got = 0;
        DL_TRY(
            dl_gpu_read(l->precision->type, operands_of(l, l->sets - 1).result, index, &got, err));
        DL_TRY(dl_gpu_judge(l->precision, 9, SLACK, index, got, expect(l, index), err));
    }
    return DL_OK;
}

static const char *implementation(const void *state) {
    (void)state;
    return "cudnn";
}

#define LAYER(variable, name, summary, kind)                                                       \
    const struct dl_probe variable =                                                               \
        DL_PROBE(name, summary, 1e-3, dl_gpu_absent, struct layer, layer_open, layer_run,          \
                 .verify = layer_verify, .implementation = implementation, .close = layer_close,   \
                 .preemptions = dl_gpu_disturbances, .variant = kind)
LAYER(dl_probe_gpu_norm, "gpu-norm", "batch normalization, cuDNN", NORM);
LAYER(dl_probe_gpu_layernorm, "gpu-layernorm", "layer normalization, cuDNN", LAYER_NORM);
LAYER(dl_probe_gpu_act, "gpu-act", "activation (relu), cuDNN", ACT);
LAYER(dl_probe_gpu_pool, "gpu-pool", "pooling, cuDNN", POOL);
LAYER(dl_probe_gpu_softmax, "gpu-softmax", "softmax, cuDNN", SOFTMAX);
